"""`fathom verify FILE.md`: reports of other systems, by the texts of their sources. All content is invented."""

from __future__ import annotations

import json
import re
import signal
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fathom.evidence.claims import claims_of, comparable
from fathom.evidence.stored import StoredText
from fathom.models import Answered, ReportSection, Source
from fathom.report.foreign.check import to_judge
from fathom.report.foreign.reading import read_markdown, report_of
from fathom.report.foreign.sources import NumberedSource, in_folder
from fathom.report.markdown import render_markdown
from fathom.report.own_words import HOW_SURE, Added
from fathom.text.wording import LANGUAGES_OF_REPORTS, wording
from tests.conftest import FathomCLI, PrefectServer, base_env
from tests.forking import Forks
from tests.sample_report import sample_report
from tests.stubs import Stubs

PORT, QUAY, SILT = (
    "https://port.velmoor.example/figures/2023",
    "https://oskgazette.example/quay-history",
    "https://silt.example/channel_(velmoor)",
)
GPT_RESEARCHER = f"""# The Harbour of Velmoor

## Introduction

Velmoor handled 412,000 tonnes of cargo in 2023 ([Port of Velmoor, 2024]({PORT})). The old quay was built in 1871 \
(Aldous Brenn, [Osk Gazette](https://www.oskgazette.example/quay-history?utm_source=x)).

## Dredging

The channel is dredged to a depth of 9.5 metres ([Sand & Silt]({SILT})).

| Year | Cargo in tonnes | Source |
|---|---|---|
| 2022 | 398,000 | [Port]({PORT}) |

## References

- Port of Velmoor. (2024). *Figures for 2023*. [{PORT}]({PORT})
- Brenn, A. (2019). The story of the quay. Osk Gazette. {QUAY}
"""
CHAT = """**You said:**

How many people does the ferry take?

**ChatGPT said:**

The *Merrin* takes up to **240 passengers** ([127.0.0.1](BASE/merrin?utm_source=chatgpt.com)).\
\ue200cite\ue202turn0search1\ue201

* She crosses the sound in 35 minutes. ([Timetable][1])
* The café on board sells smoked eel【4†L12-L18】.

Source: [Fares](BASE/fares#:~:text=14%20crowns)

[1]: BASE/timetable "Timetable"
"""
OPEN_DEEP_RESEARCH = """# Velmoor ferry services

## Overview

The ferry Merrin crosses the sound in 35 minutes [1]. It carries 240 passengers and 38 cars [1][2]. It was built by \
Tarn and Sons [3].

### Fares

A single ticket costs 14 crowns [2].

### Sources

[1] Merrin: technical data: https://ferries.example/merrin
[2] Fares and conditions
    https://ferries.example/fares
[3] Osk Transport Watch: https://watch.example/osk?id=4
"""


def claims(text: str) -> list[tuple[str, list[str]]]:
    """Return the claims of a report, each with the addresses that it cites."""
    found = report_of(text, "report")
    urls = {source.source_id: source.url for source in found.report.sources}
    return [(one.sentence, [urls[i] for i in one.source_ids]) for one in claims_of(found.report.sections)]


# -- reading -----------------------------------------------------------------------------------------------------------


def test_a_report_of_gpt_researcher_is_read() -> None:
    quay = "https://www.oskgazette.example/quay-history?utm_source=x"  # as the report spells it
    assert claims(GPT_RESEARCHER) == [
        ("Velmoor handled 412,000 tonnes of cargo in 2023.", [PORT]),
        ("The old quay was built in 1871.", [quay]),
        ("The channel is dredged to a depth of 9.5 metres.", [SILT]),
        ("2022 | 398,000", [PORT]),
    ]
    found = report_of(GPT_RESEARCHER, "report").report
    assert found.title == "The Harbour of Velmoor"
    assert [one.title for one in found.sources] == ["Figures for 2023", "The story of the quay", "Sand & Silt"]


def test_the_export_of_a_chat_is_the_model_s_answer() -> None:
    found = report_of(CHAT.replace("BASE", "https://ferries.example"), "chat")
    assert found.report.query == "How many people does the ferry take?"
    assert [sentence for sentence, _ in claims(CHAT.replace("BASE", "https://ferries.example"))] == [
        "The *Merrin* takes up to **240 passengers**.",
        "She crosses the sound in 35 minutes.",
        "The café on board sells smoked eel.",
    ]
    assert found.cited.dangling == ["4", "cite turn0search1"]


