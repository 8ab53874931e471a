"""A report's page as PDF, by weasyprint, which is an extra: it needs libraries that pip cannot install."""

from __future__ import annotations

import re
from contextlib import redirect_stdout
from io import StringIO

from fathom.errors import InvalidInput

# What weasyprint does not take from the page: sizes that follow a window, and its style inside of drawings.
_STYLE = "h1 { font-size: 24pt !important }"
_DRAWINGS = (
    "text { font: 13px Arial, sans-serif; fill: #1c1c1c } .background { fill: none } "
    " .guide.line, .axis .line { stroke: none } .color-0 { fill: #2f6690 } .color-1 { fill: #a9c4d8 }"
)


def render_pdf(html: str) -> bytes:
    """Return a self-contained page as PDF; no script of it runs, and nothing is fetched.

    Raises:
        InvalidInput: weasyprint, or a library of the system that it needs, is not installed.
    """
    try:
        with redirect_stdout(StringIO()):  # it prints a page of advice where a library is missing
            from weasyprint import CSS, HTML
            from weasyprint.urls import URLFetcher
    except ImportError:
        raise InvalidInput(
            "PDF needs weasyprint, which is not installed.",
            next_step="install it where fathom runs: pip install weasyprint",
        ) from None
    except OSError as error:  # weasyprint is there, and what it loads is not
        raise InvalidInput(
            f"PDF needs a library of the system that is missing: {str(error).partition('.  ')[0]}.",
            next_step="install Pango 1.44 or newer, e.g. apt install libpango-1.0-0 libpangoft2-1.0-0 "
            "libharfbuzz-subset0, or brew install pango",
        ) from None
    page = re.sub(r"<svg\b[^>]*>", lambda opened: f"{opened[0]}<style>{_DRAWINGS}</style>", html)
    document = HTML(string=page, url_fetcher=URLFetcher(allowed_protocols={"data"}))
    return bytes(document.write_pdf(stylesheets=[CSS(string=_STYLE)]))
