"""The parts of every role: a typed request, a typed answer, a prompt, and the rules that the answer must keep.

A role with working memory is shown notes whole, or a step's brief in their place.

A backend answers a request: `litellm` renders the prompt and calls a model, `extractive` computes the answer from the
request. Neither knows the other, and the pipeline knows neither.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from operator import not_
from typing import Any, Generic, NamedTuple, TypeVar

from pydantic import Field

from fathom.config.groups import Role
from fathom.models import Brief, Draft, Model, Note, Source, noted, untold
from fathom.text.citations import cited_ids


class Request(Model):
    """A request to a role. Its fields are the variables of the role's prompt."""


class Guided(Request):
    """A request to a role that a template can guide, with the tag of the report's language; empty: English."""

    language: str = Field("", exclude_if=not_)  # for the backend without a model: its fixed words
    guidance: list[str] = Field([], exclude_if=not_)  # of the template, as is the next field
    terminology: list[str] = Field([], exclude_if=not_)


class Answer(Model):
    """What a role answers. A model fills it by its JSON schema, so every field is documented."""

    @classmethod
    def new_schema(cls) -> dict[str, Any]:
        """Return the JSON schema of the answer, which the caller may change; it is generated once."""
        schema: dict[str, Any] = json.loads(_schema_text(cls))
        return schema


@cache
def _schema_text(kind: type[Answer]) -> str:
    # Each call of a model needs it twice, and generating one takes over a hundred times as long as reading it.
    return json.dumps(kind.model_json_schema())


def bounds(characters: int | None = None, items: int | None = None) -> dict[str, Any]:
    """Return a field's bounds for the schema of servers that enforce them while decoding (`json_schema_extra`).

    They end a string or list in which a small model would repeat itself. A longer answer of another model is fine.
    """
    named = {"maxLength": characters, "maxItems": items}
    return {name: most for name, most in named.items() if most is not None}


class Remembering(Guided):
    """The useful notes, and the briefs that replace some of them.

    A role is shown the briefs and the notes that no brief replaces. `notes` has the replaced notes too, for the backend
    without a model, and for a role that wants to read them.
    """

    notes: list[Note]
    briefs: list[Brief] = Field([], exclude_if=not_)
    whole: list[str] = Field([], exclude_if=not_)  # files of notes that are shown although a brief replaces them
    sources: list[Source] = Field([], exclude_if=not_)  # of the notes: a note names them by their ids alone

    @property
    def shown(self) -> list[Note]:
        """The notes that are shown whole."""
        own = untold(self.notes, self.briefs)
        return [note for note in self.notes if note in own or note.artifact_file in self.whole]

    @property
    def known(self) -> set[str]:
        """The ids of the sources that may be cited."""
        return noted(self.notes) | {source_id for brief in self.briefs for source_id in cited_ids(brief.text)}

    def overview_schema(self, answer: type[OverviewAnswer]) -> dict[str, Any]:
        """Return the schema of an answer, in which whole notes may be wanted once, where briefs stand for them."""
        schema = answer.new_schema()
        if self.whole or not self.briefs:
            del schema["properties"]["read_whole"]
        return schema


class OverviewAnswer(Answer):
    """An answer about the research as a whole, by a role that may want some of its notes first."""

    read_whole: list[str] = Field(
        [],
        description="Names of the notes' files that you must read whole before you can answer; usually none. If there "
        "are any, you get them, and are asked again.",
    )


class Text(Answer):
    """Prose, in Markdown."""

    text: str


class Complaint(NamedTuple):
    """A rule that an answer breaks. An answer with a fatal one cannot be used, not even after the one re-ask."""

    text: str
    fatal: bool = True


RequestT = TypeVar("RequestT", bound=Request)
AnswerT = TypeVar("AnswerT", bound=Answer)


WITHOUT_MODEL = "answered without the model after"
"""What a run's fallbacks say of a role for which the extractive backend answered, behind its name."""


@dataclass(frozen=True)
class RoleSpec(Generic[RequestT, AnswerT]):
    """A role's contract."""

    name: str  # also the name of the prompt file
    role: Role  # the role whose model answers
    request: type[RequestT]
    answer: type[AnswerT]  # `Text` is sent and received as it is, without JSON
    # Corrects what needs no model: shortens what is too long, drops ids that were never given.
    normalize: Callable[[RequestT, AnswerT], AnswerT] = lambda _request, answer: answer
    # Returns the rules that the normalized answer breaks.
    check: Callable[[RequestT, AnswerT], list[Complaint]] = lambda _request, _answer: []
    addresses: bool = False  # may be in an answer only if no reader sees it, as in the input of a tool
    schema: Callable[[RequestT], dict[str, Any]] | None = None  # narrower than the type if the request knows more
    draft: Callable[[RequestT, str], Draft] | None = None  # whether readers see a `Text` while it is written
