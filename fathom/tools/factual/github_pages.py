"""What GitHub answers about repositories, issues and releases, and what it says as a page."""

from __future__ import annotations

from pydantic import AliasPath, BaseModel, Field, RootModel

from fathom.models import Bibliographic
from fathom.tools.lookup import Records
from fathom.tools.pages import WebPage


class Repository(BaseModel):
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
        """Return the page: what is known of it, a line for each fact."""
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


class Issue(BaseModel):
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


class Release(BaseModel):
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


class Repositories(BaseModel):
    """What a search for repositories finds."""

    items: Records[Repository]


class Issues(BaseModel):
    """What a search for issues finds."""

    items: Records[Issue]


Releases = RootModel[Records[Release]]
