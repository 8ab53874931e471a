"""The claims of what was written: judged, corrected once where the judge objects, and checked.

A sentence goes back to the writer only when the judge objects to it, alone and with the passages that decided; the rest
of its section stays as it is. What the writer takes out is recorded, and what it leaves in against the judge is marked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence

from fathom.config.groups import Unsupported
from fathom.evidence.bearing import Bearing
from fathom.evidence.claims import Statement, as_written, claims_of, marked, with_replacements, without
from fathom.evidence.judging import Asked, Known, Settled, judge, key_of, settled
from fathom.evidence.passages import Search
from fathom.evidence.stored import StoredText
from fathom.evidence.verify import check_claims
from fathom.evidence.words import check
from fathom.models import Note, Report, ReportSection, Usage, Verdict
from fathom.roles import CORRECTION, JUDGE, CorrectionRequest
from fathom.roles.correction import Objection
from fathom.roles.judge import JudgeAnswer, JudgeRequest
from fathom.run.engine import Engine
from fathom.telemetry.progress import phase
from fathom.text.citations import cited_ids
from fathom.text.counting import counted
from tasks.durable import run_logger
from tasks.model_calls import ask
from tasks.results import Reviewed, Verified


async def review(
    sections: Sequence[ReportSection],
    notes: Sequence[Note],
    texts: Sequence[StoredText],
    asked: Sequence[Asked],
    engine: Engine,
) -> Reviewed:
    """Have the claims of some sections judged, and let the writer correct those that the judge objects to.

    `asked` is what the judge was asked before of other sections: no claim is judged twice.
    """
    reviewing = _Reviewing(notes, texts, engine, asked)
    return await reviewing.review(list(sections))


async def verify_claims(
    report: Report, notes: Sequence[Note], texts: Sequence[StoredText], asked: Sequence[Asked], _engine: Engine
) -> Verified:
    """Check every sentence of the report against the stored bytes; the judge is asked of those it has not seen yet."""
    reviewing = _Reviewing(notes, texts, _engine, asked)
    await reviewing.judge(report.sections)
    credibility = {quality.source_id: quality.credibility for quality in report.qualities}
    claims = await asyncio.to_thread(check_claims, report, texts, credibility, settled(reviewing.asked))
    return Verified(claims=claims, asked=reviewing.asked, usage=reviewing.usage[JUDGE.name])


class _Reviewing:
    """What the judge and the writer said so far of some sections, and what it took."""

    def __init__(
        self,
        notes: Sequence[Note],
        texts: Sequence[StoredText],
        engine: Engine,
        asked: Sequence[Asked] = (),
    ) -> None:
        self._engine = engine
        self._search = Search(texts)
        self._bearing = Bearing(texts, [quoted for note in notes for quoted in note.quotations()])
        self.asked = list(asked)
        self.usage = {JUDGE.name: Usage(), CORRECTION.name: Usage()}

    async def review(self, sections: list[ReportSection]) -> Reviewed:
        removed: list[str] = []
        await self.judge(sections)
        objections = self._objections(sections)
        if objections:
            changes = await asyncio.gather(*(self._corrected(sections[n], found) for n, found in objections.items()))
            for number, (markdown, gone) in zip(objections, changes, strict=True):
                sections[number] = sections[number].model_copy(update={"markdown": markdown})
                removed += gone
            await self.judge(sections, objections)
        for number, found in self._objections(sections).items():
            sections[number], gone = self._left(sections[number], found)
            removed += gone
        return Reviewed(sections=sections, asked=self.asked, removed=removed, usage=self.usage)

    async def judge(
        self, sections: Sequence[ReportSection], corrected: Mapping[int, Mapping[Statement, Settled]] | None = None
    ) -> None:
        """Have those claims judged that words do not settle and that were not judged yet.

        `corrected` are the objections by which sections were corrected: what is new there is shown their passages too.
        """
        if not self._engine.settings.judges:
            return
        judged = {(claim.sentence, tuple(claim.source_ids)) for one in self.asked for claim in one.request.claims}
        waiting = [s for s in await asyncio.to_thread(self._open, sections) if key_of(s) not in judged]
        if waiting:
            phase(f"judging {counted(len(waiting), 'claim')}")
            before = {
                number: [passage for said in found.values() for _, passage in said.shown]
                for number, found in (corrected or {}).items()
            }
            known = {key_of(s): Known("", before[s.section]) for s in waiting if s.section in before}
            self.asked += await judge(waiting, self._bearing, self._ask, known)

    def _open(self, sections: Sequence[ReportSection]) -> list[Statement]:
        found = {key_of(s): s for s in claims_of(sections) if s.checked_against and not sections[s.section].quoted}
        return [s for s in found.values() if check(s, self._search).verdict is not Verdict.supported]

    async def _ask(self, request: JudgeRequest) -> tuple[JudgeAnswer, str]:
        answer, usage = await ask(JUDGE, request, self._engine)
        self.usage[JUDGE.name] += usage
        if (missing := len(request.claims) - len(answer.opinions)) and not usage.fallbacks:
            self.usage[JUDGE.name] += Usage(fallbacks=[f"judge: no verdict on {counted(missing, 'claim')}"])
        return answer, self._engine.model_for(JUDGE).model

    def _objections(self, sections: Sequence[ReportSection]) -> dict[int, dict[Statement, Settled]]:
        """Return what the judge objects to, by section."""
        judged = settled(self.asked)
        found: dict[int, dict[Statement, Settled]] = {}
        for statement in claims_of(sections):
            said = judged.get(key_of(statement))
            if said and said.judgement.verdict.objects and not sections[statement.section].quoted:
                found.setdefault(statement.section, {})[statement] = said
        return found

    async def _corrected(self, section: ReportSection, found: Mapping[Statement, Settled]) -> tuple[str, list[str]]:
        """Return a section as the writer corrects it, and the sentences that it takes out."""
        statements = list(found)
        written = as_written(section.markdown, {statement.sentence for statement in statements})
        request = CorrectionRequest(
            query=self._engine.start.question,
            heading=section.heading,
            objections=[
                _objection(number, written.get(s.sentence, s.sentence), s, found[s])
                for number, s in enumerate(statements, 1)
            ],
            source_ids=list(
                dict.fromkeys([*cited_ids(section.markdown), *(i for s in statements for i, _ in found[s].shown)])
            ),
        )
        answer, usage = await ask(CORRECTION, request, self._engine)
        self.usage[CORRECTION.name] += usage
        replaced: dict[str, str] = {}
        gone: set[str] = set()
        for one in answer.corrections:
            statement = statements[one.number - 1]
            if one.replacement:
                replaced[statement.sentence] = one.replacement
            elif statement.kind not in ("table", "code"):  # a row is corrected or marked, never dropped
                gone.add(statement.sentence)
        markdown, _ = with_replacements(section.markdown, replaced)
        return _taken_out(markdown, gone)

    def _left(self, section: ReportSection, found: Mapping[Statement, Settled]) -> tuple[ReportSection, list[str]]:
        """Return a section with what the judge still objects to marked or removed, and what was removed."""
        said = counted(len(found), "sentence")
        run_logger().warning("The judge still objects to %s of the section %r", said, section.heading)
        rows = {statement.sentence for statement in found if statement.kind in ("table", "code")}
        verdicts = {statement.sentence: settled.judgement.verdict for statement, settled in found.items()}
        removes = self._engine.settings.report.unsupported is Unsupported.remove
        markdown, gone = _taken_out(section.markdown, verdicts.keys() - rows if removes else set())
        left = {sentence: verdict for sentence, verdict in verdicts.items() if sentence not in gone}
        return section.model_copy(update={"markdown": marked(markdown, left)}), gone


def _taken_out(markdown: str, sentences: Collection[str]) -> tuple[str, list[str]]:
    """Return a section without some sentences, and these; the section as it is if nothing of it would be left."""
    shorter = without(markdown, sentences) if sentences else markdown
    if not claims_of([ReportSection(heading="", markdown=shorter)]):
        return markdown, []
    return shorter, sorted(sentences)


def _objection(number: int, written: str, statement: Statement, said: Settled) -> Objection:
    return Objection(
        number=number,
        sentence=written,
        context=statement.context,
        verdict=said.judgement.verdict.words,
        reason=said.judgement.reason,
        passages=[f"[{source_id}] {passage.text}" for source_id, passage in said.shown],
    )
