"""The server over HTTP: a question is asked, followed and read."""

from __future__ import annotations

import httpx

from tests.server import Served


def test_a_question_is_asked_followed_and_read(served: Served) -> None:
    with httpx.Client(base_url=served.url, timeout=60) as client:
        asked = {"question": "What is a descriptor in Python?", "settings": {"profile": "quick"}}
        started = client.post("/api/v1/runs", json=asked, headers={"Idempotency-Key": "one"})
        assert started.status_code == 202, started.text
        again = client.post("/api/v1/runs", json=asked, headers={"Idempotency-Key": "one"})
        assert again.json()["id"] == started.json()["id"]
        with client.stream("GET", started.json()["links"]["events"]) as events:
            lines = list(events.iter_lines())
        assert next(line for line in lines if line.startswith("id: ")) == "id: 1"
        run = client.get(started.headers["Location"]).json()
        assert run["state"] == "complete" and run["plan"]["steps"][0]["status"] == "done"
