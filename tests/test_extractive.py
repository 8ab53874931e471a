"""The model-free backend: every role's answer keeps the role's rules, says the same each time, and reads well."""

import asyncio
import os
import re
import subprocess
import sys
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fathom.config.groups import EXTRACTIVE, RoleModel
from fathom.evidence.support import spaced_words
from fathom.extractive.backend import ExtractiveBackend
from fathom.extractive.questions import questions_of
from fathom.extractive.statements import Quotations
from fathom.llm.base import ModelCall
from fathom.models import Answered, Document, Note, Plan, PlanStep, RunResult, SourceText, StepStatus, ToolCall
from fathom.retrieval.asked import deed_of, read_asked
from fathom.retrieval.excerpts import ReadText, announced, as_markdown
from fathom.roles import (
    COMPRESSOR,
    CRITIC,
    OUTLINE,
    PLANNER,
    RESEARCHER,
    SECTION,
    CompressAnswer,
    CompressRequest,
    OutlineAnswer,
    OutlineRequest,
    PlanAnswer,
    PlanRequest,
    ReflectAnswer,
    ReflectRequest,
    Request,
    ResearchAnswer,
    ResearchRequest,
    RoleSpec,
    SectionRequest,
    Text,
)
from fathom.text.sentences import split_markdown, split_sentences
from fathom.text.terms import count_words
from fathom.text.tokens import count_tokens
from tests.inprocess import investigated
from tests.test_evidence import drawn_checks

QUERY = "How does Python look up an attribute on an instance?"
TODAY = "2026-11-22"
TOOLS = {"documents": "Searches the local documents.", "web_search": "Searches the web.", "artifact_grep": "Greps."}
WORDS = "how does why what is the compare A and B vs of in, : ? . lookup 3 (x y) with list it Wie 你好"
MODEL = RoleModel(model=EXTRACTIVE)


async def ask(spec: RoleSpec[Any, Any], request: Request) -> Any:
    """Return the mended answer; it must leave nothing to complain about and be the same when asked again."""
    call = ModelCall(spec=spec, request=request, model=MODEL)
    completion = await ExtractiveBackend().complete(call)
    assert (await ExtractiveBackend().complete(call)).text == completion.text
    assert completion.usage.llm_calls == 0
    prose = spec.answer is Text
    answer = Text(text=completion.text) if prose else spec.answer.model_validate_json(completion.text)
    mended = spec.normalize(request, answer)
    assert mended == answer, "nothing needed mending"
    assert spec.check(request, mended) == []
    return mended


def source(name: str, number: int) -> SourceText:
    title = topics[name].strip().split("\n")[0]
    return SourceText(source_id=f"S{number:06x}", url=f"python:{name}", title=title, kind="document", text=topics[name])


def quotations_of(text: str, title: str) -> Quotations:
    """Return what can be quoted of one document."""
    return Quotations.of_texts(
        [SourceText(source_id="S000001", url="docs:a.md", title=title, kind="document", text=text)]
    )


def compress_request(
    texts: list[SourceText], step: str = "How Python looks up an attribute", room: int = 600
) -> CompressRequest:
    return CompressRequest(
        plan_title="Python attribute lookup on an instance",
        step_title=step,
        step_description=f"Find the passages that answer: {QUERY}",
        tool_name="documents",
        texts=texts,
        page_tokens=room // 3,
    )


async def note(step_id: int, texts: list[SourceText], step: str) -> Note:
    answer: CompressAnswer = await ask(COMPRESSOR, compress_request(texts, step))
    assert answer.is_useful
    return as_note(answer, texts, step_id)


def as_note(answer: CompressAnswer, texts: list[SourceText], step_id: int = 1) -> Note:
    return Note(step_id=step_id, artifact_file="a.json", source_ids=[t.source_id for t in texts], **answer.model_dump())


ATTRIBUTES = [source("attribute-access", 1), source("attribute-references", 2)]
STEPS = [
    PlanStep(step_id=1, title="How Python looks up an attribute", description="Find how attributes are looked up."),
    PlanStep(step_id=2, title="Implementing descriptors", description="Find how descriptors are implemented."),
]
PLAN = Plan(plan_title="Python attribute lookup on an instance", steps=STEPS)


# -- planner ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "title", "steps"),
    [
        (QUERY, "How does Python look up an attribute on an instance?", [QUERY]),
        (
            "What is the difference between a list and a tuple?",
            "What is the difference between a list and a tuple?",
            ["What is the difference between a list and a tuple?", "About a list", "About a tuple"],
        ),
        (
            "How do with statements and exceptions interact?",
            "How do with statements and exceptions interact?",
            [
                "How do with statements and exceptions interact?",
                "About with statements",
                "About exceptions",
            ],
        ),
        (
            "What are the causes and effects of soil erosion?",
            "What are the causes and effects of soil erosion?",
            ["What are the causes and effects of soil erosion?", "Causes of soil erosion", "Effects of soil erosion"],
        ),
        (
            "Who wrote Faust and when was it sold?",
            "Who wrote Faust?",
            ["Who wrote Faust?", "When was it sold (Faust)?"],
        ),
        (
            "Please write a report on the impact of tariffs on car makers, including exports, jobs, and prices.",
            "The impact of tariffs on car makers, including exports, jobs, and prices",
            ["The impact of tariffs on car makers, including exports, jobs, and prices", "Exports", "Jobs", "Prices"],
        ),
        ("How do I merge two dictionaries?", "How do I merge two dictionaries?", ["How do I merge two dictionaries?"]),
        ("Is nuclear power safe?", "Is nuclear power safe?", ["Is nuclear power safe?"]),
        ("量子计算如何影响密码学？", "量子计算如何影响密码学", ["量子计算如何影响密码学"]),
    ],
)  # fmt: skip
async def test_planner_finds_the_parts_of_a_question(query: str, title: str, steps: list[str]) -> None:
    plan: PlanAnswer = await ask(PLANNER, PlanRequest(query=query, today=TODAY, max_steps=5, tools=TOOLS))
    assert plan.plan_title == title
    assert [step.title for step in plan.steps][: len(steps)] == steps
    for step in plan.steps:
        assert step.queries
        assert len({q.lower() for q in step.queries}) == len(step.queries) <= 3


