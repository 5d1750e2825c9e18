"""A folder for each documented system: its boards, and a simulated month (`make example NAME=framedle`)."""
