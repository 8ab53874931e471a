"""Keys and passwords kept out of everything that is stored, shown, logged or sent to a model.

A provider may echo its key in an error, a page may show it, a model may repeat it. So everything that comes from
outside passes through a `Scrubber` where it enters, and no later code needs to know of secrets.
"""

from __future__ import annotations

import base64
import html
import json
import logging
import re
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar
from urllib.parse import quote, quote_plus

from pydantic import BaseModel

from fathom.errors import FathomError
from fathom.text.plain import common_start

HIDDEN = "***"
BEGINNING = 12  # characters of a secret that are treated like the whole
_CREDENTIALS = re.compile(r"(?<=://)[^\s/?#\"'<>]+@")
# Keys with a recognisable form: OpenAI and others, Tavily, AWS, GitHub, Slack, Google, Hugging Face; and the tokens of
# `fathom serve`, even if cut off.
_KEYS = re.compile(
    r"\b(?:sk-(?=[\w-]*\d)[\w-]{20,}|tvly-[\w-]{16,}|A[KS]IA[0-9A-Z]{16}|gh[opsur]_\w{36,}|github_pat_\w{36,}|xox[abeoprs]-[\w-]{20,}"
    r"|AIza[\w-]{35}|hf_\w{30,}|fathom_[0-9a-f]{12}_[0-9a-f]{4,})"
)

ModelT = TypeVar("ModelT", bound=BaseModel)


def without_credentials(text: str) -> str:
    """Return a text without the user names and passwords of its URLs, and without anything in the form of a key."""
    return _KEYS.sub(HIDDEN, _CREDENTIALS.sub(f"{HIDDEN}@", text))


class Scrubber:
    """Replaces secrets with `***`, including their encodings in URLs, JSON, HTML and the `Authorization` header."""

    def __init__(self, values: Iterable[str]) -> None:
        self.values = frozenset(values)
        spellings = {spelling for value in self.values for spelling in _spellings(value)}
        # A secret may be part of another's spelling.
        self._longest_first = sorted(spellings, key=lambda spelling: (-len(spelling), spelling))
        self._beginnings: dict[str, list[str]] = {}
        for spelling in self._longest_first:
            if len(spelling) > BEGINNING:
                self._beginnings.setdefault(spelling[:BEGINNING], []).append(spelling)

    def text(self, text: str) -> str:
        """Return a text without the secrets, and without secrets that were cut off after their first characters."""
        for spelling in self._longest_first:
            text = text.replace(spelling, HIDDEN)
        for beginning, spellings in self._beginnings.items():
            while (at := text.find(beginning)) >= 0:
                size = max(common_start(text[at:], spelling) for spelling in spellings)
                text = text[:at] + HIDDEN + text[at + size :]
        return text

    def message(self, text: str) -> str:
        """Return a message without the secrets, the credentials of URLs, and anything that has the form of a key."""
        return without_credentials(self.text(text))

    def names_in(self, data: Any, name: str = "") -> Iterator[str]:
        """Yield the places in JSON-like data at which a text holds a secret, such as `settings.docs.0`."""
        if isinstance(data, str) and self.message(data) != data:
            yield name
        elif isinstance(data, dict | list | tuple):
            for key, value in data.items() if isinstance(data, dict) else enumerate(data):
                yield from self.names_in(value, f"{name}.{key}" if name else str(key))

    def model(self, model: ModelT) -> ModelT:
        """Return a model without secrets in any of its texts."""
        if not self._longest_first:
            return model
        data = model.model_dump()
        clean = each_text(data, self.text)
        return model if clean == data else type(model).model_validate(clean)

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Remove the secrets from the failures that leave the block."""
        try:
            yield
        except FathomError as error:
            error.message, error.next_step = self.message(error.message), self.message(error.next_step)
            error.args = (error.message,)
            raise


def _spellings(value: str) -> set[str]:
    encoded = base64.b64encode(value.encode("utf-8", "surrogateescape")).decode().rstrip("=")
    in_json = {json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]}
    in_urls = {quote(value, safe="", errors="replace"), quote_plus(value, errors="replace")}
    return {value, html.escape(value), encoded, *in_json, *in_urls}


def each_text(data: Any, change: Callable[[str], str]) -> Any:
    """Return JSON-like data with every text in it changed, except the names of fields."""
    if isinstance(data, str):
        return change(data)
    if isinstance(data, dict):
        return {name: each_text(value, change) for name, value in data.items()}
    return [each_text(item, change) for item in data] if isinstance(data, list | tuple) else data


class _GuardedRecords:
    """A factory of log records without secrets, for all libraries and handlers of the process."""

    def __init__(self, make: Callable[..., logging.LogRecord], scrubber: Scrubber) -> None:
        self.make, self.scrubber = make, scrubber

    def __call__(self, *args: Any, **kwargs: Any) -> logging.LogRecord:
        record = self.make(*args, **kwargs)
        try:
            said = record.getMessage()
        except (TypeError, ValueError, KeyError):  # arguments that do not fit: the handler reports it
            return record
        if (clean := self.scrubber.message(said)) != said:
            record.msg, record.args = clean, None
        if record.exc_info and record.exc_info[1]:
            trace = "".join(traceback.format_exception(record.exc_info[1])).rstrip("\n")
            if (clean := self.scrubber.message(trace)) != trace:
                record.exc_text, record.exc_info = clean, None
        return record


def guard_logs(scrubber: Scrubber) -> None:
    """Keep secrets out of all later log records of this process."""
    make = logging.getLogRecordFactory()
    guard: object = make
    if isinstance(guard, _GuardedRecords):
        guard.scrubber = Scrubber(guard.scrubber.values | scrubber.values)
    else:
        logging.setLogRecordFactory(_GuardedRecords(make, scrubber))
