"""One declaration of each setting, and what follows from it; the file of settings, and which origin beats which."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import typer

from fathom.config.environment import Environment
from fathom.config.form import setting_of
from fathom.config.layers import Layer, given_in, layered, origins
from fathom.config.settings import SETTINGS, ResearchSettings, resolve
from fathom.config.settings_file import user_folder
from fathom.errors import InvalidInput
from fathom.interfaces.cli.commands import app
from fathom.interfaces.cli.options import SettingsCommand
from tests.conftest import ROOT, FathomCLI

ENVIRONMENT = {"FATHOM_MODEL": "openai/of-environment"}
FILE = 'model = "openai/of-file"\nmax_results = 6\nturns = 4\n'
OWN = 'title = "Own"\ndescription = "One of mine"\n[settings]\nmax_results = 7\nmodel = "openai/of-template"\n'


def test_every_command_with_settings_has_the_same_options() -> None:
    root: Any = typer.main.get_command(app)
    commands = [*root.commands.values(), *root.commands["watch"].commands.values()]
    taking = {command.name: command for command in commands if isinstance(command, SettingsCommand)}
    assert [*taking] == ["research", "ask", "batch", "verify", "doctor", "add"]
    declared = {setting_of(field).option for field in SETTINGS.values()} - {""} | {"--set"}
    for name, command in taking.items():
        options = [option for parameter in command.get_params(typer.Context(command)) for option in parameter.opts]
        judging = {"--artifacts", "--model", "--max-usd", "--price"}
        assert {*options} & declared == judging if name == "verify" else declared <= {*options}
        assert len(options) == len({*options})


def test_every_setting_is_described_and_every_page_exists() -> None:
    for path, field in SETTINGS.items():
        setting = setting_of(field)
        assert field.description, path
        assert field.description.endswith("."), path
        assert bool(setting.value) == bool(setting.option and field.annotation is not bool), path
        assert not setting.page or (ROOT / f"docs/{setting.page}.md").is_file()
    options = [setting_of(field).option for field in SETTINGS.values() if setting_of(field).option]
    assert len(options) == len({*options})


@pytest.fixture
def folder(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, the current one, of a user without a file of settings."""
    here = home / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    return here


@pytest.mark.parametrize(
    ("given", "variables", "file", "expected"),
    [
        ({}, {}, "", {"model": "extractive", "max_results": 5, "turns": 2, "depth": 2}),
        ({"profile": "deep"}, {}, "", {"turns": 3, "depth": 3}),
        ({"profile": "deep"}, {}, FILE, {"turns": 4, "depth": 3, "max_results": 6}),
        ({}, {}, FILE, {"model": "openai/of-file", "max_results": 6, "turns": 4}),
        ({}, {}, f'{FILE}profile = "quick"\n', {"turns": 4, "depth": 1}),
        ({"profile": "deep"}, {}, f'{FILE}profile = "quick"\n', {"turns": 4, "depth": 3}),
        ({}, ENVIRONMENT, "", {"model": "openai/of-environment"}),
        ({}, ENVIRONMENT, FILE, {"model": "openai/of-environment", "max_results": 6}),
        ({"template": OWN}, {}, FILE, {"model": "openai/of-template", "max_results": 7, "turns": 4}),
        ({"template": OWN}, ENVIRONMENT, FILE, {"model": "openai/of-template", "max_results": 7}),
        ({}, {}, f'{FILE}template = "own.toml"\n', {"model": "openai/of-file", "max_results": 6, "turns": 4}),
        ({}, {}, 'template = "own.toml"\n', {"model": "openai/of-template", "max_results": 7}),
        (
            {"template": OWN, "model": "openai/of-option", "max_results": 9, "turns": 1},
            ENVIRONMENT,
            FILE,
            {"model": "openai/of-option", "max_results": 9, "turns": 1},
        ),
    ],
)
def test_which_origin_of_a_setting_beats_which(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    given: Mapping[str, Any],
    variables: Mapping[str, str],
    file: str,
    expected: Mapping[str, Any],
) -> None:
    """An option or --set, the template, the environment, the file, the profile, the default."""
    (folder / "own.toml").write_text(OWN)
    if file:
        (folder / "fathom.toml").write_text(file)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    environment = Environment.read()
    layers = layered([Layer("option", given)], environment)
    found = resolve(ResearchSettings.model_validate(given_in(layers)), environment, [])
    assert {name: getattr(found, name) for name in expected} == expected
    told = {path: value for path, value, _ in origins(layers)}  # what doctor says is what a run uses
    default = resolve(ResearchSettings(), Environment.read({}), [])
    assert {name: told.get(name, getattr(default, name)) for name in expected} == expected


