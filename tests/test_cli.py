"""The `fathom` command in processes of its own: what it refuses and prints, and how a run goes on when interrupted."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from fathom.config.given import read_settings
from fathom.config.groups import Clarify, Profile, Role, RoleModel
from fathom.config.settings import ResearchSettings
from fathom.interfaces.cli.options import GivenOptions
from fathom.interfaces.cli.printing import open_page
from fathom.models import RunResult
from fathom.tools.documents.files import find_files
from tests.conftest import ROOT, FathomCLI, Forked, PrefectServer, base_env, quiet_port
from tests.processes import Kills, asking
from tests.stubs import Stubs

QUERY = "How does Python look up an attribute on an instance?"
HEAVY = {"prefect", "litellm", "s3fs", "fsspec", "pypdf", "trafilatura", "httpx"}
HELP = """
import contextlib, io, json, sys
from fathom.interfaces.cli.main import run
texts = []
for arguments in json.loads(sys.argv[1]):
    sys.argv = ["fathom", *arguments]
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.suppress(SystemExit):
        run()
    texts.append(out.getvalue())
print(json.dumps({"texts": texts, "modules": sorted(sys.modules)}))
"""
RUN = """
import gc, json, sys
from pathlib import Path

def importing(frame):
    while frame := frame.f_back:
        if frame.f_code.co_name == "_find_and_load":
            yield frame.f_locals["name"]

disturbed = set()
gc.callbacks.append(lambda _phase, _info: disturbed.update(importing(sys._getframe())))
from fathom.interfaces.cli.main import run
from fathom.models import Model, Received

def derived(base):
    for model in base.__subclasses__():
        yield model
        yield from derived(model)

told = sys.argv.pop(1)
try:
    run()
finally:
    known = [*derived(Model), *derived(Received)]
    unbuilt = [model.__name__ for model in known if not model.__pydantic_complete__]
    Path(told).write_text(json.dumps({"modules": sorted(sys.modules), "unbuilt": unbuilt, "disturbed": [*disturbed]}))
"""
INTERRUPTED = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background ignores it
class Pressed:
    def __set_name__(self, owner, name):  # Python 3.11 makes a RuntimeError of what this raises
        os.kill(os.getpid(), signal.SIGINT)
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == sys.argv[1]:
            sys.meta_path.remove(self)
            if sys.argv[2] == "between":
                raise KeyboardInterrupt
            type("Made", (), {"pressed": Pressed()})
sys.meta_path.insert(0, Finder())
from fathom.interfaces.cli.main import main
main()
"""
COMMANDS = [
    *("research", "ask", "batch", "templates", "answer", "tell", "stop", "cancel", "resume"),
    *("runs", "library", "show", "rate", "verify", "trace", "diff", "audit", "replay"),
    *("export", "import", "delete", "prune"),
    *("serve", "mcp", "worker", "deploy", "costs", "metrics", "doctor"),
]
GROUPS = {
    "watch": ["add", "list", "pause", "resume", "remove", "run", "history"],
    "corpora": ["add", "list", "show", "remove"],
    "notify": ["add", "list", "remove"],
    "limits": ["set", "list", "remove"],
    "links": ["list", "revoke"],
    "tokens": ["add", "list", "revoke"],
}
ENSURE = "from fathom.flows.server import ensure_api; server = ensure_api(); print(server.api_url, server.started)"


def test_help_teaches_by_example_and_imports_nothing_heavy() -> None:
    named = [[command] for command in COMMANDS] + [[group, name] for group, names in GROUPS.items() for name in names]
    arguments = json.dumps([["--help"], ["--version"], *([*command, "--help"] for command in named)])
    done = subprocess.run(
        [sys.executable, "-c", HELP, arguments], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    )
    answer = json.loads(done.stdout)
    assert HEAVY.isdisjoint(answer["modules"])
    overview, version, *helps = answer["texts"]
    listed = overview.split("Ask:\n")[1]
    assert sorted(re.findall(r"^  (\w+) ", listed, re.MULTILINE)) == sorted([*COMMANDS, *GROUPS])
    assert "..." not in listed  # a description that does not fit
    assert version.startswith("fathom ")
    assert all(f"Example: fathom {' '.join(command)}" in text for command, text in zip(named, helps, strict=True))


