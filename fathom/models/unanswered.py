"""What a run says that found no answer: where it searched, what comes closest, and what to try."""

from __future__ import annotations

from fathom.models.base import Model


class AbsentWord(Model):
    """A word of the question that no source has, with words of the sources that are spelt nearly alike."""

    word: str
    nearby: list[str] = []


class Holdings(Model):
    """What a search tool can find. `documents`, `language` and `absent` are unknown of the web."""

    tool: str
    where: list[str]  # folders and files, or a name such as "the web"
    documents: int | None = None
    language: str = ""  # its tag, such as `en`
    absent: list[AbsentWord] = []  # of the words it was asked about


class Catalogue(Model):
    """The holdings of all search tools of a run."""

    holdings: list[Holdings]


class Searched(Model):
    """Where a tool searched, and with what success."""

    tool: str
    where: list[str]
    documents: int | None
    calls: int
    failed: int
    sources: int  # different ones that its calls returned


class NearPassage(Model):
    """A passage that comes close to the question, cut to some lines."""

    text: str
    title: str
    url: str


class Unanswered(Model):
    """Why a question has no answer, as far as that can be told. The languages are empty unless they differ."""

    searched: list[Searched]
    closest: list[NearPassage]
    absent: list[AbsentWord]
    asked_in: str = ""  # a language tag
    written_in: str = ""
    next_steps: list[str]
