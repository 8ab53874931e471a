"""Claims, their verdicts and their corroboration: what a report says against the invented pages it was written from."""

from __future__ import annotations

import hashlib
import random
import re
from typing import Literal

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fathom.evidence.claims import MARKS, ClaimSentence, claims_of, marked, with_replacements, without
from fathom.evidence.corroboration import Judged, corroborate
from fathom.evidence.grounding import ground
from fathom.evidence.likeness import Likeness, nearest, nearest_in
from fathom.evidence.passages import Search
from fathom.evidence.stored import StoredText, locate, read_quote, stored_texts
from fathom.evidence.support import places
from fathom.evidence.verify import check_claims
from fathom.evidence.words import ByWords, check
from fathom.facts.dates import find_dates
from fathom.facts.extraction import facts_of
from fathom.models import (
    Claim,
    Contradiction,
    Note,
    Report,
    ReportSection,
    Source,
    SourceText,
    ToolCall,
    ToolResult,
)
from fathom.models.evidence import Corroboration, Verdict
from fathom.storage.store import json_bytes
from fathom.text.blocks import Kind
from tests.evidence_run import BRIDGE, GUIDE, PAGES, in_memory, source_text

TRUE = [
    "Mayor Edith Vance opened the Lyndhaven Bridge on March 12, 1932.",
    "The Lyndhaven Bridge was opened on 1932-03-12 by Edith Vance.",
    "The bridge spans 503 m and carries 8 lanes.",
    "The Lyndhaven Bridge cost £4.2m.",
    "It cost 4,200,000 pounds, twelve percent more than the council of Lyndhaven planned.",
    "In 2018, traffic rose to 180 000 vehicles a day.",
    "Trams did not return after 1958, when the line was closed.",
    "The steel for the bridge came from Harmund.",
    "Anna Gruber, the engineer, was born in Graz.",
    "Gruber studied in Vienna.",
    "The WHO measured the noise in 2007.",
    "Tolls are only paid southbound.",
    "Nobody may fish from the bridge.",
]
FALSE = {
    "The bridge spans 603 metres and carries eight lanes.": (Likeness.apart, "603"),
    "The bridge carries six lanes.": (Likeness.apart, "six"),
    "The bridge cost 4.2 million pounds, 21 % more than the council planned.": (Likeness.apart, "21 %"),
    "Mayor Edna Vance opened the Lyndhaven Bridge in 1932.": (Likeness.apart, "Edna"),
    "The Lyndhaven Bridge was opened on 21 March 1932.": (Likeness.apart, "21 March 1932"),
    "Trams returned after the line was closed in 1958.": (Likeness.near, "denies"),
    "The engineer, Anna Gruber, was not born in Graz.": (Likeness.near, "denies"),
}
NOWHERE = {  # of the false ones, what stands nowhere on the page; "more" may be derived, and so may a number in words
    "The bridge spans 603 metres and carries eight lanes.": "603 metres",
    "The Lyndhaven Bridge was opened on 21 March 1932.": "21 March 1932",
}


def checked(claim: str, texts: list[StoredText], kind: Kind = "prose") -> ByWords:
    """Return what words alone say of a claim that cites some texts."""
    ids = tuple(dict.fromkeys(text.source.source_id for text in texts))
    return check(ClaimSentence(0, claim, ids, kind), Search(texts))


def test_twenty_claims_of_which_seven_are_false_in_a_number_a_name_a_date_or_a_negation() -> None:
    page = [in_memory(BRIDGE, "Lyndhaven Bridge")]
    found = {claim: nearest_in(claim, page) for claim in [*TRUE, *FALSE]}
    assert len(found) == 20
    assert [(c, found[c].complaints) for c in TRUE if found[c].likeness is not Likeness.alike] == []
    for claim, (likeness, complaint) in FALSE.items():
        assert found[claim].likeness is likeness, claim
        assert any(complaint in text for text in found[claim].complaints), found[claim].complaints
    assert nearest_in("Bananas are rich in potassium.", page).likeness is Likeness.apart


def test_words_alone_object_to_no_true_claim_and_support_no_false_one() -> None:
    page = [in_memory(BRIDGE, "Lyndhaven Bridge")]
    found = {claim: checked(claim, page) for claim in [*TRUE, *FALSE]}
    assert [claim for claim in TRUE if found[claim].verdict.objects or found[claim].complaints] == []
    for claim in FALSE:
        verdict = Verdict.not_stated if claim in NOWHERE else Verdict.not_checked
        assert found[claim].verdict is verdict, claim
        missing = [f"{NOWHERE[claim]} stands nowhere in its sources"] if claim in NOWHERE else []
        assert found[claim].complaints == missing
    assert checked("Bananas are rich in potassium.", page).verdict is Verdict.not_checked
    assert checked("It spans 503 metres and carries eight lanes.", page).verdict is Verdict.supported


@pytest.mark.parametrize(
    ("claim", "verdict"),
    [
        ("The contract runs for 48 months.", Verdict.supported),
        ("The contract runs for 4 years.", Verdict.supported),
        ("The contract runs for 48 years.", Verdict.not_stated),
        ("The contract runs for 60 months.", Verdict.not_stated),
        ("The rent rises by 5 % after 1,000 days.", Verdict.supported),
        ("The rent rises by 5 after 1000 days.", Verdict.not_checked),
        ("The rent rises by 1000 percent after five days.", Verdict.not_stated),
        ("The rent does not rise by 5 % after 1000 days.", Verdict.not_checked),
    ],
)
def test_a_sentence_with_the_same_amounts_in_other_units_is_the_same(claim: str, verdict: Verdict) -> None:
    page = [in_memory("The contract runs for four years. The rent rises by five percent after 1000 days.", "Contract")]
    assert checked(claim, page).verdict is verdict


@pytest.mark.parametrize(
    ("claim", "missing"),
    [
        ("Seven observers watched the count in Lyndhaven.", ["Seven"]),
        ("Eleven observers watched the count in Lyndhaven.", []),
        ("In two towns, observers watched the count.", []),  # the writer's own counting
        ("Three observers came from abroad.", []),  # of eleven, who watched
        ("They checked one hundred and fifty ballots.", []),
        ("They checked one hundred and sixty ballots.", ["one hundred and sixty"]),
        ("They checked fifty ballots.", ["fifty"]),
        ("Sie prüften zweihundert Zettel.", ["zweihundert"]),
    ],
)
def test_a_count_in_words_is_objected_to_where_a_source_has_another(claim: str, missing: list[str]) -> None:
    page = [
        in_memory("Eleven observers watched the count in Lyndhaven and Harmund. They checked 150 ballots.", "Count")
    ]
    assert checked(claim, page).complaints == [f"{each} stands nowhere in its sources" for each in missing]


