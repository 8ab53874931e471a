"""One tool call, and the note made from its output."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Literal

from pydantic import JsonValue

from fathom.config.groups import EXTRACTIVE, Role
from fathom.errors import AnswerInvalid, BudgetExceeded, ToolError
from fathom.evidence.grounding import Grounded, ground
from fathom.llm.base import Failure
from fathom.llm.windows import spare_tokens
from fathom.models import Note, PlanStep, SourceText, ToolCall, ToolFailure, ToolOutput, ToolResult, Usage
from fathom.retrieval.narrowing import message_tokens
from fathom.retrieval.portions import MOST_REQUESTS, Shown, said_anew, shown
from fathom.retrieval.ranking import titled
from fathom.roles import COMPRESSOR, CompressAnswer, CompressRequest
from fathom.roles.compressor import merged
from fathom.run.engine import Engine
from fathom.run.reading import EarlierReading, NotedBefore, OtherSteps, about
from fathom.storage.names import RESPONSES, artifact_name
from fathom.tasks.durable import computed_task, recorded_task, run_logger
from fathom.tasks.model_calls import answer_without_model, ask, find_window
from fathom.tasks.results import Compressed
from fathom.telemetry.audit_events import AuditType
from fathom.telemetry.progress import Event, doing, publish
from fathom.telemetry.tracing import describe_tool, tool_span
from fathom.text.citations import cited_ids
from fathom.text.parsed import parse
from fathom.text.plain import counted

LEAST_INPUT_TOKENS = 500  # least tokens of raw output in a request, however small the window
NARROWED = "Only the most relevant parts of the output were read."
NOTE_SHARE = 0.75  # share of the longest answer that the note may fill
MOST_SUMMARY = 1_500  # characters of a note's summary in the audit log


@recorded_task(name="tool", run_name="{call.tool}: {call.input}")
async def call_tool(
    plan_title: str, step: PlanStep, call: ToolCall, number: int, settings: dict[str, JsonValue], _engine: Engine
) -> ToolResult:
    """Make one tool call, the step's `number`-th of its tool, and store its whole raw output before anything reads it.

    `settings` holds the settings that tools read. The responses that it received are stored beside the output. A call
    that fails for good is a result without sources: why it failed is stored under the same name, and the coverage table
    shows it.
    """
    began = time.monotonic()
    with tool_span(call.tool) as span:
        result = await _called(plan_title, step, call, number, _engine)
        describe_tool(span, result)
        await _record(result, time.monotonic() - began, span.id, _engine)
    return result


async def _called(plan_title: str, step: PlanStep, call: ToolCall, number: int, engine: Engine) -> ToolResult:
    def name(extension: Literal["json", "txt", "warc.gz"]) -> str:
        return artifact_name(plan_title, step.step_id, step.title, call.tool, number, extension)

    with engine.tools.recording() as responses:
        output, failed = await _output(call, engine)
    arrived = {name(RESPONSES): await engine.run_folder.save(name(RESPONSES), b"".join(responses))} if responses else {}
    if failed:
        sha256, _ = await engine.run_folder.save_raw(name("json"), output)
        files = {**arrived, name("json"): sha256}
        return ToolResult(call=call, files=files, failures=output.failures, retrieved=_now())
    if output.charges:
        priced = all(charge.usd is not None for charge in output.charges)
        publish(Event("spent", spent=engine.ledger.account, caps=engine.ledger.budget, priced=priced))
    file = name("json" if output.structured else "txt")
    sha256, size = await engine.run_folder.save_raw(file, output)
    found = tuple(dict.fromkeys(text.source_id for text in output.results))
    publish(Event("tool", f"{call.tool}: {call.input} ({counted(len(found), 'source')} found)", sources=found))
    return ToolResult(
        call=call,
        artifact_file=file,
        sha256=sha256,
        files=arrived,
        raw_bytes=size,
        raw_tokens=await asyncio.to_thread(lambda: sum(parse(text.text).tokens for text in output.results)),
        sources=[text.source() for text in output.results],
        failures=output.failures,
        retrieved=output.retrieved or _now(),
        cached=output.cached,
        found_by=output.found_by,
        charges=output.charges,
    )


async def _output(call: ToolCall, engine: Engine) -> tuple[ToolOutput, bool]:
    """Return a tool's output, and whether the call failed: then the output holds the reason and nothing else."""
    if not engine.tools.pays(call.tool):
        await engine.store.commit()
    try:
        with doing(f"{call.tool}: {call.input}"):
            return await engine.tools.run(call), False
    except (ToolError, BudgetExceeded) as error:
        engine.ledger.exhausted |= isinstance(error, BudgetExceeded)
        run_logger().warning("%s failed: %s", call.tool, error)
        message = f"{error.message} ({error.next_step})" if error.next_step else error.message
        publish(Event("warning", f"{call.tool} failed: {message}"))
        source = error.source if isinstance(error, ToolError) else ""
        return ToolOutput(results=[], failures=[ToolFailure(code=error.code, message=message, source=source)]), True


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