async def test_planner_follows_the_documents_headings() -> None:
    documents = [
        Document(title="Customizing attribute access", headings=["Implementing Descriptors", "Invoking Descriptors"]),
        Document(title="The pdb debugger for Python", headings=["Debugger Commands"]),
    ]
    request = PlanRequest(query=QUERY, today=TODAY, max_steps=4, tools=TOOLS, documents=documents)
    plan: PlanAnswer = await ask(PLANNER, request)
    titles = [step.title for step in plan.steps]
    assert "Customizing attribute access" in titles
    assert not any("debugger" in title.lower() for title in titles)
    assert len(plan.steps) <= 4


@given(
    st.text(min_size=1, max_size=60).filter(str.strip)
    | st.lists(
        st.sampled_from(WORDS.split()),
        min_size=1,
        max_size=14,
    ).map(" ".join),
    st.integers(1, 10),
)
@example("{(0", 1)
@example("(0? 0?", 1)
async def test_planner_makes_a_valid_plan_of_anything(query: str, max_steps: int) -> None:
    await ask(PLANNER, PlanRequest(query=query, today=TODAY, max_steps=max_steps, tools=TOOLS))


# -- researcher ---------------------------------------------------------------------------------------------------


async def test_researcher_searches_then_widens_then_stops() -> None:
    step = STEPS[0].model_copy(update={"queries": ["attribute lookup", "instance attribute order"]})

    def request(tried: list[ToolCall], notes: list[Note]) -> ResearchRequest:
        return ResearchRequest(
            query=QUERY,
            today=TODAY,
            step=step,
            breadth=3,
            tools=TOOLS,
            searching=["documents", "web_search"],
            notes=notes,
            tried=tried,
        )

    first: ResearchAnswer = await ask(RESEARCHER, request([], []))
    assert len(first.calls) == 3
    assert {call.tool for call in first.calls} == {"documents", "web_search"}
    tried = [ToolCall(tool=call.tool, input=call.input) for call in first.calls]
    found = await note(1, ATTRIBUTES, step.title)
    assert (await ask(RESEARCHER, request(tried, [found]))).done
    while not (answer := await ask(RESEARCHER, request(tried, []))).done:
        tried += [ToolCall(tool=call.tool, input=call.input) for call in answer.calls]
    assert len(tried) == len(set(tried)) <= 6


# -- compressor ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("room", [150, 300, 600, 2_000])
async def test_compressor_quotes_word_for_word_within_its_room(room: int) -> None:
    answer: CompressAnswer = await ask(COMPRESSOR, compress_request(ATTRIBUTES, room=room))
    assert answer.is_useful
    assert 5 <= count_words(answer.summary_title) <= 12
    assert 3 <= len(split_sentences(answer.summary)) <= 10
    raw = {text.source_id: spaced_words(text.text) for text in ATTRIBUTES}
    quoted = list(as_note(answer, ATTRIBUTES).quotations())
    assert len({text for text, _ in quoted}) == len(quoted) >= 1, "summary and bullets share no sentence"
    for text, (cited,) in quoted:
        assert all(spaced_words(block) in raw[cited] for block in text.split("\n\n"))
    assert count_tokens(answer.model_dump_json()) <= room


async def test_compressor_quotes_code_rows_and_items_with_what_leads_to_them() -> None:
    text = """# Attribute lookup

An attribute lookup on an instance begins with the type of the instance. It then turns to the instance's own dictionary.

The attribute lookup proceeds as follows:

```python
value = instance.attribute
```

| attribute | looked up on |
|---|---|
| colour | the paint |
| attribute name | the instance |

These give an instance its attributes:

- its own dictionary
- its type

See the section on attribute lookup for more on instance attributes.
"""
    given_text = SourceText(source_id="Sabcdef", url="docs:a", title="Attributes", kind="document", text=text)
    answer: CompressAnswer = await ask(COMPRESSOR, compress_request([given_text]))
    quoted = [text for text, _ in as_note(answer, [given_text]).quotations()]
    whole = "\n\n".join(quoted)
    assert "The attribute lookup proceeds as follows:\n\n```python\nvalue = instance.attribute\n```" in whole
    assert "| attribute | looked up on |\n|---|---|\n" in whole
    assert "\n| attribute name | the instance |" in whole
    assert "- its own dictionary\n- its type" in whole
    assert "It then turns to the instance's own dictionary." not in quoted


