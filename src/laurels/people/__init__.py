"""People: who the members are, and the places that they belong to."""
