"""Tools of MCP servers: servers that a file of the user's names, with the tools that it allows.

A server is a stranger. What it offers and what it returns is text from outside, its output is counted in bytes while it
arrives, and its process ends with ours.
"""
