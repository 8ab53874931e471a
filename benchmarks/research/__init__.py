"""The benchmarks of the field: how each is read, run and handed in. `python -m benchmarks.research --help`."""