def test_a_report_of_open_deep_research_is_read() -> None:
    merrin, fares, watch = (
        "https://ferries.example/merrin",
        "https://ferries.example/fares",
        "https://watch.example/osk?id=4",
    )
    assert claims(OPEN_DEEP_RESEARCH) == [
        ("The ferry Merrin crosses the sound in 35 minutes.", [merrin]),
        ("It carries 240 passengers and 38 cars.", [merrin, fares]),
        ("It was built by Tarn and Sons.", [watch]),
        ("A single ticket costs 14 crowns.", [fares]),
    ]


A, B = "https://a.example/x", "https://b.example/y"
SAID = "The sound is 310 metres deep."


@pytest.mark.parametrize(
    ("text", "cited"),
    [
        (f"The sound is 310 metres deep.1\n\n#### **Works cited**\n\n1. Depths, accessed May 4, 2025, [{A}]({A})", [A]),
        (f"The sound is 310 metres deep.¹\n\n## Sources\n\n1. Depths: {A}", [A]),
        (f"The sound is 310 metres deep<sup>1</sup>.\n\n## Sources\n\n1. Depths: {A}", [A]),
        (f"The sound is 310 metres deep<sup>[1]({A})</sup>.", [A]),
        (
            f"The sound is 310 metres deep (Tarn & Oakley, 2021).\n\n## Bibliography\n\nTarn, J. (2021). Depths. {A}",
            [A],
        ),
        (f"The sound is 310 metres deep [Source 1].\n\n## Sources\n\n1. Depths: {A}", [A]),
        (f"The sound is 310 metres deep [1, p. 12].\n\n## References\n\n[1] Depths. {A}\n[2] More. {B}", [A]),
        (f"The sound is 310 metres deep \\[1\\].\n\nQuellen:\n\n\\[1\\] Tiefen, {A}", [A]),
        (f"The sound is 310 metres deep [[1]](#ref-1).\n\n## References\n\n| 1 | Depths | {A} |", [A]),
        (f"The sound is 310 metres deep [[1]({A}), [2]({B})].", [A, B]),
        (f"The sound is 310 metres deep [^1].\n\n[^1]: Depths, {A}, and\n    again in {B}", [A, B]),
        (f"The sound is 310 metres deep. [a.example]({A})", [A]),
        (f"The sound is 310 metres deep. [Depths of the sound]({A})", [A]),
        (f"The sound is 310 metres deep.\n\nSource: [Depths]({A}), [More]({B})", [A, B]),
        (f'The sound is 310 metres deep <a href="{A}">[1]</a>.', [A]),
        (f"The sound is 310 metres deep [Depths][d].\n\n[d]: {A}", [A]),
        (f"The sound is 310 metres deep [1].\n\n---\n[1] Depths {A}\n[2] More {B}", [A]),
        (
            "The sound is 310 metres deep [1].\n\n## References\n\n1. Depths. doi:10.5555/osk.7",
            ["https://doi.org/10.5555/osk.7"],
        ),
        (f"```markdown\n# Depths\n\nThe sound is 310 metres deep [1].\n\n## Sources\n1. {A}\n```", [A]),
        (f"---\ntitle: Depths\n---\n\n<think>Which? {B}</think>\n\nThe sound is 310 metres deep ({A}).", [A]),
    ],
)
def test_citations_of_many_styles_are_read(text: str, cited: list[str]) -> None:
    (sentence, urls), *others = claims(text)
    assert (sentence.replace(" Depths", ""), urls) == (SAID, cited) and not others


def test_numbers_may_stand_before_the_full_stop_and_a_list_in_a_quotation() -> None:
    listed = f"#### **Works cited**\n\n> 1. Depths, [{A}]({A})\n> 2. Quays \\- Osk, [{B}]({B})"
    said = "The quay (1871)2 is old2. The sound is 310 metres deep1. It holds 12 kinds of fish in all1,2."
    assert claims(f"{said}\n\n{listed}") == [
        ("The quay (1871)2 is old.", [B]),
        (SAID, [A]),
        ("It holds 12 kinds of fish in all.", [A, B]),
    ]


