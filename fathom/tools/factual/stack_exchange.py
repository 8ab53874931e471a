"""Stack Exchange: questions of Stack Overflow and its sister sites, with their best answers.

300 requests a day, 10,000 with a key. An answer that has `backoff` asks for a pause of so many seconds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from html import unescape

from pydantic import AliasPath, Field

from fathom.models import Bibliographic, Received
from fathom.tools.documents.html import fragment_blocks
from fathom.tools.lookup import LookupTool, Records, words_of
from fathom.tools.pages import WebPage

SITES = (
    "stackoverflow serverfault superuser askubuntu unix math mathoverflow.net stats physics chemistry biology "
    "astronomy dba security softwareengineering datascience ai cs electronics networkengineering devops gis tex "
    "codereview law economics quant history politics philosophy linguistics english travel diy cooking gardening space"
)
_SITE = re.compile(rf"\s*({re.escape(SITES).replace(chr(92) + ' ', '|')})\s*:\s*", re.IGNORECASE)
ANSWERS = 3  # answers to a question
MOST_WORDS = 6  # a question has all of them


class _Post(Received):
    question_id: int
    body: str = ""
    title: str = ""
    link: str = ""
    score: int = 0
    created: int = Field(0, validation_alias="creation_date")
    author: str = Field("somebody", validation_alias=AliasPath("owner", "display_name"))
    licence: str = Field("CC BY-SA", validation_alias="content_license")
    is_accepted: bool = False


class _Posts(Received):
    items: Records[_Post]
    backoff: float = 0.0


class StackExchangeTool(LookupTool):
    """Searches Stack Overflow and its sister sites, and reads the best answers."""

    name = "stack_exchange"
    service = "Stack Exchange"
    group = "facts"
    description = (
        "Searches Stack Overflow: questions on programming with their best answers. Input: a few words, such as those "
        f"of an error message. Another site goes first, as in `math: words`; sites: {SITES}."
    )
    address = "https://api.stackexchange.com/2.3"
    domains = ("software",)
    optional = ("STACK_EXCHANGE_BASE_URL", "STACK_EXCHANGE_KEY", "FATHOM_CONTACT")
    setup = "STACK_EXCHANGE_KEY allows more requests (keys: https://stackapps.com)"
    seconds_between = 0.2
    at_once = 1

    async def find(self, query: str, limit: int) -> list[WebPage]:
        """Return the questions that fit best, each with its best answers."""
        named = _SITE.match(query)
        site = named[1].lower() if named else "stackoverflow"
        words = " ".join(words_of(query[named.end() :] if named else query)[:MOST_WORDS])
        questions = await self._posts("/search/advanced", site, "relevance", limit, q=words)
        if not questions:
            return []
        ids = ";".join(str(question.question_id) for question in questions)
        answers = await self._posts(f"/questions/{ids}/answers", site, "votes", 10 * limit)
        return [_page(each, [a for a in answers if a.question_id == each.question_id]) for each in questions]

    async def _posts(self, path: str, site: str, sort: str, most: int, **parameters: str) -> Sequence[_Post]:
        found = await self.ask_json(
            _Posts, path, site=site, order="desc", sort=sort, pagesize=min(most, 100), filter="withbody", key=self.key,
            **parameters,
        )  # fmt: skip
        self.rest(found.backoff)
        return found.items


def _page(question: _Post, answers: Iterable[_Post]) -> WebPage:
    best = sorted(answers, key=lambda answer: (-answer.is_accepted, -answer.score))[:ANSWERS]
    parts = [*fragment_blocks(question.body)]
    for answer in best:
        accepted = "accepted, " if answer.is_accepted else ""
        when = f", {_day(answer.created)}" if answer.created else ""
        parts.append(f"## Answer of {unescape(answer.author)} ({accepted}score {answer.score}{when})")
        parts += fragment_blocks(answer.body)
    return WebPage(
        url=question.link,
        title=unescape(question.title),
        published=_day(max([question, *best], key=lambda post: post.created).created),
        whole="\n\n".join(parts),
        reference=Bibliographic(authors=[unescape(question.author)], venue="Stack Exchange", licence=question.licence),
    )


def _day(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).date().isoformat() if seconds else ""
