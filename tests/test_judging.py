"""Claims judged by what they mean: what the judge is shown, what its answers come to, and what a run does with them."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.world.web import all_pages
from fathom.config.groups import Judging, ReportSettings, RoleModel
from fathom.errors import InvalidInput
from fathom.evidence.bearing import Bearing, place_of
from fathom.evidence.claims import MARKS, ClaimSentence, claims_of, marked, with_replacements
from fathom.evidence.doubts import misplaced, unfounded
from fathom.evidence.judging import (
    JUDGEMENTS,
    Exchange,
    Known,
    bearing_on,
    judge,
    key_of,
    requests_for,
    settled,
    supporting,
    unsettled,
)
from fathom.evidence.passages import Search
from fathom.evidence.stored import StoredText
from fathom.evidence.verify import Checking, check_claims
from fathom.evidence.words import check
from fathom.flows.replay import replay
from fathom.flows.runs.comparing import verified
from fathom.flows.runs.stored import find
from fathom.llm.base import ModelCall
from fathom.llm.dialects import Dialect
from fathom.llm.prompts import messages
from fathom.models import Corroboration, Ending, Report, ReportSection, RunResult, Source, Verdict
from fathom.report.document import Table, blocks_of
from fathom.roles import JUDGE
from fathom.roles.judge import JudgeAnswer, JudgeRequest, Opinion
from fathom.storage.runs import runs
from fathom.storage.store import ArtifactStore
from fathom.text.urls import source_ids
from tests.conftest import ROOT, FathomCLI
from tests.inprocess import investigated, kept
from tests.stubs import Stubs
from tests.stubs.reading import Prompt

pytestmark = pytest.mark.usefixtures("home")

YEARBOOK = """Statistical yearbook: crossings with a toll

| Crossing | Main span | Open since | Toll for a car |
|---|---|---|---|
| Orlin Bridge | 312 metres | 1931 | 3 crowns |
| Vasse Viaduct | 488 metres | 1958 | 5 crowns |
| Mirren Span | 176 metres | 1894 | 2 crowns |
"""
AUTHORITY = """# Vasse Viaduct

Status: open
Number: RA-17

Inspectors found the bearings in good order. Between the two towers it crosses 488 m of open water. In strong wind it is
closed to high vehicles.

## History

Work began in 1954. Tomas Arkwell drew the plans, after he had won the competition against eleven others. The proposal
to make the crossing free of charge was not accepted; its cost was not outweighed by the expected savings.

## Maintenance

Cyclists share the northern lane with pedestrians. The lamps may be replaced by less bright ones. A yearly inspection is
recommended, but not required. {filler}

To read the traffic of a day:

```
traffic --bridge vasse --day 2024-03-01
```
"""
FILLER = " ".join(
    f"The depot counts {n} brooms, and painter number {n} begins again at the other end of the railing."
    for n in range(7, 60)
)
SOURCES = {
    "S00000a": ("Statistical yearbook", "https://statistics.example/yearbook", YEARBOOK),
    "S00000b": ("Vasse Viaduct", "https://roads.example/vasse", AUTHORITY.format(filler=FILLER)),
}
TEXTS = [
    StoredText(Source(source_id=i, url=url, title=title, kind="web"), text, f"{i}.txt")
    for i, (title, url, text) in SOURCES.items()
]
TRUE = """The Vasse Viaduct spans nearly half a kilometre of water, 0.488 km to be exact [S00000b].
High vehicles may not use it when the wind is strong [S00000b].
It was Tomas Arkwell who designed it, the winner among twelve [S00000b].
Four years after work had begun, in 1958, it was opened [S00000a][S00000b].
Nobody has to inspect it every year; that is only advised [S00000b].
Ein Auto zahlt fünf Kronen [S00000a].
The authority gives it the number RA-17 [S00000b].
The yearbook does not say who designed the bridges [S00000a].
The oldest of the three is therefore also the shortest.

| Crossing | Length | Year |
|---|---|---|
| Orlin Bridge | 312 m | 1931 [S00000a] |
| Vasse Viaduct | 488 m | 1958 [S00000a] |
| Mirren Span | 176 m | 1894 [S00000a] |

- A day's traffic is read with `traffic --bridge vasse` [S00000b].
"""
FALSE = {
    "number": ("The Vasse Viaduct crosses 4.88 km of water [S00000b].", "488 m of open water"),
    "date": ("The Mirren Span has been open since 1931 [S00000a].", "| Mirren Span | 176 metres | 1894"),
    "name": ("Per Lindqvale drew the plans of the Vasse Viaduct [S00000b].", "Tomas Arkwell drew the plans"),
    "status": ("The proposal to make the crossing free was accepted [S00000b].", "was not accepted"),
    "negation cut off": ("Its cost was “outweighed by the expected savings” [S00000b].", "its cost was not outweighed"),
    "scope": ("High vehicles may never use the Vasse Viaduct [S00000b].", "In strong wind it is"),
    "hedge": ("The lamps will be replaced by less bright ones [S00000b].", "The lamps may be replaced"),
    "exchanged": ("Orlin Bridge costs 5 crowns and Vasse Viaduct 3 crowns [S00000a].", "488 metres | 1958 | 5 crowns"),
    "row": ("| Vasse Viaduct | 312 m | 1958 [S00000a] |", "488 metres | 1958 | 5 crowns"),
    "code": ("Traffic is read with `traffic --all` [S00000b].", "traffic --bridge vasse --day"),
    "absence": ("The authority does not say who drew the plans [S00000b].", "Tomas Arkwell drew the plans"),
    "other language": ("Tomas Arkwell gewann gegen zwanzig andere [S00000b].", "against eleven others"),
}
"""False sentences of each kind, with words of the place that decides."""


def statements(markdown: str) -> list[ClaimSentence]:
    return claims_of([ReportSection(heading="Bridges", markdown=markdown)])


def shown(requests: Sequence[JudgeRequest]) -> str:
    return "\n".join(passage.text for request in requests for _, passage in request.passages.values())


def test_passages_that_have_next_to_nothing_of_a_claim_are_not_shown_although_there_is_room() -> None:
    """A name that a whole page is about says nothing of its sentences; a second look is given what is left."""
    idle = [
        f"Vasse keeps depot {n}, where painters of Vasse store {n} brooms and sing old songs at noon."
        for n in range(60)
    ]
    page = "\n\n".join(
        [*idle[:30], "The bridge of Vasse was closed on 4 May 1996, after an anchor cable had frayed.", *idle[30:]]
    )
    text = StoredText(Source(source_id="S00000c", url="https://v.example", title="Vasse", kind="web"), page, "c.txt")
    claim = statements("The bridge of Vasse was closed on 4 May 1996 since a cable had frayed [S00000c].")
    (first,), (again,) = (
        requests_for(claim, Bearing([text]), {key_of(claim[0]): Known(look_for, [])}, again=bool(look_for))
        for look_for in ("", "songs of the painters")
    )
    assert "4 May 1996" in shown([first])
    assert shown([first]).count("brooms") <= 5, "beside the beginning, and the paragraph itself"
    assert shown([again]).count("brooms") > 5


def test_headings_and_contexts_are_said_once_for_what_they_are_about_and_a_title_not_again() -> None:
    requests = requests_for(statements(TRUE), Bearing(TEXTS))
    prompt = messages(ModelCall(JUDGE, requests[0], RoleModel(model="openai/stub")), Dialect())[1]["content"]
    below = [passage.headings for _, passage in requests[0].passages.values() if passage.headings]
    assert below.count("Maintenance") > 1
    assert re.findall(r"^\((.*)\)$", prompt, re.MULTILINE) == ["Maintenance"], "without the title above it"
    assert prompt.count("Crossing | Length | Year") == 1
    assert prompt.count("context: the same") == 2, "the other two rows"


def answering(decide: Callable[[str, JudgeRequest], Opinion | None]) -> tuple[Any, list[JudgeRequest]]:
    """Return a judge that decides each claim by its sentence and the request, and the requests it was sent."""
    requests: list[JudgeRequest] = []

    async def ask(request: JudgeRequest) -> tuple[JudgeAnswer, str]:
        requests.append(request)
        found = ((claim.number, decide(claim.sentence, request)) for claim in request.claims)
        return JudgeAnswer(opinions=[o.model_copy(update={"claim": n}) for n, o in found if o]), "scripted"

    return ask, requests


def judged(
    markdown: str, decide: Callable[[str, JudgeRequest], Opinion | None], question: str = ""
) -> tuple[list[Exchange], list[JudgeRequest]]:
    ask, requests = answering(decide)
    return asyncio.run(judge(statements(markdown), Bearing(TEXTS), ask, question=question)), requests


def supported(_sentence: str, _request: JudgeRequest) -> Opinion:
    return Opinion(claim=0, verdict=Verdict.supported, passages=[1])


# -- words alone ------------------------------------------------------------------------------------------------------


def test_words_alone_object_to_nothing_true_and_support_nothing_false() -> None:
    search = Search(TEXTS)
    true = {s.sentence: check(s, search) for s in statements(TRUE)}
    assert not [sentence for sentence, found in true.items() if found.verdict.objects]
    false = {
        kind: check(statements(f"{HEAD if kind == 'row' else ''}{said}")[-1], search)
        for kind, (said, _) in FALSE.items()
    }
    assert not [kind for kind, found in false.items() if found.verdict is Verdict.supported]
    assert false["name"].verdict is Verdict.not_stated and "Lindqvale" in false["name"].complaints[0]
    assert false["number"].verdict is Verdict.not_stated and "4.88 km" in false["number"].complaints[0]


def test_words_alone_object_to_no_true_sentence_of_a_strong_writer() -> None:
    pages = {page.url: page for page in all_pages()}
    lines = (ROOT / "tests/strong_drafts.jsonl").read_text(encoding="utf-8").splitlines()
    for draft in map(json.loads, lines):  # of first drafts of reports over the closed world
        urls = [f"http://{page.replace('/', '.example:8008/', 1)}" for page in draft["pages"]]
        ids = source_ids(urls)
        texts = [
            StoredText(Source(source_id=ids[url], url=url, title=pages[url].title, kind="web"), pages[url].markdown)
            for url in urls
        ]
        claim = draft["claim"]
        for number, url in enumerate(urls, 1):
            claim = claim.replace(f"[{number}]", f"[{ids[url]}]")
        said = statements(f"{draft['head']}\n{claim}" if draft["head"] else claim)[-1:]
        found = [check(s if s.source_ids else s._replace(beside=tuple(ids.values())), Search(texts)) for s in said]
        assert found and not any(one.verdict.objects for one in found), (draft["claim"], found)


HEAD = "| Crossing | Length | Year |\n|---|---|---|\n"


TRIALS = """# Trials

