"""A whole run over catalogues of papers: who wrote what is quoted stands in the report and its bibliographies."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web

from tests.conftest import FathomCLI
from tests.inprocess import investigated, kept
from tests.listening import app_of, listening

QUERY = "How high is the tide of the methane lake Ontara?"
ARXIV = """<feed xmlns="http://www.w3.org/2005/Atom"><entry>
  <id>http://arxiv.org/abs/2301.00042v3</id><published>2023-01-01T10:00:00Z</published>
  <title>A model of the tide of the methane lake Ontara</title>
  <summary>The tide of the methane lake Ontara is 0.4 metres high at the southern shore. We model the lake in two
  dimensions, and the wind is left out.</summary>
  <author><name>Ada Brookfield</name></author><author><name>Jan van der Meer</name></author>
</entry></feed>"""
ABSTRACT = "The methane lake Ontara was measured for two years. Its tide is described in the article."
FULL_TEXT = """<html><head><title>full.pdf</title></head><body><article><p>The methane lake Ontara was measured for two
years by three stations on its northern shore, which sent their data by radio every night.</p>
<p>The tide of the methane lake Ontara is 0.7 metres high at the northern shore, and it returns every 16 days.</p>
</article></body></html>"""


def openalex(full_text: str) -> str:
    work = {
        "id": "https://openalex.org/W42",
        "doi": "https://doi.org/10.1234/jpl.42",
        "display_name": "The tide of the methane lake Ontara, measured",
        "publication_date": "2024-02-03",
        "authorships": [{"author": {"display_name": "Bo Fenwick"}}],
        "primary_location": {"source": {"display_name": "Journal of Planetary Lakes"}},
        "best_oa_location": {"pdf_url": full_text, "license": "cc-by"},
        "abstract_inverted_index": {word: [at] for at, word in enumerate(ABSTRACT.split())},
    }
    return json.dumps({"meta": {"count": 1}, "results": [work]})


class Catalogues:
    """An arXiv, an OpenAlex and a repository on one host; `refusing`: the repository gives no full text."""

    def __init__(self) -> None:
        self.url = ""
        self.refusing = False
        self.full_text = ""  # its address; in the repository by default
        self.paths: list[str] = []

    async def serve(self, request: web.Request) -> web.StreamResponse:
        self.paths.append(request.path)
        match request.path:
            case "/query":
                return web.Response(text=ARXIV, content_type="application/atom+xml")
            case "/works":
                return web.Response(
                    text=openalex(self.full_text or f"{self.url}/full"), content_type="application/json"
                )
            case "/full" if not self.refusing:
                return web.Response(text=FULL_TEXT, content_type="text/html")
        return web.Response(status=403 if request.path == "/full" else 404)


@pytest.fixture
async def catalogues(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Catalogues]:
    serving = Catalogues()
    async with listening(app_of(serving.serve)) as serving.url:
        host = serving.url.removeprefix("http://")
        for name in ("ARXIV_BASE_URL", "OPENALEX_BASE_URL"):
            monkeypatch.setenv(name, serving.url)
        monkeypatch.setenv("FATHOM_FETCH_ALLOW", host)
        monkeypatch.setattr("fathom.tools.scholarly.arxiv.ArxivTool.seconds_between", 0.0)
        yield serving


@pytest.mark.usefixtures("home")
async def test_the_bibliography_names_the_authors_of_what_is_quoted(
    catalogues: Catalogues, tmp_path: Path, fathom_cli: FathomCLI
) -> None:
    result = await kept(tmp_path, QUERY, model="extractive", tools=["arxiv", "openalex"], fresh=True)
    assert result.status == "complete", result.reason
    report = Path(result.report or "").read_text(encoding="utf-8")
    assert "0.7 metres high at the northern shore" in report  # which only the full text says
    assert "[The tide of the methane lake Ontara, measured](https://doi.org/10.1234/jpl.42), Bo Fenwick, " in report
    args = ["export", result.run_id[:8], "--artifacts", str(tmp_path), "--to", "bib,ris", "--out", str(tmp_path)]
    done = fathom_cli(args)
    assert done.returncode == 0, done.stderr
    (bib,) = (path.read_text(encoding="utf-8") for path in tmp_path.glob("*.bib"))
    measured = ["{Bo Fenwick}", "{10.1234/jpl.42}", "{Journal of Planetary Lakes}", "{2024}", "{licence: cc-by}"]
    modelled = ["{Ada Brookfield and Jan van der Meer}", "{10.48550/arxiv.2301.00042}", "{2023}"]
    for value in (*measured, *modelled):
        assert f" = {value}," in bib, bib
    assert bib.count("@article") == 2
    (ris,) = (path.read_text(encoding="utf-8") for path in tmp_path.glob("*.ris"))
    assert "AU  - Jan van der Meer" in ris and "DO  - 10.1234/jpl.42" in ris
    done = fathom_cli(["verify", result.run_id[:8], "--artifacts", str(tmp_path), "--json"])
    assert json.loads(done.stdout)["problems"] == []


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize(
    ("full_text", "why"),
    [
        ("", "answered 403"),
        ("http://169.254.169.254/x", "is not on the public internet"),
        ("http://127.0.0.1:22/", "Port 22 is not allowed"),
    ],
)
async def test_a_full_text_that_cannot_be_read_is_said_and_the_abstract_used(
    catalogues: Catalogues, tmp_path: Path, full_text: str, why: str
) -> None:
    catalogues.refusing, catalogues.full_text = True, full_text
    result = await investigated(tmp_path, QUERY, model="extractive", tools=["openalex"], fresh=True)
    assert result.status == "complete", result.reason
    report = Path(result.report or "").read_text(encoding="utf-8")
    assert "The methane lake Ontara was measured for two years" in report
    assert why in report and "The catalogue's entry took over" in report
