"""Boards: definitions, windows, the order of ranks, names of keys, edits and drops."""
