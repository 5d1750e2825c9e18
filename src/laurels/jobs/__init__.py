"""Background work: which jobs there are (`agenda`), when each is due, and one worker at a time for each."""
