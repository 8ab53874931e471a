"""Reading subtitles and transcripts (WebVTT, SubRip): what is said becomes paragraphs with time and speaker.

`[00:01:15] Anna: ...` begins when another person speaks, or after a sentence when a paragraph is long.
"""

from __future__ import annotations

import html
import re

from fathom.text.plain import clean_line
from fathom.tools.documents.normal import DocumentSection, ReadDocument

LONG = 600  # characters after which the next sentence begins a paragraph
_TITLE = re.compile(r"\ufeff?WEBVTT[ \t]+(?:-[ \t]*)?(\S[^\n]*)")
_CUE = re.compile(r"^(?:(\d+):)?(\d\d):(\d\d)[.,]\d{1,3}[ \t]+-->[^\n]*\n((?:[^\n]*\S[^\n]*(?:\n|\Z))*)", re.M)
_VOICE = re.compile(r"<v(?:\.[^\s>]*)?\s+([^>]*)>")
_TAG = re.compile(r"<[^<>]*>|\{\\[^{}]*\}")
_SPEAKER = re.compile(r"(?:>>|-)?\s*([^\W\d_][^:.!?]{0,40}):\s+(?=\S)")
_ENDED = re.compile(r"[.!?…。！？][\"'”’)]*\Z")


def read_transcript(text: str) -> ReadDocument:
    """Return what is said.

    Raises:
        ValueError: there is no cue in it.
    """
    paragraphs: list[tuple[str, str, list[str]]] = []  # time, speaker, what is said
    last = ""
    for cue in _CUE.finditer(text):
        for line in cue[4].split("\n"):
            voice = _VOICE.search(line)
            said = clean_line(html.unescape(_TAG.sub("", line)))
            named = None if voice else _SPEAKER.match(said)
            speaker = clean_line(html.unescape(voice[1])) if voice else named[1] if named else ""
            said = said[named.end() :] if named else said
            before = paragraphs[-1] if paragraphs else None
            goes_on = before is not None and speaker in ("", before[1])
            if not said or (goes_on and said == last):  # live captions repeat the line above
                continue
            last = said
            full = before and sum(map(len, before[2])) > LONG and _ENDED.search(before[2][-1])
            if before is None or full or not goes_on:
                at = f"{int(cue[1] or 0):02}:{cue[2]}:{cue[3]}"
                paragraphs.append((at, speaker or (before[1] if before else ""), [said]))
            else:
                before[2].append(said)
    if not paragraphs:
        raise ValueError("no cue")
    texts = (f"[{at}] {speaker}{': ' * bool(speaker)}{' '.join(said)}" for at, speaker, said in paragraphs)
    title = _TITLE.match(text)
    return ReadDocument(title[1].strip() if title else "", [DocumentSection("\n\n".join(texts))])
