"""What a report says first, and what it draws from its claims."""

from __future__ import annotations

import re
from typing import Any, Literal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fathom.evidence.claims import MARKS, claims_of, comparable
from fathom.models import (
    Answered,
    Claim,
    Contradiction,
    Corroboration,
    Making,
    Quote,
    Report,
    ReportSection,
    Source,
    Verdict,
)
from fathom.report.answer import answer_of, making_parts
from fathom.report.assembly import with_cited, with_places
from fathom.report.chapters import in_short
from fathom.report.document import is_quotation
from fathom.report.figures import figures_of, series_of
from fathom.report.html import render_html
from fathom.report.markdown import render_markdown
from fathom.text.wording import ENGLISH

IDS = ("S00000a", "S00000b")
MARK, OTHER_MARK = MARKS[Verdict.not_stated], MARKS[Corroboration.contradicted]
UNFOUND, ALONE = MARKS[Corroboration.unverified], MARKS[Corroboration.single_source]
SENTENCES = st.lists(
    st.sampled_from(["The gate is old.", "It was built in 1998!", "Dr. Holm paid 4.2 million."]), max_size=6
)


def report_of(*sections: str, query: str = "What is known of the gate?", **given: Any) -> Report:
    """Return a report of sections by a model; its claims are supported by two sources unless `given` says else."""
    written = [ReportSection(heading=f"Part {n}", markdown=text) for n, text in enumerate(sections)]
    sources = [Source(source_id=i, url=f"https://{i}.example.org", title=i, kind="web", published="2024") for i in IDS]
    standing = {"verdict": Verdict.supported, "corroboration": Corroboration.verified, **given.pop("standing", {})}
    claims = [
        Claim(number=n, section=found.section, sentence=found.sentence, source_ids=list(IDS), score=1, **standing)
        for n, found in enumerate(claims_of(written), 1)
    ]
    return Report(
        title="The gate", query=query, extractive=False, sections=written, sources=sources, claims=claims, **given
    )


CODE = "\n\n```sh\npip install x\n```\n\n"
PIECES = st.lists(
    st.sampled_from(
        [
            *("The gate is old.", "It opened in 1998. [S00000a]", "Dr. Holm paid 4.2 million. [S00000b]", "Then:"),
            *(
                "**It is",
                "large** [S00000a].",
                "\n\n",
                "\n- An item of it [S00000a].",
                "\n\n```sh\npip install x\n```\n\n",
            ),
            *("Install it with: [S00000a]", "\n\n| a | b |\n|---|---|\n| 1 | two [S00000b] |\n\n", CODE),
        ]
    ),
    max_size=9,
).map(" ".join)


@given(PIECES.filter(str.strip))
@example("A 1998. [S00000a] B. [S00000a] It costs 5 million. [S00000a] " + MARK + " The town paid half. [S00000a]")
@example("A 1998. [S00000a] B. [S00000a] It costs 5 million. [S00000a] " + OTHER_MARK + " It is old. [S00000a]")
@example("A 1998. [S00000a] B. [S00000a] It costs 5 million. [S00000a] " + ALONE + " It is old. [S00000a]")
@example("A 1998. [S00000a] It costs 5 million. " + UNFOUND + " It is old. [S00000a]")
@example("The supported formats are:\n\n- PDF files of any size [S00000a].\n- Word files too [S00000a].")
@example("One. Two is old [S00000a]. Install it with: [S00000a]\n\n```sh\npip install x\n```\n\nThen run it [S00000b].")
def test_the_answer_takes_nothing_apart_and_nothing_is_lost(markdown: str) -> None:
    report = report_of(markdown)
    found = answer_of(report)
    assert found
    rest = found.rest.markdown if found.rest else ""
    assert "".join(f"{found.section.markdown}{rest}".split()) == "".join(markdown.split())
    assert not rest.startswith(tuple(MARKS.values()))
    cited = [claim.source_ids for claim in claims_of([found.section])]
    assert cited == [claim.source_ids for claim in claims_of(report.sections)][: len(cited)]
    if rest:
        assert not found.section.markdown.endswith(":")
    linked = re.findall(r'href="#claim-(\d+)"', str(render_html(report)).partition('id="sources"')[0])
    held = [claim.number for claim in report.claims if set(claim.source_ids)]
    assert {int(number) for number in linked} <= set(held)
    assert {int(n) for n in linked} >= {
        claim.number for claim in report.claims if f"{claim.sentence} [S" in markdown and claim.sentence in markdown
    }


