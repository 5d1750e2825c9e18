"""Campuses, their users and their days, in PostgreSQL."""
