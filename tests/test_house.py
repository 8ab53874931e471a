"""The house itself: which room may know which, who reads the environment, what is exported, locked and shipped."""

from __future__ import annotations

import ast
import importlib
import json
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Collection, Iterator
from functools import cache
from graphlib import TopologicalSorter
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from typer.main import get_command

import fathom
from fathom.interfaces.cli.commands import app

ROOT = Path(__file__).parent.parent
MODULES = sorted(
    path
    for room in ("fathom", "tasks", "flows")
    for path in (ROOT / room).rglob("*.py")
    if path != ROOT / "fathom/__main__.py"  # starts the command line, and belongs to no room
)
LOCKS = ["requirements.lock", "requirements-dev.lock", "requirements-image.lock"]

ROOMS = [
    "clock",
    "errors",
    "network",
    "models",
    "text",
    "config",
    "facts",
    "retrieval",
    "contradictions",
    "sources",
    "storage",
    "telemetry",
    "budget",
    "roles",
    "evidence",
    "llm",
    "tools",
    "extractive",
    "run",
    "changes",
    "report",
    "batch",
    "client",
    "tasks",
    "flows",
    "service",
    "interfaces",
]
"""The rooms from the bottom up: each may import those before it, and Prefect from `tasks` on."""

ENVIRONMENT = {
    "fathom/config/environment.py",
    "flows/server.py",  # sets Prefect's own variables before Prefect is imported
}
"""The modules that may touch the process environment."""

PINNED = {"prefect-redis", "python-multipart"}
"""Declared for others, which import them: Prefect, by a setting, and Starlette."""

MAX_LINES = 500
MAX_FUNCTION_LINES, MAX_PARAMETERS = 60, 8


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def dotted(path: Path) -> str:
    """Return a module's import name: `fathom/flows` and `fathom/tasks` are links."""
    name = relative(path).removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    return name if name.split(".")[0] == "fathom" else f"fathom.{name}"


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def nodes(path: Path) -> list[ast.AST]:
    """Return all that a module consists of, from the outside in."""
    return [*ast.walk(parsed(path))]


def imports(path: Path) -> Iterator[str]:
    """Yield what a module imports, also inside functions; `from a import b` is both `a` and `a.b`."""
    for node in nodes(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{relative(path)}:{node.lineno} imports relatively"
            yield node.module or ""
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
            if node.module == "fathom":  # what it passes on is imported when it is asked for
                yield from (of for of, names in fathom._MODULES.items() for a in node.names if a.name in names)


def imported_modules(path: Path, modules: Collection[str]) -> set[str]:
    """Return the modules that one imports when it runs, also inside functions: not those for a type checker alone."""
    found, for_types = set[str](), set[ast.AST]()
    for node in nodes(path):
        if node in for_types or (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"):
            for_types.update(ast.iter_child_nodes(node))
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            whole = ((f"{node.module}.{alias.name}", node.module or "") for alias in node.names)
            found |= {inner if inner in modules else outer for inner, outer in whole}
    return found & {*modules}


def exported(path: Path) -> set[str]:
    """Return the `__all__` of a package, or what a module defines without a leading underscore."""
    found: set[str] = set()
    for node in parsed(path).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return set(ast.literal_eval(node.value))
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)}
    return {name for name in found if not name.startswith("_")}


def test_rooms_know_only_the_rooms_below() -> None:
    above: dict[str, set[str]] = {}
    for number, room in enumerate(ROOMS):
        above[room] = {f"fathom.{other}" for other in ROOMS[number + 1 :]}
        above[room] |= set() if number >= ROOMS.index("tasks") else {"prefect"}
    assert {room for path in MODULES for room in dotted(path).split(".")[1:2]} == {*ROOMS}
    upward = {
        f"{relative(path)} imports {name}"
        for path in MODULES
        for room in dotted(path).split(".")[1:2]
        for name in imports(path)
        if not above[room].isdisjoint((name.split(".")[0], ".".join(name.split(".")[:2])))
    }
    assert upward == set()


def test_no_door_knows_another_and_who_may_is_decided_behind_them() -> None:
    """Doors ask the service alone, which knows no protocol. Who uses the command line has the store, and needs none."""
    doors = {f"fathom.interfaces.{door}" for door in ("api", "chat", "cli", "mcp", "page")}
    protocols = {"fastapi", "mcp", "starlette", "typer", "uvicorn"}
    engine = {"fathom.flows", "fathom.tasks", "prefect"}
    for path in MODULES:
        own = dotted(path)
        known = {".".join(name.split(".")[:parts]) for name in imports(path) for parts in (1, 2, 3)}
        if own.startswith("fathom.service"):
            assert not known & protocols, own
        elif (door := ".".join(own.split(".")[:3])) in doors - {"fathom.interfaces.cli"}:
            assert not known & (engine | doors - {door}), own


def test_no_modules_import_each_other_in_a_circle() -> None:
    modules = {dotted(path): path for path in MODULES}
    graph = {name: imported_modules(path, modules) - {name} for name, path in modules.items()}
    assert len([*TopologicalSorter(graph).static_order()]) == len(modules)


