"""How good sources are, which may be used, and what a reader should be warned of. `docs/sources.md` has every rule.

Pure functions of their arguments: no network, no clock, no model.
"""
