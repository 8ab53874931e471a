"""Two runs on one question, claim by claim.

A report says only a part of what its sources say, and says it in its own words. So a claim is held against what the
other run read, not against the other report: it still holds if the sentences that bear it still stand on their pages,
it has changed if one of them became another sentence with another value, and it is new or gone if only one run's
sources say it. What a writer chose to say, and how, makes no difference.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from fathom.changes.model import Change, Changes, Compared, Difference, Kind, Place, Statement
from fathom.changes.pages import Edits, PageLine, ReadPage, edits_of, pages_of
from fathom.changes.values import differences, figures_differ, names_apart, row_differences
from fathom.contradictions.assertions import assertion_of
from fathom.contradictions.finding import differ
from fathom.contradictions.succession import readings, replaces
from fathom.evidence.likeness import Likeness, nearest, nearest_in
from fathom.evidence.passages import Search
from fathom.evidence.stored import StoredText
from fathom.evidence.support import claim_weights
from fathom.facts.extraction import facts_of
from fathom.models import Claim, Corroboration, Quote, Report, Source
from fathom.text.terms import terms
from fathom.text.wording import ENGLISH, wording

BEARING = 0.25  # least share of a claim that a sentence of its quote says, of several sentences
ORDER = ("changed", "disputed", "settled", "new", "gone")


@dataclass
class _Found:
    """The findings of the comparison so far."""

    changed: list[Change] = field(default_factory=list)
    pairs: dict[tuple[str, str, str], int] = field(default_factory=dict)  # address, sentence before, after -> change
    told: set[tuple[str, str]] = field(default_factory=set)  # sentences of claims that are new or gone
    holding: set[tuple[str, str]] = field(default_factory=set)  # sentences of claims of the later report
    unchanged: int = 0


def compare(before: ComparedRun, after: ComparedRun) -> Changes:
    """Return what changed from the earlier run to the later one."""
    regained = bool(after.report and not before.report)
    reported = after.report or before.report
    changes = Changes(
        query=after.query,
        language=reported.language if reported else "",
        before=before.compared(),
        after=after.compared(),
        regained=regained,
    )
    if not before.report or not after.report:
        return changes
    return _Comparison(before, after).made(changes)


class _Comparison:
    """The comparison of two runs that both have a report."""

    def __init__(self, before: ComparedRun, after: ComparedRun) -> None:
        self.before, self.after = before, after
        self.found = _Found()
        self._edits: dict[str, Edits] = {}

    def made(self, changes: Changes) -> Changes:
        """Return the changes that were found."""
        gone, unread, unmentioned = self._earlier()
        new = self._later()
        new, gone, unread = self._matched(new, gone, unread)
        found = [
            *self.found.changed,
            *self._disputes("disputed", self.after, self.before),
            *self._disputes("settled", self.before, self.after),
            *(
                Change(kind="new", after=self.after.said(claim, grounds), note=self._note(claim, grounds))
                for claim, grounds in new
            ),
            *(Change(kind="gone", before=self.before.said(claim, grounds)) for claim, grounds in gone),
        ]
        assert self.before.report and self.after.report
        return changes.model_copy(
            update={
                "changes": sorted(found, key=lambda change: ORDER.index(change.kind)),
                "unchanged": self.found.unchanged,
                "unmentioned": sum(not {g.key for g in grounds} & self.found.holding for grounds in unmentioned),
                "unread": [self.before.said(claim, grounds) for claim, grounds in unread],
                "sources_new": _cited_only(self.after.report, self.before),
                "sources_gone": _cited_only(self.before.report, self.after),
            }
        )

    # -- the claims of either report ------------------------------------------------------------------------------

    def _earlier(self) -> tuple[list[Borne], list[Borne], list[list[Ground]]]:
        """Return the earlier claims that are gone, the earlier claims that are unknown, and the others' grounds."""
        gone, unread, holding = list[Borne](), list[Borne](), list[list[Ground]]()
        for claim in self.before.claims:
            grounds = self._grounds(claim, self.before, self.after)
            if self._told_changed(claim, grounds, earlier=True):
                continue
            if self._holds(claim, grounds, self.after):
                holding.append(grounds)
            elif not grounds or not {g.key for g in grounds} <= self.found.told:
                lost = bool(grounds) and all(g.read or g.stands for g in grounds)
                (gone if lost else unread).append((claim, grounds))
                self.found.told |= {g.key for g in grounds}
        return gone, unread, holding

    def _later(self) -> list[Borne]:
        """Return the later claims that nothing in the earlier run says."""
        new: list[Borne] = []
        for claim in self.after.claims:
            grounds = self._grounds(claim, self.after, self.before)
            if self._told_changed(claim, grounds, earlier=False):
                continue
            if self._holds(claim, grounds, self.before):
                self.found.unchanged += 1
                self.found.holding |= {g.key for g in grounds}
            elif not grounds or not {g.key for g in grounds} <= self.found.told:
                new.append((claim, grounds))
                self.found.told |= {g.key for g in grounds}
        return new

    def _grounds(self, claim: Claim, own: ComparedRun, other: ComparedRun) -> list[Ground]:
        """Return the sentences that support a claim, each once, with their form in the other run."""
        found: dict[tuple[str, str], Ground] = {}
        for page, line in self._bearing(claim, own):
            found.setdefault((page.source.url, line.key), self._ground(claim, page, line, other))
        return list(found.values())

    def _bearing(self, claim: Claim, own: ComparedRun) -> Iterator[tuple[ReadPage, PageLine]]:
        weights = claim_weights(claim.sentence)
        for quote in claim.quotes:
            lines = own.lines(quote)
            held = {line.key: sum(weights.get(term, 0.0) for term in set(terms(line.text))) for _, line in lines}
            least = min(max(held.values(), default=0.0), BEARING * sum(weights.values()))
            yield from ((page, line) for page, line in lines if held[line.key] >= least)

    def _ground(self, claim: Claim, page: ReadPage, line: PageLine, other: ComparedRun) -> Ground:
        there = other.pages.get(page.source.url)
        if there is None:
            return Ground(page, line, stands=False, read=False)
        if line.key in there.keys:
            return Ground(page, line, stands=True, read=True)
        edits, earlier = self._edits_of(page.source.url), other is self.after
        became = (edits.after if earlier else edits.before).get(line.key)
        if became is None:
            return Ground(page, line, stands=False, read=there.covers(line))
        old, new = (line, became) if earlier else (became, line)
        rows = line.kind == became.kind == "table"
        values = (row_differences if rows else differences)(old.text, new.text)
        of_claim = concerned(claim.sentence, values, earlier=earlier)
        if values and not of_claim and bears(claim, line, page.source) and not bears(claim, became, page.source):
            of_claim = values  # the claim rewords the number: "about 400" for 412
        return Ground(page, line, stands=False, read=True, other=became, values=tuple(of_claim))

    def _edits_of(self, url: str) -> Edits:
        if url not in self._edits:
            self._edits[url] = edits_of(self.before.pages[url], self.after.pages[url])
        return self._edits[url]

    def _holds(self, claim: Claim, grounds: Sequence[Ground], other: ComparedRun) -> bool:
        """Whether the other run's sources state a claim too, in the same or in other words."""
        if grounds and all(g.stands for g in grounds):
            return True
        if any((g.stands and bears(claim, g.line, g.page.source)) for g in grounds):
            return True
        if any(g.other and not g.values and bears(claim, g.other, g.page.source) for g in grounds):
            return True
        return nearest(claim.sentence, other.search).likeness is Likeness.alike

    # -- what is found ---------------------------------------------------------------------------------------------

    def _told_changed(self, claim: Claim, grounds: Sequence[Ground], *, earlier: bool) -> bool:
        """Report a claim whose sentence has another value now; once, even if several claims rest on the sentence."""
        edited = {_pair(g, earlier=earlier): g for g in grounds if g.values and g.other}
        for pair in edited:
            known = self.found.changed[self.found.pairs[pair]] if pair in self.found.pairs else None
            if known and known.after and not known.after.claim and not earlier:
                after = self.after.said(claim, list(edited.values()))
                self.found.changed[self.found.pairs[pair]] = known.model_copy(update={"after": after})
        if new := [g for pair, g in edited.items() if pair not in self.found.pairs]:
            self.found.pairs |= {pair: len(self.found.changed) for pair in edited if pair not in self.found.pairs}
            self.found.changed.append(self._change(claim, new, grounds, earlier=earlier))
        return bool(edited)

    def _change(self, claim: Claim, edited: Sequence[Ground], grounds: Sequence[Ground], *, earlier: bool) -> Change:
        own = (self.before if earlier else self.after).said(claim, edited)
        texts = list(dict.fromkeys(g.other.text for g in edited if g.other))
        other = Statement(sentence=texts[0], passages=texts, sources=own.sources)
        places = {g.page.source.url for g in edited}
        standing = (g.page.source for g in grounds if g.stands and g.page.source.url not in places)
        still = list(dict.fromkeys(source.title or source.url for source in standing))
        words = wording(self.after.report.language) if self.after.report else ENGLISH
        return Change(
            kind="changed",
            before=own if earlier else other,
            after=other if earlier else own,
            differences=list({d.model_dump_json(): d for g in edited for d in g.values}.values()),
            note=words("Still as it was: {sources}.", sources=words.listed(still)) if still else "",
        )

    def _matched(
        self, new: list[Borne], gone: list[Borne], unread: list[Borne]
    ) -> tuple[list[Borne], list[Borne], list[Borne]]:
        """Match new claims with claims that are gone: the same fact in other words, or with another value."""
        left: list[Borne] = []
        for claim, grounds in new:
            earlier = [*gone, *unread]
            same = next((one for one in earlier if same_fact(one, (claim, grounds))), None)
            other = same or next((one for one in earlier if contradicts(one[0].sentence, claim.sentence)), None)
            if not other:
                left.append((claim, grounds))
                continue
            gone, unread = ([one for one in some if one is not other] for some in (gone, unread))
            if same:
                self.found.unchanged += 1
            else:
                values = differences(other[0].sentence, claim.sentence)
                before, after = self.before.said(*other), self.after.said(claim, grounds)
                self.found.changed.append(Change(kind="changed", before=before, after=after, differences=values))
        return left, gone, unread

    def _disputes(self, kind: Kind, side: ComparedRun, other: ComparedRun) -> Iterator[Change]:
        """Yield the claims of a run that a source contradicts, where the other run's sources do not."""
        for claim in side.claims:
            if claim.corroboration is not Corroboration.contradicted:
                continue
            if against := list(self._against(claim, side, other)):
                one = statement(claim.sentence, against, claim.number)
                yield Change(kind=kind, after=one) if side is self.after else Change(kind=kind, before=one)

    def _against(self, claim: Claim, side: ComparedRun, other: ComparedRun) -> Iterator[tuple[ReadPage, PageLine]]:
        """Yield each place where a source contradicts a claim, unless the other run read it, or could not have."""
        told = {(url, key) for url, *keys in self.found.pairs for key in keys}
        for page, line in ((page, line) for quote in claim.contradicting for page, line in side.lines(quote)):
            there = other.pages.get(page.source.url)
            unknown = side is self.before if there is None else not there.covers(line)
            if not unknown and not (there and line.key in there.keys) and (page.source.url, line.key) not in told:
                yield page, line

    def _note(self, claim: Claim, grounds: Sequence[Ground]) -> str:
        if claim.corroboration is Corroboration.contradicted:
            return "Another source contradicts it."
        return "" if not grounds or any(g.read for g in grounds) else "The earlier run did not read this source."


