"""MCP servers for the tests, as programs: an honest one of the `mcp` package, and some that misbehave."""
