"""What the tool `documents` returns of long documents: excerpts that are whole, and clean of markup."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fathom.retrieval.chunking import parts_of
from fathom.text.tokens import count_tokens
from fathom.tools.documents.index import lay_out
from fathom.tools.documents.readers import read_document
from fathom.tools.documents_tool import OUTPUT_TOKENS, WHOLE_TOKENS, DocumentsTool, rooms
from tests.test_document_forms import read

FILLER = "Kettles are filled at the well and carried home along the river by the two of them, as they always were. "


def filler(words: str, times: int = 14) -> str:
    """Return a section of about 3,500 characters on something else."""
    return f"## About {words}\n\n" + "\n\n".join(f"On {words} {n}: {FILLER * 2}" for n in range(times))


async def excerpts(tmp_path: Path, text: str, query: str) -> list[str]:
    """Return what is shown of a document that is longer than what is returned whole."""
    folder = tmp_path / "docs"
    folder.mkdir()
    around = [filler(f"kettle {n}") for n in range(14)]
    (folder / "a.md").write_text("\n\n".join(["# Notes", *around[:7], text, *around[7:]]), encoding="utf-8")
    [found] = (await DocumentsTool([str(folder)], tmp_path / "cache", 1).run(query)).results
    assert not found.full
    assert count_tokens(found.text) < WHOLE_TOKENS * 1.1
    return found.text.split("\n\n[...]\n\n")


def code(lines: int) -> str:
    """Return a function whose docstring has blank lines, and that many lines more."""
    body = "\n".join(f"    kettle_{n} = boil({n})\n" for n in range(lines))
    docstring = '"""Whistle when the kettle boils.\n\n    # Heading\n\n    Loudly.\n    """'
    return f"```python\ndef whistle():\n    {docstring}\n{body}```"


async def test_code_is_whole(tmp_path: Path) -> None:
    fence = code(150)
    shown = await excerpts(tmp_path, f"## Whistling\n\n{FILLER}\n\n{fence}", "whistle loudly kettle_100")
    assert any(fence in part for part in shown)


async def test_code_that_is_longer_than_the_room_is_cut_at_its_lines_between_fences(tmp_path: Path) -> None:
    fence = code(2_000)
    shown = await excerpts(tmp_path, f"## Whistling\n\n{FILLER}\n\n{fence}", "kettle_1000 boil")
    [part] = [part for part in shown if "kettle_1000 =" in part]
    assert part.count("```") % 2 == 0
    own = part.split("```python\n", 1)[1].rsplit("\n```", 1)[0].split("\n")
    assert set(own) <= set(fence.split("\n"))


async def test_a_list_goes_with_its_lead_in(tmp_path: Path) -> None:
    items = "\n".join(f"- kettle lid {n}, {FILLER.lower()}\n\n  And lid {n} is kept dry." for n in range(25))
    listed = f"The following are not allowed:\n\n{items}"
    shown = await excerpts(tmp_path, f"## Rules\n\n{FILLER}\n\n{listed}", "which lid 20 is not allowed")
    assert any(listed in part for part in shown)


async def test_of_a_list_longer_than_the_room_items_are_whole_and_the_lead_in_is_said_again(tmp_path: Path) -> None:
    items = [f"- saucer {n}, {FILLER.lower()}\n\n  And saucer {n} is kept dry." for n in range(300)]
    text = "## Rules\n\nThe following are not allowed:\n\n" + "\n".join(items)
    shown = await excerpts(tmp_path, text, "saucer 200 kept dry")
    at = next(n for n, part in enumerate(shown) if "saucer 200 " in part)
    assert shown[at - 1].endswith("The following are not allowed:")
    assert shown[at].startswith("- saucer ")
    whole = re.findall(r"^- saucer (\d+)", shown[at], re.M)
    assert whole == re.findall(r"And saucer (\d+)", shown[at])


async def test_a_heading_goes_with_what_follows_it_or_not_at_all(tmp_path: Path) -> None:
    text = "## Rejected ideas\n\n### Copper spouts\n\nCopper spouts turn green.\n\n## Links\n\n## See also"
    shown = await excerpts(tmp_path, text, "copper spouts")
    [part] = [part for part in shown if "turn green" in part]
    assert "## Rejected ideas\n\n### Copper spouts\n\nCopper spouts turn green." in part
    headed = [part.split("\n\n") for part in shown if re.search(r"^#+ .*\Z", part, re.M)]
    assert all(line.startswith("#") for lines in headed for line in lines), "it stands above what follows the gap"
    assert "See also" not in "".join(shown)


