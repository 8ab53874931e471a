"""Words that mean the same in contracts, offices, clubs and manuals, and phrases that people say for one word.

People ask in the words of every day ("the builder is late"), documents answer in those of their trade ("the
contractor", "delay"). Each line has words of which one stands for any other; a word with several meanings is in several
lines. Only words that hardly mean anything else where the others are used are in a line with them.
"""

from __future__ import annotations

import re
from collections import defaultdict
from functools import cache

from fathom.text.terms import query_terms, terms

SAME = 0.7  # weight of a word that means the same

_GROUPS = """
contractor builder
supplier vendor
client customer
landlord lessor
tenant lessee renter
lease tenancy
sublet sublease
invoice bill
pay settle payable
settle resolve
refund reimburse repay reimbursement
withhold retain retention
withhold deduct
penalty damages fine sanction
late delay delayed lateness overdue
postpone defer delay
expensive costly dear
big large
discount rebate reduction
guarantee warranty
defect fault flaw
repair fix mend remedy
broken damaged defective faulty
replace exchange swap
begin start commence
finish complete end
cancel terminate
resign quit leave
dismiss sack fire
permission consent approval permit authorisation authorization
allow permit
allowed permitted permissible
forbidden prohibited banned
forbid prohibit ban
mandatory compulsory obligatory required
ill sick illness sickness
doctor medical physician
holiday vacation leave
colleague coworker
boss manager supervisor
salary wage
home remote
laptop notebook
phone telephone call ring
stolen theft
erase wipe delete
car vehicle
lorry truck
payload load capacity
fuel petrol diesel
fly flight plane
hotel accommodation lodging
trip journey travel
noisy loud noise
silent quiet
pet dog cat animal
bicycle bike cycle
lift elevator
flat apartment
rubbish waste trash garbage
meeting session
attend present participate
reject decline refuse
buy purchase
deliver delivered delivery supply ship shipment
stocktaking inventory
stock inventory
complain complaint
pupil student
teacher instructor tutor
exam examination test
enrol enroll register registration
company firm business
rule regulation
contract agreement
dispute disagreement conflict
court judge
insolvent bankrupt
insolvency bankruptcy
injury hurt injured
accident injury
medicine drug medication
pill tablet
dose dosage
yearly annual annually
renew extend prolong
expire lapse
revoke withdraw
transfer move
machine device appliance
device equipment
staff employee personnel worker
tidy clean
premises building
keep kept store retain
abroad overseas foreign
child kid
newcomer beginner
clothes clothing
quick fast rapid
mistake error
often frequently
rent hire
job work
anonymous anonymously
insurance insured cover
cap limit maximum
litre liter l
kilogram kilo kg
kilometre kilometer km
minute min
verspätet verspätung verzug verzögerung
vertragsstrafe strafe bußgeld
kündigen kündigung gekündigt beenden
verlängern verlängert verlängerung erneuern erneuert erneuerung
zahlen bezahlen begleichen entrichten zahlung bezahlung gezahlt bezahlt beglichen entrichtet
rechnung rechnungen faktura
urlaub ferien
krank krankheit erkrankung krankmeldung
auto wagen pkw fahrzeug
lkw lastwagen laster
chef vorgesetzte vorgesetzter leitung leiter
anfangen beginnen beginn anfang beginnt starten
verboten untersagt
erlaubt gestattet zulässig dürfen
kaputt defekt beschädigt
schaden mangel defekt
reparieren reparatur instandsetzung
gehalt lohn vergütung
firma unternehmen betrieb
mitarbeiter beschäftigte angestellte kollegen
müll abfall abfälle
putzen reinigen reinigung
rabatt nachlass skonto
garantie gewährleistung
parkplatz stellplatz parken
hund haustier haustiere hunde tiere
handy telefon mobiltelefon
schnell geschwindigkeit
"""

_PHRASES = """
get rid of, throw away, throw out: remove delete dispose discard
get back, give back, pay back, money back: refund reimburse return
hand back, bring back, send back: return
hold back, keep back: withhold retain retention
rent out, let out: sublet sublease let
take away: revoke remove withdraw
get out of, back out of, pull out of: terminate cancel withdraw notice
call off: cancel
put off: postpone defer delay
sign off: approve approval authorise sign
hand in: submit submission file
set up: install configure installation configuration
carry out: perform conduct execute implement
take over, took over, taken over: succeed successor replace
go live, goes live, went live, gone live: launch release
fill out: complete
turn down: reject decline refuse
look after, take care of: maintain responsible care
sign up: register registration enrol
run out: spend exceed exhaust reach
use up: spend exhaust
go wrong: fail failure error
fall ill, off sick, be ill: sick sickness illness
time off, day off, days off: leave holiday vacation
from home: remote home
lose customers, lose clients, customers leave, clients leave, people leave: churn left attrition
have left, are left, is left: stock remaining
give notice, hand in notice: cancel terminate resign
break down, broke down, broken down: broken defective failure
carry over: transfer lapse
pass on: share disclose
square metre, square metres, square meter, square meters: m² qm
cubic metre, cubic metres, cubic meter, cubic meters: m³ cbm
kilowatt hour, kilowatt hours: kWh
"""


@cache
def _same_by_term() -> dict[str, tuple[str, ...]]:
    table: defaultdict[str, list[str]] = defaultdict(list)
    for line in _GROUPS.strip().splitlines():
        group = terms(line)
        for term in group:
            table[term] += [other for other in group if other != term]
    return {term: tuple(dict.fromkeys(others)) for term, others in table.items()}


def same_terms(term: str) -> tuple[str, ...]:
    """Return the terms of the words that mean the same as that of a term in some use."""
    return _same_by_term().get(term, ())


@cache
def _phrases() -> list[tuple[re.Pattern[str], list[str]]]:
    entries = (line.split(": ") for line in _PHRASES.strip().splitlines())
    return [
        (re.compile("|".join(map(_with_gaps, phrases.split(", "))), re.I), terms(words)) for phrases, words in entries
    ]


def _with_gaps(phrase: str) -> str:
    """Return the pattern of a phrase, also with a regular form of its first word: "signed off", "putting off".

    Up to two words may stand between its words, as in "hold money back".
    """
    first, others = phrase.split(" ", 1)
    forms = rf"{first[:-1]}(?:y|ie[sd]|ying)" if first.endswith("y") else rf"{first}(?:e?[sd]|{first[-1]}?ing)?"
    if first.endswith("e"):
        forms = rf"{first[:-1]}(?:e[sd]?|ing)"
    return rf"\b{forms} {others}\b".replace(" ", r"(?: \w+){0,2}? ")


def phrases_of(question: str) -> dict[str, dict[str, float]]:
    """Return the last terms of phrases in a question, with the terms of the words that mean the same as the phrase."""
    found: dict[str, dict[str, float]] = {}
    for phrase, words in _phrases():
        if said := phrase.search(question):
            found.setdefault(query_terms(said[0])[-1], {}).update(dict.fromkeys(words, SAME))
    return found
