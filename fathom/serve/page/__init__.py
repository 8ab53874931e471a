"""The page: where people ask, watch and read. The server makes it; a small script keeps a run's page up to date."""

from fathom.serve.page import asking, corpora, evidence, listing, rendering, running, signing_in, watching

__all__ = ["PAGE"]

PAGE = (rendering, signing_in, asking, listing, watching, corpora, running, evidence)
"""The parts that have routes. The last one takes any name below a run."""
