"""Does the check of claims tell true from false? `python -m benchmarks.claims FOLDER [--model M] [--verdicts FILE]`.

FOLDER has `claims.jsonl`, a claim a line with its label, its whole sources in `texts/`, and where in these stands what
decides (docs/evidence.md describes the form). Three checks are measured: by words alone; with a scripted judge that
answers rightly where it was shown all that decides, and else does not find it, which measures the choice of passages by
itself; and with the model that is named.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import shorten
from typing import Any

from fathom.budget.ledger import Ledger
from fathom.config.environment import Environment
from fathom.config.groups import Budget, ModelCallSettings, RoleModel
from fathom.evidence.bearing import Bearing, BearingSpan, place_of
from fathom.evidence.claims import ClaimSentence, claim_text, claims_of
from fathom.evidence.judging import Ask, Exchange, Key, judge, key_of, settled, unsettled
from fathom.evidence.passages import Search
from fathom.evidence.stored import StoredText
from fathom.evidence.words import ByWords, check
from fathom.llm.base import ModelCall
from fathom.llm.client import ModelBackend
from fathom.llm.dialects import dialect_of
from fathom.llm.parsing import answer_of
from fathom.llm.prompts import PromptMessage, messages
from fathom.llm.windows import fitting
from fathom.models import ReportSection, Source, Verdict
from fathom.roles import JUDGE
from fathom.roles.judge import JudgeAnswer, JudgedClaim, JudgeRequest, Opinion
from fathom.storage.store import ArtifactStore
from fathom.text.sentences import split_markdown

TRUE = {"supported", "conclusion", "absence"}
CHARS_A_TOKEN = 4  # of a token, as the figures count it
_NUMBERED = re.compile(r"\[(\d+)\]")
_WORST = [Verdict.contradicted, Verdict.not_stated, Verdict.not_checked, Verdict.supported]


@dataclass
class Item:
    """A claim of the set: its line, what of it the check takes for claims, and what that found."""

    line: Mapping[str, Any]
    ids: Mapping[int, str]  # source ids by number
    statements: list[ClaimSentence]
    words: list[ByWords] = field(default_factory=list)

    @property
    def true(self) -> bool:
        """Whether the claim is true."""
        return self.line["label"] in TRUE


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--model", help="a litellm name; the judge is asked, besides the two checks without a model")
    parser.add_argument("--verdicts", type=Path, help="write a line {id, verdict, score, reason} a claim to this file")
    parser.add_argument("--at-once", type=int, default=4, help="requests to the model at once")
    parser.add_argument(
        "--seconds", type=float, default=1_500, help="without a token, after which a request is given up"
    )
    parser.add_argument("--worst", type=int, default=10, help="claims that went wrong to list")
    asked = parser.parse_args()
    texts, items = read(asked.folder)
    search = Search(texts.values())
    for item in items:
        item.words = [check(statement, search) for statement in item.statements]
    by_words = {str(item.line["id"]): worst(found.verdict for found in item.words) for item in items}
    report("by words alone", items, by_words)
    bearing = Bearing(texts.values())
    every = asyncio.run(judge([s for item in items for s in item.statements], bearing, _nobody))
    shown_of(items, every, texts)
    waiting = unsettled([statement for item in items for statement in item.statements], search)
    scripted = asyncio.run(judge(waiting, bearing, perfect(items, texts)))
    report("with a scripted judge", items, verdicts_of(items, scripted))
    told, reasons = by_words, dict[str, str]()
    if asked.model:
        answers = asyncio.run(_by_model(waiting, bearing, asked.model, asked.at_once, asked.seconds))
        told, reasons = verdicts_of(items, answers), reasons_of(items, answers)
        report(f"with {asked.model}", items, told, reasons, asked.worst)
    if asked.verdicts:
        lines = [
            {
                "id": item.line["id"],
                "verdict": told[item.line["id"]].value,
                "score": min((found.score for found in item.words), default=0.0),
                "reason": reasons.get(item.line["id"], ""),
            }
            for item in items
        ]
        text = "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in lines)
        asked.verdicts.write_text(text, encoding="utf-8")


def read(folder: Path) -> tuple[dict[str, StoredText], list[Item]]:
    """Return the texts by file and the claims of a set."""
    lines = [json.loads(line) for line in (folder / "claims.jsonl").read_text(encoding="utf-8").splitlines() if line]
    texts: dict[str, StoredText] = {}
    items: list[Item] = []
    for line in lines:
        ids: dict[int, str] = {}
        for source in line["sources"]:
            file = source["file"]
            if file not in texts:
                named = Source(source_id=f"S{len(texts) + 1:06x}", url=source["url"], title=source["title"], kind="web")
                texts[file] = StoredText(named, (folder / file).read_text(encoding="utf-8"), file)
            ids[source["n"]] = texts[file].source.source_id
        items.append(Item(line, ids, statements_of(line, ids)))
    return texts, items


def statements_of(line: Mapping[str, Any], ids: Mapping[int, str]) -> list[ClaimSentence]:
    """Return the claims that the check finds in a line, in its context, against all of the line's sources."""

    def cited(text: str) -> str:
        return _NUMBERED.sub(lambda found: f"[{ids[int(found[1])]}]" if int(found[1]) in ids else found[0], text)

    claim, context = cited(line["claim"]), _NUMBERED.sub("", line["context"]).rstrip()
    last = context.rpartition("\n")[2]
    goes_on = last.endswith("|") or (last.startswith("- ") and claim.startswith("- "))
    markdown = f"{context}{chr(10) if goes_on else chr(10) * 2 if last.startswith('#') else ' '}{claim}"
    wanted = {claim_text(part) for part in split_markdown(claim)}
    found = [one for one in claims_of([ReportSection(heading="", markdown=markdown)]) if one.sentence in wanted]
    every = tuple(ids.values())
    found = found or claims_of([ReportSection(heading="", markdown=f"{claim} {''.join(f'[{i}]' for i in every)}")])[:1]
    return [one if one.source_ids else one._replace(beside=every) for one in found]


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the verdict on a line of several claims."""
    return min(verdicts, key=_WORST.index, default=Verdict.not_checked)


def verdicts_of(items: Sequence[Item], asked: Sequence[Exchange]) -> dict[str, Verdict]:
    """Return the verdict on each line: the judge's where words did not settle it."""
    judged = settled(asked)

    def verdict(statement: ClaimSentence, words: ByWords) -> Verdict:
        found = judged.get(key_of(statement))
        return words.verdict if words.verdict is Verdict.supported or not found else found.judgement.verdict

    return {
        str(item.line["id"]): worst(verdict(*pair) for pair in zip(item.statements, item.words, strict=True))
        for item in items
    }


