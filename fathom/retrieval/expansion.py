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
published; published: publisher publication; owner: owned; owns: owned owner; record: recorded label; label: record;
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
bevölkerung; bevölkerung: einwohner;
default: otherwise unset omitted; limit: maximum max cap restrict; maximum: limit max; minimum: least min oldest
lowest; max: maximum limit; min: minimum; oldest: minimum earliest; latest: newest recent last current; highest:
maximum max top; lowest: minimum min; timeout: expire expiration lifetime wait; expire: lifetime expiration timeout;
long: time seconds minutes hours days lifetime duration; setting: option parameter configuration variable flag;
option: flag parameter setting argument switch; flag: option switch; parameter: option argument setting; configure:
set setting configuration; configuration: config setting; config: configuration; install: installation dependency;
dependency: require requirement; package: library dependency distribution; require: need necessary; need: require
necessary; mandatory: required; run: execute command start invoke; command: run execute; execute: run; start: run
launch begin; launch: start run; stop: shut terminate kill end; restart: reboot reload; reload: restart refresh;
enable: activate allow turn; disable: deactivate; turn: enable disable switch; remove: delete drop removed deprecated;
delete: remove; drop: remove removed discontinued; dropped: removed; create: generate make new add; generate: create
make; make: create; add: include create; error: failure exception fail; fail: error failure; failure: error fail;
code: status; status: code state; allowed: permitted; permitted: allowed; allow: permit enable; forbidden: prohibited;
change: modify update edit; modify: change edit; update: change upgrade new; upgrade: update; publish: release;
published: release released; release: published version; version: release; cost: price fee; price: cost; pay: cost
payment paid reimburse; paid: pay; fee: cost charge; responsible: owner own
charge lead maintain; owner: own responsible charge lead maintainer; own: owner owned responsible charge lead
maintainer; maintain: maintainer owner responsible; charge: responsible lead owner; lead: responsible owner charge;
decide: agree consensus decision approve; decision: agreed
consensus; agree: decide consensus approve; vote: approve ballot; report: disclose submit send file; submit: send file
report; send: submit request; check: verify validate test confirm; verify: check validate; test: check verify;
validate: check verify; save: store write keep; store: save keep; keep: store retain; retain: keep retention;
retention: keep stored; show: display print output; display: show print; print: show output display; output: print
result; retry: transient; retries: retry; help: support assist; support: help compatible; contact: email reach ask;
ask: contact request; meeting: minutes sync agenda; join: become member; leave: absence vacation; vacation: leave;
holiday: leave; absence: leave; sick: illness medical; count: number total; number: count total; total: sum number;
amount: sum quantity; size: bytes large; large: big size; big: large size; memory: ram bytes; difference: differ
compared unlike versus; use: usage using; usage: use; meaning: mean means stand denote indicate; mean: indicate
represent denote; stand: mean; represent: mean denote; folder: directory; directory: folder path; file: path document;
website: site url; url: address link; rename: name; shorten: reduce; reduce: lower decrease; lower: reduce; often:
every frequency interval; frequency: interval every; interval: every frequency; recommended: should prefer advise;
recommend: should advise; advise: recommend should; should: recommended; why: because reason; safe: secure; secure:
safe security; security: secure vulnerability; vulnerability: security; hole: vulnerability; bug: issue defect; issue:
bug problem; sign: signature; signature: sign; key: token secret; password: credential; log: record; deadline: due
date; due: deadline; handed: submit due; notes: note documentation; document: documentation doc; documentation: docs
document; ends: finish complete; finish: complete end; complete: finish done; quick: fast; speed: fast rate; machine:
host server computer; server: host; host: server; computer: machine; people: person persons member user respondents;
person: people individual; member: people; somebody: person; watch: observe attend; observe: watch; attend: join
participate; participate: take join attend; part: participate participation join; look: lookup resolve search find;
find: locate search; held: hold; hold: held; resolve: lookup; receipt: proof;
loud: noise sound; heavy: weight weigh; weigh: weight mass; weight: weigh heavy; tall: height high; high: height tall;
deep: depth; wide: width broad; thick: thickness; fast: speed; headquarters: office seat base; design: designer
architect plan; architect: design designer; sell: sale product; sold: sale sell; built: build construction; build:
built construction; buy: purchase buyer; live: inhabitants residents population reside; inhabitants: population
residents people; residents: inhabitants population people; turnover: sales revenue; revenue: turnover sales income;
profit: earnings income; employees: staff workforce; staff: employees workforce; employ: staff employees workforce;
chief: head lead director; head: chief lead director; run: lead head chief; nest: breed; describe: description;
boss: chief head director executive manager; manager: head chief; executive: chief; vessel: ship boat; ship: vessel
boat; boat: ship vessel ferry; wharf: quay pier dock; quay: wharf pier; pier: quay wharf; guarantee: warranty; warranty:
guarantee; product: makes produces manufactures; manufacturer: maker makes; maker: manufacturer makes; business:
company firm; company: firm business; firm: company business; vehicle: car; engine: motor; motor: engine; quiet: noise
sound; noise: loud sound; loudness: noise; discover: described found discovery; discovery: discovered described;
equipment: device gear; tolerate: allow permit exceed; exceed: above maximum; inspect: check inspection; inspection:
check inspect; check: inspect inspection; toll: charge fee; fare: ticket price; ticket: fare; dues: fee charge; ride:
crossing journey trip; trip: journey crossing; journey: trip ride; depart: leave departure; departure: leave departs;
earliest: first; first: earliest; fewest: least; largest: biggest longest main; biggest: largest longest; longest:
largest; smallest: shortest least; shop: store buy market; stall: market; market: stall; breed: nest; payroll: employees
staff; headcount: employees staff; workers: employees staff; illness: disease; disease: illness; drug: medicine;
medicine: drug; kids: children; repair: fix; fix: repair; fault: failure defect; manual: guide handbook; handbook: guide
manual; rule: regulation requirement; regulation: rule; picture: image photo; photo: picture image; pupils: students;
students: pupils; phone: telephone; earn: profit income pay; income: revenue profit; situated: located lies; crossing:
cross passage; cross: crossing; opened: open inaugurated; inaugurated: opened; collapse: fell
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
