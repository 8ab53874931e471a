"""Runs: found, read, listed, judged, started, resumed, answered, steered and replayed, the same for every door."""
