"""What a scripted role reads out of its prompt: the question, the step, the ids, the facts."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tests.stubs.forms import noted
from tests.stubs.pages import FACT, NOISE

__all__ = ["Prompt"]

_SOURCE_ID = re.compile(r"\bS[0-9a-f]{6,64}\b")
_EXAMPLE = "[S1a2b3c]"  # of the prompts
_CITED_FACT = re.compile(rf"({FACT.pattern})\s*\[(S[0-9a-f]{{6,64}})\]")
_STEP = re.compile(r"^- ((?:R\d+_)?\d+)(?: \(\w+\))?: ", re.MULTILINE)
_FILLER = re.compile(
    r"what|when|where|which|with|that|this|does|have|from|about|into|than|their|there|would|could|should|will|between"
    r"|over|under|more|most|some|your|and|the|how|why|who|are|was|were|did|can|for"
)
_MARKS = {
    "ambiguous": "clarifier",
    "plan_title": "planner",
    "calls": "researcher",
    "is_useful": "compressor",
    "sufficiency_score": "critic",
    "sections": "outline",
    "opinions": "judge",
    "confidence": "answer",
    "corrections": "correction",
}


@dataclass(frozen=True)
class Prompt:
    """A request to a model, in any protocol."""

    body: dict[str, Any]

    @cached_property
    def schema(self) -> dict[str, Any]:
        """The JSON schema asked for: in the request, as any protocol has it, or in a line of the instructions."""
        if found := _declared(self.body):
            return found
        for line in reversed(self._instructions.splitlines()):
            try:
                schema = json.loads(line) if line.startswith("{") else None
            except ValueError:
                continue
            if isinstance(schema, dict) and "properties" in schema:
                return schema
        return {}

    @cached_property
    def role(self) -> str:
        """The role whose answer is asked for; `section` for prose, the schema's title for a role without a script."""
        if not self.schema:
            return "section"
        known = (role for mark, role in _MARKS.items() if mark in self.schema.get("properties", {}))
        return next(known, str(self.schema.get("title", "unknown")).removesuffix("Answer").lower())

    @cached_property
    def system(self) -> str:
        """What the system messages say, and the instructions that have a field of their own."""
        return "\n".join(text for text in (_text(self.body.get("system")), self._said("system")) if text)

    @cached_property
    def user(self) -> str:
        """What the user messages say, without the example of an id when they have the instructions too."""
        return self._said("user") if self.system else self._said("user").replace(_EXAMPLE, "[]")

    @cached_property
    def topic(self) -> str:
        """The question's telling words, four at most."""
        words = re.findall(r"[^\W_]+", self.after("Question", "The question behind the research").lower())
        telling = list(dict.fromkeys(w for w in words if len(w) > 2 and not _FILLER.fullmatch(w)))
        return " ".join(telling[:4]) or "the subject"

    def after(self, *labels: str) -> str:
        """Return what follows the first of the labels that occurs, on its line or the next; else the first line."""
        for label in labels:
            if found := re.search(rf"^{re.escape(label)}:[ \t]*\n?(.+)$", self.user, re.MULTILINE):
                return found[1]
        return self.user.strip().partition("\n")[0]

    def bullets(self, label: str) -> list[str]:
        """Return the list that follows a label."""
        found = re.search(rf"^{re.escape(label)}:\n((?:- .+(?:\n|\Z))+)", self.user, re.MULTILINE)
        return [line.removeprefix("- ") for line in found[1].splitlines()] if found else []

    @cached_property
    def round(self) -> int:
        """The round that is over, 1 when the prompt does not say."""
        found = re.search(r"\bround (\d+)", self.user)
        return int(found[1]) if found else 1

    @cached_property
    def step_ids(self) -> list[str]:
        """Ids of the steps of the plan."""
        return list(dict.fromkeys(_STEP.findall(self.user)))

    @cached_property
    def tools(self) -> list[str]:
        """The tools that the schema allows."""
        found = re.search(r'"tool": \{[^{}]*"enum": (\[[^\]]*\])', json.dumps(self.schema))
        return list(json.loads(found[1])) if found else ["web_search"]

    @cached_property
    def sources(self) -> dict[str, list[str]]:
        """What may be noted of each source in the user messages, in the order of the prompt: facts, then bullets."""
        found: dict[str, list[str]] = {}
        marks = list(_SOURCE_ID.finditer(self.user))
        for mark, following in zip(marks, [*marks[1:], None], strict=True):
            text = self.user[mark.end() : following.start() if following else None]
            found.setdefault(mark[0], []).extend([*FACT.findall(text), *noted(text)])
        return found

    @cached_property
    def claims(self) -> dict[int, tuple[str, list[str]]]:
        """The claims that a judge is shown by number: each sentence, and the numbers of its sources' passages."""
        shown, _, asked = self.user.partition("\nClaims:\n")
        passages: dict[str, list[str]] = {}
        for source in re.finditer(r'^<source id="(S[0-9a-f]+)".*?^</source>', shown, re.MULTILINE | re.DOTALL):
            passages[source[1]] = re.findall(r"^\[(\d+)\] ", source[0], re.MULTILINE)
        found = re.findall(r"^(\d+)\. (?:\(\w+\) )?(.+)\n   (cites .+)$", asked, re.MULTILINE)
        return {
            int(number): (sentence, [n for one in _SOURCE_ID.findall(cites) for n in passages.get(one, [])])
            for number, sentence, cites in found
        }

    @cached_property
    def passages(self) -> dict[int, str]:
        """The passages that a judge is shown, by number."""
        found = re.split(r"^\[(\d+)\] ", self.user.partition("\nClaims:\n")[0], flags=re.MULTILINE)
        return dict(zip(map(int, found[1::2]), found[2::2], strict=True))

    @cached_property
    def objections(self) -> list[int]:
        """The numbers of the objections that a writer is shown."""
        return [int(number) for number in re.findall(r"^Objection (\d+): ", self.user, re.MULTILINE)]

    @property
    def noise(self) -> bool:
        """Whether the prompt shows a page of noise."""
        return NOISE in self.user

    @cached_property
    def cited_facts(self) -> list[tuple[str, str]]:
        """Facts with the id behind them: first the facts of the notes that no user message repeats."""
        facts = dict.fromkeys(_CITED_FACT.findall(self._said("assistant") or self.user))
        return sorted(facts, key=lambda fact: fact[0] in self.user)

    @cached_property
    def cited_ids(self) -> list[str]:
        """Every source id of the messages after the instructions."""
        return list(dict.fromkeys(_SOURCE_ID.findall(self._said("assistant") + self.user)))

    @property
    def _instructions(self) -> str:
        """The system messages; without one, the first message, of which they are then a part."""
        return self.system or next((_text(message.get("content")) for message in self.body.get("messages", [])), "")

    def _said(self, role: str) -> str:
        messages = (message for message in self.body.get("messages", []) if message.get("role") == role)
        return "\n".join(_text(message.get("content")) for message in messages)


def _declared(body: dict[str, Any]) -> dict[str, Any]:
    """Return the schema that a request declares: OpenAI's, one of a tool, Ollama's."""
    tool: dict[str, Any] = next(iter(body.get("tools") or []), {})
    wanted = (
        ((body.get("response_format") or {}).get("json_schema") or {}).get("schema"),
        (tool.get("function") or {}).get("parameters"),
        tool.get("input_schema"),
        body.get("format"),
    )
    return next((dict(schema) for schema in wanted if isinstance(schema, dict) and schema), {})


def _text(content: Any) -> str:
    """Return what a message says, in one text or in parts."""
    if isinstance(content, list):
        return "\n".join(str(part.get("text", "")) for part in content)
    return content or ""