def test_hidden_numbers_of_chats_and_brackets_of_chinese_are_no_citations() -> None:
    hidden = '<span style="display:none">[^1_2]</span>\n\n<div align="center">⁂</div>'
    assert claims(f"{SAID}[^1_1]\n{hidden}\n\n[^1_1]: {A}\n\n[^1_2]: {B}") == [(SAID, [A])]
    chinese = f"【深度】海湾深310米【1，2】。\n\n## 六、主要来源\n\n[1] 深度: {A}\n[2] 海湾: {B}"
    assert claims(chinese) == [("【深度】海湾深310米。", [A, B])]


def test_a_list_is_known_by_its_form_where_its_heading_does_not_say_so() -> None:
    listed = f"## What this rests on\n\n1. [Depths]({A})\n2. [Quays]({B})\n\nAsk for more."
    assert claims(f"# Osk\n\n{SAID[:-1]} [1].\n\n{listed}") == [(SAID, [A])]
    best = (
        f"## The best\n\n1. The mill grinds on Sundays, see [there]({A})\n2. The quay is 40 metres long ([there]({B}))"
    )
    assert len(claims(f"# Osk\n\n{SAID[:-1]} [1].\n\n{best}\n\n## Sources\n\n[1] {A}")) == 3
    assert len(claims(f"# Osk\n\n{SAID[:-1]} [1].\n\n{best}")) == 3


def test_a_list_that_is_hardly_cited_is_what_the_other_sections_go_by() -> None:
    listed = f"## Sources\n\n[1] Depths: {A}\n[2] Quays: {B}\n[3] Fish: https://c.example"
    found = report_of(f"# Osk\n\n{SAID[:-1]} [1].\n\n{listed}", "report")
    assert [source.title for source in found.report.sources] == ["Depths", "Quays", "Fish"]
    assert [source.title for source in found.cited.spare] == ["Quays", "Fish"]


def test_each_section_may_have_a_list_of_its_own() -> None:
    one = f"## One\n\nOne is 5 km away [1].\n\n#### Sources\n1. {A}"
    text = f"{one}\n\n## Two\n\nTwo is 6 km away [1].\n\n#### Sources\n1. {B}\n"
    assert claims(text) == [("One is 5 km away.", [A]), ("Two is 6 km away.", [B])]


def test_what_only_looks_like_a_citation_stays() -> None:
    assert claims(f"The reserve has 12 km<sup>2</sup> ([map]({A})).")[0][0] == "The reserve has 12 km<sup>2</sup>."
    assert (
        claims(f"Boats (as [the museum]({A}) says, 40) lie here.")[0][0] == "Boats (as the museum says, 40) lie here."
    )
    listed = f"Three places are open.\n\n1. The mill, {A}\n2. The quay, {B}\n"
    assert len(claims(listed)) == 3  # a list at the end is none of sources if the text does not cite it
    fact = f"The Osk [1] is a river.\n\n- Source: a spring at 410 metres [1]\n\n## References\n\n1. {A}"
    assert claims(fact)[1] == ("Source: a spring at 410 metres", [A])


def test_a_text_that_cites_nothing_is_checked_against_its_list() -> None:
    said = "# Bridges\n\nThe town has three bridges.\n\n## Traffic\n\nThe Salt Bridge is closed to lorries."
    text = f"{said}\n\n**Sources:**\n- [Bridges]({A})\n- {B}\n"
    found = report_of(text, "report")
    assert found.cited.uncited
    read = [StoredText(source, "Nothing of it is said here.") for source in found.report.sources]
    assert [len(one.checked_against) for one in to_judge(found.report, read)] == [2, 2]
    assert not read_markdown(text).sources  # a benchmark counts what is cited


@pytest.mark.parametrize(
    "text", ["(" * 4_000, "[a](" * 4_000, "[1] " * 4_000, "`" * 4_001, "| 1 |" * 2_000, "\\[1" * 4_000]
)
def test_what_never_closes_takes_no_time(text: str) -> None:
    began = time.process_time()
    read_markdown(f"{text}\n\n## Sources\n\n1. {A}", generous=True)
    assert time.process_time() - began < 60


