"""Campuses, their people and their days, in PostgreSQL."""
