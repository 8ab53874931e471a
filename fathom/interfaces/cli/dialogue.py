"""A dialogue in the terminal about what a run asks. It may be interrupted at any moment, because somebody else answered
first.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import sys
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager
from getpass import getuser
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from fathom.config.environment import Environment
from fathom.errors import InvalidInput
from fathom.interfaces.cli.printing import one_line, printable

if TYPE_CHECKING:
    from rich.console import Console

    from fathom.models import Asked, Plan, Reply

_LINE_BYTES = 65_536


class Dialogue:
    """A dialogue in the terminal; `screen` lends its console for as long as the dialogue needs it."""

    def __init__(self, screen: Callable[[], AbstractContextManager[Console]]) -> None:
        self._screen = screen

    async def __call__(self, asked: Asked, complaint: str = "") -> Reply | None:
        """Return the person's reply; None when the input has ended."""
        with self._screen() as console:
            if complaint:
                console.print(Text(one_line(complaint), style="yellow"))
            try:
                return await self._about(asked, console)
            except asyncio.CancelledError:
                console.print("\nNo longer asked.", style="dim")
                raise
            except EOFError:
                console.print()
                return None

    async def _about(self, asked: Asked, console: Console) -> Reply:
        from fathom.models import Matter, Reply

        if asked.matter is Matter.question:
            console.print("Your question is ambiguous. Press Enter to accept the answer in brackets.", style="bold")
            answers = []
            for question in asked.questions:
                console.print(Text(one_line(question.question)))
                answers.append(await _line(console, f"[{one_line(question.default)}] ") or question.default)
            return Reply(answers=answers, by=person())
        if asked.plan:
            return await self._about_plan(asked, asked.plan, console)
        from rich.markdown import Markdown

        console.print(Markdown(printable(asked.report)))
        how = "Enter: publish it. s: stop." + (" Or type what to change." if asked.rewords else "")
        return _decision(await _line(console, how + "\n> "))

    async def _about_plan(self, asked: Asked, plan: Plan, console: Console) -> Reply:
        changed = plan
        while True:
            console.print(_table(changed))
            for told in changed.told:
                console.print(Text(one_line(told)))
            says = "Or type what to change" + ("." if asked.rewords else "; without a model, it becomes a step.")
            said = await _line(console, f"Enter: accept this plan. e: edit it. s: stop. {says}\n> ")
            if said.lower() not in ("e", "edit"):
                edited = changed if changed != plan else None
                return _decision(said).model_copy(update={"plan": edited})
            changed = await _edited(changed, console)


def person() -> str:
    """Return the name of the user, as an answer records it."""
    try:
        return getuser()
    except (OSError, KeyError):  # a container without names
        return "somebody in a terminal"


def _decision(said: str) -> Reply:
    from fathom.models import Reply

    stop = said.lower() in ("s", "stop")
    accepted = said.lower() in ("", "y", "yes", "ok", "a", "accept")
    return Reply(stop=stop, remark="" if stop or accepted else said, by=person())


async def _line(console: Console, prompt: str) -> str:
    """Return a line that the person types; the event loop keeps running meanwhile.

    Raises:
        EOFError: the input has ended.
    """
    console.print(Text(printable(prompt), style="bold"), end="")
    loop, descriptor = asyncio.get_running_loop(), sys.stdin.fileno()
    ready = asyncio.Event()
    loop.add_reader(descriptor, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(descriptor)
    typed = os.read(descriptor, _LINE_BYTES)  # a terminal gives one line at a time
    if not typed:
        raise EOFError
    return typed.decode(errors="replace").strip()


async def _edited(plan: Plan, console: Console) -> Plan:
    """Let the person edit a plan until it can be used; unchanged text leaves the plan as it is."""
    from fathom.run.checklist import as_yaml, from_yaml

    with tempfile.TemporaryDirectory(prefix="fathom-") as folder:
        file = Path(folder) / "plan.yaml"
        text = before = as_yaml(plan)
        file.write_text(text, encoding="utf-8")
        while await _edit(file, console):
            text = file.read_text(encoding="utf-8", errors="replace")
            if text == before:
                break
            try:
                return from_yaml(text, plan)
            except InvalidInput as error:
                console.print(Text(printable(error.message), style="yellow"))
            if await _line(console, "Enter: edit it again. d: discard the changes.\n> "):
                break
    return plan


async def _edit(file: Path, console: Console) -> bool:
    """Open a file in the user's editor; return whether it could be started, and ended well."""
    command = [*shlex.split(Environment.read().editor), str(file)]
    try:
        editor = await asyncio.create_subprocess_exec(*command, stdout=sys.stderr.fileno())
    except (OSError, ValueError) as error:
        console.print(
            Text(f"{command[0]} cannot be started: {error}. Set the variable EDITOR to your editor.", style="yellow")
        )
        return False
    ended = asyncio.ensure_future(editor.wait())
    try:
        return await asyncio.shield(ended) == 0
    except asyncio.CancelledError:
        await ended  # the terminal is the editor's until then
        raise


def _table(plan: Plan) -> Table:
    table = Table(title=printable(plan.plan_title), title_justify="left", box=None, header_style="bold", pad_edge=False)
    for heading in ("step", "what", "queries"):
        table.add_column(heading)
    for step in plan.steps:
        after = f" (after {', '.join(map(str, step.depends_on))})" if step.depends_on else ""
        what = Text.assemble((one_line(step.title), "bold"), f"\n{one_line(step.description)}{after}")
        table.add_row(Text(str(step.step_id)), what, Text("\n".join(map(one_line, step.queries))))
    return table