PIECES = st.sampled_from(
    [
        *("[1]", "[^1]", "[", "]", "(", ")", "](", f"[[1]]({A})", A, f"<a href={B}>", "</a>", "<sup>", "</sup>", "1"),
        *(".2", "¹", "\n", "\n\n", "# T", "## Sources\n", "**Sources:**", "- ", "1. ", "| a | b |", "|---|---|", "`"),
        *("```", "Source: ", "> ", "(Tarn, 2021)", "Tarn, J. (2021). ", "[^1]: ", "[1]: ", "<!--", "-->", "\\[1\\]"),
        *("**You:** ", "Assistant: ", "---\n", "<think>", "[S1a2b3c]", "\ufdd0", "\ue200cite\ue202turn0search1\ue201"),
        *("【4†L1】", SAID),
    ]
)


@given(st.lists(PIECES, max_size=40))
def test_whatever_is_written_is_read(pieces: list[str]) -> None:
    found = report_of("".join(pieces), "report")
    known = {source.source_id for source in found.report.sources}
    for claim in claims_of(found.report.sections):
        assert not re.search("[\ufdd0-\ufdef]", claim.sentence)
        assert set(claim.source_ids) - known <= {"S1a2b3c"}  # which the text has itself


# -- sources of a folder -----------------------------------------------------------------------------------------------


def wanted(url: str, title: str = "", number: str = "1") -> NumberedSource:
    return NumberedSource(Source(source_id="Sabcdef", url=url, title=title, kind="web"), (number,))


PAGE = "<!doctype html><html><head><title>Any</title>{}</head><body><p>The sound is deep and cold.</p></body></html>"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("any.html", PAGE.format(f'<link rel="canonical" href="{A}/">')),
        ("any.html", PAGE.format('<link href="http://www.a.example/x" rel="canonical">')),
        ("any.html", PAGE.format(f'<meta property="og:url" content="{A}?utm_source=b">')),
        ("any.html", f"<!-- saved from url=(0019){A} -->\n{PAGE.format('')}"),
        ("any.txt", f"URL: {A}\n\nThe sound is deep."),
        ("any.txt", f"{A}\nThe sound is deep."),
        ("any.md", f"---\nfoo: bar\nsource: {A}\n---\nThe sound is deep."),
        ("any.md", f"# Deep\n\nThis was first printed at {A}, in May.\n\nThe sound is deep."),
        ("a.example_x.txt", "The sound is deep."),
        ("https___a.example_x.txt", "The sound is deep."),
        ("1.txt", "The sound is deep."),
        ("source-01.md", "The sound is deep."),
        ("[1] anything.txt", "The sound is deep."),
        ("Sabcdef.txt", "The sound is deep."),
        ("How deep is the sound.txt", "It is deep."),
        ("any.md", "# How deep is the sound?\n\nIt is deep."),
    ],
)
def test_a_file_is_found_by_what_it_says_or_is_called(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "other.txt").write_text(f"URL: {B}\nNothing of it.", encoding="utf-8")
    found = in_folder(tmp_path, [wanted(A, "How deep is the sound? - Osk Papers")])
    assert (found.places, found.unused) == ({"Sabcdef": [name]}, ["other.txt"])


def test_a_report_of_fathom_names_the_files_that_it_cites(tmp_path: Path) -> None:
    folder(tmp_path / "desk", {"fees 2026.md": "A chip costs 35 euros.", "fees.md": "A chip costs 30 euros."})
    found = in_folder(tmp_path, [wanted("", "fees 2026, `docs:office/desk/fees 2026.md`, Fees, 2026-03-01")])
    assert (found.places, found.unused) == ({"Sabcdef": ["desk/fees 2026.md"]}, ["desk/fees.md"])


def test_a_file_that_fits_several_sources_alike_is_none_s(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text(PAGE.format(""), encoding="utf-8")
    other = NumberedSource(Source(source_id="S123456", url=f"{B}/index.html", title="", kind="web"))
    found = in_folder(tmp_path, [wanted(f"{A}/index.html"), other])
    assert (found.places, found.unused) == ({}, ["index.html"])
    assert found.reasons == dict.fromkeys(("Sabcdef", "S123456"), f"not found in {tmp_path}")


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "1.pdf").write_bytes(b"no pdf at all")
    found = in_folder(tmp_path, [wanted(A)])
    assert found.reasons["Sabcdef"].startswith("1.pdf cannot be read: it is damaged")


# -- the command -------------------------------------------------------------------------------------------------------


def folder(root: Path, files: Mapping[str, str]) -> Path:
    root.mkdir()
    for name, text in files.items():
        (root / name).write_text(text, encoding="utf-8")
    return root


