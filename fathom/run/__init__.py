"""One run: what it works with, what it knows so far, when it stops, and what it would take."""
