"""GitHub: repositories, issues and releases; the first word of the input chooses the kind.

Ten searches a minute, thirty with a token, which needs no permission.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping

from pydantic import AliasPath, Field, RootModel

from fathom.models import Bibliographic, Received
from fathom.tools.lookup import LookupTool, Records, words_of
from fathom.tools.pages import WebPage

_KIND = re.compile(r"\s*(repositories|issues|releases)\s*:\s*", re.IGNORECASE)
_REPOSITORY = re.compile(r"\s*\w[\w.-]*/\w[\w.-]*\s*")
MOST_WORDS = 6  # a result has all of them
LONGEST = 240  # characters of a query; GitHub accepts 256


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
        """Return the results; repositories if the words have no kind."""
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


class Repository(Received):
    """A repository."""

    full_name: str
    html_url: str
    description: str = ""
    language: str = ""
    licence: str = Field("", validation_alias=AliasPath("license", "spdx_id"))
    stars: int = Field(0, validation_alias="stargazers_count")
    forks: int = Field(0, validation_alias="forks_count")
    topics: list[str] = []
    homepage: str = ""
    archived: bool = False
    created_at: str = ""
    pushed_at: str = ""

    def page(self) -> WebPage:
        """Return the page: one line for each known fact."""
        facts = {
            "description": self.description,
            "language": self.language,
            "licence": self.licence,
            "stars": f"{self.stars:,}",
            "forks": f"{self.forks:,}",
            "topics": ", ".join(self.topics),
            "homepage": self.homepage,
            "archived": "yes, it is no longer developed" if self.archived else "",
            "created": self.created_at[:10],
            "last change": self.pushed_at[:10],
        }
        return WebPage(
            url=self.html_url,
            title=self.full_name,
            published=self.pushed_at,
            excerpt="\n\n".join(f"{self.full_name}, {name}: {value}" for name, value in facts.items() if value),
            reference=Bibliographic(authors=[self.full_name.partition("/")[0]], venue="GitHub", licence=self.licence),
        )


class Issue(Received):
    """An issue or a pull request."""

    html_url: str
    title: str
    body: str = ""
    state: str = ""
    author: str = Field("", validation_alias=AliasPath("user", "login"))
    created_at: str = ""
    closed_at: str = ""

    def page(self) -> WebPage:
        """Return the page: the issue without its comments, which `fetch` reads."""
        closed = f", closed {self.closed_at[:10]}" if self.closed_at else ""
        return WebPage(
            url=self.html_url,
            title=self.title,
            published=self.created_at,
            excerpt=f"{self.title} ({self.state}, opened {self.created_at[:10]}{closed})\n\n{self.body}",
            reference=Bibliographic(authors=[self.author], venue="GitHub"),
        )


class Release(Received):
    """A version and what changed in it."""

    html_url: str
    tag_name: str
    name: str = ""
    body: str = ""
    author: str = Field("", validation_alias=AliasPath("author", "login"))
    published_at: str = ""

    def page(self, repository: str) -> WebPage:
        """Return the page: the notes of the version of a repository."""
        return WebPage(
            url=self.html_url,
            title=f"{repository} {self.name or self.tag_name}",
            published=self.published_at,
            whole=f"{repository} {self.tag_name}, released {self.published_at[:10]}\n\n{self.body}",
            reference=Bibliographic(authors=[self.author], venue="GitHub"),
        )


class Repositories(Received):
    """The results of a search for repositories."""

    items: Records[Repository]


class Issues(Received):
    """The results of a search for issues."""

    items: Records[Issue]


Releases = RootModel[Records[Release]]