def html(title: str, text: str, head: str = "") -> str:
    """Return a page of the web."""
    body = f"<main><h1>{title}</h1><p>{text}</p></main>"
    return f"<!doctype html><html><head><title>{title}</title>{head}</head><body>{body}</body></html>"


HARBOUR = {
    "figures.html": html(
        "Figures | Port of Velmoor",
        "In 2023 Velmoor handled 412,000 tonnes of cargo, after 398,000 tonnes in 2022. The port has two cranes.",
        f'<link rel="canonical" href="{PORT}">',
    ),
    "quay-history.txt": "The quay\n\nThe old quay was built in 1878. It is made of red granite.\n",
    "channel.md": f"---\nurl: {SILT}\n---\n# The channel\n\nThe channel is dredged to a depth of 9.5 metres.\n",
    "left over.txt": "Nothing of this is cited.\n",
}


def test_words_alone_find_what_stands_nowhere(fathom_cli: FathomCLI, tmp_path: Path) -> None:
    folder(tmp_path / "sources", HARBOUR)
    (tmp_path / "report.md").write_text(GPT_RESEARCHER, encoding="utf-8")
    done = fathom_cli(["verify", "report.md", "--sources", "sources", "--page", "out/check.html"])
    assert done.returncode == 1, done.stderr
    assert (
        "4 claims: " in done.stdout
        and "1 not stated" in done.stdout
        and "1871 stands nowhere in its sources" in done.stdout
    )
    assert "left over.txt" in done.stdout
    assert "none: comparing words settles only claims that a source states word for word" in done.stdout
    page = (tmp_path / "out" / "check.html").read_text(encoding="utf-8")
    assert 'href="#claim-2"' in page and 'id="claim-2"' in page and "red granite" in page
    assert "Fathom did not write this report" in page
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["check.html"]


def test_a_report_with_nothing_to_object_to_ends_with_0(fathom_cli: FathomCLI, tmp_path: Path) -> None:
    folder(tmp_path / "sources", {**HARBOUR, "quay-history.txt": "The old quay was built in 1871.\n"})
    (tmp_path / "report.md").write_text(GPT_RESEARCHER, encoding="utf-8")
    done = fathom_cli(["verify", "report.md", "--sources", "sources", "--json"])
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    verdicts = {claim["sentence"]: claim["verdict"] for claim in found["claims"]}
    assert verdicts["The old quay was built in 1871."] == "supported"
    assert found["sources"][1]["places"] == ["quay-history.txt"] and not found["sources"][1]["reason"]
    assert (found["model"], found["unused_files"], found["usage"]["llm_calls"]) == ("", ["left over.txt"], 0)


def test_sources_that_are_not_there_leave_their_claims_open(fathom_cli: FathomCLI, tmp_path: Path) -> None:
    only = {"1.txt": "The ferry Merrin crosses the sound in 35 minutes. It carries 190 passengers."}
    folder(tmp_path / "sources", only)
    (tmp_path / "report.md").write_text(OPEN_DEEP_RESEARCH, encoding="utf-8")
    done = fathom_cli(["verify", "report.md", "--sources", "sources", "--json"])
    found = json.loads(done.stdout)
    first, both, third, fares = found["claims"]
    assert (first["verdict"], third["verdict"], fares["verdict"]) == ("supported", "not_checked", "not_checked")
    assert third["complaints"] == fares["complaints"] == ["none of its sources was found"]
    assert (both["verdict"], both["complaints"]) == ("not_checked", ["not all of its sources were found"])
    assert [source["reason"] for source in found["sources"]] == ["", "not found in sources", "not found in sources"]
    assert done.returncode == 0 and "2 sources of 3 could not be read" in found["warnings"][0]


SHIP = html(
    "Merrin",
    "The Merrin was launched in 2009. She takes up to 240 people and 38 cars, and has a café and a deck for bicycles.",
)
TIMES = html(
    "Timetable",
    "The crossing takes 50 minutes. There are eight sailings on every day of the week, the first at half past six.",
)


def on_the_web(stubs: Stubs) -> dict[str, str]:
    """Serve the pages of the chat; one of them is not there. Return the environment that may read them."""
    pages = {"merrin?utm_source=chatgpt.com": SHIP, "timetable": TIMES}
    stubs.settings.planted = {f"{stubs.url}/planted/{name}": page for name, page in pages.items()}
    host = stubs.url.removeprefix("http://")
    return {**stubs.env, "FATHOM_FETCH_ALLOW": host, "FATHOM_WAYBACK": "off"}


