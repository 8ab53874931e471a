"""Who asks, and what a run's owner lets others do."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from fathom.errors import NotAllowed, RunNotFound
from fathom.models import Model


class Role(StrEnum):
    """What somebody may do: read what is shared; also ask, and do everything with runs of their own; or everything."""

    reader = "reader"
    asker = "asker"
    admin = "admin"

    def covers(self, other: Role) -> bool:
        """Whether this role may do what another one may."""
        order = list(Role)
        return order.index(self) >= order.index(other)


@dataclass(frozen=True)
class Limits:
    """What somebody may use. None: no limit."""

    requests_per_minute: int | None = None
    runs_per_day: int | None = None
    daily_usd: float | None = None


@dataclass(frozen=True)
class Caller:
    """Who sent a request. `token`: the id of the token that they sent; empty if they needed none."""

    name: str
    role: Role
    token: str = ""
    limits: Limits = Limits()

    def check(self, role: Role) -> None:
        """Check that the caller may do what a role may.

        Raises:
            NotAllowed: they may not.
        """
        if not self.role.covers(role):
            raise NotAllowed(f"This needs the role {role.value}; {self.name} has {self.role.value}.")


class Ownership(Model):
    """Whose a run is. `owner` is empty where nobody is known, as of a run that a command started.

    `guest`: the one who asks now, if a link to the run let them in; it is not stored.
    """

    owner: str = ""
    shared: bool = False
    guest: str = ""

    def readable_by(self, caller: Caller) -> bool:
        """Whether somebody may read the run."""
        return caller.role is Role.admin or self.shared or caller.name in {self.owner, self.guest} - {""}

    def check_read(self, caller: Caller, run_id: str) -> None:
        """Check that somebody may read a run.

        Raises:
            RunNotFound: they may not, and so may not learn that it exists.
        """
        if not self.readable_by(caller):
            raise RunNotFound(f"There is no run {run_id}.", next_step="GET /api/v1/runs lists the runs")

    def check_write(self, caller: Caller, run_id: str) -> None:
        """Check that somebody may answer and steer a run: its owner, and of a shared run everybody who may ask.

        Raises:
            RunNotFound: they may not even read it.
            NotAllowed: they may only read it.
        """
        self.check_read(caller, run_id)
        caller.check(Role.asker)

    def check_owner(self, caller: Caller, run_id: str) -> None:
        """Check that somebody may cancel or share a run.

        Raises:
            RunNotFound: they may not even read it.
            NotAllowed: it is somebody else's.
        """
        self.check_write(caller, run_id)
        if caller.role is not Role.admin and self.owner != caller.name:
            raise NotAllowed("Only the owner of the run and administrators may do this.")