def _pair(ground: Ground, *, earlier: bool) -> tuple[str, str, str]:
    assert ground.other
    ends = (ground.line.key, ground.other.key)
    return (ground.page.source.url, *(ends if earlier else ends[::-1]))


def _cited_only(report: Report, other: ComparedRun) -> list[Place]:
    """Return the sources that a report cites and that the other run did not read."""
    return [place(source) for source in report.sources if source.url not in other.pages]


def bears(claim: Claim, line: PageLine, source: Source) -> bool:
    """Whether a sentence supports a claim as well as the claim's own sources do."""
    text = f"{line.header}\n|---|\n| {line.text} |" if line.header else line.text
    own = [StoredText(source, quote.text) for quote in claim.quotes]
    least = nearest_in(claim.sentence, own).likeness if own else Likeness.near
    return nearest_in(claim.sentence, [StoredText(source, text)]).likeness >= max(least, Likeness.near)


def concerned(claim: str, values: Sequence[Difference], *, earlier: bool) -> list[Difference]:
    """Return the changed values of a sentence that a claim states; for an earlier claim, the former values."""
    return [value for value in values if _has(claim, value.before if earlier else value.after, value.about)]


def _has(claim: str, value: str, about: str) -> bool:
    if not value:
        return False
    its = facts_of(value)
    if about not in ("number", "date") or not (its.numbers or its.dates):
        return bool(set(terms(re.sub(r"\Anot ", "", value))) & set(terms(claim)))
    own = facts_of(claim)
    numbers = any(number.agrees(other) for number in own.numbers for other in its.numbers)
    return numbers or any(found.date.agrees(other.date) for found in own.dates for other in its.dates)


