"""What a run may spend and has spent: the ledger, and what models cost."""
