"""Templates: what they set and what the user sets, the plan and the sections that follow from them, and bad files."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest
from fastapi.encoders import jsonable_encoder

from fathom.config.environment import Environment
from fathom.config.groups import Profile
from fathom.config.layers import template_from
from fathom.config.settings import ResearchSettings, resolve
from fathom.config.templates import MOST_BYTES, shipped, template_of
from fathom.errors import InvalidInput
from fathom.extractive.reporter import NOTHING_FOUND
from fathom.flows.deep_research import deep_research
from fathom.flows.execution.local import execute, new_run
from fathom.flows.replay import replay
from fathom.models import Ending
from fathom.storage.runs import runs
from fathom.storage.store import MANIFEST, ArtifactStore
from tests.conftest import FathomCLI, PrefectServer
from tests.inprocess import investigated
from tests.stubs import Stubs

QUERY = "How does the ferry Nordlys run?"
FERRY = {
    "register.md": "# The ferry Nordlys\n\nThe ferry Nordlys belongs to Hansen Shipping and to the town of Tromso.",
    "money.md": "# Accounts of the ferry\n\nThe ferry Nordlys had a revenue of 4.2 million euros and debts of 9.",
    "tomatoes.md": "# Tomatoes\n\nWater them in the morning, and cut the side shoots once a week.",
}
OWN = """\
title = "Look at a ship"
description = "What to know of a ship."
questions = ["Who owns the ship?", "What are its revenue and debt?"]

[settings]
profile = "quick"
max_results = 3
budget.max_calls = 90

[sources]
prefer = ["imo.org"]
block = ["example.com"]

[[sections]]
title = "Money"
about = "Its accounts: revenue, profit, debt, loans."

[[sections]]
title = "Crew"
about = "Who works on it: sailors, officers, training."