| Drug | Trials | Difference (days) | Interval |
|---|---|---|---|
| Belim | 9 | -1.2 | -1.6 to -0.8 |
| Nadrol | 7 | -0.9 | none |
| Amitr | 4 | -1.0 | wide |
| Amitr | 2 | -0.2 | none |

The equipment in the cellar may be thrown away, except for the leased oven. Of five, two stopped within eight weeks.
"""


@pytest.mark.parametrize(
    ("said", "by_words"),
    [
        ("The equipment in the cellar may be thrown away [S00000c].", False),  # the exception is left out
        ("The equipment in the cellar may be thrown away, except for the leased oven [S00000c].", True),
        ("Two stopped within eight weeks [S00000c].", False),
        ("| Drug | Trials |\n|---|---|\n| Belim | 9 [S00000c] |", True),
        ("| Drug | Difference | Interval |\n|---|---|---|\n| Belim | -1.2 | -1.6 to -0.8 [S00000c] |", True),
        ("| Drug | Difference (hours) |\n|---|---|\n| Belim | -1.2 [S00000c] |", False),
        ("| Drug | Odds ratio |\n|---|---|\n| Belim | 1.6 [S00000c] |", False),  # a part of another cell
        ("| Drug | Difference |\n|---|---|\n| Belim | 9 [S00000c] |", False),  # the cell beside it
        ("| Drug | Trials |\n|---|---|\n| Belim | 7 [S00000c] |", False),  # the cell below it
        ("| Drug | Trials |\n|---|---|\n| Amitr | 4 [S00000c] |", False),  # one of two rows on it
        ("| Drug | Trials | Difference | Interval |\n|---|---|---|---|\n| Amitr | 4 | -1.0 | wide [S00000c] |", True),
        ("| Drug | Difference |\n|---|---|\n| Belim | 1.2 [S00000c] |", False),
    ],
)
def test_words_alone_support_only_a_whole_sentence_or_cells_below_their_own_heads(said: str, by_words: bool) -> None:
    source = Source(source_id="S00000c", url="https://trials.example/", title="Trials", kind="web")
    (verdict,) = (check(one, Search([StoredText(source, TRIALS, "c.txt")])).verdict for one in statements(said))
    assert verdict is (Verdict.supported if by_words else Verdict.not_checked)


# -- what the judge is shown ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", FALSE)
def test_a_false_sentence_of_each_kind_is_shown_with_the_passage_that_decides(kind: str) -> None:
    said, place = FALSE[kind]
    markdown = f"{HEAD}{said}" if kind == "row" else said
    asked, requests = judged(markdown, lambda _s, _r: Opinion(claim=0, verdict=Verdict.contradicted, passages=[1]))
    assert place in shown(requests)
    (found,) = settled(asked).values()
    assert found.judgement.verdict is Verdict.contradicted


def test_a_passage_begins_where_its_sentence_begins_and_is_sent_once() -> None:
    _, requests = judged(TRUE, supported)
    (request,) = requests
    texts = [passage.text for _, passage in request.passages.values()]
    assert all(not re.match(r"[a-z]", text) for text in texts), texts
    lines = [line for text in texts for line in text.split("\n") if line.strip("` ")]
    assert len(lines) == len(set(lines))
    assert len(request.claims) == len(statements(TRUE))
    assert sum(map(len, texts)) < 3_000 + 450 * len(request.claims) + 1_000


MARKS_OF_NAMES = """# Names

{filler}

The following marks must not stand in a name:

- `:=`
- `=>`
- a tilde

The depot may give a crossing a second name. The proposal of the harbour council, which had asked the painters and the
keepers of all lamps whether each of the towers should bear the name of its founder in letters of gilded iron, was read
twice in the winter session. It was turned down. Nobody asked again.

These crossings have two names:

