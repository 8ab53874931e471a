"""What texts say where a question says something else: "place of birth" is answered by "born in".

A question names a relation by its noun, a text tells it by its verb, or the other way round, and family relations are
told from the other end. Related terms count half; what the question itself says counts whole.
"""

from __future__ import annotations

from functools import cache

from fathom.text.terms import terms

_RELATED = """
birth: born; born: birth; death: died dead; die: death died; died: death; spouse: wife husband married; husband:
married wife spouse; wife: married husband spouse; marry: married wife husband; married: wife husband; father: son
daughter; mother: son daughter; grandfather: father son daughter; grandmother: mother son daughter; parents: son
daughter father mother; child: son daughter; stepchild: son daughter married; son: father mother; daughter: father
mother; sibling: brother sister; director: directed; directed: director; author: wrote written writer; writer: wrote
written; wrote: written author writer; written: wrote author; composer: composed music; composed: composer;
performer: performed singer band song; performed: singer performer; singer: sang sung performed; producer: produced;
creator: created; inventor: invented; founder: founded established; founded: founder established; publisher:
published; published: publisher publication; owner: owned; owns: owned; record: recorded label; label: record;
league: team club; team: club; plays: player; older: born; younger: born; earlier: born died; later: born died;
nationality: born; citizenship: born; country: born nationality; school: university college educated; educated:
university school college; studied: university; employer: worked; occupation: profession career; buried: grave
cemetery tomb; burial: buried cemetery; location: located; population: inhabitants people; capital: city; border:
bordering; height: tall high; length: long; mouth: flows; start: began begin; decide: decision decided agreed;
decided: decision agreed; decision: decided agreed; expensive: cost costs price; price: cost charge; reason: because
due; cause: because reason due; increase: rise rose raised; rise: increase rose raised; delivered: delivery;
delivery: delivered; problem: failure fault; begin: began started; end: ended; happen: occurred; effect: result;
cost: price; election: elected; look: lookup search; lookup: access find resolve search; difference: differ unlike
whereas; winner: won; win: won; won: winner win; film: movie; movie: film; geburt: geboren; geboren: geburt; tod:
gestorben starb; gestorben: tod starb; autor: geschrieben schrieb; gründer: gegründet gründete; einwohner:
bevölkerung; bevölkerung: einwohner
"""


@cache
def _table() -> dict[str, tuple[str, ...]]:
    table: dict[str, tuple[str, ...]] = {}
    for entry in _RELATED.split(";"):
        asked, _, said = entry.partition(":")
        for language in ("english", "german"):
            [term] = terms(asked, language)
            table[term] = tuple(dict.fromkeys([*table.get(term, ()), *terms(said, language)]))
    return table


def related_terms(term: str) -> tuple[str, ...]:
    """Return the terms that texts use where a question uses this one."""
    return _table().get(term, ())
