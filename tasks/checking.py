"""Judging the claims of written sections, correcting them once, and checking them.

A sentence goes back to the writer only when the judge objects to it, or when another source corrects, withdraws or
disputes what it tells and its section does not say so: alone and with the passages that decided; the rest of its
section stays as it is. Sentences that the writer removes are recorded, and sentences that it keeps are marked.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date
from typing import NamedTuple

from fathom.config.groups import Unsupported
from fathom.contradictions.finding import Said, find_contradictions
from fathom.evidence.bearing import Bearing, BearingSpan
from fathom.evidence.claims import ClaimSentence, as_written, claims_of, marked, with_replacements, without
from fathom.evidence.corroboration import outweighs
from fathom.evidence.judging import (
    ROOM_A_CLAIM_AGAIN,
    ROOM_OF_NEWER,
    Exchange,
    Key,
    Known,
    Settled,
    bearing_on,
    judge,
    key_of,
    numbers_of,
    settled,
    shown_sources,
    supporting,
    unsettled,
    without_figures,
)
from fathom.evidence.passages import SourcePassage
from fathom.evidence.stored import StoredText, stored_texts
from fathom.evidence.verify import Checking
from fathom.evidence.words import said_in
from fathom.extractive.statements import on_question
from fathom.facts.extraction import figures_apart
from fathom.llm.windows import fitting
from fathom.models import (
    Bibliographic,
    CheckedLink,
    Claim,
    Contradiction,
    Corroboration,
    Note,
    PlanStep,
    Report,
    ReportSection,
    Source,
    ToolResult,
    Usage,
    Verdict,
    noted,
)
from fathom.models.run import LinkCount
from fathom.roles import CORRECTION, JUDGE, CorrectionRequest
from fathom.roles.correction import DISPUTED, OUTDATED, Objection
from fathom.roles.judge import JudgeAnswer, JudgeRequest, ShownPassage
from fathom.run.engine import Engine
from fathom.run.state import ResearchState, Retrieved
from fathom.sources.corroboration import standing_of
from fathom.sources.scoring import rate_sources, score_sources
from fathom.tasks.durable import recorded_task, run_logger
from fathom.tasks.model_calls import ask, find_window
from fathom.tasks.results import Scored
from fathom.telemetry.progress import phase
from fathom.text.blocks import Kind
from fathom.text.citations import cited_ids
from fathom.text.plain import counted

LEAST_ELSEWHERE = 0.25
"""Share of a sentence, 0 to 1, that a passage of a source that it does not cite must have to be shown for it."""
LASTING: frozenset[Kind] = frozenset(("table", "code"))
"""Kinds that are corrected or marked, but never removed: other rows may refer to a row."""


class _Returned(NamedTuple):
    """A sentence that goes back to the writer: the judge's objection, if there is one, and passages to correct it by.

    Attributes:
        shown: passages of its own sources, the deciding ones first.
        elsewhere: passages of other sources, those that correct, withdraw or dispute what it tells first.
        outdated: whether what it tells is known not to hold, and not only disputed.
    """

    statement: ClaimSentence
    objection: Settled | None
    shown: list[BearingSpan]
    elsewhere: list[BearingSpan]
    outdated: bool

    @property
    def verdict(self) -> str:
        """What is said against it."""
        if self.objection:
            return self.objection.judgement.verdict.words
        return OUTDATED if self.outdated else DISPUTED


class Reviewer:
    """Judges, corrects and checks the claims of one report.

    Attributes:
        asked: requests to the judge so far, and its answers; no claim is judged twice.
        removed: the sentences that were removed.
        usage: usage of the judge and of the writer's corrections, by role.
    """

    def __init__(
        self,
        notes: Sequence[Note],
        texts: Sequence[StoredText],
        scored: Scored,
        engine: Engine,
    ) -> None:
        self._engine = engine
        self._checking = Checking(texts, scored.contradictions)
        self._credibility = {quality.source_id: quality.credibility for quality in scored.qualities}
        self._ahead: list[asyncio.Task[list[Claim]]] = []
        self._noted = sorted(noted(notes))
        self._bearing = Bearing(texts, [quoted for note in notes for quoted in note.quotations()])
        self.asked: list[Exchange] = []
        self.removed: list[str] = []
        self.usage = {JUDGE.name: Usage(), CORRECTION.name: Usage()}

    async def review(self, written: Sequence[ReportSection]) -> list[ReportSection]:
        """Return some sections after their claims were judged, and the writer corrected the ones that do not hold.

        Their check begins then, while others are written.
        """
        sections = list(written)
        await self._judge(sections)
        objections = self._objections(sections)
        if returned := await asyncio.to_thread(self._returned, sections, objections):
            changes = await asyncio.gather(*(self._corrected(sections[n], found) for n, found in returned.items()))
            for number, (markdown, gone) in zip(returned, changes, strict=True):
                sections[number] = sections[number].model_copy(update={"markdown": markdown})
                self.removed += gone
            await self._judge(sections, objections)
            await self._judge_kept(sections, {key_of(one.statement) for found in returned.values() for one in found})
        for number, found in self._objections(sections).items():
            sections[number] = self._left(sections[number], found)
        self._ahead.append(asyncio.create_task(self._check(sections, self._credibility)))
        return sections

    async def verify(self, report: Report) -> list[Claim]:
        """Check every sentence of the report against the stored bytes; the judge is asked about unseen ones."""
        await self._judge(report.sections)
        await asyncio.gather(*self._ahead)
        return await self._check(report.sections, {one.source_id: one.credibility for one in report.qualities})

    @property
    def renewed(self) -> list[str]:
        """The ids of the sources of which the judge was shown later editions."""
        return self._checking.search.editions.renewed if self._engine.settings.judges else []

    async def _check(self, sections: Sequence[ReportSection], credibility: Mapping[str, float]) -> list[Claim]:
        return await asyncio.to_thread(self._checking.claims, claims_of(sections), credibility, settled(self.asked))

    async def _judge(
        self, sections: Sequence[ReportSection], corrected: Mapping[int, Mapping[ClaimSentence, Settled]] | None = None
    ) -> None:
        """Judge the claims that words do not settle and that were not judged yet.

        `corrected` holds the objections by which sections were corrected: new claims there are shown with the
        objections' passages too. Every claim is also shown with the passages that supported earlier claims about a part
        of it, as the first section sums up the others.
        """
        if not self._engine.settings.judges:
            return
        judged = {claim.key for one in self.asked for claim in one.request.claims}
        claims = [s for s in claims_of(sections) if not sections[s.section].quoted and key_of(s) not in judged]
        later = await asyncio.to_thread(self._later_on, claims)
        waiting = await asyncio.to_thread(unsettled, claims, self._checking.search, later)
        if waiting:
            phase(f"asking the model whether the sources support {counted(len(waiting), 'claim')}")
            before = {
                number: [passage for said in found.values() for _, passage in said.shown]
                for number, found in (corrected or {}).items()
            }
            known = {
                key_of(s): Known(
                    "",
                    [*before.get(s.section, ()), *supporting(s.sentence, s.checked_against, self.asked)],
                    later=later.get(key_of(s), ()),
                )
                for s in waiting
            }
            await self._put(waiting, known)

    async def _judge_kept(self, sections: Sequence[ReportSection], returned: Collection[Key]) -> None:
        """Judge those of the returned sentences once more by which the writer stands: it may be the judge that erred.

        That it stands by them is not told, so that the judge looks again and does not only give in.
        """
        judged = settled(self.asked)
        known: dict[Key, Known] = {}
        kept = [one for one in claims_of(sections) if key_of(one) in returned and key_of(one) in judged]
        for one in kept:
            said = judged[key_of(one)]
            replacing = self._spans([said.replaced[1]] if said.replaced else [])
            if said.judgement.verdict.objects or replacing:
                known[key_of(one)] = Known(said.look_for, [passage for _, passage in said.shown], later=replacing)
        waiting = list({key_of(one): one for one in kept if key_of(one) in known}.values())
        await self._put(waiting, known, again=True)

    async def _put(
        self, statements: Sequence[ClaimSentence], known: Mapping[Key, Known], *, again: bool = False
    ) -> None:
        fits = fitting(JUDGE, self._engine.model_for(JUDGE), await find_window(JUDGE, self._engine))
        told = {"question": self._question(), "today": self._engine.start.today}
        self.asked += await judge(statements, self._bearing, self._ask, known, fits, again=again, **told)

    def _later_on(self, statements: Iterable[ClaimSentence]) -> dict[Key, list[BearingSpan]]:
        """Return the passages of sources newer than their own that bear on claims, of those that have some.

        Of a later edition, they have the room of a claim; of another newer source, the best ones are enough.
        """
        editions = self._checking.search.editions
        found: dict[Key, list[BearingSpan]] = {}
        for one in statements:
            for ids, room in (
                (editions.later_than(one.source_ids), ROOM_A_CLAIM_AGAIN),
                (editions.newer_than(one.source_ids), ROOM_OF_NEWER),
            ):
                if spans := bearing_on(without_figures(one), ids, self._bearing, least=LEAST_ELSEWHERE, room=room):
                    found.setdefault(key_of(one), []).extend(spans)
        return found

    def _question(self) -> str:
        """Return the question, with what the asker answered when asked about it."""
        said = self._engine.plan.clarifications if self._engine.plan else []
        answers = [f"{one.question} {one.answer}" for one in said if not one.assumed]
        return "\n".join([self._engine.question_for(JUDGE), *answers])

    async def _ask(self, request: JudgeRequest) -> tuple[JudgeAnswer, str]:
        answer, usage = await ask(JUDGE, request, self._engine)
        self.usage[JUDGE.name] += usage
        if (missing := len(request.claims) - len(answer.opinions)) and not usage.fallbacks:
            self.usage[JUDGE.name] += Usage(fallbacks=[f"judge: no verdict on {counted(missing, 'claim')}"])
        return answer, self._engine.model_for(JUDGE).model

    def _objections(self, sections: Sequence[ReportSection]) -> dict[int, dict[ClaimSentence, Settled]]:
        """Return the judge's objections, by section; none to what a source says word for word."""
        judged = settled(self.asked)
        found: dict[int, dict[ClaimSentence, Settled]] = {}
        for statement in claims_of(sections):
            said = judged.get(key_of(statement))
            objects = said and said.judgement.verdict.objects and not sections[statement.section].quoted
            if said and objects and not said_in(statement, self._checking.search):
                found.setdefault(statement.section, {})[statement] = said
        return found

    def _returned(
        self, sections: Sequence[ReportSection], objections: Mapping[int, Mapping[ClaimSentence, Settled]]
    ) -> dict[int, list[_Returned]]:
        """Return the sentences that go back to the writer, by section; without a passage they could only be marked."""
        found: dict[int, list[_Returned]] = {}
        statements = claims_of(sections) if self._engine.settings.judges else []
        judged = settled(self.asked)
        for statement, refuting in self._checking.refuting(statements).items():
            section = sections[statement.section]
            said = objections.get(statement.section, {}).get(statement)
            replacing = self._checking.replacing(statement, judged.get(key_of(statement)))
            known = [*((one, True) for one in replacing), *((one.passage, one.refuted.settled) for one in refuting)]
            against = [(one, outdates) for one, outdates in known if self._counts(one, statement)]
            if section.quoted or not (said or against):
                continue
            shown = self._shown(statement, said, cited_ids(section.markdown) if said else ())
            passages = {one.text.source.source_id: one for one, _ in reversed(against)}
            elsewhere = [BearingSpan(one.text, one.start, one.end) for one in passages.values()]
            elsewhere += self._elsewhere(statement, said, shown) if said else []
            if shown or elsewhere:
                returned = _Returned(statement, said, shown, elsewhere, any(outdates for _, outdates in against))
                found.setdefault(statement.section, []).append(returned)
        return found

    async def _corrected(self, section: ReportSection, returned: Sequence[_Returned]) -> tuple[str, list[str]]:
        """Return a section with the writer's corrections, and the sentences that it removes."""
        written = as_written(section.markdown, {one.statement.sentence for one in returned})
        spans = [span for one in returned for span in (*one.shown, *one.elsewhere)]
        sources = shown_sources(self._bearing.joined(spans), self._bearing)
        request = CorrectionRequest(
            query=self._engine.question_for(CORRECTION),
            heading=section.heading,
            objections=[
                Objection(
                    number=number,
                    sentence=written.get(one.statement.sentence, one.statement.sentence),
                    context=one.statement.context,
                    verdict=one.verdict,
                    reason=one.objection.judgement.reason if one.objection else "",
                    passages=numbers_of(one.shown, sources),
                    elsewhere=numbers_of(one.elsewhere, sources),
                )
                for number, one in enumerate(returned, 1)
            ],
            sources=sources,
            source_ids=list(dict.fromkeys([*cited_ids(section.markdown), *(source.source_id for source in sources)])),
        )
        answer, usage = await ask(CORRECTION, request, self._engine)
        self.usage[CORRECTION.name] += usage
        replaced: dict[str, str] = {}
        gone: set[str] = set()
        for one in answer.corrections:
            statement, objection, *_ = returned[one.number - 1]
            if one.replacement:
                replaced[statement.sentence] = one.replacement
            elif objection and statement.kind not in LASTING:
                gone.add(statement.sentence)
        markdown, _ = with_replacements(section.markdown, replaced)
        return _taken_out(markdown, gone)

    def _shown(self, statement: ClaimSentence, said: Settled | None, cited: Sequence[str]) -> list[BearingSpan]:
        """Return the passages for correcting a sentence: the deciding ones, or else the ones that bear most on it.

        Passages closest to the part that the judge did not find follow. They come from the sources that the section
        cites or, if it cites none, from all sources that the notes quote.
        """
        ids = [*statement.checked_against, *cited] or self._noted
        decided = self._spans(passage for _, passage in said.shown) if said else []
        shown = decided or bearing_on(statement, ids, self._bearing)
        missed = bearing_on(statement, ids, self._bearing, said.look_for) if said and said.look_for else []
        return [*shown, *missed]

    def _counts(self, one: SourcePassage, statement: ClaimSentence) -> bool:
        return outweighs(one.text.source.source_id, statement.source_ids, self._credibility)

    def _elsewhere(self, statement: ClaimSentence, said: Settled, shown: Sequence[BearingSpan]) -> list[BearingSpan]:
        """Return passages of the run's other sources on a sentence, which may cite the wrong ones.

        Passages that supported other sentences with the same facts come first, then, unless a source that it cites
        decides, passages that have much of the sentence, or of the part that was not found. Both together have about
        twice the room of one claim that is judged again.
        """
        own = (span.text.source.source_id for span in shown)
        others = sorted(set(self._noted).difference(statement.checked_against, own))
        found = self._spans(supporting(statement.sentence, others, self.asked))
        if said.judgement.verdict is Verdict.contradicted and said.shown:
            return found
        return [*found, *bearing_on(statement, others, self._bearing, said.look_for, least=LEAST_ELSEWHERE)]

    def _spans(self, passages: Iterable[ShownPassage]) -> list[BearingSpan]:
        return [span for passage in passages if (span := self._bearing.span(passage))]

    def _left(self, section: ReportSection, found: Mapping[ClaimSentence, Settled]) -> ReportSection:
        """Return a section with the sentences that the judge still objects to marked, or removed if the settings say
        so."""
        said = counted(len(found), "sentence")
        run_logger().warning("The judge still objects to %s of the section %r", said, section.heading)
        verdicts = {
            statement.sentence: one.judgement.verdict if statement.source_ids else _of_none(one.judgement.verdict)
            for statement, one in found.items()
        }
        removable: set[str] = set()
        if self._engine.settings.report.unsupported is Unsupported.remove:
            removable = {statement.sentence for statement in found if statement.kind not in LASTING}
        markdown, gone = _taken_out(section.markdown, removable)
        self.removed += gone
        left = {sentence: verdict for sentence, verdict in verdicts.items() if sentence not in gone}
        return section.model_copy(update={"markdown": marked(markdown, left)})


