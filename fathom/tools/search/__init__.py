"""Searching the web and reading what was found: one file for each vendor."""