@pytest.mark.parametrize(
    ("claim", "complaint"),
    [
        ("Traffic fell to 180,000 vehicles a day in 2018.", "“fell”, the quote “rose”"),
        ("The bridge spans 503 km.", "503 km is 503 metres"),
        ("Harmond delivered steel for the bridge that came from Harmond.", "Harmond"),
        ("Traffic rose to 180,000 vehicles a day in 2019.", "the date 2019"),
        ("The World Trade Organization measured the noise in 2007.", "Trade"),
    ],
)
def test_direction_unit_name_and_year_are_compared(claim: str, complaint: str) -> None:
    found = nearest_in(claim, [in_memory(BRIDGE)])
    assert found.likeness is not Likeness.alike
    assert any(complaint in text for text in found.complaints), found.complaints


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1,000 people", "1000 people"),
        ("1 000 km", "1.000 Kilometer"),
        ("5 %", "five percent"),
        ("$1.5 million", "1,500,000 dollars"),
        ("€3bn", "3 Milliarden Euro"),
        ("twenty-five years", "25 years"),
        ("one hundred and fifty people", "150 people"),
        ("a hundred and fifty thousand people", "150,000 people"),
        ("two hundred thousand people", "200 000 Leute"),
        ("two thousand three hundred and forty-five euros", "zweitausenddreihundertfünfundvierzig Euro"),
        ("1.234,5 kg", "1,234.5 kg"),
        ("0.5 km", "500 metres"),
        ("14 days", "2 weeks"),
        ("5 per cent", "5 %"),
        ("90 km/h", "25 m/s"),
    ],
)
def test_a_number_is_the_same_however_it_is_written(one: str, other: str) -> None:
    (a,), (b,) = facts_of(one).numbers, facts_of(f"There were {other}.").numbers
    assert a.agrees(b) and b.agrees(a)


_ONES = "zero one two three four five six seven eight nine ten eleven twelve"
_TEENS = "thirteen fourteen fifteen sixteen seventeen eighteen nineteen"
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"


def spelled(number: int, between: str) -> str:
    """Return a number in English words; `between` stands between tens and ones."""
    for size, name in ((1_000, "thousand"), (100, "hundred")):
        if number >= size:
            rest = number % size
            joint = " and " if rest < 100 else " "
            more = f"{joint}{spelled(rest, between)}" if rest else ""
            return f"{spelled(number // size, between)} {name}{more}"
    if number < 20:
        return f"{_ONES} {_TEENS}".split()[number]
    return f"{_TENS.split()[number // 10 - 2]}{between + _ONES.split()[number % 10] if number % 10 else ''}"


@given(st.integers(2, 999), st.integers(2, 9_999), st.sampled_from([" ", "-"]))
def test_a_number_in_words_is_read_with_and_without_a_hyphen(first: int, second: int, between: str) -> None:
    text = f"They saw {spelled(first, between)} gulls, and {spelled(second, between)} terns."
    assert [set(number.values) for number in facts_of(text).numbers] == [{first}, {second}]
    ones = f"They saw between {spelled(20 + first % 80, between)} and ninety-nine gulls."
    assert [set(number.values) for number in facts_of(ones).numbers] == [{20 + first % 80}, {99}]


@pytest.mark.parametrize("text", ["They made twenty one-day trips.", "Some chose twenty and one of them left."])
def test_two_numbers_side_by_side_stay_two(text: str) -> None:
    assert not any(21 in number.values for number in facts_of(text).numbers)


@pytest.mark.parametrize("text", ["12 March 2019", "March 12, 2019", "2019-03-12", "12.03.2019", "12. März 2019"])
def test_a_date_is_the_same_however_it_is_written(text: str) -> None:
    (date,) = facts_of(f"It was signed on {text}.").dates
    assert date.date == (2019, 3, 12)
    (month,), (year,) = facts_of("in March 2019").dates, facts_of("in 2019").dates
    assert month.date.within(date.date) and year.date.within(date.date) and not date.date.within(month.date)


def test_what_only_looks_like_a_date_or_a_unit_is_none() -> None:
    assert [found.date for found in find_dates("3/12/2019, 13/12/2019, 3.12.2019, 2010-15, 2015-03")] == [
        (2019, 3, 12),
        (2019, 12, 13),
        (2019, 12, 3),
        (2010, 0, 0),
        (2015, 0, 0),
        (2015, 3, 0),
    ]
    assert find_dates("They may 10 times march 12 km over 1932 m with 2,019 men, $2019 and 2019 million.") == []
    (more,), (points,) = facts_of("5 %").numbers, facts_of("5 percentage points").numbers
    assert not more.agrees(points)


def test_what_belongs_to_a_name_is_no_number_and_what_opens_a_sentence_may_be_no_name() -> None:
    assert facts_of("COVID-19, A-769662 and OCT3/4 are names.").numbers == []
    assert facts_of("Overall, prices rose.").names == []
    assert [name.opening for name in facts_of("Prices rose in Harmund.").names] == [True, False]


MINUTES = """
The budget was shown first. It is higher than last year. Two people asked why. Nobody from the staff could say. Then
came the weather of the winter. Ice is a risk for the divers. They wait for spring. The harbour was the last point. Its
extension had been put off twice. After a short break all hands went up. So it is approved. The next meeting is in May.
"""


@pytest.mark.parametrize(
    ("claim", "likeness", "complaint"),
    [
        (
            "After debating budget, staff and winter weather, members approved the harbour extension.",
            Likeness.near,
            "far from each other",
        ),
        ("After debating budget, staff and winter weather, 40 approved the harbour extension.", Likeness.apart, "40"),
        ("After debating fees, noise and summer crowds, members approved a new marina.", Likeness.apart, ""),
    ],
)
def test_a_sentence_in_other_words_is_near_if_its_source_has_the_rest_near_each_other(
    claim: str, likeness: Likeness, complaint: str
) -> None:
    found = nearest_in(claim, [in_memory(MINUTES)])
    assert (found.likeness, complaint in " ".join(found.complaints)) == (likeness, True)
    assert found.likeness is Likeness.apart or "harbour" in found.passages[0].words


def test_of_a_compound_name_a_part_is_enough_to_be_near_unless_a_number_is_another() -> None:
    page = [in_memory("The RANK pathway was found in 1997. It is a target of the Falcon-9 trial of bone loss.")]
    for claim, likeness in [("RANK-TRAF", Likeness.near), ("TRAF-RIP", Likeness.apart)]:
        assert nearest_in(f"Discovered in 1997, the {claim} pathway was found.", page).likeness is likeness
    assert nearest_in("It is a target of the Falcon-12 trial of bone loss.", page).likeness is Likeness.apart


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)


@given(st.lists(texts, min_size=1, max_size=4), st.data())
def test_any_span_of_any_stored_text_is_found_in_its_file_to_the_byte(contents: list[str], data: st.DataObject) -> None:
    results = [
        SourceText(source_id=f"S00000{n}", url='a"text": "b', title="\n", kind="web", text=text, snippet=text)
        for n, text in enumerate(contents)
    ]
    name, raw = "a__step1_b__web_search.json", json_bytes({"results": results, "failures": []}, indent=1)
    assert [text.text for text, _ in locate(name, raw)] == contents
    result = ToolResult(call=ToolCall(tool="web_search", input=""), artifact_file=name, sha256="0")
    for stored in stored_texts({name: raw}, [result]):
        start = data.draw(st.integers(0, len(stored.text)))
        end = data.draw(st.integers(start, len(stored.text)))
        quote = stored.quote(start, end)
        assert quote.text == stored.text[start:end] == read_quote(quote, raw)