def reasons_of(items: Sequence[Item], asked: Sequence[Exchange]) -> dict[str, str]:
    """Return what the judge said of each line."""
    said = {key: found.judgement.reason for key, found in settled(asked).items()}
    return {
        str(item.line["id"]): "; ".join(filter(None, (said.get(key_of(s), "") for s in item.statements)))
        for item in items
    }


# -- what the judge was shown -----------------------------------------------------------------------------------------


async def _nobody(request: JudgeRequest) -> tuple[JudgeAnswer, str]:
    return JudgeAnswer(opinions=[]), ""


def spans_by_claim(asked: Iterable[Exchange], texts: Mapping[str, StoredText]) -> dict[Key, list[BearingSpan]]:
    """Return what was shown of the sources of each claim, in all requests about it."""
    found: defaultdict[Key, list[BearingSpan]] = defaultdict(list)
    for one in asked:
        for claim in one.request.claims:
            found[claim.key] += shown_for(claim, one.request, texts)
    return found


def shown_for(claim: JudgedClaim, request: JudgeRequest, texts: Mapping[str, StoredText]) -> list[BearingSpan]:
    """Return what a request shows of a claim's sources, the headings above the passages included."""
    found: list[BearingSpan] = []
    for source in request.sources:
        if source.source_id not in claim.source_ids:
            continue
        for passage in source.passages:
            span = place_of(passage, [texts[passage.artifact_file]])
            assert span, passage
            found.append(span)
            for heading in passage.headings.split(" › "):
                at = span.text.text.rfind(heading, 0, span.start) if heading else -1
                if at >= 0:
                    line = span.text.text.rfind("\n", 0, at) + 1
                    found.append(BearingSpan(span.text, line, at + len(heading)))
    return found


