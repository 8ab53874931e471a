"""GitHub: repositories, issues and releases, each asked for by the first word of the input.

Ten searches a minute, thirty with a token, which needs no permission.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping

from fathom.tools.factual.github_pages import Issues, Releases, Repositories, Repository
from fathom.tools.lookup import LookupTool, words_of
from fathom.tools.pages import WebPage

_KIND = re.compile(r"\s*(repositories|issues|releases)\s*:\s*", re.IGNORECASE)
_REPOSITORY = re.compile(r"\s*\w[\w.-]*/\w[\w.-]*\s*")
MOST_WORDS = 6  # all of which a result has
LONGEST = 240  # characters of a query, of 256 that GitHub takes


class GitHubTool(LookupTool):
    """Searches GitHub: repositories, issues and pull requests, or the releases of a repository."""

    name = "github"
    service = "GitHub"
    group = "facts"
    description = (
        "Searches GitHub. Input: a few words for repositories; `issues: ` and words for bug reports and discussions "
        "(`repo:owner/name` among them narrows it); `releases: owner/name` for versions and what changed in them."
    )
    address = "https://api.github.com"
    domains = ("software",)
    optional = ("GITHUB_BASE_URL", "GITHUB_TOKEN", "FATHOM_CONTACT")
    setup = "GITHUB_TOKEN allows more requests; it needs no permission"
    seconds_between, keyed_seconds_between = 6.0, 2.0
    at_once = 1

    def headers(self) -> Mapping[str, str]:
        """Send the version of the interface, and the token if there is one."""
        version = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"}
        return {**version, "Authorization": f"Bearer {self.key}"} if self.key else version

    async def find(self, query: str, limit: int) -> list[WebPage]:
        """Return what was found; the repositories for words without a kind."""
        kind = _KIND.match(query)
        words = query[kind.end() :] if kind else query
        if kind and kind[1].lower() == "issues":
            short = textwrap.shorten(words, LONGEST, placeholder="")
            wanted = short if re.search(r"\bis:", short) else f"{short} is:issue"
            issues = await self.ask_json(Issues, "/search/issues", q=wanted, per_page=limit)
            return [issue.page() for issue in issues.items]
        if kind and kind[1].lower() == "releases":
            known = words.strip() if _REPOSITORY.fullmatch(words) else ""
            name = known or next((each.full_name for each in await self._repositories(words, 1)), "")
            path = f"/repos/{name}/releases"
            releases = await self.ask_json(Releases, path, per_page=limit) if name else None
            return [release.page(name) for release in releases.root] if releases else []
        return [each.page() for each in await self._repositories(words, limit)]

    async def _repositories(self, words: str, limit: int) -> list[Repository]:
        telling = " ".join(words_of(words)[:MOST_WORDS]) if ":" not in words else words
        return (await self.ask_json(Repositories, "/search/repositories", q=telling, per_page=limit)).items
