"""Many questions at once: reading them from a file, sharing one budget, and the table of how each ended."""
