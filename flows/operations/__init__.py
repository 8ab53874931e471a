"""What tells operators how things stand: diagnosis, metrics and costs."""