TABLE = "| Pump | Weight |\n|---|--:|\n| Marlin S | 4 kg [S00000a] |\n| Otter 12 | 6 kg [S00000b] |"
LIST = "- It was built in 1998 [S00000a].\n- Dr. Holm paid 4.2 million [S00000b]."
LAST = "The town owns it today [S00000b]."
FIVE = "It is 1 [S00000a]. It is 2. It is 3 [S00000b]. It is 4 [S00000a]. It is 5 [S00000b]."


@pytest.mark.parametrize(
    ("markdown", "shown", "heading"),
    [
        (f"{FIVE}\n\n{LIST}", FIVE, "Key points"),
        (f"{FIVE}\n\n{TABLE}\n\n{LIST}", f"{FIVE}\n\n{TABLE}", "Key points"),
        (f"{FIVE}\n\n{LIST}\n\n{LAST}", FIVE, "More on the answer"),
        (f"{TABLE}\n\n{LAST} {LAST}\n\n{LIST}", f"{TABLE}\n\n{LAST} {LAST}", "Key points"),
        (f"{TABLE}\n\n{FIVE}", TABLE, "More on the answer"),
        (f"{LIST}\n\n{LAST}", LIST, "More on the answer"),
        (f"Install it with: [S00000a]{CODE}{LAST}", f"Install it with: [S00000a]{CODE}".strip(), "More on the answer"),
        (f"They differ in weight:\n\n{TABLE}\n\n{LIST}", f"They differ in weight:\n\n{TABLE}", "Key points"),
        (f"**Yes.**\n\n{LAST}\n\n{LIST}", f"**Yes.**\n\n{LAST}", "Key points"),
        (f"### In short\n\n{LAST}\n\n1. {LAST}", f"### In short\n\n{LAST}", "Key points"),
        (LIST, LIST, ""),
    ],
)
def test_the_box_shows_the_first_block_whole_and_what_follows_is_called_what_it_is(
    markdown: str, shown: str, heading: str
) -> None:
    report = report_of(markdown)
    found = answer_of(report)
    assert found
    assert (found.section.markdown, found.rest.heading if found.rest else "") == (shown, heading)
    headings = re.findall("^## (.*)$", render_markdown(report), re.MULTILINE)
    assert headings == ["Answer", *filter(None, [heading]), "Sources"]
    page = render_html(report)
    assert (heading in page, "Key points" in page) == (True, heading == "Key points")


def test_emphasis_is_not_cut() -> None:
    found = answer_of(report_of("**One is [S00000a]. Two is [S00000a]. Three is [S00000a]. Four is** [S00000a]."))
    assert found
    assert found.rest is None


@given(SENTENCES, SENTENCES)
def test_the_answer_is_the_first_paragraph_and_a_list_below_it_has_the_key_points(
    first: list[str], rest: list[str]
) -> None:
    paragraph, points = (
        " ".join(f"{text} [S00000a]" for text in first),
        "\n".join(f"- {text} [S00000a]" for text in rest),
    )
    report = report_of(f"{paragraph}\n\n{points}".strip() or "Nothing.")
    found = answer_of(report)
    assert found
    shown = claims_of([found.section])
    assert len(shown) == len(first) or not first
    assert (found.rest is not None) == bool(first and rest)
    assert not found.rest or found.rest.heading == "Key points"
    behind = claims_of([found.rest]) if found.rest else []
    assert [claim.sentence for claim in [*shown, *behind]] == [claim.sentence for claim in report.claims]
    rendered = comparable(render_markdown(report))
    assert all(comparable(claim.sentence) in rendered for claim in report.claims)


