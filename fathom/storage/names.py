"""Names of artifacts: pure functions of the plan and the call, so that the same run writes the same names.

Names are lowercase snake_case ASCII. A single `_` joins the words of a part and `__` joins parts; a part never holds
`__`, so the parts of a name can be told apart.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import unicodedata
from collections.abc import Iterable
from typing import Literal

# Longest parts, in bytes. With the separators a name stays below 200 bytes, under every file system's 255.
PLAN_BYTES = 60
STEP_ID_BYTES = 16
STEP_TITLE_BYTES = 60
TOOL_BYTES = 32

RESPONSES: Literal["warc.gz"] = (
    "warc.gz"  # extension of the file with the responses that a call received, a web archive
)

_NUMBERED = re.compile(r"([0-9]+)\.json")
_APOSTROPHES = str.maketrans("", "", "'’`")


def slug(text: str) -> str:
    """Return a text as lowercase snake_case ASCII, accents folded.

    A text without any ASCII letter or digit, such as Chinese, becomes `h` and 12 hex digits of its SHA-256.
    """
    folded = unicodedata.normalize("NFKD", text).casefold().translate(_APOSTROPHES)
    letters = "".join(char for char in folded if not unicodedata.combining(char))
    return re.sub(r"[^a-z0-9]+", "_", letters).strip("_") or f"h{_digest(text)[:12]}"


def folder_name(plan_title: str) -> str:
    """Return the name of the folder of the first run that uses a plan title; artifact names start with it too."""
    return cut_slug(plan_title, PLAN_BYTES)


def folder_names(plan_title: str, run_id: str) -> list[str]:
    """Return the possible names of a run's folder, in the order in which they are tried.

    They are `{plan_title}` for the first run that uses the title, else `{plan_title}__{first 8 of the run id}`, or with
    more digits where ids start with the same ones.
    """
    title, digits = folder_name(plan_title), run_id.replace("-", "")
    return [title, *(f"{title}__{digits[:length]}" for length in (8, 16, len(digits)))]


def artifact_name(  # noqa: PLR0917 - in the order in which they appear in the name
    plan_title: str, step_id: str | int, step_title: str, tool_name: str, n: int, ext: Literal["json", "txt", "warc.gz"]
) -> str:
    """Return the name of a file of a tool call, `{plan_title}__step{step_id}_{step_title}__{tool_name}.{ext}`.

    `n` counts the calls of the tool in the step, from 1; from 2 on the name ends in `__{n}`.
    """
    step = f"step{cut_slug(str(step_id), STEP_ID_BYTES)}_{cut_slug(step_title, STEP_TITLE_BYTES)}"
    number = f"__{n}" if n >= 2 else ""
    return f"{folder_name(plan_title)}__{step}__{cut_slug(tool_name, TOOL_BYTES)}{number}.{ext}"


def watch_key(name: str, report: str = "") -> str:
    """Return the key of a new watch, by which its runs are known; no other watch of its name has the same.

    `report`: the id of the run whose report it is made from, with which its first run is compared.
    """
    return f"{name}~{secrets.token_hex(4)}{report and f'~{report}'}"


def watch_name(key: str) -> str:
    """Return the name of the watch that has a key."""
    return key.partition("~")[0]


def watch_report(key: str) -> str:
    """Return the id of the run whose report a watch was made from; empty if it was made from none."""
    return key.split("~")[2] if key.count("~") > 1 else ""


def cut_slug(text: str, limit: int) -> str:
    """Return the slug of a text; a slug that is too long is cut and ends in a hash of the whole text."""
    whole = slug(text)
    if len(whole) <= limit:
        return whole
    ending = f"_{_digest(text)[:10]}"
    return whole[: limit - len(ending)].rstrip("_") + ending


def _digest(text: str) -> str:
    # Text out of broken JSON may hold lone surrogates, which strict UTF-8 refuses.
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def numbers_in(names: Iterable[str]) -> list[int]:
    """Return the numbers of the files that are named by one, such as `0012.json`, in order."""
    return sorted(int(found[1]) for name in names if (found := _NUMBERED.fullmatch(name)))
