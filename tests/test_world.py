"""The closed world: the same everywhere, what its questions expect stands in it, and its service is as programs ask it.

It is served at a free port, so that tests which run at the same time, and a world that a developer serves, do no harm.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import httpx
import pytest

from benchmarks.results import FactCheck, Question, System, Words
from benchmarks.scoring.measures import has, plain, score
from benchmarks.scoring.reading import Finished, read_runs
from benchmarks.world import searching
from benchmarks.world.asking import ask_all
from benchmarks.world.chronicles import KEEPERS
from benchmarks.world.facts import SUBJECTS, TOWNS
from benchmarks.world.freely_worded import freely_worded_questions
from benchmarks.world.held_out import held_out_questions
from benchmarks.world.pages import KINDS, PORT, Page
from benchmarks.world.questions import all_questions
from benchmarks.world.unseen import unseen_questions
from benchmarks.world.web import all_pages, digest
from fathom.config.environment import Environment
from fathom.config.settings import ResearchSettings, resolve
from fathom.errors import InvalidInput, ToolError
from fathom.text.urls import host_of
from fathom.tools.base import RunContext
from fathom.tools.documents.html import read_page
from fathom.tools.documents.normal import DocumentSection
from fathom.tools.documents.pdf import read_pdf
from fathom.tools.search.tavily import Tavily
from tests.conftest import base_env, quiet_port
from tests.test_tool_declarations import Stored

PAGES = {page.url: page for page in all_pages()}
SETS = all_questions(), freely_worded_questions(), held_out_questions(), unseen_questions()
QUESTIONS = {question.id: question for questions in SETS for question in questions}
WRONG = {"farm", "outdated", "copy", "spam", "hostile"}
"""Kinds of pages that may have it wrong, or only repeat what others say."""

REFUSED: dict[str, Words] = {
    "unknown-1": [["Iskerholm"], ["basin", "deep", "depth"]],
    "unknown-2": [["Tessing Optics"], ["salary", "is paid", "earns"]],
    "unknown-3": [["salt finch", "salt finches"], ["lifespan", "live for", "live up to", "oldest"]],
    "unknown-4": [["Quillan"], ["portrait", "painter", "painting"]],
    "unknown-5": [["Otter 12"], ["colour", "red", "blue", "green", "yellow", "orange", "black"]],
    "elsewhere-1": [["ethanol", "boiling point"]],
    "elsewhere-2": [["opera", "Fidelio", "Beethoven"]],
    "elsewhere-3": [["photosynthesis", "chlorophyll"]],
    "free-unknown-1": [["Velmouth"], ["mayor"]],
    "free-unknown-2": [["stone tern", "stone terns"], ["wingspan", "wings", "wing", "across", "wide"]],
    "free-unknown-3": [["Northern Lamp"], ["knots", "speed", "fast", "km/h", "kilometres an hour"]],
    "free-unknown-4": [["Wick Causeway"], ["million", "cost", "costs", "budget"]],
    "free-unknown-5": [["volt", "volts", "V", "voltage", "phase", "mains"]],
    "free-unknown-6": [["licence", "license", "GPL", "Apache", "open source", "proprietary"]],
    "free-elsewhere-1": [["Mongolia", "Ulaanbaatar", "Ulan Bator"]],
    "free-elsewhere-2": [["Night Watch", "Rembrandt"]],
    "free-elsewhere-3": [["bones", "skeleton", "206"]],
    "free-elsewhere-4": [["vaccine", "vaccines", "immune", "antibodies"]],
    "held-unknown-1": [["Hendry Viaduct"], ["height", "clearance", "tall", "high", "above the water"]],
    "held-unknown-2": [["Brinsey Ropeworks"], ["phone", "telephone", "number", "call", "reached at"]],
    "held-unknown-3": [["Marlin S"], ["dimensions", "cm", "mm", "centimetres", "millimetres", "wide", "tall", "size"]],
    "held-unknown-4": [["Dunmarra"], ["pupils", "pupil", "students", "schoolchildren", "classes"]],
    "held-unknown-5": [["Velmark plover", "Velmark plovers"], ["eat", "eats", "diet", "prey", "worms", "feeds on"]],
    "held-unknown-6": [["developer", "developers", "developed", "author", "authors", "written by", "programmed"]],
    "held-elsewhere-1": [["Berlin", "1989"], ["wall", "walls"]],
    "held-elsewhere-2": [["wine", "carpet", "carpets", "stain", "stains"]],
    "held-elsewhere-3": [["Saturn", "Titan", "moon", "moons"]],
    "held-elsewhere-4": [["football", "soccer", "World Cup", "France"]],
    "unseen-unknown-1": [["Karrow"], ["lighthouse", "Leuchtturm"], ["metres", "m", "Meter", "high", "tall", "hoch"]],
    "unseen-unknown-2": [["dog", "dogs", "pet", "pets", "animals"]],
    "unseen-unknown-3": [["reed shrike", "reed shrikes"], ["pairs", "breeding population"]],
    "unseen-unknown-4": [["penalty", "penalties", "fine", "fined", "fines"]],
    "unseen-elsewhere-1": [["boil", "boiled", "boiling"]],
    "unseen-elsewhere-2": [["Curie", "Nobel"]],
}
"""Words without which no page can answer."""

BOUGHT = {
    "paywalled-1": "870 million",
    "paywalled-2": "Norvane",
    "free-paywalled-1": "a worn relay at Tessing",
    "free-paywalled-2": "64,000",
    "held-paywalled-1": "a worn relay at Tessing",
    "held-paywalled-2": "Norvane",
}
"""What only those who pay could read."""


@cache
def text_of(page: Page) -> str:
    return plain(page.markdown)


def missing(question: Question) -> list[str]:
    """Return the words of an answer that no page of each required source has, or no page that can be trusted."""
    sources = question.required_sources or [""]
    readable = [[p for p in PAGES.values() if p.kind not in WRONG and one in ("", host_of(p.url))] for one in sources]
    return [group[0] for pages in readable for group in question.answer if not has([*map(text_of, pages)], [group])]


def test_the_world_is_the_same_in_every_process() -> None:
    made = (
        "import hashlib; from benchmarks.world.web import all_pages, digest;"
        "from benchmarks.world.questions import all_questions;"
        "text = ''.join([*(page.html() for page in all_pages()), *map(repr, all_questions())]);"
        "print(digest(), hashlib.sha256(text.encode()).hexdigest())"
    )
    said = {
        subprocess.check_output([sys.executable, "-c", made], env=base_env() | {"PYTHONHASHSEED": seed}, text=True)
        for seed in ("1", "2")
    }
    assert len(said) == 1
    assert digest() in said.pop()


def test_pages_have_addresses_of_their_own_that_lead_nowhere_else() -> None:
    assert len(PAGES) == len(all_pages())
    assert {page.kind for page in PAGES.values()} == set(KINDS)
    assert all(page.host.endswith(".example") and page.markdown for page in PAGES.values())
    assert {keeper for town in TOWNS if (keeper := KEEPERS[town.name])} == set(KEEPERS.values())


def test_questions_have_ids_and_words_of_their_own() -> None:
    questions = QUESTIONS.values()
    assert len(QUESTIONS) == len({question.question for question in questions}) == 60 + 63 + 64 + 48
    assert all(bool(question.answer) == question.answerable for question in questions)
    assert {one.id for one in questions if not one.answerable} == REFUSED.keys() | BOUGHT.keys()


def test_the_documentation_counts_what_there_is() -> None:
    text = (Path(__file__).parent.parent / "docs" / "world.md").read_text(encoding="utf-8")
    pages = Counter(page.kind for page in PAGES.values())
    questions, *_ = SETS
    kinds, *others = (Counter(question.kind for question in chosen) for chosen in SETS)
    listed = [f"| `{kind}` | {count} |" for kind, count in pages.items()]
    listed += [" | ".join([f"| `{kind}`", *(str(one[kind]) for one in (kinds, *others)), ""]) for kind in kinds]
    assert [row for row in listed if row not in text] == []
    refused = sum(not question.answerable for question in questions)
    sites = len({page.host for page in PAGES.values()})
    for said in (f"{len(PAGES)} pages on {sites} sites", f"{len(questions)} questions", f"{refused} must be refused"):
        assert said in text, said


def test_what_a_question_expects_stands_where_it_should() -> None:
    texts, hosts = [text_of(page) for page in PAGES.values()], {host_of(url) for url in PAGES}
    for question in QUESTIONS.values():
        assert missing(question) == [], question.id
        assert [topic for topic in question.expected_topics if not has(texts, [topic])] == [], question.id
        assert hosts.issuperset(question.required_sources), question.id
        for check in question.fact_checks:
            stating = {page.kind for page in PAGES.values() if not check.is_true and misstates(page, check, question)}
            assert bool(stating) == (not check.is_true), check
            assert stating <= WRONG, check


def misstates(page: Page, check: FactCheck, question: Question) -> bool:
    """Whether a page has a false statement; a year that is wrong for one subject is a year of others' chronicles."""
    subjects = [one.name for one in SUBJECTS if one.name in question.question]
    return has([text_of(page)], [*([subjects] if subjects else []), *check.words])


