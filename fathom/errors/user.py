"""What only the user can mend."""

from __future__ import annotations

from fathom.errors.base import FathomError


class UserError(FathomError):
    """Something only the user can mend; nothing has been written."""

    code = "E4000"
    reaction = "the command ends with exit code 2 before anything is written"
    exit_code = 2


class ServerUnreachable(UserError):
    """The Prefect server does not answer, or none could be started."""

    code = "E4005"
    remedy = "do what the message says; without `PREFECT_API_URL` a local server is started"


class InvalidInput(UserError):
    """A query, option or setting that cannot be used."""

    code = "E4001"
    remedy = "mend what the message names"


class MissingCredential(UserError):
    """A model or service was chosen whose key is not set."""

    code = "E4003"
    remedy = "set the variable that the message names; `fathom doctor` shows what is set"


class RunNotFound(UserError):
    """No run of that id is known."""

    code = "E5001"
    remedy = "`fathom runs` lists the runs"


class RunBusy(UserError):
    """Another process works on the run, or on one with the same run key."""

    code = "E5002"
    remedy = "wait for it, cancel it, or end the process that the message names; then `fathom resume RUN`"
