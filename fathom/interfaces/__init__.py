"""The doors: command line, page, API, chat protocol and MCP. They ask the service, and decide nothing."""