@pytest.mark.parametrize("text", ["", "   \n", "Bananas are rich in potassium. They grow in warm places.", "x" * 5_000])
async def test_compressor_says_when_nothing_is_relevant(text: str) -> None:
    given_text = SourceText(source_id="Sabcdef", url="docs:a", title="Fruit", kind="document", text=text)
    assert not (await ask(COMPRESSOR, compress_request([given_text]))).is_useful
    assert not (await ask(COMPRESSOR, compress_request([]))).is_useful


async def test_words_that_hardly_say_what_is_asked_put_nothing_off_the_topic() -> None:
    said = "# Marlin L\n\nThe list price of the Marlin L is 3640 crowns.\n\n" + "The Marlin L is a pump.\n\n" * 8
    page = SourceText(source_id="Sabcdef", url="docs:a", title="Pumps", kind="document", text=said)
    asked = "I'm thinking of getting a Marlin L, how much is it"
    request = compress_request([page], asked).model_copy(update={"plan_title": asked, "step_description": asked})
    assert (await ask(COMPRESSOR, request)).is_useful


@pytest.mark.parametrize(
    ("asked", "is_useful"),
    [
        ("my daughter is 12, what do we pay for her on friday evening at the museum", True),
        ("my daughter is 12, when are the otters fed on friday evening at the zoo", False),
    ],
)
async def test_what_tells_the_asker_s_own_case_puts_nothing_off_the_topic(asked: str, is_useful: bool) -> None:
    said = "# Town museum\n\n- Adults: 9 euros\n- Children up to 14 years: free\n"
    page = SourceText(source_id="Sabcdef", url="docs:a", title="Town museum", kind="document", text=said)
    request = compress_request([page], asked).model_copy(update={"plan_title": asked, "step_description": asked})
    assert (await ask(COMPRESSOR, request)).is_useful is is_useful


@given(
    st.lists(
        st.lists(
            st.sampled_from(
                [
                    *("Python looks up the attribute on the instance.", "attribute", "An instance, i.e.", "It is so."),
                    *("- item of an attribute lookup\n", "Attributes of 3.5 instances are here!", "实例的属性查找。"),
                    *("(", '"', "\n\n", "\n"),
                ]
            ),
            max_size=12,
        ).map(" ".join),
        max_size=3,
    ),
    st.integers(150, 700),
)  # fmt: skip
async def test_compressor_keeps_the_rules_on_anything(texts: list[str], room: int) -> None:
    given_texts = [
        SourceText(source_id=f"S{n:06x}", url=f"docs:{n}", title=f"Part {n}", kind="document", text=text)
        for n, text in enumerate(texts)
    ]
    await ask(COMPRESSOR, compress_request(given_texts, room=room))


# -- critic -------------------------------------------------------------------------------------------------------


async def test_critic_scores_and_follows_up_only_what_is_missing() -> None:
    plan = Plan(
        plan_title="Attributes", steps=[STEPS[0], PlanStep(step_id=2, title="Quokka diet", description="Find it.")]
    )

    def request(notes: list[Note], query: str) -> ReflectRequest:
        return ReflectRequest(query=query, today=TODAY, plan=plan, round=1, max_follow_ups=2, notes=notes)

    nothing: ReflectAnswer = await ask(CRITIC, request([], QUERY))
    assert nothing.sufficiency_score == 1
    found = await note(1, ATTRIBUTES, STEPS[0].title)
    part: ReflectAnswer = await ask(CRITIC, request([found], "How are attributes looked up, and what do quokkas eat?"))
    assert {str(v.step_id): v.status for v in part.step_statuses} == {"1": StepStatus.done, "2": StepStatus.blocked}
    assert any("quokkas" in gap.description for gap in part.gaps)
    assert 1 <= len(part.follow_up_steps) <= 2
    assert part.follow_up_steps[0].queries
    both = [found, found.model_copy(update={"step_id": 2})]
    full: ReflectAnswer = await ask(CRITIC, request(both, QUERY))
    assert full.sufficiency_score >= 9
    assert full.follow_up_steps == []


# -- reporter -----------------------------------------------------------------------------------------------------


async def report() -> tuple[OutlineAnswer, list[str], list[Note]]:
    notes = [await note(step_id, ATTRIBUTES, step.title) for step_id, step in enumerate(STEPS, 1)]
    outline: OutlineAnswer = await ask(OUTLINE, OutlineRequest(query=QUERY, today=TODAY, plan=PLAN, notes=notes))
    written: list[str] = []
    for position, section in enumerate(outline.sections):
        request = SectionRequest(
            query=QUERY,
            today=TODAY,
            title=outline.title,
            outlined=outline.sections,
            position=position,
            notes=[n for n in notes if not section.step_ids or n.step_id in section.step_ids],
            written=list(written),
        )
        written.append((await ask(SECTION, request)).text)
    return outline, written, notes


async def test_report_quotes_each_sentence_once_with_its_citation() -> None:
    outline, written, _ = await report()
    assert outline.title == QUERY
    headings = [section.heading for section in outline.sections]
    assert headings[0] == "Answer"
    assert set(headings[1:]) <= {step.title for step in STEPS}
    assert len(headings) == len(set(headings)) >= 2
    raw = " ".join(spaced_words(text.text) for text in ATTRIBUTES)
    cited = re.split(r"\[S[0-9a-f]{6}\]", "\n\n".join(written))
    sentences = [
        s.text for part in cited for s in split_sentences(part) if s.text.strip("`") and s.text != "The source reads:"
    ]
    assert [sentence for sentence in sentences if spaced_words(sentence) not in raw] == []
    said = [sentence for sentence in sentences if not sentence.endswith(":")]
    assert len(said) == len(set(said)) >= 8
    assert count_tokens(re.sub(r"\[S[0-9a-f]{6}\]", "", written[0])) <= 300


