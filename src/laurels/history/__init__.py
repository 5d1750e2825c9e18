"""What a window became is kept."""
