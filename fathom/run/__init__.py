"""One run: its parts, its state, its decision to stop, its usage and its estimate."""
