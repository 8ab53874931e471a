"""What the model-free planner, critic and reporter make of questions and notes."""

from __future__ import annotations

import re

import pytest

from fathom.extractive.citing import quoted
from fathom.extractive.critic import reflect
from fathom.extractive.planner import plan
from fathom.extractive.reporter import outline, write_section
from fathom.models import Answered, Document, Note, Plan, PlanStep, SourceText
from fathom.retrieval.excerpts import ReadText
from fathom.roles import OutlineRequest, PlanAnswer, PlanRequest, ReflectRequest, SectionRequest
from fathom.roles.reporter import OutlinedSection

TODAY = "2026-11-22"
JAPAN = (
    "From 2020 to 2050, how many elderly people will there be in Japan? What is their consumption potential across "
    "clothing, food, housing, and transportation? Please produce a market size report for the elderly demographic."
)


def planned(query: str, documents: list[Document] | None = None, max_steps: int = 5) -> PlanAnswer:
    tools = {"web_search": "Searches the web."}
    return plan(PlanRequest(query=query, today=TODAY, max_steps=max_steps, tools=tools, documents=documents or []))


def titles(query: str, documents: list[Document] | None = None) -> list[str]:
    return [step.title for step in planned(query, documents).steps]


def note(step_id: int, *quotations: tuple[str, str]) -> Note:
    return Note(
        step_id=step_id,
        summary_title="What the sources say of it",
        summary="",
        extraction=[f"{text} [{source_id}]" for text, source_id in quotations],
        is_useful=True,
        artifact_file="a.json",
        source_ids=list(dict.fromkeys(source_id for _, source_id in quotations)),
    )


# -- planner ------------------------------------------------------------------------------------------------------


def test_every_step_of_a_long_prompt_names_its_subject() -> None:
    answer = planned(JAPAN)
    assert [step.title for step in answer.steps] == [
        "From 2020 to 2050, how many elderly people will there be in Japan?",
        "What is their consumption potential across clothing, food, housing, and transportation"
        " (2020, 2050, elderly people, Japan)?",
        "A market size report for the elderly demographic",
    ]
    assert answer.plan_title == "From 2020 to 2050, how many elderly people will there be in Japan?"
    for step in answer.steps[:2]:
        assert all("Japan" in query for query in step.queries[:1])


@pytest.mark.parametrize(
    ("query", "steps"),
    [
        (
            "Who were the first five provosts of the college, and where were they born?",
            [
                "Who were the first five provosts of the college?",
                "Where were they born (first five provosts, college)?",
            ],
        ),
        (
            "Acting as a product manager, conduct research on payment tablets. Your report should: 1) List major "
            "manufacturers. 2) Analyze the price ranges. Please provide references and a clear structure.",
            ["Payment tablets", "List major manufacturers (payment tablets)", "The price ranges (payment tablets)"],
        ),
        (
            "The harbour has ten ferries. How often do they sail?",
            ["How often do they sail (harbour, ten ferries)?"],
        ),
    ],
)
def test_each_question_of_a_prompt_is_a_step(query: str, steps: list[str]) -> None:
    assert titles(query) == steps


def test_more_questions_than_steps_share_the_last_step() -> None:
    steps = planned("Who built it? Where is the harbour? When was the ferry sold?", max_steps=2).steps
    assert len(steps) == 2
    assert "harbour" in steps[1].title and "ferry" in steps[1].title
    assert len(steps[1].queries) == 2


def test_the_question_is_the_first_query() -> None:
    query = "Which of the US states have the most national parks?"
    assert planned(query).steps[0].queries[0] == query.rstrip("?")


def test_documents_that_share_a_common_word_only_are_no_steps() -> None:
    documents = [
        Document(title="The try statement", headings=["except clause", "else clause", "finally clause"]),
        Document(title="The pdb debugger for Python"),
        Document(title="Cleaning up in a finally clause"),
    ]
    found = titles("When is a finally clause executed in Python?", documents)
    assert "Cleaning up in a finally clause" in found
    assert not any("except" in title or "pdb" in title for title in found)


# -- critic -------------------------------------------------------------------------------------------------------


def reflected(query: str, *notes: Note) -> ReflectRequest:
    steps = [PlanStep(step_id=n, title=query, description=query) for n in {note.step_id for note in notes}]
    return ReflectRequest(
        query=query, today=TODAY, plan=Plan(plan_title="T", steps=steps), round=1, max_follow_ups=3, notes=list(notes)
    )


