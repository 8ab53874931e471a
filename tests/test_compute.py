"""Queries of the tables that a run has read: what they find, what they must not do, and a whole run with one."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from fathom.errors import ToolRejected
from fathom.flows.replay import replay
from fathom.models import Claim, Corroboration, Report, SourceText, ToolOutput, Verdict
from fathom.sources.corroboration import party
from fathom.storage.runs import runs
from fathom.storage.store import ArtifactStore
from fathom.tools.compute import COMPUTED_FROM, ComputeTool
from tests.conftest import FathomCLI
from tests.inprocess import research
from tests.stubs import Stubs
from tests.test_artifact_tools import Run, source

PLANS = """# Plans

Each plan has its churn, and its price.

| Plan | Churn | Price | Since |
|---|---|---|---|
| Basic | 3.1 % | €9 / month | 2019-03-01 |
| Team | 1.2 % | €29 / month | 2020-05-11 |
| Scale | 1.9 % | €1,200 / month | 2021-01-01 |
| Total | 2.0 % | - | - |
"""
SUPPORT = """# Support

Each plan has its support time.

| Plan | Support time | Order |
|---|---|---|
| Basic | 2 days | 1 |
| Team | 4 h | 2 |
| Scale | 30 min | 3 |
"""
QUESTION = "Which plan has the lowest churn, and what is its support time?"
JOINED = (
    "SELECT p.plan, p.churn, s.support_time FROM plans_* p JOIN support_* s ON s.plan = p.plan "
    "WHERE p.plan <> 'Total' ORDER BY p.churn LIMIT 1"
)
READ = [
    source("docs:plans.md", PLANS, title="Plans", kind="document"),
    source("docs:support.md", SUPPORT, title="Support", kind="document"),
]


async def computed(query: str, *texts: SourceText) -> SourceText:
    tool = ComputeTool(Run(t__step1_x__documents_json=[*(texts or READ)]))
    names = re.findall(r"^  - ((\w+)_\w+?)\(", await tool.offer(["t__step1_x__documents.json"]), re.MULTILINE)
    for name, begin in names:
        query = query.replace(f"{begin}_*", name)
    [found] = (await tool.run(query)).results
    return found


def rows(text: str) -> list[list[str]]:
    first = next(part for part in text.split("\n\n") if part.startswith("| "))
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in first.split("\n")[2:]]


async def test_a_model_is_offered_the_tables_with_their_columns_and_no_text_of_theirs() -> None:
    tool = ComputeTool(Run(a__step1_x__documents_json=READ, b__step1_x__fetch_json=[source("https://p.org", "None.")]))
    offered = await tool.offer(["a__step1_x__documents.json"])
    assert re.search(
        r"plans_\w{4}\(plan text, churn number in %, price number in €, since date as YYYY-MM-DD\), 4 rows, "
        r"some of them totals\n  - support_\w{4}\(plan text, support_time number in second, c_order number\), 3 rows\Z",
        offered,
    )
    assert "Basic" not in offered
    assert await tool.offer(["b__step1_x__fetch.json"]) == ""


@pytest.mark.parametrize(
    ("query", "found"),
    [
        (JOINED, [["Team", "1.2", "14400"]]),
        ("SELECT sum(price), median(churn) FROM plans_* WHERE plan <> 'Total'", [["1238", "1.9"]]),
        ("SELECT count(*) FROM support_*", [["3"]]),
        ("SELECT plan FROM plans_* WHERE since > '2020-01-01' ORDER BY since DESC;", [["Scale"], ["Team"]]),
        (
            "WITH r AS (SELECT plan, rank() OVER (ORDER BY churn) n FROM plans_*) SELECT * FROM r LIMIT 1",
            [["Team", "1"]],
        ),
    ],
)
async def test_a_query_is_computed_with_the_cells_that_it_read_as_its_source_has_them(
    query: str, found: list[list[str]]
) -> None:
    result = await computed(query)
    assert rows(result.text) == found
    read = [text.source_id for text in READ if f"{text.title.lower()}_" in query]
    assert result.fields[COMPUTED_FROM] == ", ".join(read)
    assert ("| Team | 4 h |" in result.text) is ("support_time" in query)
    assert ("Churn" in result.text) is ("churn" in query)
    assert party(result).related(party(READ[0])), "what is computed is no second witness"


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("SELECT churn_rate FROM plans_*", r"no such column: churn_rate.*plans_\w+\(plan, churn, price, since\)"),
        ("SELECT plan FROM plan", r"no such table: plan.*support_\w+\(plan, support_time, c_order\)"),
        ("SELECT plan FROM plans_* WHERE churn > 99", "finds no row"),
        ("SELECT 7 AS churn", "reads no table"),
        ("DELETE FROM plans_*", "no query"),
        ("WITH x AS (SELECT 1) DELETE FROM plans_*", "not authorized"),
        ("SELECT plan FROM plans_*; SELECT 1", "one statement"),
        ("SELECT name FROM pragma_database_list", "not authorized"),
        ("SELECT sql FROM sqlite_master", "prohibited"),
        ("SELECT load_extension('x') FROM plans_*", "not authorized"),
        ("SELECT readfile('/etc/passwd') FROM plans_*", "no such function"),
        (
            "WITH RECURSIVE x(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM x) SELECT n, plan FROM x, plans_*",
            "authorized",
        ),
        (f"SELECT count(*) FROM {', '.join(f'plans_* t{n}' for n in range(30))}", "more than 1 seconds or 256 MB"),
        (
            "SELECT max(y) FROM (SELECT hex(zeroblob(40000)) || t0.plan || t1.plan || t2.plan || t3.plan || t4.plan || "
            f"t5.plan AS y FROM {', '.join(f'plans_* t{n}' for n in range(9))} ORDER BY 1)",
            "more than 1 seconds or 256 MB|out of memory",
        ),
        ("SELECT '" + "x" * 2_000 + "'", "2000 characters"),
    ],
)
async def test_a_query_that_fails_says_what_to_mend_and_none_reads_or_writes_anything_else(
    query: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fathom.tools.compute.SECONDS", 1)
    with pytest.raises(ToolRejected) as error:
        await computed(query)
    assert re.search(why, f"{error.value.message} ({error.value.next_step})")


async def test_a_table_read_in_parts_is_one_and_says_that_rows_may_lack() -> None:
    head, rule, *lines = [line for line in PLANS.split("\n") if line.startswith("|")]
    parts = ["\n".join([head, rule, *some]) for some in (lines[:2], lines[1:])]
    read = [source("https://p.org", part, title="Plans", full=False) for part in parts]
    result = await computed("SELECT count(*), count(price) FROM plans_*", *read)
    assert rows(result.text) == [["4", "3"]]
    assert "Only an excerpt of the source was read: the table may have more rows." in result.text


@pytest.mark.usefixtures("home", "prefect_server")
async def test_a_run_computes_its_answer_mends_a_query_and_can_be_checked_and_replayed(
    providers: Stubs, tmp_path: Path, fathom_cli: FathomCLI
) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "plans.md").write_text(PLANS)
    (folder / "support.md").write_text(SUPPORT)
    providers.settings.steps = providers.settings.breadth = 1
    providers.settings.follow_ups = 0
    providers.settings.computes = ["SELECT churn_rate FROM plans_*", JOINED]
    providers.settings.bullets = ["Team | 1.2 | 14400 [ID]"]
    providers.settings.section = "The plan with the lowest churn is Team, and its support time is 4 h [LAST]."
    providers.settings.verdicts = {"lowest churn": "supported"}
    result = await research(
        tmp_path / "store", QUESTION, turns=2, depth=1, docs=[str(folder)], tools=["documents", "compute"]
    )
    artifacts = Path(result.artifacts)
    first, second = (str(record.body) for record in providers.calls("researcher")[:2])
    assert "no such column" not in first
    assert re.search(r"no such column: churn_rate.*mend the query; the tables: ", second)
    [file] = artifacts.glob("*__compute__2.json")
    [found] = ToolOutput.model_validate_json(file.read_text()).results
    assert rows(found.text) == [["Team", "1.2", "14400"]]

    report = Report.model_validate_json((artifacts / "report.json").read_text())
    [claim, *_] = [claim for claim in report.claims if "lowest churn" in claim.sentence]
    assert isinstance(claim, Claim)
    assert (claim.source_ids, claim.verdict) == ([found.source_id], Verdict.supported)
    assert claim.corroboration is not Corroboration.verified
    assert {quote.artifact_file for quote in claim.quotes} == {file.name}
    page = (artifacts / "report.html").read_text()
    folded = re.search(r"<details[^>]*>\s*<summary>Query</summary>(.*?)</details>", page, re.DOTALL)
    assert folded
    assert "SELECT p.plan, p.churn" in folded[1]

    files = await replay((await runs(ArtifactStore(str(tmp_path / "store"))))[0])
    assert {file.state for file in files} == {"same"}
    checked = fathom_cli(["verify", str(artifacts)])
    assert checked.returncode == 0, checked.stdout
    assert "compute" in json.loads((artifacts / "run.json").read_text())["settings"]["tools"]
