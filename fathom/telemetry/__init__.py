"""What a run reports: its progress, and the audit log of what was done, when and by whom."""
