"""Evidence: each sentence of a report led back to the stored bytes that carry it, and checked again from those alone.

Pure functions of their arguments: no network, no clock, no model. `docs/evidence.md` states the rules and their limits.
"""
