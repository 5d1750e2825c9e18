"""Snapshots, and what else is kept of windows that ended, in PostgreSQL."""
