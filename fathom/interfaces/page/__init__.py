"""The page: where people ask, watch and read. The server makes it; a small script keeps a run's page up to date."""

from fathom.interfaces.page import account, ask, corpora, docs, rendering, report_files, runs, watches

__all__ = ["PAGE"]

PAGE = (
    *(rendering.router, account.router, ask.router, watches.router, corpora.router, runs.searching, docs.router),
    *(report_files.public, runs.router, report_files.router),
)
"""Its routes. The last ones take any name below a run."""
