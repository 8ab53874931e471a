"""The `fathom` command: every command and its screen."""
