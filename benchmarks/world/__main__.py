"""Questions over a small web that a script makes, without a key: `python -m benchmarks.world`.

    python -m benchmarks.world                                  all 60 questions, without a model
    python -m benchmarks.world --unseen                         48 others, by somebody who had not seen the engine
    python -m benchmarks.world --model openai/gpt-5-mini --limit 16 --max-usd 0.05
    python -m benchmarks.world serve                            only the web and its search service, for other systems
    python -m benchmarks.world questions                        the questions as JSON Lines, with what is expected
    python -m benchmarks.world pages                            the text of all pages as JSON Lines

The results are a folder (benchmarks/results.py), whose scores are printed; docs/measuring.md defines them. Asked again,
only questions without a result are researched. Nothing outside this machine is asked, but for the model.
"""

from __future__ import annotations

import argparse
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.ending import ending
from benchmarks.results import Page, Question, Result, System
from benchmarks.world.freely_worded import freely_worded_questions
from benchmarks.world.held_out import held_out_questions
from benchmarks.world.questions import all_questions, in_turn
from benchmarks.world.unseen import unseen_questions
from fathom.errors import InvalidInput

_SETS = {
    "": all_questions,
    "freely-worded": freely_worded_questions,
    "held-out": held_out_questions,
    "unseen": unseen_questions,
}


def main() -> None:
    """Run what the arguments say."""
    chosen = _arguments()
    questions = _chosen(_SETS[chosen.set_name](), chosen.kind, chosen.limit)
    if chosen.what == "questions":
        for question in questions:
            print(question.model_dump_json(exclude_defaults=True))
    elif chosen.what == "pages":
        from benchmarks.world.web import all_pages

        for page in all_pages():
            print(Page(url=page.url, title=page.title, text=page.markdown).model_dump_json())
    elif chosen.what == "serve":
        _serve()
    else:
        _run(chosen, questions)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.world", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", nargs="?", choices=("run", "serve", "questions", "pages"), default="run")
    parser.add_argument(
        "--model", default="", help="a model for every role; without one, reports are made of quotations"
    )
    other = parser.add_mutually_exclusive_group()
    for name, help in (
        ("freely-worded", "63 questions further away from the words of the pages"),
        ("held-out", "64 questions that were written without sight of the rules, and looked at since"),
        ("unseen", "48 questions by somebody who had not seen the engine"),
    ):
        other.add_argument(f"--{name}", action="store_const", const=name, dest="set_name", default="", help=help)
    parser.add_argument("--limit", type=_positive, metavar="N", help="at most N questions, of all kinds in turn")
    parser.add_argument("--kind", default="", help="kinds of questions, separated by commas")
    parser.add_argument("--out", type=Path, help="folder of the results; by default bench-results/world-MODEL")
    parser.add_argument("--answer", action="store_true", help="ask for answers of at most 140 characters")
    parser.add_argument("--at-once", type=_positive, default=2, metavar="N", help="questions at the same time (2)")
    parser.add_argument("--max-usd", type=float, metavar="USD", help="most that each question may cost")
    parser.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", help="any other setting; repeatable"
    )
    return parser.parse_args()


def _positive(text: str) -> int:
    if not text.isdigit() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 on")
    return int(text)


def _chosen(questions: Sequence[Question], kinds: str, limit: int | None) -> list[Question]:
    """Return questions of some kinds; with a limit, one of each kind, then a second of each, and so on."""
    wanted = set(filter(None, kinds.split(",")))
    if unknown := wanted - {question.kind for question in questions}:
        known = ", ".join({question.kind: 0 for question in questions})
        raise InvalidInput(f"These questions have no kind {min(unknown)!r}.", next_step=f"choose from {known}")
    found = [question for question in questions if not wanted or question.kind in wanted]
    return found if limit is None else in_turn(found)[:limit]


def _serve() -> None:
    from benchmarks.world.searching import serving

    with serving() as address:
        said = f"Search service: {address} (POST /search, GET /custom?query=). Proxy: the same. Ctrl-C ends it."
        print(said, flush=True)
        with suppress(KeyboardInterrupt):
            threading.Event().wait()


def _run(chosen: argparse.Namespace, questions: Sequence[Question]) -> None:
    from benchmarks.scoring.summary import Scored
    from benchmarks.scoring.table import missed, report
    from benchmarks.world.asking import TOOLS, ask_all, check, enter_world, sources
    from benchmarks.world.searching import serving
    from benchmarks.world.web import digest
    from fathom.config.given import read_settings

    settings: dict[str, Any] = {
        "model": chosen.model or None,
        "tools": TOOLS,
        "mode": "answer" if chosen.answer else "report",
        "model_calls": {"seconds": 1_800},
        **({"budget": {"max_usd": chosen.max_usd}} if chosen.max_usd is not None else {}),
        **read_settings(chosen.set),
    }
    system = System(
        name="fathom, short answers" if chosen.answer else "fathom",
        set=f"closed world, {chosen.set_name} questions" if chosen.set_name else "closed world",
        model=chosen.model,
        versions={"fathom": f"{version('fathom-research')}+{sources()}", "world": digest()},
        settings=settings,
    )
    asked = f"-{chosen.set_name}" if chosen.set_name else ""
    name = f"world{asked}-{chosen.model.replace('/', '-') or 'extractive'}{'-answer' if chosen.answer else ''}"
    folder = (chosen.out or Path("bench-results") / name).absolute()
    ended = 0

    def say(question: Question, result: Result) -> None:
        nonlocal ended
        ended += 1
        print(f"{ended:3} {question.id:14} {result.status.value:22} {question.question}", file=sys.stderr, flush=True)

    with serving() as address:
        enter_world(address, folder / "cache")
        try:
            check(settings, str(folder / "artifacts"))
            ask_all(folder, questions, system, settings, address, at_once=chosen.at_once, say=say)
        except KeyboardInterrupt as error:
            error.add_note(f"to continue, run the same command; what has ended is in {folder}")
            raise
    scored = Scored.of(folder).among({question.id for question in questions})
    print(f"{report([scored])}\n\n{missed(scored)}\n\nResults: {folder}")


if __name__ == "__main__":
    with ending():
        main()
