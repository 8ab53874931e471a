"""The tools of the researcher: one file for each tool, and a registry."""
