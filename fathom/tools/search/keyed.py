"""The shared part of search vendors with a key, so that each vendor's file has only its own protocol."""

from __future__ import annotations

import html
import re
import textwrap
from collections.abc import Mapping
from typing import Annotated, ClassVar, Self, TypeVar

from pydantic import BaseModel, BeforeValidator

from fathom.errors import ToolRejected
from fathom.tools.base import RunContext, SearchVendor
from fathom.tools.http import request

# Marks around the search words; other tags, such as `<td>`, may be the subject of a text.
_MARKS = re.compile(r"</?(?:b|strong|em|i|mark|span)\b[^<>]*>", re.IGNORECASE)
_BREAKS = re.compile(r"</?(?:br|p|div)\b[^<>]*>", re.IGNORECASE)

ShapeT = TypeVar("ShapeT", bound=BaseModel)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def plain(value: object) -> str:
    """Return a text without the marks of HTML around its words; empty if the value is not a text."""
    return html.unescape(_MARKS.sub("", _BREAKS.sub(" ", _text(value))))


Text = Annotated[str, BeforeValidator(_text)]
"""A text; empty if the vendor gives none."""
Plain = Annotated[str, BeforeValidator(plain)]
"""A text of a vendor that writes HTML, without the HTML."""


def shortened(query: str, most: int) -> str:
    """Return a query of at most so many characters, cut at a word."""
    return textwrap.shorten(query, most, placeholder="") or query[:most]


class KeyedVendor(SearchVendor):
    """A vendor with one key, whose answers are JSON; the first optional variable is another address of it."""

    api: ClassVar[str]  # its public address
    header: ClassVar[tuple[str, str]] = ("Authorization", "Bearer ")  # name, and text before the key

    def __init__(self, key: str, address: str) -> None:
        self._key = key.strip()
        self.address = address.rstrip("/")

    @classmethod
    def open(cls, run: RunContext) -> Self:
        """Use the user's key, at the public service unless a variable names another address."""
        return cls(run.variable(cls.variables[0]), run.variable(cls.optional[0]) or cls.api)

    async def ask(
        self,
        shape: type[ShapeT],
        path: str,
        *,
        body: object = None,
        params: Mapping[str, str | int] | None = None,
        headers: Mapping[str, str] | None = None,
        address: str = "",
    ) -> ShapeT:
        """Make one request, by POST if it has a body, and return the answer in its shape.

        Raises:
            ToolError: the request failed; the class says whether trying again can help.
        """
        name, before = self.header
        if not (self._key.isascii() and self._key.isprintable()):
            how = f"copy the value of {self.variables[0]} again"
            raise ToolRejected(f"{self.variables[0]} holds characters that no key has.", next_step=how)
        return await request(
            self.name,
            f"{address or self.address}{path}",
            lambda answer: shape.model_validate(answer.json()),
            body=body,
            params=params,
            headers={"Accept": "application/json", name: f"{before}{self._key}", **(headers or {})},
            remedies=dict.fromkeys((401, 402, 403), f"check {self.variables[0]} and the limits of its plan"),
        )