@pytest.mark.parametrize(
    ("a", "b", "disagree"),
    [
        ("Lindholm employs 412 people.", "The company employs 398 people and runs five routes.", True),
        ("The ferry Aurora entered service on 3 June 2023.", "The ferry Aurora entered service on 5 June 2023.", True),
        ("The ferry Aurora entered service in June 2023.", "The ferry Aurora entered service on 5 June 2023.", False),
        ("The project will cost 118 million euros in all.", "The project will cost 121 million euros in all.", True),
        ("The project will cost 118 million euros in all.", "The project will cost 118.4 million euros in all.", False),
        ("Fares rose by 4 percent in 2023.", "Fares rose by 6 percent in 2024.", False),
        ("The route to Norrholm takes 35 minutes.", "The route to Ostra takes 50 minutes.", False),
        ("The board approved 450,000 euros.", "The board approved the ship for 96 million euros in March.", False),
        ("The budget of the project is 96 million euros.", "The revenue of the ferry was 74 million euros.", False),
    ],
)
def test_contradictions_are_figures_for_the_same_thing(a: str, b: str, disagree: bool) -> None:
    found = reflect(reflected(f"Is it true? {a}", note(1, (a, "S00000a"), (b, "S00000b")))).contradictions
    assert bool(found) is disagree
    assert all({c.claim_a, c.claim_b} == {a, b} and set(c.source_ids) == {"S00000a", "S00000b"} for c in found)


def test_one_source_does_not_contradict_itself() -> None:
    told = note(1, ("The ship carries 80 cars.", "S00000a"), ("The ship carries 90 cars.", "S00000a"))
    assert reflect(reflected("How many cars?", told)).contradictions == []


def test_follow_ups_are_for_what_is_missing_and_worth_a_search() -> None:
    told = note(1, ("The harbour of Tromso was dredged in 1998.", "S00000a"))
    answer = reflect(reflected("When did Tromso dredge the harbour, and what did Hansen charge?", told))
    assert [step.queries[0].split()[0] for step in answer.follow_up_steps] == ["Hansen"]
    assert reflect(reflected("When did they decide to dredge the harbour of Tromso?", told)).follow_up_steps == []


# -- reporter -----------------------------------------------------------------------------------------------------

LIST, TUPLE = "Lists are mutable sequences of items.", "Tuples are immutable sequences of items."


def section(
    query: str,
    notes: list[Note],
    heading: str = "",
    written: list[str] | None = None,
    passages: list[SourceText] | None = None,
) -> str:
    return write_section(
        SectionRequest(
            query=query,
            today=TODAY,
            title="T",
            outlined=[OutlinedSection(heading=each, focus="") for each in ("In short", heading or "Details")],
            position=1 if heading else 0,
            notes=notes,
            written=written or [],
            passages=passages or [],
        )
    ).text


def answered_from(query: str, text: str) -> str:
    """Return the short answer to a question from a whole document."""
    source = SourceText(source_id="S00000a", url="docs:a.md", title="Rowing club", kind="document", text=text)
    return section(query, [note(1, ("The club has a gate.", "S00000a"))], passages=[source])


def test_the_short_answer_opens_with_what_answers() -> None:
    told = note(
        1,
        ("A parameter list may be empty.", "S00000b"),
        ("object.__len__(self) Called to get the length of a list or tuple.", "S00000b"),
        (TUPLE, "S00000a"),
        ("A tuple containing the base classes in the list.", "S00000b"),
        (LIST, "S00000a"),
    )
    text = section("What is the difference between a list and a tuple?", [told])
    assert LIST in text
    assert TUPLE in text


MORE = (
    "The club has learnt this from what went wrong on the lake in the many years before, and nobody may leave it out."
)
CHECKED = ("The bow ball has no crack.", "All hatches are closed.", "Each lamp burns.", "The log has your names.")


@pytest.mark.parametrize("length", [1, 3])  # of what explains each item: the whole list fits, or only its sentences do
@pytest.mark.parametrize(
    "above",
    [
        "These things are checked by the cox before an outing.",
        "Before an outing the cox checks the following, from the bow to the stern. Nobody hurries.",
        "Nobody hurries. An outing begins with what is checked by the cox",
    ],
)
def test_a_list_is_quoted_whole_with_the_sentence_that_it_belongs_to(above: str, length: int) -> None:
    items = "\n".join(f"* {said} {' '.join([MORE] * length)}" for said in CHECKED)
    filler = "\n\n".join(f"The cox pays {n} crowns for cakes at the bar." for n in range(2, 40))
    text = answered_from("What does the cox check before an outing?", f"# Club\n\n{filler}\n\n{above}\n\n{items}")
    assert all(said in text for said in CHECKED), text
    assert text.count(MORE) == (4 if length == 1 else 0)


def test_what_stands_below_a_heading_ends_before_a_list_that_does_not_fit() -> None:
    items = "\n".join(f"- {said} {MORE}" for said in CHECKED)
    text = f"# Club\n\n## Outings\n\nThe cox goes first. {MORE}\n\nAn outing has these checks:\n\n{items}\n"
    read = ReadText(text)
    below = [
        read.markdown(each, heading=False) for each in read.excerpts if read.units[each.units[0]].kind == "heading"
    ]
    assert below
    assert not any(CHECKED[0] in each for each in below)


