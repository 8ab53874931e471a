"""Storage: the artifact store and its files, the lease of a run, names of artifacts, and the cache of web answers."""
