"""Every parser of strangers' bytes: of damaged ones it makes a result in proportion to them, or refuses them in words.

A new parser is one more line of `PARSERS`. Services are asked over real HTTP.
"""

from __future__ import annotations

import asyncio
import functools
import io
import json
import re
import tempfile
import threading
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic_core import to_json

from fathom.batch.questions import Format, read_questions
from fathom.config.environment import Environment
from fathom.config.secrets import Scrubber
from fathom.config.settings import ResearchSettings
from fathom.config.settings_file import find_file
from fathom.config.templates import read_template
from fathom.errors import InvalidInput, ModelError, ToolError, ToolRejected
from fathom.llm.dialects import dialect_of
from fathom.llm.openai_chat import OpenAIChat
from fathom.llm.windows import ollama_window, served_window
from fathom.models import Plan, PlanStep
from fathom.report.foreign.reading import report_of
from fathom.report.html import unsafe
from fathom.report.markdown import render_markdown
from fathom.report.prose import draft_html
from fathom.run.checklist import as_yaml, from_yaml
from fathom.storage.bundles import unpack
from fathom.storage.cache import TimedCache
from fathom.storage.store import ArtifactStore
from fathom.tools import http
from fathom.tools.documents.index import lay_out
from fathom.tools.documents.mail import read_mailbox
from fathom.tools.documents.readers import UnreadableFile, read_document
from fathom.tools.fetch.allow import AllowList
from fathom.tools.fetch.archive import Archive
from fathom.tools.fetch.client import Client, FetchedAnswer, GuardedBackend, Robots
from fathom.tools.fetch.web import read_page
from fathom.tools.mcp.configuration import read_servers
from fathom.tools.mcp.servers import McpServers
from tests import test_lookups, test_search_vendors
from tests.conftest import ROOT
from tests.fact_cases import FACT_CASES
from tests.lookup_cases import CASES as LOOKUPS
from tests.test_bundles import _pack
from tests.test_documents import HTML, MARKDOWN, REST, pdf, word
from tests.test_file_kinds import (
    LETTER,
    LOG,
    SEMICOLONS,
    SRT,
    TALK,
    VTT,
    book,
    message,
    ods,
    open_document,
    slides,
    workbook,
    zipped,
)
from tests.test_foreign_reports import CHAT, GPT_RESEARCHER
from tests.test_fuzz import mutated
from tests.test_templates import OWN
from tests.vendors import CASES as VENDORS
from tests.vendors import LIMIT, QUERY

# -- what they get -----------------------------------------------------------------------------------------------------

JUNK = [
    b"\0", b"\xff\xfe", b"\xef\xbb\xbf", b"\xed\xa0\x80", b'\\ud800', b"9" * 5_000, b"-1", b"1e999", b"NaN", b"null",
    b"2026-13-45", b"0000-00-00", b"[" * 5_000, b'{"a":' * 5_000, b"<a>" * 5_000, b"(" * 5_000, b"> " * 2_000,
    b"*a" * 5_000, b"&a;", b"&#99999999999;", b'" x="', b"\r", b"\n\n", b"http://[", b"://", b"<!--", b"]]>", b"'''",
    b"!!python/object:a {}", b"&a [*a]", b"\xe2\x80\xae", b"A" * 50_000, b" " * 50_000,
]  # fmt: skip


@st.composite
def damaged(draw: st.DrawFn, valid: Sequence[bytes]) -> bytes:
    """Valid bytes of one of these, with a few stretches replaced, repeated or taken out; or something else."""
    data = draw(st.sampled_from(valid))
    if data.startswith(b"{") and data.endswith(b"}") and draw(st.booleans()):  # JSON of another shape
        return json.dumps(draw(mutated(json.loads(data)))).encode()
    if data.startswith(b"PK") and draw(st.booleans()):  # what stands inside, where a parser comes to it
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
        name = draw(st.sampled_from(sorted(members)))
        return zipped({**members, name: draw(damaged([members[name]]))})
    for _ in range(draw(st.integers(0, 3))):
        at, length = draw(st.integers(0, len(data))), draw(st.integers(0, 200))
        stretch = data[at : at + length]
        stands = st.sampled_from([b"", *JUNK, stretch * 2, stretch * 100]) | st.binary(max_size=40)
        data = data[:at] + draw(stands) + data[at + length :]
    return data