def chat(stubs: Stubs, path: Path) -> Path:
    path.write_text(CHAT.replace("BASE", f"{stubs.url}/planted"), encoding="utf-8")
    return path


def test_pages_are_fetched_and_a_model_judges(fathom_cli: FathomCLI, stubs: Stubs, tmp_path: Path) -> None:
    stubs.settings.verdicts = {"240 passengers": "supported", "35 minutes": "contradicted"}
    chat(stubs, tmp_path / "chat.md")
    arguments = ["verify", "chat.md", "--fetch", "--model", "openai/stub", "--price", "openai/stub=1,2"]
    done = fathom_cli([*arguments, "--json", "--page", "chat.html"], on_the_web(stubs))
    assert done.returncode == 1, done.stderr
    assert not done.stderr
    found = json.loads(done.stdout)
    assert [claim["verdict"] for claim in found["claims"]] == ["supported", "contradicted", "not_checked"]
    assert found["claims"][1]["judgement"]["reason"] == "as scripted"
    assert "50 minutes" in found["claims"][1]["quotes"][0]["text"]
    assert found["title"] == "How many people does the ferry take?"
    assert {source["title"] for source in found["sources"]} == {"Merrin", "Timetable", "Fares"}
    (gone,) = [source for source in found["sources"] if not source["places"]]
    assert gone["url"].endswith("/fares#:~:text=14%20crowns") and "404" in gone["reason"]
    assert found["model"] == "openai/stub" and found["usage"]["llm_calls"] == len(stubs.calls("judge")) == 1
    assert found["usage"]["cost_usd"] > 0
    assert "50 minutes" in (tmp_path / "chat.html").read_text(encoding="utf-8")
    shown = fathom_cli(arguments, on_the_web(stubs))
    assert "contradicted" in shown.stdout and "as scripted" in shown.stdout and "openai/stub, 1 request" in shown.stdout
    assert "reading page 1 of 3" in shown.stderr and "judging 2 claims" in shown.stderr


def test_a_report_and_a_copy_of_it_prove_nothing(fathom_cli: FathomCLI, tmp_path: Path) -> None:
    report = (
        "# The quay\n\nThe old quay was paid for by Paul Brand [1].\n\n## Sources\n\n1. https://quay.example/history\n"
    )
    for name in ("report.md", "copy.md"):
        (tmp_path / name).write_text(report)
    (tmp_path / "other.txt").write_text("Nothing on it.")
    done = fathom_cli(["verify", "report.md", "--sources", ".", "--json"])
    (claim,) = json.loads(done.stdout)["claims"]
    assert (claim["verdict"], claim["quotes"]) == ("not_checked", [])


def test_what_no_folder_has_is_fetched(fathom_cli: FathomCLI, stubs: Stubs, tmp_path: Path) -> None:
    env = on_the_web(stubs)
    folder(tmp_path / "sources", {"fares.txt": f"{stubs.url}/planted/fares\nThe café on board sells smoked eel.\n"})
    chat(stubs, tmp_path / "chat.md")
    done = fathom_cli(["verify", "chat.md", "--fetch", "--sources", "sources", "--model", "extractive", "--json"], env)
    found = json.loads(done.stdout)
    assert found["claims"][2]["verdict"] == "supported" and all(source["places"] for source in found["sources"])
    assert sorted(stubs.fetched) == ["/planted/merrin", "/planted/timetable"] and not stubs.calls("llm")


def test_hosts_that_are_not_allowed_are_not_asked(fathom_cli: FathomCLI, stubs: Stubs, tmp_path: Path) -> None:
    chat(stubs, tmp_path / "chat.md")
    done = fathom_cli(["verify", "chat.md", "--fetch", "--json"], {"FATHOM_WAYBACK": "off"})
    found = json.loads(done.stdout)
    assert done.returncode == 0 and {claim["verdict"] for claim in found["claims"]} == {"not_checked"}
    assert all("is not allowed" in source["reason"] for source in found["sources"]) and not stubs.fetched