async def test_section_without_new_material_says_so() -> None:
    outline, _, notes = await report()
    request = SectionRequest(
        query=QUERY,
        today=TODAY,
        title=outline.title,
        outlined=outline.sections,
        position=1,
        notes=notes[:1],
        written=[" ".join([notes[0].summary, *notes[0].extraction])],
    )
    assert "nothing to add" in (await ask(SECTION, request)).text


def test_answers_and_checks_do_not_depend_on_the_hash_seed() -> None:
    """This process has a seed that nobody chose."""
    code = (
        "import asyncio, tests.test_extractive as t\n"
        "outline, written, notes = asyncio.run(t.report())\n"
        "print(outline.model_dump_json(), written, notes, t.drawn_checks())"
    )
    said = subprocess.check_output(
        [sys.executable, "-c", code],
        cwd=Path(__file__).parent.parent,
        env={**os.environ, "PYTHONHASHSEED": "1"},
        text=True,
    )
    outline, written, notes = asyncio.run(report())
    assert said == f"{outline.model_dump_json()} {written} {notes} {drawn_checks()}\n"


def test_a_quotation_takes_along_what_limits_it() -> None:
    said = "The value is taken from the dictionary. For instance, a comes first.\n\nHowever, a descriptor wins."
    text = ReadText(f"# Lookup\n\n{said}")
    quoted = [text.markdown(excerpt, heading=False) for excerpt in text.excerpts]
    assert any(each.startswith("The value") and each.endswith("However, a descriptor wins.") for each in quoted)
    assert not any(each.endswith("a comes first.") for each in quoted)


async def test_a_section_is_quoted_in_the_order_in_which_its_author_wrote_it(tmp_path: Path) -> None:
    filler = "Its case is blue, and the feet are of rubber that somebody has cut by hand.\n\n" * 12
    (tmp_path / "pumps.md").write_text(
        f"# Pumps\n\n## Motor\n\n{filler}The motor of a pump has a lever, by which one starts it.\n\n{filler}"
        f"How the pump starts is shown by a lamp.\n\n## Price\n\n{filler}A motor costs 300 euros.\n",
        encoding="utf-8",
    )
    await investigated(
        tmp_path, "How does the motor of a pump start?", docs=[str(tmp_path)], tools=["documents"], model=None
    )
    [report] = tmp_path.rglob("report.md")
    answer = report.read_text(encoding="utf-8").split("## ")[1]
    said = ["Motor:", "by which one starts it", "is shown by a lamp"]  # what the second needs stands above both
    places = [answer.index(each) for each in said if each in answer]
    assert len(places) == 3 and places == sorted(places)


@pytest.mark.parametrize(
    ("below", "answered"),
    [
        ("This method defines the value, or raises an exception.", Answered.maybe),
        ("You define a custom exception as a class that inherits from `Exception`.", Answered.yes),
    ],
)
def test_one_line_must_say_how_something_is_done(below: str, answered: Answered) -> None:
    filler = "\n\n".join(f"Paragraph {n} is about something else." for n in range(100))
    text = f"# Classes\n\n## Custom access to attributes\n\n{below}\n\n## More\n\n{filler}"
    assert quotations_of(text, "Classes").answer("How do I define a custom exception?") is answered


async def test_the_line_that_tells_stands_before_a_page_of_mentions(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    command = "`shop delete ORDER` deletes an order with its invoice."
    (docs / "commands.md").write_text(f"# Commands\n\n## Remove one\n\n{command}\n", encoding="utf-8")
    mentions = (
        "Colleagues who delete an order call the office in `#orders`.",
        "Who may delete an order is told by `shop.toml`.",
        "An order that guests delete is shown by `--grey`.",
    )
    apart = "The shop sells lamps and clocks, and every morning somebody sweeps its floor. " * 6
    (docs / "orders.md").write_text("# Orders\n\n" + f"\n\n{apart}\n\n".join(mentions), encoding="utf-8")
    await investigated(tmp_path, "How do I delete an order?", docs=[str(docs)], tools=["documents"], model=None)
    [report] = tmp_path.rglob("report.md")
    answer = report.read_text(encoding="utf-8").split("## ")[1]
    assert answer.index(command) < answer.index(mentions[0])


def test_a_link_alone_is_not_quoted() -> None:
    text = "# Pumps\n\nPress the red button, and the pump stops.\n[Durability](durability.md)\n"
    quotations, asked = quotations_of(text, "Pumps"), "What happens when I press the red button?"
    quoted = quotations.markdown(quotations.rank(asked)[0], asked)
    assert "red button" in quoted and "Durability" not in quoted


async def test_a_heading_stands_once_above_what_is_quoted_of_its_section(tmp_path: Path) -> None:
    rows = "".join(f"| `PUMP_{n}` | what pump {n} is called |\n" for n in range(1, 12))
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "settings.md").write_text(
        "# Settings\n\n## Environment\n\nThe environment is read once, when a pump starts.\n\n"
        f"| variable | meaning |\n|---|---|\n{rows}| `KEY`, `ADDRESS` | M7 |\n| `M7_LOCK` | how M7 locks pumps |\n",
        encoding="utf-8",
    )
    asked = "Which environment variables does the pump read for M7?"
    await investigated(tmp_path, asked, docs=[str(docs)], tools=["documents"], model=None)
    [report] = tmp_path.rglob("report.md")
    answer = report.read_text(encoding="utf-8").split("## ")[1]
    assert answer.count("Environment:") == 1 and "`KEY`, `ADDRESS` | M7" in answer


