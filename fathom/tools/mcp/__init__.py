"""Tools of MCP servers: servers that a file of the user's names, with the tools that it allows.

Servers are not trusted. Their offers and results are treated as text from outside, their output is counted in bytes
while it arrives, and their processes end with ours.
"""
