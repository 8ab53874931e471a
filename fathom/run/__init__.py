"""One run: its parts, what it knows so far, when it stops, what it takes and what it is estimated to take."""