async def test_what_a_query_names_by_its_identifier_is_shown_from_however_long_a_document(tmp_path: Path) -> None:
    named = "## `lid.knob`\n\nRound, and of wood."
    usual = "\n\n".join(
        f"## Key {n}\n\nThe lid of kettle {n}, its knob and key, defined by example. {FILLER}" for n in range(200)
    )
    shown = await excerpts(
        tmp_path, f"{usual}\n\n{named}\n\n{usual}", "definition of the key lid.knob of a kettle, example"
    )
    assert any(named in part for part in shown)


def test_a_section_needs_what_announces_it_above() -> None:
    text = "# Spouts\n\nText.\n\nOne kind:\n\n## Copper\n\nGreen.\n\n## Tin\n\n### Bent\n\nOld.\n\n## Lids\n\nFlat."
    spans = lay_out(read_document("a.md", text.encode())).spans
    assert {span.heading: span.opening for span in spans} == {
        "Spouts": "", "Copper": "One kind:\n\n", "Tin": "", "Bent": "## Tin\n\n", "Lids": "",
    }  # fmt: skip


def test_a_heading_of_any_length_is_kept_once() -> None:
    heading = "Spoons " * 20_000
    text = f"# {heading}\n\n## Tin\n\n" + "\n\n".join(f"Spoon {n}. {FILLER * 3}" for n in range(200))
    made = lay_out(read_document("a.md", text.encode()))
    assert made.text.startswith(f"# {heading.strip()}\n")
    assert len(made.spans) > 50
    assert max(len(kept) for span in made.spans for kept in (span.heading, span.heading_terms, span.opening)) <= 300
    assert len(made.title) <= 300


async def test_an_excerpt_from_the_middle_of_a_section_says_whose_it_is(tmp_path: Path) -> None:
    long = "\n\n".join(f"Spoon {n}. {FILLER * 3}" for n in range(200))
    shown = await excerpts(tmp_path, f"## Spoons\n\n{long}", "spoon 150")
    before = "\n\n".join(shown).partition("Spoon 150.")[0]
    assert re.findall(r"^#+ .*", before, re.M)[-1] == "## Spoons"


def test_documents_of_ordinary_length_are_whole_as_long_as_there_is_room() -> None:
    short, ordinary, long = "Kettles boil. " * 10, "Kettles boil. " * 1_400, "Kettles boil. " * 40_000
    size = count_tokens(ordinary)
    assert size < WHOLE_TOKENS < count_tokens(long)
    assert rooms([ordinary] * 4 + [short]) == [None] * 5
    found = rooms([ordinary, long, long, long, long])
    assert found[0] is None
    assert found[1] == WHOLE_TOKENS
    assert all(found[1:])
    assert size + sum(room or 0 for room in found) <= OUTPUT_TOKENS
    assert sum(room or 0 for room in rooms([long] * 20)) <= OUTPUT_TOKENS
    assert min(room or 0 for room in rooms([long] * 20)) > 1_000


@pytest.mark.parametrize(
    ("text", "groups"),
    [
        ("# One\n\nText one.\n\nText two.", ["# One\n\nText one.", "Text two."]),
        ("Do this:\n\n- a\n\n  more\n- b\n\nText.", ["Do this:\n\n- a\n\n  more\n- b", "Text."]),
        ("Text.\n\n```\na\n\nb\n```\n\n```\nc\n```", ["Text.", "```\na\n\nb\n```", "```\nc\n```"]),
        ("- ```\n  # a\n\n  b\n  ```\n\nText.", ["- ```\n  # a\n\n  b\n  ```", "Text."]),
        (
            "Text.\n\n| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |",
            ["Text.", "| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |"],
        ),
        ("````md\n```\n# a\n```\n\nb\n````\n\nText.", ["````md\n```\n# a\n```\n\nb\n````", "Text."]),
    ],
)
def test_what_stands_together(text: str, groups: list[str]) -> None:
    parts = parts_of(text)
    numbers = list(dict.fromkeys(part.group for part in parts))
    held = [[part for part in parts if part.group == number] for number in numbers]
    assert [text[own[0].start : own[-1].stop] for own in held] == groups


