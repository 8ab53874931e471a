"""Every failure Fathom names, by who must react.

    FathomError
    ├── UserError                the user mends something; exit code 2, nothing was written
    │   ├── InvalidInput         E4001  a query, option or setting that cannot be used
    │   ├── ServerUnreachable    E4005
    │   ├── MissingCredential    E4003  a model or service without its key
    │   ├── RunNotFound          E5001
    │   └── RunBusy              E5002  another process works on it
    ├── RunCancelled             E5005  in the UI; exit code 130
    ├── RunTerminated            E5006  SIGTERM; exit code 143
    ├── ServerLost               E4006  the Prefect server went away during a run
    ├── ModelError               a model call
    │   ├── BudgetExceeded       E1001  a cap of the budget; research ends, the report is written with what is there
    │   ├── ModelUnavailable     tried again where `retryable`, then the role's next model
    │   │   ├── ModelTimeout     E1003  retryable, once
    │   │   ├── RateLimited      E2001  retryable
    │   │   ├── ProviderFailed   E2004  retryable: 5xx, connection
    │   │   └── CircuitOpen      E2006  the service failed too often and rests
    │   ├── ContextOverflow      E2002  the request must shrink
    │   ├── Refused              E2003  the safety filter; the role answers without the model
    │   ├── ModelRejected        E2005  wrong key, unknown model, no quota: the user mends it
    │   └── AnswerInvalid        E4004  not the schema, truncated or empty after the re-ask; the role's fallback
    ├── ToolError                a tool call; the step goes on without and the coverage table says so
    │   ├── ToolNotFound         E3001
    │   ├── ToolTimeout          E3002  retryable
    │   ├── ToolRateLimited      E3003  retryable
    │   ├── ToolUnavailable      E3004  retryable: 5xx, connection
    │   └── ToolRejected         E3005  the vendor refuses the request: bad key, bad arguments
    ├── RecordMissing            E5003  a replay needs a call that was not recorded
    ├── PlanInvalid              E4002  the planner's answer breaks a rule; asked again, then the default plan
    └── StoreError               E6001  the artifact store cannot be read or written

Codes E1001 to E5002 are those of the engine design's appendix C; E2005, E2006, E3004, E3005, E4003, E4004, E4006,
E5003, E5005, E5006 and E6001 extend it. E1002, the last round, is an ordinary end and no error. `docs/errors.md` is
made from the classes.
"""

from __future__ import annotations

from fathom.errors.base import FathomError
from fathom.errors.model import (
    AnswerInvalid,
    BudgetExceeded,
    CircuitOpen,
    ContextOverflow,
    ModelError,
    ModelRejected,
    ModelTimeout,
    ModelUnavailable,
    ProviderFailed,
    RateLimited,
    Refused,
)
from fathom.errors.run import PlanInvalid, RecordMissing, RunCancelled, RunTerminated, ServerLost, StoreError
from fathom.errors.tool import ToolError, ToolNotFound, ToolRateLimited, ToolRejected, ToolTimeout, ToolUnavailable
from fathom.errors.user import InvalidInput, MissingCredential, RunBusy, RunNotFound, ServerUnreachable, UserError

__all__ = [
    "AnswerInvalid",
    "BudgetExceeded",
    "CircuitOpen",
    "ContextOverflow",
    "FathomError",
    "InvalidInput",
    "MissingCredential",
    "ModelError",
    "ModelRejected",
    "ModelTimeout",
    "ModelUnavailable",
    "PlanInvalid",
    "ProviderFailed",
    "RateLimited",
    "RecordMissing",
    "Refused",
    "RunBusy",
    "RunCancelled",
    "RunNotFound",
    "RunTerminated",
    "ServerLost",
    "ServerUnreachable",
    "StoreError",
    "ToolError",
    "ToolNotFound",
    "ToolRateLimited",
    "ToolRejected",
    "ToolTimeout",
    "ToolUnavailable",
    "UserError",
]
