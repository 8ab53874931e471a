"""How good sources are, where they contradict each other, and what a reader should be warned of.

Pure functions of their arguments: no network, no clock, no model. `docs/sources.md` states every rule and weight.
"""
