"""What a tool is. The class of a tool, or of a search vendor, declares all that the rest of Fathom must know of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Self

from fathom.config.environment import Environment
from fathom.config.settings import ResearchSettings
from fathom.models import Document, ToolCall, ToolOutput, ToolResult

if TYPE_CHECKING:
    from fathom.tools.context import RunContext


class Configurable(ABC):
    """Something that a run can use once its environment variables are set."""

    name: str  # of a tool snake_case, because it is part of artifact names
    # All of them must be set. One that ends in `_URL` holds a web address; one that holds a secret ends in `_KEY`,
    # `_TOKEN`, `_SECRET` or `_PASSWORD`, by which it is kept out of all output.
    variables: tuple[str, ...] = ()
    setup: str = ""  # how a user gets the values, for `fathom doctor`

    @classmethod
    def is_configured(cls, environment: Environment) -> bool:
        """Return whether all of its variables are set."""
        return all(environment.variables.get(name) for name in cls.variables)

    @classmethod
    def open(cls, run: RunContext) -> Self:
        """Make one for a run; nothing is read and no connection made before the first call.

        A tool is also opened where its variables are not set: a replay, or a run that is resumed elsewhere, asks it for
        its follow-ups.
        """
        return cls()


class Tool(Configurable):
    """A tool of the researcher."""

    description: str  # one or two sentences for the model: what it is good for and what its input is
    searches: bool = False  # takes a search query and brings new evidence; without a model, only such tools are called
    network: bool = False  # needs the network
    fetchable: bool = False  # `fetch` may read the pages that its results name
    by_vendors: bool = False  # works through the search vendors, so one that is configured is enough
    follows: str = ""  # the tool whose results make the pipeline call this one (`follow_up`), which no model is offered

    @classmethod
    def is_useful(cls, settings: ResearchSettings, query: str, configured: Collection[type[Tool]]) -> bool:
        """Return whether a run that does not choose its tools has a use for it beside those that are configured."""
        return True

    @abstractmethod
    async def run(self, tool_input: str) -> ToolOutput:
        """Serve one call.

        Raises:
            ToolError: the call failed; the class says whether trying again can help.
        """

    def follow_up(self, results: Sequence[ToolResult]) -> ToolCall | None:
        """Return a call that the results of one decision make necessary, such as reading pages a search left out."""
        return None

    async def survey(self, query: str, limit: int) -> list[Document]:
        """Return names and headings of local documents that come close to a query, for the planner."""
        return []