def test_a_run_imports_and_builds_only_what_it_uses(
    home: Path, prefect_server: PrefectServer, stubs: Stubs, tmp_path: Path
) -> None:
    told = tmp_path / "told.json"
    command = [sys.executable, "-c", RUN, str(told), "research", QUERY, "--profile", "quick", "--model", "openai/stub"]
    env = {**base_env(), "HOME": str(home), **prefect_server.env, **stubs.env}
    subprocess.run([*command, "--json", "--artifacts", str(tmp_path)], cwd=ROOT, env=env, check=True, timeout=120)
    assert stubs.calls("llm")
    used = json.loads(told.read_text())
    unused = {"docutils", "fastapi", "fathom.client", "litellm", "pypdf", "s3fs", "trafilatura"}
    assert unused.isdisjoint(used["modules"])
    large = {"fathom.interfaces.cli.commands", "fathom.flows.preflight", "fathom.flows.execution.local"}
    assert large <= {*used["modules"]}
    assert large.isdisjoint(used["disturbed"]), "garbage was collected while modules were imported"
    assert {"BatchRow", "_Works"} <= {*used["unbuilt"]}
    assert {"Plan", "Note", "Report"}.isdisjoint(used["unbuilt"])


@pytest.mark.parametrize("served", [False, True])
def test_what_reads_runs_imports_no_prefect_and_no_model(
    home: Path, prefect_server: PrefectServer, served: bool
) -> None:
    stored = ["--artifacts", str(ROOT / "tests/stored_run")]
    commands = [
        ["runs", "--limit", "200"],
        ["show", "water"],
        ["show", "unknown"],
        ["verify", "water"],
        ["audit", "water"],
    ]
    done = subprocess.run(
        [sys.executable, "-c", HELP, json.dumps([[*command, *stored] for command in commands])],
        env={**base_env(), "PREFECT_SERVER_API_PORT": str(quiet_port()), **(prefect_server.env if served else {})},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    answer = json.loads(done.stdout)
    listed, shown, _unknown, verified, audited = answer["texts"]
    assert (
        "How much water" in listed
        and "How much water" in shown
        and "unchanged" in verified
        and "none changed" in audited
    )
    assert {"prefect", "litellm", "s3fs", "pypdf", "trafilatura", "httpx"}.isdisjoint(answer["modules"])
    rooms = {module.partition(".")[2].partition(".")[0] for module in answer["modules"] if module.startswith("fathom.")}
    assert {"extractive", "llm", "tools"}.isdisjoint(rooms)  # what only a run needs


@pytest.mark.parametrize(
    ("module", "where", "said"),
    [
        ("fathom.interfaces.cli.exits", "between", ""),
        ("typing", "between", "fathom: interrupted\n"),
        ("fathom.interfaces.cli.commands", "between", "fathom: interrupted\n"),
        ("fathom.config.environment", "within", "fathom: interrupted\n"),
        ("fathom.interfaces.cli.commands", "within", "fathom: interrupted\n"),
    ],
)
def test_ctrl_c_during_the_imports_is_one_line_at_most(module: str, where: str, said: str) -> None:
    command = [sys.executable, "-c", INTERRUPTED, module, where]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, said)


