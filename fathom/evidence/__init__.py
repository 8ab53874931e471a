"""Evidence: each claim of a report is traced to the stored bytes that support it, and checked again from those alone.

Pure functions of their arguments: no network, no clock, no model. `docs/evidence.md` states the rules and their limits.
"""
