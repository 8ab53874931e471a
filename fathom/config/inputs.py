"""Checks of what a user types."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from pydantic import ValidationError

from fathom.config.caps import Price
from fathom.config.models import ROLES, Role, RoleModel
from fathom.config.periods import period
from fathom.errors import InvalidInput
from fathom.text.cleaning import without_controls

MAX_QUERY_CHARS = 10_000
_WORDS = re.compile(r"\b(\d{2,3}(?:,?\d{3})?)[ -](?:words?|Wörtern?|mots|palabras|parole)\b", re.IGNORECASE)


def check_query(query: str) -> str:
    """Return the query without control characters and surrounding space.

    Raises:
        InvalidInput: it is empty or longer than 10,000 characters.
    """
    query = without_controls(query).strip()
    if not query:
        raise InvalidInput("The query is empty.", next_step='ask a question: fathom research "How does ...?"')
    if len(query) > MAX_QUERY_CHARS:
        raise InvalidInput(
            f"The query has {len(query):,} characters; the limit is {MAX_QUERY_CHARS:,}.",
            next_step="shorten it, and pass long material with --docs",
        )
    return query


def words_asked(query: str) -> int | None:
    """Return the length in words that a question asks for ("in about 500 words"); None when it asks for none."""
    found = _WORDS.search(query)
    return min(20_000, max(20, int(found[1].replace(",", "")))) if found else None


def parse_since(text: str, now: datetime) -> datetime:
    """Return the time that a length of time ago (`30d`, `2w`) or a date means, in UTC.

    Raises:
        InvalidInput: it is none of these, or not in the past.
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


def names_in(text: str | None) -> list[str] | None:
    """Return the names in a text, which commas divide; None if there are none."""
    return [name.strip() for name in (text or "").split(",") if name.strip()] or None


def parse_role_models(pairs: list[str]) -> dict[Role, RoleModel]:
    """Parse `ROLE=MODEL` options.

    Raises:
        InvalidInput: a pair has another form or names an unknown role.
    """
    parsed: dict[Role, RoleModel] = {}
    for pair in pairs:
        name, equals, model = pair.partition("=")
        if not equals or not name.strip() or not model.strip():
            raise InvalidInput(
                f"{pair!r} is not ROLE=MODEL.", next_step="for example --role-model compressor=extractive"
            )
        if name.strip() not in ROLES:
            raise InvalidInput(
                f"The role {name.strip()!r} does not exist.", next_step="the roles are " + ", ".join(ROLES)
            )
        parsed[Role(name.strip())] = RoleModel(model=model.strip())
    return parsed


def parse_prices(pairs: list[str]) -> dict[str, Price]:
    """Parse `MODEL=INPUT,OUTPUT` and `MODEL=INPUT,OUTPUT,CACHED` options, in US dollars per million tokens.

    Raises:
        InvalidInput: a pair has another form or an amount is not a price.
    """
    parsed: dict[str, Price] = {}
    for pair in pairs:
        model, _, amounts = pair.rpartition("=")
        try:
            price = Price.model_validate(dict(zip(Price.model_fields, amounts.split(","), strict=False)))
        except ValidationError:
            price = None
        if price is None or amounts.count(",") >= len(Price.model_fields) or not model.strip():
            raise InvalidInput(
                f"--price {pair!r} is not MODEL=INPUT,OUTPUT or MODEL=INPUT,OUTPUT,CACHED.",
                next_step="give dollars per million tokens, for example --price openai/my-model=0.25,2",
            )
        parsed[model.strip()] = price
    return parsed


def parse_search_prices(pairs: list[str]) -> dict[str, float]:
    """Parse `VENDOR=USD` options, in US dollars of a search.

    Raises:
        InvalidInput: a pair has another form or its amount is not a price.
    """
    parsed: dict[str, float] = {}
    for pair in pairs:
        vendor, _, amount = pair.rpartition("=")
        try:
            usd = float(amount)
        except ValueError:
            usd = -1.0
        if not vendor.strip() or not 0 <= usd < float("inf"):
            raise InvalidInput(
                f"--search-price {pair!r} is not VENDOR=USD.", next_step="for example --search-price brave=0.003"
            )
        parsed[vendor.strip().lower()] = usd
    return parsed
