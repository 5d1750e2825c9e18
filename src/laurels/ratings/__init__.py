"""Boards whose scores are ratings, computed from matches."""
