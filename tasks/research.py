"""One step of the plan: decide, call tools, compress what they return, and decide again."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Literal

from prefect.logging import get_run_logger

from fathom.context import message_tokens, within_budget
from fathom.engine import Engine
from fathom.errors import ToolError
from fathom.models import Call, Note, PlanStep, SourceText, StepOutcome, ToolCall, ToolFailure, ToolResult, Usage
from fathom.names import artifact_name
from fathom.progress import Event, publish
from fathom.roles import COMPRESSOR, RESEARCHER, CompressRequest, ResearchRequest
from fathom.settings import EXTRACTIVE
from fathom.text import Narrowed, count_tokens, narrow
from tasks.asking import ask
from tasks.durable import durable_task
from tasks.results import Compressed, Decided

__all__ = ["research_step"]


@durable_task(name="step", run_name="step {step.step_id}: {step.title}")
async def research_step(plan_title: str, step: PlanStep, notes: list[Note], _engine: Engine) -> StepOutcome:
    """Research one step, given the useful notes so far, and return what it brought."""
    publish(Event("step", f"{step.step_id}: {step.title}"))
    calls: list[Call] = []
    found: list[Note] = []
    usage = Usage()
    for _turn in range(_engine.settings.turns):
        tried = [call.result.call for call in calls]
        decided = await decide_calls(step, [*notes, *found], tried, _engine=_engine)
        usage += decided.usage
        if not decided.calls:
            break
        results = await _run_calls(plan_title, step, decided.calls, tried, _engine)
        read = {text.key for call in calls for text in call.result.sources}
        for result, compressed in zip(
            results, await _compress_all(plan_title, step, results, read, _engine), strict=True
        ):
            usage += compressed.usage
            useful = compressed.note is not None
            calls.append(Call(result=result, useful=useful, narrowed_tokens=compressed.narrowed_tokens))
            if compressed.note:
                found.append(compressed.note)
    get_run_logger().info("%d calls, %d useful notes", len(calls), len(found))
    return StepOutcome(step_id=step.step_id, notes=found, calls=calls, usage=usage)


async def _run_calls(
    plan_title: str, step: PlanStep, chosen: Sequence[ToolCall], tried: Sequence[ToolCall], engine: Engine
) -> list[ToolResult]:
    """Make the calls of one decision side by side, then the one that their results make necessary.

    Calls are numbered before anything runs, so the artifacts' names do not depend on who finishes first.
    """
    numbers = Counter(call.tool for call in tried)

    async def make(call: ToolCall) -> ToolResult:
        numbers[call.tool] += 1
        result: ToolResult = await call_tool(plan_title, step, call, numbers[call.tool], _engine=engine)
        return result

    results = list(await asyncio.gather(*map(make, chosen)))
    if follow_up := engine.tools.follow_up(results):
        results.append(await make(follow_up))
    return results


async def _compress_all(
    plan_title: str, step: PlanStep, results: Sequence[ToolResult], read: set[str], engine: Engine
) -> list[Compressed]:
    """Compress each result; a text that an earlier one of the step already brought is read once only."""
    fresh: list[list[str]] = []
    full = {source.source_id for result in results for source in result.sources if source.full}
    for result in results:
        keys = [s.key for s in result.sources if s.key not in read and (s.full or s.source_id not in full)]
        read = read.union(keys)
        fresh.append(keys)
    waiting = [
        compress(plan_title, step, result, keys, _engine=engine) for result, keys in zip(results, fresh, strict=True)
    ]
    return list(await asyncio.gather(*waiting))


@durable_task(name="decide", run_name="decide the next calls")
async def decide_calls(step: PlanStep, notes: list[Note], tried: list[ToolCall], _engine: Engine) -> Decided:
    """Ask the researcher which calls come next; no calls means that the step is done."""
    focus = f"{step.title} {step.description}"
    request = ResearchRequest(
        query=_engine.start.query,
        today=_engine.start.today,
        step=step,
        breadth=_engine.settings.breadth,
        tools=_engine.tools.offered,
        notes=within_budget(notes, focus, _engine.settings.max_context_tokens),
        tried=tried,
    )
    answer, usage = await ask(RESEARCHER, request, _engine)
    return Decided(calls=[ToolCall(tool=call.tool, input=call.input) for call in answer.calls], usage=usage)


@durable_task(name="tool", run_name="{call.tool}: {call.input}")
async def call_tool(plan_title: str, step: PlanStep, call: ToolCall, number: int, _engine: Engine) -> ToolResult:
    """Make one tool call, the step's `number`-th of its tool, and store its whole raw output before anything reads it.

    A call that fails for good is a result without sources: the coverage table shows why, and nothing is stored.
    """
    try:
        output = await _engine.tools.run(call)
    except ToolError as error:
        get_run_logger().warning("%s failed: %s", call.tool, error)
        publish(Event("warning", f"{call.tool} failed: {error.message}"))
        return ToolResult(call=call, failures=[ToolFailure(code=error.code, message=error.message)])
    extension: Literal["json", "txt"] = "json" if output.structured else "txt"
    name = artifact_name(plan_title, step.step_id, step.title, call.tool, number, extension)
    sha256, size = await _engine.run_folder.save_raw(name, output)
    sources = [text.source() for text in output.results]
    publish(Event("tool", f"{call.tool}: {call.input} ({len(sources)} sources)"))
    return ToolResult(
        call=call,
        artifact_file=name,
        sha256=sha256,
        raw_bytes=size,
        raw_tokens=sum(count_tokens(text.text) for text in output.results),
        sources=sources,
        failures=output.failures,
    )


@durable_task(name="compress", run_name="compress {result.call.tool}: {result.call.input}")
async def compress(
    plan_title: str, step: PlanStep, result: ToolResult, fresh: list[str], _engine: Engine
) -> Compressed:
    """Turn the stored raw output of a call into a note, or into nothing when it holds nothing for the step."""
    if not fresh:
        return Compressed(note=None, usage=Usage())
    stored = await _engine.run_folder.load_raw(result.artifact_file, result.sources)
    texts = [text for text in stored.results if text.source().key in fresh]
    narrowed = _narrowed(texts, f"{step.title} {step.description}", _engine)
    request = CompressRequest(
        plan_title=plan_title,
        step_title=step.title,
        step_description=step.description,
        tool_name=result.call.tool,
        texts=narrowed.texts,
        max_note_tokens=_engine.settings.compression.max_note_tokens,
    )
    answer, usage = await ask(COMPRESSOR, request, _engine)
    if not answer.is_useful:
        return Compressed(note=None, usage=usage, narrowed_tokens=narrowed.left_out_tokens)
    note = Note(
        step_id=step.step_id,
        **answer.model_dump(),
        artifact_file=result.artifact_file,
        source_ids=list(dict.fromkeys(text.source_id for text in narrowed.texts)),
    )
    note = note.model_copy(update={"tokens": message_tokens(note.message())})
    publish(Event("note", note.summary_title))
    return Compressed(note=note, usage=usage, narrowed_tokens=narrowed.left_out_tokens)


def _narrowed(texts: list[SourceText], focus: str, engine: Engine) -> Narrowed:
    """Choose what a model is shown: of each text at most its share of a full search, so that few pages cost little.

    One more share is left to the prompt around the texts. The extractive backend reads everything: that costs nothing,
    and it chooses for itself.
    """
    if engine.model_for(COMPRESSOR).model == EXTRACTIVE:
        return Narrowed(texts=texts, left_out_tokens=0)
    shares = engine.settings.max_results + 1
    return narrow(texts, focus, engine.settings.compression.max_input_tokens * min(len(texts), shares - 1) // shares)
