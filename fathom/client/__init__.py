"""Talking to a Fathom server: what it is asked and what it answers, and clients for Python."""