{crossings}
"""


def shown_of(markdown: str, text: str) -> list[str]:
    """Return the passages that are shown of one long source, without its beginning."""
    stored = StoredText(TEXTS[0].source, text, "names.txt")
    ask, requests = answering(supported)
    asyncio.run(judge(statements(markdown), Bearing([stored]), ask))
    return [passage.text for request in requests for _, passage in request.passages.values() if passage.start]


def test_an_item_is_shown_with_what_introduces_it_and_a_short_list_whole() -> None:
    crossings = [f"- {name} Crossing of the {n}th district, once called {name}gate" for n, name in enumerate(NAMES, 4)]
    text = MARKS_OF_NAMES.format(filler=FILLER, crossings="\n".join(crossings))
    short = next(p for p in shown_of("A name must not have the walrus mark [S00000a].", text) if "marks must" in p)
    assert short.startswith("The following marks must not stand in a name:\n\n- `:=`\n- `=>`\n- a tilde")
    by_item = shown_of("No tilde is allowed [S00000a].", text)
    assert any("The following marks must not stand in a name" in p and "`:=`" in p for p in by_item)
    long = "\n".join(shown_of("Kestrelgate became Kestrel Crossing [S00000a].", text))
    assert crossings[NAMES.index("Kestrel")] in long and "These crossings have two names:" in long
    assert sum(line in long for line in crossings) < len(crossings)


NAMES = [f"{first}{last}" for first in ("Kes", "Mar", "Tol", "Wen", "Hal") for last in ("trel", "row", "den", "wick")]


def test_a_sentence_is_shown_with_those_beside_it_in_its_paragraph() -> None:
    text = MARKS_OF_NAMES.format(filler=FILLER, crossings="- none")
    said = "The council's proposal of gilded iron letters for the founder on each of the towers failed [S00000a]."
    (passage,) = [p for p in shown_of(said, text) if "gilded iron" in p]
    assert "It was turned down." in passage


def test_a_claim_with_more_facts_is_shown_more_passages_within_a_bound() -> None:
    facts = [
        f"Keeper {name} paints a {name.lower()}ling every {n} years, though it takes long."
        for n, name in enumerate(NAMES)
    ]
    text = "\n\n".join(f"{FILLER[n * 90 : n * 90 + 90]}.\n\n{fact}" for n, fact in enumerate(facts))
    text = f"{FILLER}\n\n{text}"

    def held(names: Sequence[str]) -> tuple[int, int]:
        passages = "\n".join(shown_of(f"Keepers {', '.join(names)} paint [S00000a].", text))
        return sum(f"Keeper {name} paints" in passages for name in names), len(passages)

    assert held(NAMES[:4])[0] == 4
    assert held(NAMES)[0] == len(NAMES)
    assert held(NAMES)[1] < 1_000 + 450 * 22 / 8 + 500


def test_a_judge_is_told_what_stands_around_a_claim() -> None:
    _, requests = judged(
        f"It opened in 1958 [S00000a]. Nobody knows why [S00000b].\n\n{HEAD}| Orlin Bridge | 1 m | 1931 [S00000a] |",
        supported,
    )
    contexts = {claim.sentence: claim.context for claim in requests[0].claims}
    assert contexts["Nobody knows why."] == "It opened in 1958."
    assert contexts["Orlin Bridge | 1 m | 1931"] == "Bridges\nCrossing | Length | Year"


def test_what_the_notes_quote_is_shown_though_the_claim_is_in_another_language() -> None:
    quoted = "Cyclists share the northern lane with pedestrians."
    ask, requests = answering(supported)
    said = statements("Radfahrer fahren dort gemeinsam mit Leuten zu Fuß [S00000b].")
    asyncio.run(judge(said, Bearing(TEXTS, [(quoted, ["S00000b"])]), ask))
    assert quoted in shown(requests)


def test_what_is_not_found_is_searched_for_in_the_words_of_the_judge() -> None:
    def decide(_sentence: str, request: JudgeRequest) -> Opinion:
        if not request.again:
            return Opinion(claim=0, verdict=Verdict.not_stated, look_for="lamps replaced by less bright ones")
        return Opinion(claim=0, verdict=Verdict.supported, passages=[1])

    asked, requests = judged("Die Beleuchtung könnte gedämpft werden [S00000b].", decide)
    assert [request.again for request in requests] == [False, True]
    assert "The lamps may be replaced" in shown(requests[1:])
    (found,) = settled(asked).values()
    assert (found.judgement.verdict, found.judgement.searches) == (Verdict.supported, 2)


def test_a_second_look_still_names_each_cited_source_with_its_header() -> None:
    other = "".join(f"Paragraph {n} is about barley and rye.\n\n" for n in range(60))
    lamps = "".join(f"Paragraph {n} is about lamps, replaced by less bright ones.\n\n" for n in range(60))
    sources = [
        TEXTS[0].source.model_copy(update={"source_id": f"S0000b{n}", "url": f"https://b{n}.example"}) for n in (1, 2)
    ]
    texts = [StoredText(one, text, f"{one.source_id}.txt") for one, text in zip(sources, (lamps, other), strict=True)]
    missing = Opinion(claim=0, verdict=Verdict.not_stated, look_for="lamps replaced by less bright ones")
    ask, requests = answering(lambda _sentence, _request: missing)
    asyncio.run(judge(statements("Lamps are dimmed [S0000b1][S0000b2]."), Bearing(texts), ask))
    (again,) = (request for request in requests if request.again)
    assert [(one.source_id, bool(one.passages)) for one in again.sources] == [("S0000b1", True), ("S0000b2", False)]


def test_a_first_not_stated_is_no_verdict_unless_the_sources_were_shown_whole() -> None:
    missing = Opinion(claim=0, verdict=Verdict.not_stated, look_for="brass")
    only_once = judged("Its lamps are of brass [S00000b].", lambda _s, r: None if r.again else missing)
    (found,) = settled(only_once[0]).values()
    assert found.judgement.verdict is Verdict.not_checked
    whole, requests = judged("Its lamps are of brass [S00000a].", lambda _s, _r: missing)
    (found,) = settled(whole).values()
    assert (found.judgement.verdict, len(requests)) == (Verdict.not_stated, 1)


CARS = "Since the toll of 1958 is banned, what do our 40 cars pay that cross the Vasse Viaduct on 7 December?"


@pytest.mark.parametrize(
    ("given", "passages", "verdict"),
    [
        (["40 cars"], [1], Verdict.supported),
        (["40 cars", "on 7 December"], [1], Verdict.supported),
        (["40 cars"], [], Verdict.not_checked),
        (["the toll of 1958 is banned", "our cars"], [1], Verdict.not_checked),
        (["50 cars"], [1], Verdict.not_checked),
    ],
)
def test_a_claim_takes_only_numbers_and_dates_from_the_question_and_rests_on_passages_all_the_same(
    given: list[str], passages: list[int], verdict: Verdict
) -> None:
    said = Opinion(claim=0, verdict=Verdict.supported, passages=passages, given=given)
    asked, requests = judged("40 cars pay 40 x 5 = 200 crowns [S00000a].", lambda _s, _r: said, CARS)
    (found,) = settled(asked).values()
    assert (found.judgement.verdict, found.judgement.given) == (verdict, given)
    call = ModelCall(spec=JUDGE, request=requests[0], model=RoleModel(model="openai/judge"))
    prompt = "\n".join(message["content"] for message in messages(call, Dialect()))
    assert f"Question:\n{CARS}\n" in prompt and "The question is no evidence." in prompt


@pytest.mark.parametrize("verdict", [Verdict.supported, Verdict.contradicted])
@pytest.mark.parametrize(("given", "looks"), [("4 crowns", 2), ("5 crowns", 1), ("40 cars", 1)])
def test_a_value_of_the_question_that_a_source_gives_otherwise_is_judged_again_with_what_it_says(
    given: str, looks: int, verdict: Verdict
) -> None:
    said = Opinion(claim=0, verdict=Verdict.supported, passages=[1], given=[given])
    question = "At 4 crowns, 5 crowns in the rain, what do our 40 cars pay on the Vasse Viaduct?"
    asked, requests = judged(
        "Each car pays the toll of the Vasse Viaduct at the rate named [S00000a].",
        lambda _sentence, request: said.model_copy(update={"verdict": verdict}) if request.again else said,
        question,
    )
    assert len(requests) == looks
    (found,) = settled(asked).values()
    assert found.judgement.verdict is (verdict if looks == 2 else Verdict.supported)
    if looks == 2:
        assert settled(asked[:1])[next(iter(settled(asked)))].judgement.verdict is Verdict.not_checked
        call = ModelCall(spec=JUDGE, request=requests[1], model=RoleModel(model="openai/judge"))
        prompt = messages(call, Dialect())[-1]["content"]
        assert (
            "you took “4 crowns” from the question" in prompt
            and "| Vasse Viaduct | 488 metres | 1958 | 5 crowns" in prompt
        )


def test_a_judge_that_is_shown_no_question_can_take_nothing_from_it() -> None:
    for question in ("", CARS):
        _, requests = judged("40 cars pay 200 crowns [S00000a].", supported, question)
        assert JUDGE.schema
        fields = JUDGE.schema(requests[0])["$defs"]["Opinion"]["properties"]
        call = ModelCall(spec=JUDGE, request=requests[0], model=RoleModel(model="openai/judge"))
        said = "\n".join(message["content"] for message in messages(call, Dialect()))
        assert ("given" in fields) is ("The question" in said) is bool(question)


def test_a_conclusion_without_citations_is_judged_by_the_sources_of_its_paragraph() -> None:
    _, requests = judged(TRUE, supported)
    (claim,) = [claim for claim in requests[0].claims if claim.sentence.startswith("The oldest of the three")]
    assert (claim.cited, claim.source_ids) == (False, ["S00000a", "S00000b"])
    assert "The yearbook does not say who designed the bridges" in claim.context


def test_a_sentence_before_a_citation_is_held_against_what_its_section_cites() -> None:
    item = "- Orlin Bridge was opened in 1931. Tomas Arkwell drew the plans of the viaduct [S00000b]."
    first, *_ = statements(f"{item}\n\nIts span is 312 metres [S00000a].")
    assert (first.source_ids, first.beside) == (("S00000b",), ("S00000a",))
    _, requests = judged(f"{item}\n\nIts span is 312 metres [S00000a].", supported)
    (claim,) = [claim for claim in requests[0].claims if claim.sentence == first.sentence]
    assert (claim.cited, claim.source_ids) == (False, ["S00000b", "S00000a"])
    assert "| Orlin Bridge | 312 metres | 1931" in shown(requests)
    missing = Opinion(claim=0, verdict=Verdict.not_stated, look_for="opened 1931")
    _, requests = judged(item.replace("viaduct [", "viaduct [S00000a]["), lambda _s, _r: missing)
    assert "| Orlin Bridge | 312 metres | 1931" in shown(requests[1:]), "a short text is searched again too"


def test_a_sentence_that_sums_up_is_shown_what_supported_the_others() -> None:
    said = ["Tomas Arkwell won against eleven rivals [S00000b].", "Pedestrians share a lane with cyclists [S00000b]."]

    def decide(sentence: str, request: JudgeRequest) -> Opinion:
        place = "eleven others" if "Arkwell" in sentence else "northern lane"
        numbers = [number for number, (_, passage) in request.passages.items() if place in passage.text]
        return Opinion(claim=0, verdict=Verdict.supported, passages=numbers)

    asked, _ = judged("\n\n".join(said), decide)
    box = "Arkwell won against rivals, and cyclists share a lane."
    passages = "\n".join(passage.text for passage in supporting(box, ["S00000b"], asked))
    assert "eleven others" in passages and "northern lane" in passages
    assert not supporting(box, ["S00000a"], asked) and not supporting("Nobody knows the toll.", ["S00000b"], asked)


def test_what_was_objected_to_without_a_passage_is_corrected_by_what_bears_on_it() -> None:
    (bare,) = statements("Tomas Arkwell painted 4711 lamps.")
    found = bearing_on(bare, ["S00000a", "S00000b"], Bearing(TEXTS))
    assert "Tomas Arkwell drew the plans" in "\n".join(span.text.text[span.start : span.end] for span in found)
    assert {span.text.source.source_id for span in found} <= SOURCES.keys()
    missed = bearing_on(bare, ["S00000b"], Bearing(TEXTS), "lamps replaced by less bright ones")
    assert "The lamps may be replaced" in "\n".join(span.text.text[span.start : span.end] for span in missed)
    (foreign,) = statements("Xylophone quartets zigzag 4711.")
    assert not bearing_on(foreign, list(SOURCES), Bearing(TEXTS)), "then there is nothing to correct it by"


def test_of_sources_that_a_sentence_does_not_cite_only_what_has_much_of_it_is_shown() -> None:
    """A note quotes a clause that says nothing of it, which is found first without a least share."""
    quoted = "Cyclists share the northern lane with pedestrians."
    bearing = Bearing(TEXTS, [(quoted, ["S00000b"])])
    (said,) = statements("Tomas Arkwell drew the plans of the lane [S00000a].")

    def found(least: float) -> str:
        spans = bearing_on(said, ["S00000b"], bearing, least=least)
        return "\n".join(span.text.text[span.start : span.end] for span in spans)

    assert "Tomas Arkwell drew the plans" in found(0.25) and quoted not in found(0.25)
    assert quoted in found(0.0)


def test_what_little_is_left_of_a_source_is_shown_so_that_its_judge_need_not_look_again() -> None:
    halls = ("boiler", "kitchen", "archive", "workshop", "chapel", "garage", "library", "stable")
    clauses = [
        f"## {n}. The {hall}\n\nThe {hall} is closed at {n} in the evening by whoever left it last, and its key is "
        f"kept in box {n} beside the gate.\n"
        for n, hall in enumerate(halls, 1)
    ]
    rules = "\n".join(["# Rules of the house", *clauses, "## Closing\n\nThank you for reading.\n"])
    url = "https://house.example/rules"
    text = StoredText(Source(source_id="S00000d", url=url, title="Rules", kind="web"), rules, "d.txt")
    told = " ".join(f"The {hall} closes at {n} and its key is in box {n} [S00000d]." for n, hall in enumerate(halls, 1))
    (request,) = requests_for(statements(told), Bearing([text]))
    (source,) = request.sources
    assert source.whole and source.passages[-1].text.endswith("Thank you for reading.")


def test_a_sentence_in_a_paragraph_of_its_own_cites_nothing_and_is_given_no_source() -> None:
    cited, conclusion = "It opened in 1958 [S00000a].", "The viaduct is therefore the youngest of them."
    invented = "Quillon Vasterby counted 4711 of its rivets."
    beside = {
        text: {s.sentence: s.checked_against for s in statements(text)}[conclusion]
        for text in (
            f"{cited} {conclusion}",
            f"{cited}\n{conclusion}",
            f"- {cited}\n- {conclusion}",
            f"- {cited}\n\n- {conclusion}",
            f"{cited}\n\n{conclusion}",
            f"- {cited}\n\n{conclusion}",
            f"{conclusion}\n\n{HEAD}| Orlin Bridge | 312 metres | 1931 [S00000a] |",
            f"{cited}\n\n## So\n\n{conclusion}",
        )
    }
    assert list(beside.values()) == [("S00000a",)] * 4 + [()] * 4
    alone = statements(f"{cited}\n\n{conclusion}\n\n{invented}")
    words = [check(statement, Search(TEXTS)) for statement in alone[1:]]
    assert [found.verdict for found in words] == [Verdict.not_checked, Verdict.not_stated]
    assert all(found.complaints[0] == "it cites nothing" for found in words)
    assert [s.sentence for s in unsettled(alone[1:], Search(TEXTS))] == [conclusion, invented]


@pytest.mark.parametrize(
    ("alone", "verdict", "passages", "settled_as", "looks"),
    [
        ("Tomas Arkwell drew its plans.", Verdict.supported, [1], Verdict.supported, 1),
        ("Tomas Arkwell drew its plans.", Verdict.supported, [], Verdict.not_checked, 1),  # it follows from the report
        ("Tomas Arkwell drew its plans.", Verdict.not_stated, [], Verdict.not_stated, 2),
        ("No source says what Tomas Arkwell was paid.", Verdict.not_stated, [], Verdict.not_checked, 2),
        ("No source says what Tomas Arkwell was paid.", Verdict.contradicted, [1], Verdict.contradicted, 1),
    ],
)
def test_a_sentence_that_cites_nothing_is_judged_by_everything_that_was_read(
    alone: str, verdict: Verdict, passages: list[int], settled_as: Verdict, looks: int
) -> None:
    before = "It opened in 1958. Cars pay 5 crowns [S00000a]."
    asked, requests = judged(
        f"{before}\n\n{alone}",
        lambda said, _: (
            Opinion(claim=0, verdict=verdict, passages=passages, look_for="plans")
            if said == alone
            else supported(said, _)
        ),
    )
    (claim,) = (one for one in requests[0].claims if one.sentence == alone)
    assert (claim.source_ids, claim.context) == ([], "It opened in 1958.\nCars pay 5 crowns.")
    assert all("Tomas Arkwell drew the plans" in shown([request]) for request in requests)
    assert (settled(asked)[alone, ()].judgement.verdict, len(requests)) == (settled_as, looks)


def test_a_claim_is_shown_what_a_source_in_another_language_says_of_it() -> None:
    german = "\n\n".join(f"Absatz {n} handelt von Gerste und Roggen auf dem Feld." for n in range(60))
    notice = "Die neuen Preise gelten erst später."
    url = "https://fee.example"
    source = Source(source_id="S00000e", url=url, title="Brief", kind="web")
    text = StoredText(source, f"{german}\n\n{notice}\n\n{german}", "e.txt")
    (request,) = requests_for(statements("The new prices are in force now [S00000e]."), Bearing([text]))
    assert notice in shown([request])


@given(st.lists(st.tuples(st.integers(0, 900), st.integers(0, 900)), max_size=8))
def test_every_passage_leads_back_to_its_place(spans: list[tuple[int, int]]) -> None:
    text = StoredText(TEXTS[0].source, 'äß“\\n€ 🌊 x\t"q" ' * 80, "out.json", first_byte=17)
    for start, end in (sorted(span) for span in spans):
        quote = text.quote(start, end)
        assert text.characters(quote.start, quote.end) == (start, end)


def test_the_verdicts_follow_from_the_record_alone() -> None:
    asked, requests = judged(TRUE, supported)
    again = [Exchange.model_validate_json(one.model_dump_json()) for one in asked]
    assert settled(again) == settled(asked)
    report = Report(
        title="", query="", extractive=False, sources=[], sections=[ReportSection(heading="Bridges", markdown=TRUE)]
    )
    claims = check_claims(report, TEXTS, {}, settled(again))
    assert {claim.verdict for claim in claims} == {Verdict.supported}
    assert all(place_of(passage, TEXTS) for _, passage in requests[0].passages.values())


def test_a_claim_that_was_checked_while_the_rest_was_written_is_not_checked_again() -> None:
    asked, _ = judged(TRUE, supported)
    first, last = (ReportSection(heading=heading, markdown=TRUE) for heading in ("Summary", "Bridges"))
    report = Report(title="", query="", extractive=False, sources=[], sections=[first, last])
    checking = Checking(TEXTS)
    ahead = checking.claims(claims_of([last]), {}, settled(asked))
    claims = checking.claims(claims_of(report.sections), {}, settled(asked))
    assert claims == check_claims(report, TEXTS, {}, settled(asked))
    later = [claim for claim in claims if claim.section == 1]
    assert len(later) == len(ahead) > 0
    assert all(claim.quotes is before.quotes for claim, before in zip(later, ahead, strict=True))
    assert {claim.verdict for claim in checking.claims(claims_of([last]), {}, {})} != {Verdict.supported}


def test_a_claim_is_checked_again_where_what_bears_on_it_turns_out_not_to_be_credible() -> None:
    said = ("Osk Harbour was dredged in 2014.", "The harbour of Osk was dredged in 2014 by two ships.")
    sources = [Source(source_id=f"S0000c{n}", url=f"https://{n}.example", title="Osk", kind="web") for n in (1, 2)]
    texts = [StoredText(one, text, f"{one.source_id}.txt") for one, text in zip(sources, said, strict=True)]
    checking, claims = Checking(texts), statements("Osk Harbour was dredged in 2014 [S0000c1].")
    corroborations = [
        checking.claims(claims, credibility, {})[0].corroboration
        for credibility in ({}, {"S0000c3": 0.0}, {"S0000c2": 0.0}, {"S0000c2": 1.0})
    ]
    verified, single = Corroboration.verified, Corroboration.single_source
    assert corroborations == [verified, verified, single, verified]


# -- corrections ------------------------------------------------------------------------------------------------------


def test_a_correction_stands_where_the_sentence_stood_and_nothing_else_changes() -> None:
    wrong = {
        "Mirren Span | 176 m | 1894": "| Mirren Span | 176 m | 1895 |",
        "Ein Auto zahlt fünf Kronen.": "Ein Auto zahlt 5 Kronen.",
    }
    text, left = with_replacements(TRUE, wrong)
    assert left == []
    assert "| Mirren Span | 176 m | 1895 [S00000a] |\n" in text
    assert "Ein Auto zahlt 5 Kronen. [S00000a]" in text
    before, after = TRUE.splitlines(), text.splitlines()
    assert len(before) == len(after)
    assert sum(a != b for a, b in zip(before, after, strict=True)) == 2


@given(st.text("|#`\n ab", max_size=12))
def test_a_row_stays_a_row_whatever_is_put_in_its_place(said: str) -> None:
    text, left = with_replacements(TRUE, {"Orlin Bridge | 312 m | 1931": said})
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len(rows) == 5 and all(line.count("|") == 4 for line in rows)
    assert left or text != TRUE or said.strip("| ") == ""


@given(st.sampled_from([s.sentence for s in statements(TRUE)]), st.sampled_from(list(Verdict)[1:3]))
def test_a_mark_is_no_claim_and_changes_none(sentence: str, verdict: Verdict) -> None:
    text = marked(TRUE, {sentence: verdict})
    assert text != TRUE
    assert [key_of(s) for s in statements(text)] == [key_of(s) for s in statements(TRUE)]
    assert marked(text, {sentence: verdict}) == text


@pytest.mark.parametrize(
    "row", ["| B | 2 [S00000b] |", "| B | 2 | [S00000b]", "| B [S00000b] | |", "| B [S00000b] | 2", "B | 2 [S00000b]"]
)
@pytest.mark.parametrize("verdict", MARKS)
def test_a_mark_is_in_the_last_cell_of_its_row(row: str, verdict: Verdict) -> None:
    text = f"| A | Number |\n|---|---|\n{row}\n| C | 3 [S00000a] |"
    (claim,) = [s.sentence for s in statements(text) if s.source_ids == ("S00000b",)]
    (table,) = blocks_of(marked(text, {claim: verdict}), {})
    assert isinstance(table, Table)
    rows = [["".join(run.text for run in cell) for cell in cells] for cells in table.rows]
    assert len(rows) == 2 and rows[1] == ["C", "3 [S00000a]"]
    assert rows[0][1].endswith(MARKS[verdict].strip("*")) and "the source" not in rows[0][0]
    assert "".join(rows[0]).count("[S00000b]") == 1


# -- in a run ---------------------------------------------------------------------------------------------------------

SMALL_WINDOW = 4_096  # tokens
SECTION = "FACT-00000000 was studied in other words than its source has [ID]. It was found in a few cases [ID]."


@pytest.fixture
def providers(providers: Stubs) -> Stubs:
    """The providers, for a small run whose writer says nothing word for word."""
    providers.settings.breadth, providers.settings.page_bytes = 1, 2_000
    providers.settings.section = SECTION
    return providers


def report_of(result: RunResult) -> Report:
    return Report.model_validate_json(Path(result.artifacts, "report.json").read_bytes())


async def test_without_a_judge_nothing_is_removed_marked_or_held_against_the_report(
    providers: Stubs, tmp_path: Path
) -> None:
    result = await investigated(tmp_path, report=ReportSettings(judge=Judging.never))
    report = report_of(result)
    assert result.status is Ending.complete
    assert not providers.calls("judge") and not providers.calls("correction")
    assert {claim.verdict for claim in report.claims} == {Verdict.not_checked}
    text = Path(str(result.report)).read_text()
    assert "It was not checked by a model" in text and "**How sure:** medium" in text
    assert "not found in the sources" not in text and "Taken out" not in text


async def test_what_is_judged_is_the_writers_by_default_and_anybody_elses_by_choice(
    providers: Stubs, tmp_path: Path
) -> None:
    providers.settings.verdicts = {"studied": "supported", "found": "supported"}
    result = await investigated(tmp_path, role_models={"judge": {"model": "openai/judge"}})
    assert {record.body["model"] for record in providers.calls("judge")} == {"judge"}
    assert {claim.judgement.model for claim in report_of(result).claims if claim.judgement} == {"openai/judge"}
    assert "judged by openai/judge" in " ".join(report_of(result).limitations)


async def test_a_run_without_a_model_is_refused_where_one_must_judge(home: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="no role of the run has a model") as refused:
        await investigated(tmp_path, model="extractive", report=ReportSettings(judge=Judging.always))
    assert "--model" in str(refused.value.next_step)


@pytest.mark.parametrize("fault", ["broken_json*", "500*"])
async def test_a_judge_that_fails_leaves_the_claims_unchecked_and_the_run_degraded(
    providers: Stubs, tmp_path: Path, fault: str
) -> None:
    providers.settings.faults = {"judge": [fault]}
    result = await investigated(tmp_path)
    assert result.status is Ending.degraded
    assert result.reason.count("judge: answered without the model") == 1
    report = report_of(result)
    told = " ".join(report.limitations)
    assert "no usable answer as judge; rules without a model answered in its place. Ask again" in told
    assert "answered without the model after" not in told and "The run is degraded" not in told
    assert report.claims and {claim.verdict for claim in report.claims} == {Verdict.not_checked}
    assert not providers.calls("correction")


async def test_a_correction_may_cite_what_another_source_of_the_run_says(providers: Stubs, tmp_path: Path) -> None:
    url, said = "https://rivets.example/count", "Quillon Vasterby counted 4711 rivets of the viaduct"
    providers.settings.planted = {url: f"<p>Tides of moons. {said}.</p>"}
    providers.settings.section = "Quillon Vasterby counted 4712 rivets in vain [ID]."
    own = source_ids([url])[url]
    providers.settings.verdicts, providers.settings.replacement = {"in vain": "not_stated"}, f"{said} [{own}]."
    report = report_of(await investigated(tmp_path))
    asked = "\n".join(message["content"] for message in providers.calls("correction")[0].body["messages"])
    assert f'<source id="{own}" title=' in asked
    number = re.search(rf"\[(\d+)\] [^\n]*{said}", asked)
    assert number and number[1] in asked.partition("; from elsewhere: ")[2].partition("\n")[0].split(", ")
    assert [(claim.source_ids, claim.verdict) for claim in report.claims if "Vasterby" in claim.sentence] == [
        ([own], Verdict.supported)
    ] * len(report.claims)


async def test_what_its_own_source_rules_out_is_corrected_by_that_source_and_not_by_all_that_is_about_the_same(
    providers: Stubs, tmp_path: Path
) -> None:
    url, said = "https://rivets.example/count", "Quillon Vasterby counted 4711 rivets of the viaduct"
    providers.settings.planted = {url: f"<p>Tides of moons. {said}.</p>"}
    providers.settings.section = "Quillon Vasterby counted 4712 rivets in vain [ID]."
    providers.settings.verdicts = {"in vain": "contradicted"}
    await investigated(tmp_path)
    asked = [Prompt(record.body).user for record in providers.calls("correction")]
    assert asked and not any("from elsewhere" in one or said in one for one in asked)


KEPT = MARKS[Corroboration.contradicted]


@pytest.mark.parametrize("replacement", ["Places cost 2.30 EUR per pallet and week in 2026 [{second}].", "{own}", ""])
async def test_a_sentence_that_tells_what_was_corrected_goes_back_to_the_writer_with_the_correction(
    providers: Stubs, tmp_path: Path, replacement: str
) -> None:
    """Its own source says it word for word, so that the judge has nothing against it."""
    named = "The reservation of a place costs 2.80 EUR per pallet and week"
    corrected = "The rate of 2.80 EUR was wrong: a place costs 2.30 EUR per pallet and week in 2026"
    urls = ["https://offers.example.gov/october", "https://offers.example.gov/november"]
    first, second = (source_ids(urls)[url] for url in urls)
    pages = (f"<p>Tides of moons. {said}.</p>" for said in (named, corrected))
    providers.settings.planted = dict(zip(urls, pages, strict=True))
    providers.settings.critique = {
        "contradictions": [
            {"claim_a": named, "claim_b": corrected, "source_ids": [first, second], "other_source_ids": [second]}
            | {"resolution": "It was corrected in November.", "holds": "claim_b"}
        ]
    }
    own = f"{named} [{first}]."
    providers.settings.section = own
    providers.settings.verdicts = {"2.": "supported"}
    providers.settings.replacement = replacement.format(second=second, own=own)
    report = report_of(await investigated(tmp_path))
    (outline,) = providers.calls("outline")
    told = f"{named} [{first}] / {corrected} [{second}] (the second holds) (It was corrected in November.)"
    assert told in Prompt(outline.body).user
    assert any(told in Prompt(section.body).user for section in providers.calls("section"))
    asked = [Prompt(record.body).user for record in providers.calls("correction")]
    for one in asked:
        number = re.search(rf"\[(\d+)\] [^\n]*{corrected}", one)
        assert number and f"Objection 1: no longer holds\n\n{own}" in one and one.endswith(f"elsewhere: {number[1]}")
    assert asked
    text = "".join(section.markdown for section in report.sections)
    assert ("2.30 EUR" in text, KEPT in text) == ((True, False) if "2.30" in replacement else (False, True))
    assert not report.limitations or "Taken out" not in " ".join(report.limitations)


OUTLAY = "Repairs cost 2.4 million EUR in 2019 and 2.9 million EUR in 2020. Of 288 berths, 29 % were let, then 41 %."
TOLD = "The master called the slipway “the oldest and most useful of the coast”. It yields up to 42,000 kWh a year."


@pytest.mark.parametrize(
    ("claim", "named"),
    [
        ("Repairs became dearer by 500,000 EUR, about 21 %", []),
        ("Together the repairs cost 5.3 million EUR", []),
        ("71 % of the 288 berths were empty; later 118 were let, 12 percentage points more", []),
        ("It yields 42 MWh a year at best", []),
        ("The slipway is “the oldest and … useful of the coast”", []),
        ("No passage says that repairs cost 3.1 million EUR", []),
        ("Repairs became dearer by 400,000 EUR", ["400,000 EUR"]),
        ("The share of berths that were let rose by 12 %", ["12 %"]),
        ("It yields up to 42,000 MWh a year", ["42,000 MWh"]),
        ("The slipway is “the oldest and most beautiful of the coast”", ["the oldest and most beautiful of the coast"]),
    ],
)
def test_figures_and_quotations_that_no_passage_has_are_doubted_unless_they_follow_from_figures(
    claim: str, named: list[str]
) -> None:
    assert unfounded(claim, [OUTLAY, TOLD]) == named


GROUPS = """| Members | Asked | content in 2023 | content in 2025 |
|---|---|---|---|
| with a boat | 905 | 44 % | 49 % |
| without a boat | 335 | 57 % | 68 % |

