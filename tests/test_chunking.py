"""What stands together in a text, what a fence is, and the headings under which a part of a text is shown."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fathom.models import SourceText
from fathom.retrieval.chunking import OMISSION, Chunks, headings_above
from fathom.retrieval.narrowing import narrow
from fathom.retrieval.portions import portions, shown
from fathom.text.blocks import split_blocks
from fathom.text.parsed import parse, units_of
from fathom.text.sentences import fences, split_sentences
from fathom.tools.documents.index import IndexedPassage, lay_out
from fathom.tools.documents.normal import markdown_sections
from fathom.tools.documents.readers import read_document
from fathom.tools.documents_tool import excerpt

FILLER = "Kettles are filled at the well and carried home along the river by the two of them. " * 3


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("```py\n# boil\n```", "# boil"),
        ("~~~\n# boil\n```\n~~~", "# boil\n```"),
        ("````md\n```\n# boil\n```\n````", "```\n# boil\n```"),
        ("   ```\n   # boil\n   ```", "# boil"),
        ("- ```\n  # boil\n  ```", "# boil"),
        ("```\n# boil\n    ```\n```", "# boil\n    ```"),
        ("```\n# boil", "# boil"),
    ],
)
def test_every_reader_finds_the_same_fence(text: str, code: str) -> None:
    closed = text.rstrip().endswith(("```", "~~~"))
    whole = f"Text here.\n\n{text}\n\n# Heading\n\nMore text." if closed else f"Text here.\n\n{text}"
    [fence] = fences(whole)
    assert (fence.code, fence.closed) == (code, closed)
    headings = ["Heading"] if closed else []
    assert [section.heading for section in markdown_sections(whole) if section.heading] == headings
    assert [whole[b.start : b.end] for b in split_blocks(whole) if b.kind == "heading"] == ["# Heading"] * closed
    sentences = split_sentences(whole)
    units = [whole[sentences[unit[0]].start : sentences[unit[-1]].end] for unit in Chunks(whole, sentences).units()]
    assert [unit.strip() for unit in units if "boil" in unit] == [text.strip()]
    [held] = [unit for unit in units_of(parse(whole), whole) if any("boil" in sentences[n].text for n in unit.own)]
    assert whole[sentences[held.own[0]].start : sentences[held.own[-1]].end].strip() == text.strip()


@pytest.mark.parametrize("line", ["```code``` is a span.", "`` ` `` and ``` ` ```"])
def test_a_span_of_code_opens_no_fence(line: str) -> None:
    text = f"{line}\n\n# Heading"
    assert not list(fences(text))
    assert [block.kind for block in split_blocks(text)][-1] == "heading"


def test_tildes_below_a_title_underline_it_and_open_no_fence() -> None:
    text = "Copper lids\n~~~~~~~~~~~\n\nThey last long.\n\nOld spouts\n~~~~~~~~~~\n\nThey leak now and then."
    assert [block.kind for block in split_blocks(text)] == ["heading", "prose"] * 2
    narrowed = narrow(
        [SourceText(source_id="S00000a", title="", kind="document", url="a.txt", text=f"{FILLER * 20}\n\n{text}")],
        "leak",
        80,
    )
    assert narrowed.texts[0].text.endswith("Old spouts\n~~~~~~~~~~\n\nThey leak now and then.")


@pytest.mark.parametrize("above", ["Boil it for ten minutes:", "", "~~~~~~\nfill()\n~~~~~~"])
def test_tildes_that_underline_no_title_open_a_fence(above: str) -> None:
    text = f"{above}\n~~~~~~\nboil()\n~~~~~~\n\nPour it."
    kinds = [block.kind for block in split_blocks(text)]
    assert kinds[-4:] == ["code"] * 3 + ["prose"]


def test_an_item_is_shown_with_the_items_around_it() -> None:
    text = "All of:\n\n- lids\n  - copper\n    - old\n- spouts"
    sentences = split_sentences(text)
    shown_with = [[sentences[n].text for n in numbers] for numbers in Chunks(text, sentences).companions()]
    assert shown_with == [[], ["All of:"], ["All of:", "- lids"], ["All of:", "- lids", "- copper"], ["All of:"]]


def test_the_last_of_many_headings_is_with_what_follows() -> None:
    text = "\n\n".join([*(f"# Heading {n}" for n in range(8)), "Text is here."])
    sentences = split_sentences(text)
    assert [len(unit) for unit in Chunks(text, sentences).units()] == [3, 3, 3]


_SECTIONS = st.lists(st.tuples(st.integers(1, 3), st.integers(0, 4)), min_size=3, max_size=9)


def document(sections: list[tuple[int, int]]) -> str:
    """Return sections of a level and a number of paragraphs; each heading and paragraph is there once."""
    blocks: list[str] = []
    for number, (level, paragraphs) in enumerate(sections):
        blocks.append(f"{'#' * level} Heading {number}")
        blocks += (f"Paragraph {number}.{n} is here. {FILLER}" for n in range(paragraphs))
    return "\n\n".join(blocks)


def paths(text: str) -> dict[str, list[str]]:
    """Return the headings above each paragraph."""
    sentences = split_sentences(text)
    above = headings_above(sentences)
    return {
        sentence.text: [sentences[n].text for n in above[number]]
        for number, sentence in enumerate(sentences)
        if sentence.text.startswith("Paragraph")
    }


@given(_SECTIONS, st.lists(st.integers(0, 40), min_size=1, max_size=4), st.integers(250, 900))
def test_what_is_shown_of_a_text_stands_below_its_headings(
    sections: list[tuple[int, int]], best: list[int], room: int
) -> None:
    text = document(sections)
    whole = paths(text)
    source = SourceText(source_id="S000001", url="docs:a", title="Title", kind="document", text=text)
    laid_out = lay_out(read_document("a.md", text.encode()))
    spans = enumerate(laid_out.spans)
    passages = [IndexedPassage(n, s.heading, 0, s.start, s.stop, s.words, s.opening, s.closing) for n, s in spans]
    chosen = [number % len(passages) for number in best]
    some = [
        *(part.text for part in portions(source, room)),
        *(one.text for one in narrow([source], "paragraph 2.1", room, fill=True).texts),
        excerpt(laid_out.text, passages, chosen, room),
    ]
    for part in some:
        assert paths(part).items() <= whole.items()
        lines = [line for line in part.split("\n") if line.startswith("#")]
        assert len(set(lines)) == len(lines), "a heading is shown once"
        for before, line in pairwise(part.split("\n\n")):
            assert not (before == line == OMISSION)


@pytest.mark.parametrize(
    "head",
    [
        "From: Ann\nStatus: Draft\nVersion: 3\n\n# Kettle minutes\n",
        "---\nstatus: draft\nversion: 3\n---\n\n# Kettle minutes\n",
    ],
)
def test_a_header_is_said_once(head: str) -> None:
    document = read_document("a.md", f"{head}\n{FILLER * 100}".encode())
    source = SourceText(
        source_id="S000001", url="docs:a", title=document.title, kind="document", fields=document.fields,
        text=lay_out(document).text,
    )  # fmt: skip
    requests = shown([source], "kettle", text_tokens=500, request_tokens=900, most_requests=6).requests
    parts = [part for some in requests for part in some]
    assert len(parts) > 1
    for part in parts:
        said = part.text + "".join(f"{name}: {value}" for name, value in part.fields.items())
        assert said.count("raft") == 1, "in the text, or else beside it"