def _of_none(verdict: Verdict) -> Corroboration:
    """Return what marks a sentence that cites nothing, by an objection to it."""
    return Corroboration.contradicted if verdict is Verdict.contradicted else Corroboration.unverified


def _taken_out(markdown: str, sentences: Collection[str]) -> tuple[str, list[str]]:
    """Return a section without some sentences, and these sentences; the unchanged section if nothing would be left."""
    shorter = without(markdown, sentences)
    if not sentences or not claims_of([ReportSection(heading="", markdown=shorter)]):
        return markdown, []
    return shorter, sorted(sentences)


async def read_texts(engine: Engine, results: Iterable[ToolResult]) -> list[StoredText]:
    """Return every stored text of the run, with its place in the artifacts."""
    found = [result for result in results if result.artifact_file]
    names = list(dict.fromkeys(result.artifact_file for result in found))
    files = await asyncio.gather(*map(engine.run_folder.load, names))
    return await asyncio.to_thread(stored_texts, dict(zip(names, files, strict=True)), found)


async def rate_retrieved(run: ResearchState, engine: Engine) -> Retrieved:
    """Read every stored text of a run again, and rate its source."""
    texts = await read_texts(engine, (call.result for call in run.all_calls))
    return await asyncio.to_thread(_rated, texts, run.plan.steps, run.notes, engine)


