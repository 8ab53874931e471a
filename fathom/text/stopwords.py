"""Words that name no topic: the function words of English and German, and the verbs of asking."""

from __future__ import annotations

_ENGLISH = """
a about above after again against all also am an and any are aren't as at be because been before being below between
both but by can can't cannot could couldn't did didn't do does doesn't doing don't down during each either else etc
ever few for from further had hadn't has hasn't have haven't having he her here hers herself him himself his how
however i if in into is isn't it it's its itself just let like many may me might more most much must my myself neither
no nor not of off on once one only onto or other our ours ourselves out over own per rather several same shall she
should shouldn't since so some such than that that's the their theirs them themselves then there these they this those
though through thus to too under until up upon us very via was wasn't we were weren't what what's when where whether
which while who whom whose why will with within without won't would wouldn't yet you your yours
"""
_GERMAN = """
aber als am an auch auf aus bei bin bis bist da damit dann das dass dem den der des dessen die dies diese diesem
diesen dieser dieses doch dort du durch ein eine einem einen einer eines er es für gegen hat hatte hatten ich ihr ihre
im in ist ja jede jeder jedes kann kein keine mit nach nicht noch nun nur ob oder ohne sehr sein seine sich sie sind
so soll sowie über um und uns unter vom von vor war waren warum was wegen weil wenn wer werden wie wir wird wo wurde
wurden zu zum zur zwischen viel viele vielen wann welche welchem welchen welcher welches wem wen wessen woher wohin
wieviel etwa dass daß
"""
_ASKING = "describe explain know please tell understand want"
ENGLISH = frozenset(_ENGLISH.split())
GERMAN = frozenset(_GERMAN.split())
STOP_WORDS = ENGLISH | GERMAN | frozenset(_ASKING.split())
"""Lowercase, before stemming and before accents are folded."""
