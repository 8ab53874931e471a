"""Another research tool beside Fathom, over the same scripted providers: `python -m benchmarks.peers`.

gpt-researcher is installed from PyPI, once, into an environment of its own in the cache folder of the user (1.4 GB).
Both tools answer the same question in turns, each time in a fresh process; the first run of each is not counted. They
search about as often, in pages of the same size. The scripted model answers each tool in the form that it asks for, so
this compares what the tools cost, not how good their reports are. gpt-researcher finds pages by its `custom` retriever
and chooses passages by embeddings; Fathom asks the model to note what pages say, checks every claim and stores every
step.
Not compared: deep-research of dzhng, which is no package that can be installed.

    overhead        seconds from the first request to the end of the process without those in which a request was under
                    way: what the tool adds to the critical path of the providers
    first call      seconds from the start of the process to the first request
    processor       seconds of the process, and of the Prefect server that Fathom needs (it idles beside the other tool)
    memory          peak of the process, in MB
    prompt, embedded    tokens sent to the model, and to be embedded
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import venv
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from benchmarks.cluster import Cluster
from benchmarks.pipeline import DELAYS, QUERY, ROOT, Observed, observe
from benchmarks.timed import free_port

PEER, VERSION = "gpt-researcher", "0.15.1"
_STEPS, _BREADTH = 3, 2
_QUERIES = 11  # beside its first search and that for the question itself
_ASK = """
import asyncio, sys
from gpt_researcher import GPTResearcher

async def main():
    researcher = GPTResearcher(query=sys.argv[1], report_type="research_report", verbose=False)
    await researcher.conduct_research()
    print(await researcher.write_report())

asyncio.run(main())
"""
_AGENT = {"server": "Science Agent", "agent_role_prompt": "You write objective reports about natural science."}
_REPORT = "# Tides\n\n" + "Tides follow the moon, and the height of the tide depends on the depth of the sea. " * 80
_SAYS = {
    "agent_role_prompt": json.dumps(_AGENT),
    r"\d search queries": json.dumps([f"tides of methane seas, part {number}" for number in range(1, _QUERIES + 1)]),
    "in a detailed report": _REPORT,
}
"""What the model says to the prompts of gpt-researcher; Fathom's have none of these words."""


def python_of_peer(folder: Path) -> Path:
    """Return the interpreter of an environment that has the other tool; make the environment if it is not whole.

    Raises:
        SystemExit: the tool could not be installed.
    """
    python, whole = folder / "bin" / "python", folder / "whole"
    if not whole.exists():
        print(f"installing {PEER} {VERSION} into {folder}", file=sys.stderr, flush=True)
        venv.create(folder, clear=True, with_pip=True)
        command = [str(python), "-m", "pip", "install", "-qq", f"{PEER}=={VERSION}"]
        if subprocess.run(command, check=False, stdout=sys.stderr).returncode:
            raise SystemExit(f"{PEER} {VERSION} could not be installed")
        whole.touch()
    return python


def ask_fathom(cluster: Cluster, folder: Path) -> Observed:
    """Have Fathom answer the question."""
    command = [sys.executable, "-m", "fathom", "research", QUERY, "--model", "openai/stub", "--quiet", "--fresh"]
    command += ["--depth", "2", "--breadth", str(_BREADTH), "--artifacts", str(folder)]
    return observe(command, cluster.env(), ROOT, cluster.stub_log)


def ask_peer(python: Path) -> Callable[[Cluster, Path], Observed]:
    """Return what has the other tool answer the question."""
    [tokenizers] = python.parent.parent.glob("lib/*/site-packages/litellm/litellm_core_utils/tokenizers")

    def ask(cluster: Cluster, folder: Path) -> Observed:
        given = cluster.env(
            RETRIEVER="custom",
            RETRIEVER_ENDPOINT=f"{cluster.env()['TAVILY_BASE_URL']}/pages",
            EMBEDDING="custom:stub",
            **dict.fromkeys(("FAST_LLM", "SMART_LLM", "STRATEGIC_LLM"), "openai:stub"),
            MAX_ITERATIONS=str(_QUERIES),
            TIKTOKEN_CACHE_DIR=str(tokenizers),  # else it downloads what litellm has with it
        )
        given.pop("PYTHONPATH")
        return observe([str(python), "-c", _ASK, QUERY], given, folder, cluster.stub_log)

    return ask


def measure(cluster: Cluster, ask: Callable[[Cluster, Path], Observed]) -> dict[str, float]:
    """Ask once, and return the numbers of it."""
    cluster.stub_log.write_text("")
    server = cluster.cpu("server-")
    with tempfile.TemporaryDirectory(dir=cluster.home) as folder:
        seen = ask(cluster, Path(folder))
    kinds = Counter(request["kind"] for request in seen.requests)
    tokens: Counter[str] = Counter()
    for request in seen.requests:
        tokens[request["kind"]] += request["usage"].get("prompt_tokens", 0)
    return {
        "wall, s": seen.wall,
        "critical path, s": seen.critical_path,
        "overhead, s": seen.overhead,
        "first call, s": seen.first_call,
        "processor, s": seen.cpu,
        "processor of the server, s": cluster.cpu("server-") - server,
        "memory, MB": seen.memory_mb,
        "requests to the model": kinds["llm"],
        "searches": kinds["search"] + kinds["pages"],
        "requests for pages": kinds["extract"],
        "requests for embeddings": kinds["embeddings"],
        "prompt tokens": tokens["llm"],
        "embedded tokens": tokens["embeddings"],
    }


def main() -> None:
    """Ask both tools in turns and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--page-bytes", type=int, default=20_000)
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    default = cache / "fathom-benchmarks" / f"{PEER}-{VERSION}"
    parser.add_argument("--environment", type=Path, default=default, help="folder in which the other tool is installed")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends what was started, as Ctrl-C does
    tools = {f"{PEER} {VERSION}": ask_peer(python_of_peer(options.environment)), "Fathom": ask_fathom}
    stub = [*DELAYS, "--page-bytes", str(options.page_bytes), "--says", json.dumps(_SAYS)]
    stub += ["--steps", str(_STEPS), "--breadth", str(_BREADTH)]
    runs: dict[str, list[dict[str, float]]] = {name: [] for name in tools}
    with tempfile.TemporaryDirectory(prefix="fathom-peers-") as folder:
        cluster = Cluster(Path(folder), free_port(), postgres=False, s3=False, stub=stub)
        try:
            for number in range(options.runs + 1):
                for name, ask in tools.items():
                    numbers = measure(cluster, ask)
                    if number:
                        runs[name].append(numbers)
        finally:
            cluster.stop()
    print(f"load: {', '.join(f'{load:.1f}' for load in os.getloadavg())} on {os.cpu_count()} cores")
    print(f"{options.runs} runs each, median and range; pages of {options.page_bytes:,} bytes\n")
    print(f"| | {' | '.join(runs)} |\n|---|{'--:|' * len(runs)}")
    for row in next(iter(runs.values()))[0]:
        print(f"| {row} | {' | '.join(_told([numbers[row] for numbers in several]) for several in runs.values())} |")


def _told(values: list[float]) -> str:
    digits = 0 if all(map(float.is_integer, map(float, values))) else 1
    low, middle, high = (f"{of(values):,.{digits}f}" for of in (min, statistics.median, max))
    return middle if low == high else f"{middle} ({low} to {high})"


if __name__ == "__main__":
    main()
