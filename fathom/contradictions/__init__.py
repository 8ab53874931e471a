"""Where sources contradict each other: sentences that cannot both hold."""