@pytest.mark.parametrize(
    ("said", "answered"),
    [
        ("Old orders of the shop are shown in grey.", Answered.maybe),
        ("To delete old orders of the shop, open them and press Remove.", Answered.yes),
    ],
)
def test_how_something_is_done_is_told_where_it_is_done(said: str, answered: Answered) -> None:
    text = f"# Orders\n\n{said}\n\nA colleague may delete what nobody reads.\n"
    assert quotations_of(text, "Orders").answer("How do I delete the old orders of a shop?") is answered


def test_how_something_is_done_is_not_told_by_the_path_of_a_value() -> None:
    api = "- paths./orders/{order}/cancel.post.responses.404.description: Order not found\n- info.title: Orders\n"
    guide = "# Orders\n\nTo cancel an order, write to the office.\n"
    texts = [
        SourceText(source_id=f"S00000{n}", url=f"docs:{n}", title="Orders", kind="document", text=text)
        for n, text in enumerate([api, guide])
    ]
    quotations = Quotations.of_texts(texts)
    steps, value = "How do I cancel an order?", "What is the description of the response 404 when I cancel an order?"
    assert "write to the office" in quotations.markdown(quotations.rank(steps)[0], steps)
    assert "Order not found" in quotations.markdown(quotations.rank(value)[0], value)


def test_what_something_is_for_counts_like_any_other_word() -> None:
    text = (
        "# Settings\n\nThe variables that a pump reads:\n\n| variable | meaning |\n|---|---|\n"
        "| `PUMP_NAME` | what the pump is called |\n| `PUMP_READ` | whether others may read the pump |\n"
        "| `KEY`, `ADDRESS` | M7 |\n"
    )
    worth = quotations_of(text, "Settings").worth("Which variables does a pump read for M7?")
    assert "m7" in max(worth, key=lambda term: worth[term])


@pytest.mark.parametrize(
    ("said", "answered"),
    [
        ("Overtime on Saturdays was worked until 31 October 2026.", Answered.no),
        ("Overtime was worked on 14 Saturdays until 31 October 2026.", Answered.yes),
    ],
)
def test_a_date_is_no_count(said: str, answered: Answered) -> None:
    assert (
        quotations_of(f"# Site\n\n{said}\n", "Site").answer("How many Saturdays of overtime were worked?") is answered
    )


def test_what_is_too_far_down_to_be_quoted_answers_nothing() -> None:
    text = "# Drift\n\nDrift shows people what it has.\n\nTwo people of the same name are one person."
    quotations, asked = quotations_of(text, "Drift"), "How many people work on Drift?"
    found = quotations.rank(asked)
    counting = [each for each in found if "Two" in quotations.says(each)]
    showing = [each for each in found if each not in counting]
    assert quotations.answered_by([*showing, *counting], asked) is Answered.maybe
    assert quotations.answered_by([*showing * 12, *counting], asked) is Answered.no


def test_when_behind_out_asks_for_no_date() -> None:
    text = "If you leave the firm, award leave is not paid out. It expires with your contract."
    source = SourceText(source_id="S1", url="docs:h/leave.md", title="Leave", text=text, kind="document")
    quotations = Quotations.of_texts([source])
    assert quotations.answer("Is award leave paid out when I leave?") is not Answered.no
    assert quotations.answer("Can you find out when award leave is paid out?") is Answered.no


def test_a_numbered_heading_is_quoted_as_no_item_of_a_list() -> None:
    text = "## 2. Actions\n\n| Who | Action |\n|---|---|\n| Ida | Repair gate 3 |\n"
    quoted = as_markdown(text, split_markdown(text))
    assert quoted.startswith("Actions:\n\n| Who | Action |")
    assert [part.kind for part in split_markdown(quoted)].count("item") == 0
    assert announced("SUPPLY AGREEMENT No. BP-2025-17") == "SUPPLY AGREEMENT No. BP-2025-17:"


@pytest.mark.parametrize(
    ("asked", "first"),
    [
        ("What are the actions from the site meeting?", "| Ida Berg | Repair gate 3 |"),
        ("Which decisions did the site meeting take?", "Gate 3 gets a new motor."),
    ],
)
def test_the_list_below_a_heading_that_is_asked_for_comes_first(asked: str, first: str) -> None:
    text = (
        "# Site meeting of 14 September 2026\n\n## 1. Decisions\n\n- Gate 3 gets a new motor.\n- The lamps stay.\n\n"
        "## 2. Actions\n\n| Who | What |\n|---|---|\n| Ida Berg | Repair gate 3 |\n| Ole Dahl | Order lamps |\n\n"
        "Next meeting: 28 September 2026 at the site, with actions.\n"
    )
    quotations = quotations_of(text, "Site meeting")
    assert first in quotations.markdown(quotations.rank(asked)[0], asked)