def same_fact(earlier: Borne, later: Borne) -> bool:
    """Whether two claims say the same in other words: the other's sources support each, with the same figures."""
    other, others = earlier
    claim, grounds = later
    if figures_differ(other.sentence, claim.sentence) or names_apart(other.sentence, claim.sentence):
        return False
    return any(bears(claim, g.line, g.page.source) for g in others) or any(
        bears(other, g.line, g.page.source) for g in grounds
    )


def contradicts(earlier: str, later: str) -> bool:
    """Whether two claims, of different times, give different values for the same thing."""
    a, b = assertion_of(earlier, ()), assertion_of(later, ())
    if a and b and differ(a, b):
        return True
    return any(replaces(new, old) for new in readings(later, "") for old in readings(earlier, ""))


@dataclass
class ComparedRun:
    """A run: its report, if it has one, and every text that it read."""

    run_id: str
    started: str  # ISO 8601, UTC
    query: str
    report: Report | None
    texts: Sequence[StoredText]

    @cached_property
    def pages(self) -> dict[str, ReadPage]:
        """The pages that the run read, by address."""
        return pages_of(self.texts)

    @cached_property
    def search(self) -> Search:
        """A search index over everything that the run read."""
        return Search(self.texts)

    @cached_property
    def _addresses(self) -> Mapping[str, str]:
        return {text.source.source_id: text.source.url for text in self.texts}

    def lines(self, quote: Quote) -> list[tuple[ReadPage, PageLine]]:
        """Return the sentences in which a quote stands, each with its page."""
        page = self.pages.get(self._addresses.get(quote.source_id, ""))
        return [(page, line) for line in page.holding(quote)] if page else []

    @property
    def claims(self) -> list[Claim]:
        """The claims of the run's report that have evidence."""
        said = self.report.claims if self.report else []
        return [claim for claim in said if not claim.verdict.objects and claim.quotes]

    def said(self, claim: Claim, grounds: Sequence[Ground]) -> Statement:
        """Return a claim as one side of a change, with its quotes if no sentence was found that supports it."""
        if grounds:
            return statement(claim.sentence, [(g.page, g.line) for g in grounds], claim.number)
        cited = (self.pages.get(self._addresses.get(quote.source_id, "")) for quote in claim.quotes)
        sources = {page.source.url: place(page.source) for page in cited if page}
        passages = list(dict.fromkeys(quote.text for quote in claim.quotes))
        return Statement(claim=claim.number, sentence=claim.sentence, passages=passages, sources=list(sources.values()))

    def compared(self) -> Compared:
        """Return the run as the comparison names it."""
        answered = self.report.answered if self.report else None
        return Compared(run_id=self.run_id, started=self.started, claims=len(self.claims), answered=answered)


@dataclass(frozen=True)
class Ground:
    """A sentence of a page that supports a claim, and its counterpart in the other run."""

    page: ReadPage
    line: PageLine
    stands: bool  # on the other run's page too
    read: bool  # the other run read the part of the page where it stands
    other: PageLine | None = None
    values: tuple[Difference, ...] = ()  # that are the claim's own

    @property
    def key(self) -> tuple[str, str]:
        """The address and the sentence."""
        return (self.page.source.url, self.line.key)


Borne = tuple[Claim, list[Ground]]
"""A claim with the sentences that bear it."""


def statement(sentence: str, lines: Iterable[tuple[ReadPage, PageLine]], number: int) -> Statement:
    """Return a sentence as one side of a change, with the lines that say it; `number` of its claim, or 0."""
    borne = list(lines)
    passages = list(dict.fromkeys(line.text for _, line in borne))
    sources = {page.source.url: place(page.source) for page, _ in borne}
    return Statement(claim=number, sentence=sentence, passages=passages, sources=list(sources.values()))


def place(source: Source) -> Place:
    """Return a source with its title and address."""
    return Place(source_id=source.source_id, url=source.url, title=source.title)
