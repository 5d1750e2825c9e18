"""How requests are read from connections, below the app."""