def test_a_plain_text_is_its_own_file() -> None:
    raw = BRIDGE.encode()
    source = source_text(next(iter(PAGES))).source()
    ((text, first),) = locate("a__step1_b__artifact_read.txt", raw, [source])
    assert (text.text, first) == (BRIDGE, 0)
    start = BRIDGE.index("“Brücke”")
    result = ToolResult(
        call=ToolCall(tool="artifact_read", input=""),
        artifact_file="b.txt",
        sha256=hashlib.sha256(raw).hexdigest(),
        sources=[source],
    )
    (stored,) = stored_texts({"b.txt": raw}, [result])
    assert raw[stored.quote(start, start + 8).start : stored.quote(start, start + 8).end].decode() == "“Brücke”"


def test_claims_are_sentences_items_and_rows_with_the_citations_that_stand_for_them() -> None:
    markdown = """\
### A heading [S1a2b3c]

The first claim has no citation. The second one has a citation [S1a2b3c]. The third says something after all of them.

This section describes how the bridge was built in 1932. The parts are:

- **Height**: 134 metres above the water [S2a2b3c; S3a2b3c]
- An item of two sentences about the lanes. Both are carried by its end [S2a2b3c].

| Year | Lanes |
|---|--:|
| 1932 | six [S1a2b3c] |
| 1958 | eight |

```
code = "is no claim" [S1a2b3c]
```

Is this a question about the bridge of Lyndhaven? A short remark.
"""
    claims = claims_of([ReportSection(heading="x", markdown=markdown)])
    assert [(claim.sentence, list(claim.source_ids)) for claim in claims] == [
        ("The first claim has no citation.", ["S1a2b3c"]),
        ("The second one has a citation.", ["S1a2b3c"]),
        ("The third says something after all of them.", []),
        ("**Height**: 134 metres above the water", ["S2a2b3c", "S3a2b3c"]),
        ("An item of two sentences about the lanes.", ["S2a2b3c"]),
        ("Both are carried by its end.", ["S2a2b3c"]),
        ("1932 | six", ["S1a2b3c"]),
        ("1958 | eight", []),
    ]
    # What cites nothing is checked against what its paragraph, list or table cites.
    assert [claim.checked_against for claim in claims if not claim.source_ids] == [("S1a2b3c",), ("S1a2b3c",)]


def test_a_sentence_whose_clauses_each_have_a_citation_rests_on_nothing_around_it() -> None:
    cited = "One study found 22 % fewer crashes [S1a2b3c], while the insurers found no change at all [S2a2b3c]."
    first, _ = claims_of([ReportSection(heading="x", markdown=f"{cited} Police checks may explain it [S3a2b3c].")])
    assert first.checked_against == ("S1a2b3c", "S2a2b3c")


def test_what_a_sentence_says_after_its_last_citation_may_rest_on_the_sentences_before_it() -> None:
    manual = in_memory("Charge the batteries when they fall below 20 %.", url="https://manual.example")
    order = in_memory("In the north, charge below 30 %.", url="https://order.example")
    first, second = manual.source.source_id, order.source.source_id

    def said(sentence: str) -> ByWords:
        before = f"The manual says 20 % [{first}]."
        *_, claim = claims_of([ReportSection(heading="Charging", markdown=f"{before} {sentence}")])
        return check(claim, Search([manual, order]))

    assert said(f"The order for the north says 30 % [{second}], so the 20 % are left for the south.").complaints == []
    for strict in (f"The order [{second}] says 20 %.", f"The order for the north, says 20 % [{second}]."):
        assert said(strict).complaints == ["20 % stands nowhere in its sources"], strict


CLAIM = "The Lyndhaven Bridge was opened on 12 March 1932."
COPY = BRIDGE[:400]
OTHER = "The Lyndhaven Bridge was opened on 14 March 1932."


@pytest.mark.parametrize(
    ("others", "credibility", "corroboration"),
    [
        ({}, {}, Corroboration.single_source),
        ({"https://guide.example.com/a": GUIDE}, {}, Corroboration.verified),
        ({"https://www.example.org/b": GUIDE}, {}, Corroboration.single_source),  # the same site
        ({"https://copy.example.com/a": COPY}, {}, Corroboration.single_source),
        ({"https://guide.example.com/a": GUIDE}, {"https://guide.example.com/a": 0.1}, Corroboration.single_source),
        ({"https://guide.example.com/a": OTHER}, {}, Corroboration.contradicted),
        ({"https://guide.example.com/a": OTHER}, {"https://guide.example.com/a": 0.1}, Corroboration.single_source),
    ],
)
def test_two_independent_credible_sources_verify(
    others: dict[str, str], credibility: dict[str, float], corroboration: Corroboration
) -> None:
    own = in_memory(BRIDGE, url="https://a.example.org/bridge")
    read = [own, *(in_memory(text, url=url) for url, text in others.items())]
    ids = {text.source.url: text.source.source_id for text in read}
    found = corroborate(CLAIM, Search(read), {ids[url]: value for url, value in credibility.items()})
    assert found.corroboration is corroboration
    assert own.source in [passage.text.source for passage in found.corroborating]


NAMED = "The reservation of a place costs 2.80 EUR per pallet and week."
CORRECTED = "The rate that I named is for weeks that begin in 2027. For weeks that begin in 2026 it is 2.30 EUR."
WITHDRAWN = "The trial of Movewell found that the new timetable cut accidents."
AFTERWARDS = "Movewell has withdrawn its trial of the timetable: accidents were counted in other streets."
REPORTED = "Sick days due to infections fell by 41 % in classes with the AP-30, in a study of two winters."
INVALID = "The study is withdrawn: the reduction of 41 % is not valid, since days of two winters were counted twice."


LONGER = (
    "In the four trials of at least six months, Nadrol did most, by 1.7 days.",
    "That Nadrol did most in trials of at least six months is withdrawn: 1.0 days are not significant.",
)
RENT = ("The rent is 1,000 EUR a month.", "The rent that I named was wrong: it is 1,200 EUR, and not 1,000 EUR.")
COUNTED = "| Drug | Trials | Days |\n|---|---|---|\n| Nadrol | 7 | -1.3 |\n| Belim | 9 | -1.2 |"
TWICE = "One trial was counted twice. The row of Nadrol should read: 6 trials, and -0.9 days."


PRICE, TRIAL, STUDY = (NAMED, CORRECTED), (WITHDRAWN, AFTERWARDS), (REPORTED, INVALID)
MOVED = (
    "All of its data is stored in the United States, on servers in Virginia.",
    "Ledgerly has moved the data of all European customers to a data centre in Frankfurt.",
)


