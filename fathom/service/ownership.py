"""Who may see and change something: one rule for runs, batches, watches, corpora and sessions."""

from __future__ import annotations

from fathom.errors import FathomError, NotAllowed
from fathom.service.caller import AccessRole, Caller
from fathom.storage.ownership import Ownership


def owned_by(caller: Caller, *, shared: bool = False) -> Ownership:
    """Return the ownership of what somebody asks for now."""
    return Ownership(owner=caller.name, shared=shared, admin=caller.is_admin)


def check_read(own: Ownership, caller: Caller, missing: FathomError) -> None:
    """Check that somebody may see it.

    Raises:
        FathomError: they may not, and so may not learn that it exists: `missing`, as if it did not.
    """
    if not own.readable_by(caller):
        raise missing


def check_owner(own: Ownership, caller: Caller, what: str) -> None:
    """Check that somebody who may see it may also change and end it; `what` is such as `run`.

    Raises:
        NotAllowed: it is somebody else's.
    """
    caller.check(AccessRole.asker)
    if not caller.may_change(own.owner):
        raise NotAllowed(f"Only the owner of the {what} and administrators may do this.")
