"""The page: where people ask, watch and read. The server makes it; a small script keeps a run's page up to date."""

from fathom.interfaces.page import account, ask, corpora, docs, library, rendering, report_files, runs, shared, watches

__all__ = ["PAGE"]

PAGE = (rendering, account, ask, watches, corpora, library, docs, shared, runs, report_files)
"""The parts that have routes. The last one takes any name below a run."""
