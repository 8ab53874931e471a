"""What the researcher can call: one file for each tool, and a registry."""
