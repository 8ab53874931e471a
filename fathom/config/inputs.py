"""Checks of what a user types."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

from fathom.errors import InvalidInput
from fathom.text.plain import without_controls

MAX_QUERY_CHARS = 10_000
MAX_COURTESY = 100  # characters of a text that may ask for nothing
_WORDS = re.compile(r"\b(\d{2,3}(?:,?\d{3})?)[ -](?:words?|Wörtern?|mots|palabras|parole)\b", re.IGNORECASE)
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_PHRASES = (
    "hi|hello|hey|good (?:morning|afternoon|evening|day|night)|thanks?|thank you|thx|cheers|bye|goodbye|please|"
    "ok(?:ay)?|yes|no|tests?|testing|"
    "hallo|guten? (?:morgen|tag|abend|nacht)|moin|servus|danke|vielen dank|tschüss|bitte|ja|nein|"
    "bonjour|bonsoir|salut|merci|hola|buen[oa]s (?:días|tardes|noches)|gracias|ciao|buongiorno|grazie|olá|obrigad[oa]|"
    "dank je"
)
_TAILS = "there|all|everybody|everyone|fathom|again|very much|so much|a lot|schön|sehr|zusammen|beaucoup|mille"
_NOTHING = re.compile(rf"\W*(?:(?:{_PHRASES})(?:\W+(?:{_TAILS}))?(?:\W+|\Z))+", re.IGNORECASE)


def asks_nothing(text: str) -> bool:
    """Whether a text only greets, thanks, agrees or tests: "Hello!", "thanks a lot", "test"."""
    return len(text) <= MAX_COURTESY and bool(_NOTHING.fullmatch(text))


_HOW = 'ask a question: fathom research "How does ...?"'
LOOK_FOR = "give the words to look for"


def check_query(query: str) -> str:
    """Return the question without control characters and surrounding space.

    Raises:
        InvalidInput: it is no text to search for, as `check_words` says, or only greets or thanks ("hello").
    """
    query = check_words(query)
    if asks_nothing(query):
        raise InvalidInput(f"“{query}” asks for nothing.", next_step=_HOW)
    return query


def check_words(query: str, how: str = _HOW) -> str:
    """Return what to search for, without control characters and surrounding space; `how` to write it otherwise.

    Raises:
        InvalidInput: it is empty, longer than 10,000 characters, or has neither a letter nor a digit ("???").
    """
    query = without_controls(query).strip()
    if not query:
        raise InvalidInput("The query is empty.", next_step=how)
    if not re.search(r"[^\W_]", query):
        raise InvalidInput("The question has no word.", next_step=how)
    if len(query) > MAX_QUERY_CHARS:
        raise InvalidInput(
            f"The query has {len(query):,} characters; the limit is {MAX_QUERY_CHARS:,}.",
            next_step="shorten it, and pass long material with --docs",
        )
    return query


def read_text(path: Path, most: int, how: str = "check the path and its permissions") -> str:
    """Return the text of a file of at most so many bytes, with its own line ends and without a byte order mark.

    Raises:
        InvalidInput: it is larger, is not text in UTF-8, or cannot be read; then `how` is the next step.
    """
    try:
        with path.open("rb") as file:
            data = file.read(most + 1)
        if len(data) > most:
            limit = f"{most // 2**20} MB" if most >= 2**20 else f"{most // 2**10} KB"
            raise InvalidInput(f"{path} is larger than {limit}.", next_step="use a smaller file")
        return data.decode("utf-8-sig")
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror}.", next_step=how) from error
    except UnicodeError:
        raise InvalidInput(f"{path} is not text in UTF-8.", next_step="save it as UTF-8") from None


def words_asked(query: str) -> int | None:
    """Return the length in words that a question asks for ("in about 500 words"); None if it states no length."""
    found = _WORDS.search(query)
    return min(20_000, max(20, int(found[1].replace(",", "")))) if found else None


def parse_since(text: str, now: datetime) -> datetime:
    """Return the time, in UTC, that an age (`30d`, `2w`) or a date stands for.

    Raises:
        InvalidInput: the text is neither, or the time is not in the past.
    """
    try:
        since = datetime.fromisoformat(text.strip())
        since = since if since.tzinfo else since.replace(tzinfo=UTC)
    except ValueError:
        try:
            since = now - period(text, "--since")
        except (InvalidInput, OverflowError):
            raise InvalidInput(
                f"--since {text!r} is neither a length of time nor a date.", next_step="such as 30d, 12h or 2026-11-01"
            ) from None
    if since > now:
        raise InvalidInput(f"--since {text!r} is in the future.", next_step="such as 30d, 12h or 2026-11-01")
    return since


def period(text: str, option: str) -> timedelta:
    """Return the length of time that the text of an option stands for.

    Raises:
        InvalidInput: the text stands for no length of time, or for zero.
    """
    found = re.fullmatch(r"([0-9]{1,5})([mhdw])", text.strip().lower())
    length = timedelta(**{_UNITS[found[2]]: int(found[1])}) if found else timedelta()
    if not length:
        raise InvalidInput(
            f"{option} {text!r} is not a length of time.", next_step=f"give a number with m, h, d or w: {option} 90d"
        )
    return length
