"""Answer mode: one quotation of at most 140 characters, through the real flow and for awkward notes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fathom.config.groups import RoleModel
from fathom.evidence.claims import MARKS
from fathom.extractive.answering import write_answer
from fathom.llm.base import ModelCall
from fathom.llm.dialects import Dialect
from fathom.llm.prompts import messages
from fathom.models import Answered, Claim, Corroboration, Ending, Note, SourceText, Verdict
from fathom.report.answer import confidence_within
from fathom.roles import ANSWER, ShortAnswerRequest
from fathom.roles.reporter import ANSWER_CHARS, ShortAnswer
from fathom.text.citations import cited_ids, without_citations
from tests.inprocess import investigated
from tests.stubs import Stubs

WORDS = ["the", "ferry", "(which,", "12;", "is", "not", "…", "run", "by", "1911", ",", "a.b", "“x”", "量子"]
HARBOUR = {
    "ferry.md": "# The ferry\n\nThe ferry Nordlys entered service on 3 June 2023. It carries 80 cars. "
    "The ferry Nordlys was built in Tromso by the Hansen yard.",
    "staff.md": "# Staff of the harbour\n\nIda Berg has been harbour master since 2019. The harbour employs 61 people.",
}


def note(*quotations: str) -> Note:
    return Note(
        step_id=1,
        summary_title="What the sources say of it",
        summary="",
        extraction=[f"{text} [S{number:06x}]" for number, text in enumerate(quotations, 1)],
        is_useful=True,
        artifact_file="a.json",
        source_ids=[f"S{number:06x}" for number in range(1, len(quotations) + 1)],
    )


def answer(query: str, *quotations: str) -> str:
    """Return the extractive answer, which keeps the role's rules as it stands."""
    request = ShortAnswerRequest(query=query, today="2026-11-22", notes=[note(*quotations)])
    given = write_answer(request)
    assert ANSWER.normalize(request, given) == given
    assert ANSWER.check(request, given) == []
    return without_citations(given.answer).strip()


@pytest.mark.usefixtures("home")
async def test_a_run_in_answer_mode_returns_the_sentence_and_a_small_report(tmp_path: Path) -> None:
    folder = tmp_path / "harbour"
    folder.mkdir()
    for name, text in HARBOUR.items():
        (folder / name).write_text(text)
    query = "When did the ferry Nordlys enter service?"
    result = await investigated(tmp_path / "artifacts", query, model=None, docs=[str(folder)], mode="answer")
    assert result.status is Ending.complete, result.reason
    assert result.answer is not None
    assert without_citations(result.answer) == "The ferry Nordlys entered service on 3 June 2023."
    assert cited_ids(result.answer) == [source.source_id for source in result.sources]
    report = Path(result.report or "").read_text()
    assert result.confidence is not None
    assert 0.5 < result.confidence < 1
    assert [line for line in report.splitlines() if line.startswith("## ")] == ["## Answer", "## Sources"]


@pytest.mark.parametrize(
    ("query", "right"),
    [
        ("Who leads the harbour?", "Ida Berg leads the harbour."),
        ("When was the harbour opened?", "The harbour was opened in 1911."),
        ("How many ships does the harbour serve a day?", "The harbour serves forty ships a day."),
        ("Where is the harbour?", "The harbour is in Tromso, behind the old town."),
        ("Why was the harbour dredged?", "The harbour was dredged because large ships ran aground."),
    ],
)
def test_the_kind_of_thing_that_is_asked_for_decides(query: str, right: str) -> None:
    wrong = [
        "The harbour is the oldest part of the town and its harbour basin.",
        "Ida Berg leads the harbour.",
        "The harbour was opened in 1911.",
        "The harbour serves forty ships a day.",
        "The harbour is in Tromso, behind the old town.",
        "The harbour was dredged because large ships ran aground.",
    ]
    assert answer(query, *wrong) == right


def test_a_cut_runs_along_clauses_and_leaves_no_limitation_out() -> None:
    told = "The northern ferry carries 80 cars and 350 passengers on each of its crossings between the two islands"
    query = "How many cars does the northern ferry carry?"
    assert answer(query, f"{told}, which is as many as the old ferry carried in its last year of service.") == told
    limited = answer(query, f"{told}, unless the wind is stronger than force eight, when it does not sail at all.")
    assert limited.endswith("…")


