"""Removes personal data from tools' outputs before they are stored: e-mail addresses, IBANs, card and phone numbers."""

from __future__ import annotations

import re

from fathom.models import Bibliographic, ToolOutput

_EMAIL = re.compile(r"[\w.+%-]{1,64}@(?:[\w-]{1,63}\.){1,8}[^\W\d_]{2,24}\b")
_IBAN = re.compile(r"\b[A-Z]{2}\d{2}(?:[ ]?[A-Z0-9]{4}){2,7}(?:[ ]?[A-Z0-9]{1,3})?\b")
_CARD = re.compile(
    r"(?<![\w.])(?:[0-9]{13,19}|[0-9]{4}([ -])[0-9]{4}\1[0-9]{4}\1[0-9]{1,7}|[0-9]{4}([ -])[0-9]{6}\2[0-9]{5})"
    r"(?!\w|\.\d)"
)
_PHONE = re.compile(
    r"(?<![\w.,+/-])(?:"
    r"(?:\+|00)[1-9]\d{0,2}(?:[ ./-]{0,2}\(?\d{1,5}\)?){2,6}"  # international: +49 30 123456
    r"|\(?[2-9]\d{2}\)?[ .-]{1,2}[2-9]\d{2}[ .-]\d{4}"  # North American: (212) 555-0123
    r"|\(?0[1-9]\d{1,4}\)?[ /-]{1,3}\d{3,4}(?:[ -]?\d{1,4}){1,3}"  # with a trunk prefix: 020 7946 0958
    r")(?![\w]|[.,]\d)"
)
PHONE_DIGITS = (9, 15)


def redacted(output: ToolOutput) -> ToolOutput:
    """Return a tool's output without personal data in its texts; the sources' addresses stay as they are."""
    written = ("text", "snippet", "title", "location")
    results = [
        found.model_copy(
            update={**{name: redact(getattr(found, name)) for name in written}, "reference": _cited(found.reference)}
        )
        for found in output.results
    ]
    return output.model_copy(update={"results": results})


def _cited(known: Bibliographic | None) -> Bibliographic | None:
    return known and known.model_copy(
        update={"authors": [redact(author) for author in known.authors], "venue": redact(known.venue)}
    )


def redact(text: str) -> str:
    """Return the text with each e-mail address, IBAN, card and phone number replaced by its kind in brackets.

    IBANs and card numbers must have a valid checksum (ISO 7064 mod 97-10; Luhn), so years, ISBNs and measurements stay.
    """
    text = _EMAIL.sub("[email]", text)
    text = _IBAN.sub(_iban, text)
    text = _CARD.sub(lambda found: "[card]" if _luhn(found[0]) else found[0], text)
    return _PHONE.sub(_phone, text)


def _iban(found: re.Match[str]) -> str:
    """Replace the longest start of a match that has a valid checksum: words in capitals may follow the number."""
    whole = found[0]
    for end in range(len(whole), 14, -1):
        compact = whole[:end].replace(" ", "")
        if 15 <= len(compact) <= 34 and int("".join(str(int(c, 36)) for c in compact[4:] + compact[:4])) % 97 == 1:
            return "[iban]" + whole[end:]
    return whole


def _luhn(number: str) -> bool:
    digits = [int(c) for c in number if c.isdigit()][::-1]
    doubled = sum(sum(divmod(2 * digit, 10)) for digit in digits[1::2])
    return len(set(digits)) > 1 and (sum(digits[::2]) + doubled) % 10 == 0


def _phone(found: re.Match[str]) -> str:
    digits = sum(c.isdigit() for c in found[0])
    return "[phone]" if PHONE_DIGITS[0] <= digits <= PHONE_DIGITS[1] else found[0]
