"""Boards: definitions, windows, the order of ranks, submissions and reads."""
