"""Tools of other packages: the example, installed as a user installs it, and packages that cannot be used."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fathom.client.resources import Condition
from fathom.config.environment import Environment
from fathom.config.settings import ResearchSettings
from fathom.errors import InvalidInput
from fathom.flows.operations.diagnosis import examine
from fathom.models import Ending
from fathom.tools.registry import REGISTRY, configured_tools
from tests.conftest import ROOT
from tests.inprocess import investigated

MEANING = "The soft launch is the period of six weeks before a product is announced, with 200 customers at most."
BROKEN = """
from fathom.tools.base import SearchVendor, Tool

class Documents(Tool):
    name, description = "documents", "Shadows a tool of Fathom."
    async def run(self, tool_input): raise NotImplementedError

class Misnamed(Documents):
    name = "another"

class Server(Documents):
    name = "mcp_server"

class Unfinished(Tool):
    name, description = "unfinished", "Has no method."

class Nameless(Tool):
    description = "Has no name."
    async def run(self, tool_input): raise NotImplementedError

class Twin(SearchVendor):
    name = "Tavily"
    async def search(self, query, limit, within): return []
"""
ENTRIES = {
    "documents": ("unfit:Documents", "there is another documents"),
    "misnamed": ("unfit:Misnamed", "the entry is called misnamed, but the tool another"),
    "mcp_server": ("unfit:Server", "'mcp_server' is no name of a tool"),
    "unfinished": ("unfit:Unfinished", "it has no method run"),
    "nameless": ("unfit:Nameless", "it has no name"),
    "twin": ("unfit:Twin", "there is another Tavily"),
    "nowhere": ("unfit:Nowhere", "AttributeError"),
    "missing": ("not_there:Tool", "ModuleNotFoundError: No module named 'not_there'"),
    "crashing": ("crashing:Tool", "ZeroDivisionError: division by zero"),
    "number": ("unfit:__name__", "it is not a Tool or SearchVendor"),
}


def forget() -> None:
    for name in ("plugins", "tools", "vendors"):
        REGISTRY.__dict__.pop(name, None)


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of installed packages, on the path of this process."""
    folder = tmp_path / "packages"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    forget()
    yield folder
    forget()


def install(source: Path, folder: Path) -> None:
    options = ["--quiet", "--no-deps", "--no-index", "--no-build-isolation", "--target", str(folder)]
    subprocess.run([sys.executable, "-m", "pip", "install", *options, str(source)], check=True, capture_output=True)


def found(about: str) -> list[Condition]:
    return [finding for finding in examine() if about in finding.name]


@pytest.mark.usefixtures("home")
async def test_the_example_is_installed_and_used(
    packages: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "source"
    shutil.copytree(ROOT / "examples" / "glossary", source)
    install(source, packages)
    terms = tmp_path / "terms.csv"
    terms.write_text(f'term,meaning\nsoft launch,"{MEANING}"\ngrace period,Thirty days after the end of a contract.\n')
    assert "glossary" not in configured_tools(ResearchSettings(), Environment.read())
    monkeypatch.setenv("GLOSSARY_FILE", str(terms))
    assert "glossary" in configured_tools(ResearchSettings(), Environment.read())
    question = "How many weeks does the soft launch take?"
    result = await investigated(tmp_path / "store", question, model="extractive", tools=["glossary"])
    assert result.status is Ending.complete, result.reason
    assert [source.url for source in result.sources] == ["glossary:soft launch"]
    assert "six weeks" in (Path(result.artifacts) / "report.md").read_text()


@pytest.mark.usefixtures("home")
def test_a_package_that_cannot_be_used_is_named_and_takes_nothing_with_it(packages: Path) -> None:
    (packages / "unfit.py").write_text(BROKEN)
    (packages / "crashing.py").write_text("1 / 0\n")
    metadata = packages / "unfit_tools-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: unfit-tools\nVersion: 1.0\n")
    lines = "".join(f"{name} = {value}\n" for name, (value, _) in ENTRIES.items())
    (metadata / "entry_points.txt").write_text(f"[fathom.tools]\n{lines}")

    assert configured_tools(ResearchSettings(), Environment.read({})) == [
        "documents",
        "artifact_grep",
        "artifact_read",
        "compute",
    ]
    said = {finding.name.removeprefix("plug-in "): finding for finding in found("plug-in")}
    for name, (value, problem) in ENTRIES.items():
        assert said[name].state == "broken"
        assert said[name].detail.startswith(f"{value} of the package unfit-tools: ")
        assert problem in said[name].detail
    with pytest.raises(InvalidInput, match=r"The tool crashing cannot be used: .*ZeroDivisionError"):
        configured_tools(ResearchSettings(tools=["crashing"]), Environment.read({}))
    assert configured_tools(ResearchSettings(tools=["documents"]), Environment.read({})) == ["documents"]