@pytest.mark.parametrize("asked", ["How do I run it every Monday?", "Can I run it weekly?"])
async def test_a_day_of_the_week_asks_for_a_schedule(asked: str, tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text("# Watches\n\nA watch runs again on a schedule, `--cron '0 6 * * 1'`.\n")
    (tmp_path / "docs" / "b.md").write_text("# Runs\n\nYou run research with a question. Every run has a folder.\n")
    result = await investigated(tmp_path / "runs", query=asked, model=None, docs=[str(tmp_path / "docs")])
    assert result.report
    assert "--cron" in Path(result.report).read_text()


def test_a_question_that_names_no_thing_has_no_answer() -> None:
    text = "The difference between a pump and a fan is what each of them moves."
    quotations = Quotations.of_texts(
        [SourceText(source_id="S123456", title="", url="docs:a.md", kind="document", text=text)]
    )
    assert quotations.answer("What is the difference between a pump and a fan?") is Answered.yes
    assert quotations.answer("What's the difference between == and is?") is Answered.no


@pytest.mark.parametrize("words", range(60, 100, 3))  # a section is cut somewhere
def test_no_quotation_ends_with_what_only_stands_above_something(words: int) -> None:
    rows = "\n".join(f"| cap {number} | {number} dollars |" for number in range(30))
    text = ReadText(f"# Caps\n\nCaps are{' kept' * words}.\n\n| cap | default |\n|---|---|\n{rows}\n")
    quoted = [text.markdown(excerpt, heading=False) for excerpt in text.excerpts]
    assert any("Caps are" in each for each in quoted)
    assert [each for each in quoted if each.rstrip().endswith((":", "|---|---|"))] == []


CLAUSES = """# Works contract

## Payment

Invoices are settled within 30 days of receipt.

The client withholds 5 % of every invoice.

## Delay

If the contractor fails to reach completion by the agreed date, it owes liquidated damages of 900 euros a day.

The change order was approved by M. Okafor.

The AGM is held on 12 November, where the MoPW speaks.

## Codes

No request is sent again that got a 4xx answer.

A request without an answer is logged.

## Illness and loss

Whoever suffers from vomiting stays away for 48 hours.

Theft is reported to the site office, telephone 0300 445.

Nach Erbrechen bleibt man zwei Tage weg.

## Kündigung

Der Wartungsvertrag ist jedes Jahr zu erneuern.
"""


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("How long do we have to pay the bills?", "Invoices are settled within 30 days"),
        ("he threw up, how long must he stay away", "vomiting stays away for 48 hours"),
        ("theyve pinched our drill, who should know?", "Theft is reported to the site office"),
        ("Wie lange bleibt man weg, wenn man sich übergeben hat?", "Nach Erbrechen bleibt man zwei Tage weg"),
        ("How much do we hold back from each bill?", "The client withholds 5 %"),
        ("Who signed off the change order?", "approved by M. Okafor"),
        ("What is the penalty if the builder is late?", "If the contractor fails to reach completion"),
        ("On which date is the annual general meeting?", "The AGM is held on 12 November"),
        ("Where does the Ministry of Public Works speak?", "where the MoPW speaks"),
        ("Is a request with the answer 404 repeated?", "got a 4xx answer"),
        ("Wie oft muss man den Wartungsvertrag verlängern?", "Der Wartungsvertrag ist jedes Jahr zu erneuern"),
    ],
)
def test_words_of_every_day_find_those_of_a_trade(asked: str, found: str) -> None:
    filler = "\n\n".join(f"Paragraph {n} is about something else." for n in range(100))
    text = f"{CLAUSES}\n## More\n\n{filler}\n"
    quotations = quotations_of(text, "Works contract")
    assert found in quotations.says(quotations.rank(asked)[0])
    assert quotations.answer(asked) is not Answered.no


@pytest.mark.parametrize(
    ("said", "answered"),
    [
        ("The pony is twelve years old.", Answered.yes),
        ("| animal | age |\n|---|---|\n| pony | 12 |\n| goat | 5 |", Answered.yes),
        ("| animal | born |\n|---|---|\n| pony | 2014 |\n| goat | 2020 |", Answered.maybe),
        ("The pony was born in 2014.", Answered.maybe),
        ("One bale lasts the pony four days.", Answered.no),
        ("| item | stock | use by |\n|---|---|---|\n| pony balancer 15 kg | 2 | 2027-01-31 |", Answered.no),
        ("The teeth of the pony are rasped on 2027-01-29.", Answered.no),
    ],
)
def test_an_age_is_told_in_years_or_where_an_age_is_named(said: str, answered: Answered) -> None:
    assert quotations_of(f"# Board\n\n{said}\n", "Board").answer("How old is the pony?") is answered


def test_what_is_measured_must_be_mentioned() -> None:
    said = "# Orders\n\nThe delivery time of the desk Alto is 6 weeks.\n"
    quotations = quotations_of(said, "Orders")
    assert quotations.answer("How long is the delivery time for the desk Alto?") is Answered.yes
    assert quotations.answer("How long is the warranty for the desk Alto?") is Answered.no


@pytest.mark.parametrize(
    ("said", "asked", "answered"),
    [
        ("| Plan | Churn |\n|---|---|\n| Basic | 4.2 |\n| Team | 1.9 |", "churn of the Basic plan", Answered.yes),
        ("The churn of the Basic plan is 4 %.", "churn of the Basic plan", Answered.yes),
        ("The rent for the workshop is 140 euros.", "rent for the workshop", Answered.yes),
        ("The tower of the church cost 140 euros.", "tower of the church", Answered.no),
        ("The tower of the church has plan 3.2.1.", "tower of the church", Answered.no),
    ],
)
def test_how_high_asks_for_a_height_or_for_the_measure_that_it_names(said: str, asked: str, answered: Answered) -> None:
    assert quotations_of(f"# Figures\n\n{said}\n", "Figures").answer(f"How high is the {asked}?") is answered


