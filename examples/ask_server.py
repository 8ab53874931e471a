"""Ask a Fathom server: `python examples/ask_server.py "What is a descriptor in Python?"`.

FATHOM_URL and FATHOM_TOKEN name the server and who asks.
"""

from __future__ import annotations

import sys

from fathom.client import EventType, Fathom
from fathom.errors import FathomError


def main(question: str) -> int:
    """Research a question, show what happens, and print the report."""
    try:
        with Fathom() as client:
            stream = client.stream(question, settings={"profile": "quick"})
            for event in stream:
                if event.type is not EventType.now:
                    print(event.message, file=sys.stderr)
            run = stream.run
    except FathomError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    print(run.report or f"There is no report: {run.state} {run.reason}")
    return 0 if run.report else 1


if __name__ == "__main__":
    sys.exit(main(" ".join(sys.argv[1:]) or "What is a descriptor in Python?"))