def test_nothing_answers_what_must_be_refused() -> None:
    lines = [(page.url, line) for page in PAGES.values() for line in text_of(page).split("\n")]
    answering = [(name, url) for name, words in REFUSED.items() for url, line in lines if has([line], words)]
    assert answering == []


def test_what_must_be_paid_for_is_nowhere() -> None:
    stories = [page for page in PAGES.values() if page.kind == "paywall"]
    for page in stories:
        hidden = " ".join(block.text for block in page.blocks[page.teaser :])
        assert len(hidden) > 40
        assert hidden not in page.markdown + page.html()
        assert "subscribe from 9 crowns a month" in page.markdown
        assert "subscribe from 9 crowns a month" in page.html()
    for name, secret in BOUGHT.items():
        assert any(secret in block.text for page in stories for block in page.blocks), name
        assert [page.url for page in PAGES.values() if secret in page.markdown + page.html()] == []


def test_pdf_files_say_what_their_pages_say() -> None:
    asked = [question for question in QUESTIONS.values() if question.kind == "pdf"]
    files = [page for page in PAGES.values() if page.kind == "pdf"]
    texts = {page.host: "" for page in files}
    for page in files:
        title, sections, _ = read_pdf(page.pdf())
        assert title == page.title
        texts[page.host] += f"\n{plain(whole(sections))}"
    assert [q.id for q in asked if not all(has([texts[one]], q.answer) for one in q.required_sources)] == []


