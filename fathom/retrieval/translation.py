"""German words in English and the other way round: a question finds its answer in a document of the other language.

A small dictionary of what is asked of contracts, offices and manuals, not of a whole language. A compound that it does
not have is taken apart ("Mietvertrag": rent, contract), and words that both languages spell nearly alike need no entry
("Projekt": project).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache

from fathom.text.languages import language_of_question
from fathom.text.terms import terms

TRANSLATED = 0.6  # weight of a word in the other language
LEAST_PART = 4  # letters of the last part of a compound
LEAST_STEM = 3
LEAST_COGNATE = 6

_DICTIONARY = """
abfall: waste; abgeben: submit return; ablehnen: refuse reject; abonnement: subscription; abrechnung: settlement;
abteilung: department; adresse: address; alter: age; anbieter: provider supplier; anfang: start beginning; anfrage:
request; angebot: offer quote; angestellter: employee; anhang: attachment; anlage: attachment; anmeldefrist:
registration deadline; anmelden: register log; anmeldung: registration; anruf: call; anrufen: call phone; antrag:
application request; antwort: answer reply; anwalt: lawyer; anzahl: number; arbeit: work; arbeiten: work;
arbeitgeber: employer; arbeitnehmer: employee; arbeitstag: working day; arbeitszeit: working hours; arzt: doctor;
attest: certificate; aufgabe: task; auftrag: order; ausfall: outage failure; ausgabe: expense output; ausnahme:
exception; ausweis: card; auto: car; bahn: train; bank: bank; bauen: build; beantragen: request apply; bedingung:
condition term; beenden: end terminate; befristet: limited; beginn: start begins; beginnen: begin start; behalten:
keep; behandlung: treatment; beitrag: fee premium contribution; benachrichtigen: notify; benutzer: user;
benutzername: username; beschluss: decision; beschwerde: complaint; bestellen: order; bestellung: order; besuch:
visit; besucher: visitor; betrag: amount; betrieb: operation company; bewerber: applicant; bezahlen: pay; bild:
picture image; bildschirm: screen; bis: until; boot: boat; breite: width; brief: letter; buch: book; buchen: book;
büro: office; chef: head manager; datei: file; daten: data; datenschutz: data protection privacy; dauer: duration
period term; dauern: last take; dienst: service; dienstplan: rota schedule; drucker: printer; dürfen: may allowed;
eigentümer: owner; einkommen: income; einladung: invitation; einrichten: install configure; einspruch: objection;
einstellung: setting; eintritt: admission entry; eltern: parents; empfang: receipt; ende: end; enden: end;
entscheiden: decide; entscheidung: decision; erhalten: receive get; erhöhen: raise increase; erhöhung: increase;
erlauben: allow; erlaubnis: permission; ersetzen: replace; erstatten: reimburse; erstattung: reimbursement refund;
fahren: drive; fahrrad: bicycle bike; fahrt: trip; farbe: colour; fehler: error mistake; feiertag: holiday; fenster:
window; ferien: holidays; fest: party; firma: company; flug: flight; fortbildung: training course; frage: question;
frist: deadline period notice; fähre: ferry boat; fällig: due; führerschein: licence; gast: guest; gebäude: building;
gebühr: fee charge; gehalt: salary; geld: money; genehmigung: approval permission; gepäck: luggage; gerät: device;
geschwindigkeit: speed; geschäft: business; geschäftsführer: managing director; gesetz: law; gewicht: weight; gewinn:
profit; grenze: limit; grund: reason; größe: size; gäste: guests; gültig: valid; hafen: harbour port; haften: liable;
haftung: liability; halten: keep; handbuch: manual handbook; handschuh: glove; haus: house; haustier: pet; heizung:
heating; herstellen: manufacture; hersteller: manufacturer; herunterladen: download; hoch: high amount; hochladen:
upload; hund: dog; hunde: dogs; höhe: height amount; impfung: vaccination; jahr: year; jährlich: yearly annual;
kapitän: captain; kaufen: buy; kaution: deposit; keller: basement; kennwort: password; kind: child; kinder: children;
konto: account; kosten: cost price charge fee; kostenlos: free; kostet: cost price charge fee; krank: ill sick;
krankheit: illness; kunde: client customer; kurs: course; kündigen: terminate cancel notice; kündigung: notice
termination; kündigungsfrist: notice period; lager: warehouse; lampe: lamp; lang: long; laufen: run; laufzeit: term
duration; leise: quiet; leistung: power performance; leiten: lead; leiter: head lead; lieferant: supplier; liefern:
deliver; lieferung: delivery; lohn: wage pay; länge: length; lärm: noise; löschen: delete; mahnung: reminder;
medikament: medicine drug; mehrwertsteuer: vat; melden: report; menge: quantity; miete: rent; mieter: tenant;
mietvertrag: lease tenancy; mindestens: least minimum; mitarbeiter: employee staff; mitglied: member; mitnehmen:
bring; monat: month; monatlich: monthly; motor: engine motor; nachricht: message; name: name; netzwerk: network; neu:
new; notfall: emergency; nutzen: use; nutzung: use; ort: place; paket: parcel package; parkplatz: parking; passwort:
password; pause: break; person: person people; pflicht: duty; platz: seat place; porto: postage; praxis: practice
clinic; preis: price cost; produkt: product; protokoll: minutes; prüfung: examination check; rabatt: discount; raum:
room; rechner: computer; rechnung: invoice bill; rechte: rights; regel: rule; registrieren: register; reise: trip
travel; reparatur: repair; reparieren: repair; rezept: prescription; rufen: call; rückerstattung: refund; rückgabe:
return; sagen: say; schaden: damage; schicht: shift; schicken: send; schiff: ship; schlüssel: key; schreiben: write;
schule: school; schulung: training course; schwer: heavy; schützen: protect; selbstbeteiligung: deductible excess;
senden: send; sendung: parcel shipment; sicherheit: security safety; sicherung: backup; spannung: voltage; speichern:
store save; sperren: lock block; sprache: language; stadt: city town; start: start; stelle: job position; steuer:
tax; strafe: penalty fine; straße: street; strom: electricity power; stunde: hour; stück: piece; suchen: search; tag:
day; teil: part; teilnehmen: attend; teilnehmer: participant; telefon: telephone phone; termin: date appointment;
tiefe: depth; tier: animal; tisch: table; treffen: meeting; täglich: daily; tür: door; umsatz: turnover sales; umzug:
move; unfall: accident; unterlage: document; unternehmen: company business; unterschreiben: sign; unterschrift:
signature; unterstützen: support; untervermieten: sublet; urlaub: leave holiday vacation; veranstaltung: event;
verantwortlich: responsible; verboten: forbidden; verbrauch: consumption; verfügbar: available; verfügbarkeit:
availability; vergütung: pay fee; verkaufen: sell; verlieren: lose lost; verlängern: extend renew; verlängerung:
extension renewal; vermieter: landlord; versand: shipping; verschieben: move postpone; versicherung: insurance;
versicherungssumme: sum insured; verspätung: delay; vertrag: contract agreement; verwalten: manage; verzug: delay
default; veröffentlichen: release publish; voraussetzung: requirement; vorname: name; vorschlag: proposal; wagen:
car; warnung: warning; wartung: maintenance; wasser: water; wechseln: change; werkzeug: tool; wert: value; wichtig:
important; widerruf: withdrawal revocation; woche: week; wohnen: live; wohnung: flat apartment; wöchentlich: weekly;
zahl: number; zahlen: pay; zahlung: payment; zahlungsfrist: payment days due; zeit: time; zeugnis: certificate; ziel:
goal target; zimmer: room; zins: interest; zinsen: interest; zoll: customs; zug: train; zugang: access; zulässig:
allowed permitted; zustimmung: consent; zuständig: responsible; zweigstelle: branch; öffnen: open; öffnungszeit:
opening hours; überstunde: overtime
"""
_ENDINGS = ("ern", "est", "en", "em", "er", "es", "et", "st", "te", "e", "n", "s", "t", "")
_LINKS = ("es", "en", "s", "n", "")  # between the parts of a compound
# How English spells the words that both languages have, the longest ending first.
_COGNATES = (
    (r"ität\Z", "ity"), (r"isch\Z", "ic"), (r"ieren\Z", "e"), (r"ie\Z", "y"), (r"iell\Z", "ial"), (r"enz\Z", "ence"),
    (r"z", "c"), (r"k(?!n)", "c"), (r"sch", "sh"), (r"ä", "a"), (r"ö", "o"), (r"ü", "u"),
)  # fmt: skip
_WORD = re.compile(r"[^\W\d_]{3,}")


@cache
def _english() -> dict[str, list[str]]:
    """The English terms by German word, and by its stem."""
    table: dict[str, list[str]] = {}
    for word, said in _entries():
        for key in (word, *(word[: -len(end)] for end in ("en", "e", "n") if word.endswith(end))):
            if len(key) >= LEAST_STEM:
                table.setdefault(key, said)
    return table


@cache
def _german() -> dict[str, list[str]]:
    """The German terms by English term."""
    table: defaultdict[str, list[str]] = defaultdict(list)
    for word, said in _entries():
        for term in said:
            table[term] += terms(word)
    return dict(table)


def _entries() -> Iterator[tuple[str, list[str]]]:
    """Yield the German words, each with its English terms."""
    for entry in _DICTIONARY.split(";"):
        word, _, said = entry.partition(":")
        yield word.strip(), terms(said)


def translations_of(question: str) -> dict[str, dict[str, float]]:
    """Return the terms of a German or English question with those of the other language and their weights."""
    language = language_of_question(question)
    if language not in ("de", "en"):
        return {}
    found: dict[str, dict[str, float]] = {}
    for word in _WORD.findall(question):
        for term in terms(word):
            said = _german().get(term, ()) if language == "en" else _in_english(word.lower())
            if others := [other for other in said if other != term]:
                found[term] = dict.fromkeys(others, TRANSLATED)
    return found


def _in_english(word: str) -> list[str]:
    """Return the English terms for a German word: of the dictionary, of its parts, and as English spells it."""
    if said := _known(word):
        return said
    for place in range(LEAST_STEM, len(word) - LEAST_PART + 1):
        if last := _known(word[place:]):
            first = next((said for link in _LINKS if (said := _known(word[:place].removesuffix(link)))), [])
            return [*first, *last]
    spelled = word if len(word) >= LEAST_COGNATE else ""
    for pattern, english in _COGNATES:
        spelled = re.sub(pattern, english, spelled)
    return terms(spelled)


def _known(word: str) -> list[str]:
    """Return the English terms of a word in one of its forms, a participle among them."""
    if word.startswith("ge") and word.endswith(("t", "en")) and (said := _known(word.removeprefix("ge"))):
        return said
    stems = (stem for end in _ENDINGS if word.endswith(end) and len(stem := word[: len(word) - len(end)]) >= LEAST_STEM)
    table = _english()
    return table.get(word) or next((table[stem] for stem in sorted(stems, key=len, reverse=True) if stem in table), [])