def test_a_row_is_cut_off_below_its_header_and_a_line_of_code_between_its_fences() -> None:
    table = parts_of("| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |")
    assert [part.opening for part in table] == ["", *["| a | b |\n|---|---|\n"] * 2]
    fence = parts_of("```py\na\n\nb\nc\n```")
    assert [(part.opening, part.closing) for part in fence] == [("", ""), *[("```py\n", "\n```")] * 2]
    nested = parts_of("- Do:\n\n  ```py\n  a\n  b\n  ```\n")
    assert [(part.opening, part.closing) for part in nested][2:] == [("  ```py\n", "\n  ```")]
    listed = parts_of("One of:\n\n- a\n- b")
    assert [part.opening for part in listed] == ["", "One of:\n\n", "One of:\n\n[...]\n\n"]


@pytest.mark.parametrize(
    "text",
    [
        "- ```sh\n  # this is no heading\n  ls\n  ```\n\nText.",
        "1. Do it:\n\n      ```sh\n# this is no heading\n      ls\n      ```\n\nText.",
        "> ```sh\n# this is no heading\n> ```\n\nText.",
        "Text:\n\n    ls\n\n    # this is no heading\n    ls\n",
    ],
)
def test_a_comment_in_code_is_no_heading(text: str) -> None:
    document = read_document("a.md", f"# Title\n\n{text}\n\n## Other\n\nMore.\n".encode())
    assert [section.heading for section in document.sections] == ["Title", "Other"]


def test_indented_code_is_between_fences_and_indented_items_are_not() -> None:
    text = "Run:\n\n    # noqa\n    ls\n\n    rm\n\nThen:\n\n- item\n\n    its paragraph\n"
    assert read("a.md", text) == ("Run:\n\n```\n# noqa\nls\n\nrm\n```\n\nThen:\n\n- item\n\n    its paragraph")


MARKUP = """(label)=
# Use {#use .big}

Ask {% channel "kettle-help" %} about `{% if %}`. {% include "parts/_end.html" %}

::: tip
Pour slowly.
:::

!!! note "Careful"
    The lid is hot.

> [!WARNING]
> Steam burns.

```{toctree}
:maxdepth: 2

first
```

```{code-block} python
:linenos:

boil()
```

```jinja
{% if hot %}
```
"""


def test_what_markdown_holds_of_other_languages_is_taken_out_of_its_markup() -> None:
    written = read("a.md", MARKUP)
    assert re.sub(r"\n{2,}", "\n\n", written).strip() == (
        "# Use\n\nAsk kettle-help about `{% if %}`. \n\nTip:\nPour slowly.\n\nNote: Careful\n\nThe lid is hot.\n\n"
        "> Warning:\n> Steam burns.\n\n```python\nboil()\n```\n\n```jinja\n{% if hot %}\n```"
    )


REST = """.. _kettles:

Kettles
=======

.. code-block:: python
   :linenos:

   # noqa
   boil()

.. toctree::
   :maxdepth: 2

   spouts

.. versionadded:: 2.0
"""


def test_a_plain_text_that_clearly_is_rest_is_read_as_such() -> None:
    assert read("a.txt", REST) == "# Kettles\n\n```python\n# noqa\nboil()\n```\n\nNew in version 2.0."
    assert read("a.txt", "Kettles\n=======\n\n.. They boil.\n") == "# Kettles\n\n.. They boil."


def test_rest_that_is_too_long_to_be_parsed_loses_the_lines_that_are_markup() -> None:
    written = read("a.rst", REST + "\n" + "boil" * 3_000)
    assert not re.search(r"^\.\.|:\w+:", written, re.M)
    assert "boil()" in written
    assert "New in version 2.0" in written


def test_front_matter_is_read_once() -> None:
    matter = 'title: "Kettles: all"\nstatus: >\n  in\n  use\ntags: [tea, steam]\nextra:\n  note: "no field"\n'
    matter += "about: |\n  Word: none\n"
    document = read_document("a.md", f"---\n{matter}date: 2024-05-06\n---\n# Use\n\nText.\n".encode())
    assert (document.title, document.date) == ("Kettles: all", "2024-05-06")
    assert document.fields == {"status": "in use", "tags": "tea, steam", "about": "Word: none", "date": "2024-05-06"}
    broken = read_document("a.md", b"---\ntitle: Kettles: all\nstatus: draft\n---\n# Use\n\nText.\n")
    assert (broken.title, broken.fields) == ("Kettles: all", {"status": "draft"})


def test_passages_do_not_begin_inside_of_what_stands_together() -> None:
    text = "# Title\n\n" + "\n\n".join([FILLER * 4, code(40)] * 12)
    laid_out = lay_out(read_document("a.md", text.encode()))
    assert len(laid_out.spans) > 3
    for span in laid_out.spans:
        assert laid_out.text[span.start : span.stop].count("```") % 2 == 0
        assert not span.opening