def unpacked(data: bytes) -> int:
    """Return the bytes that a zip says it unpacks to, or the most that it can; 0 if it is none."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return min(1032 * len(data), sum(member.file_size for member in archive.infolist()))  # deflate's limit
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        return 0


def files() -> Mapping[str, bytes]:
    """Return a small file of each kind."""
    mail = message("Price", "It is 129 euros.", at="Thu, 05 Mar 2026 10:00:00 +0100", html="<p>It is 129 euros.</p>")
    mail.add_attachment("a;b\n1;2", filename="a.csv")
    return {
        "a.pdf": pdf("Some text."),
        "a.docx": word("Tides", ("Normal", "Text."), table=[["a", "b"], ["1", "2"]]),
        "a.html": HTML,
        "a.md": MARKDOWN,
        "a.rst": REST.encode(),
        "a.xlsx": workbook({"S": [["a", "b"], ["c", 1]]}, {"B": "0%"}, ["A1:B1"]),
        "a.ods": ods(),
        "a.odt": open_document("text", LETTER),
        "a.odp": open_document("presentation", TALK),
        "a.pptx": slides(),
        "a.epub": book(),
        "a.eml": mail.as_bytes(),
        "a.mbox": b"From a Thu Mar  5 10:00:00 2026\n" + mail.as_bytes() + b"\n\nFrom b\nSubject: x\n\ny\n",
        "a.ipynb": b'{"cells": [{"cell_type": "markdown", "source": ["# A"]}], "metadata": {}}',
        "a.vtt": VTT.encode(),
        "a.srt": SRT.encode(),
        "a.csv": SEMICOLONS.encode(),
        "a.json": b'{"ships": [{"name": "Nordlys", "tonnes": 4120.5, "sunk": null}]}',
        "a.yaml": b"ships:\n  - &a {name: Nordlys, launched: 1951-04-02}\n  - *a\n",
        "a.toml": OWN.encode(),
        "a.txt": REST.encode(),
        "a": LOG,
        "a.png": b"\x89PNG\r\n\x1a\n",
        "a.exe": b"MZ",
    }


# -- services ----------------------------------------------------------------------------------------------------------


class Said(NamedTuple):
    """What the server answers."""

    body: Callable[[str, bytes], bytes]  # by the path and what was sent
    kind: str


class Stranger(ThreadingHTTPServer):
    """A server that answers whatever it is told to."""

    said = Said(lambda _path, _sent: b"", "application/json")

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.server_port}"


class Answering(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Stranger

    def do_GET(self) -> None:
        said, sent = self.server.said, self.rfile.read(int(self.headers.get("Content-Length", 0)))
        body = said.body(self.path, sent)
        self.send_response(200)
        self.send_header("Content-Type", said.kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET

    def log_message(self, *_: object) -> None:
        pass


@functools.cache
def stranger() -> Stranger:
    """Start the server, which lives as long as the tests."""
    server = Stranger(("127.0.0.1", 0), Answering)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def saying(data: bytes, kind: str = "application/json") -> Stranger:
    server = stranger()
    server.said = Said(lambda _path, _sent: data, kind)
    return server


NOWHERE = Path("/nonexistent")
SOURCES = [*LOOKUPS, *FACT_CASES]


def vendor(data: bytes) -> object:
    """Ask one of the search vendors."""
    server = test_search_vendors.Server()
    server.url = saying(data).url
    case = VENDORS[len(data) % len(VENDORS)]
    return asyncio.run(test_search_vendors.opened(case, server, NOWHERE).search(QUERY, LIMIT))


def lookup(data: bytes) -> object:
    """Ask one of the public sources."""
    service = test_lookups.Service()
    service.url = saying(data).url
    case = SOURCES[len(data) % len(SOURCES)]
    return asyncio.run(test_lookups.opened(case, service, NOWHERE).run(case.query))


def model(data: bytes, kind: str) -> object:
    """Ask a model over the protocol of OpenAI."""
    here = Environment.read({"OPENAI_BASE_URL": f"{saying(data, kind).url}/v1", "OPENAI_API_KEY": "none"})

    async def ask() -> object:
        client = OpenAIChat(here, Scrubber(frozenset()))
        pieces = client.send("openai/m", dialect_of("openai/m", own_server=True), {"messages": []}, 100)
        try:
            return [piece async for piece in pieces]
        finally:
            await client.aclose()

    return asyncio.run(ask())


def windows(data: bytes) -> object:
    async def ask() -> object:
        async with httpx.AsyncClient(base_url=saying(data).url) as client:
            return [await served_window(client, "m"), await ollama_window(client, "m")]

    return asyncio.run(ask())


def robots(data: bytes) -> object:
    url = httpx.URL(f"{saying(data, 'text/plain').url}/private/page?a=b")
    allowed = AllowList.parse([f"127.0.0.1:{url.port}"])
    return asyncio.run(Robots(Client(GuardedBackend(allowed)), allowed, TimedCache(None, 0)).check(url))


def archive(data: bytes) -> object:
    address = saying(data).url
    allowed = AllowList.parse([address.removeprefix("http://")])
    copies = Archive(Client(GuardedBackend(allowed)), allowed, address)
    return asyncio.run(copies.copy_of(httpx.URL("https://tides.example.org/page")))


def mcp(data: bytes, *, listed: bool) -> object:
    """Use a server of MCP that answers so when it is asked for its tools, or when its tool is called."""
    began = {
        "protocolVersion": "2025-06-18",
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "a", "version": "1"},
    }

    def body(_path: str, sent: bytes) -> bytes:
        asked = json.loads(sent or b"{}")
        number = json.dumps(asked.get("id")).encode()
        if asked.get("method") == "initialize":
            return to_json({"jsonrpc": "2.0", "id": asked["id"], "result": began})
        if asked.get("method") == "tools/list" and not listed:
            return to_json({"jsonrpc": "2.0", "id": asked["id"], "result": {"tools": TOOLS}})
        return data.replace(b'"@id"', number)

    async def ask(here: Environment) -> object:
        servers = McpServers(here)
        try:
            offers = await servers.offers()
            return offers if listed else [await tool.run("depth") for tool in servers.tools(offers)]
        finally:
            await servers.aclose()

    server = saying(b"")
    server.said = Said(body, "application/json")
    here = {"url": f"{server.url}/mcp", "allow": ["search"], "seconds": 5}
    with tempfile.TemporaryDirectory() as folder:
        (path := Path(folder) / "servers.json").write_text(json.dumps({"mcpServers": {"a": here}}))
        return asyncio.run(ask(Environment.read({"HOME": "/", "FATHOM_MCP": str(path)})))


def imported(path: Path) -> object:
    return asyncio.run(unpack(ArtifactStore(f"{path.parent}/store"), path, unsafe))


def bundle() -> bytes:
    target = io.BytesIO()
    asyncio.run(_pack(ArtifactStore(str(ROOT / "tests/stored_run")), "water", target))
    return target.getvalue()


def servers(path: Path) -> object:
    return read_servers(Environment.read({"HOME": "/", "FATHOM_MCP": str(path)}))


def text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


FILES = files()
KINDS = ("", "text/html", "text/plain; charset=utf-16", "application/pdf", "text/xml; charset=hex", "text/markdown")
QUESTIONS: Mapping[Format, bytes] = {
    "txt": b"How deep is the sound?\n# no\n",
    "csv": b'question,max_usd,docs,"role_models"\n"How deep?",0.5,a;b,"{""planner"": {""model"": ""m""}}"\n',
    "jsonl": b'{"question": "How deep?", "budget": {"max_usd": 1}}\n"How wide?"\n',
}
SAID = {"content": "a", "reasoning": "b", "tool_calls": [{"function": {"arguments": "{}"}}]}
USED = {"prompt_tokens": 3, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 1}}
CHUNK = to_json({"choices": [{"delta": SAID, "message": SAID, "finish_reason": "stop"}], "usage": USED, "model": "m"})
WINDOWS = {"data": [{"id": "m", "aliases": ["n"], "meta": {"n_ctx": 9}}], "model_info": {"a.context_length": 9}}
COPIES = {"archived_snapshots": {"closest": {"available": True, "status": "200", "url": "http://a/b"}}}
SCHEMA = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}
CONTENT = [{"type": "text", "text": "Deep."}, {"type": "resource", "resource": {"uri": "a://b", "text": '{"a": [1]}'}}]


def rpc(**result: object) -> bytes:
    return to_json({"jsonrpc": "2.0", "id": "@id", "result": result})


TOOLS = [{"name": "search", "description": "Finds.", "inputSchema": SCHEMA}]
STREAM = b": hello\n\ndata: " + CHUNK + b"\n\ndata: [DONE]\n\n"
PLAN = Plan(
    plan_title="Tides on Mars", steps=[PlanStep(step_id=1, title="Oceans", description="Find whether Mars has oceans.")]
)


class Parser(NamedTuple):
    """One parser: what reads, what it can read, and how it refuses."""

    read: Callable[[bytes], object]
    valid: Sequence[bytes]
    refusals: tuple[type[Exception], ...] = ()
    examples: int = 30


def document(name: str, valid: Sequence[bytes], examples: int = 30) -> Parser:
    return Parser(lambda data: lay_out(read_document(name, data)), valid, (UnreadableFile,), examples)


def page(kind: str) -> Parser:
    def read(data: bytes) -> object:
        return read_page(FetchedAnswer(httpx.URL("https://a.example"), 200, {"content-type": kind}, data))

    return Parser(read, [*FILES.values()], (ToolRejected,), 8)


def questions(kind: Format) -> Parser:
    return Parser(lambda data: read_questions(text(data), kind, ResearchSettings()), [QUESTIONS[kind]], (InvalidInput,))


def file(name: str, read: Callable[[Path], object], valid: bytes) -> Parser:
    def in_file(data: bytes) -> object:
        with tempfile.TemporaryDirectory() as folder:
            (path := Path(folder) / name).write_bytes(data)
            return read(path)

    return Parser(in_file, [valid], (InvalidInput,))


PARSERS: dict[str, Parser] = {
    **{f"document {name}": document(name, [FILES[name]]) for name in FILES},
    "document of another kind": document("a.txt", [*FILES.values()], 100),
    **{f"page as {kind or 'nothing'}": page(kind) for kind in KINDS},
    "robots.txt": Parser(robots, [b"User-agent: *\nDisallow: /private\nAllow: /*.html$\n"], (ToolRejected,)),
    "web archive": Parser(archive, [to_json(COPIES)]),
    "search vendor": Parser(vendor, [to_json(case.answer) for case in VENDORS], (ToolError,), 100),
    "public source": Parser(
        lookup, [body.encode() for case in SOURCES for body in case.answers.values()], (ToolError,), 50
    ),
    "model, whole": Parser(lambda data: model(data, "application/json"), [CHUNK], (ModelError,)),
    "model, streamed": Parser(lambda data: model(data, "text/event-stream"), [STREAM], (ModelError,)),
    "list of models": Parser(windows, [to_json(WINDOWS)]),
    "tools of an MCP server": Parser(lambda data: mcp(data, listed=True), [rpc(tools=TOOLS)], (ToolError,)),
    "answer of an MCP server": Parser(
        lambda data: mcp(data, listed=False), [rpc(content=CONTENT, structuredContent={"a": 1})], (ToolError,)
    ),
    **{f"questions as {kind}": questions(kind) for kind in QUESTIONS},
    "plan": Parser(lambda data: from_yaml(text(data), PLAN), [as_yaml(PLAN).encode()], (InvalidInput,)),
    "template": Parser(lambda data: read_template(text(data)), [OWN.encode()], (InvalidInput,)),
    "settings file": file(
        "a.toml", lambda path: find_file({"FATHOM_CONFIG": str(path)}), b"max_results = 3\n[budget]\nmax_usd = 1.5\n"
    ),
    "servers file": file("a.json", servers, b'{"mcpServers": {"a": {"command": "x", "args": ["y"], "allow": ["z"]}}}'),
    "bundle": file("a.zip", imported, bundle()),
    "report of another system": Parser(
        lambda data: render_markdown(report_of(text(data), "report").report), [GPT_RESEARCHER.encode(), CHAT.encode()]
    ),
    "prose of a model": Parser(lambda data: draft_html(text(data)), [MARKDOWN, GPT_RESEARCHER.encode()]),
}


@pytest.fixture(autouse=True, scope="module")
def impatient() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(http, "FIRST_PAUSE", 0.0)
        patch.setattr("fathom.tools.fetch.archive.APART", 0.0)
        yield


@pytest.mark.parametrize("name", PARSERS)
def test_damaged_bytes_of_strangers_are_read_or_refused(name: str) -> None:
    parser = PARSERS[name]

    @settings(max_examples=parser.examples, deadline=None, suppress_health_check=[*HealthCheck], database=None)
    @given(damaged(parser.valid))
    def read(data: bytes) -> None:
        try:
            made = parser.read(data)
        except parser.refusals as error:
            assert re.search(r"\w", str(error))
            made = str(error)
        bound = 100 * len(data) + 3 * unpacked(data) + 500_000
        assert len(to_json(made, fallback=str)) <= bound  # it fails for lone surrogates

    read()


@settings(max_examples=40, deadline=None, suppress_health_check=[*HealthCheck], database=None)
@given(damaged([FILES["a.eml"]]))
def test_a_damaged_message_costs_a_mailbox_no_other(data: bytes) -> None:
    begins = b"\n\nFrom a Thu Mar  5 10:00:00 2026\n"
    others = [message("Rain", f"It rained {n} mm.", at=f"Fri, 0{n} May 2026 10:00:00 +0000").as_bytes() for n in (1, 8)]
    read = read_mailbox(begins.lstrip() + begins.join([others[0], data, others[1]]), lambda _name, _data: None)
    assert {"It rained 1 mm.", "It rained 8 mm."} <= {text for one in read.sections for text in one.text.split("\n")}
