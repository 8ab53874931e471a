"""The quality of sources, the rules for using them, and warnings to the reader. `docs/sources.md` has every rule.

Pure functions of their arguments: no network, no clock, no model.
"""