def decided_by(item: Item, spans: Sequence[BearingSpan], texts: Mapping[str, StoredText]) -> bool:
    """Whether all that decides stands in some passages, but for a fifth of the characters of each place."""
    files = {source["n"]: source["file"] for source in item.line["sources"]}
    for place in item.line["evidence"]:
        text = texts[files[place["n"]]]
        held = set[int]()
        for span in spans:
            if span.text is text:
                held.update(range(max(span.start, place["start"]), min(span.end, place["end"])))
        if len(held) < 0.8 * (place["end"] - place["start"]):
            return False
    return True


def shown_of(items: Sequence[Item], asked: Sequence[Exchange], texts: Mapping[str, StoredText]) -> None:
    """Print for how many claims the first requests have all that decides, and how much they send."""
    spans = spans_by_claim(asked, texts)
    rows: defaultdict[str, list[bool]] = defaultdict(list)
    for item in items:
        own = [span for statement in item.statements for span in spans.get(key_of(statement), [])]
        held = decided_by(item, own, texts)
        for name in ("all", str(item.line["lang"]), str(item.line["form"]), "true" if item.true else "false"):
            rows[name].append(held)
    passages = sum(len(passage.text) for one in asked for _, passage in one.request.passages.values())
    whole = sum(len(message["content"]) for one in asked for message in _messages(one.request))
    sent, quoted = (round(chars / CHARS_A_TOKEN / len(items)) for chars in (whole, passages))
    print(
        f"\nA judge of every claim is sent {len(asked)} requests of {sent} tokens a claim, {quoted} of them passages."
    )
    print("\n| all that decides is among them | claims | share |\n|---|--:|--:|")
    for name, found in rows.items():
        print(f"| {name} | {len(found)} | {_percent(sum(found), len(found))} |")


def _messages(request: JudgeRequest) -> Sequence[PromptMessage]:
    model = RoleModel(model="openai/any")
    return messages(ModelCall(JUDGE, request, model), dialect_of(model.model, own_server=False))


# -- who judges -------------------------------------------------------------------------------------------------------


def perfect(items: Sequence[Item], texts: Mapping[str, StoredText]) -> Ask:
    """Return a judge that answers rightly where it was shown all that decides, and else that it does not find it."""
    by_key = {key_of(statement): item for item in items for statement in item.statements}

    async def ask(request: JudgeRequest) -> tuple[JudgeAnswer, str]:
        opinions: list[Opinion] = []
        for claim in request.claims:
            item = by_key[claim.key]
            own = shown_for(claim, request, texts)
            right = Verdict.supported if item.true else Verdict.contradicted
            found = right if decided_by(item, own, texts) else Verdict.not_stated
            opinions.append(Opinion(claim=claim.number, verdict=found))
        return JudgeAnswer(opinions=opinions), "scripted"

    return ask


async def _by_model(
    statements: Sequence[ClaimSentence], bearing: Bearing, model: str, at_once: int, seconds: float
) -> list[Exchange]:
    calls = ModelCallSettings(at_once=at_once, seconds=seconds)
    ledger = Ledger(Budget(), ArtifactStore("memory://claims"), "ledger")
    chosen = RoleModel(model=model, max_tokens=8_192)
    used = [0, 0]
    async with aclosing(ModelBackend(Environment.read(), ledger, calls)) as backend:

        async def ask(request: JudgeRequest) -> tuple[JudgeAnswer, str]:
            answer, usage, by = await answer_of(JUDGE, request, chosen, backend)
            used[0] += usage.prompt_tokens
            used[1] += usage.completion_tokens
            return answer, by

        fits = fitting(JUDGE, chosen, await backend.window(chosen))
        asked = await judge(statements, bearing, ask, fits=fits)
    print(f"\n{model}: {len(asked)} requests for {len(statements)} sentences", end="")
    print(f", {used[0]:,} tokens sent, {used[1]:,} received")
    return asked


