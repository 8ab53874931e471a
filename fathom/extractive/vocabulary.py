"""Word lists: the little grammar that titles and queries are made with."""

from __future__ import annotations

from fathom.text.terms import query_terms

_VERBS = """
absorb achieve act adapt add affect allocate allow apply approach arise assign avoid balance become begin behave
bind break build cache calculate call capture cause change choose clean close collect combine come communicate
compare compile compute connect contribute control convert cool cope copy cover create deal decide declare decode
define delete deliver depend derive destroy detect determine develop differ diffuse digest dispatch distinguish
distribute divide drive elect emerge enable encode encrypt enforce ensure enter establish estimate evaluate evolve
execute expand explain express extend fail feed fight fill find fit fix fly follow form found function gain generate
get give grow handle happen harm heal help hold identify impact implement import improve include increase infect
influence inherit initialize insert inspect interact interpret invest iterate keep kill know learn limit link listen
live load locate lock look lose lower make manage map match matter mean measure migrate modify move need occur offer
open operate optimize order organize overload override parse pass pay perform pick prevent process produce propagate
protect provide publish raise reach react read receive reclaim recognise recognize recover reduce refer reflect
regulate relate release remember remove render replace represent reproduce resolve respond return reuse run scale
schedule search select send serve set shape shift shrink sleep solve sort split spread start stop store support
suppress survive swap sync target teach tell test track train transfer transform translate transmit travel treat
trigger try turn understand update use vary verify wait want work wrap write yield
"""
_FINITE = """
is are was were be been has have had can could may might must will would shall should does do did cannot
"""
_LOOSE = """
so such very too according including following across various across
a an the of in on at to for from by with and or as that which who is are was were be its their this these when where
while if than then into over about between how why what do does did can not no it vs und oder der die das des dem
den ein eine von mit zu im für auf
"""
_PREPOSITIONS = """
in on at to for from by with of into during through over under between against when if
"""
_META = "define interact relate choose work happen"
_FRAME = """
answer find follow passage read regard say search state statement regard reason exact alike above change usual course
"""
_FORM = """
provide ensure include suggest make sure cite format structure present offer content keyword image example scholarly
reference comprehensive relevant report paper output document answer response section overview detailed framework
category discussion perspective helpful reader table figure citation word length page novice practical extensive final
overall complete support language english style tone academic broad depth in-depth least
"""
_MANNER = """
comprehensive detailed in-depth depth brief short full deep thorough complete broad general research critical academic
scientific systematic structured concise literature an a the and study
"""
_ORDERING = "write writing give prepare create provide produce conduct draft make develop"
_GENERAL = "problem issue thing kind type reason cause way factor example aspect effect role"
_RELATED = (
    "lookup search find resolve access",
    "difference differ unlike whereas distinguish",
    "cause reason because",
    "interact together within propagate",
    "create construct",
    "delete remove",
    "advantage benefit",
    "disadvantage drawback limitation",
    "cost price expensive budget",
    "decide approve reject postpone",
    "problem complaint complain fail block damage delay",
    "begin start",
    "end finish terminate",
    "safe secure",
)

_COMMON_VERBS = """
accept agree aim amount announce answer appear arrive ask base believe belong bring buy call carry cast cause charge
claim climb complain confirm consider consist contain continue cost count date destroy die discover dock draw drive
drop eat employ enjoy establish exceed exist expect face fall feel finance float force gather go grant guide hang
happen head hear hire host invent join keep last launch lay lead leave let lie lift like lock love mark meet mention
name note number own pass plan play point prefer present promise promote prove pull push put quote range rank rate
reduce reject remain repair report require rest rise rule run sail save say see seem sell send sink sit speak spend
stand state steer strike study sue suffer suggest take talk tell tend think threaten total touch trade vote warn wear
weigh win wish worry
"""
_PAST = """
became began bought broke brought built came caught chose cost cut did drew drove fell felt flew found fought gave
got grew had held hit kept knew laid led left lent let lay lost made meant met paid put ran rose said sang sank sat
saw sent set shook shot shut sold spent spoke spread stood struck swam swore taught thought threw told took went woke
won wore wrote
"""
VERBS = frozenset(_VERBS.split())
"""Verbs that questions ask about, in their base form."""
MORE_VERBS = frozenset((_COMMON_VERBS + _PAST).split())
"""Verbs that statements are made with, base forms and irregular past forms; many of them are nouns as well."""
FINITE = frozenset(_FINITE.split())
"""Auxiliary verbs; one of them makes a sentence."""
LOOSE = frozenset(_LOOSE.split())
"""Words that must not stay last when a title is cut."""
PREPOSITIONS = frozenset(_PREPOSITIONS.split())
"""Words that begin a phrase, so that a title may be cut before them."""
MANNER = frozenset(_MANNER.split())
"""What is said of a report that is ordered, and not of its matter."""
ORDERING = frozenset(_ORDERING.split())
"""First words of such an order."""
PRONOUNS = frozenset(("i", "we", "you", "one", "people", "they"))
"""Subjects that say nothing: "How do I open a file" is "How to open a file"."""
NOMINAL = {
    "look up": "lookup", "find": "lookup", "resolve": "resolution", "handle": "handling", "create": "creation",
    "manage": "management", "allocate": "allocation", "compile": "compilation", "evaluate": "evaluation",
    "execute": "execution", "search": "search", "store": "storage", "parse": "parsing", "schedule": "scheduling",
    "process": "processing", "detect": "detection", "import": "import", "convert": "conversion",
    "generate": "generation", "encode": "encoding", "initialize": "initialization",
}  # fmt: skip
"""Verbs and the nouns made of them."""
META_TERMS = frozenset(query_terms(_META))
"""Terms of asking that say nothing about the subject."""
RELATION_TERMS = frozenset(query_terms("differ difference compare comparison contrast versus relation interaction"))
"""Terms of how things stand to each other."""
GENERAL_TERMS = frozenset(query_terms(_GENERAL))
"""Terms that many questions share, whatever they are about."""
FRAME_TERMS = META_TERMS | frozenset(query_terms(_FRAME))
"""Terms of the sentences in which a plan describes its steps."""
FORM_TERMS = frozenset(query_terms(_FORM))
"""Terms of sentences that say what an answer should look like."""
RELATED = {
    term: tuple(other for other in group if other != term)
    for group in (query_terms(words) for words in _RELATED)
    for term in group
}
"""Terms that texts use in each other's place."""