@pytest.mark.parametrize(
    ("standing", "answered", "sure", "said"),
    [
        ({}, Answered.yes, "high", "two independent sources say it"),
        ({}, Answered.partly, "medium", "a part of the question is not answered"),
        ({}, Answered.no, "low", "the sources do not answer the question"),
        ({}, Answered.yes, "high", "the sources support the answer"),
        (
            {"corroboration": Corroboration.single_source},
            Answered.yes,
            "medium",
            "no second, credible and independent source",
        ),
        ({"corroboration": Corroboration.contradicted}, Answered.yes, "medium", "another source contradicts it"),
        ({"verdict": Verdict.not_checked}, Answered.yes, "high", "it was not checked by a model"),
        ({"verdict": Verdict.not_stated}, Answered.yes, "low", "the sources cited do not say it"),
        ({"verdict": Verdict.contradicted}, Answered.yes, "low", "a source that it cites says otherwise about it"),
    ],
)
def test_how_sure_an_answer_is_follows_from_its_claims(
    standing: dict[str, Any], answered: Answered, sure: str, said: str
) -> None:
    found = answer_of(report_of("The gate was built in 1998 [S00000a].", answered=answered, standing=standing))
    assert found
    assert (found.sure, found.heading == "Answer") == (sure, answered is Answered.yes)
    assert said in "; ".join(found.why)


def test_an_answer_in_part_says_which_part_is_missing() -> None:
    report = report_of("It is old [S00000a].", answered=Answered.partly, unanswered_part="what it cost.")
    assert "A part of the question is not answered: what it cost. " in render_markdown(report)


@pytest.mark.parametrize(("sufficiency", "sure", "said"), [(8, "high", False), (7, "low", True), (0, "high", False)])
def test_evidence_that_the_critic_found_too_thin_makes_an_answer_less_sure(
    sufficiency: int, sure: str, said: bool
) -> None:
    report = report_of(
        "It is old [S00000a].",
        sufficiency=sufficiency,
        wanted_sufficiency=8 if sufficiency else 0,
        sufficiency_reason="No date is given.",
    )
    found = answer_of(report)
    assert found
    judged = f"the evidence was judged {sufficiency} of 10, where 8 suffices: No date is given"
    assert (found.sure, judged in found.why) == (sure, said)


def test_of_an_answer_from_the_user_s_own_documents_no_second_source_is_wanted() -> None:
    report = report_of("It is old [S00000a].", standing={"corroboration": Corroboration.single_source})
    own = [source.model_copy(update={"kind": "document"}) for source in report.sources]
    found = answer_of(report.model_copy(update={"sources": own}))
    assert found
    assert (found.sure, found.why) == ("high", ["the sources support the answer"])


def test_quotations_are_not_rated_and_say_which_words_they_lack() -> None:
    # "rolls in" reads like "logs in", and yet the rolls are mentioned.
    section = ReportSection(heading="Answer", markdown="The gate is old. [S00000a]", quoted=True)
    claim = Claim(
        number=1, section=0, sentence="The gate is old.", source_ids=["S00000a"], verdict=Verdict.supported, score=1
    )
    baked = section.model_copy(update={"markdown": "We bake the rolls in Graz. [S00000a]"})
    told = answer_of(
        report_of("x", query="Who bakes the rolls?").model_copy(update={"sections": [baked], "claims": [claim]})
    )
    assert told and told.why == ["quoted from 1 source"]
    report = report_of("x", query="Who built the harbour gate?").model_copy(
        update={"sections": [section], "claims": [claim]}
    )
    found = answer_of(report)
    assert found
    assert found.sure == "not rated"
    assert found.why == ["quoted from 1 source", "the quotations do not mention “harbour”"]
    assert (
        in_short([*found.why, "and more."], ENGLISH) == "Quoted from 1 source. The quotations do not mention “harbour”."
    )
    doubted = report.model_copy(update={"answered": Answered.maybe})
    said = "The quotations do not mention “harbour”. Read these quotations before you rely on them:"
    assert (
        f"## May answer this\n\n{said}\n\nThe gate is old. [1]\n\n**How sure:** not rated. Quoted from 1 source.\n"
        in (render_markdown(doubted))
    )
    assert said in render_html(doubted)