def test_a_model_that_fails_is_no_objection(fathom_cli: FathomCLI, stubs: Stubs, tmp_path: Path) -> None:
    env = on_the_web(stubs)
    stubs.settings.faults = {"judge": ["401*"]}
    chat(stubs, tmp_path / "chat.md")
    done = fathom_cli(["verify", "chat.md", "--fetch", "--model", "openai/stub", "--page", "chat.html"], env)
    assert done.returncode == 1 and "E2005" in done.stderr and not done.stdout
    assert not (tmp_path / "chat.html").exists()


def test_the_cap_is_kept(fathom_cli: FathomCLI, stubs: Stubs, tmp_path: Path) -> None:
    env = on_the_web(stubs)
    chat(stubs, tmp_path / "chat.md")
    asked = ["verify", "chat.md", "--fetch", "--model", "openai/stub", "--max-usd", "0.0001"]
    unpriced = fathom_cli(asked, env)
    assert unpriced.returncode == 2 and "--price openai/stub=INPUT,OUTPUT" in unpriced.stderr
    dear = fathom_cli([*asked, "--price", "openai/stub=100,100"], env)
    assert dear.returncode == 1 and "E1001" in dear.stderr and not stubs.calls("llm")


def bad(name: str, **options: Any) -> Any:
    return pytest.param(options, id=name)


@pytest.mark.parametrize(
    "case",
    [
        bad("no file", args=["none.md", "--fetch"], says="The file 'none.md' does not exist"),
        bad("nothing to check by", args=["report.md"], says="--sources FOLDER"),
        bad("no folder", args=["report.md", "--sources", "nowhere"], says="The folder 'nowhere' does not exist"),
        bad("an empty folder", args=["report.md", "--sources", "empty"], says="contains no readable file"),
        bad("no claims", args=["blank.md", "--fetch"], says="no sentence that makes a claim"),
        bad("no sources", args=["bare.md", "--fetch"], says="names no source. (cite with"),
        bad("no list", args=["marked.md", "--fetch"], says="cites [1], but has no list of sources. (cite with"),
        bad("no text", args=["bytes.md", "--fetch"], says="not text in UTF-8"),
        bad("its own page", args=["report.md", "--fetch", "--page", "report.md"], says="is not an HTML file name"),
        bad("a model without a key", args=["report.md", "--fetch", "--model", "openai/x"], says="OPENAI_API_KEY"),
        bad("no price", args=["report.md", "--fetch", "--price", "x"], says="is not MODEL=IN,OUT"),
        bad("a run with a folder", args=["1a2b3c4d", "--sources", "empty"], says="a run has its own sources"),
        bad("a run with a model", args=["1a2b3c4d", "--max-usd", "1"], says="--max-usd applies only to a report"),
        bad("no amount", args=["report.md", "--fetch", "--max-usd", "much"], says="--max-usd much"),
    ],
)
def test_bad_input_ends_with_2_and_says_what_to_do(case: dict[str, Any], fathom_cli: FathomCLI, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "report.md").write_text(GPT_RESEARCHER, encoding="utf-8")
    (tmp_path / "blank.md").write_text("# Title\n", encoding="utf-8")
    (tmp_path / "bare.md").write_text("The sound is 310 metres deep.\n", encoding="utf-8")
    (tmp_path / "marked.md").write_text("The sound is 310 metres deep [1].\n\n1. Chart, chart.pdf\n", encoding="utf-8")
    (tmp_path / "bytes.md").write_bytes(b"\xff\xfe\x00 \x80")
    done = fathom_cli(["verify", *case["args"]])
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert case["says"] in done.stderr


def test_what_is_interrupted_leaves_nothing(command_forks: Forks, stubs: Stubs, home: Path, tmp_path: Path) -> None:
    env = {**base_env(), "HOME": str(home), **on_the_web(stubs)}
    stubs.settings.faults = {"judge": ["hang*"]}
    chat(stubs, tmp_path / "chat.md")
    before = {path.name for path in tmp_path.iterdir()} | {"out", "out.err"}
    arguments = ["verify", "chat.md", "--fetch", "--model", "openai/stub", "--page", "chat.html"]
    process = command_forks.start(env, tmp_path / "out", arguments, tmp_path)
    stubs.wait_for(1, "judge", ended=False)
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 130
    assert process.said()[0] == "" and "interrupted" in process.said()[1]
    assert {path.name for path in tmp_path.iterdir()} == before


