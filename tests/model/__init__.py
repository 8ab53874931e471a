"""Runs with a real language model, small enough for any machine: `make test-model`."""
