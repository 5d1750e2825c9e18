"""API keys and secrets, in PostgreSQL."""
