"""The one place where the environment is read, secrets included."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from importlib.metadata import distribution
from pathlib import Path
from urllib.parse import unquote, urlsplit
from urllib.request import url2pathname

from fathom.config.settings_file import SECRET, SettingsFile, find_file
from fathom.errors import InvalidInput

SHORTEST_SECRET = 8  # characters; anything shorter would be found in ordinary words
# A key or password of a local server, such as `not-needed` or `postgres`, is also an ordinary word.
_PLACEHOLDER = re.compile(r"[a-z]+(?:[-_ ][a-z]+)*")
_LONGEST_PLACEHOLDER = 15
_USER = re.compile(r"://([^\s/?#]+)@")
CONTACT = "FATHOM_CONTACT"
WARM_SECONDS = "FATHOM_WARM_SECONDS"
S3_ENCRYPTION = "FATHOM_S3_ENCRYPTION"
_E_MAIL = re.compile(r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,24}")


@dataclass(frozen=True)
class Environment:
    """The environment of the process. Secrets are kept out of its repr."""

    cache: Path
    state: Path
    fetch_allow: tuple[str, ...]
    log: str  # how log lines are written: `json`, or empty
    variables: Mapping[str, str]
    is_given: bool  # whether the values were passed in, not read from the process

    @classmethod
    def read(cls, variables: Mapping[str, str] | None = None) -> Environment:
        """Read the environment, by default the process's."""
        env = dict(os.environ if variables is None else variables)
        home = Path(env.get("HOME") or Path.home())
        return cls(
            cache=Path(env.get("FATHOM_CACHE") or Path(env.get("XDG_CACHE_HOME") or home / ".cache") / "fathom"),
            state=Path(env.get("XDG_STATE_HOME") or home / ".local/state") / "fathom",
            fetch_allow=tuple(env.get("FATHOM_FETCH_ALLOW", "").replace(",", " ").split()),
            log=env.get("FATHOM_LOG", "").strip().lower(),
            variables=env,
            is_given=variables is not None,
        )

    @property
    def file(self) -> SettingsFile | None:
        """The settings file that applies to the process.

        Raises:
            InvalidInput: it cannot be read.
        """
        return None if self.is_given else find_file(self.variables)

    @property
    def model(self) -> str | None:
        """The model of every role, if neither a run nor its template has one.

        Raises:
            InvalidInput: the file of settings cannot be read.
        """
        return self.variables.get("FATHOM_MODEL") or self._of_file("model") or None

    @property
    def artifacts(self) -> str:
        """The root of the artifact store, if the run has none.

        Raises:
            InvalidInput: the file of settings cannot be read.
        """
        return self.variables.get("FATHOM_ARTIFACTS") or self._of_file("artifacts") or "artifacts"

    def _of_file(self, name: str) -> str:
        """Return a text from the settings file; empty if there is none."""
        if not (file := self.file):
            return ""
        if not isinstance(value := file.values.get(name, ""), str):
            raise InvalidInput(f"{file}: {name} must be text.", next_step=f'write it in quotes: {name} = "..."')
        return file.at(value) if value and name == "artifacts" else value

    @property
    def secrets(self) -> frozenset[str]:
        """Keys, tokens and passwords, including those in the URLs of proxies and databases."""
        found = {value for name, value in self.variables.items() if SECRET.search(name)}
        for user in (user for value in self.variables.values() for user in _USER.findall(value)):
            found |= {user, unquote(user), unquote(user.partition(":")[2])}
        # The path of a file of credentials is not a secret.
        found.discard(self.variables.get("GOOGLE_APPLICATION_CREDENTIALS", ""))
        return frozenset(value for value in found if len(value) >= SHORTEST_SECRET and not _is_placeholder(value))

    @property
    def scope(self) -> str:
        """The scope that no run of this process may leave; empty for none."""
        return self.variables.get("FATHOM_SCOPE", "").strip()

    @property
    def server(self) -> str:
        """The address of the Fathom server that a client asks."""
        return self.variables.get("FATHOM_URL") or "http://127.0.0.1:8700"

    @property
    def token(self) -> str | None:
        """The API token by which a client signs in."""
        return self.variables.get("FATHOM_TOKEN") or None

    @property
    def warm_seconds(self) -> int:
        """Seconds for which a process that has everything imported waits for the next question; 0: there is none.

        Raises:
            InvalidInput: it is not a whole number.
        """
        if not (text := self.variables.get(WARM_SECONDS, "").strip() or "300").isdecimal() or len(text) > 6:
            raise InvalidInput(
                f"{WARM_SECONDS} is {text!r}, which is not a number of seconds.", next_step="for example 300, or 0"
            )
        return int(text)

    @property
    def editor(self) -> str:
        """The command of the user's text editor."""
        return self.variables.get("VISUAL") or self.variables.get("EDITOR") or "vi"

    @property
    def traces(self) -> str:
        """How traces are sent: `otlp`, or empty if they are not sent, or the problem, in words."""
        get = self.variables.get
        endpoint = get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") or get("OTEL_EXPORTER_OTLP_ENDPOINT")
        exporter = get("OTEL_TRACES_EXPORTER") or ("otlp" if endpoint else "none")
        if exporter == "none" or get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
            return ""
        if exporter != "otlp":
            return f"OTEL_TRACES_EXPORTER is {exporter!r}; Fathom knows otlp and none."
        protocol = get("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL") or get("OTEL_EXPORTER_OTLP_PROTOCOL") or "http/protobuf"
        if protocol != "http/protobuf":
            how = "set OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=http/protobuf and the endpoint's port for HTTP, usually 4318"
            return f"Fathom does not send them by the protocol {protocol!r}: {how}."
        return "otlp"

    @property
    def traced_to(self) -> str:
        """The address to which traces are sent."""
        get = self.variables.get
        own = get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") or get("OTEL_EXPORTER_OTLP_ENDPOINT")
        return own or "http://localhost:4318"

    @property
    def contact(self) -> str:
        """The contact e-mail address that is sent to public services; empty if it is not set.

        Raises:
            InvalidInput: it is not an e-mail address.
        """
        address = self.variables.get(CONTACT, "").strip().removeprefix("mailto:")
        if address and not _E_MAIL.fullmatch(address):  # it becomes part of a header
            raise InvalidInput(
                f"{CONTACT} is not an e-mail address.", next_step=f"for example {CONTACT}=you@example.org"
            )
        return address

    @property
    def s3_encryption(self) -> dict[str, str]:
        """How S3 is asked to encrypt each file that is stored, in the words of its API; empty: as the bucket says.

        Raises:
            InvalidInput: S3 has no such encryption.
        """
        if not (text := self.variables.get(S3_ENCRYPTION, "").strip()):
            return {}
        kind, _, key = text.partition(",")
        if kind not in ("AES256", "aws:kms", "aws:kms:dsse") or (key and kind == "AES256"):
            raise InvalidInput(
                f"{S3_ENCRYPTION} is {text!r}, which S3 does not know.",
                next_step="set it to AES256, aws:kms, or aws:kms,KEY with the id or ARN of your key",
            )
        return {"ServerSideEncryption": kind, **({"SSEKMSKeyId": key.strip()} if key else {})}

    def cap(self, name: str) -> Decimal | None:
        """Return a cap in US dollars from a variable; None if it is not set.

        Raises:
            InvalidInput: the value is not an amount.
        """
        if not (text := self.variables.get(name, "").strip()):
            return None
        try:
            amount = Decimal(text.removeprefix("$"))
        except InvalidOperation:
            amount = Decimal("NaN")
        if not amount.is_finite() or amount <= 0:
            raise InvalidInput(f"{name} is {text!r}, which is not an amount.", next_step=f"for example {name}=20")
        return amount

    @staticmethod
    def replace(variables: Mapping[str, str]) -> None:
        """Give this process, a fork that works for another one, that one's environment."""
        os.environ.clear()
        os.environ.update(variables)

    @staticmethod
    def use_servers(file: str) -> None:
        """Have this process use a file of MCP servers: only the environment names one, never a parameter of a run."""
        os.environ["FATHOM_MCP"] = str(Path(file).expanduser().absolute())

    def quieten_litellm(self) -> None:
        """Keep litellm, when it is imported, from fetching tables, loading `.env` files and printing."""
        os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
        os.environ.setdefault("LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS", "True")
        os.environ.setdefault("LITELLM_MODE", "PRODUCTION")
        os.environ.setdefault("LITELLM_LOG", "ERROR")

    def __repr__(self) -> str:
        return f"Environment({sorted(name for name in self.variables if name.startswith('FATHOM_'))})"


def artifact_root(root: str | None = None) -> str:
    """Return the artifact root, by default the environment's: an absolute path or an fsspec URL."""
    chosen = root or Environment.read().artifacts
    return chosen if "://" in chosen else str(Path(chosen).expanduser().resolve())


def _is_placeholder(value: str) -> bool:
    return len(value) <= _LONGEST_PLACEHOLDER and _PLACEHOLDER.fullmatch(value) is not None


def installing(*extras: str) -> str:
    """Return the command that adds extras to this installation; a checkout, as `make install` uses it, stays one."""
    pip, names = f"{sys.executable} -m pip install", ",".join(extras)
    made = json.loads(distribution("fathom-research").read_text("direct_url.json") or "{}")
    if made.get("dir_info", {}).get("editable"):
        return f'{pip} -e "{url2pathname(urlsplit(made["url"]).path)}[{names}]"'
    return f'{pip} "fathom-research[{names}]"'
