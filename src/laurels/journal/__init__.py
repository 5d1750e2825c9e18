"""The journal: a row for every change, drained from Valkey into PostgreSQL, and replayed to rebuild
a board.
"""