def test_the_file_of_an_empty_folder_is_used_by_the_real_command(
    fathom_cli: FathomCLI, home: Path, tmp_path: Path
) -> None:
    """Its paths are meant from its folder; doctor says where each value comes from."""
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes/water.md").write_text("# Water\n\nWater boils at 100 degrees at sea level.\n")
    (tmp_path / "fathom.toml").write_text(
        'docs = ["notes"]\nartifacts = "kept"\nprofile = "quick"\nmax_usd = 2\n[role_models]\njudge = "extractive"\n'
    )
    options = ["--set", "max_results=9", "--depth", "2", "--role-model", "critic=extractive"]
    done = fathom_cli(["doctor", "--json", *options], {"FATHOM_MODEL": "extractive"})
    found = {one["name"]: one["detail"] for one in json.loads(done.stdout)}
    file = tmp_path / "fathom.toml"
    assert found["docs"] == f'["{tmp_path}/notes"] ({file})'
    assert (found["budget.max_usd"], found["profile"]) == (f"2 ({file})", f"quick ({file})")
    assert (found["max_results"], found["depth"]) == ("9 (--set)", "2 (option --depth)")
    assert found["turns"] == "1 (profile quick)"
    assert found["role_models.critic"] == '{"model": "extractive"} (option --role-model)'
    assert found["role_models.judge"] == f"extractive ({file})"
    assert "extractive (environment variable FATHOM_MODEL)" in done.stdout
    assert found["artifacts"].startswith(f"{tmp_path}/kept")
    estimate = fathom_cli(["research", "q", "--estimate", "--json"])
    deeper = fathom_cli(["research", "q", "--estimate", "--json", "--profile", "deep"])
    assert json.loads(estimate.stdout) != json.loads(deeper.stdout)
    wrong = fathom_cli(["research", "q", "--docs", "nowhere"])
    assert "nowhere" in wrong.stderr  # an option takes the place of what the file says
    listed = fathom_cli(["show", "nothing"])
    assert f"{tmp_path}/kept" in listed.stderr


