"""Valkey: the client, commands by type of key, and a typed stub for each function of the library."""