Of those below 30, 61 % are content."""


@pytest.mark.parametrize(
    ("claim", "named"),
    [
        ("In 2025, 68 % of the members without a boat are content", []),
        ("In 2025, 68 % of the members without a boat are content, and 49 % with a boat", []),
        ("Of the members with a boat, 905 were asked", []),
        ("Those below 30 are content in 61 of 100 cases", []),
        ("In 2025, 49 % of the members without a boat are content", ["49 %"]),
        ("In 2025, 57 % of the members without a boat are content", ["57 %"]),
    ],
)
def test_a_figure_from_another_row_or_column_than_the_claim_names_is_doubted(claim: str, named: list[str]) -> None:
    assert list(misplaced(claim, [GROUPS])) == named


@pytest.mark.parametrize("verdicts", [["supported", "contradicted"], ["supported", "supported"]])
def test_a_claim_that_is_supported_with_a_figure_that_no_passage_has_is_judged_once_more(verdicts: list[str]) -> None:
    requests: list[JudgeRequest] = []

    async def ask(request: JudgeRequest) -> tuple[JudgeAnswer, str]:
        requests.append(request)
        verdict = Verdict(verdicts[len(requests) - 1])
        return JudgeAnswer(opinions=[Opinion(claim=1, verdict=verdict, passages=[1])]), "judge"

    said = statements("Between its towers the viaduct crosses 498 m of open water [S00000b].")
    asked = asyncio.run(judge(said, Bearing(TEXTS), ask))
    assert [request.again for request in requests] == [False, True]
    call = ModelCall(spec=JUDGE, request=requests[1], model=RoleModel(model="openai/judge"))
    assert "“498 m” stands in no passage that you saw" in messages(call, Dialect())[-1]["content"]
    (found,) = settled(asked).values()
    assert (found.judgement.verdict, found.judgement.searches) == (Verdict(verdicts[1]), 2)
    assert [found.judgement.verdict for found in settled(asked[:1]).values()] == [Verdict.not_checked]


MINUTES = {
    "march": "# Harbour board: minutes of 3 March 2025\n\nThe board decides: the slipway is closed from 1 June.\n",
    "may": "# Harbour board: minutes of 7 May 2025\n\nThe closing of the slipway is put off to 1 October.\n",
    "report": "# The crane\n\nDated 9 June 2025\n\nThe winter was cold, and the users of the crane worry.\n",
}
LETTER = (
    "# To all owners of boats\n\nHarbour office, 7 May 2025\n\nThe closing of the slipway is put off to 1 October.\n"
)
RELENTS = '{"opinions": [{"claim": 1, "verdict": "supported", "passages": [2], "replaced_by": 0}]}'


@pytest.mark.parametrize("may_says", [MINUTES["may"], LETTER], ids=["edition", "letter"])
@pytest.mark.parametrize(
    ("replacement", "relents", "told", "marked"),
    [
        ("The slipway is closed from 1 October [{may}].", False, True, False),
        ("{own}", False, False, True),
        ("{own}", True, False, False),
    ],
)
async def test_a_sentence_that_tells_what_a_newer_source_takes_back_goes_back_to_the_writer(
    providers: Stubs, tmp_path: Path, may_says: str, replacement: str, *, relents: bool, told: bool, marked: bool
) -> None:
    """Its own source says it word for word, and nobody named a contradiction.

    Where the writer stands by it, the judge looks again: it is marked only if the judge stands by its finding, too.
    """
    docs = tmp_path / "docs"
    docs.mkdir()
    for name, text in (MINUTES | {"may": may_says}).items():
        (docs / f"{name}.md").write_text(text)
    urls = [f"docs:docs/{name}.md" for name in MINUTES]
    march, may, report_of_june = (source_ids(urls)[url] for url in urls)
    own = f"The board decides: the slipway is closed from 1 June [{march}]."
    providers.settings.section = f"{own} In June users of the crane were worried [{report_of_june}]."
    providers.settings.verdicts = {"slipway": "supported", "worried": "supported"}
    providers.settings.replacing, providers.settings.replacement = "put off", replacement.format(may=may, own=own)
    if relents:
        providers.settings.says = {"These claims were judged before": RELENTS}
    result = await kept(tmp_path / "out", "When is the slipway closed?", docs=[str(docs)], tools=["documents"])
    judged, *again = [Prompt(record.body).user for record in providers.calls("judge")]
    later = re.search(r"\[(\d+)\] [^\[]*put off", judged)
    assert later and re.search(rf"cites {march}; later: {later[1]}; .*then: In June", judged)
    assert judged.count("; later: ") == 1, "the report of June is of another thing, and nothing is newer than it"
    assert any("; later: " in one for one in again) == (replacement == "{own}")
    (asked, *_) = [Prompt(record.body).user for record in providers.calls("correction")]
    assert f"Objection 1: no longer holds\n\n{own}" in asked and "put off to 1 October" in asked
    report = report_of(result)
    text = "".join(section.markdown for section in report.sections)
    assert ("1 October" in text, KEPT in text) == (told, marked)
    assert (await verified(await find(ArtifactStore(str(tmp_path / "out")), result.run_id))).ok


BOTH = "A place costs 2.80 EUR per pallet by the port [{first}], and 2.30 EUR by the union [{second}]."


@pytest.mark.parametrize(
    ("section", "returned"),
    [
        ("A place costs 2.80 EUR per pallet [{first}].", True),
        ("A place costs 2.30 EUR per pallet [{first}] [{second}].", True),
        (
            "A place costs 2.80 EUR per pallet [{first}]. It is dry [ID]. The union names 2.30 EUR [{second}].",
            False,
        ),
        ("The union names 2.30 EUR [{second}].\n\nIt is dry [ID]. A place costs 2.80 EUR per pallet [{first}].", True),
        (BOTH, False),
    ],
)
async def test_where_nothing_settles_a_disagreement_no_section_tells_one_side_of_it_alone(
    providers: Stubs, tmp_path: Path, section: str, *, returned: bool
) -> None:
    urls = ["https://port.example.gov/rates", "https://union.example.gov/rates"]
    first, second = (source_ids(urls)[url] for url in urls)
    sides = ["A place costs 2.80 EUR per pallet", "The port charges 2.30 EUR for a place and pallet"]
    pages = (f"<p>Tides of moons. {said}.</p>" for said in sides)
    providers.settings.planted = dict(zip(urls, pages, strict=True))
    told = dict(zip(("claim_a", "claim_b"), sides, strict=True)) | {"source_ids": [first, second]}
    providers.settings.critique = {"contradictions": [told | {"other_source_ids": [second]}]}
    providers.settings.section = section.format(first=first, second=second)
    providers.settings.verdicts = {"2.": "supported", "dry": "supported"}
    providers.settings.replacement = BOTH.format(first=first, second=second)
    report = report_of(await investigated(tmp_path))
    asked = [Prompt(record.body).user for record in providers.calls("correction")]
    assert bool(asked) is returned and all("Objection 1: told by one side only" in one for one in asked)
    for one in report.sections:
        assert "2.80 EUR" in one.markdown and "2.30 EUR" in one.markdown and KEPT not in one.markdown


@pytest.mark.parametrize(("site", "corrected"), [("gov", False), ("net", True)])
async def test_a_source_corrects_another_if_it_is_credible_or_no_less_so(
    providers: Stubs, tmp_path: Path, site: str, *, corrected: bool
) -> None:
    urls = [f"https://offers.example.{site}/october", "https://offers.example.org/november"]
    first, second = (source_ids(urls)[url] for url in urls)
    named, instead = "A place costs 2.80 EUR per pallet", "A place costs 2.30 EUR per pallet, and not 2.80 EUR"
    pages = (f"<p>Tides of moons. {said}.</p>" for said in (named, instead))
    providers.settings.planted = dict(zip(urls, pages, strict=True))
    told = {"claim_a": named, "claim_b": instead, "source_ids": [first, second], "other_source_ids": [second]}
    providers.settings.critique = {"contradictions": [told | {"resolution": "", "holds": "claim_b"}]}
    providers.settings.section = providers.settings.replacement = f"{named} [{first}]."
    report = report_of(await investigated(tmp_path))
    assert report.contradictions[0].holds == "claim_b" and bool(providers.calls("correction")) is corrected
    assert (KEPT in "".join(section.markdown for section in report.sections)) is corrected


async def test_what_stands_behind_its_correction_goes_back_and_is_not_marked_if_the_writer_keeps_it(
    providers: Stubs, tmp_path: Path
) -> None:
    """ "It is 2.30 EUR. It is 2.80 EUR." may tell what came before, which only the writer knows."""
    urls = ["https://offers.example.gov/october", "https://offers.example.gov/november"]
    first, second = (source_ids(urls)[url] for url in urls)
    named = "The reservation of a place costs 2.80 EUR per pallet and week"
    instead = "The rate of 2.80 EUR was wrong: a place costs 2.30 EUR per pallet and week in 2026"
    pages = (f"<p>Tides of moons. {said}.</p>" for said in (named, instead))
    providers.settings.planted = dict(zip(urls, pages, strict=True))
    told = {"claim_a": named, "claim_b": instead, "source_ids": [first, second], "other_source_ids": [second]}
    providers.settings.critique = {"contradictions": [told | {"resolution": "", "holds": "claim_b"}]}
    providers.settings.section = f"By a later mail it is 2.30 EUR [{second}]. {named} [{first}]."
    providers.settings.verdicts = {"2.": "supported"}
    providers.settings.replacement = f"{named} [{first}]."
    report = report_of(await investigated(tmp_path))
    asked = [Prompt(record.body).user for record in providers.calls("correction")]
    assert asked and all(f"Objection 1: no longer holds\n\n{named}" in one for one in asked)
    assert KEPT not in "".join(section.markdown for section in report.sections)


async def test_a_judge_with_a_small_window_is_asked_in_smaller_batches_and_a_replay_asks_nobody_for_it(
    providers: Stubs, tmp_path: Path
) -> None:
    providers.settings.section = " ".join(
        f"FACT-00000000 was studied in study number {n} in other words than its source has them [ID]."
        for n in range(30)
    )
    providers.settings.verdicts = {"studied": "supported"}
    providers.settings.context_window, providers.settings.window_style = SMALL_WINDOW, "vllm"
    told = {"object": "list", "data": [{"id": "stub", "max_model_len": SMALL_WINDOW}]}
    providers.settings.models = told
    result = await kept(tmp_path)
    report = report_of(result)
    assert result.status is Ending.complete, result.reason
    assert [record.status for record in providers.calls("llm") if record.status != 200] == []
    assert {claim.verdict for claim in report.claims} == {Verdict.supported}
    batches = [len(Prompt(record.body).claims) for record in providers.calls("judge")]
    assert len(batches) > 2 and max(batches) < len(report.claims)
    asked = len(providers.calls("models")), len(providers.requests)
    assert asked[0] == 1
    providers.settings.models = {**told, "data": [{"id": "stub", "max_model_len": 2 * SMALL_WINDOW}]}
    store = ArtifactStore(str(tmp_path))
    files = await replay((await runs(store))[0])
    assert {file.state for file in files} == {"same"}
    assert (len(providers.calls("models")), len(providers.requests)) == asked


async def test_what_a_report_takes_from_the_question_is_told_wherever_it_is_shown(
    providers: Stubs, fathom_cli: FathomCLI, tmp_path: Path
) -> None:
    """Otherwise a strict judge objects to each row with the asker's own numbers, since no source has them."""
    providers.settings.verdicts, providers.settings.given = {"cost": "supported"}, ["40 rooms", "7 December"]
    providers.settings.section = "40 rooms from 7 December cost 40 x 12.50 = 500 [ID]."
    result = await kept(
        tmp_path,
        "What do we pay for rooms with FACT-00000000 from 7 December?",
        people={"clarified": {"How many rooms?": "40 rooms"}},
    )
    report = report_of(result)
    assert {claim.verdict for claim in report.claims} == {Verdict.supported}
    started = json.loads(Path(result.artifacts, "run.json").read_bytes())["started"]
    for asked in providers.calls("judge"):  # "by next month" is true or false by the day on which it is said
        assert f"The report is of today, {started[:10]}." in Prompt(asked.body).system
    told = "As the question says, not a source: 40 rooms; 7 December."
    assert report.limitations.count(told) == 1
    folder = Path(result.artifacts)
    assert f"- {told}" in (folder / "report.md").read_text() and told in (folder / "report.html").read_text()
    assert "by the question, not a source: 40 rooms; 7 December" in fathom_cli(["trace", result.artifacts, "1"]).stdout
    assert fathom_cli(["verify", result.artifacts]).returncode == 0
    record = (folder / JUDGEMENTS).read_text()
    (folder / JUDGEMENTS).write_text(record.replace("40 rooms", "the rooms"))
    assert "verdict differs" in fathom_cli(["verify", result.artifacts]).stdout