async def _record(result: ToolResult, seconds: float, event_id: str, engine: Engine) -> None:
    call = {"tool": result.call.tool, "input": result.call.input, "seconds": round(seconds, 3)}
    details = result.model_dump(mode="json", exclude={"call", "sources", "raw_tokens"})
    action = f"{result.call.tool}: {result.call.input}"
    called = await engine.audit.record(AuditType.tool_called, Role.researcher, action, event_id, **call, **details)
    with engine.audit.under(called):
        added = [
            engine.audit.record(AuditType.source_added, Role.researcher, s.title, source_id=s.source_id, url=s.url)
            for s in {source.source_id: source for source in result.sources}.values()
        ]
        await asyncio.gather(*added)  # written together


@computed_task(name="compress", run_name="compress {result.call.tool}: {result.call.input}")
async def compress(
    plan_title: str,
    step: PlanStep,
    result: ToolResult,
    fresh: list[str],
    *,
    others: OtherSteps,
    before: EarlierReading,
    narrow: bool,
    _engine: Engine,
) -> Compressed:
    """Turn the stored raw output of a call into a note, or into none if nothing in it helps the step.

    Args:
        plan_title: the title of the plan.
        step: the step for which it was called.
        result: what the call returned.
        fresh: the keys of its texts that are to be read.
        others: the steps for which they are read too.
        before: what was read before. Notes of earlier steps that cover a text are reused; relevant parts of the earlier
            run's are taken over; texts that surely have nothing for this step are not read.
        narrow: the cheaper model reads the best passages of a long output in one request, because little of the
            budget is left.
    """
    if not fresh:
        return Compressed(note=None, usage=Usage())
    stored = await _engine.run_folder.read(result.artifact_file, result.sources)
    by_key = {key: text for text in stored.results if (key := text.source().key) in fresh}
    steps = [step, *others.found]
    bears = await asyncio.to_thread(before.noted.covering, by_key, steps)
    reused = [note.artifact_file for note in bears.values()]
    new = {key: text for key, text in by_key.items() if key not in bears}
    taken = await asyncio.to_thread(before.earlier_run.covering, new, steps)
    unread = [text for key, text in new.items() if key not in taken]
    worth = await asyncio.to_thread(before.worth_reading, unread, steps)
    request = CompressRequest(
        plan_title=plan_title,
        step_title=step.title,
        step_description=step.description,
        also=[f"{other.title}: {other.description}" for other in (*others.found, *others.later)],
        tool_name=result.call.tool,
        texts=worth,
        page_tokens=_page_tokens(worth, _engine),
    )
    new_parts = await _new_parts(request, before.results, narrow=narrow, engine=_engine)
    texts, whole = [text for text, _ in new_parts], [text for text, part in new_parts if part is text]
    if not texts and not taken:
        return Compressed(note=None, usage=Usage(), reused=reused)
    request = request.model_copy(update={"texts": [part for _, part in new_parts]})
    spread = await _spread(request, narrow=narrow, engine=_engine) if texts else Shown([], 0)
    said_now, usage = await _asked(request, spread, _engine, saving=narrow)
    said_before = _answers(taken, new)
    answer = merged([*said_before, *said_now])
    if spread.left_out_tokens and answer.is_useful:
        answer = answer.model_copy(update={"summary": f"{answer.summary} {NARROWED}"})
    quoted = [*(new[key] for key in taken), *texts]
    grounded = await asyncio.to_thread(_grounded, step, result, answer, quoted)
    if texts and grounded.dropped and not grounded.note.extraction:
        failure = Failure(code=AnswerInvalid.code, message="Nothing that the note quotes is in its sources.")
        instead, more = await answer_without_model(COMPRESSOR, request, failure, _engine)
        answer, usage = merged([*said_before, instead]), usage + more
        grounded = await asyncio.to_thread(_grounded, step, result, answer, quoted)
    compressed = Compressed(
        note=None,
        usage=usage,
        narrowed_tokens=spread.left_out_tokens,
        reused=reused,
        useless=[] if spread.left_out_tokens or usage.fallbacks or not said_now else _unquoted(whole, merged(said_now)),
        read_for=[] if taken or usage.fallbacks else [str(other.step_id) for other in others.later],
    )
    return compressed.model_copy(update={"note": await _told(grounded, _engine)}) if answer.is_useful else compressed