def test_a_summary_that_cites_nothing_is_objected_to_only_if_a_source_says_otherwise(
    fathom_cli: FathomCLI, stubs: Stubs, tmp_path: Path
) -> None:
    summary = "## In short\n\nThe ferry takes 300 cars. The islanders love the ferry called Merrin dearly.\n\n"
    stubs.settings.verdicts = {"300 cars": "contradicted", "love": "not_stated"}
    folder(tmp_path / "sources", {"1.txt": "The ferry Merrin crosses the sound in 35 minutes. She takes 38 cars.\n"})
    (tmp_path / "report.md").write_text(OPEN_DEEP_RESEARCH.replace("## Overview", f"{summary}## Overview"), "utf-8")
    done = fathom_cli(["verify", "report.md", "--sources", "sources", "--model", "openai/stub", "--json"], stubs.env)
    first, second, *_ = json.loads(done.stdout)["claims"]
    assert (first["verdict"], first["source_ids"]) == ("contradicted", [])
    assert (second["verdict"], second["complaints"][:1]) == ("not_checked", ["its section cites nothing"])


def test_office_files_are_read_too(fathom_cli: FathomCLI, tmp_path: Path) -> None:
    from docx import Document
    from reportlab.pdfgen.canvas import Canvas

    (tmp_path / "sources").mkdir()
    document = Document()
    document.add_heading("Merrin: technical data", 1)
    document.add_paragraph("The ferry Merrin crosses the sound in 35 minutes.")
    document.save(str(tmp_path / "sources" / "any.docx"))
    canvas = Canvas(str(tmp_path / "sources" / "2.pdf"))
    canvas.drawString(72, 720, "A single ticket costs 14 crowns.")
    canvas.save()
    (tmp_path / "report.md").write_text(OPEN_DEEP_RESEARCH, encoding="utf-8")
    done = fathom_cli(["verify", "report.md", "--sources", "sources", "--json"])
    found = json.loads(done.stdout)
    assert [source["places"] for source in found["sources"]] == [["any.docx"], ["2.pdf"], []]
    assert [claim["verdict"] for claim in found["claims"]][::3] == ["supported", "supported"]


@pytest.mark.parametrize("language", ["", *LANGUAGES_OF_REPORTS])
@pytest.mark.parametrize("extractive", [True, False])
@pytest.mark.parametrize("answered", [Answered.yes, Answered.maybe, Answered.no])
def test_of_a_report_of_fathom_s_own_only_what_it_found_is_checked(
    answered: Answered, extractive: bool, language: str
) -> None:
    report, words = sample_report().model_copy(update={"language": language}), wording(language)
    plain = f"The lagoon delivered 61.4 GWh in 2024 [{report.sources[0].source_id}].\n\n- 2. It has a gate."
    quoted = [ReportSection(heading="Answer", markdown=plain, quoted=True), *report.sections[2:]]
    sections = quoted if extractive else report.sections
    shown = report.model_copy(update={"answered": answered, "extractive": extractive, "sections": sections})
    text = render_markdown(shown)
    assert all(f"## {words(heading)}" in text for heading in Added if heading is not Added.next_steps)
    foreign = report_of(text, "report")

    def said(sections: Sequence[ReportSection]) -> list[str]:
        return [comparable(re.sub("[*`>]|^- 2. ", "", claim.sentence)).strip() for claim in claims_of(sections)]

    assert foreign.by_fathom and said(foreign.report.sections) == said(sections)
    others = report_of(text.replace(words(HOW_SURE), "**Confidence:**"), "report")  # it may claim something anywhere
    assert not others.by_fathom and len(claims_of(others.report.sections)) > len(claims_of(sections)) + 5


def test_a_report_of_fathom_s_own_is_checked_by_the_documents_that_it_read(
    fathom_cli: FathomCLI, prefect_server: PrefectServer, tmp_path: Path
) -> None:
    folder(tmp_path / "notes", {"ferry.md": "# The ferry\n\nThe ferry Nordlys carries 80 cars. It sails at 9:40.\n"})
    asked = ["research", "How many cars does the ferry Nordlys carry?", "--docs", "notes", "--json"]
    report = json.loads(fathom_cli(asked, prefect_server.env).stdout)["report"]
    done = fathom_cli(["verify", report, "--sources", "notes", "--json"])
    found = json.loads(done.stdout)
    assert done.returncode == 0 and found["by_fathom"] and found["sources"][0]["places"] == ["ferry.md"]
    assert found["claims"] and {claim["verdict"] for claim in found["claims"]} == {"supported"}
