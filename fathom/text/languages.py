"""The language of a text: for the `lang` attribute of HTML, and to tell a question's language from its sources'."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Set
from functools import cache

ENOUGH = 2  # weight of a question's words from which they tell its language
LEAST_KANA = 0.05  # of Japanese characters; a Chinese text may quote a word with kana
LONG = 6  # characters from which on the ending of a word tells
_WORD = re.compile(r"[^\W\d_]+")
_LEAST = 0.08  # share of function words below which no language is guessed
_SCRIPTS = {  # of one language each, or nearly; kana come first, because Japanese uses Han characters too
    "ja": r"[\u3040-\u30ff]",
    "ko": r"[\uac00-\ud7af]",
    "zh": r"[\u4e00-\u9fff]",
    "el": r"[\u0370-\u03ff]",
    "he": r"[\u0590-\u05ff]",
    "ar": r"[\u0600-\u06ff]",
    "th": r"[\u0e00-\u0e7f]",
}
_FUNCTION_WORDS = {
    "en": "the of and to in is that for with was are this from",
    "de": "der die das und ist nicht mit den von ein eine auf wird",
    "fr": "le les des est une dans que pour qui par sur du et",
    "es": "el los las una que por con para del es se en y",
    "it": "il gli che della una per di sono con nel è e",
    "pt": "o os uma que não com para do da em é e dos",
    "nl": "het een van de niet zijn op met voor dat en is",
}
_ASKING_WORDS = {  # a question is too short for the words above alone
    "en": """
        how what who whom whose why when where which does do did can could should would will has have had i my me we our
        you your it its not or by at as be am all any many much more most less between without than about come also his
        her he she they their there an a on into
    """,
    "de": """
        wie lang lange oft was wer wem wen wessen wo wann warum wieso weshalb wohin woher womit welche welcher welches
        welchen welchem wieviel kann können muss darf soll sollte gibt hat haben habe bin sind war ich wir mein meine
        mich man im am zum zur bei für über nach aus vom als oder auch nicht kein keine viel viele einem einer eines
        zwischen ohne ist
    """,
    "fr": """
        comment quoi pourquoi quand quel quelle quels quelles lequel laquelle lesquels lesquelles qui que où combien un
        je nous vous mon ma mes notre votre de la le l d qu au aux ce cette ces ou pas plus moins entre avec sans être
        est sont peut faut doit puis à il elle
    """,
    "es": """
        cómo qué quién quiénes cuándo dónde cuál cuáles cuánto cuánta cuántos cuántas un de la del al lo su sus mi mis
        tengo tiene puedo puede hay debe debo está están es son fue ser más menos entre sin como cuando donde quien y
    """,
    "it": """
        come cosa chi perché quando dove quale quali quanto quanti quanta quante un il lo la i di del dello dei degli
        delle dell al alla dal dalla nella sul sulla tra fra mi mio mia ci si posso può devo deve ho ha hanno sono è più
        meno senza fa o
    """,
    "pt": """
        como quê quem quando onde qual quais quanto quanta quantos quantas um de o a do dos das no nos na nas ao aos meu
        minha posso pode devo deve há tem tenho está estão foi ser você mais menos entre sem por que faz
    """,
    "nl": """
        hoe wat wie waarom wanneer waar waarmee welke welk hoeveel kan kun moet mag ik wij we ons onze mijn je jij u er
        heeft heb hebben is zijn aan bij naar uit over tussen zonder meer minder gaat van of
    """,
}
_ASKED_WORDS = {  # what questions often ask for
    "en": """
        best better cheap cheapest compare difference list latest new explain show give name cost costs price comment
        hat man use work works
    """,
    "de": """
        mehr weniger beste besten besser günstig günstige vergleiche vergleich unterschied erkläre nenne zeige liste
        kosten kostet preis funktioniert gehört
    """,
    "fr": """
        fonctionne meilleur meilleure meilleurs meilleures compare comparer comparez différence liste explique expliquez
        coûte coût prix
    """,
    "es": "funciona mejor mejores compara comparar diferencia explica lista cuesta cuestan precio",
    "it": "funziona migliore migliori miglior meglio confronta differenza spiega elenca costa costano prezzo bene",
    "pt": "funciona melhor melhores compare compara diferença explique liste custa custam preço bem",
    "nl": "beste goedkope goedkoopste vergelijk verschil noem leg kost kosten prijs werkt werken",
}
_GRAMMAR = {tag: frozenset(f"{words} {_ASKING_WORDS[tag]}".split()) for tag, words in _FUNCTION_WORDS.items()}
_ENDINGS = {  # of long words
    "de": "ungen ung keit keiten heiten schaft",
    "fr": "euse euses eaux tés",
    "es": "ción ciones dades",
    "it": "zione zioni mente tà",
    "pt": "ção ções dade dades",
    "nl": "heid heden ingen lijke lijk",
}
_LETTERS = {"de": "ßäöü", "fr": "œçêûî", "es": "¿¡ñ", "it": "òì", "pt": "ãõç"}
LANGUAGES = {
    "ja": "Japanese",
    "ko": "Korean",
    "zh": "Chinese",
    "el": "Greek",
    "ar": "Arabic",
    "he": "Hebrew",
    "th": "Thai",
    "en": "English",
    "de": "German",
    "fr": "French",
    "es": "Spanish",
    "it": "Italian",
    "pt": "Portuguese",
    "nl": "Dutch",
}
"""English names of the languages, by tag."""


def language_tag(text: str) -> str:
    """Return the language tag of a text, such as `en`, or nothing when it is not clear."""
    return _told_by_script(text) or _told_by_words(text, _FUNCTION_WORDS)


def language_of_question(question: str) -> str:
    """Return the language tag of a question, told by its question words too, or nothing when it is not clear."""
    said = [word for n, word in enumerate(_WORD.findall(question)) if n == 0 or word[0].islower()]  # the rest are names
    words = set(" ".join(said).lower().split())
    found = {tag: sum(weights.get(word, 0) for word in words) for tag, weights in _weights().items()}
    if script := _told_by_script(question, among_names=not any(found.values())):
        return script
    for tag, endings in _ENDINGS.items():
        found[tag] += sum(len(word) > LONG and word.endswith(tuple(endings.split())) for word in words)
    for tag, letters in _LETTERS.items():
        found[tag] += not set(letters).isdisjoint(question[:1] + "".join(words))
    first, second = sorted(found, key=lambda tag: -found[tag])[:2]
    # One word may be a name: "Die Hard", "Los Angeles".
    return first if found[first] >= ENOUGH and found[first] > found[second] else ""


def words_of_asking(question: str) -> Set[str]:
    """Return the words of a question's language that only ask or join; none for English or if it is not clear."""
    tag = language_of_question(question)
    return _GRAMMAR.get(tag, frozenset()) if tag != "en" else frozenset()