def test_to_sort_is_a_deed_and_a_sort_of_something_is_not() -> None:
    assert deed_of("How do I sort a dictionary by value?") == "sort"
    assert read_asked("What sort of lamp is it?").weights["sort"] < read_asked("How is it sorted?").weights["sort"]


SETTINGS = """
service: {name: ticketdesk, port: 8443, owner: platform}
database: {host: db.internal, port: 5432, pool_size: 20}
cache: {backend: redis, ttl_seconds: 900}
"""
RULES = """# Rules

## Equipment

Every new colleague receives:

- a laptop
- a door badge

The *owner* of a folder, and nobody else, opens it to others; *.py and *.md files are open to all.
"""


async def asked_over_settings(folder: Path, query: str, page: str) -> tuple[RunResult, str, str]:
    """Ask over `SETTINGS` and a page, without a model; return the result, the report, and its answer."""
    docs = folder / "docs"
    docs.mkdir()
    (docs / "settings.yaml").write_text(SETTINGS, encoding="utf-8")
    (docs / "page.md").write_text(page, encoding="utf-8")
    result = await investigated(folder / "runs", query=query, model=None, tools=["documents"], docs=[str(docs)])
    report = Path(result.artifacts, "report.md").read_text(encoding="utf-8")
    return result, report, report[: report.index("**How sure:**")]


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("any idea what the port of the database is?", "- database.port: 5432 [1]"),
        ("What are the latest database settings?", "- database.host: db.internal [1]\n- database.port: 5432 [1]\n"),
        ("List the equipment that a new colleague gets", "- a laptop [1]\n- a door badge [1]"),
        ("who's the one who opens a folder to others?", "The owner of a folder, and nobody else, opens it to others"),
    ],
)
async def test_only_what_is_asked_for_is_shown_and_missed(query: str, shown: str, tmp_path: Path) -> None:
    _, report, answer = await asked_over_settings(tmp_path, query, RULES)
    assert shown in answer
    assert "cache" not in answer
    assert "mention" not in report


SERVICE = """# Service

The *owner* of a repository grants write access. Access ends on the last working day.

You may work from home up to three days a week.

## Pages

A page has 50 tickets. Use the `after` parameter with the last id of the page before.

## Docking stations

The version of the firmware was updated.

| | RX-20 | TX-40 |
|---|---|---|
| price | €11 | €14 |
| range | 40 m | 60 m |

## Next year

The RX-40 will be sold from spring.

## 3.4.0

- Tickets can be exported.

## 3.3.0

- There is a dark mode.
"""


@pytest.mark.parametrize(
    ("query", "answered", "shown", "noise"),
    [
        ("Who grants write access to a repository?", Answered.yes, "The owner of a repository grants", "three days"),
        ("How often can I work from home?", Answered.yes, "up to three days a week", "tickets"),
        ("What changed in version 3.4.0?", Answered.maybe, "Tickets can be exported", "firmware"),
        ("What is the price of the RX-40?", Answered.maybe, "The RX-40 will be sold", "tickets"),
        ("How is the pool size of the database chosen?", Answered.maybe, "database.pool_size: 20", "cache"),
    ],
)
async def test_what_answers_is_told_from_what_only_shares_a_word(
    query: str, answered: Answered, shown: str, noise: str, tmp_path: Path
) -> None:
    result, _, answer = await asked_over_settings(tmp_path, query, SERVICE)
    assert result.answered is answered
    assert shown in answer
    assert noise not in answer


async def test_beside_one_line_that_answers_nothing_stands_that_holds_less(tmp_path: Path) -> None:
    page = (
        "# Handbook\n\n## Remote work\n\nStaff may work from home on two days of each week.\n\n"
        "## Travel\n\nA night away from home is paid if the work takes two days.\n\n"
        "## Pets\n\nDogs stay at home.\n"
    )
    result, _, answer = await asked_over_settings(tmp_path, "On how many days may staff work from home?", page)
    assert result.answered is Answered.yes
    assert "two days of each week" in answer
    assert "night away" not in answer and "Dogs" not in answer


TERMS = """# Bedingungen

## Ende

Der Vertrag kann mit einer Frist von vier Wochen zum Monatsende gekündigt werden.

## Rechnung

Wir rechnen den Verbrauch jeden Monat ab und schicken ein Blatt.

## Lieferung

Die Ware wird binnen drei Tagen geliefert.
"""


@pytest.mark.parametrize(
    ("query", "answered", "shown"),
    [
        ("Wie kündige ich?", Answered.yes, "vier Wochen"),
        ("Wie wird abgerechnet?", Answered.maybe, "jeden Monat"),
        ("Wann liefern Sie?", Answered.yes, "drei Tagen"),
    ],
)
async def test_a_german_verb_is_found_in_its_other_forms(
    query: str, answered: Answered, shown: str, tmp_path: Path
) -> None:
    result, _, answer = await asked_over_settings(tmp_path, query, TERMS)
    assert result.answered is answered
    assert shown in answer