async def _asked(
    request: CompressRequest, spread: Shown, engine: Engine, *, saving: bool
) -> tuple[list[CompressAnswer], Usage]:
    """Return the compressor's answers to the requests over which the texts are spread."""
    requests = [
        request.model_copy(update={"texts": some, "page_tokens": _page_tokens(some, engine)})
        for some in spread.requests
    ]
    asking = asyncio.gather(*(ask(COMPRESSOR, one, engine, saving=saving) for one in requests))
    answers, _ = await asyncio.gather(asking, _read_ahead(request.texts, engine))
    return [answer for answer, _ in answers], sum((used for _, used in answers), Usage())


async def _told(grounded: Grounded, engine: Engine) -> Note:
    """Return a note with its size, and record its contents and the bullets that were left out."""
    if grounded.dropped:
        dropped, lines = counted(len(grounded.dropped), "line"), "".join(f"\n- {line}" for line in grounded.dropped)
        run_logger().warning("%s of the note left out, not found in the sources:%s", dropped, lines)
    note = grounded.note.model_copy(update={"tokens": message_tokens(grounded.note.message())})
    await engine.audit.record(
        AuditType.note_created,
        Role.compressor,
        note.summary_title,
        step_id=note.step_id,
        summary=note.summary[:MOST_SUMMARY],
        artifact_file=note.artifact_file,
        source_ids=note.source_ids,
        tokens=note.tokens,
        dropped_bullets=grounded.dropped,
        paraphrased_bullets=grounded.paraphrased,
    )
    return note


def _answers(taken: Mapping[str, Note], texts: Mapping[str, SourceText]) -> list[CompressAnswer]:
    """Return the parts of notes, given by the keys of their texts, about these texts, as answers of the compressor."""
    notes = {note.artifact_file: note for note in taken.values()}
    ids = {file: [texts[key].source_id for key, n in taken.items() if n.artifact_file == file] for file in notes}
    kept = [about(note, ids[file]) for file, note in notes.items()]
    return [CompressAnswer(**note.model_dump(include=set(CompressAnswer.model_fields))) for note in kept]


def _unquoted(texts: Sequence[SourceText], answer: CompressAnswer) -> list[str]:
    """Return the keys of the texts that an answer does not use; none if it names no source at all."""
    cited = {source_id for line in (answer.summary, *answer.extraction) for source_id in cited_ids(line)}
    silent = answer.is_useful and not cited
    return [] if silent else [text.source().key for text in texts if text.source_id not in cited]