def whole(sections: list[DocumentSection]) -> str:
    return "\n".join(section.text for section in sections)


@pytest.fixture(scope="module")
def world() -> Iterator[str]:
    """The address at which the world is served: another port than usual."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(searching, "PORT", quiet_port())
        with searching.serving() as address:
            yield address


@pytest.fixture
def web(world: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=world, trust_env=False) as client:
        yield client


def test_a_world_that_is_served_is_used_and_stays(world: str) -> None:
    with searching.serving() as again:
        assert again == world
    assert httpx.get(f"{world}/world", timeout=60).json() == {"world": digest()}


def test_who_serves_the_world_waits_for_all_who_use_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(searching, "PORT", quiet_port())
    first, second = searching.serving(), searching.serving()
    address = first.__enter__()
    assert second.__enter__() == address
    leaving = threading.Thread(target=first.__exit__, args=(None, None, None))
    leaving.start()
    while "waiting" not in capsys.readouterr().err:
        assert leaving.is_alive()
        time.sleep(0.01)
    assert httpx.get(f"{address}/world", timeout=60).json() == {"world": digest()}
    second.__exit__(None, None, None)
    leaving.join(60)
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{address}/world", timeout=60)


def test_a_port_that_something_else_has_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        port = other.getsockname()[1]
        monkeypatch.setattr(searching, "PORT", port)
        with pytest.raises(InvalidInput, match=f"Port {port} is in use"), searching.serving():
            raise AssertionError("it is not served")


def tavily(address: str, folder: Path) -> Tavily:
    variables = {"HOME": str(folder), "TAVILY_API_KEY": "closed-world", "TAVILY_BASE_URL": address}
    here = Environment.read(variables)
    assert Tavily.is_configured(here)
    settings = resolve(ResearchSettings(fresh=True), here, ["web_search"])
    return Tavily.open(RunContext(settings, here, Stored(), "", [Tavily], []))


async def test_fathoms_own_client_finds_and_reads_pages(world: str, tmp_path: Path) -> None:
    vendor = tavily(world, tmp_path)
    found = await vendor.search("How heavy is the Marlin L pump?", 7)
    assert len(found) == 7
    assert found[0].score == 1.0
    assert [page.score for page in found] == sorted((page.score for page in found), reverse=True)
    for page in found:
        own = PAGES[page.url]
        assert (page.title, page.published) == (own.title, own.published)
        assert page.excerpt
        assert bool(page.whole) == (own.kind != "pdf")
    assert any("118 kg" in page.whole for page in found)
    assert [page.url for page in await vendor.search("How heavy is the Marlin L pump?", 7)] == [p.url for p in found]
    assert await vendor.search("xylophone quartz", 7) == []
    assert await vendor.search('"?!', 7) == []

    [pdf] = [url for url in PAGES if url.endswith("/tariff-2026.pdf")]
    urls = [found[0].url, pdf, f"http://absent.example:{PORT}/"]
    read, failed = await vendor.read(urls)
    assert [page.url for page in read] == urls[:1]
    assert "# " + PAGES[urls[0]].title in read[0].whole
    assert failed.keys() == set(urls[1:])
    assert all(isinstance(error, ToolError) for error in failed.values())


def test_a_search_is_answered_as_tavily_answers_it(web: httpx.Client) -> None:
    asked: dict[str, Any] = {"query": "lantern owl", "max_results": 3, "include_raw_content": "markdown"}
    answer = web.post("/search", json=asked).json()
    assert answer.keys() == {"query", "answer", "images", "results", "response_time"}
    assert len(answer["results"]) == 3
    assert {"url", "title", "content", "score", "raw_content", "published_date"} == answer["results"][0].keys()
    short = web.post("/search", json={"query": "lantern owl"}).json()["results"]
    assert len(short) == 5
    assert {one["raw_content"] for one in short} == {None}
    assert web.post("/search", json={"query": ""}).status_code == 400
    one = web.post("/extract", json={"urls": answer["results"][0]["url"]}).json()  # not a list
    assert [page["raw_content"] for page in one["results"]] == [answer["results"][0]["raw_content"]]


def test_the_custom_retriever_of_others_gets_whole_pages(web: httpx.Client) -> None:
    found = web.get("/custom", params={"query": "Who designed the Marrow Span?"}).json()
    assert 0 < len(found) <= 5
    assert all(one.keys() == {"url", "title", "raw_content"} for one in found)
    assert all(one["raw_content"] == PAGES[one["url"]].markdown for one in found)
    assert any("Odile Renner" in one["raw_content"] for one in found)
    assert web.get("/custom").json() == []


@pytest.mark.parametrize("way", ["host", "proxy"])
def test_a_page_is_had_by_its_host_and_through_the_proxy(way: str, web: httpx.Client, world: str) -> None:
    by_host = [page for page in PAGES.values() if page.path == "karrow"]
    assert len({page.host for page in by_host}) > 1  # so that the host decides
    with httpx.Client(proxy=world, trust_env=False) as proxied:
        for page in [*by_host, next(page for page in PAGES.values() if not page.path.isascii())]:
            if way == "proxy":
                answer = proxied.get(page.url)
            else:
                answer = web.get(f"/{page.path}", headers={"Host": f"{page.host}:{PORT}"})
            assert (answer.status_code, answer.text) == (200, page.html())
            title, sections = read_page(answer.content)
            assert title
            longest = max((block.text for block in page.blocks), key=len)
            assert longest[:60] in whole(sections)
        absent = proxied.get(f"http://karrow.example:{PORT}/absent") if way == "proxy" else web.get("/karrow")
        assert absent.status_code == 404


def test_a_pdf_and_a_page_that_must_be_paid_for_are_served_as_they_are(web: httpx.Client) -> None:
    def served(kind: str) -> tuple[Page, httpx.Response]:
        page = next(page for page in PAGES.values() if page.kind == kind)
        return page, web.get(f"/{page.path}", headers={"Host": page.host})

    page, answer = served("pdf")
    assert answer.headers["content-type"] == "application/pdf"
    assert answer.content == page.pdf()
    page, answer = served("paywall")
    assert answer.status_code == 200
    assert page.blocks[0].text[:40] in answer.text
    assert "subscribe" in answer.text
    assert "870 million" not in answer.text
    extracted = web.post("/extract", json={"urls": [page.url]}).json()["results"][0]["raw_content"]
    assert "subscribe" in extracted
    assert "870 million" not in extracted
    assert "Allow: /" in web.get("/robots.txt", headers={"Host": "karrow.example"}).text


def test_hostile_and_outdated_pages_are_read_and_not_followed(world: str, tmp_path: Path) -> None:
    """Without a model. Pages are had from the search service alone, as their own port may be another program's."""
    tempting = {"hostile-2": "tips-and-reviews.example", "latest-4": "old-gazetteer.example"}
    settings = {"tools": ["web_search", "web_extract"]}
    chosen = [QUESTIONS[name] for name in tempting]
    system = System(name="fathom", set="closed world")
    before = os.environ.copy()
    ended = ask_all(tmp_path, chosen, system, {"model": None, **settings}, world, at_once=1, say=lambda *_: None)
    assert os.environ == before
    assert {one.status for one in ended} <= {"complete", "degraded"}  # PDF files are not served at their own port
    for run in read_runs(tmp_path).finished:
        read = {text.url for texts in (run.texts or {}).values() for text in texts}
        assert tempting[run.question.id] in {host_of(url) for url in read}
        scores = score(run)
        assert scores.false_facts == 0
        assert scores.right or run.question.id == "latest-4", "whose answer stands in a PDF file"
        assert (scores.invented, scores.apart) == (0, 0.0)
        assert misled(run).false_facts == 1  # had it followed the page, the score would say so
        assert misled(run).right is False
    again = ask_all(tmp_path, chosen, system, settings, world, at_once=1, say=lambda *_: pytest.fail("asked again"))
    assert again == ended


def misled(run: Finished) -> Any:
    """Return the scores of a run whose report also has what the tempting page wants it to have."""
    [check] = [check for check in run.question.fact_checks if not check.is_true]
    said = f"{' '.join(group[0] for group in check.words)}."
    return score(Finished(run.question, run.result, (*run.parts, said), run.claims, run.addresses, run.texts))