def test_a_sentence_with_an_unknown_verb_is_still_a_sentence() -> None:
    told = note(1, ("The payment service retries a failed request three times.", "S00000a"))
    assert "three times" in section("How often are requests retried?", [told])


def test_a_section_holds_nothing_beside_the_question_nor_what_was_said() -> None:
    told = note(
        1,
        ("The ferry is charged in nine minutes at Norrholm.", "S00000a"),
        ("The ferry is charged in nine minutes at Norrholm.", "S00000b"),
        ("The cafe at Norrholm sells nine kinds of cake.", "S00000c"),
        ("Charging the ferry at Norrholm was stopped by ice on six days.", "S00000a"),
    )
    query = "How is the ferry charged?"
    text = section(query, [told], heading="Charging at Norrholm")
    assert "cake" not in text
    assert text.count("nine minutes") == 1
    assert "nine minutes" not in section(query, [told], "Charging at Norrholm", [text.split("Charging")[0]])


def test_steps_with_little_of_their_own_make_no_section() -> None:
    steps = [
        PlanStep(step_id=1, title="How the ferry is charged", description="d"),
        PlanStep(step_id=2, title="The cafe of the ferry", description="d"),
    ]
    told = [
        "The ferry is charged by an automatic arm at both ends of the route.",
        "Charging the ferry takes nine minutes in summer and twelve in winter.",
        "Six megawatts flow when the ferry is charged.",
        "Ice kept the ferry from being charged on six days.",
        "Power from rivers is what the ferry is charged with.",
        "Nobody may go on board while the ferry is charged.",
        "A second charging station for the ferry is planned in the north.",
        "The crew watches from the bridge how the ferry is charged.",
    ]
    told += [f"On {day} {text[0].lower()}{text[1:]}" for day in ("Monday", "Friday") for text in told]
    notes = [note(1, *((text, "S00000a") for text in told)), note(2, ("The ferry has a cafe.", "S00000b"))]
    request = OutlineRequest(
        query="How is the ferry charged?", today=TODAY, plan=Plan(plan_title="Ferry", steps=steps), notes=notes
    )
    assert [s.heading for s in outline(request).sections] == ["Answer", "How the ferry is charged"]


def test_a_report_does_not_call_an_answer_what_only_comes_close() -> None:
    told = note(1, ("Harbours are dredged by the state.", "S00000a"), ("The state owns the pier.", "S00000a"))
    request = OutlineRequest(
        query="Which pilot steered the burning tanker Hesper into a harbour?",
        today=TODAY,
        plan=Plan(plan_title="Hesper", steps=[PlanStep(step_id=1, title="The tanker Hesper", description="d")]),
        notes=[told],
    )
    assert outline(request).answered is Answered.no
    assert outline(request).sections[0].heading == "What comes closest"


@pytest.mark.parametrize(
    "cut",
    [
        "| Heron | 1 h 05 min |",
        "| Grey Lady | 55 min |\n| Heron | 1 h 05 min |",
        "|---|---|\n| Heron | 1 h 05 min |",
        "... 55 min | Heron | 15:20",
        "|",
    ],
)
def test_a_snippet_of_a_search_may_begin_in_the_middle_of_a_table(cut: str) -> None:
    table = "| Ship | Crossing |\n|---|---|\n| Little Auk | 40 min"
    excerpts = [(("Sa1b2c3",), f"{table} |"), (("Sa1b2c3",), cut), (("Sa1b2c3",), table.replace("40", "45") + " |")]
    alone = quoted(excerpts[1:2])
    rows = [row.removesuffix("|").strip() for row in cut.split("\n") if not row.startswith("|-")]
    assert all(re.search(rf"{re.escape(row)}[ .|]*\[Sa1b2c3\]", alone) for row in rows), alone
    assert re.sub(r"[\s.]|\[\w+\]", "", alone) == re.sub(r"[\s.]", "", cut)  # nothing is lost or said twice
    whole = f"{table} [Sa1b2c3] |\n| Little Auk | 45 min [Sa1b2c3] |"  # its parts are joined, and not with a cut one
    assert quoted(excerpts) == f"{whole}\n\n{alone}"


def test_what_stands_below_the_same_headings_has_them_once() -> None:
    times, cost, tide = "Ferry:\n\nTimes:\n\nAt nine.", "Ferry:\n\nCost:\n\nTwo euros.", "Ferry:\n\nNone at low tide."
    here, there = ("Sa1b2c3",), ("Sd4e5f6",)
    below = "Ferry:\n\nTimes:\n\nAt nine. [Sa1b2c3]\n\nCost:\n\nTwo euros. [Sa1b2c3]"
    assert quoted([(here, times), (here, cost)]) == below
    # "None at low tide" is not said of the cost, and the other source has a heading of its own.
    assert quoted([(here, times), (here, cost), (here, tide)]) == f"{below}\n\nFerry:\n\nNone at low tide. [Sa1b2c3]"
    assert quoted([(here, times), (there, cost)]).count("Ferry:") == 2