@pytest.mark.parametrize(
    ("statements", "sentence", "disputed"),
    [
        (PRICE, "The reservation of a place costs 2.80 EUR per pallet and week [{first}].", True),
        (PRICE, "Reserving a place costs 2.80 EUR per pallet and week, 560 EUR in all [{first}].", True),
        (PRICE, "For weeks that begin in 2026 the reservation costs 2.30 EUR per pallet [{second}].", False),
        (
            PRICE,
            "The reservation was to cost 2.80 EUR per pallet and week, which was corrected [{first}] [{second}].",
            False,
        ),
        (PRICE, "The reservation costs 2.80 EUR per pallet in 2027, and 2.30 EUR before [{first}].", False),
        (PRICE, "The 2.80 EUR were named in October [{first}].", False),
        (TRIAL, "The trial of Movewell found that the new timetable cut accidents [{first}].", True),
        (MOVED, "All data of Ledgerly is stored on servers in Virginia [{first}].", True),
        (MOVED, "Before it moved, Ledgerly stored its data on servers in Virginia [{first}].", False),
        (MOVED, "Ledgerly is fast, and its data is a problem for some [{first}].", False),
        (TRIAL, "The trial of Movewell concerned the new timetable [{first}].", False),
        (
            TRIAL,
            "The trial of Movewell, which it has withdrawn, found that the new timetable cut accidents [{first}].",
            False,
        ),
        (PRICE, f"{NAMED[:-1]} [{{first}}]. By a later mail it is 2.30 EUR in 2026 [{{second}}].", False),
        (PRICE, f"{NAMED[:-1]} [{{first}}].\n\nBy a later mail it is 2.30 EUR in 2026 [{{second}}].", True),
        (PRICE, f"{NAMED[:-1]} [{{first}}]. A later mail followed [{{second}}].", True),
        (
            TRIAL,
            f"{WITHDRAWN[:-1]} [{{first}}]. It withdrew it, since they were counted in other streets [{{second}}].",
            False,
        ),
        (TRIAL, f"{WITHDRAWN[:-1]} [{{first}}]. Its director signed the trial [{{second}}].", True),
        (STUDY, "With an AP-30 in class, sick days fell by 41 % [{first}].", True),
        (STUDY, "The study of the AP-30 took two winters [{first}].", False),
        (STUDY, "The study asked 41 % of all schools [{first}].", False),
        (LONGER, "In trials of at least six months, Nadrol did most, by 1.7 days [{first}].", True),
        (LONGER, "Four trials were of six months [{first}].", False),
        (RENT, "The rent is 1,000 EUR a month [{first}].", True),
        (RENT, "The rent is 1,000 EUR a month, and 1,200 EUR from May [{first}].", False),
        (
            STUDY,
            "Sick days due to infections fell by 41 % in classes with the AP-30, which is not valid [{first}].",
            False,
        ),
    ],
)
def test_a_statement_that_the_critic_knows_to_be_corrected_is_disputed(
    statements: tuple[str, str], sentence: str, disputed: bool
) -> None:
    """Its own source says it word for word, so that neither words nor a judge object to it."""
    found = claim_of_corrected(*statements, sentence)
    assert (found.corroboration is Corroboration.contradicted) is disputed
    assert not disputed or [quote.text for quote in found.contradicting] == [statements[1]]


@pytest.mark.parametrize(
    ("sentence", "disputed"),
    [
        ("Nadrol lowered the days by 1.3 [{first}].", True),
        ("Of Nadrol, 7 trials were counted [{first}].", True),
        ("Belim lowered the days by 1.2, in 9 trials [{first}].", False),
        ("Nadrol lowered the days by 0.9, and not by 1.3 [{first}].", False),
        ("Nadrol lowered the days by 1.3, before that was corrected [{first}] [{second}].", False),
    ],
)
def test_one_figure_of_a_corrected_row_is_disputed_beside_the_name_of_the_row(sentence: str, disputed: bool) -> None:
    found = claim_of_corrected(COUNTED, TWICE, sentence, row="Nadrol | 7 | -1.3")
    assert (found.corroboration is Corroboration.contradicted) is disputed


@pytest.mark.parametrize("holds", ["both", "claim_a"])
def test_a_disagreement_disputes_no_side_that_may_hold(holds: Literal["both", "claim_a"]) -> None:
    found = claim_of_corrected(NAMED, CORRECTED, f"{NAMED[:-1]} [{{first}}].", holds)
    assert found.corroboration is not Corroboration.contradicted


def claim_of_corrected(
    said: str, instead: str, sentence: str, holds: Literal["both", "claim_a", "claim_b"] = "claim_b", *, row: str = ""
) -> Claim:
    """Return the check of a sentence that may cite a `first` and a `second` source, of which the critic knows both.

    `row`: what of the first one is corrected, if not all of it.
    """
    texts = [in_memory(said, url="https://a.example.org/1"), in_memory(instead, url="https://a.example.org/2")]
    first, second = (text.source.source_id for text in texts)
    known = Contradiction(
        claim_a=row or said, claim_b=instead, source_ids=[first, second], other_source_ids=[second], holds=holds
    )
    section = ReportSection(heading="", markdown=sentence.format(first=first, second=second))
    report = Report(title="", query="", extractive=False, sources=[], sections=[section], contradictions=[known])
    return check_claims(report, texts, {})[0]


YEARS = (
    "# Yearbook\n\nThe harbour was dredged.\n\n| Year | Cargo |\n|---|---|\n| 2022 | 398,000 t |\n| 2023 | 412,000 t |"
)
QUAYS = "Last year brought much wind. The quays saw cargo of 412,000 t in 2023. The mayor was pleased."


@pytest.mark.parametrize("claim", ["Velmoor harbour | 412,000 t", "Cargo in 2023 | 412,000 t", "Handled | 412,000 t"])
def test_a_row_is_verified_by_two_sources_that_hold_its_figure(claim: str) -> None:
    both = [in_memory(YEARS, url="https://a.example.org/y"), in_memory(QUAYS, url="https://b.example.com/q")]
    search, ids = Search(both), [text.source.source_id for text in both]
    told = Judged(Verdict.supported, search.passages("cargo 412,000", least=0.1, most=1))
    assert corroborate(claim, search, {}, "table", ids, judged=told).corroboration is Corroboration.verified
    other = claim.replace("412,000", "398,000")
    told = Judged(Verdict.supported, search.passages("398,000", least=0.1, most=1))
    assert corroborate(other, search, {}, "table", ids, judged=told).corroboration is Corroboration.single_source