def _page_tokens(texts: Sequence[SourceText], engine: Engine) -> int:
    """Return the tokens that a note may take for each source, so that it fits the answer of a model."""
    most = int(NOTE_SHARE * engine.model_for(COMPRESSOR).max_tokens)
    sources = {text.source_id for text in texts}
    return min(engine.settings.compression.summary_tokens, max(1, most // max(1, len(sources))))


async def serving(result: ToolResult, noted: NotedBefore, step: PlanStep, engine: Engine) -> list[Note]:
    """Return the notes that cover the findings of a call for a step."""
    if not any(source.key in noted.notes for source in result.sources):
        return []
    stored = await engine.run_folder.read(result.artifact_file, result.sources)
    texts = {text.source().key: text for text in stored.results}
    return list((await asyncio.to_thread(noted.covering, texts, [step])).values())


async def _read_ahead(texts: list[SourceText], engine: Engine) -> None:
    """Read texts as the scores and the report need them, while the model is waited for."""

    def read(text: SourceText) -> None:
        _ = parse(text.text).occurrences

    for text in texts:
        async with engine.reading:
            await asyncio.to_thread(read, text)


def _grounded(step: PlanStep, result: ToolResult, answer: CompressAnswer, texts: list[SourceText]) -> Grounded:
    """Return the note of an answer, without bullets that the texts do not support."""
    note = Note(
        step_id=step.step_id,
        **answer.model_dump(),
        artifact_file=result.artifact_file,
        source_ids=list(dict.fromkeys(text.source_id for text in texts)),
        titles={text.source_id: titled(text).title for text in texts},
        dates={text.source_id: text.published for text in texts if text.kind == "document" and text.published},
    )
    return ground(note, texts)


async def _spread(request: CompressRequest, *, narrow: bool, engine: Engine) -> Shown:
    """Choose the parts of the texts that requests to the compressor show: everything, if a few requests can hold it.

    The extractive backend reads everything, which is free, and selects passages itself.
    """
    if not (room := await _room(request, narrow=narrow, engine=engine)):
        return Shown([request.texts], 0)
    most = engine.settings.compression.max_text_tokens
    async with engine.reading:
        return await asyncio.to_thread(
            shown,
            request.texts,
            " ".join([request.step_title, request.step_description, *request.also]),
            text_tokens=most,
            request_tokens=min(room, most) if narrow else room,
            most_requests=1 if narrow else MOST_REQUESTS,
        )


async def _room(request: CompressRequest, *, narrow: bool, engine: Engine) -> int:
    """Return how many tokens of texts a request to the compressor can show; 0 where no model reads them."""
    model, limits = engine.model_for(COMPRESSOR, saving=narrow), engine.settings.compression
    if model.model == EXTRACTIVE:
        return 0
    window = await find_window(COMPRESSOR, engine, saving=narrow)
    spare = spare_tokens(COMPRESSOR, request.model_copy(update={"texts": []}), model, window)
    return int(max(LEAST_INPUT_TOKENS, min(limits.max_input_tokens, spare)))


async def _new_parts(
    request: CompressRequest, results: Sequence[ToolResult], *, narrow: bool, engine: Engine
) -> list[tuple[SourceText, SourceText]]:
    """Return each text of a request that has something new, with its part that no earlier result of the step has.

    Results that were perhaps not shown whole do not count. The extractive backend reads everything, which is free.
    """
    room = 0 if narrow else await _room(request, narrow=narrow, engine=engine)
    ids = {text.source_id for text in request.texts}
    read: dict[str, list[str]] = {}
    for result in results:
        own = [source for source in result.sources if source.source_id in ids]
        if own and result.raw_tokens <= MOST_REQUESTS * room:
            for text in (await engine.run_folder.read(result.artifact_file, own)).results:
                read.setdefault(text.source_id, []).append(text.text)

    def parts() -> list[tuple[SourceText, SourceText]]:
        found = ((text, said_anew(text, read.get(text.source_id, []))) for text in request.texts)
        return [(text, part) for text, part in found if part]

    return await asyncio.to_thread(parts)
