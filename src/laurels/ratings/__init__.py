"""Boards whose scores are ratings: matches in, ratings out."""
