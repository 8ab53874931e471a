"""What the compressor is shown of an output: all of it, in parts and requests, and what is said where it is not."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fathom.budget.ledger import Cost
from fathom.config.groups import Budget
from fathom.models import RunResult, SourceText
from fathom.retrieval.chunking import OMISSION, opening_of
from fathom.retrieval.narrowing import narrow
from fathom.retrieval.portions import MOST_REQUESTS, portions, said_anew, shown
from fathom.roles import CompressAnswer
from fathom.roles.compressor import merged
from fathom.run.engine import Engine
from fathom.tasks.tool_calls import NARROWED
from fathom.text.sentences import split_sentences
from fathom.text.tokens import count_tokens
from tests.inprocess import QUERY, investigated
from tests.stubs import LAST_FACT, SENTINEL, Record, Stubs, long_table
from tests.stubs.pages import page

pytestmark = pytest.mark.usefixtures("home")

_NAMES = ("boat", "harbour", "lamp", "meadow", "orchard", "12", "kept", "sold", "wide")
_WORDS = st.lists(st.sampled_from(_NAMES), min_size=2, max_size=9)
_PROSE = _WORDS.map(lambda words: f"The {' '.join(words)} was there.")
_HEADING = st.tuples(st.integers(1, 3), _WORDS).map(lambda made: f"{'#' * made[0]} {' '.join(made[1][:3])}\n")
_ITEMS = st.lists(_PROSE, min_size=1, max_size=8).map(
    lambda lines: "\n".join(f"- {line}\n  It is so." for line in lines)
)
_ROWS = st.lists(_WORDS, min_size=1, max_size=20).map(
    lambda rows: "\n".join(["| n | what |", "|---|---|", *(f"| {n} | {' '.join(row)} |" for n, row in enumerate(rows))])
)
_CODE = st.lists(_WORDS, min_size=1, max_size=20).map(
    lambda lines: "\n".join(["```python", *(f"run({', '.join(line)})" for line in lines), "```"])
)
_HEADER = "LEP: 8\nTitle: Boats\nStatus: Final\n\n=====\nBoats\n====="
_BLOCKS = st.lists(st.one_of(_PROSE, _HEADING, _ITEMS, _ROWS, _CODE), min_size=1, max_size=20)


def source(text: str, number: int = 1) -> SourceText:
    return SourceText(source_id=f"S{number:06x}", url=f"docs:{number}", title="Title", kind="document", text=text)


def lines_of(text: str) -> list[str]:
    return [line for line in text.split("\n") if line.strip()]


@given(_BLOCKS.map("\n\n".join), st.integers(80, 400))
def test_parts_hold_every_line_in_order_within_the_limit(text: str, limit: int) -> None:
    parts = portions(source(text), limit)
    assert len(parts) == 1 or count_tokens(text) > limit
    rest = iter(line for part in parts for line in lines_of(part.text))
    assert all(line in rest for line in lines_of(text)), "each line, one after the other"
    assert {line for part in parts for line in lines_of(part.text)} <= {*lines_of(text), OMISSION}
    for part in parts:
        assert count_tokens(part.text) <= limit
        assert part.text.count("```") % 2 == 0
        assert part.source_id == "S000001"
        assert part.full == (len(parts) == 1)


def test_cutting_a_page_calls_few_functions_for_a_sentence() -> None:
    read, calls = source(page("https://atlas.example/boats", 50_000).text), 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        assert len(portions(read, 2_000)) > 3
    finally:
        sys.setprofile(None)
    assert calls < 90 * len(split_sentences(read.text))  # 67; 123, if all were looked for


@given(st.text(alphabet=st.sampled_from("aB .\n#-|`~1:"), max_size=600), st.integers(100, 200))
def test_parts_of_any_text_hold_all_of_it(text: str, limit: int) -> None:
    parts = portions(source(text * 4), limit)
    rest = iter("".join(part.text for part in parts))
    assert all(letter in rest for letter in text * 4 if letter.strip())


@given(_BLOCKS.map("\n\n".join), st.integers(300, 600))
def test_no_part_cuts_what_belongs_together(text: str, limit: int) -> None:
    for part in portions(source(text), limit):
        lines = lines_of(part.text)
        assert not [line for line in lines[-1:] if line.startswith("#")] or lines[-1] == lines_of(text)[-1]
        for before, line in zip(lines, [*lines[1:], ""], strict=True):
            assert not before.startswith("- ") or line == "  It is so.", "an item has its second line"
            assert (
                before == "|---|---|"
                or not line.startswith("| ")
                or before.startswith(("| ", OMISSION))
                or (line == "| n | what |")
            ), "a row is below its header"


def test_a_part_has_what_it_needs_to_be_understood() -> None:
    rows = "\n".join(f"| {n} | the lamp of pier {n} |" for n in range(400))
    code = "\n".join(f"step_{n}()" for n in range(400))
    text = f"# Harbour\n\n## Lamps\n\nAll lamps:\n\n| n | lamp |\n|---|---|\n{rows}\n\n## Steps\n\n```sh\n{code}\n```\n"
    parts = [part.text for part in portions(source(text), 500)]
    last_rows = next(part for part in parts if "pier 399" in part)
    assert last_rows.startswith(f"# Harbour\n\n## Lamps\n\n{OMISSION}\n\n| n | lamp |\n|---|---|\n\n{OMISSION}\n\n| ")
    assert parts[-1].startswith(f"# Harbour\n\n{OMISSION}\n\n## Steps\n\n```sh\n\n{OMISSION}\n\nstep_")
    assert parts[-1].endswith("step_399()\n```")
    assert parts[-2].endswith(f"\n\n{OMISSION}\n\n```")


@pytest.mark.parametrize(
    "text",
    [
        "| n | what |\n|---|---|\n" + "".join(f"| {n} | a row of the table |\n" for n in range(10_000)),
        "word " * 20_000,
        "x" * 100_000,
        "```\n" + "run(1)\n" * 10_000,
        "# A heading of the menu\n\n" * 10_000,
        "- item\n" * 10_000,
    ],
    ids=lambda text: repr(text[:8]),
)
def test_any_text_is_cut_in_linear_time(text: str) -> None:
    start = time.process_time()
    parts = portions(source(text), 8_000)
    narrow([source(text)], "row", 8_000)
    assert time.process_time() - start < 60
    assert len(parts) > 1
    assert all(count_tokens(part.text) <= 8_000 for part in parts)


def test_texts_of_one_source_are_in_one_request_if_it_holds_them() -> None:
    texts = [source("The boat was sold. " * 60, n) for n in (1, 2, 1, 3)]
    size = count_tokens(texts[0].text) + 60
    spread = shown(texts, "boat", text_tokens=1_000, request_tokens=2 * size, most_requests=4)
    assert [[text.source_id for text in some] for some in spread.requests] == [["S000001"] * 2, ["S000002", "S000003"]]
    assert spread.left_out_tokens == 0


def test_what_a_few_requests_do_not_hold_is_narrowed_to_what_they_hold() -> None:
    prose = "\n\n".join(f"Paragraph {n} is about boats and lamps by the sea." for n in range(3_000))
    texts = [source(f"{prose}\n\nThe zircon lies in drawer 7.", 1), source(prose.replace("lamps", "ropes"), 2)]
    total = sum(count_tokens(text.text) for text in texts)
    spread = shown(texts, "Where does the zircon lie?", text_tokens=1_000, request_tokens=1_500, most_requests=4)
    kept = [text for some in spread.requests for text in some]
    assert len(spread.requests) == 4
    assert all(sum(count_tokens(text.text) for text in some) <= 1_500 for some in spread.requests)
    assert any("drawer 7" in text.text for text in kept)
    assert spread.left_out_tokens == pytest.approx(total - sum(count_tokens(text.text) for text in kept), rel=0.01)


def is_beside(heading: str, line: str) -> bool:
    """Whether a line begins another section than the one below a heading."""
    level = len(line) - len(line.lstrip("#"))
    return 0 < level <= len(heading) - len(heading.lstrip("#"))


@given(_BLOCKS.map("\n\n".join), st.integers(300, 1_000))
def test_narrowing_keeps_items_rows_and_fences_whole(text: str, room: int) -> None:
    front = "---\ntitle: Harbours\ndate: 2024-05-01\n---\n\n# Harbours\n\n"
    for narrowed in narrow([source(front + text)], "boat and lamp", room).texts:
        assert narrowed.text.startswith(front.strip())
        lines = lines_of(narrowed.text)
        assert lines.count("  It is so.") >= sum(line.startswith("- ") for line in lines)
        assert narrowed.text.count("```") % 2 == 0
        for line, omitted, after in zip(lines[5:], lines[6:], [*lines[7:], "# the end"], strict=False):
            assert not (line.startswith("#") and omitted == OMISSION and is_beside(line, after))


@pytest.mark.parametrize(
    ("text", "opening"),
    [
        ("# Boats\n\nText is here.", "# Boats"),
        ("---\ntitle: Boats\n---\n\nText is here.", "---\ntitle: Boats\n---"),
        (f"{_HEADER}\n\nText is here.", _HEADER),
        ("Note: the text has no title.\n\nText is here.", ""),
        ("-----\n\nText is here.", ""),
        ("", ""),
    ],
)  # fmt: skip
def test_the_opening_of_a_text_is_its_front_matter_and_title(text: str, opening: str) -> None:
    numbers = opening_of(sentences := split_sentences(text))
    assert text[: sentences[numbers[-1]].end if numbers else 0] == opening


def answer(title: str, sentences: int, *bullets: str, useful: bool = True) -> CompressAnswer:
    summary = " ".join(f"{title} says {n}." for n in range(sentences))
    return CompressAnswer(summary_title=title, summary=summary, extraction=list(bullets), is_useful=useful)


def test_answers_about_one_output_become_one_note() -> None:
    useless = answer("Nothing", 0, useful=False)
    one, two = answer("One", 8, "a [S00000a]", "b [S00000a]"), answer("Two", 3, "b [S00000a]", "c [S00000b]")
    three = answer("Three", 9, "a [S00000a]")
    note = merged([useless, one, two, three])
    assert note.summary_title == "One"
    assert note.extraction == ["a [S00000a]", "b [S00000a]", "c [S00000b]"]
    said = [sentence.text.split()[0] for sentence in split_sentences(note.summary)]
    assert said == ["One"] * 4 + ["Two"] * 3 + ["Three"] * 3
    assert merged([useless, two]) == two
    assert merged([useless, useless]) == useless


# -- whole runs -------------------------------------------------------------------------------------------------------


def said_to(record: Record) -> str:
    return "\n".join(str(message["content"]) for message in record.body["messages"])


def notes_of(result: RunResult) -> list[Mapping[str, str]]:
    return list(json.loads(Path(result.artifacts, "notes.json").read_text()))


async def test_the_last_row_of_a_long_page_reaches_the_note(providers: Stubs, tmp_path: Path) -> None:
    providers.settings.planted = {"https://atlas.example/table": long_table(200_000, QUERY)}
    result = await investigated(tmp_path, depth=1, profile="quick")
    assert any(LAST_FACT in json.dumps(note) for note in notes_of(result))
    assert not any(NARROWED in note["summary"] for note in notes_of(result))
    assert result.metrics.narrowed_tokens == 0
    assert {record.status for record in providers.calls("compressor")} == {200}


@pytest.mark.usefixtures("wide")
@pytest.mark.parametrize("page_bytes", [4_000, 20_000])
async def test_a_model_with_a_small_window_is_asked_several_times(
    providers: Stubs, tmp_path: Path, page_bytes: int
) -> None:
    """Small pages fit four requests to such a model; of larger ones, the note says that it was shown a part."""
    providers.settings.page_bytes, providers.settings.context_window = page_bytes, 8_000
    small = {"compressor": {"model": "openai/stub", "window": 8_000}}
    result = await investigated(tmp_path, depth=1, profile="quick", role_models=small)
    compressions = providers.calls("compressor")
    assert {record.status for record in compressions} == {200}
    assert result.metrics.tool_calls < len(compressions) <= MOST_REQUESTS * result.metrics.tool_calls
    returned = {mark for record in providers.calls("search") for mark in SENTINEL.findall(json.dumps(record.answer))}
    read = {mark for record in compressions for mark in SENTINEL.findall(said_to(record))}
    fits = page_bytes == 4_000
    assert fits == (returned <= read) == (result.metrics.narrowed_tokens == 0)
    assert fits == (not any(NARROWED in note["summary"] for note in notes_of(result)))


@pytest.mark.usefixtures("wide")
async def test_with_little_of_the_budget_left_the_best_passages_are_read(providers: Stubs, tmp_path: Path) -> None:
    providers.settings.page_bytes = 20_000
    budget = Budget(max_tokens=3_000_000)

    async def spend(engine: Engine) -> None:
        tokens = int(0.85 * 3_000_000 * budget.research_share)
        async with engine.ledger.attempt(lambda _left: Cost(tokens=tokens), research=True):
            pass

    result = await investigated(tmp_path, _before=spend, depth=1, profile="quick", budget={"max_tokens": 3_000_000})
    assert len(providers.calls("compressor")) == result.metrics.tool_calls
    assert result.metrics.narrowed_tokens > result.metrics.raw_tokens / 4
    assert any(NARROWED in note["summary"] for note in notes_of(result))


_LONG = [
    f"The {kind} harbour has {n} lamps, and the keeper of each writes down when it was lit and put out. " * 2
    for n, kind in enumerate(("north", "south", "east", "west", "upper", "lower"), 2)
]


def test_a_stretch_that_two_excerpts_share_is_shown_once_below_its_headings() -> None:
    def excerpt(*numbers: int) -> str:
        return "# Lamps\n\n" + "\n\n".join(f"## Harbour {n}\n\n{_LONG[n].strip()}" for n in numbers)

    first, second = source(excerpt(0, 1, 2)), source(excerpt(1, 2, 3))
    part = said_anew(second, [first.text])
    assert part is not None
    assert lines_of(part.text) == ["# Lamps", OMISSION, "## Harbour 3", _LONG[3].strip()]
    assert said_anew(second, []) is second
    assert said_anew(source(excerpt(3, 4)), [first.text]) == source(excerpt(3, 4))
    assert said_anew(source(excerpt(1, 2)), [first.text]) is None


@pytest.mark.usefixtures("wide")
async def test_what_several_searches_of_a_step_find_in_one_document_is_shown_once(
    providers: Stubs, tmp_path: Path
) -> None:
    """All that they found is shown, and nothing of it twice."""
    kinds = ("figures", "evidence", "review", "figures, evidence, review")
    said = [
        f"## Keeper {n}\n\nTides form on moons with liquid: the {kinds[n % 4]} of tides are described by keeper {n}. "
        + "It was so. " * 30
        for n in range(400)
    ]
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "seas.md").write_text("# Seas\n\n" + "\n\n".join(said))
    result = await investigated(
        tmp_path / "store", depth=1, profile="quick", docs=[str(tmp_path / "docs")], tools=["documents"], max_steps=1
    )
    shown_lines = [
        line for record in providers.calls("compressor") for line in lines_of(said_to(record)) if "described" in line
    ]
    assert result.metrics.tool_calls > 1
    found = [path.read_text() for path in Path(result.artifacts).glob("*documents*.json")]
    assert len(shown_lines) == len(set(shown_lines)) > 20
    assert set(re.findall(r"described by keeper (\d+)", "".join(shown_lines))) == set(
        re.findall(r"described by keeper (\d+)", "".join(found))
    )


@given(_BLOCKS.map("\n\n".join), _BLOCKS.map("\n\n".join), _BLOCKS.map("\n\n".join))
def test_of_any_two_excerpts_every_line_is_shown(before: str, both: str, after: str) -> None:
    one, other = f"{before}\n\n{both}", f"{both}\n\n{after}"
    part = said_anew(source(other), [one])
    told = {*lines_of(one), *(lines_of(part.text) if part else [])}
    assert {line for line in lines_of(other) if not line.startswith(("#", "|", "```"))} <= told