[[sections]]
title = "Owners"
about = "To whom it belongs: owners, shareholders, company, town."
"""


@pytest.fixture
def docs(tmp_path: Path) -> str:
    folder = tmp_path / "ferry"
    folder.mkdir()
    for name, text in FERRY.items():
        (folder / name).write_text(text)
    return str(folder)


def sections_of(report: str) -> dict[str, str]:
    """Return what stands below each heading of a report."""
    return dict(re.findall(r"^## (.+)\n\n([\s\S]*?)(?=\n## |\Z)", Path(report).read_text(), re.MULTILINE))


@pytest.mark.parametrize("name", shipped())
def test_every_shipped_template_can_be_used(name: str) -> None:
    template = template_of(name)
    settings = ResearchSettings(template=name)
    resolved = resolve(settings, Environment.read({}), ["documents"])
    assert len(template.questions) < resolved.max_steps, "a step for each question, and one for the user's"
    assert len(template.sections) > 4 or (template.guidance and template.terminology), "a kind or a field"
    assert resolved.template is None, "what it sets is in its place"


def test_six_kinds_and_three_fields_are_shipped() -> None:
    assert shipped() == [
        "due-diligence",
        "law",
        "literature-review",
        "market-overview",
        "medicine",
        "security-advisory",
        "software",
        "technology-comparison",
        "what-changed",
    ]


def test_what_the_user_sets_comes_before_the_template_and_that_before_the_profile() -> None:
    given = {"template": OWN, "profile": "standard", "budget": {"max_usd": 1}, "sources": {"block": ["example.org"]}}
    settings = ResearchSettings.model_validate(given)
    assert settings.profile is Profile.standard, "also where it is the default"
    assert settings.max_results == 3
    assert (settings.budget.max_usd, settings.budget.max_calls) == (1, 90)
    assert (settings.sources.block, settings.sources.prefer) == (["example.org"], ["imo.org"])
    for stored in (jsonable_encoder(settings), settings.model_dump(mode="json", exclude_unset=True)):
        assert ResearchSettings.model_validate(stored) == settings
    assert resolve(ResearchSettings(template=OWN), Environment.read({}), []).depth == 1  # of the profile `quick`


def test_of_a_form_that_was_filled_in_only_what_differs_from_its_default_is_set() -> None:
    boxes = {**ResearchSettings().model_dump(mode="json"), "template": OWN, "max_context_tokens": 9_000}
    settings = ResearchSettings.model_validate(boxes)
    assert (settings.profile, settings.max_results, settings.max_context_tokens) == (Profile.quick, 3, 9_000)
    assert (settings.budget.max_calls, settings.sources.prefer) == (90, ["imo.org"])


def test_settings_without_a_template_are_stored_as_before() -> None:
    assert "template" not in ResearchSettings().model_dump(mode="json")
    assert set(ResearchSettings().model_dump()) == set(ResearchSettings.model_fields) - {
        "template",
        "corpora",
        "cheaper_model",
        "library",
        "scope",
    }


HEAD = 'title = "A"\ndescription = "b"\n'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('title = "A', "is not TOML: "),
        ("", "title is missing."),
        (f'{HEAD}question = ["c"]', "question is no key of a template; did you mean questions?"),
        (f'{HEAD}[[sections]]\nabout = "c"', "sections[1].title is missing."),
        (f'{HEAD}[[sections]]\ntitle = " "\nabout = "c"', "sections[1].title: it is empty."),
        (f'{HEAD}sections = ["c"]', "sections[1] is not a table."),
        (f"{HEAD}[settings]\nmax_result = 3", "settings.max_result is no setting; did you mean max_results?"),
        (f"{HEAD}[settings]\nmax_usd = 3", "settings.max_usd is no setting; did you mean budget.max_usd?"),
        (f"{HEAD}[settings]\nxyz = 3", "settings.xyz is no setting; there is profile, effort, depth, "),
        (f"{HEAD}[settings]\ndepth = 9", "settings.depth: Input should be less than or equal to 5."),
        (f'{HEAD}[settings]\ndocs = ["/"]', "settings.docs cannot be set in a template. (give it with the run)"),
        (f'{HEAD}[sources]\nprefers = ["a.org"]', "sources.prefers is no key of a template; did you mean prefer?"),
        (f'{HEAD}[sources]\nprefer = ["a b"]', "sources.prefer[1]: 'a b' is not a domain"),
        (f"{HEAD}a = {'[' * 5_000}", "its tables are nested too deeply."),
        ("# " + "x" * MOST_BYTES, "is larger than 64 KB"),
    ],
)
def test_a_bad_file_is_refused_with_its_name_and_what_is_wrong(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "own.toml"
    file.write_text(text)
    with pytest.raises(InvalidInput) as refused:
        template_from(str(file))
    assert str(file) in str(refused.value)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("due-dilligence", "There is no template 'due-dilligence'; did you mean due-diligence?"),
        ("xyz", "There is no template 'xyz'. (Fathom has due-diligence, "),
        ("none.toml", "There is no file none.toml."),
        ("/", "/ is not a file."),
        ("/dev/zero", "/dev/zero is not a file."),
        ("x" * 300, "There is no template "),
    ],
)
def test_what_is_neither_a_template_nor_a_file_is_refused(name: str, said: str) -> None:
    with pytest.raises(InvalidInput, match=re.escape(said)):
        template_from(name)


@pytest.mark.usefixtures("home")
async def test_without_a_model_sections_quote_what_belongs_into_them_or_say_that_nothing_does(
    tmp_path: Path, docs: str
) -> None:
    result = await investigated(tmp_path / "store", QUERY, model="extractive", docs=[docs], template=OWN)
    assert result.report
    plan = json.loads(Path(result.artifacts, "plan.json").read_text())
    assert [step["title"] for step in plan["steps"]][1:3] == ["Who owns the ship?", "What are its revenue and debt?"]
    sections = sections_of(result.report)
    given = [heading for heading in sections if heading in ("Money", "Crew", "Owners")]
    assert given == ["Money", "Crew", "Owners"]
    assert "revenue of 4.2 million" in sections["Money"]
    assert "Hansen Shipping" in sections["Owners"]
    assert sections["Crew"].strip() == NOTHING_FOUND
    assert "Water them" not in Path(result.report).read_text()
    assert "template “Look at a ship”" in Path(result.report).read_text()


@pytest.mark.usefixtures("home")
async def test_a_model_is_told_the_questions_and_sections_and_may_find_nothing(
    providers: Stubs, tmp_path: Path
) -> None:
    providers.settings.page_bytes, providers.settings.lacking = 2_000, "Crew"
    result = await investigated(tmp_path, template=OWN)
    assert result.status is Ending.complete, result.reason
    (planned,) = providers.calls("planner")
    (outlined,) = providers.calls("outline")
    assert "- Who owns the ship?\n- What are its revenue and debt?\n" in str(planned.body["messages"][1]["content"])
    assert "- Crew: Who works on it: sailors, officers, training.\n" in str(outlined.body["messages"][-1]["content"])
    sections = sections_of(result.report or "")
    assert [heading for heading in sections if heading in ("Money", "Crew", "Owners")] == ["Money", "Crew", "Owners"]
    assert sections["Crew"].strip() == NOTHING_FOUND
    assert re.search(r"\[\d+\]", sections["Money"])
    assert "In short" not in sections, "the outline of the model named other sections"
    assert sum('"Crew". ' in str(call.body["messages"][-1]["content"]) for call in providers.calls("section")) == 1


FIELD = """\
title = "Ships"
description = "Questions about ships."
guidance = ["Prefer registers to the press."]
terminology = ["tonnage: GT"]

