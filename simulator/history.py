"""Checks a run against its provider's own log: `python -m simulator.history LOG RUN_FOLDER`.

LOG has a JSON object a line for each request, in the order of their times, in seconds since the epoch:

    {"event": "start", "n": 7, "at": 1770000000.25, "body": {"messages": [...]}}
    {"event": "end", "n": 7, "at": 1770000003.5, "usage": {"prompt_tokens": 90, "completion_tokens": 12}}

`n` tells requests apart; `body` is what was sent to /chat/completions; an end may have a `status`, if it is not 200.
`python -m tests.stubs --log` writes such a log, and a proxy before any provider can. RUN_FOLDER is the folder of one
ended run. Requests of other runs may be in the log.

An answer counts as stored when the run's `exchanges.jsonl` has it: it says when it came. A request that is sent again
after such an answer breaks the promise. One that is sent again because its first answer was lost with its process does
not; how many there were is told.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

from fathom.llm.base import ExchangeRecord
from fathom.models import RunManifest
from fathom.storage.store import EXCHANGES, MANIFEST

LATE_SECONDS = 1.0
"""An answer is noted in the run at most so long after the provider had sent it."""


@dataclass
class Call:
    """A request, as the provider saw it."""

    question: str
    began: float
    ended: float | None = None
    tokens: int = 0


@dataclass
class History:
    """What a provider's log says of a run."""

    requests: int = 0
    tokens: int = 0
    lost: int = 0  # answers that were sent and asked for again
    problems: list[str] = field(default_factory=list)


def check(log: Iterable[str], folder: Path) -> History:
    """Compare a provider's log with the folder of a run."""
    exchanges = [ExchangeRecord.model_validate_json(line) for line in (folder / EXCHANGES).read_text().splitlines()]
    stored = {
        _question([message.model_dump() for message in one.prompt]): datetime.fromisoformat(one.at).timestamp()
        for one in exchanges
        if one.at
    }
    asked = defaultdict(list)
    for call in calls(log):
        if call.question in stored:
            asked[call.question].append(call)
    found = History()
    for question, same in asked.items():
        found.requests += len(same)
        found.tokens += sum(call.tokens for call in same)
        for call, following in pairwise(same):
            if call.ended is None:
                continue
            if abs(stored[question] - call.ended) <= LATE_SECONDS and following.began > stored[question]:
                after = following.began - call.ended
                found.problems.append(f"sent again {after:.3f} s after its answer, which is stored: {question[-200:]}")
            else:
                found.lost += 1
    manifest = RunManifest.model_validate_json((folder / MANIFEST).read_bytes())
    budget: Any = manifest.settings["budget"]
    for name, count in (("max_calls", found.requests), ("max_tokens", found.tokens)):
        if budget.get(name) is not None and count > budget[name]:
            found.problems.append(f"{name} is {budget[name]:,}, and the provider counts {count:,}")
    return found


def calls(log: Iterable[str]) -> list[Call]:
    """Return the requests of a log to models, in their order."""
    found: dict[int, Call] = {}
    for line in log:
        event = json.loads(line)
        if event["event"] == "start" and "messages" in event["body"]:
            found[event["n"]] = Call(_question(event["body"]["messages"]), event["at"])
        elif event["event"] == "end" and event["n"] in found:
            usage = event.get("usage") or {}
            if event.get("status") in {None, 200}:  # else it was no answer
                found[event["n"]].ended = event["at"]
            found[event["n"]].tokens = usage.get("prompt_tokens", 0) + usage.get("completion_tokens", 0)
    return [*found.values()]


def _question(messages: list[dict[str, Any]]) -> str:
    """Return what tells a request from others: the words of its messages, as the run keeps them too."""
    parts = [message["content"] for message in messages]
    return "\n".join(part if isinstance(part, str) else "".join(one["text"] for one in part) for part in parts)


def main() -> int:
    """Print what the log says, and whether it breaks a promise."""
    parser = argparse.ArgumentParser(
        prog="python -m simulator.history", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("log", type=Path, metavar="LOG")
    parser.add_argument("folder", type=Path, metavar="RUN_FOLDER")
    args = parser.parse_args()
    found = check(args.log.read_text(encoding="utf-8").splitlines(), args.folder)
    print(f"{found.requests} requests, {found.tokens:,} tokens, {found.lost} answers lost with their process")
    for problem in found.problems:
        print(f"  {problem}")
    if not found.requests:
        print("  the log has no request of this run")
    return bool(found.problems) or not found.requests


if __name__ == "__main__":
    sys.exit(main())