def test_what_made_a_report_is_said_without_the_time_in_markdown() -> None:
    made = Making(as_of="2026-03-02", model="a/b", llm_calls=1, tool_calls=1_200, cost_usd=None, seconds=75.2)
    assert making_parts(made, ENGLISH, timed=True) == [
        *("As of 2 March 2026", "a/b", "1,200 tool calls", "1 model call", "price unknown", "1 min 15 s")
    ]
    said = render_markdown(report_of("It is old [S00000a].", made=made))
    assert "price unknown" in said
    assert "1 min" not in said


def test_sources_disagree_in_two_dated_columns_and_one_for_which_is_better_supported() -> None:
    found = Contradiction(claim_a="It is 4 m.", claim_b="It is | 5 m.", source_ids=[*IDS], other_source_ids=["S00000b"])
    said = render_markdown(report_of("The gate is old [S00000a].", contradictions=[found]))
    assert "| One side | The other | Better supported |" in said
    assert "| It is 4 m. (2024) [1] | It is &#124; 5 m. (2024) [2] | neither: as many sources, as credible |" in said
    assert said.index("Where sources disagree") < said.index("## Sources")


@pytest.mark.parametrize(
    ("holds", "told", "settled"),
    [
        ("claim_a", "the first (4 m): Only one was gauged.", True),
        ("both", "both may hold: Only one was gauged.", True),
        ("", "Neither: as many sources, as credible. Only one was gauged.", False),
    ],
)
def test_the_better_supported_side_is_named_and_a_reason_alone_settles_nothing(
    holds: Literal["", "claim_a", "both"], told: str, *, settled: bool
) -> None:
    found = Contradiction(
        **{"claim_a": "It is 4 m.", "claim_b": "It is 5 m.", "holds": holds, "resolution": "Only one was gauged."},
        source_ids=[*IDS],
        other_source_ids=["S00000b"],
    )
    report = report_of("The gate is old [S00000a].", contradictions=[found])
    answer = answer_of(report)
    assert f"| {told} |" in render_markdown(report) and told in render_html(report)
    assert answer and ("sources disagree on the question" in answer.why) is not settled


def test_sources_stand_in_the_order_of_their_numbers() -> None:
    sections = [ReportSection(heading="A", markdown="It is old [S00000b].\n\n- It is high [S00000c].")]
    found = Contradiction(claim_a="It is 4 m.", claim_b="It is 5 m.", source_ids=[*IDS], other_source_ids=["S00000b"])
    sources = [Source(source_id=i, url=f"docs:{i}", title=i, kind="document") for i in (*IDS, "S00000c", "S00000d")]
    report = with_cited(report_of(contradictions=[found]).model_copy(update={"sections": sections, "sources": sources}))
    assert [source.source_id for source in report.sources] == ["S00000b", "S00000a", "S00000c"]