@pytest.mark.parametrize(("code", "made", "said"), [(0, 0, ""), (3, 0, ""), (1, 2, "Error 1"), (2, 2, "Error")])
def test_make_calls_a_question_without_an_answer_no_error(tmp_path: Path, code: int, made: int, said: str) -> None:
    program = tmp_path / ".venv/bin/fathom"
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\n[ "$*" = "research --docs a b -- What is it?" ] && exit {code}\n')
    program.chmod(0o755)
    for name in ("requirements.lock", "pyproject.toml", ".venv/.runtime"):
        (tmp_path / name).touch()
    command = ["make", "-f", str(ROOT / "Makefile"), "research", "Q=What is it?", "DOCS=a b"]
    env = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == made, done.stderr
    assert said in done.stderr if said else not done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["research", "  "], "E4001 The query is empty"),
        (["research", "???"], "E4001 The question has no word. (ask a question: "),
        (["research", "Hello, test!"], "E4001 “Hello, test!” asks for nothing. (ask a question: "),
        (["research", "x" * 10_001], "E4001 The query has 10,001 characters"),
        (
            ["research", "q", "--depth", "9"],
            "--depth 9: it must be at least 1 and at most 5. (docs/settings.md describes the settings)",
        ),
        (["research", "q", "--max-usd", "inf"], "--max-usd inf: it must be a finite number, at least 0"),
        (["research", "q", "--since", "yesterday"], "--since yesterday: 'yesterday' is not a date such as 2026-11-30."),
        (["research", "q", "--set", "depth"], "'depth' is not NAME=VALUE. (for example --set depth=2)"),
        (["research", "q", "--set", "depht=2"], "--set depht=2: there is no such setting; did you mean depth?"),
        (
            ["research", "q", "--depth", "2", "--set", "depth=3"],
            "--depth and --set depth=3 contradict each other. (give only one of them)",
        ),
        (
            ["research", "q", "--set", "max-usd=1", "--set", "budget.max_usd=2"],
            "--set max-usd=1 and --set budget.max_usd=2 contradict each other",
        ),
        (
            ["research", "q", "--set", 'sources.scores={"example.org": 7}'],
            "--set sources.scores.example.org=7: it must be at most 1.",
        ),
        (
            ["research", "q", "--set", "role_models.writer=openai/x"],
            "--set role_models.writer=openai/x: the name must be 'clarifier', ",
        ),
        (["research", "q", "--set", "role_models.judge.effort=low"], "role_models.judge.model: it is missing"),
        (
            ["batch", "nowhere", "--set", "report.words=5"],
            "--set report.words=5: it must be at least 100 and at most 20,000",
        ),
        (["research", "q", "--price", "openai/x=inf,1"], "--price openai/x=inf,1: it must be INPUT,OUTPUT"),
        (["ask", "r", "q", "--depth", "9", "--set", "depth=9"], "E5001 No run 'r'"),
        (["research", "q", "--role-model", "reporter"], "--role-model reporter is not ROLE=MODEL"),
        (["research", "q", "--tools", "documents,google"], "no tool 'google'"),
        (["research", "q", "--tools", "web_search"], "TAVILY_API_KEY"),
        (["research", "not UTF-8: \udcff"], "not valid UTF-8"),
        (["research", "q", "--docs", ""], "--docs path is empty"),
        (["research", "q", "--docs", "nowhere"], "nowhere"),
        (
            ["research", "q", "--docs", "https://a.example/b"],
            "--docs https://a.example/b: it is no file or folder. (write",
        ),
        (["research", "q", "--docs", "empty"], "Nothing to read"),
        (
            ["research", "q", "--docs", "sheet.xlsx"],
            "sheet.xlsx: it is damaged, or no xlsx file). (give files of these kinds: any text, html, pdf",
        ),
        (["research", "q", "--model", "openai/gpt-5-mini"], "OPENAI_API_KEY"),
        (["research", "q", "--artifacts", "file.txt/below"], "file.txt/below"),
        (["research", "q", "--artifacts", "nosuch://bucket"], "nosuch"),
        (["research", "q", "--dpeth", "1"], "--dpeth"),
        (["research"], "The question is missing. (for example: fathom research "),
        (["show", "nothing"], "E5001 No run 'nothing'"),
    ],
    ids=lambda value: ascii(" ".join(value))[:40] if isinstance(value, list) else "",
)
def test_bad_input_is_one_line_and_nothing_is_written(
    fathom_cli: FathomCLI, home: Path, tmp_path: Path, arguments: list[str], said: str
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file.txt").write_text("a file, not a folder")
    (tmp_path / "sheet.xlsx").write_text("could be taken for text")
    before = set(tmp_path.rglob("*"))
    done = fathom_cli(arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("fathom: ")
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
    assert set(tmp_path.rglob("*")) == before


def checked(
    options: Mapping[str, str | bool | Sequence[str]], pairs: list[str], usual: dict[str, Any] | None = None
) -> ResearchSettings:
    given = GivenOptions(options, pairs)
    return given.checked(given.chosen(usual))


def test_an_option_beats_set_which_beats_the_template_and_what_is_usual() -> None:
    options = {"template": "literature-review", "budget.max_usd": "1", "depth": "2"}
    pairs = ["depth=2", "max-calls=7", "max_results=3", "tools=documents,web_search", 'sources.scores={"a.org": 1}']
    usual = {"people": {"clarify": "auto"}}
    settings = checked(options, pairs, usual)
    template = checked({"template": "literature-review"}, [])
    assert (template.max_results, settings.max_results, settings.max_steps) == (8, 3, template.max_steps)
    assert settings.tools == ["documents", "web_search"]
    assert (settings.depth, settings.budget.max_usd, settings.budget.max_calls) == (2, 1, 7)
    assert (settings.people.clarify, settings.sources.scores, settings.fresh) == (Clarify.auto, {"a.org": 1}, False)
    assert checked({}, ["people.clarify=never"], usual).people.clarify is Clarify.never
    merged = checked({"role_models": ["reporter=openai/a"]}, ["role_models.reporter.temperature=0.5"])
    assert merged.role_models[Role.reporter] == RoleModel(model="openai/a", temperature=0.5)


@pytest.mark.parametrize(
    ("pair", "value"),
    [
        ("model=123", {"model": "123"}),
        ("model=null", {"model": None}),
        ("docs=a, b", {"docs": ["a", "b"]}),
        ('docs=["a,b"]', {"docs": ["a,b"]}),
        ("role_models.judge.fallbacks=x", {"role_models": {"judge": {"fallbacks": ["x"]}}}),
        ("budget.max_usd=0.5", {"budget": {"max_usd": 0.5}}),
        ("Fresh = true", {"fresh": True}),
        ("Prices.openai/GPT-5-x={}", {"prices": {"openai/GPT-5-x": {}}}),
        ("embed_model=a=b", {"embed_model": "a=b"}),
    ],
)
def test_a_value_is_json_or_text_as_its_setting_takes_it(pair: str, value: dict[str, Any]) -> None:
    assert read_settings([pair]) == value


def test_a_configured_api_that_does_not_answer_is_named(fathom_cli: FathomCLI, home: Path, tmp_path: Path) -> None:
    (home / ".prefect").mkdir()
    profile = 'active = "away"\n[profiles.away]\nPREFECT_API_URL = "http://127.0.0.1:9/api"\n'
    (home / ".prefect/profiles.toml").write_text(profile)
    done = fathom_cli(["research", QUERY])
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "http://127.0.0.1:9/api does not answer" in done.stderr
    assert not (tmp_path / "artifacts").exists()


@pytest.mark.parametrize("answers", [True, False])
def test_a_busy_server_is_waited_for(home: Path, answers: bool) -> None:
    """The server listens, is silent until the first request is given up, and then answers, or never does."""
    patience = f"server.PROBE_SECONDS = 1; server.BUSY_SECONDS = {60 if answers else 1}"
    script = f"from fathom.flows import server; {patience}"
    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/api"
        command = [sys.executable, "-c", f"{script}; print(server.ensure_api().api_url)"]
        env = {**base_env(), "HOME": str(home), "PREFECT_API_URL": url}
        with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            for answer in (b"", b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ntrue" if answers else b""):
                connection, _address = listening.accept()
                with connection:
                    connection.settimeout(100)
                    assert connection.recv(1_000).startswith(b"GET /api/health ")
                    connection.sendall(answer)
                    assert connection.recv(1_000) == b""  # the other side hangs up
            printed, errors = process.communicate(timeout=100)
    busy = f"The Prefect server at {url} is busy; waiting"
    assert errors.count(busy) == 1
    if answers:
        assert (process.returncode, printed) == (0, f"{url}\n"), errors
    else:
        assert f"ServerUnreachable: E4005 The server at {url} is busy: it accepts connections" in errors


def test_a_question_without_any_key(fathom_cli: FathomCLI, prefect_server: PrefectServer, tmp_path: Path) -> None:
    done = fathom_cli(["research", QUERY, "--json"], prefect_server.env)
    assert done.returncode == 0, done.stderr
    result = RunResult.model_validate_json(done.stdout)
    [said] = re.sub(r"The Prefect server at \S+ is busy; .*\n", "", done.stderr).splitlines()
    assert said.startswith("fathom: Searching only the Python language reference"), "nothing else is worth saying"
    assert result.report
    report = Path(result.report).read_text()
    assert Path(result.artifacts).is_relative_to(tmp_path / "artifacts")
    assert not list(home_of(tmp_path).rglob("server.pid"))  # it attached to the session's server

    # Without a server, from the store alone: by the beginning of the id, and by the folder's path from anywhere.
    assert fathom_cli(["show", result.run_id[:8]]).stdout == report
    assert fathom_cli(["show", result.artifacts, "--artifacts", "elsewhere"]).stdout == report
    lost = fathom_cli(["show", result.run_id[:8], "--artifacts", "elsewhere"], prefect_server.env)  # `runs` lists it
    assert lost.returncode == 2
    assert f"--artifacts {tmp_path / 'artifacts'})" in lost.stderr
    shown = json.loads(fathom_cli(["show", Path(result.artifacts).name, "--json"]).stdout)
    assert shown["result"] == json.loads(done.stdout)
    assert {step["status"] for step in shown["plan"]["steps"]} <= {"done", "blocked"}

    rows = json.loads(fathom_cli(["runs", "--json"], prefect_server.env).stdout)
    row = next(row for row in rows if row["run_id"] == result.run_id)
    assert (row["state"], row["query"], row["folder"]) == ("complete", QUERY, result.artifacts)
    assert [row["run_id"] for row in json.loads(fathom_cli(["runs", "--json"]).stdout)] == [result.run_id]

    listed = fathom_cli(["runs", "--artifacts", "elsewhere", "--json"], prefect_server.env).stdout
    (away,) = [one for one in json.loads(listed) if one["run_id"] == result.run_id]
    assert (row["elsewhere"], away["elsewhere"]) == ("", str(tmp_path / "artifacts"))
    listed = fathom_cli(["runs", "--artifacts", "elsewhere"], prefect_server.env).stdout
    assert re.search(rf"^  {re.escape(str(tmp_path / 'artifacts'))}  .*{result.run_id[:8]}", listed, re.MULTILINE)

    again = fathom_cli(["resume", result.run_id[:8], "--quiet"], prefect_server.env)
    assert again.returncode == 0
    answer = result.cited_answer
    assert answer and again.stdout.startswith(
        f"## {answer.heading}\n\n{answer.markdown}\n\n**How sure:** {answer.sure}."
    )
    assert [f"{cited.number}. {cited.title}" for cited in answer.sources] == [
        found[0] for found in re.finditer(r"^\d+\. [^,\n]+", again.stdout.rpartition("**How sure:**")[2], re.MULTILINE)
    ]
    assert again.stdout.startswith("## Answer\n")
    assert again.stdout.split("## Answer\n")[1].split("**How sure:**")[0] in report
    unknown = fathom_cli(["resume", "0000-0000"], prefect_server.env)
    assert unknown.returncode == 2
    assert "E5001" in unknown.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("trace RUN x", "N x: it must be a whole number. (fathom trace --help)"),
        ("serve --port 99999", "--port 99999: it must be at most 65,535. (fathom serve --help)"),
        ("tokens add me --days x", "--days x: it must be a number. (fathom tokens add --help)"),
        (
            "costs --by colour",
            "--by colour: 'colour' is not one of 'model', 'day', 'deployment'. (fathom costs --help)",
        ),
        ("batch q.md --format xml", "--format xml: 'xml' is not one of 'txt', 'csv', 'jsonl'. (fathom batch --help)"),
        (
            "research why --doc x",
            "There is no option --doc; did you mean --docs, --mcp or --redact? (fathom research --help)",
        ),
        ("research why --depth", "--depth needs a value. (--help behind the command lists its options)"),
        (
            "research",
            'The question is missing. (for example: fathom research "What did we decide about retries?" --docs notes/ '
            "--model openai/gpt-5-mini)",
        ),
        (
            "rate RUN",
            'THUMB is missing. (for example: fathom rate 1a2b3c4d down --note "the 2025 figures are missing")',
        ),
        ("prune", "--older-than is missing. (for example: fathom prune --older-than 90d --keep-reports --dry-run)"),
        ("research why so", "There is no place for 'so': put the question in quotes. (fathom research --help)"),
        ("show RUN so", "There is no place for 'so'. (fathom show --help)"),
        (
            "export RUN --to md --bundle x",
            "E4001 --to and --bundle cannot be combined. (give either --to FORMAT or --bundle FILE)",
        ),
        ("import nowhere.zip", "E4001 nowhere.zip cannot be read: No such file or directory. (check the path)"),
    ],
)
def test_what_a_command_line_lacks_is_said_in_plain_words(fathom_cli: FathomCLI, arguments: str, said: str) -> None:
    done = fathom_cli(arguments.split())
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"fathom: {said}\n")