[settings]
profile = "quick"
web.suffixes = ["vessel"]
web.since = "2020-01-01"

[sources]
peer_reviewed = true
"""


@pytest.mark.usefixtures("home")
async def test_a_field_guides_the_roles_that_plan_search_and_write_and_changes_every_search(
    providers: Stubs, tmp_path: Path
) -> None:
    providers.settings.page_bytes, providers.settings.judged = 2_000, {"kind": "fact", "width": "narrow"}
    result = await investigated(tmp_path, "How large is the ferry Nordlys?", template=FIELD, breadth=2)
    system = str(providers.calls("planner")[0].body["messages"][0]["content"])
    assert "For research of this kind:\n- Prefer registers to the press.\n" in system
    assert "Terms of the field:\n- tonnage: GT" in system
    assert not any("registers" in str(call.body) for call in providers.calls("compressor"))
    searched = [record.body for record in providers.calls("search")]
    assert searched and all(body["query"].endswith(" vessel") for body in searched)
    assert all(body["start_date"] == "2020-01-01" for body in searched)
    assert len(json.loads(Path(result.artifacts, "plan.json").read_text())["steps"]) == 1, "it asks no questions"
    assert result.status is Ending.insufficient_evidence, "no page of the stubs is peer-reviewed"
    assert "sources.peer_reviewed" in Path(result.artifacts, "unanswered.md").read_text()


@pytest.mark.usefixtures("prefect_server")
async def test_a_run_keeps_the_template_that_it_was_given(
    fathom_cli: FathomCLI, prefect_server: PrefectServer, tmp_path: Path, docs: str
) -> None:
    file, root = tmp_path / "own.toml", tmp_path / "store"
    file.write_bytes(OWN.replace("\n", "\r\n").encode())
    args = ["research", QUERY, "--docs", docs, "--template", str(file), "--profile", "standard"]
    done = fathom_cli([*args, "--artifacts", str(root), "--json"], {"PREFECT_API_URL": prefect_server.api_url})
    assert done.returncode == 0, done.stderr
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    file.unlink()
    store = ArtifactStore(str(root))
    (run,) = await runs(store)
    manifest = await run.files.load_json(MANIFEST)
    assert (manifest["settings"]["profile"], manifest["settings"]["max_results"]) == ("standard", 3)
    assert manifest["template"]["sha256"] == digest
    assert [section["title"] for section in manifest["template"]["sections"]] == ["Money", "Crew", "Owners"]
    assert {file.state for file in await replay(run)} == {"same"}


@pytest.mark.usefixtures("prefect_server", "home")
async def test_the_form_takes_a_template_by_its_name(tmp_path: Path, docs: str) -> None:
    """Prefect's form writes every box, also those that were left as they are."""
    boxes: dict[str, Any] = ResearchSettings().model_dump(mode="json")
    boxes |= {"template": "what-changed", "docs": [docs], "artifacts": str(tmp_path / "store"), "max_steps": 4}
    await execute(await new_run(deep_research, {"query": QUERY, "settings": boxes}))
    (run,) = await runs(ArtifactStore(str(tmp_path / "store")))
    manifest = await run.files.load_json(MANIFEST)
    settings = manifest["settings"]
    assert (settings["fresh"], settings["max_steps"]) == (True, 4), "of the template, and of the form"
    assert manifest["template"]["name"] == "what-changed"


def test_the_command_lists_templates_and_prints_one(fathom_cli: FathomCLI, tmp_path: Path) -> None:
    listed = fathom_cli(["templates"])
    assert all(f"{name} " in listed.stdout for name in shipped())
    printed = fathom_cli(["templates", "due-diligence"])
    (tmp_path / "own.toml").write_text(printed.stdout)
    assert json.loads(fathom_cli(["templates", "own.toml", "--json"]).stdout)["title"] == "Due diligence"
    refused = fathom_cli(["research", QUERY, "--template", "what-chnaged"])
    assert refused.returncode == 2
    assert "did you mean what-changed?" in refused.stderr
