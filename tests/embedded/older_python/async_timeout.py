"""What redis-py imports on Python before 3.11.3, and pip would have installed there."""

from asyncio import timeout

__all__ = ["timeout"]
