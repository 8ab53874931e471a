"""What runs: the pipeline, and the ways to start it."""
