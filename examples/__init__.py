"""One folder a documented system: its boards, and a month of it (`make example NAME=framedle`)."""
