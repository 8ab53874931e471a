"""Text functions without a model, which extraction, retrieval, narrowing and verification share.

Everything here is a pure function of its arguments: no network, no clock, no randomness, the same on every machine.
"""
