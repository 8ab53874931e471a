"""Reading mail: a message has its fields, its text, and its attachments; a mailbox has its messages thread by thread.

Attachments are read with a single message; of a mailbox, only the ones that are text: another that breaks its reader
would take the whole mailbox with it. Others are named. So is a damaged message of a mailbox, and the others are read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from email import message_from_bytes, policy
from email.message import EmailMessage
from itertools import groupby
from typing import Any, NamedTuple

from fathom.text.messages import quotation
from fathom.text.plain import clean_line, clean_text, shortened
from fathom.tools.documents.header import written
from fathom.tools.documents.html import read_page
from fathom.tools.documents.normal import DocumentSection, ReadDocument, joined
from fathom.tools.documents.quoting import MailPart, told_apart

PART = 3  # level of the headings within a message: of what it quotes, and of attachments
NAMED = 5  # attachments, or messages, that a reason names
SUBJECT = 60  # characters by which a damaged message is named
FIELD = 5_000  # characters of a field that are read: 140 receivers, and a thread of 80 messages with its first
MAX_PARENTS = 1_000  # messages from an answer up to the first one of its thread
FIELDS = ("From", "To", "Cc", "Date", "Subject")
DAMAGED = (ArithmeticError, AssertionError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)
"""What Python's parser raises for a damaged message."""
_BETWEEN = re.compile(rb"(?:\A|\n\r?\n)From [^\n]*\n")
_ESCAPED = re.compile(rb"^>(>*From )", re.M)
_SUBJECT = re.compile(rb"^Subject:([^\n]*)", re.M | re.I)
_IDS = re.compile(r"<[^<>\s]+>")
_REPLY = re.compile(r"(?:(?:re|aw|fwd?|wg|sv|antw|rv|tr)\s*:\s*)+", re.I)

ReadText = Callable[[str, bytes], "list[DocumentSection] | None"]
"""Returns the sections of an attachment by its name and bytes; None if it is not read."""


class _Fields(policy.EmailPolicy):
    """Reads the beginning of a field: the time of Python's parser grows with the square of its characters."""

    def header_source_parse(self, sourcelines: list[str]) -> tuple[str, str]:
        name, value = super().header_source_parse(sourcelines)
        return name, value[:FIELD]


_POLICY = _Fields()


class _Message(NamedTuple):
    fields: dict[str, str]
    shown: str  # the fields but the subject, which stands above the text
    sections: list[DocumentSection]  # below the heading of the message
    when: datetime | None
    id: str
    answers: list[str]  # the ids of the messages before it in its thread
    others: list[str]  # names of attachments that are not read


def read_mail(data: bytes, read_text: ReadText) -> ReadDocument:
    """Return a message, its text below its subject, dated by its header; what it quotes has sections of its own.

    Raises:
        DAMAGED: it is damaged.
    """
    message = _message(data, read_text)
    subject = message.fields.get("Subject", "")
    top, *below = message.sections
    sections = [DocumentSection(message.shown), DocumentSection(top.text, subject, 1 if subject else 0), *below]
    return ReadDocument(subject, sections, _day(message), message.fields, _unread([], message.others))


def read_mailbox(data: bytes, read_text: ReadText) -> ReadDocument:
    """Return the messages of a mailbox by thread, from the first to the last; dated by the last.

    Raises:
        DAMAGED: none of its messages can be read.
    """
    parts = [_ESCAPED.sub(rb"\1", part) for part in _BETWEEN.split(data) if part.strip()]
    messages, damaged = list[_Message](), list[str]()
    for number, part in enumerate(parts, 1):
        try:
            messages.append(_message(part, read_text))
        except DAMAGED as error:
            if len(damaged) + 1 == len(parts):
                raise
            damaged.append(f"number {number} {_raw_subject(part)}({type(error).__name__})")
    parents = {message.id: message.answers for message in messages if message.id}

    def first(message: _Message) -> str:
        own, seen = message.id, 0
        above = message.answers
        while above and seen < MAX_PARENTS:
            own, seen = above[0], seen + 1
            above = parents.get(own, [])
        return own or str(id(message))

    began: dict[str, datetime] = {}
    for message in messages:
        began[first(message)] = min(_sorted_by(message), began.get(first(message), _sorted_by(message)))
    messages.sort(key=lambda message: (began[first(message)], first(message), _sorted_by(message)))
    sections: list[DocumentSection] = []
    for _, thread in groupby(messages, key=first):
        for number, message in enumerate(thread):
            if not number:
                subject = _REPLY.sub("", message.fields.get("Subject", ""), count=1)
                sections.append(DocumentSection("", subject or "Without a subject", 1))
            top, *more = message.sections
            text = joined([message.shown, top.text])
            sections.append(DocumentSection(text, _sent_by(message.fields, message.when), 2))
            sections += more
    others = [name for message in messages for name in message.others]
    date = max(map(_day, messages), default="")
    return ReadDocument("", sections, date, unread=_unread(damaged, others), of_parts=True)