@pytest.mark.parametrize(
    ("asked", "parts"),
    [
        ("Which plan is the cheapest and how do I cancel it?", ["Which plan is the cheapest", "how do I cancel it"]),
        (
            "In which town was it shown, and how many years after the last large release did it come?",
            ["In which town was it shown", "how many years after the last large release did it come"],
        ),
        (
            "Welcher Tarif ist am billigsten und wie kündige ich?",
            ["Welcher Tarif ist am billigsten", "wie kündige ich"],
        ),
        ("Quel tarif est le moins cher et comment résilier ?", ["Quel tarif est le moins cher", "comment résilier"]),
        ("¿Qué tarifa cuesta menos y cómo se cancela?", ["¿Qué tarifa cuesta menos", "cómo se cancela"]),
        ("Wer hat unterschrieben und wann?", ["Wer hat unterschrieben und wann"]),
    ],
)
def test_joined_questions_are_asked_one_by_one(asked: str, parts: list[str]) -> None:
    assert [part.partition(" (")[0] for part in questions_of(asked)] == parts


async def test_of_two_questions_each_is_answered_by_itself(tmp_path: Path) -> None:
    rules = "# Plots\n\n## Hedges\n\nHedges may be 120 cm tall.\n\n## Hens\n\nYou may keep six hens.\n"
    asked = "How tall may hedges be, and how many hens can I have?"
    _, report, answer = await asked_over_settings(tmp_path, asked, rules)
    assert "120 cm" in answer
    assert "six hens" in answer
    assert "Not found" not in answer
    headings = [line for line in report.splitlines() if line.startswith("#")]
    assert not any("(tall, hedges)" in line for line in headings)  # as it was asked, without what it is searched with


async def test_a_later_question_is_not_answered_by_what_is_said_of_another_name(tmp_path: Path) -> None:
    operas = "# Operas\n\n## Faust\n\nGounod composed Faust.\n\n## Carmen\n\nThe premiere of Carmen was in 1875.\n"
    _, _, answer = await asked_over_settings(tmp_path, "Who composed Faust, and when was the premiere?", operas)
    assert "Gounod composed Faust" in answer
    assert "Not found in the sources: when was the premiere?" in answer


async def test_where_to_look_is_not_what_is_asked_unless_nothing_else_is_named(tmp_path: Path) -> None:
    query = "What is a descriptor in Python?"
    result = await investigated(tmp_path, query=query, model=None, tools=["documents"])
    report = Path(result.artifacts, "report.md").read_text(encoding="utf-8")
    assert "a descriptor is an object attribute" in report[: report.index("**How sure:**")]
    assert read_asked(query).weights["python"] < 1.0
    assert read_asked("Why is everything shown in UTC?").weights["utc"] == 1.0


async def test_a_word_of_comparison_is_not_missing_where_the_values_are_compared(tmp_path: Path) -> None:
    hire = "# Hire\n\n| Tool | Shop | Price |\n|---|---|---|\n| Tiller | Hirefast | 52 |\n| Tiller | Toolmart | 45 |\n"
    query = "Where is it cheaper to rent a tiller, Toolmart or Hirefast?"
    _, report, answer = await asked_over_settings(tmp_path, query, hire)
    assert "45 (Toolmart) is 7 less than 52 (Hirefast)" in answer
    assert "Not found" not in report


async def test_whether_something_is_ok_is_told_by_what_is_permitted(tmp_path: Path) -> None:
    rules = "# Animals\n\nMembers may keep up to six hens. Cockerels are not permitted.\n"
    result, _, answer = await asked_over_settings(tmp_path, "Is it OK to keep a cockerel?", rules)
    assert result.answered is not Answered.no
    assert "Cockerels are not permitted" in answer


LOANS = """{
  "rules": {"notice_months": 6, "light_lux": 50},
  "asked_for": [
    {"object": "Banner of the dockers", "by": "Town hall, Marl", "answer": "no", "reason": "the silk splits"},
    {"object": "Punt gun", "by": "Fen centre", "answer": "open", "reason": "they have no cage"}
  ]
}
"""


async def test_a_record_of_a_data_file_is_quoted_as_a_whole_and_a_setting_alone(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "loans.json").write_text(LOANS, encoding="utf-8")
    for query, shown, hidden in (
        ("why did we tell marl that they cant have the banner", "asked_for[0].reason: the silk splits", "Punt gun"),
        ("how many months of notice are there", "- rules.notice_months: 6 [1]", "light_lux"),
    ):
        result = await investigated(tmp_path / "runs", query=query, model=None, docs=[str(docs)])
        report = Path(result.artifacts, "report.md").read_text(encoding="utf-8")
        answer = report[: report.index("**How sure:**")]
        assert shown in answer and hidden not in answer


BREAKAGE = """# Log of the workshop

- 3 March: the big lathe was out of use, nobody knew why.
- 9 March: the belt of the big lathe was broken. Ellis Marrow mended it.
- 10 March: new gloves came.
"""


@pytest.mark.parametrize(
    "query",
    [
        "the big lathe was out of use in spring - what was broken in the end and who mended it",
        "the big lathe: what was broken, and who mended it?",
    ],
)
async def test_both_questions_behind_what_a_person_tells_are_answered(query: str, tmp_path: Path) -> None:
    assert len(questions_of(query)) == 2
    _, _, answer = await asked_over_settings(tmp_path, query, BREAKAGE)
    assert "the belt of the big lathe was broken" in answer and "Ellis Marrow mended it" in answer
