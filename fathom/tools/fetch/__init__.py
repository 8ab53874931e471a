"""Reading one web page, safely: only addresses the run knows, only public hosts, never more than it can bear."""

from fathom.tools.fetch.allow import AllowList
from fathom.tools.fetch.tool import FetchTool
from fathom.tools.fetch.web import WebReader

__all__ = ["AllowList", "FetchTool", "WebReader"]