@pytest.mark.parametrize(
    ("head", "corroboration"),
    [
        ("Station | NO2 2025 (µg/m³)", Corroboration.verified),
        ("Station | NO2, mean of 2025", Corroboration.verified),
        ("Station | Days above the limit 2025", Corroboration.single_source),
    ],
)
def test_the_same_figures_below_other_heads_are_no_second_witness(head: str, corroboration: Corroboration) -> None:
    table, row = "# Kornmarkt and Ostring\n\n| {head} |\n|---|---|\n| {row} |\n| Ostring | 26 |", "Kornmarkt | 31"
    heads = [("Station | NO2 2025 (µg/m³)", "https://a.example.org/n"), (head, "https://b.example.com/p")]
    texts = [in_memory(table.format(head=one, row=row), url=url) for one, url in heads]
    own = texts[0].source.source_id
    section = ReportSection(heading="", markdown=f"| {heads[0][0]} |\n|---|---|\n| {row} [{own}] |")
    report = Report(title="", query="", extractive=False, sources=[], sections=[section])
    assert check_claims(report, texts, {})[0].corroboration is corroboration


@pytest.mark.parametrize(
    ("row", "verdict"),
    [
        ("| oil | Annandale | | | order 500 litres |", Verdict.supported),
        ("| oil | Annandale | | order 500 litres | |", Verdict.not_checked),  # below another head
        ("| water | | 614 | | |", Verdict.supported),
    ],
)
def test_a_quoted_row_with_empty_cells_is_supported_below_the_same_heads(row: str, verdict: Verdict) -> None:
    table = "| supply | from | reading | read on | to do |\n|---|---|---|---|---|\n"
    source = f"# Meters\n\n{table}| oil | Annandale | | | order 500 litres |\n| water | | 614 | | |"
    text = in_memory(source, url="docs:meters.csv")
    section = ReportSection(heading="", markdown=f"{table}{row[:-1]} [{text.source.source_id}] |")
    report = Report(title="", query="", extractive=False, sources=[], sections=[section])
    assert check_claims(report, [text], {})[0].verdict is verdict


def test_the_first_sentence_of_a_numbered_item_is_supported_and_one_that_leaves_out_its_beginning_is_not() -> None:
    items = "# Minutes\n\n1. Water came in. No file was hit.\n2. Until May, fees: a new list. Reading stays free."
    text = in_memory(items, url="docs:minutes.md")
    cited = f"[{text.source.source_id}]"
    section = ReportSection(heading="", markdown=f"1. Water came in. {cited}\n\nFees: a new list. {cited}")
    report = Report(title="", query="", extractive=False, sources=[], sections=[section])
    found = [claim.verdict for claim in check_claims(report, [text], {})]
    assert found == [Verdict.supported, Verdict.not_checked]


def corroboration_by(own: str, other: str, claim: str, found_by: str) -> Corroboration | None:
    """Return how a claim is corroborated that two sources are cited for, when the judge found passages of both."""
    texts = [in_memory(own, url="https://a.example.org/c"), in_memory(other, url="https://b.example.com/m")]
    search, ids = Search(texts), [text.source.source_id for text in texts]
    told = Judged(Verdict.supported, search.passages(found_by, least=0.0, most=4))
    assert {passage.text.source.source_id for passage in told.passages} == set(ids)
    return corroborate(claim, search, {}, cited=ids, judged=told).corroboration


@pytest.mark.parametrize(
    ("mail", "corroboration"),
    [
        ("Invoice 6 is over EUR 200,000 net.", Corroboration.single_source),
        ("Invoice 6 is over EUR 200,000 net, of which you keep 5 %, as agreed.", Corroboration.single_source),
        ("The contract sets 5 % as retention, and invoice 6 is EUR 200,000 net.", Corroboration.verified),
    ],
)
def test_two_sources_that_each_say_a_part_are_no_two_witnesses(mail: str, corroboration: Corroboration) -> None:
    contract = "From each instalment 5 % are retained until acceptance."
    if corroboration is Corroboration.verified:
        contract += " Invoice 6 over EUR 200,000 net is such an instalment."
    claim = "Of invoice 6, EUR 200,000 net, 5 % are retained, which is EUR 10,000."
    assert corroboration_by(contract, mail, claim, "5 % retained invoice 200,000") is corroboration


@pytest.mark.parametrize(
    ("other", "corroboration"),
    [
        ("Keepwell stores its data in Dublin.", Corroboration.single_source),
        ("Keepwell stores in Dublin, but Nordvault's data lie in Sweden.", Corroboration.verified),
    ],
)
def test_who_says_a_part_in_words_alone_is_no_second_witness_either(other: str, corroboration: Corroboration) -> None:
    own = "Nordvault stores its data in Sweden."
    if corroboration is Corroboration.verified:
        own += " Keepwell stores its data in Dublin."
    claim = "Nordvault stores its data in Sweden, and Keepwell in Dublin."
    assert corroboration_by(own, other, claim, "stores data Sweden Dublin") is corroboration


@pytest.mark.parametrize(
    ("claim", "corroboration"),
    [
        ("Together they cost 592 EUR.", Corroboration.single_source),
        ("They cost 500 EUR and 92 EUR.", Corroboration.single_source),
        ("Both are due when the goods leave.", Corroboration.verified),
        ("The two are due when the goods leave.", Corroboration.verified),
    ],
)
def test_nobody_witnesses_what_was_worked_out_from_two_sources(claim: str, corroboration: Corroboration) -> None:
    texts = [
        in_memory("The move costs 500 EUR. Both are due when the goods leave.", url="https://a.example.org/move"),
        in_memory("The insurance costs 92 EUR. All is due when your goods leave.", url="https://b.example.com/risk"),
    ]
    told = Judged(Verdict.supported, Search(texts).passages("costs EUR due pay goods", least=0.0, most=4))
    ids = [text.source.source_id for text in texts]
    assert {passage.text.source.source_id for passage in told.passages} == set(ids)
    assert corroborate(claim, Search(texts), {}, cited=ids, judged=told).corroboration is corroboration


def test_lines_of_a_log_do_not_contradict_each_other() -> None:
    days = [
        f"2026-03-0{day} 02:00:0{second} INFO backup {what}"
        for day in range(1, 6)
        for second, what in ((1, "started"), (2, "ended"))
    ]
    log = in_memory("\n".join(f"- {line}" for line in days), url="docs:backup.log")
    for line in days:
        found = corroborate(line, Search([log]), {}, "item", [log.source.source_id])
        assert (found.corroboration, found.contradicting) == (Corroboration.single_source, []), line


def test_what_amends_or_replaces_a_source_neither_verifies_nor_contradicts_it() -> None:
    own = in_memory(BRIDGE, "BR-14: The bridge", "https://a.example.org/br-14")

    def found(text: str, title: str = "BR-21") -> Corroboration:
        other = in_memory(text, title, "https://b.example.com/br-21")
        read = Search([own, other])
        return corroborate(CLAIM, read, {}, cited=[own.source.source_id]).corroboration

    assert found(GUIDE) is Corroboration.verified
    assert found(f"Updates: 14\n\n{GUIDE}") is Corroboration.single_source
    assert found(f"A guide\n\nStatus: Draft\nUpdates: 14\n\n{GUIDE}") is Corroboration.single_source
    assert found(f"{GUIDE}\n\nA header has such lines:\n\n    Updates: 14") is Corroboration.verified
    assert found(GUIDE, "Supplement to BR-14") is Corroboration.single_source
    newer = in_memory(f"This guide is superseded by BR-14.\n\n{OTHER}", "BR-9", "https://b.example.com/br-9")
    for one, corroboration in ((newer, Corroboration.single_source), (in_memory(OTHER), Corroboration.contradicted)):
        kept = corroborate(CLAIM, Search([own, one]), {}, cited=[own.source.source_id])
        assert kept.corroboration is corroboration


