"""What is kept: the artifact store and its files, the lease of a run, names, and the cache of the web."""