@cache
def _weights() -> dict[str, dict[str, int]]:
    """Return for each language how much a word tells: two if it asks and no other language has it, else one."""
    asking = {tag: {*_ASKING_WORDS[tag].split(), *words.split()} for tag, words in _ASKED_WORDS.items()}
    own = {tag: words | asking[tag] for tag, words in _GRAMMAR.items()}
    languages = Counter(word for words in own.values() for word in words)
    return {tag: {w: 2 if languages[w] == 1 and w in asking[tag] else 1 for w in words} for tag, words in own.items()}


def _told_by_script(text: str, *, among_names: bool = False) -> str:
    """Return the language of a script that has over a quarter of the letters, or a sixth if the others are names."""
    letters = sum(map(str.isalpha, text))
    found = {tag: len(re.findall(script, text)) for tag, script in _SCRIPTS.items()}
    if found["ja"] > LEAST_KANA * (found["ja"] + found["zh"]):
        found["ja"] += found["zh"]
    return next((tag for tag, number in found.items() if number > letters / (6 if among_names else 4)), "")


def _told_by_words(text: str, known: Mapping[str, str]) -> str:
    words = Counter(_WORD.findall(text.lower()))
    total = sum(words.values())
    shares = {tag: sum(words[word] for word in set(own.split())) for tag, own in known.items()}
    best = max(shares, key=lambda tag: shares[tag])
    return best if shares[best] > total * _LEAST else ""