@pytest.mark.parametrize("group", ["watch", "corpora", "notify", "limits", "tokens"])
def test_a_group_alone_shows_its_commands_on_lines_of_their_own(fathom_cli: FathomCLI, group: str) -> None:
    done = fathom_cli([group])
    assert done.returncode == 2 and done.stderr == fathom_cli([group, "--help"]).stdout


def test_no_pool_has_a_name_that_prefect_refuses(fathom_cli: FathomCLI, prefect_server: PrefectServer) -> None:
    done = fathom_cli(["deploy", "--pool", "a/b"], prefect_server.env)
    assert done.returncode == 2
    assert "E4001 'a/b' cannot be the name of a work pool. (use letters, digits and hyphens)" in done.stderr


def home_of(folder: Path) -> Path:
    return folder / "home"


def test_own_documents_from_another_folder(
    fathom_cli: FathomCLI, prefect_server: PrefectServer, tmp_path: Path
) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes/retries.md").write_text(
        "# Retries\n\nThe payment service retries a failed request three times, with a pause of two seconds.\n"
        "\nRetries stop after the third failure, and the request goes to the dead letter queue.\n"
    )
    done = fathom_cli(["research", "How often are requests retried?", "--docs", "notes"], prefect_server.env)
    assert done.returncode == 0, done.stderr
    assert "only your documents are searched" in done.stderr
    assert "warning" not in done.stderr
    (report,) = (tmp_path / "artifacts").rglob("report.md")
    assert done.stdout.startswith("## Answer\n")
    assert "three times" in done.stdout.split("**How sure:**")[0]
    assert "1. Retries, `docs:notes/retries.md`" in done.stdout
    assert f"\n\n  report   {report.with_suffix('.html')}\n" in done.stdout
    assert f"{prefect_server.api_url.removesuffix('/api')}/runs/flow-run/" in done.stdout
    assert "three times" in report.read_text()
    manifest = json.loads((report.parent / "run.json").read_text())
    assert manifest["settings"]["docs"] == [str(tmp_path / "notes")]
    (found,) = find_files([str(tmp_path)])
    assert found.path == tmp_path / "notes/retries.md", "what runs have stored is no document of the folder around it"


