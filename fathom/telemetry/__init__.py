"""What is told of a run: progress to whoever listens, and the audit log of who did what and when."""
