"""Fathom as an MCP server: over the input and output of a process, and over HTTP."""
