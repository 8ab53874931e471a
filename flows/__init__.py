"""The flows: the pipeline, and the ways to start it."""
