"""How long `fathom verify` takes once it has started: `python -m benchmarks.verification`.

A generated run of 100 artifacts of 100 kB and a report of 60 claims: sentences of the artifacts, some with a number
changed, each citing one source or two.
"""

from __future__ import annotations

import gc
import hashlib
import random
import re
import time
from collections import Counter

from benchmarks.speed import generated
from fathom.evidence.provenance import PROVENANCE, build
from fathom.evidence.stored import stored_texts
from fathom.evidence.verify import check_claims, verify_run
from fathom.models import (
    Call,
    Plan,
    PlanStep,
    Report,
    ReportSection,
    RunManifest,
    SourceText,
    ToolCall,
    ToolResult,
)
from fathom.report.markdown import render_markdown
from fathom.storage.store import json_bytes
from fathom.text.terms import ENGLISH
from fathom.text.urls import source_ids

ARTIFACTS, CHARACTERS, CLAIMS = 100, 100_000, 60


def generated_run(artifacts: int = ARTIFACTS, characters: int = CHARACTERS, claims: int = CLAIMS) -> dict[str, bytes]:
    """Return the files of a run of so many artifacts, each of so many characters."""
    chance = random.Random(0)
    raw: dict[str, bytes] = {}
    calls: list[Call] = []
    sentences: list[tuple[str, str]] = []
    for number in range(artifacts):
        url = f"https://site{number}.example.org/page"
        text = _written(characters, number, chance)
        source = SourceText(source_id=source_ids([url])[url], url=url, title=f"Page {number}", kind="web", text=text)
        name = f"generated__step1_read__web_extract__{number}.json"
        raw[name] = json_bytes({"results": [source], "failures": []}, indent=1)
        sentences += [(s, source.source_id) for s in chance.sample(re.findall(r"[A-Z][^.]{40,200}\.", text), 3)]
        result = ToolResult(
            call=ToolCall(tool="web_extract", input=url),
            artifact_file=name,
            sha256=hashlib.sha256(raw[name]).hexdigest(),
            raw_bytes=len(raw[name]),
            sources=[source.source()],
        )
        calls.append(Call(result=result, useful=True))
    return _finished(raw, calls, chance.sample(sentences, claims), chance)


def _written(characters: int, number: int, chance: random.Random) -> str:
    """Return a generated text with English's commonest words, which carry no topic, and with numbers."""
    text = generated(characters, seed=number)
    common = [word for word, _ in Counter(text.lower().split()).most_common(len(ENGLISH))]
    function_words = dict(zip(common, sorted(ENGLISH), strict=True))
    text = re.sub(r"\b[a-z]+", lambda found: function_words.get(found[0], found[0]), text)
    return re.sub(r" (?=\w+\.)", lambda _: f" {chance.randint(2, 9_999):,} ", text)


def _finished(
    raw: dict[str, bytes], calls: list[Call], chosen: list[tuple[str, str]], chance: random.Random
) -> dict[str, bytes]:
    texts = stored_texts(raw, [call.result for call in calls])
    others = [text.source.source_id for text in texts]
    said = (sentence.replace("1", "7") if chance.random() < 0.2 else sentence for sentence, _ in chosen)
    lines = [f"{s} [{own}][{chance.choice(others)}]" for s, (_, own) in zip(said, chosen, strict=True)]
    sections = [ReportSection(heading=f"Part {n}", markdown="\n\n".join(lines[n::4])) for n in range(4)]
    sources = [text.source for text in texts]
    report = Report(title="Generated", query="What?", extractive=False, sections=sections, sources=sources)
    report = report.model_copy(update={"claims": check_claims(report, texts, {})})
    plan = Plan(plan_title="generated", steps=[PlanStep(step_id=1, title="Read", description="Read it all.")])
    manifest = RunManifest(
        **dict.fromkeys(("run_id", "run_key", "query", "plan_title", "started"), "generated"),
        **{field: {} for field in ("settings", "models", "prompts", "versions")},
    )
    files = {**raw, "report.json": json_bytes(report), "report.md": render_markdown(report).encode()}
    record = build(manifest=manifest, plan=plan, rounds=[], calls={"1": calls}, report=report, files=files)
    return {**files, PROVENANCE: json_bytes(record)}


def main() -> None:
    """Print the time of three checks."""
    files = generated_run()
    size = sum(map(len, files.values())) / 1e6
    gc.set_threshold(10_000, 10, 10)  # as the command line does
    for _ in range(3):
        start, processor = time.perf_counter(), time.process_time()
        found = verify_run(files)
        seconds, processor = time.perf_counter() - start, time.process_time() - processor
        print(
            f"{size:.1f} MB, {len(found.claims)} claims, {found.quotes} quotes: {seconds:.2f} s, "
            f"{processor:.2f} s of processor time, ok: {found.ok}"
        )


if __name__ == "__main__":
    main()
