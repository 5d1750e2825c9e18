"""Reads requests from connections, below the app."""