def test_an_unfinished_run_is_shown_with_its_steps_as_planned(fathom_cli: FathomCLI, tmp_path: Path) -> None:
    folder = tmp_path / "artifacts" / "research_artifacts" / "finalizers"
    folder.mkdir(parents=True)
    (folder / "run.json").write_text(json.dumps({"run_id": "0123abcd", "run_key": "k", "query": "When?"}))
    step = {"step_id": 1, "title": "When __del__ is called", "description": "d", "status": "in_progress"}
    (folder / "plan.json").write_text(json.dumps({"plan_title": "Finalizers", "steps": [step]}))
    done = fathom_cli(["show", "0123abcd"])
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("When?\n  state    not finished\n")
    assert "1. When __del__ is called (answered in part)" in done.stdout


def test_ctrl_c_leaves_a_run_that_resume_finishes(
    fathom_cli: FathomCLI, forked: Forked, prefect_server: PrefectServer, home: Path, stubs: Stubs, tmp_path: Path
) -> None:
    stubs.settings.llm_delay, stubs.settings.steps, stubs.settings.breadth = 0.1, 2, 1
    env = {**base_env(), **prefect_server.env, **stubs.env, "FATHOM_ARTIFACTS": str(tmp_path / "artifacts")}
    process = forked(env, "research", "How do tides form?", "--model", "openai/stub", "--profile", "quick")
    kills = Kills(stubs)
    kills.after(5, lambda: process.send_signal(signal.SIGINT))
    out, err = process.communicate(timeout=120)
    assert process.returncode == 130, err
    assert out == ""
    assert "Traceback" not in err
    said = err.splitlines()[-1]
    assert said.startswith("fathom: the run can be continued: fathom resume ")
    run_id = said.split()[-1]

    resumed = fathom_cli(["resume", run_id, "--json"], {**prefect_server.env, **stubs.env})
    assert resumed.returncode == 0, resumed.stderr
    result = json.loads(resumed.stdout)
    assert (result["run_id"], result["status"]) == (run_id, "complete")
    assert kills.repeated() == []