@pytest.mark.parametrize(
    ("title", "dated", "host", "corroboration"),
    [
        ("Bridges of Orlin: yearbook 2019", "2019-04-02", "a.example.org", Corroboration.single_source),
        ("Bridges of Orlin: yearbook 2019", "2019-04-02", "b.example.com", Corroboration.contradicted),
        ("Bridges of Orlin: yearbook 2023", "2023-04-02", "a.example.org", Corroboration.contradicted),
        ("Bridges of Orlin: yearbook 2021", "2021", "a.example.org", Corroboration.contradicted),
        ("Bridges of Orlin: yearbook 2019", "", "a.example.org", Corroboration.single_source),
        ("Bridges of Orlin: yearbook 2023", "", "a.example.org", Corroboration.contradicted),
        ("Bridges of Orlin: guide 2019", "", "a.example.org", Corroboration.contradicted),
        ("Crossings of the strait in figures", "2019-04-02", "a.example.org", Corroboration.contradicted),
    ],
)
def test_what_an_earlier_edition_of_its_source_says_does_not_contradict_a_claim(
    title: str, dated: str, host: str, corroboration: Corroboration
) -> None:
    own = in_memory(BRIDGE, "Bridges of Orlin: yearbook 2021", "https://a.example.org/2021")
    other = in_memory(OTHER, title, f"https://{host}/other")
    read = [
        StoredText(one.source.model_copy(update={"published": day}), one.text)
        for one, day in ((own, "2021-04-02"), (other, dated))
    ]
    found = corroborate(CLAIM, Search(read), {}, cited=[own.source.source_id])
    assert found.corroboration is corroboration


def test_two_editions_of_a_document_are_no_two_witnesses() -> None:
    texts = [
        StoredText(Source(source_id=f"S00000{n}", url=f"docs:{n}.md", title=title, kind="document"), said)
        for n, (title, said) in enumerate((("Bridges: guide 2019", GUIDE), ("Bridges: guide 2021", BRIDGE)))
    ]
    assert corroborate(CLAIM, Search(texts), {}, cited=["S000001"]).corroboration is Corroboration.single_source
    other = StoredText(texts[0].source.model_copy(update={"title": "Crossings of the strait"}), GUIDE)
    assert corroborate(CLAIM, Search([other, texts[1]]), {}, cited=["S000001"]).corroboration is Corroboration.verified


@pytest.mark.parametrize(
    ("claim", "other", "same"),
    [
        ("Gauges can be set, go up, and go down.", "A gauge can go up, can go down and can be set.", True),
        ("The excess is 150 EUR for each loss.", "Your excess is 150 EUR for each loss.", True),
        ("The excess is 150 EUR for each loss.", "Your excess is 300 EUR for each loss instead of 150 EUR.", False),
        ("Registering blueprints is done once.", "Blueprints provide a means for extensions to register.", False),
        ("`delta()` (For gauge histograms.)", "A histogram may show a state: then it is a gauge histogram.", False),
        (
            "The timeout argument sets the seconds to wait.",
            "Attributes: url, host, timeout, seconds, wait, argument, sets, retries, cookies, headers, verify, "
            "proxies, stream, params, auth, hooks and cert.",
            False,
        ),
    ],
)
def test_another_source_says_a_claim_only_in_a_sentence_that_says_the_same(claim: str, other: str, same: bool) -> None:
    own, text = in_memory(claim, url="https://a.example.org/x"), in_memory(other, url="https://b.example.com/x")
    found = corroborate(claim, Search([own, text]), {}, cited=[own.source.source_id])
    assert own.source in [passage.text.source for passage in found.corroborating]
    assert (text.source in [passage.text.source for passage in found.corroborating]) is same


@pytest.mark.parametrize(("title", "corroboration"), [("Otter", "contradicted"), ("Marlin", "single_source")])
def test_a_source_about_another_thing_by_its_title_does_not_contradict_a_claim(title: str, corroboration: str) -> None:
    """The claim is about what the source that it cites is about."""
    claim = "The dry weight is 23 kilograms."
    own = in_memory(f"# Otter\n\n{claim}", url="https://a.example.org/otter", title="Otter pumps - Encyclopedia")
    other = in_memory("The dry weight is 47 kilograms.", url="https://b.example.com/x", title=f"Tried out: the {title}")
    found = corroborate(claim, Search([own, other]), {}, cited=[own.source.source_id])
    assert found.corroboration == corroboration


@pytest.mark.parametrize(
    ("by", "verdict"),
    [("13 pairs", "not_checked"), ("25 %", "not_checked"), ("14 pairs", "not_stated"), ("33 %", "not_stated")],
)
def test_how_far_a_number_fell_follows_from_two_that_a_source_states(by: str, verdict: str) -> None:
    text = in_memory("The series of pairs is 48 (2019), 45 (2020), 52 (2021, corrected) and 39 (2022).")
    claim = ClaimSentence(0, f"From 2021 to 2022 the number fell by {by}.", (text.source.source_id,), "prose")
    assert check(claim, Search([text])).verdict == verdict


def test_a_number_of_a_list_is_no_claim() -> None:
    section = ReportSection(heading="H", markdown="- 1\\. While it runs, nothing is lost. [S1a2b3c]")
    assert [found.sentence for found in claims_of([section])] == ["While it runs, nothing is lost."]


def test_a_claim_that_no_source_supports_is_unverified() -> None:
    claim = "The harbour of Lyndhaven freezes in most winters."
    assert corroborate(claim, Search([in_memory(BRIDGE)]), {}).corroboration is Corroboration.unverified


def test_a_note_keeps_to_the_words_of_its_sources() -> None:
    bridge, guide, _ = (source_text(url) for url in PAGES)
    b, g = bridge.source_id, guide.source_id
    kept = [
        f"It spans 503 metres and carries eight lanes. [{b}]",
        f"THE BRIDGE COST 4.2 million pounds … than the council of\nLyndhaven had planned [{b}]",
        f"A sign says: 'No \\ anchors' - in a font called \"Brücke\". [{b}]",
        f"Mayor Edith Vance opened the Lyndhaven Bridge on 12 March 1932, a Saturday. [{g}]",
    ]
    elsewhere = f"Eight lanes lead over the water. [{b}]"
    close = f"The steel for the bridge came from Harmund. [{b}]"
    in_other_words = f"The bridge is painted green. [{b}]"
    made_up = [f"It spans 603 metres and carries eight lanes. [{b}]"]
    note = Note(
        step_id=1,
        summary_title="The bridge",
        summary="",
        extraction=[*kept, elsewhere, close, in_other_words, *made_up],
        is_useful=True,
        artifact_file="a.json",
        source_ids=[b, g],
    )
    grounded = ground(note, [bridge, guide])
    assert grounded.dropped == made_up
    assert grounded.note.extraction == [
        *kept,
        f"Eight lanes lead over the water. [{g}]",
        f"The steel for the bridge came from Harmund. [{b}]",
        f"The bridge is painted green. [{b}]",
    ]


