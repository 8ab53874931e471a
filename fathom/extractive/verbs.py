"""Verbs of English, for telling a sentence from a noun phrase: those that questions and statements are made with."""

from __future__ import annotations

import re

_BASE = """
absorb accept achieve act adapt add affect agree aim allocate allow amount announce answer appear apply approach arise
arrive ask assign avoid balance base become begin behave believe belong bind break bring build buy cache calculate
call capture carry cast cause change charge choose claim clean climb close collect combine come communicate compare
compile complain compute confirm connect consider consist contain continue contribute control convert cool cope copy
cost count cover create date deal decide declare decode define delete deliver depend derive destroy detect determine
develop die differ diffuse digest discover dispatch distinguish distribute divide dock draw drive drop eat elect
emerge employ enable encode encrypt enforce enjoy ensure enter establish estimate evaluate evolve exceed execute exist
expand expect explain express extend face fail fall feed feel fight fill finance find fit fix float fly follow force
form found function gain gather generate get give go grant grow guide handle hang happen harm head heal hear help hire
hold host identify impact implement import improve include increase infect influence inherit initialize insert inspect
interact interpret invent invest iterate join keep kill know last launch lay lead learn leave let lie lift like limit
link listen live load locate lock look lose love lower make manage map mark match matter mean measure meet mention
migrate modify move name need note number occur offer open operate optimize order organize overload override own parse
pass pay perform pick plan play point prefer present prevent process produce promise promote propagate protect prove
provide publish pull push put quote raise range rank rate reach react read receive reclaim recognise recognize recover
reduce refer reflect regulate reject relate release remain remember remove render repair replace report represent
reproduce require resolve respond rest return reuse rise rule run sail save say scale schedule search see seem select
sell send serve set shape shift shrink sink sit sleep solve sort speak spend split spread stand start state steer stop
store strike study sue suffer suggest support suppress survive swap sync take talk target teach tell tend test think
threaten total touch track trade train transfer transform translate transmit travel treat trigger try turn understand
update use vary verify vote wait want warn wear weigh win wish work worry wrap write yield
"""
_FINITE = """
is are was were be been has have had can could may might must will would shall should does do did cannot
became began bought broke brought built came caught chose cost cut did drew drove fell felt flew found fought gave
got grew had held hit kept knew laid led left lent let lay lost made meant met paid put ran rose said sang sank sat
saw sent set shook shot shut sold spent spoke spread stood struck swam swore taught thought threw told took went woke
won wore wrote
"""
_FINITE_VERBS = frozenset(_FINITE.split())
_BASE_FORMS = frozenset(_BASE.split())


def is_verb(word: str, before: str = "") -> bool:
    """Whether a lowercase word can be the verb of a sentence; not behind "to", "which" or "that"."""
    if before in ("to", "which", "that"):
        return False
    if word in _FINITE_VERBS or word.endswith("n't") or (word.endswith("ed") and len(word) > 4):
        return True
    stems = (word, word.removesuffix("s"), word.removesuffix("es"), re.sub("ies$", "y", word))
    return any(stem in _BASE_FORMS for stem in stems)