@given(
    st.sampled_from(["Who did it?", "When is it?", "How many?", "Why?", "x y", "量子计算是什么？"]),
    st.lists(
        st.text(min_size=1, max_size=60).filter(lambda text: text.strip() and "[" not in text)
        | st.lists(st.sampled_from(WORDS), min_size=8).map(
            " ".join
        ),
        min_size=1,
        max_size=4,
    ),
)  # fmt: skip
def test_any_notes_give_an_answer_that_fits(query: str, quotations: list[str]) -> None:
    given = write_answer(ShortAnswerRequest(query=query, today="2026-11-22", notes=[note(*quotations)])).answer
    assert 0 < len(without_citations(given).strip()) <= ANSWER_CHARS
    assert "\n" not in given


@pytest.mark.parametrize("summary", ["Ida Berg leads the harbour.", ""])
def test_notes_without_quotations_give_a_cited_answer_too(summary: str) -> None:
    told = note("x").model_copy(update={"summary": summary, "extraction": []})
    request = ShortAnswerRequest(query="Who leads the harbour?", today="2026-11-22", notes=[told])
    given = write_answer(request)
    assert ANSWER.check(request, given) == []
    assert given.answer.startswith(summary or "The notes hold no sentence")


SMALL: dict[str, Any] = {"mode": "answer", "profile": "quick", "report": {"judge": "always"}}


@pytest.mark.usefixtures("home", "wide")
@pytest.mark.parametrize(("stated", "told"), [(0.9, 0.5), (0.3, 0.3)])
async def test_a_confidence_is_told_as_far_as_the_evidence_goes(
    providers: Stubs, tmp_path: Path, stated: float, told: float
) -> None:
    providers.settings.confidence = stated
    result = await investigated(tmp_path, **SMALL)
    assert result.confidence == told
    assert len(providers.calls("answer")) == 1
    folder = Path(result.artifacts)
    report = json.loads((folder / "report.json").read_text())
    assert report["confidence"] == told
    assert report["claims"][0]["corroboration"] == "contradicted", "another page of the stub has another number"
    for name in ("report.md", "report.html"):
        assert f"Probability that it is right: {told:.0%}" in (folder / name).read_text()


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize(("verdict", "most"), [("not_stated", 0.3), ("contradicted", 0.1)])
async def test_what_the_sources_do_not_say_is_marked_and_not_confident(
    providers: Stubs, tmp_path: Path, verdict: str, most: float
) -> None:
    providers.settings.confidence = 1.0
    providers.settings.answer = "Invented basins of Atlantis drained in 1234. [ID]"
    providers.settings.verdicts = {"Atlantis": verdict}
    result = await investigated(tmp_path, **SMALL)
    assert result.answer and result.answer.endswith(f"] {MARKS[Verdict(verdict)]}")
    assert result.confidence == most


@pytest.mark.usefixtures("home")
async def test_a_corrected_answer_is_as_confident_as_it_was_stated(providers: Stubs, tmp_path: Path) -> None:
    providers.settings.confidence = 0.8
    providers.settings.answer = "Invented basins of Atlantis drained in 1234. [ID]"
    providers.settings.replacement = "No basin is known to have drained."
    providers.settings.verdicts = {"No basin": "supported"}
    result = await investigated(tmp_path, **SMALL)
    assert without_citations(result.answer or "").strip() == "No basin is known to have drained."
    assert cited_ids(result.answer or "") == [source.source_id for source in result.sources]
    assert result.confidence == 0.8


@given(st.floats(0, 1), st.lists(st.tuples(st.sampled_from(Verdict), st.booleans()), max_size=4))
def test_evidence_only_lowers_a_stated_confidence(stated: float, found: list[tuple[Verdict, bool]]) -> None:
    claims = [
        Claim(
            number=1,
            sentence="It is so.",
            section=0,
            source_ids=["S000001"],
            verdict=verdict,
            score=0.5,
            corroboration=Corroboration.contradicted if disputed else Corroboration.single_source,
        )
        for verdict, disputed in found
    ]
    confidence = confidence_within(stated, claims)
    assert confidence is not None
    assert confidence <= stated
    assert confidence == stated or any(verdict.objects or disputed for verdict, disputed in found)
    assert confidence_within(None, claims) is None


