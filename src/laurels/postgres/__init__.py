"""PostgreSQL: connections, tables and migrations. The SQL of each room is in its `store`."""
