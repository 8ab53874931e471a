"""The file that names the MCP servers, in the form that other programs use (`mcpServers`), checked where it enters.

Only the environment names the file: no question, page, flow parameter or form can make Fathom start a program or call
an address.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Literal, Self
from urllib.parse import parse_qsl, urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from fathom.config.environment import SHORTEST_SECRET, Environment
from fathom.errors import InvalidInput
from fathom.storage.names import cut_slug
from fathom.tools.pages import is_page

PREFIX = "mcp_"  # prefix of the names of all tools of MCP servers, and of no other tools
LONGEST_NAME = 48  # bytes of a tool's name
_VARIABLE = re.compile(r"\$\{([^{}]*)\}")
_HARMLESS = ("accept", "content-type", "user-agent")  # headers that hold no secret
# Variables that a program needs to start on any system; nothing else of the environment is passed on.
_PASSED_ON = ("HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "USER")


class McpServer(BaseModel):
    """One server of the file: a program that is started, or an address."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, hide_input_in_errors=True)

    type: Literal["stdio", "http", "streamable-http"] | None = None  # for files of other programs
    command: str = ""
    args: list[str] = []
    env: dict[str, str] = Field({}, repr=False)
    url: str = Field("", repr=False)
    headers: dict[str, str] = Field({}, repr=False)
    allow: list[str] = []  # names of the tools that may be called
    seconds: float = Field(30, gt=0, le=3_600)  # seconds for one call, and for the start
    max_bytes: int = Field(2_000_000, ge=1_000, le=100_000_000)  # bytes that it may send for one call
    calls: int = Field(100, ge=1)  # most calls of one run

    @field_validator("url")
    @classmethod
    def _address(cls, url: str) -> str:
        if url and not is_page(url):
            raise ValueError("is not a web address")
        return url

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if bool(self.command) == bool(self.url):
            raise ValueError("needs either a command or a url")
        if (self.type == "stdio") != bool(self.command) and self.type:
            raise ValueError(f"has a {'command' if self.command else 'url'}, which does not fit type {self.type!r}")
        if stray := [name for name in (("args", "env") if self.url else ("headers",)) if getattr(self, name)]:
            raise ValueError(f"has a {'command' if self.command else 'url'}, so {' and '.join(stray)} have no effect")
        return self


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    servers: dict[str, McpServer] = Field(alias="mcpServers")

    @field_validator("servers")
    @classmethod
    def _names(cls, servers: dict[str, McpServer]) -> dict[str, McpServer]:
        for name in servers:
            if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,39}", name):
                raise ValueError(f"{name[:60]!r} is not a valid name: use up to 40 letters, digits, '-', '_' and '.'")
        return servers


class McpTools:
    """The servers of a file, by name, and the tools that it allows."""

    def __init__(self, file: str, servers: Mapping[str, McpServer], variables: Mapping[str, str]) -> None:
        self._file = file
        self.servers = servers
        self.inherited = {name: variables[name] for name in _PASSED_ON if name in variables}
        """The variables that a program gets besides the ones in the file."""
        self._variables = variables

    @cached_property
    def names(self) -> dict[str, tuple[str, str]]:
        """The server and the tool for which each name of a Fathom tool stands.

        Raises:
            InvalidInput: one name stands for two tools.
        """
        found: dict[str, tuple[str, str]] = {}
        for server, definition in self.servers.items():
            for tool in definition.allow:
                name = tool_name(server, tool)
                if found.setdefault(name, (server, tool)) != (server, tool):
                    (other, its), rename = found[name], "rename one of the servers"
                    message = f"{server}: {tool} and {other}: {its} would both be the tool {name}."
                    raise InvalidInput(f"{self._file}: {message}", next_step=rename)
        return found

    @property
    def secrets(self) -> frozenset[str]:
        """Keys and passwords in the file, or taken from the environment for it."""
        found: set[str] = set()
        for name, server in self.servers.items():
            found |= Environment.read(self.filled(name, "env")).secrets
            words = [word for argument in server.args for word in argument.split("=", 1)]
            named = {**dict(parse_qsl(urlsplit(server.url).query)), **dict(pairwise(words))}  # such as `--api-key KEY`
            found |= Environment.read({**named, "": server.url}).secrets  # with a user's password in the address
            for header, value in self.filled(name, "headers").items():
                if header.lower() not in _HARMLESS:
                    found |= {value, value.split(" ")[-1]}
        return frozenset(value for value in found if len(value) >= SHORTEST_SECRET)

    def filled(self, server: str, field: Literal["env", "headers"]) -> dict[str, str]:
        """Return the variables or headers of a server, each `${NAME}` in them replaced from the environment.

        Raises:
            InvalidInput: a variable is not set.
        """

        def value(found: re.Match[str]) -> str:
            if not (own := self._variables.get(found[1])):
                message = f"{self._file}: {server}.{field}: the variable {found[1]!r} is not set."
                raise InvalidInput(message, next_step=f"set {found[1]}, or take ${{{found[1]}}} out of the file")
            return own

        given: dict[str, str] = getattr(self.servers[server], field)
        return {name: _VARIABLE.sub(value, text) for name, text in given.items()}


def tool_name(server: str, tool: str) -> str:
    """Return the name of the Fathom tool that a server's tool becomes."""
    return PREFIX + cut_slug(f"{server}_{tool}", LONGEST_NAME - len(PREFIX))


def read_servers(environment: Environment) -> McpTools:
    """Read the file that `FATHOM_MCP` names; without one there are no servers.

    Raises:
        InvalidInput: it cannot be used; the message names the file, the server and the field, and no value.
    """
    if not (file := environment.variables.get("FATHOM_MCP", "").strip()):
        return McpTools("", {}, environment.variables)
    try:
        servers = _File.model_validate_json(Path(file).expanduser().read_bytes()).servers
    except OSError as error:
        how = "set FATHOM_MCP or --mcp to a JSON file of mcpServers"
        raise InvalidInput(f"{file} cannot be read: {error.strerror}.", next_step=how) from None
    except ValidationError as error:
        raise InvalidInput(f"{file}: {'; '.join(_problems(error))}.", next_step="docs/mcp.md shows the form") from None
    tools = McpTools(file, servers, environment.variables)
    _check(tools)
    return tools


def _check(tools: McpTools) -> None:
    for name in tools.servers:
        tools.filled(name, "env")
        tools.filled(name, "headers")
    _ = tools.names


def _problems(error: ValidationError) -> Iterator[str]:
    for problem in error.errors(include_input=False, include_url=False)[:3]:
        place = problem["loc"][1:] or problem["loc"]  # without `mcpServers`
        said = problem["msg"].removeprefix("Value error, ")
        if problem["type"] == "extra_forbidden":
            said = "this field does not exist"
        yield f"{'.'.join(map(str, place))}: {said}" if place else said