def test_what_holds_more_of_the_question_is_more_confident() -> None:
    query = "How many cars does the northern ferry carry?"
    near, far = (
        write_answer(ShortAnswerRequest(query=query, today="2026-11-22", notes=[note(text)])).confidence or 0
        for text in ("The northern ferry carries 80 cars.", "A ferry of the company was painted blue last year.")
    )
    assert 0 < far < near < 1


def test_a_model_is_told_the_rules_and_held_to_them() -> None:
    request = ShortAnswerRequest(query="Who?", today="2026-11-22", notes=[note("Ida Berg leads it.")])
    call = ModelCall(spec=ANSWER, request=request, model=RoleModel(model="openai/stub"))
    assert str(ANSWER_CHARS) in messages(call, Dialect())[0]["content"]
    assert ANSWER.check(request, ShortAnswer(answer=f"{'x' * 140} [S000001]", confidence=0.5)) == []
    assert ANSWER.check(request, ShortAnswer(answer=f"{'x' * 141} [S000001]", confidence=0.5))
    invented = ShortAnswer(answer="Ida Berg [S0000ff]", confidence=0.5)
    assert ANSWER.check(request, ANSWER.normalize(request, invented))
    unsure = ShortAnswer(answer="Ida Berg leads it. [S000001]")
    assert [complaint.fatal for complaint in ANSWER.check(request, unsure)] == [False]


TABLE = "| Valve | Torque | Seal |\n|---|---|---|\n| Orla | 12 Nm | rubber |\n| Pim | 30 Nm | copper |"


@pytest.mark.parametrize(
    ("query", "quotation", "right"),
    [
        (
            "Which parts does the pump consist of?",
            "The pump consists of these parts:\n\n- a rotor: it turns in oil and is changed every other year\n"
            "- a housing of cast iron, which is painted blue and has four feet\n- a seal (of rubber)",
            "The pump consists of these parts: "
            "a rotor; a housing of cast iron, which is painted blue and has four feet; a seal",
        ),
        ("What torque does the valve Pim need?", TABLE, "Pim; Torque: 30 Nm; Seal: copper"),
        (
            "Which command starts the pump?",
            "The pump is started from the control room, never from the quay, by this command, which has to be given by "
            "the leader of the shift:\n\n```\npump start --slowly\n```",
            "pump start --slowly",
        ),
    ],
)
def test_lists_rows_and_code_are_whole(query: str, quotation: str, right: str) -> None:
    assert answer(query, quotation) == right


@pytest.mark.parametrize(
    "said", ["Decision: order the blue one.", "Resolved: the blue one.", "We agreed on the blue one."]
)
def test_what_was_decided_is_told_by_the_decision(said: str) -> None:
    talk = "Tom: The old lamp of the gate is dark, and nobody on the lake finds the landing stage after supper.\n\n"
    talk += "Ida: Each lamp of the gate flickers, which I have seen from the other side of the lake last week."
    text = f"# Minutes\n\n## Lamp of the gate\n\n{talk}\n\n{said}\n\n## Rota\n\nDecision: nobody works on Sunday.\n"
    source = SourceText(source_id="S000001", url="docs:a.md", title="Minutes", kind="document", text=text)
    query = "What was decided about the lamp of the gate?"
    request = ShortAnswerRequest(query=query, today="2026-11-22", notes=[note("The gate is old.")], passages=[source])
    assert without_citations(write_answer(request).answer).strip().endswith(said)


