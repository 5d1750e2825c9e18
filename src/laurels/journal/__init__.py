"""The journal: what every call did, on its way from Valkey into PostgreSQL, and done again from there."""
