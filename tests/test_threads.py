"""Conversations: a question and its follow-ups are listed, shown and deleted as one, as far as a reader may see."""

from __future__ import annotations

import re
from pathlib import Path

import httpx

from fathom.service.caller import AccessRole, Caller, TokenLimits
from fathom.service.options import Options
from fathom.service.run_list import RunFilter
from fathom.service.runs import RunService
from fathom.service.tokens import Tokens
from fathom.storage.store import ArtifactStore
from tests.conftest import PrefectServer, quiet_port
from tests.server import Served, served_with

HTML = {"Accept": "text/html"}
LINE = re.compile(r'<li>\s*<a href="/runs/([0-9a-f-]{36})".*?</li>', re.DOTALL)


async def asked(client: httpx.AsyncClient, question: str, after: str = "", *, shared: bool = False) -> str:
    """Ask a question, or follow up on the run `after`, and return the id of the run when it has ended."""
    address = f"/api/v1/runs/{after}/ask" if after else "/api/v1/runs"
    given = {} if after else {"settings": {"profile": "quick"}, "shared": shared}
    answer = await client.post(address, json={"question": question, **given})
    assert answer.status_code == 202, answer.text
    run_id = str(answer.json()["id"])
    async with client.stream("GET", f"/api/v1/runs/{run_id}/events") as events:
        async for _ in events.aiter_lines():
            pass
    return run_id


async def test_a_question_and_its_follow_ups_are_one_conversation(served: Served) -> None:
    async with httpx.AsyncClient(base_url=served.url, timeout=120, headers=HTML) as client:
        first = await asked(client, "How does Python determine the metaclass of a class?")
        second = await asked(client, "What is the metaclass given, and what namespace?", first)
        given = {"question": "What is a metaclass keyword argument?", "settings": {"profile": "quick"}}
        other = str((await client.post("/api/v1/runs", json=given)).json()["id"])
        assert (await client.delete(f"/api/v1/runs/{other}")).status_code == 204  # its question is enough
        last = await asked(client, "Which does a data descriptor override?", first)

        listed = {found[1]: found[0] for found in LINE.finditer((await client.get("/runs?text=metaclass")).text)}
        assert list(listed) == [last, other]
        assert "determine the metaclass" in listed[last] and "3 questions, the last: " in listed[last]
        assert "questions" not in listed[other]

        service, caller, wanted = (
            RunService(served.options),
            Caller("local", AccessRole.admin),
            RunFilter(words="metaclass"),
        )
        page = await service.listing.threads(caller, wanted, 1)
        rest = await service.listing.threads(caller, wanted, 1, page.next or "")
        assert [[run.id for run in thread.runs] for thread in [*page.threads, *rest.threads]] == [
            [last, second, first],
            [other],
        ]
        assert rest.next is None

        folder = (await service.open(caller, first)).finished().folder
        report = Path(served.options.artifacts, folder, "report.json")
        report.rename(report.with_suffix(".away"))  # the answers of earlier questions are shown without their reports
        newest = (await client.get(f"/runs/{last}")).text
        report.with_suffix(".away").rename(report)
        before = re.findall(r'<summary dir="auto">(.*?)</summary>\s*<div class="box">(.*?)</div>', newest, re.DOTALL)
        assert [question for question, _ in before] == [
            "How does Python determine the metaclass of a class?",
            "What is the metaclass given, and what namespace?",
        ]
        assert all("nswer" in box for _, box in before)
        assert "question 3 of 3" in newest and "Later in this conversation" not in newest
        oldest = (await client.get(f"/runs/{first}")).text
        assert [found[1] for found in LINE.finditer(oldest)] == [second, last]

        asks = (await client.get(f"/runs/{last}/remove")).text
        going = re.findall(r'name="run" value="(.*?)"', asks)
        assert going == [found[1] for found in LINE.finditer(asks)] == [last, second, first]
        await client.post(f"/runs/{last}/remove", data={"run": going})
        assert {(await client.get(f"/runs/{one}")).status_code for one in going} == {404}
        assert [found[1] for found in LINE.finditer((await client.get("/runs?text=metaclass")).text)] == [other]


async def test_a_conversation_has_only_the_questions_that_the_reader_may_see(
    prefect_server: PrefectServer, tmp_path: Path
) -> None:
    tokens = Tokens(ArtifactStore(str(tmp_path)))
    ann, bob = [(await tokens.add(name, AccessRole.asker, TokenLimits()))[1] for name in ("ann", "bob")]
    with served_with(Options(str(tmp_path), port=quiet_port(), sign_in=True)) as server:

        def browser(token: str) -> httpx.AsyncClient:
            return httpx.AsyncClient(
                base_url=server.url, timeout=120, headers={**HTML, "Authorization": f"Bearer {token}"}
            )

        async with browser(ann) as hers, browser(bob) as his:
            first = await asked(hers, "How does Python look up an attribute?", shared=True)
            hidden = await asked(his, "And on a class?", first)
            assert (await his.patch(f"/api/v1/runs/{hidden}", json={"shared": False})).is_success
            for one, newest in ((hers, first), (his, hidden)):
                assert [found[1] for found in LINE.finditer((await one.get("/runs")).text)] == [newest]
            assert any("Followed by" in page.read_text() for page in tmp_path.glob("**/report.html"))
            shown = ("", "/remove", "/report", "/report.html", "/export/html")
            data = ("/report?form=html", "/artifacts/report.html", "/follow-ups")
            for address in (*(f"/runs/{first}{one}" for one in shown), *(f"/api/v1/runs/{first}{one}" for one in data)):
                seen = await hers.get(address)
                assert seen.is_success and "And on a class?" not in seen.text and hidden not in seen.text, address
            both = (await his.get(f"/runs/{hidden}/remove")).text
            assert 'name="run"' not in both  # of the two, only one is his
            refused = await his.post(f"/runs/{hidden}/remove", data={"run": [first]})
            assert refused.status_code == 403 and (await hers.get(f"/runs/{first}")).status_code == 200
