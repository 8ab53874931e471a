"""A small web that a script makes, a search service over it, and questions: `make bench-world`."""