def _message(data: bytes, read_text: ReadText) -> _Message:
    # `message_from_bytes` is typed for the older policy.
    message: Any = message_from_bytes(data, policy=_POLICY)
    fields = {name: line for name in FIELDS if (line := clean_line(str(message[name] or "")))}
    body = message.get_body(preferencelist=("plain", "html"))
    sent = getattr(message["Date"], "datetime", None)
    own, quoted = _said(joined(_texts(body)), _sent_by(fields, sent))
    below, others = list[DocumentSection](), list[str]()
    for part in message.iter_attachments():
        name = clean_line(part.get_filename() or "")
        read = read_text(name, _bytes_of(part)) if name else None
        if read is None:
            others += [name] if name else []
        else:
            below += [DocumentSection("", name, PART), *(_deeper(section) for section in read)]
    if names := [*(section.heading for section in below if section.level == PART), *others]:
        own = joined([own, f"Attachments: {', '.join(names)}"])
    answers = _IDS.findall(f"{message['References'] or ''} {message['In-Reply-To'] or ''}")
    named = next(iter(_IDS.findall(str(message["Message-ID"] or ""))), "")
    shown = written({name: value for name, value in fields.items() if name != "Subject"})
    return _Message(fields, shown, [DocumentSection(own), *quoted, *below], sent, named, answers, others)


def _said(text: str, sender: str) -> tuple[str, list[DocumentSection]]:
    """Return what a message says above its quotations, and what it quotes and goes on with, in their order."""
    first, *others = told_apart(text) or [MailPart("", is_quoted=False)]
    parts = [first, *others] if first.is_quoted else others
    quoted = (DocumentSection(p.text, quotation(p.by) if p.is_quoted else sender, PART) for p in parts)
    return "" if first.is_quoted else first.text, list(quoted)


def _sent_by(fields: dict[str, str], sent: datetime | None) -> str:
    sender = re.sub(r"\s*<[^<>]*>", "", fields.get("From", "")) or "Unknown sender"
    return f"{sender}, {sent:%Y-%m-%d}" if sent else sender


def _deeper(section: DocumentSection) -> DocumentSection:
    return DocumentSection(section.text, section.heading, section.level + PART if section.heading else 0)


def _texts(body: EmailMessage | None) -> Iterator[str]:
    if body is None:
        return
    if body.get_content_subtype() == "html":
        _, sections = read_page(_bytes_of(body))
        yield from (block for section in sections for block in (section.heading, section.text))
    else:
        yield clean_text(_decoded(body))


def _bytes_of(part: EmailMessage) -> bytes:
    """Return the content of a part; of one that holds a message or other parts, nothing."""
    if part.get_content_maintype() == "text" and part.get_content_charset():
        return _decoded(part).encode("utf-8", "replace")
    content: Any = part.get_payload(decode=True)
    return content or b""


def _decoded(part: EmailMessage) -> str:
    """Return the text of a part in the encoding that it names; in UTF-8 if it names none, or one that Python lacks."""
    content: Any = part.get_payload(decode=True)
    try:
        return str(content or b"", part.get_content_charset("utf-8"), "replace")
    except (LookupError, ValueError):
        return str(content, "utf-8", "replace")


def _raw_subject(message: bytes) -> str:
    """Return the subject of a damaged message in quotation marks, as it stands there; empty if it has none."""
    found = _SUBJECT.search(message)
    subject = clean_line(found[1].decode("utf-8", "replace")) if found else ""
    return f"“{shortened(subject, SUBJECT)}” " if subject else ""


def _sorted_by(message: _Message) -> datetime:
    when = message.when or datetime.max
    return when if when.tzinfo else when.replace(tzinfo=UTC)


def _day(message: _Message) -> str:
    return f"{message.when:%Y-%m-%d}" if message.when else ""


def _unread(damaged: Sequence[str], attachments: Sequence[str]) -> str:
    reasons = []
    if damaged:
        reasons.append(f"damaged messages were not read: {_named(damaged)}")
    if attachments:
        reasons.append(f"attachments were not read: {_named(attachments)}; save them beside it")
    return "; ".join(reasons)


def _named(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED:,} more" if len(names) > NAMED else ""
    return f"{', '.join(names[:NAMED])}{more}"