async def test_what_the_judge_saw_and_said_is_verified_offline(providers: Stubs, tmp_path: Path) -> None:
    providers.settings.verdicts = {"studied": "supported", "found": "contradicted"}
    providers.settings.replacement = "It was found in some cases [ID]."
    result = await kept(tmp_path)
    folder = Path(result.artifacts)
    record = json.loads((folder / JUDGEMENTS).read_bytes())
    shown_first = Prompt(providers.calls("judge")[0].body).passages
    assert [p["text"].strip() for s in record[0]["request"]["sources"] for p in s["passages"]] == [
        re.sub(r"\A\([^)]*\) ", "", text.split("\n</source>")[0].strip()) for text in shown_first.values()
    ]
    for before, after, problem in (
        ('"verdict": "supported"', '"verdict": "contradicted"', "verdict differs from the result of the check"),
        ('"start": ', '"start": 1', "do not say what was shown to the judge"),
    ):
        changed = (folder / JUDGEMENTS).read_text()
        (folder / JUDGEMENTS).write_text(changed.replace(before, after, 1))
        store = ArtifactStore(str(tmp_path))
        found = await verified(await find(store, result.run_id))
        assert any(problem in one.message for one in found.problems), [one.message for one in found.problems]
        (folder / JUDGEMENTS).write_text(changed)
