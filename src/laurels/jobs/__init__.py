"""Background work: what is to be done when, and by one worker at a time."""