def test_sources_of_no_known_side_stand_beside_both() -> None:
    found = Contradiction(claim_a="It is 4 m.", claim_b="It is 5 m.", source_ids=[*IDS])
    told_by_one = Contradiction(
        **{"claim_a": "4 m were named.", "claim_b": "It is 5 m.", "holds": "claim_b", "resolution": "Measured again."},
        source_ids=["S00000b"],
        other_source_ids=["S00000b"],
    )
    one = report_of("The gate is old [S00000a].", contradictions=[told_by_one])
    row = "| 4 m were named. [2] | It is 5 m. [2] | the second (5 m): Measured again. |"
    assert row in render_markdown(one), "a correction tells what it corrects"
    report = report_of("The gate is old [S00000a].", contradictions=[found])
    unknown = "not known: which source says what was not told apart"
    assert f"| It is 4 m. (2024) [1][2] | It is 5 m. (2024) [1][2] | {unknown} |" in render_markdown(report)
    assert unknown in render_html(report)
    answer = answer_of(report)
    assert answer
    assert (answer.sure, "sources disagree on the question" in answer.why) == ("medium", True)
    for settled in ({"holds": "both"}, {"holds": "claim_b"}):
        known = found.model_copy(update=settled)
        answer = answer_of(report_of("The gate is old [S00000a].", contradictions=[known]))
        assert answer and "sources disagree on the question" not in answer.why


def test_a_claim_is_shown_as_a_quotation_only_where_it_is_one() -> None:
    def claim(sentence: str, text: str, verdict: Verdict = Verdict.supported) -> Claim:
        quote = Quote(source_id=IDS[0], artifact_file="a.json", start=0, end=1, sha256="0", text=text)
        return Claim(
            number=1, section=0, sentence=sentence, source_ids=[IDS[0]], verdict=verdict, score=1, quotes=[quote]
        )

    assert is_quotation(claim("The **gate** is `15 m` high.", "- The gate is 15 m\nhigh."))
    assert not is_quotation(claim("The gate is 15 m high.", "The gate is 1.5 m high."))
    assert not is_quotation(claim("a != b", "a == b"))
    assert not is_quotation(claim("The gate is high.", "The gate is high.", Verdict.not_stated))


def test_an_entry_names_the_headings_below_which_its_source_is_quoted() -> None:
    def claim(source_id: str, *headings: str, verdict: Verdict = Verdict.supported) -> Claim:
        where = {"artifact_file": "a.json", "start": 0, "end": 1, "sha256": "0", "text": "It is high."}
        quote = Quote(source_id=source_id, headings=list(headings), **where)
        told = {"number": 1, "section": 0, "sentence": "It is high.", "source_ids": [source_id], "score": 1}
        return Claim(verdict=verdict, quotes=[quote], **told)

    contract, letter, scan = (
        Source(source_id=i, url=f"docs:{i}", title=title, kind="document", location=location)
        for i, title, location in (
            ("S1", "Contract", "1 Subject"),
            ("S2", "Letter", "Letter"),
            ("S3", "Scan", "page 4"),
        )
    )
    claims = [
        claim("S1", "Contract", "4 Price"),
        claim("S1", "Contract"),
        claim("S1", "Contract", "2 Term"),
        claim("S1", "Contract", "4 Price"),
        claim("S1", "Contract", "9 Court", verdict=Verdict.not_stated),
        claim("S2", "Letter"),
        claim("S3"),
    ]
    placed = [source.location for source in with_places([contract, letter, scan], claims)]
    assert placed == ["4 Price; 2 Term", "", "page 4"]
    more = [claim("S1", "Contract", f"{n} More") for n in range(5)]
    assert with_places([contract], [*claims, *more])[0].location == "4 Price; 2 Term; 0 More; …"


def test_a_question_for_events_gets_a_timeline() -> None:
    told = [
        "In 2001 it fell.",
        "Unlike the law of 1999, the gate of 2005 is high.",
        "It opened on 3 May 1998.",
        "It was sold in March 2001.",
        "It is old.",
    ]
    sentences = " ".join(f"{text} [S00000a]" for text in told)
    (timeline,) = figures_of(report_of(sentences, query="What is the history of the gate?"))
    assert [row[0].text for row in timeline.rows] == ["3 May 1998", "2001", "March 2001"]
    assert all(row[1].claim for row in timeline.rows)
    assert figures_of(report_of(sentences)) == []


