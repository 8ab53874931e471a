"""The TypeScript client: its types follow the API, it is built, and it asks a real server."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.server import Served

CLIENT = ROOT / "clients" / "typescript"
SCRIPT = """
import { Fathom, FathomError } from "./dist/index.js";

const url = process.argv[2];
let cuts = 0;
let posts = 0;
// Loses the first answer to a POST, and cuts the first three streams.
const broken = async (input, init) => {
  const response = await fetch(input, init);
  if ((input.method ?? "GET") === "POST" && posts++ === 0) throw new TypeError("lost");
  if (!String(input.url ?? input).endsWith("/events") || cuts++ > 2) return response;
  const reader = response.body.getReader();
  let left = 600;
  const body = new ReadableStream({
    async pull(stream) {
      const { done, value } = await reader.read();
      if (done) return stream.close();
      stream.enqueue(value.slice(0, left));
      left -= value.length;
      if (left <= 0) stream.error(new TypeError("cut"));
    },
    cancel: () => reader.cancel(),
  });
  return new Response(body, response);
};
const fathom = new Fathom({ url, fetch: broken });
const ids = [];
const run = await fathom.research("What is a descriptor in Python?", {
  settings: { profile: "quick" },
  onEvent: (event) => { if (event.id) ids.push(event.id); },
});
const asked = { posts, cuts };
const failures = [];
const nobody = new Fathom({ url: "http://127.0.0.1:9", retries: 0 });
const missing = { params: { path: { run_id: "00000000-0000-0000-0000-000000000000" } } };
for (const failing of [
  () => fathom.run("nothing"),
  () => fathom.api.GET("/api/v1/runs/{run_id}", missing),
  () => fathom.start(""),
  () => nobody.run("1"),
  async () => { for await (const event of fathom.events(run.id, { signal: AbortSignal.abort("enough") })) event; },
]) {
  try {
    await failing();
    failures.push("none");
  } catch (error) {
    failures.push(error instanceof FathomError ? [error.status, error.code] : String(error));
  }
}
console.log(JSON.stringify({ ids, ...asked, failures, state: run.state, report: run.report }));
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The client, installed and built in a folder of its own."""
    if not (shutil.which("node") and shutil.which("npm")):
        pytest.skip("node or npm is not installed")
    root = tmp_path_factory.mktemp("checkout")
    place = root / "clients" / "typescript"
    shutil.copytree(CLIENT, place, ignore=shutil.ignore_patterns("node_modules", "dist", "schema.ts"))
    shutil.copytree(ROOT / "docs", root / "docs", ignore=lambda _, names: set(names) - {"openapi.json"})
    install = ["npm", "ci", "--prefer-offline", "--no-audit", "--no-fund", "--ignore-scripts", "--fetch-retries=0"]
    installed = subprocess.run(install, cwd=place, capture_output=True, text=True, check=False, timeout=120)
    if installed.returncode:
        unreachable = ("ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED", "ETIMEDOUT", "ENOTCACHED", "E403", "E404")
        if any(code in installed.stderr for code in unreachable):
            pytest.skip(f"the packages cannot be fetched: {installed.stderr.strip().splitlines()[0]}")
        pytest.fail(installed.stderr)
    _run(place, "npm", "run", "--silent", "prepare")
    return place


def test_it_asks_follows_and_reads(built: Path, served: Served) -> None:
    (built / "ask.mjs").write_text(SCRIPT, encoding="utf-8")
    told = json.loads(_run(built, "node", "ask.mjs", served.url))
    assert told["state"] == "complete" and told["report"].startswith("# ")
    assert told["ids"] == [*range(1, len(told["ids"]) + 1)] and len(told["ids"]) > 10
    assert told["posts"] == 2 and told["cuts"] > 3  # the answer that was lost, and the streams that were cut
    assert told["failures"] == [[404, "E5001"], [404, "E5001"], [422, "E4001"], [None, None], "enough"]
    failed = {**os.environ, "FATHOM_URL": f"{served.url}/elsewhere"}
    example = subprocess.run(["node", "examples/research.mjs"], cwd=built, env=failed, capture_output=True, check=False)
    assert example.returncode == 1 and b"E7005" in example.stderr and not example.stdout


def test_its_lock_names_no_place() -> None:
    lock = json.loads((CLIENT / "package-lock.json").read_text(encoding="utf-8"))
    packages = [package for name, package in lock["packages"].items() if name]
    assert packages and all("resolved" not in package and package["integrity"] for package in packages)


def _run(place: Path, *command: str) -> str:
    done = subprocess.run(command, cwd=place, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
