"""The knobs of the stubs, and the script of their faults. All may be changed while the server runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

__all__ = ["Settings"]


@dataclass
class Settings:
    """How the stubs answer.

    Attributes:
        llm_delay, search_delay: seconds before an answer; extract takes as long as search.
        held: role, or kind of request, that is not answered until this is set back.
        answers: how many different requests are answered; every other that arrives then never is. None: all are.
        token_seconds: seconds before each token of a `slow` answer.
        one_at_a_time: the model's server answers one request at a time, and lets the others wait without a word.
        page_bytes: size of a page's raw text.
        forms: each page also has a passage in one of the forms of `forms`, which the compressor notes.
        results: most results of a search; 0: as many as asked for.
        without_raw: share of search results, chosen by URL, whose `raw_content` is null.
        noise: regular expression; matching queries find pages without a fact, which the compressor calls useless.
        fail_extract: regular expression; matching URLs land in `failed_results`.
        ask_back: what the model asks about a question, each with its default.
        steps, breadth: steps of a plan; queries of a step and calls of a first decision.
        suggests: whether the steps of a plan have queries; else the researcher is asked for the first calls.
        judged: what the planner says of the question, `kind` and `width`; empty: nothing, as older models do.
        score, follow_ups: the critic's verdict of round 1; later rounds score 9 and want nothing more. A score of 0 is
            what fits: 5 where it wants more, else 9.
        critique: fields of the critic's answer, instead of those that fit.
        partly: ids of the steps that the critic calls answered in part; the others are done.
        reads_whole: the critic and the outline want the first note whole for which a brief stands.
        planted: HTML by URL: pages that every search finds first; those on the stub's own address can be fetched.
        attacker: address to which planted pages lead a model that obeys them; empty: the model obeys nobody.
        bullets, section, answer: what the model notes and writes instead, with ID for the id of the first source, in a
            section LAST for the last.
        computes: queries of the tables that the model is offered, one after another; plans_* stands for the table whose
            name begins so.
        confidence: what the model states of a short answer.
        says: what the model answers, word for word, to prompts that match a regular expression; the first one counts.
        verdicts: what the judge says of sentences that have a part; of others, whether their sources say them.
        replacing: part of the later passage by which, as the judge says, what claims tell no longer holds.
        given: what the judge takes from the question for each sentence that it supports.
        replacement: what the writer puts in place of a sentence to which the judge objects; empty: it takes it out.
        lacking: regular expression; the model finds nothing for sections of a template whose heading matches.
        context_window: tokens; a longer prompt is refused as too long. 0: no limit.
        window_style: in whose words: "openai", "llama.cpp" or "vllm"; the last counts the room for the answer too.
        cached: share of each prompt that the model's server says it has read from its cache; Anthropic's keeps what is
            marked, and says what it reads and writes.
        kept: the beginnings that Anthropic's cache has, as hashes.
        refuses: what the model's server does not take: names of `REFUSALS` in `refusals`, which refuse; "stream", for
            which it gives the whole answer.
        models: what `GET /v1/models` returns; None: it is not there.
        ollama_context: the window that Ollama says a model has; 0: it does not know the model.
        poison: regular expression; a request to the model gets a 500 each time when its role and messages match.
        retry_after: seconds or an HTTP date, sent with every 429.
        echo: added to every error, page and answer: what an adversary would like to see stored and shown.
        faults: scripted behaviours by role (`planner`, ..., `section`, `search`, `extract`, `searxng`, `page`), by the
            model's name, or `*` for all, used up in order, then "ok". The last may end in `*` and then never runs out.
            What is asked of a model's server before it answers has scripts of its own only: `models`, `show`.
    """

    llm_delay: float = 0.0
    search_delay: float = 0.0
    held: str = ""
    answers: int | None = None
    token_seconds: float = 0.5
    one_at_a_time: bool = False
    page_bytes: int = 4_000
    forms: bool = False
    results: int = 0
    without_raw: float = 0.2
    noise: str = ""
    fail_extract: str = ""
    ask_back: dict[str, str] = field(default_factory=dict)
    steps: int = 3
    breadth: int = 2
    suggests: bool = True
    judged: dict[str, str] = field(default_factory=dict)
    score: int = 0
    follow_ups: int = 2
    critique: dict[str, Any] = field(default_factory=dict)
    partly: tuple[str, ...] = ()
    reads_whole: bool = False
    planted: dict[str, str] = field(default_factory=dict)
    attacker: str = ""
    bullets: list[str] = field(default_factory=list)
    says: dict[str, str] = field(default_factory=dict)
    section: str = ""
    computes: list[str] = field(default_factory=list)
    answer: str = ""
    confidence: float = 0.9
    verdicts: dict[str, str] = field(default_factory=dict)
    replacing: str = ""
    given: list[str] = field(default_factory=list)
    replacement: str = ""
    lacking: str = ""
    context_window: int = 0
    window_style: str = "openai"
    cached: float = 0.0
    kept: set[str] = field(default_factory=set)
    refuses: set[str] = field(default_factory=set)
    models: dict[str, Any] | None = None
    ollama_context: int = 32_768
    poison: str = ""
    retry_after: float | str = 1
    echo: str = ""
    faults: dict[str, list[str]] = field(default_factory=dict)

    def next_behaviour(self, role: str, model: str = "") -> str:
        """Take the next behaviour of a role's script, or of its model's."""
        names = (role,) if role in ("models", "show") else (role, model, "*")
        for script in map(self.faults.get, names):
            if script:
                return script[0].removesuffix("*") if script[0].endswith("*") else script.pop(0)
        return "ok"
