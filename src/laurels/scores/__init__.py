"""What happens when a score comes in, and how ranks are read."""