def _rated(texts: list[StoredText], steps: Sequence[PlanStep], notes: Sequence[Note], engine: Engine) -> Retrieved:
    titles = {text.source.source_id: text.source.title for text in texts}
    said = [
        Said(quoted, source_ids, titles.get(source_ids[0], "") if source_ids else "")
        for note in notes
        for quoted, source_ids in note.quotations()
    ]
    disagreeing = [one for one in find_contradictions(said) if not _is_change(one, texts)]
    rated = rate_sources(
        [text.source_text() for text in texts],
        said,
        query=engine.start.question,
        steps=steps,
        today=date.fromisoformat(engine.start.today),
        rules=engine.settings.sources,
    )
    return Retrieved(texts, rated, on_question(engine.start.question, notes, disagreeing))


def score_retrieved(retrieved: Retrieved, found: Sequence[Contradiction]) -> Scored:
    """Score every source, with the contradictions that the critic found and others.

    The critic was asked for the important ones; the others were found by their words alone.
    """
    new = (one for one in retrieved.disagreeing if not any(_is_same(one, other) for other in found))
    contradictions = [*found, *new]
    return Scored(qualities=score_sources(retrieved.rated, contradictions), contradictions=contradictions)


@recorded_task(name="links", run_name="check the links of the report", shown=False, absent={})
async def check_links(urls: list[str], _engine: Engine) -> dict[str, CheckedLink]:
    """Return whether the addresses of the cited pages lead to pages."""
    phase(f"checking {counted(len(urls), 'link')}")
    return await _engine.tools.links(urls)


