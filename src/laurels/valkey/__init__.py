"""Valkey: the client, and one typed stub for each function of our library."""