def test_the_files_and_folders_of_a_folder_import_each_other_one_way() -> None:
    """A folder counts as one with what it holds, and what is imported for a type checker alone counts too."""
    modules = {dotted(path) for path in MODULES}
    graphs: dict[str, dict[str, set[str]]] = {}
    for path in MODULES:
        own = dotted(path).split(".")
        for other in (name.split(".") for name in {*imports(path)} & modules):
            shared = next((n for n, pair in enumerate(zip(own, other, strict=False)) if pair[0] != pair[1]), None)
            if shared is not None:
                graphs.setdefault(".".join(own[:shared]), {}).setdefault(own[shared], set()).add(other[shared])
    assert all([*TopologicalSorter(graph).static_order()] for graph in graphs.values())  # or it raises a CycleError
    flows = graphs["fathom.flows"]
    assert len({*flows}.union(*flows.values())) <= 18
    assert sum(map(len, flows.values())) <= 30


def test_a_class_name_means_one_thing() -> None:
    classes = (node for path in MODULES for node in nodes(path) if isinstance(node, ast.ClassDef))
    names = Counter(node.name for node in classes if not node.name.startswith("_"))
    assert {name for name, count in names.items() if count > 1} == set()


def test_what_only_an_extra_brings_is_imported_late() -> None:
    """Whoever installs no extra can import all but the module that is nothing without MCP's package."""
    script = """
import importlib, sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.startswith(tuple(EXTRAS)) and name.partition(".")[0] != "opentelemetry" or name in EXTRAS:
            raise ModuleNotFoundError(name)
EXTRAS = ("mcp", "typst", "playwright", "sentence_transformers", "opentelemetry.sdk", "opentelemetry.exporter")
sys.meta_path.insert(0, Missing())
for name in sys.argv[1:]:
    try:
        importlib.import_module(name)
    except ModuleNotFoundError:
        print(name)
"""
    names = [name for name in map(dotted, MODULES) if not name.endswith("__main__")]
    done = subprocess.run([sys.executable, "-c", script, *names], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.split() == ["fathom.interfaces.mcp.server"]


def test_one_place_reads_the_environment() -> None:
    def touches(path: Path) -> bool:
        names = {"environ", "environb", "getenv", "getenvb", "putenv", "unsetenv"}
        return any(
            (isinstance(node, ast.Attribute) and node.attr in names and ast.unparse(node.value) == "os")
            or (isinstance(node, ast.ImportFrom) and node.module == "os" and names & {a.name for a in node.names})
            for node in nodes(path)
        )

    assert {relative(path) for path in MODULES if touches(path)} <= ENVIRONMENT


def test_modules_have_one_reason_to_change() -> None:
    lengths = {relative(path): len(path.read_text(encoding="utf-8").splitlines()) for path in MODULES}
    assert not {name: lines for name, lines in lengths.items() if lines > MAX_LINES}


def test_functions_fit_on_a_screen_and_commands_ask_for_little() -> None:
    functions = ast.FunctionDef, ast.AsyncFunctionDef
    long = [
        f"{relative(path)}: {node.name}"
        for path in MODULES
        for node in nodes(path)
        if isinstance(node, functions) and (node.end_lineno or 0) - node.lineno >= MAX_FUNCTION_LINES
    ]
    assert len(long) <= 4, long
    asking = [
        f"{relative(path)}: {node.name}"
        for path in MODULES
        if not relative(path).startswith("fathom/interfaces/cli/")  # Typer reads commands from their signatures
        for node in nodes(path)
        if isinstance(node, functions)
        if sum(a.arg not in ("self", "cls") for a in (*node.args.args, *node.args.kwonlyargs)) > MAX_PARAMETERS
    ]
    assert asking == []
    many = [name for name, parameters in parameters_of(get_command(app)) if parameters > MAX_PARAMETERS]
    assert len(many) <= 2, many


def parameters_of(command: Any, name: str = "fathom") -> Iterator[tuple[str, int]]:
    """Yield each command with the number of its own parameters, without the options of settings that several share."""
    yield name, len(command.params)
    for inner, below in getattr(command, "commands", {}).items():
        yield from parameters_of(below, f"{name} {inner}")


def test_packages_alone_list_what_they_pass_on() -> None:
    listing = [path for path in MODULES if any(ast.unparse(node).startswith("__all__") for node in parsed(path).body)]
    assert {path.name for path in listing} == {"__init__.py"}
    for path in listing:
        module = importlib.import_module(dotted(path))
        assert [name for name in module.__all__ if not hasattr(module, name)] == []
        assert len(module.__all__) == len(set(module.__all__))


def test_modules_take_from_each_other_what_is_exported() -> None:
    """Modules import what others define and do not hide behind an underscore; a package lists all it passes on."""
    modules = {dotted(path): path for path in MODULES}
    exports = {name: exported(path) for name, path in modules.items()}
    taken = {
        (dotted(path), node.module, alias.name)
        for path in MODULES
        for node in nodes(path)
        if isinstance(node, ast.ImportFrom) and node.module in modules
        for alias in node.names
        if f"{node.module}.{alias.name}" not in modules
    }
    hidden = {f"{who} imports {name} from {whence}" for who, whence, name in taken if name not in exports[whence]}
    assert hidden == set()
    packages = {name for name, path in modules.items() if path.name == "__init__.py" and name.startswith("fathom")}
    hidden = {f"{who} hides {name}" for who, _, name in taken if who in packages and name not in exports[who]}
    assert hidden == set()


def test_what_is_imported_is_declared_and_the_other_way_round() -> None:
    """Nothing comes in through another package's dependencies, which may drop it, and nothing is installed in vain."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [requirement for extra in project["optional-dependencies"].values() for requirement in extra]
    declared = {canonicalize_name(Requirement(line).name) for line in [*project["dependencies"], *extras]}
    modules = {name.split(".")[0] for path in MODULES for name in imports(path)}
    foreign = modules - sys.stdlib_module_names - {"fathom"}
    installed = packages_distributions()  # an extra that is not installed has the name of its module
    providers = [{canonicalize_name(provider) for provider in installed.get(name, [name])} for name in foreign]
    # Several distributions may share a namespace, as those of OpenTelemetry do.
    imported = {provider for found in providers for provider in (found & declared or found)}
    assert imported - declared == set()
    assert declared - imported == PINNED


def test_the_walks_of_contributing_exist() -> None:
    steps = re.findall(r"`([\w/]+\.py):(\w+)`", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    assert len(steps) > 25
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    missing = {
        f"{path}:{name}"
        for path, name in steps
        if name not in {node.name for node in nodes(ROOT / path) if isinstance(node, functions)}
    }
    assert missing == set()


def test_contributing_shows_the_rooms_and_how_long_the_tour_is() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    shown = text.partition("```\nflows/")[2].partition("```")[0]
    rooms = re.findall(r"^(?:  )?(\w+)(?:/|\.py) ", shown, re.MULTILINE)
    below = [room for room in reversed(ROOMS) if room not in ("flows", "tasks")]
    assert [room for room in rooms if room in below] == below
    files = re.findall(r"^\| \[([\w/]+\.py)\]", text, re.MULTILINE)
    lines = sum(len((ROOT / file).read_text(encoding="utf-8").splitlines()) for file in files)
    assert len(files) == 7
    assert f"Seven files, {round(lines, -2):,} lines" in text


def pins(lock: str) -> dict[str, set[str]]:
    """Return the locked versions of each package; there are several where Python versions differ."""
    found: dict[str, set[str]] = {}
    for name, version in re.findall(r"^([\w.-]+)==(\S+)", (ROOT / lock).read_text(encoding="utf-8"), re.MULTILINE):
        found.setdefault(canonicalize_name(name), set()).add(version)
    return found


@pytest.mark.parametrize("lock", LOCKS)
def test_locks_name_versions_and_hashes_and_nothing_else(lock: str) -> None:
    pin = re.compile(r"[a-z0-9._-]+==\S+( ; [^\\]+)? \\(\n    --hash=sha256:[0-9a-f]{64}( \\)?)+")
    text = re.sub(r"^#.*\n", "", (ROOT / lock).read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert pin.sub("", text).strip() == ""


def test_locks_are_those_of_the_project() -> None:
    """`make lock` was run after the last change of a dependency, and the checks run on what users run on."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    groups = project["dependency-groups"]
    runtime, *others = (pins(lock) for lock in LOCKS)
    extras = project["project"]["optional-dependencies"]
    wanted = {"requirements.lock": [*project["project"]["dependencies"], *groups["build"]]}
    wanted["requirements-dev.lock"] = [*wanted["requirements.lock"], *groups["dev"]]
    in_image = [line for extra in ("otel", "pdf", "scale") for line in extras[extra]]
    wanted["requirements-image.lock"] = [*wanted["requirements.lock"], *in_image]
    for lock, locked in zip(LOCKS, (runtime, *others), strict=True):
        for requirement in map(Requirement, wanted[lock]):
            versions = locked.get(canonicalize_name(requirement.name), set())
            assert versions and all(map(requirement.specifier.contains, versions)), f"{lock}: {requirement}"
    for other in others:
        assert {name: versions for name, versions in runtime.items() if other.get(name) != versions} == {}


CLEAN = {"name": "a", "version": "1", "vulns": []}
FLAWED = {"name": "a", "version": "1", "vulns": [{"id": "PYSEC-1", "aliases": ["CVE-1"], "fix_versions": []}]}
UNKNOWN = {"name": "b", "skip_reason": "not found"}


@pytest.mark.parametrize(("packages", "code"), [([CLEAN], 0), ([FLAWED, UNKNOWN], 1), ([CLEAN, UNKNOWN], 3), ([], 3)])
def test_an_audit_that_had_no_data_is_not_taken_for_a_clean_one(packages: list[Any], code: int) -> None:
    said = json.dumps({"dependencies": packages})
    done = subprocess.run([sys.executable, ROOT / ".ci/audit"], input=said, capture_output=True, text=True, check=False)
    assert done.returncode == code
    assert ("could not be had" in done.stderr) == (UNKNOWN in packages or not packages)
    assert ("PYSEC-1, CVE-1" in done.stdout) == (code == 1)