def test_a_timeline_holds_what_happened_once_each_and_no_date_that_is_only_mentioned() -> None:
    told = [
        "The crossing has a long story, in which a bridge was begun in 1929 and a ferry stopped later.",
        "Work on the bridge was begun on 4 June 1929.",
        "The plans of 1925 were never carried out.",
        "Only the 1931 drawings are left.",
        "A study describes all of it (Holm, 2008).",
        "The tower (finished 1935) is of stone.",
        "3 May 1936: traffic could first use it.",
        "Opened in 1936, it was the longest bridge for a year.",
    ]
    sentences = " ".join(f"{text} [S00000a]" for text in told)
    query = "How did the crossing develop over time?"
    (timeline,) = figures_of(report_of(sentences, query=query))
    assert [(when.text, what.text) for when, what in timeline.rows] == [
        ("4 June 1929", told[1]),
        ("1935", told[5]),
        ("1936", told[7]),
        ("3 May 1936", told[6]),
    ]
    rows = [f"| Bridge {name} | opened to traffic | {1900 + 9 * n} [S00000a] |" for n, name in enumerate("ABCDEF")]
    table = "\n".join(["| Bridge | Event | Year |", "|---|---|---|", *rows])
    assert figures_of(report_of(f"{sentences}\n\n{table}", query=query)) == [], "the report has its own"


def test_a_long_timeline_keeps_what_the_answer_is_about() -> None:
    answer = "The gate was sold and the tower fell [S00000a]."
    told = [f"Mill {n} burned down in {1900 + n} [S00000a]." for n in range(20)]
    told += ["The gate was sold in 1997 [S00000a].", "The tower fell in 1998 [S00000a]."]
    (timeline,) = figures_of(report_of(answer, " ".join(told), query="What is the history of the place?"))
    assert len(timeline.rows) == 21
    assert [when.text for when, _ in timeline.rows[-3:]] == ["1997", "1998", "Besides"]
    assert timeline.rows[-1][1].text == "2 more dated events in the sections"


def test_a_comparison_puts_what_is_said_of_each_side_beside_the_other() -> None:
    texts = ["Ferries carry forty cars daily.", "Trains carry ninety wagons daily.", "Ferries stop in winter storms."]
    texts += [
        "Trains run in winter storms too.",
        "Ferries and trains share the harbour station.",
        "The harbour is old.",
    ]
    sentences = " ".join(f"{text} [S00000a]" for text in texts)
    query = "What is the difference between ferries and trains?"
    (figure,) = figures_of(report_of(sentences, query=query))
    assert figure.columns == ("Ferries", "Trains")
    assert [tuple(cell.text for cell in row) for row in figure.rows] == [(texts[0], texts[1]), (texts[2], texts[3])]
    for verdict in (Verdict.contradicted, Verdict.not_stated):
        assert figures_of(report_of(sentences, query=query, standing={"verdict": verdict})) == []
    assert len(figures_of(report_of(sentences, query=query, standing={"verdict": Verdict.not_checked}))) == 1


def test_numbers_by_year_are_drawn() -> None:
    rows = ["| 2021 | A | 1,055.2 [S00000a] |", "| 2022 | B | 38.9 |", "| 2023 | C | 57 |"]
    zeros = "| Year | Cases |\n|---|--:|\n| 2021 | 0 [S00000a] |\n| 2022 | 0 [S00000a] |\n| 2023 | 0 [S00000a] |"
    assert series_of(report_of(zeros)) == []
    table = "\n".join(["| Year | Place | Output (GWh) |", "|---|---|--:|", *rows])
    (chart,) = series_of(report_of(f"Text [S00000a].\n\n{table}"))
    assert (chart.title, chart.decimals) == ("Output (GWh)", 1)
    assert chart.rows == (("2021", 1055.2), ("2022", 38.9), ("2023", 57.0))
    assert series_of(report_of(table.replace("2021", "first"))) == []
    assert series_of(report_of(table, standing={"verdict": Verdict.not_stated})) == []
