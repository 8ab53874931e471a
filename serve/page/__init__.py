"""The page: where people ask, watch and read. It is made on the server; a small script keeps a run's page up to date."""

from serve.page import asking, assets, evidence, listing, running

__all__ = ["PAGE"]

PAGE = (assets, asking, listing, running, evidence)
"""The parts that have routes. The last one takes any name below a run."""
