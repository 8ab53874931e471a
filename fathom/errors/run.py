"""What happens to a run as a whole: its plan, its store, its process."""

from __future__ import annotations

from fathom.errors.base import FathomError


class RunCancelled(FathomError):
    """The run was cancelled, in the UI or with `prefect flow-run cancel`."""

    code = "E5005"
    reaction = "no further request is made; what was gathered is kept, and the command ends with exit code 130"
    remedy = "`fathom resume RUN` goes on where it stopped"
    exit_code = 130


class RunTerminated(FathomError):
    """The process of the run was told to end (SIGTERM)."""

    code = "E5006"
    reaction = "no further request is made; what was gathered is kept, and the command ends with exit code 143"
    remedy = "`fathom resume RUN` goes on where it stopped"
    exit_code = 143


class ServerLost(FathomError):
    """The Prefect server went away while a run was under way, and did not come back."""

    code = "E4006"
    reaction = "the run stops after 15 seconds, because nobody could cancel it any more; it can be resumed"
    remedy = "start the server again, then `fathom resume RUN`"


class PlanInvalid(FathomError):
    """The plan breaks a rule: no steps, duplicate ids, a cycle, a one-word query."""

    code = "E4002"
    reaction = "the planner is asked again once; then the default plan is taken: degraded"


class RecordMissing(FathomError):
    """A replay came to a call that the run did not record."""

    code = "E5003"
    reaction = "the replay ends and names the call"
    remedy = "replay with the version, prompts and settings of the run: `run.json` names them"


class StoreError(FathomError):
    """The artifact store cannot be read or written."""

    code = "E6001"
    remedy = "check the root's free space, permissions and credentials, then `fathom resume RUN`"
