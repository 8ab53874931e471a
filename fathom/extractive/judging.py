"""What kind of question is asked, and how wide it is, by its form: in English, German, French and Spanish.

The first form that fits decides. A text that asks for several things, lists aspects or is long is broad whatever it
asks, and one without a form that is known is of medium width.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from fathom.extractive.questions import parts_of, questions_of
from fathom.models import Kind, Width
from fathom.text.terms import terms

BROAD_WORDS = 40  # of a question, from which it asks for more than one thing
NARROW_TERMS = 12  # at most, of a question that asks for one thing


class Judgement(NamedTuple):
    """What kind a question is, and how wide."""

    kind: Kind
    width: Width


def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns), re.IGNORECASE)


_FORMS = {
    Kind.survey: _any(
        r"\b(?:overview of|survey of|review of|literature review|state of the art|landscape of|trends in)\b",
        r"\b(?:reports? on|papers? on|essay on|comprehensive|in[- ]depth|detailed (?:analysis|report|explanation))\b",
        r"\b(?:market (?:\w+ )?analysis|research (?:report|paper)|research and analy[sz]e|what is known)\b",
        r"\b(?:überblick|übersicht|stand der (?:forschung|technik)|bericht über|was ist über)\b|marktanalyse",
        r"\b(?:panorama|état de l'art|état des lieux|vue d'ensemble|revue de|rapport sur|que sait-on)\b",
        r"\b(?:visión general|estado del arte|informe sobre|panorámica|qué se sabe)\b",
    ),
    Kind.comparison: _any(
        r"\b(?:vs\.?|versus|compared? (?:to|with)|compare|comparison|differences?|differ|distinguish)\b",
        r"\b(?:unterschied\w*|unterscheide\w*|vergleich\w*|verglichen)\b",
        r"\b(?:différences?|comparer|comparaison|par rapport à|diferencias?|comparar|comparación)\b",
    ),
    Kind.decision: _any(
        r"(?<!why )\bshould (?:i|we)\b|\bis it (?:better|worth|sensible)|\bworth (?:it|buying|using)\b",
        r"\bwhich \w+ is (?:the )?best\b|\bbest \w+ (?:for|to)\b|\byou recommend\b|\bpros and cons\b",
        r"\b(?:soll(?:te|ten|en)? (?:ich|wir|man)|lohnt (?:es )?sich|empfiehl\w*|vor- und nachteile)\b",
        r"\b(?:devrais-je|devrait-on|devons-nous|faut-il|vaut-il|deber[ií]a(?:mos)?|conviene|ventajas y)\b",
    ),
    Kind.how_to: _any(
        r"\bhow (?:do|can|could|should|would|to)\b(?: (?:i|we|you|one|people|somebody|someone)\b|(?<=how to))",
        r"\b(?:steps to|guide to|tutorial|instructions|what do i (?:run|do|type|need))\b",
        r"^wie (?:kann|macht|muss|richte|installiere|stelle|baue|geht|lässt|man)\b|\banleitung\b",
        r"^comment (?:faire|puis|peut|dois|installer|configurer)|^¿?cómo (?:se|puedo|hago|instalar|configurar)",
    ),
    Kind.current_event: _any(
        r"\b(?:latest|newest|currently|recent(?:ly)?|today|this (?:week|month|year)|so far|news|right now)\b",
        r"\b(?:aktuell\w*|derzeit\w*|neueste\w*|heute|zurzeit|nachrichten|momentan)\b",
        r"\b(?:actuel\w*|dernière?s?|récent\w*|aujourd'hui|actual\w*|últim[oa]s?|reciente\w*|hoy)\b",
    ),
    Kind.fact: _any(
        r"^(?:[^,]{1,60}, )?(?:\w+ ){0,2}(?:who|whom|whose|when|where|which|what|why)\b",
        r"^(?:[^,]{1,60}, )?(?:\w+ ){0,2}how (?:is|are|was|were|many|much|long|old|far|often|large|high|tall|fast)\b",
        r"^(?:is|are|was|were|do|does|did|can|could|may|must|will|has|have|had)\b|^how \w+ (?:is|are|was|were)\b",
        r"^(?:[^,]{1,60}, )?(?:\w+ )?(?:wer|wen|wem|wessen|wann|wo|woher|warum|welche[rsnm]?|was|wie ?viele?)\b",
        r"^(?:ist|sind|war|waren|hat|haben|kann|darf|wird|gibt)\b|^wie (?:\w+ (?:ist|sind|war)|heißt|heißen)\b",
        r"^(?:[^,]{1,60}, )?(?:\w+ )?(?:qui|quand|où|quel(?:le)?s?|combien|pourquoi|qu'est)\b|^est-ce",
        r"^(?:[^,]{1,60}, )?¿?(?:\w+ )?(?:quién(?:es)?|cuándo|dónde|cuál(?:es)?|cuánt[oa]s?|qué)\b",
    ),
}
_OPEN = _any(  # what has more than one answer, or is told in more than one place
    r"\b(?:and|und|et|y) (?:who|when|where|what|how|which|wer|wann|wo|was|wie|qui|quand|où|quién|cuándo|dónde)\b",
    r"\b(?:why|role|impacts?|effects?|influences?|relationship|implications|causes|consequences|challenges|future)\b",
    r"\b(?:warum|wieso|weshalb|rolle|auswirkung(?:en)?|einfluss|folgen|ursachen|zukunft)\b",
    r"\b(?:pourquoi|rôle|effets|conséquences|causes|avenir|por qué|papel|efectos|consecuencias|causas|futuro)\b",
)


def judge(query: str) -> Judgement:
    """Return what kind of question a query asks, and how wide it is."""
    questions = questions_of(query)
    text = " ".join(questions[0].split())
    found = (kind for kind, form in _FORMS.items() if form.search(query if kind is Kind.survey else text))
    kind = next(found, None)
    parts = [part for question in questions for part in parts_of(question)]
    if len(questions) > 2 or len(query.split()) >= BROAD_WORDS or kind is Kind.survey:
        return Judgement(kind or Kind.survey, Width.broad)
    if kind is None:
        return Judgement(Kind.survey, Width.medium)
    sides = kind is Kind.comparison or not parts
    one = len(questions) == 1 and sides and not _OPEN.search(query) and len(terms(text)) <= NARROW_TERMS
    return Judgement(kind, Width.narrow if one else Width.medium)