@pytest.mark.parametrize(
    ("content", "said", "how"),
    [
        ("depth = 9\n", "fathom.toml: depth = 9: it must be at least 1 and at most 5.", "correct it in the file"),
        ("dept = 3\n", "dept = 3: there is no such setting; did you mean depth?", ""),
        ("[report]\nwrods = 300\n", "report.wrods = 300: there is no such setting; did you mean report.words?", ""),
        ('FATHOM_MODEL = "openai/x"\n', "there is no such setting; did you mean model?", ""),
        ("model = 5\n", "model = 5: it must be text.", ""),
        ('docs = "notes"\n', "docs = 'notes': it must be a list.", ""),
        ('profile = "fast"\n', "profile = 'fast': it must be 'quick', 'standard' or 'deep'.", ""),
        ("max_usd = 1\n[budget]\nmax_usd = 2\n", "budget.max_usd is set twice, differently.", "delete one of them"),
        ("model = openai/x\n", "fathom.toml is not TOML: Invalid value (at line 1, column 9)", "in quotes"),
        ('template = "nope"\n', "template: There is no template 'nope'", "Fathom has due-diligence"),
        ('template = "nope.toml"\n', "template: There is no file", ""),
        ('tavily_api_key = "tvly-x"\n', "tavily_api_key holds a secret", "set TAVILY_API_KEY in the environment"),
        ('tavily_key = "x"\n', "tavily_key holds a secret", "set TAVILY_API_KEY in the environment"),
        ('[openai]\napi_key = "x"\n', "openai.api_key holds a secret", "set OPENAI_API_KEY in the environment"),
        ('api_key = "planted"\n', "api_key holds a secret", "such as OPENAI_API_KEY"),
        (f'model = "sk-{"planted1" * 4}"\n', "model holds a secret", "set OPENAI_API_KEY in the environment"),
        ('artifacts = "s3://me:planted@b"\n', "artifacts holds a secret", "set AWS_ACCESS_KEY_ID and"),
    ],
)
def test_what_is_wrong_in_the_file_is_one_line_with_what_to_do(
    fathom_cli: FathomCLI, home: Path, tmp_path: Path, content: str, said: str, how: str
) -> None:
    (tmp_path / "fathom.toml").write_text(content)
    done = fathom_cli(["research", "q", "--estimate"])
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert said in done.stderr
    assert how in done.stderr
    assert "planted" not in done.stderr


def test_a_file_that_is_wrong_keeps_nobody_from_reading_the_help(fathom_cli: FathomCLI, tmp_path: Path) -> None:
    for content in ("depth = 9\n", "model = openai/x\n", 'api_key = "planted"\n'):  # a value, the form, a secret
        (tmp_path / "fathom.toml").write_text(content)
        assert fathom_cli(["research", "--help"]).returncode == 0


def test_the_nearest_file_counts_and_a_project_can_have_it(folder: Path, home: Path) -> None:
    environment = Environment.read()
    assert environment.file is None
    of_user = user_folder(environment.variables)
    of_user.mkdir(parents=True)
    (of_user / "fathom.toml").write_text('model = "a/user"\n')
    (folder / "pyproject.toml").write_text('[project]\nname = "mine"\n')
    assert environment.model == "a/user"
    (folder / "pyproject.toml").write_text('[tool.fathom]\nmodel = "a/project"\nartifacts = "s3://bucket"\n')
    os.utime(folder / "pyproject.toml", ns=(1, 1))
    assert (environment.model, environment.artifacts) == ("a/project", "s3://bucket")
    (folder / "fathom.toml").write_text('model = "a/folder"\nartifacts = "kept"\n')
    assert (environment.model, environment.artifacts) == ("a/folder", str(folder / "kept"))
    (folder / "fathom.toml").unlink()
    (folder / "pyproject.toml").write_text("[tool]\nfathom = 3\n")
    with pytest.raises(InvalidInput, match=r"tool\.fathom is not a table"):
        _ = environment.model
    assert Environment.read({}).file is None  # as a replay sees it


def test_the_user_s_folder_is_where_the_platform_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    named = {"HOME": "/home/me", "APPDATA": "/roaming"}
    found = {}
    for platform in ("linux", "darwin", "win32"):
        monkeypatch.setattr(sys, "platform", platform)
        found[platform] = user_folder(named).as_posix()
    assert found == {
        "linux": "/home/me/.config/fathom",
        "darwin": "/home/me/Library/Application Support/fathom",
        "win32": "/roaming/fathom",
    }


def test_a_new_setting_changes_no_call_of_runs_that_do_not_set_it() -> None:
    """A run that is resumed by a newer version finds its finished calls by its settings.

    Give a new setting `exclude_if` for its default. Another digest means that no unfinished run is continued.
    """
    assert hashlib.sha256(ResearchSettings().model_dump_json().encode()).hexdigest()[:16] == "d3b7193eb7c655ef"
