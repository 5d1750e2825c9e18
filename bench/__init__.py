"""Side-by-side ratios: `python -m bench`, or one of them by name."""
