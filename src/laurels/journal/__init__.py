"""The journal: a row for every change, drained from Valkey into PostgreSQL and replayed from there."""
