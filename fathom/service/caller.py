"""Who asks, what they may do and use, and what they may see and change: one rule for runs, batches and all else."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from fathom.errors import FathomError, NotAllowed
from fathom.storage.ownership import Ownership


class AccessRole(StrEnum):
    """What somebody may do: read what is shared; also ask, and do everything with runs of their own; or everything."""

    reader = "reader"
    asker = "asker"
    admin = "admin"

    def covers(self, other: AccessRole) -> bool:
        """Whether this role may do what another one may."""
        order = list(AccessRole)
        return order.index(self) >= order.index(other)


@dataclass(frozen=True)
class TokenLimits:
    """What somebody may use. None: no limit."""

    requests_per_minute: int | None = None
    runs_per_day: int | None = None
    daily_usd: float | None = None


@dataclass(frozen=True)
class Caller:
    """Who sent a request. `token`: the id of the token that they sent; empty if they needed none."""

    name: str
    role: AccessRole
    token: str = ""
    limits: TokenLimits = TokenLimits()

    @property
    def is_admin(self) -> bool:
        """Whether the caller may do everything."""
        return self.role is AccessRole.admin

    @property
    def may_ask(self) -> bool:
        """Whether the caller may ask."""
        return self.role.covers(AccessRole.asker)

    def check(self, role: AccessRole) -> None:
        """Check that the caller may do what a role may.

        Raises:
            NotAllowed: they may not.
        """
        if not self.role.covers(role):
            raise NotAllowed(f"This needs the role {role.value}; {self.name} has {self.role.value}.")

    def may_change(self, owner: str) -> bool:
        """Whether the caller may do everything with what somebody owns: they do, and may ask, or they administer."""
        return self.is_admin or (self.may_ask and self.name == owner)


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