@pytest.mark.parametrize(
    ("query", "right"),
    [
        (
            "What does the cox check before an outing?",
            "Hatches: all are closed, as somebody tried; Lamps: they burn; Log entry: it has all names",
        ),
        ("How many things does the cox check before an outing?", "Before an outing the cox checks three things."),
    ],
)
def test_a_sentence_above_a_list_is_the_answer_only_if_it_has_what_is_asked(query: str, right: str) -> None:
    items = "- Hatches: all are closed, as somebody tried.\n- Lamps: they burn.\n- Log entry: it has all names."
    text = f"# Club\n\nBefore an outing the cox checks three things.\n\n{items}\n"
    source = SourceText(source_id="S000001", url="docs:a.md", title="Club", kind="document", text=text)
    request = ShortAnswerRequest(query=query, today="2026-11-22", notes=[note("A cox is small.")], passages=[source])
    assert without_citations(write_answer(request).answer).strip().startswith(right)


def test_a_count_whose_rows_do_not_fit_is_told_without_their_names() -> None:
    rows = "\n".join(f"| Engineer with a long name, number {n} | {'Pumps' if n < 7 else 'Sales'} |" for n in range(9))
    staff = f"| Name | Team |\n|---|---|\n{rows}"
    assert answer("How many people are in the Pumps team?", staff) == "Computed: 7 of the 9 rows have “Team: Pumps”."


def test_what_something_must_contain_is_answered_with_all_of_it() -> None:
    told, listed = (
        "After a birth, you need a note from your doctor.",
        "- a diagnosis\n- the prognosis\n- how long it takes",
    )
    lead = "The note of the doctor should include:"
    said = answer("What must the doctor's note after a birth include?", told, f"{lead}\n\n{listed}")
    assert said == f"{lead} a diagnosis; the prognosis; how long it takes"


def test_both_questions_are_answered_and_each_answer_has_its_source() -> None:
    request = ShortAnswerRequest(
        query="When was the harbour opened, and how many ships does it serve?",
        today="2026-11-22",
        notes=[
            note(
                "The harbour was opened in 1911.",
                "The harbour serves forty ships a day.",
                "The harbour is the oldest part of the town and its harbour basin.",
            )
        ],
    )
    given = write_answer(request).answer
    assert given == "The harbour was opened in 1911. [S000001] The harbour serves forty ships a day. [S000002]"


@pytest.mark.parametrize(
    ("query", "right"),
    [
        ("Why is the lock closed?", "Due to ice, the lock is closed."),
        ("How many boats does the lock take unless told otherwise?", "By default the lock takes two boats."),
    ],
)
def test_reasons_and_defaults_come_first(query: str, right: str) -> None:
    told = ["The lock is closed.", "The lock takes up to nine boats.", "Due to ice, the lock is closed."]
    assert answer(query, *told, "By default the lock takes two boats.").startswith(right)


@pytest.mark.parametrize(
    ("query", "wrong", "right"),
    [
        (
            "The lock is taken. What can I run to use another one?",
            "If the lock is taken by another one, you see `Error: lock 3` or `Error: no lock`.",
            "Either wait, or use `lockctl start --next` for the next lock.",
        ),
        (
            "How many more boats does the lock see in summer?",
            "The lock sees more boats of a list in UTF-8.",
            "In summer the lock has about 40% more boats.",
        ),
        (
            "On which days is the regatta of the lock?",
            "The days of the regatta are long.",
            "The regatta of the lock is held from 21 to 23 October.",
        ),
        (
            "Which boats may enter the lock?",
            "Boats with a mast may not enter the lock.",
            "Barges, ferries and rowing boats may enter.",
        ),
        (
            "Why is the gate white?",
            "The gate is kept by two people since it is white.",
            "## Why is the gate white?\n\nSo that the sun does not warm it. It is painted every other year.",
        ),
    ],
)
def test_what_only_looks_like_what_is_asked_for_is_no_answer(query: str, wrong: str, right: str) -> None:
    told = answer(query, wrong, right)
    assert told.startswith(right.rpartition("\n")[2].partition(". ")[0].rstrip("."))


@pytest.mark.parametrize(
    "query",
    [
        "How do the Lax and Strict values of the cookie differ?",
        "What are the differences between Lax and Strict cookies?",
        "How does the Lax cookie differ from the Strict one?",
    ],
)
def test_of_two_things_that_differ_each_is_told_as_far_as_both_fit(query: str) -> None:
    both = "Cookies can be Lax (recommended) or Strict."
    lax = "The value Lax sends no cookies with requests from other sites, such as those of a form that stands there."
    strict = "The value Strict sends cookies with no outside request, including those that follow from regular links."
    said = answer(query, both, lax, strict)
    assert said.startswith("The value Lax sends no cookies with requests from other sites.")
    assert said.endswith("The value Strict sends cookies with no outside request")