def test_text_without_spaces_is_checked_too() -> None:
    page = in_memory("大橋は1932年3月12日に開通した。全長は503メートルである。", url="https://jp.example.jp/")
    assert nearest_in("大橋は1932年に開通した。", [page]).likeness is Likeness.alike
    assert nearest_in("全長は603メートルである。", [page]).likeness is Likeness.apart
    assert checked("全長は503メートルである。", [page]).verdict is Verdict.supported
    assert checked("全長は603メートルである。", [page]).verdict is Verdict.not_stated


def test_no_source_no_support() -> None:
    source = Source(source_id="S000000", url="https://a.example.org/", title="", kind="web")
    assert nearest_in("", [in_memory(BRIDGE)]).likeness is Likeness.apart
    assert checked("", [in_memory(BRIDGE)]).verdict is Verdict.not_checked
    assert nearest_in(CLAIM, []).passages == checked(CLAIM, []).passages == []
    assert checked(CLAIM, []).verdict is Verdict.not_checked
    assert stored_texts({}, [ToolResult(call=ToolCall(tool="t", input=""), artifact_file="a", sources=[source])]) == []


def test_a_sentence_said_whole_is_found_behind_one_that_says_more() -> None:
    limited = "The bridge is open to lorries on Sundays, unless it freezes."
    claim = "The bridge is open to lorries on Sundays."
    assert checked(claim, [in_memory(limited)]).verdict is Verdict.not_checked
    assert checked(claim, [in_memory(f"{limited}\n\n{claim}")]).verdict is Verdict.supported


WORDS = """
the bridge Anna Gruber Harmund not never rose fell more 503 metres 1,000 1.5 million $4 5 % five in 1932 12 March
2019-03-12 COVID-19 3.11.2 the WHO U.S. 1990s 2010-15 19th century, May costs; (“quoted”) **bold** before - – 10/66
20.000 °C -7 twenty-one Straße 大橋は1932年に開通した Prices
"""
said = st.lists(st.sampled_from(WORDS.split()), min_size=4, max_size=25).map(" ".join)


@given(said, said.filter(re.compile(r"\w").search), said)  # one without a word is no claim
@settings(deadline=None)
@example("the the the the", "rose U.S. WHO not bridge", "the the the the")
@example("the the bridge the", "the the the the", "the the the the")
@example("the the the the", "the the the the the", "the the the the")
def test_what_a_source_says_word_for_word_is_supported(before: str, sentence: str, after: str) -> None:
    page = in_memory(f"{before}.\n\n{sentence}.\n\n{after}.")
    found = checked(sentence, [page])
    assert (found.verdict, found.score, found.complaints) == (Verdict.supported, 1.0, [])
    near = nearest_in(sentence, [page])
    assert (near.likeness, near.complaints) == (Likeness.alike, [])


@given(st.text(max_size=200), st.text(max_size=400))
def test_any_text_can_be_checked(claim: str, text: str) -> None:
    page = [in_memory(text)]
    assert 0 <= nearest_in(claim, page).score <= 1
    assert 0 <= checked(claim, page).score <= 1
    for statement in claims_of([ReportSection(heading="", markdown=claim)]):
        assert statement.sentence.strip()


def drawn_checks() -> str:
    """Return what comes of checking 160 drawn claims; names and numbers make weights whose sums differ by order."""
    chance = random.Random(0)
    words = [f"{letter}{part}{end}" for letter in "BGKMT" for part in ("arlo", "emin", "utal") for end in ("", "ven")]
    words += ["harbour", "ferry", "council", "budget", "winter", "storm", "bridge", "vote", "412", "1,930", "87"]
    said = [" ".join(chance.choices(words, k=chance.randint(4, 9))).capitalize() for _ in range(60)]
    page = [in_memory(". ".join(said))]
    claims = [" ".join(chance.choices(words, k=14)) for _ in range(160)]
    near = [nearest_in(claim, page) for claim in claims]
    by_words = [checked(claim, page) for claim in claims]
    return repr(
        [(found.likeness.name, found.score, [w[1:3] for w in found.passages]) for found in near]
        + [(found.verdict.value, found.score, [w[1:3] for w in found.passages]) for found in by_words]
    )


SECTION_OF_THREE = """### One

It opened in 1932 [S0a0a0a]. It sank in 1899 [S0a0a0a].

### Two

It sank in 1900 [S0a0a0a].

### Three

#### Of three

| Year | Ships |
|---|--:|
| 2020 | 5 [S0a0a0a] |
| 2021 | 6 [S0a0a0a] |
| 2022 | 7 [S0a0a0a] |

- It sank in 1901 [S0a0a0a].
- It floats [S0a0a0a].

```
# a comment
```"""


def test_sentences_are_taken_out_and_leave_no_holes() -> None:
    gone = {"It sank in 1899.", "It sank in 1900.", "It sank in 1901.", "2021 | 6"}
    left = without(SECTION_OF_THREE, gone)
    lines = (
        "It sank in 1899 [S0a0a0a].",
        "### Two",
        "It sank in 1900 [S0a0a0a].",
        "| 2021 | 6 [S0a0a0a] |",
        "- It sank in 1901 [S0a0a0a].",
    )
    kept = [line for line in SECTION_OF_THREE.replace(f" {lines[0]}", "").splitlines() if line and line not in lines]
    assert [line for line in left.splitlines() if line] == kept
    assert "| 2020 | 5 [S0a0a0a] |\n| 2022 |" in left, "an empty line would end the table"
    assert without(SECTION_OF_THREE, set()) == SECTION_OF_THREE
    every = {statement.sentence for statement in claims_of([ReportSection(heading="", markdown=SECTION_OF_THREE)])}
    assert "|" not in without(SECTION_OF_THREE, every)
    for verdict, mark in MARKS.items():
        assert marked(SECTION_OF_THREE, dict.fromkeys(gone, verdict)).count(mark) == len(gone)


QUOTED_SECTION = """\
It is good for all of them [S1a2b3c].

Install it with: [S1a2b3c]

```sh
pip install x

# [0] -
-
```

The options are:

- one of the options [S1a2b3c]

| Code | Meaning |
|---|---|
| 404 | not found [S1a2b3c] |

The default is 30 seconds [S1a2b3c]"""