# -- tables -----------------------------------------------------------------------------------------------------------


def report(
    name: str,
    items: Sequence[Item],
    verdicts: Mapping[str, Verdict],
    reasons: Mapping[str, str] | None = None,
    most: int = 0,
) -> None:
    """Print how true and false claims were judged, by kind; `most` claims that went wrong are listed."""
    rows = [(item, verdicts[str(item.line["id"])]) for item in items]
    true, false = [v for item, v in rows if item.true], [v for item, v in rows if not item.true]
    print(f"\n## {name}: {len(true)} true and {len(false)} false claims\n\n| verdict | true | false |\n|---|--:|--:|")
    for verdict in Verdict:
        of_true, of_false = (_percent(found.count(verdict), len(found)) for found in (true, false))
        print(f"| {verdict.value} | {of_true} | {of_false} |")
    alarm = sum(v is not Verdict.supported for v in true) / len(true)
    missed = sum(v is Verdict.supported for v in false) / len(false)
    error = math.sqrt(alarm * (1 - alarm) / len(true) + missed * (1 - missed) / len(false)) / 2
    back = sum(v.objects for v in true) / len(true)
    print(f"\nbalanced accuracy {1 - (alarm + missed) / 2:.1%} ± {1.96 * error:.1%}")
    print(
        f"of true claims {alarm:.1%} not called supported, {back:.1%} objected to; of false ones {missed:.1%} supported"
    )
    drafts = [verdict for item, verdict in rows if item.true and item.line.get("origin") == "draft"]
    if drafts:
        print(f"of {len(drafts)} true sentences of drafts, {drafts.count(Verdict.supported)} are called supported")
    print("\n| kind | true | not supported | objected to | false | supported |\n|---|--:|--:|--:|--:|--:|")
    for key in ("kind", "form", "lang"):
        _by(rows, key)
    wrong = [(item.line, verdict) for item, verdict in rows if item.true is not (verdict is Verdict.supported)]
    for line, verdict in wrong[:most]:
        claim = shorten(line["claim"], 200, placeholder=" …")
        print(f"- {line['id']} {line['label']}, {verdict.value}: {claim} ({(reasons or {}).get(line['id'], '')})")


def _by(rows: Sequence[tuple[Item, Verdict]], key: str) -> None:
    groups: defaultdict[str, list[tuple[bool, Verdict]]] = defaultdict(list)
    for item, verdict in rows:
        groups[str(item.line[key])].append((item.true, verdict))
    for group, found in sorted(groups.items()):
        true, false = [v for t, v in found if t], [v for t, v in found if not t]
        alarm, back = sum(v is not Verdict.supported for v in true), sum(v.objects for v in true)
        passed = sum(v is Verdict.supported for v in false)
        print(f"| {group} | {len(true)} | {alarm} | {back} | {len(false)} | {passed} |")


def _percent(part: int, whole: int) -> str:
    """Return a share with the 95 % interval of Wilson (1927)."""
    if not whole:
        return "-"
    p, z = part / whole, 1.96
    centre = (p + z * z / (2 * whole)) / (1 + z * z / whole)
    half = z * math.sqrt(p * (1 - p) / whole + z * z / (4 * whole * whole)) / (1 + z * z / whole)
    return f"{part} ({100 * p:.1f} %, {100 * max(0.0, centre - half):.0f} to {100 * min(1.0, centre + half):.0f})"


if __name__ == "__main__":
    main()
