"""Scripted providers: an OpenAI-compatible model, searches that speak Tavily and SearXNG, and pages, over real HTTP.

    with serving(Settings(page_bytes=2_000)) as stubs:      # in a thread, for sync and async tests alike
        ...                                                 # point the client at stubs.llm_url and stubs.url
        assert len(stubs.calls("llm")) == 12

    python -m tests.stubs --port-file PORT --log LOG.jsonl --llm-delay 0.5     # a process of its own

Every answer follows from the request and the settings alone, so a repeated run sees the same bytes.
"""

from tests.stubs.pages import FACT, LAST_FACT, SENTINEL, long_table
from tests.stubs.server import Record, Stubs, serving
from tests.stubs.settings import Settings

__all__ = ["FACT", "LAST_FACT", "SENTINEL", "Record", "Settings", "Stubs", "long_table", "serving"]
