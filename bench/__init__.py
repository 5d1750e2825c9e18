"""Benchmarks that compare side by side: `python -m bench`, or `python -m bench NAME`."""
