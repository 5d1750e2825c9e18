"""PostgreSQL: the connections, the tables and their migrations. What is asked stands in the rooms' stores."""
