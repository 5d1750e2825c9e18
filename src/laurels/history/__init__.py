"""What is known of windows that ended: snapshots, a member's history, export and erasure."""
