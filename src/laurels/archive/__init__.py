"""What outlives Valkey, in PostgreSQL: the only place with SQL."""
