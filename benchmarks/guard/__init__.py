"""Counts that do not depend on time, compared with the accepted ones: see `python -m benchmarks.guard --help`."""