def test_a_rejected_key_ends_the_run_with_what_to_mend(
    fathom_cli: FathomCLI, prefect_server: PrefectServer, stubs: Stubs
) -> None:
    stubs.settings.faults = {"*": ["401*"]}
    done = fathom_cli(
        ["research", "How do tides form?", "-q", "--model", "openai/stub"], prefect_server.env | stubs.env
    )
    assert done.returncode == 1
    assert done.stdout == ""
    why, resume = done.stderr.splitlines()
    assert "fathom resume" in resume
    assert why.startswith("fathom: E2005 ")
    assert "key" in why


def test_a_deployments_run_is_left_to_a_worker(fathom_cli: FathomCLI, prefect_server: PrefectServer) -> None:
    with asking(prefect_server.api_url) as api:

        def post(path: str, body: dict[str, Any]) -> Any:
            return api.post(path, json=body).json()

        flow = post("/flows/", {"name": "deep-research"})
        deployment = post(
            "/deployments/", {"name": "cli-test", "flow_id": flow["id"], "enforce_parameter_schema": False}
        )
        run = post(f"/deployments/{deployment['id']}/create_flow_run", {"parameters": {"query": "q"}})
        post(f"/flow_runs/{run['id']}/set_state", {"state": {"type": "CRASHED"}, "force": True})
        done = fathom_cli(["resume", run["id"], "--no-wait", "--json"], prefect_server.env)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout) == {"run_id": run["id"], "status": "queued"}
        assert api.get(f"/flow_runs/{run['id']}").json()["state_type"] == "SCHEDULED"
        api.delete(f"/flow_runs/{run['id']}").raise_for_status()


