"""One spelling of English words: American, which more texts have.

People ask in one and read the other: "sterilizer" and "steriliser", "color" and "colour". Only for comparing words:
what is quoted keeps its spelling.
"""

from __future__ import annotations

import re

_PAIRS = """
aeroplane airplane | aluminium aluminum | analogue analog | artefact artifact | catalogue catalog | cosy cozy
defence defense | dialogue dialog | diarrhoea diarrhea | grey gray | jewellery jewelry | kerb curb
licence license | manoeuvre maneuver | mould mold | moustache mustache | offence offense | plough plow
practise practice | practising practicing | pretence pretense | programme program | pyjamas pajamas
sceptic skeptic | sceptical skeptical | smoulder smolder | speciality specialty | sulphur sulfur
"""
_AMERICAN = dict(pair.split() for line in _PAIRS.strip().splitlines() for pair in line.split(" | "))
_FORM = re.compile(rf"(?P<word>{'|'.join(_AMERICAN)})(?P<ending>s|d|ed|ing|)\Z")

_OUR = re.compile(
    r"(?P<root>(?:dis|un)?"
    r"(?:arm|behavi|col|endeav|fav|flav|harb|hon|hum|lab|neighb|od|parl|rum|sav|tum|vap|vig))our"
)
_RE = re.compile(r"(?P<root>\w*(?:cent|fib|lit|lust|met|mit|sab|theat))re(?P<ending>[sd]?)\Z")
_ISE = re.compile(r"(?P<root>\w{2,}[^aeou\W])(?:is|(?<=l)ys)(?P<ending>e[drs]?|ers|ing|ations?|able)\Z")
_WITH_S = """
advertis advis anis appris chemis circumcis clockwis comparis compris compromis concis demis despis devis
disguis enterpris excis exercis expertis franchis guis improvis incis likewis merchandis mortis otherwis paradis
precis premis promis repris revis supervis surpris televis treatis
"""
_ALWAYS_WITH_S = tuple(_WITH_S.split())


def american(word: str) -> str:
    """Return a lowercase word in its American spelling; any other word as it is."""
    if form := _FORM.match(word):
        base, ending = _AMERICAN[form["word"]], form["ending"]
        return f"{base}{'ed' if ending == 'd' and not base.endswith('e') else ending}"
    if found := _RE.match(word):
        return f"{found['root']}er{found['ending'].replace('d', 'ed')}"
    if found := _OUR.match(word):
        return f"{found['root']}or{word[found.end() :]}"
    if (found := _ISE.match(word)) and not word.startswith(_ALWAYS_WITH_S):
        return f"{word[: found.start('ending') - 1]}z{found['ending']}"
    return word
