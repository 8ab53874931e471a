"""Scores of finished runs, of Fathom and of other systems, computed offline: `make bench-report`."""