def test_items_that_do_not_fit_are_cut_before_a_phrase_and_marked() -> None:
    lead = "To be admitted, a singer brings the following to the second evening of the year:"
    items = [
        "A form of the choir for singers under 18",
        "A recommendation written by a teacher or by somebody who sings",
        "A declaration about photographs of the singer in print",
        "The fee in an envelope with the name on it",
    ]
    listed = "\n".join(f"- {item}." for item in items)
    told = answer("What does a singer have to bring to be admitted?", f"{lead}\n\n{listed}")
    assert told.split("; ") == [
        "A form of the choir for singers under 18",
        "A recommendation written …",
        "A declaration about photographs …",
        "The fee in an envelope …",
    ]


def test_an_upper_limit_is_stated_where_one_is_asked_for() -> None:
    said = "A member is given up to 900 crowns."
    other = "Each member gets 25 crowns of the money back."
    assert answer("What is the most money a member can get?", other, said).startswith(said)


def test_a_row_that_the_question_names_comes_before_one_that_mentions_it() -> None:
    valves = "| Valve | Remark |\n|---|---|\n| Orla | closes before Pim, or after Pim |\n| Pim | made of copper |"
    assert answer("What is the remark on Pim?", valves).startswith("Pim; Remark: made of copper")


def test_the_second_of_two_hops_is_answered_with_what_the_first_names() -> None:
    policy = "The leave policy is in force from 1 January 2024. The owner of the leave policy is Dora Simms."
    staff = "| Name | Office | Joined |\n|---|---|---|\n| Dora Simms | Leith | 2010-02-15 |\n| Ida Berg | Oban | 2019 |"
    said = answer("When did the owner of the leave policy join?", policy, staff)
    assert said.startswith("Dora Simms; Joined: 2010-02-15")


@pytest.mark.parametrize(
    ("steps", "end"),
    [
        (["Stop the motor of the pump.", "Close the valve.", "Lift the lid."], "Close the valve; Lift the lid"),
        ([f"Turn screw {n} of the pump by half a turn." for n in range(5)], "by half a turn; …"),
    ],
)
def test_how_something_is_done_is_answered_with_its_steps_as_far_as_they_fit(steps: list[str], end: str) -> None:
    listed = "\n".join(f"- {step}" for step in steps)
    about = "The pump must never be opened by one person alone."
    assert answer("How do I open the pump?", about, f"To open the pump:\n\n{listed}").endswith(end)


def test_a_row_that_the_question_names_needs_none_of_its_other_words() -> None:
    fields = "Data of the ferries:\n\n| Field | Meaning |\n|---|---|\n| Load | mass plus ballast |\n| Draught | depth |"
    about = "The data of the ferries are sent ashore."
    said = answer("In the data of the ferries, how is the field Load computed?", about, fields)
    assert said == "Load; Meaning: mass plus ballast"


def test_a_condition_without_what_follows_is_no_answer() -> None:
    told = (
        "If the limit of the deck is exceeded, a signal of three long and two short tones is heard on the bridge and "
        "in the hold for as long as the cars stand there"
    )
    assert answer("When is the limit of the deck exceeded?", f"{told}.") != "If the limit of the deck is exceeded"


@pytest.mark.usefixtures("home")
async def test_a_computed_answer_is_headed_as_in_a_report(tmp_path: Path) -> None:
    folder = tmp_path / "tents"
    folder.mkdir()
    (folder / "tents.md").write_text(
        "# Tents\n\n| Tent | Price |\n|---|---|\n| Vale 3 | €329 |\n| Ridge 2 | €249 |\n| Summit 1 | €410 |\n"
    )
    short, long = [
        await investigated(tmp_path / mode, "Which tent costs the most?", model=None, docs=[str(folder)], mode=mode)
        for mode in ("answer", "report")
    ]
    assert "€410 (Summit 1)" in (short.answer or "")
    assert short.answered is long.answered is Answered.yes
