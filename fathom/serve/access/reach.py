"""Whether anybody could use a server before it starts."""

from __future__ import annotations

from fathom.errors import InvalidInput
from fathom.serve.access.tokens import Tokens
from fathom.serve.options import Options
from fathom.storage.store import ArtifactStore


async def check_reach(options: Options) -> None:
    """Check that somebody can sign in where that is needed.

    Raises:
        InvalidInput: there is no valid token.
    """
    if options.open or options.user_header:
        return
    tokens = await Tokens(ArtifactStore(options.artifacts)).list()
    if not any(token.state == "valid" for token in tokens):
        why = f"reachable at {options.host}" if not options.sign_in else "started with --sign-in"
        raise InvalidInput(
            f"A server that is {why} needs sign-in, and {options.artifacts} has no valid token.",
            next_step="fathom tokens add NAME --role admin",
        )
