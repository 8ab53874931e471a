"""The reports of a run: its progress, its logs and traces, and the audit log of actions, with time and author."""
