"""The settings file, which changes defaults: `fathom.toml`, or the table `[tool.fathom]` in `pyproject.toml`.

The file in the current folder applies, or else `fathom.toml` in the user's configuration folder. It must hold no
secrets, since it is shared and stored with the project.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from fathom.config.inputs import read_text
from fathom.errors import InvalidInput

NAME = "fathom.toml"
SECRET = re.compile(r"(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|AUTH_STRING|CREDENTIALS?)$", re.IGNORECASE)
"""Names of variables that hold a secret."""
_PROJECT = "pyproject.toml"
_MOST_BYTES = 256 * 1024
_HELP = "docs/settings.md describes the file"
_VARIABLES = {
    "sk-ant-": "ANTHROPIC_API_KEY",
    "sk-": "OPENAI_API_KEY",
    "tvly-": "TAVILY_API_KEY",
    "AIza": "GEMINI_API_KEY",
    "hf_": "HF_TOKEN",
    "fathom_": "FATHOM_TOKEN",
    "s3://": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",  # a secret in the place of a user name
}
"""The variable of a secret, by the prefix of the secret."""


@dataclass(frozen=True)
class SettingsFile:
    """The contents of a settings file: `values` are nested as in the file, and not checked yet."""

    path: Path
    table: str  # the table that holds the settings; empty if they are the whole file
    values: Mapping[str, Any]

    def at(self, path: str) -> str:
        """Return a path in the file, resolved against the file's folder; addresses and empty paths stay as they are."""
        return str(self.path.parent / Path(path).expanduser()) if path.strip() and "://" not in path else path

    def __str__(self) -> str:
        return f"{self.path} [{self.table}]" if self.table else str(self.path)


def find_file(variables: Mapping[str, str]) -> SettingsFile | None:
    """Return the settings file that applies: from the current folder, or else from the user's configuration folder.

    Raises:
        InvalidInput: it cannot be read, or holds a secret.
    """
    try:
        here = Path.cwd()
    except OSError:  # it was removed
        here = user_folder(variables)
    for path, table in ((here / NAME, ""), (here / _PROJECT, "tool.fathom"), (user_folder(variables) / NAME, "")):
        try:
            changed = path.stat().st_mtime_ns if path.is_file() else None
        except OSError:
            continue
        if changed is not None and (found := _read(path, table, changed)):
            return found
    return None


def user_folder(variables: Mapping[str, str]) -> Path:
    """Return the platform's folder for the user's configuration of Fathom."""
    home = Path(variables.get("HOME") or Path.home())
    if sys.platform == "win32":
        return Path(variables.get("APPDATA") or home / "AppData/Roaming") / "fathom"
    if sys.platform == "darwin":
        return home / "Library/Application Support/fathom"
    return Path(variables.get("XDG_CONFIG_HOME") or home / ".config") / "fathom"


@lru_cache(maxsize=8)
def _read(path: Path, table: str, _changed: int) -> SettingsFile | None:
    """Return the settings in a file; None if it does not have the table."""
    import tomllib

    try:
        values: Any = tomllib.loads(read_text(path, _MOST_BYTES))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        how = 'write texts in quotes, such as model = "openai/gpt-5-mini"'
        raise InvalidInput(f"{path} is not TOML: {error}.", next_step=how) from None
    for part in table.split(".") if table else ():
        values = values.get(part) if isinstance(values, dict) else None
    if values is None:
        return None
    if not isinstance(values, dict):
        raise InvalidInput(f"{path}: {table} is not a table.", next_step=f"begin a table with [{table}]")
    found = SettingsFile(path, table, values)
    for key, value in _leaves(found.values):
        _check_public(found, key, value)
    return found


def _leaves(values: Mapping[str, Any], *above: str) -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, dict):
            yield from _leaves(value, *above, name)
        for item in value if isinstance(value, list) else [value]:
            yield ".".join((*above, name)), item


def _check_public(file: SettingsFile, key: str, value: object) -> None:
    from fathom.config.secrets import without_credentials

    if isinstance(value, dict):
        return
    is_named = SECRET.search(key) is not None
    if not is_named and (not isinstance(value, str) or without_credentials(value) == value):
        return
    known = next((name for start, name in _VARIABLES.items() if isinstance(value, str) and value.startswith(start)), "")
    named = re.sub(r"\W+", "_", key).upper() if is_named and SECRET.sub("", key).strip("._-") not in ("", "api") else ""
    named = re.sub(r"^([A-Z]+)_KEY$", r"\1_API_KEY", named)
    variable = known or named or "the variable of its service, such as OPENAI_API_KEY or TAVILY_API_KEY,"
    raise InvalidInput(
        f"{file}: {key} holds a secret, which has no place in a file of settings.",
        next_step=f"delete it there, and set {variable} in the environment",
    )
