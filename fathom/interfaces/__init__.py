"""The doors: the command line, the page, the API, the chat protocol and MCP. They ask the service, and decide nothing."""
