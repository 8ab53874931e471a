"""A report's page as PDF, by weasyprint, which is an extra: it needs libraries that pip cannot install."""

from __future__ import annotations

from contextlib import redirect_stdout
from io import StringIO

from fathom.errors import InvalidInput

_STYLE = "h1 { font-size: 24pt !important }"  # the page's own size follows the window, which weasyprint does not have


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
    except OSError as error:  # weasyprint is installed, a library that it loads is not
        raise InvalidInput(
            f"PDF needs a library of the system that is missing: {str(error).partition('.  ')[0]}.",
            next_step="install Pango 1.44 or newer, e.g. apt install libpango-1.0-0 libpangoft2-1.0-0 "
            "libharfbuzz-subset0, or brew install pango",
        ) from None
    document = HTML(string=html, url_fetcher=URLFetcher(allowed_protocols={"data"}))
    return bytes(document.write_pdf(stylesheets=[CSS(string=_STYLE)]))
