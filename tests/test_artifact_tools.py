"""Going back to the run's raw outputs."""

from __future__ import annotations

import pytest

from fathom.errors import ToolRejected
from fathom.models import SourceText, ToolOutput
from fathom.text.urls import source_ids
from fathom.tools import artifacts
from fathom.tools.artifacts import ArtifactGrepTool, ArtifactReadTool

FILLER = "Nothing of note is said here at all.\n" * 60
LONG = f"{FILLER}A data descriptor takes\nprecedence over the instance.\n{FILLER}Non-data descriptors do not.\n{FILLER}"


def source(url: str, text: str, **fields: object) -> SourceText:
    ids = source_ids([url])
    return SourceText.model_validate(
        {"source_id": ids[url], "url": url, "title": url, "kind": "web", "text": text, "snippet": "s", **fields}
    )


class Run:
    """The raw outputs of a run."""

    def __init__(self, **outputs: list[SourceText]) -> None:
        self.outputs = {name.replace("_json", ".json"): ToolOutput(results=texts) for name, texts in outputs.items()}

    async def list(self) -> list[str]:
        return sorted(self.outputs)

    async def read(self, name: str) -> ToolOutput:
        return self.outputs[name]


A = source("https://a.org", LONG, published="2026-01-01", score=0.7)
B = source("https://b.org", "Each descriptor is an object. " * 3)
RUN = Run(
    t__step1_x__web_search_json=[A, B],
    t__step1_x__web_search__2_json=[A],
    t__step2_y__artifact_grep_json=[source("https://a.org", "A data descriptor, seen before.")],
    t__step3_z__documents_json=[source("docs:notes/c.md", "Neither word.")],
)


async def test_grep_returns_passages_with_their_sources() -> None:
    output = await ArtifactGrepTool(RUN).run(r"data\s+descriptors? (takes|do)")
    [found] = output.results
    assert (found.url, found.source_id, found.published) == (A.url, A.source_id, A.published)
    first, second = found.text.split("\n\n[...]\n\n")
    assert "A data descriptor takes\nprecedence" in first
    assert "Non-data descriptors do not." in second
    assert 800 < len(first) < 1000
    assert all(passage in LONG for passage in (first, second))


async def test_passages_begin_and_end_with_blocks_and_what_they_need() -> None:
    lines = [f"kettle_{n} = boil({n})" for n in range(200)]
    lines[100] = "whistle(kettle_100)"
    around = "Kettles are filled at the well. " * 20
    listed = "\n".join(f"- Lid {n} is kept dry, and so is its saucer." for n in range(12))
    text = f"# Kettles\n\n{around}\n\n```python\n" + "\n".join(lines) + f"\n```\n\n{around}\n\n## Lids\n\n{listed}"
    grep = ArtifactGrepTool(Run(t__step1_x__fetch_json=[source("https://k.org", text)]))
    [code] = (await grep.run("whistle")).results
    first, *inside, last = code.text.split("\n")
    assert (first, last) == ("```python", "```")
    assert "whistle(kettle_100)" in inside
    assert set(inside) <= set(lines)
    [lids] = (await grep.run(r"Lid\s4\b")).results
    assert lids.text == f"## Lids\n\n{listed}"


async def test_plain_words_and_broken_expressions_match_any_word_the_best_first() -> None:
    for words in ("precedence object descriptor", "(precedence object descriptor"):
        results = (await ArtifactGrepTool(RUN).run(words)).results
        assert [text.url for text in results] == ["https://a.org", "https://b.org"]
    assert (await ArtifactGrepTool(RUN).run("nowhere")).results == []
    assert (await ArtifactGrepTool(RUN).run("x*")).results == []


async def test_grep_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    many = Run(o_json=[source("https://m.org", "".join(f"needle {n} " + "hay " * 300 for n in range(60)))])
    [found] = (await ArtifactGrepTool(many).run(r"needle \d+")).results
    assert found.text.count("needle") == 20
    for everything in (r"[\s\S]+", "hay", "."):
        [found] = (await ArtifactGrepTool(many).run(everything)).results
        assert len(found.text) <= 20 * (artifacts.LONGEST_PASSAGE + 10)

    monkeypatch.setattr(artifacts, "SEARCH_SECONDS", 0.2)
    with pytest.raises(ToolRejected, match="too long"):  # not within a lifetime, were it not stopped
        await ArtifactGrepTool(Run(o_json=[source("https://n.org", "a" * 5_000 + "!")])).run("(a|a)*(a+)+$")
    for pattern in (
        "",
        "a" * 501,
        "((((a{99}){99}){99}){99}){99}",
        "(a{1,1000}){ 1000 }",
        "(a{1000,}){1000}",
        "(?R)",
        "(a(?1)?)",
    ):
        with pytest.raises(ToolRejected):
            await ArtifactGrepTool(RUN).run(pattern)


async def test_read_returns_a_whole_artifact_or_one_source() -> None:
    tool = ArtifactReadTool(RUN)
    name = "t__step1_x__web_search.json"
    both = await tool.run(name)
    assert (both.results, both.structured) == ([A, B], True)
    one = await tool.run(f" {name}#{B.source_id} ")
    assert (one.results, one.structured) == ([B], False)
    with pytest.raises(ToolRejected, match=f"{A.source_id}, {B.source_id}"):
        await tool.run(f"{name}#S000000")


@pytest.mark.parametrize("name", ["", "run.json", "../t__step1_x__web_search.json", "/etc/passwd", "a\0b", "..\\x"])
async def test_no_name_leads_out_of_the_run(name: str) -> None:
    with pytest.raises(ToolRejected):
        await ArtifactReadTool(RUN).run(name)