@pytest.mark.parametrize(
    ("shell", "words"),
    [
        ("bash", {"COMP_WORDS": "fathom show df", "COMP_CWORD": "2"}),
        ("zsh", {"_TYPER_COMPLETE_ARGS": "fathom show df"}),
        ("fish", {"_TYPER_COMPLETE_ARGS": "fathom show df", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}),
    ],
)
def test_a_shell_completes_the_ids_of_runs(fathom_cli: FathomCLI, shell: str, words: dict[str, str]) -> None:
    store = {"FATHOM_ARTIFACTS": str(ROOT / "tests/stored_run")}
    done = fathom_cli([], {**store, **words, "_FATHOM_COMPLETE": f"complete_{shell}"})
    assert "df99f416" in done.stdout
    assert shell == "bash" or "How much water do the tanks hold?" in done.stdout


def test_open_shows_the_page_in_the_browser_or_says_why_not(
    fathom_cli: FathomCLI, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where the run is now, not where it was made."""
    store = shutil.copytree(ROOT / "tests/stored_run", tmp_path / "stored")
    page = next(store.rglob("report.html"))
    browser, opened = tmp_path / "browser", tmp_path / "opened"
    browser.write_text(f'#!/bin/sh\necho "$1" > {opened}\n')
    browser.chmod(0o755)
    show = ["show", "water", "--open", "--artifacts", str(store)]
    done = fathom_cli(show, {"BROWSER": f"{browser} %s"})
    assert (done.returncode, done.stderr, opened.read_text().strip()) == (0, "", page.as_uri())
    assert "no browser could be started" in fathom_cli(show, {"BROWSER": "", "PATH": ""}).stderr
    page.unlink()
    assert "is gone" in fathom_cli(show).stderr
    result = RunResult.model_validate_json(next(store.rglob("result.json")).read_bytes())
    open_page(result.model_copy(update={"report": "s3://bucket/run/report.md"}))
    assert "is not on this machine" in capsys.readouterr().err
    open_page(result.model_copy(update={"report": None}))
    assert "there is no report to open" in capsys.readouterr().err


def test_an_estimate_without_a_model_lists_tool_calls_only(fathom_cli: FathomCLI) -> None:
    done = fathom_cli(["research", QUERY, "--estimate"])
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[0].split() == ["phase", "tool", "calls"]
    assert "No model is asked: the run costs nothing." in done.stdout
    assert " 0" not in done.stdout


def test_doctor_asks_a_model_one_question(fathom_cli: FathomCLI, stubs: Stubs) -> None:
    def asked(*more: str) -> tuple[int, dict[str, dict[str, str]]]:
        done = fathom_cli(["doctor", "--model", "openai/stub", "--json", *more], stubs.env)
        return done.returncode, {finding["name"]: finding for finding in json.loads(done.stdout)}

    stubs.settings.models = {"data": [{"id": "stub", "meta": {"n_ctx": 4_096}}]}
    code, found = asked()
    assert (code, found["model"]["state"], found["JSON"]["state"]) == (0, "ok", "ok")
    assert found["window"]["detail"].startswith("4,096 tokens")
    assert found["price"]["state"] == "off"
    assert len(stubs.calls("llm")) == 1
    stubs.settings.refuses = {"response_format"}
    code, found = asked()
    assert (code, found["JSON"]["detail"]) == (0, "prompt: the answer fits the schema")
    stubs.settings.refuses, stubs.settings.faults = set(), {"*": ["broken_json"]}
    code, found = asked()
    assert (code, found["JSON"]["state"]) == (1, "broken")
    stubs.settings.faults = {"*": ["401"]}
    code, found = asked()
    assert (code, found["model"]["state"]) == (1, "broken")
    assert "OPENAI_API_KEY" in found["model"]["how"]


def test_doctor_names_what_is_missing_and_no_secret(fathom_cli: FathomCLI, home: Path, tmp_path: Path) -> None:
    done = fathom_cli(["doctor", "--json"], {"FATHOM_MODEL": "openai/gpt-5-mini", "TAVILY_API_KEY": "tvly-secret"})
    found = {finding["name"]: finding for finding in json.loads(done.stdout)}
    assert done.returncode == 1
    assert [name for name, finding in found.items() if finding["state"] == "broken"] == ["model"]
    assert "OPENAI_API_KEY" in found["model"]["detail"] + found["model"]["how"]
    assert found["web search"]["state"] == "ok"
    assert "secret" not in done.stdout
    assert fathom_cli(["doctor"]).returncode == 0
    done = fathom_cli(["doctor", "--json"], {"TAVILY_API_KEY": "tvly-secret", "TAVILY_BASE_URL": "foo"})
    [broken] = [finding for finding in json.loads(done.stdout) if finding["state"] == "broken"]
    assert (done.returncode, broken["name"]) == (1, "web search")
    assert broken["detail"] == "E4001 TAVILY_BASE_URL is not a web address."
    assert "set it to one such as" in broken["how"]
    assert f'{sys.executable} -m pip install -e "/' in found["extras"]["how"], "as a checkout is installed"
    found = {one["name"]: one for one in json.loads(fathom_cli(["doctor", "--json"], {"PATH": str(home)}).stdout)}
    assert 'artifacts = "~/fathom" in ' in found["artifacts"]["how"], "a store for all folders"
    assert found["scans"]["state"] == "off" and "apt install tesseract-ocr" in found["scans"]["how"]
    assert [*home.iterdir()] == []
    assert [*tmp_path.iterdir()] == [home]


def test_two_first_runs_start_one_server_beside_what_has_its_port(new_database: Path, home: Path) -> None:
    """The port is taken, the next one is taken while the server starts, a pid file is left, and two start at once."""
    prefect_home = home / ".prefect"
    prefect_home.mkdir()
    (prefect_home / "server.pid").write_text("999999999")
    shutil.copy(new_database, prefect_home)
    said = home / "said"
    with HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as other, said.open("w") as stderr:
        threading.Thread(target=other.serve_forever, daemon=True).start()
        port = other.server_port
        env = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
        env |= {"PREFECT_SERVER_API_PORT": str(port), "PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-c", ENSURE]
        processes = [
            subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=stderr, text=True) for _ in range(2)
        ]
        try:
            while not starting(said) and processes[0].poll() is None:
                time.sleep(0.01)
            with contextlib.ExitStack() as taken:
                with contextlib.suppress(OSError):  # taken by another program already: just what is tried here
                    taken.enter_context(socket.create_server(("127.0.0.1", starting(said)[0])))
                printed = [process.communicate(timeout=200)[0].split() for process in processes]
        finally:
            os.kill(int((prefect_home / "server.pid").read_text()), signal.SIGKILL)
            other.shutdown()
    assert [len(words) for words in printed] == [2, 2], said.read_text()
    (url, first), (other_url, second) = printed
    assert url == other_url
    assert urlsplit(url).port == starting(said)[-1]
    assert port < starting(said)[0] < starting(said)[-1]
    assert {first, second} == {"True", "False"}


def starting(said: Path) -> list[int]:
    """Return the ports on which the starting of a server was told."""
    return [int(port) for port in re.findall(r"Starting a Prefect server on http://127.0.0.1:(\d+)", said.read_text())]


def test_chat_messages_in_and_out(prefect_server: PrefectServer, home: Path, tmp_path: Path) -> None:
    from fathom import research

    settings = ResearchSettings(artifacts=str(tmp_path / "chat"), profile=Profile.quick)
    messages = [{"role": "user", "content": "What is a descriptor in Python?"}]
    answered = research(messages, settings)
    assert answered[:1] == messages
    assert answered[1]["role"] == "assistant"
    assert answered[1]["content"].startswith("# ")
    assert "## Sources" in answered[1]["content"]

    talk = [{"role": "user", "content": "What is a descriptor?"}, {"role": "assistant", "content": "Which language?"}]
    *_, report = research([*talk, {"role": "user", "content": "Python"}], settings)
    folders = (tmp_path / "chat/research_artifacts").iterdir()
    [run] = [run for folder in folders if (run := json.loads((folder / "run.json").read_text()))["clarifications"]]
    assert run["query"] == "What is a descriptor?" and "conversation" not in report["content"]
    assert [(said["question"], said["answer"]) for said in run["clarifications"]] == [("Which language?", "Python")]
