"""What a full stop may belong to, in English and German."""

from __future__ import annotations

_ABBREVIATIONS = """
mr mrs ms mx dr prof st ste gen col sgt capt lt gov sen rep rev hon messrs mme mlle jr sr vs v cf viz approx ca e.g
i.e eg ie fig figs eq eqs sec ch chap vol vols pp nos ed eds trans repr op cit ibid resp incl excl ref refs z.b d.h
u.a o.ä s.o s.u i.d.r v.a bzw vgl ggf evtl inkl exkl sog nr str abs art bsp tel hr fr dipl ing geb gest univ dept
est max min avg jan feb mar apr jun jul aug sep sept okt nov dec dez inc ltd corp bros mio mrd tsd
"""
_STARTERS = """
the this that these those it its he she they we you i in on at for from if when while where what who why how a an as
but and or so however there here then thus therefore because although since after before during such some many most
all each every no not one two other another our my his her their der die das dies diese dieser ein eine er sie es
wir ich im in am auf für von wenn als aber und oder doch
"""
_ORDINAL_NOUNS = """
januar jänner februar märz april mai juni juli august september oktober november dezember jahrhundert jahrhunderts
jahrtausend klasse auflage platz stock jh geburtstag weltkrieg
"""

ABBREVIATIONS = frozenset(_ABBREVIATIONS.split())
"""Never the end of a sentence, whatever follows."""
BEFORE_NUMBER = frozenset(("no", "p", "art", "nr", "abs", "kap", "bd", "c", "b", "d", "r", "fl"))
"""Not the end of a sentence before a number: "No. 5", "(c. 1434 - d. 1510)"."""
ORDINAL_NOUNS = frozenset(_ORDINAL_NOUNS.split())
"""What follows a German ordinal: "19. Jahrhundert"."""
STARTERS = frozenset(_STARTERS.split())
"""Words that begin a sentence even behind an initial: "He lived in the U.S. The end"."""
