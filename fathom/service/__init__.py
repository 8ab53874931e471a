"""Who may see or do what with runs, batches, watches and corpora, and the doing of it, for every door of a server."""
