"""What the researcher can call: one file a tool, and a registry."""
