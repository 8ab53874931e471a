"""The text engine over standard input and output, so that any harness can drive it: `python -m benchmarks.engine`.

One JSON request a line, one JSON answer a line. The field `op` names the operation: `compress`, `search` or `support`.
"""

from __future__ import annotations

import importlib
import json
import sys
from typing import Any

OPERATIONS = ("compress", "search", "support")
"""Each is answered by the function of its name in the module of its name in this package."""


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Return the answer to one request."""
    operation = request["op"]
    if operation not in OPERATIONS:
        raise ValueError(f"op must be one of {', '.join(OPERATIONS)}, not {operation!r}")
    module = importlib.import_module(f"benchmarks.{operation}")
    result: dict[str, Any] = getattr(module, operation)(request)
    return result


def main() -> None:
    """Answer requests until the input ends."""
    for line in sys.stdin:
        try:
            answered = answer(json.loads(line))
        except (KeyError, TypeError, ValueError) as error:  # a request that is none; the next one may be
            answered = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answered, ensure_ascii=False), flush=True)


if __name__ == "__main__":
    main()
