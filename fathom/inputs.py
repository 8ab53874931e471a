"""What a user types, checked where it comes in."""

from __future__ import annotations

from fathom.errors import InvalidInput
from fathom.settings import ROLES, Role, RoleModel

__all__ = ["check_query", "parse_role_models"]

MAX_QUERY_CHARS = 10_000


def check_query(query: str) -> str:
    """Return the query without surrounding space.

    Raises:
        InvalidInput: it is empty or longer than 10,000 characters.
    """
    query = query.strip()
    if not query:
        raise InvalidInput("The query is empty.", next_step='ask a question: fathom research "How does ...?"')
    if len(query) > MAX_QUERY_CHARS:
        raise InvalidInput(
            f"The query has {len(query):,} characters; at most {MAX_QUERY_CHARS:,} are taken.",
            next_step="shorten it, and give long material as --docs",
        )
    return query


def parse_role_models(pairs: list[str]) -> dict[Role, RoleModel]:
    """Parse `ROLE=MODEL` options.

    Raises:
        InvalidInput: a pair has another form or names no role.
    """
    parsed: dict[Role, RoleModel] = {}
    for pair in pairs:
        name, equals, model = pair.partition("=")
        if not equals or not name.strip() or not model.strip():
            raise InvalidInput(
                f"{pair!r} is not ROLE=MODEL.", next_step="for example --role-model compressor=extractive"
            )
        if name.strip() not in ROLES:
            raise InvalidInput(f"There is no role {name.strip()!r}.", next_step="roles: " + ", ".join(ROLES))
        parsed[Role(name.strip())] = RoleModel(model=model.strip())
    return parsed