async def with_links(report: Report, engine: Engine) -> Report:
    """Return a report that says which of the web pages that it cites are gone, with their archived copies."""
    pages = [source for source in report.sources if source.kind == "web"]
    urls = [page.url for page in pages if not (page.reference and page.reference.archived)]
    checks = engine.settings.report.check_links and "tools" not in engine.start.kept_in
    if not (checks and pages):
        return report
    links = await check_links(urls, _engine=engine)
    if urls and not links:  # in the replay of a run of a version that did not check them
        return report
    states = Counter(links[url].state for url in urls if url in links)
    archived = len(pages) - len(urls)
    found = LinkCount(working=states["works"], gone=states["gone"] + archived, unknown=states["unknown"])
    sources = [
        _after(source, links[source.url], engine) if source.url in links else source for source in report.sources
    ]
    return report.model_copy(update={"links": found, "sources": sources})


def _after(source: Source, link: CheckedLink, engine: Engine) -> Source:
    if link.state != "gone":
        return source
    known = source.reference or Bibliographic()
    copy = known.model_copy(update={"full_text": link.copy_url, "archived": link.copied}) if link.copied else known
    return source.model_copy(
        update={"gone": engine.start.today, "reference": copy if copy != Bibliographic() else None}
    )


def _is_same(found: Contradiction, other: Contradiction) -> bool:
    """Whether two contradictions are between the same sources and about the same figure."""
    figures, others = (
        {*figures_apart(one.claim_a, one.claim_b), *figures_apart(one.claim_b, one.claim_a)} for one in (found, other)
    )
    return found == other or (set(found.source_ids) <= set(other.source_ids) and not figures.isdisjoint(others))


def _is_change(found: Contradiction, texts: Sequence[StoredText]) -> bool:
    """Whether each source of one side says that it changes each of the other, or is changed by it: they agree then."""
    standings = {text.source.source_id: standing_of(text.source, text.text) for text in reversed(texts)}
    one, other = found.sides(standings)
    return bool(one and other) and all(standings[a].related(standings[b]) for a in one for b in other)