def test_rows_items_and_code_are_claims_that_can_be_taken_out_or_marked() -> None:
    claims = claims_of([ReportSection(heading="", markdown=QUOTED_SECTION)])
    names = [claim.sentence for claim in claims]
    assert names == [
        "It is good for all of them.",
        "pip install x # [0] - -",
        "one of the options",
        "404 | not found",
        "The default is 30 seconds",
    ]
    assert {claim.source_ids for claim in claims} == {("S1a2b3c",)}
    blocks = QUOTED_SECTION.split("\n\n")
    code, items, table = "\n\n".join(blocks[1:4]), "\n\n".join(blocks[4:6]), blocks[6]
    for name, block in zip(names, [blocks[0], code, items, table, blocks[7]], strict=True):
        left = without(QUOTED_SECTION, {name})
        assert left == QUOTED_SECTION.replace(block, "").replace("\n\n\n\n", "\n\n").strip()
        assert without(left, {name}) == left
        for verdict, mark in MARKS.items():
            once = marked(QUOTED_SECTION, {name: verdict})
            assert once.count(mark) == 1
            assert marked(once, {name: verdict}) == once
            assert [claim.sentence for claim in claims_of([ReportSection(heading="", markdown=once)])] == names
    mark = MARKS[Verdict.not_stated]
    assert f"Install it with: [S1a2b3c] {mark}\n" in marked(QUOTED_SECTION, {names[1]: Verdict.not_stated})
    assert without(QUOTED_SECTION, set(names)) == ""


def test_a_claim_is_said_anew_in_the_form_and_with_the_sources_that_it_has() -> None:
    changes = {
        "It is good for all of them.": "It is good for some of them.",
        "pip install x # [0] - -": "```sh\npip install y\n```",
        "one of the options": "- another option [S2a2b3c]",
        "404 | not found": "| 404 | gone |",
    }
    text, left = with_replacements(QUOTED_SECTION, changes)
    assert left == []
    assert [(claim.sentence, claim.source_ids) for claim in claims_of([ReportSection(heading="", markdown=text)])] == [
        ("It is good for some of them.", ("S1a2b3c",)),
        ("pip install y", ("S1a2b3c",)),
        ("another option", ("S2a2b3c",)),
        ("404 | gone", ("S1a2b3c",)),
        ("The default is 30 seconds", ("S1a2b3c",)),
    ]
    assert "\n- another option [S2a2b3c]\n" in text and "- -" not in text
    unfit = {
        "It is good for all of them.": "# It is good",
        "pip install x # [0] - -": "pip install y",
        "one of the options": "One.\n\nTwo.",
        "404 | not found": "| 404 | not | found |",
    }
    assert with_replacements(QUOTED_SECTION, unfit) == (QUOTED_SECTION, list(unfit))


MANUAL = """# Status

Tracing is not supported. Drinking is, of course, allowed.

| Code | Meaning | Retry |
|---|---|---|
| 200 | ok | no |
| 404 | not found | no |
| 503 | service is not available | after 30 s |

Install it with:

```sh
pip install frob
if x != 3:
    run(x)
```

| Year | Visitors |
|---|--:|
| 2019 | 4.2 million |
| 2020 | 120,000 |
"""


@pytest.mark.parametrize(
    ("kind", "claim", "likeness", "verdict", "said"),
    [
        ("table", "404 | not found", "alike", "supported", "| 404 | not found | no |"),
        ("table", "2019 | 4,200,000", "alike", "supported", "| 2019 | 4.2 million |"),
        ("table", "405 | not found", "apart", "not_stated", "“405” is not in the row"),
        ("table", "404 | ok", "apart", "not_checked", "the cells are of different rows"),
        ("table", "2019 | 120,000", "apart", "not_checked", "the cells are of different rows"),
        ("table", "503 | service is available", "near", "not_checked", "denies"),
        (
            "code",
            "pip install frob if x != 3: run(x)",
            "alike",
            "supported",
            "pip install frob\nif x != 3:\n    run(x)",
        ),
        ("code", "pip install frob if x == 3: run(x)", "near", "not_checked", "does not have this code word for word"),
        ("code", "pip install frob if x != 4: run(x)", "apart", "not_checked", "the number 4 is not in the quote"),
        ("prose", "Tracing is not supported.", "alike", "supported", "Tracing is not supported."),
        ("prose", "not supported", "alike", "not_checked", ""),
        ("prose", "supported", "near", "not_checked", "denies"),
        ("prose", "Tracing is supported.", "near", "not_checked", "denies"),
    ],
)
def test_what_is_quoted_word_for_word_is_found_in_its_row_its_code_or_its_clause(
    kind: Kind, claim: str, likeness: str, verdict: str, said: str
) -> None:
    page = [in_memory(MANUAL)]
    near, found = nearest(claim, Search(page), None, kind), checked(claim, page, kind)
    assert (near.likeness.name, found.verdict.value) == (likeness, verdict)
    assert said in (found.passages[0].words if found.verdict is Verdict.supported else " ".join(near.complaints))


def test_looking_for_the_very_words_takes_no_longer_where_they_nearly_are() -> None:
    for text, claim in [("a " * 300_000, "a " * 400 + "b"), ("a" + "." * 400_000 + "a" + "-" * 400_000, "a a a")]:
        assert list(places(claim, text)) == []
    assert list(places("It cost 4", "It cost 4.2")) == list(places("rose 5 in all here", "rose -5 in all here")) == []
    text = "**Set** `x`, İ\n| then | go! |"
    ((start, end),) = places("set x, i then go!", text)
    assert text[start:end] == "Set** `x`, İ\n| then | go!"


def test_a_note_may_quote_rows_below_a_header_code_and_items() -> None:
    text = SourceText(source_id="S1a2b3c", url="https://a.example.org/", title="", kind="web", text=MANUAL)
    table = "| Code | Meaning | Retry |\n|---|---|---|\n"
    kept = [
        f"{table}| 404 | not found | no | [S1a2b3c]",
        f"{table}| 503 | service is not available | after 30 s |\n[S1a2b3c]",
        "Install it with:\n\n```sh\npip install frob\nif x != 3:\n    run(x)\n``` [S1a2b3c]",
    ]
    other_row = f"{table}| 404 | ok | no |"
    other_code = "Install it with:\n\n```sh\npip install frob\n    run(x)\n```"
    dropped = [
        f"{table}| 405 | not found | no | [S1a2b3c]",
        "Install it with:\n\n```sh\npip install frob\n    run(y)\n``` [S1a2b3c]",
    ]
    note = Note(
        step_id=1,
        summary_title="Codes",
        summary="",
        extraction=[*kept, f"{other_row} [S1a2b3c]", f"{other_code} [S1a2b3c]", *dropped],
        is_useful=True,
        artifact_file="a.json",
        source_ids=["S1a2b3c"],
    )
    grounded = ground(note, [text])
    assert grounded.note.extraction == [*kept, f"{other_row} [S1a2b3c]", f"{other_code} [S1a2b3c]"]
    assert grounded.paraphrased == [f"{other_row} [S1a2b3c]", f"{other_code} [S1a2b3c]"]
    assert grounded.dropped == dropped
