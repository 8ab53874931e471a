"""A report of an invented place, as a finished run has it: sections, a table, lists, 29 claims with verdicts."""

from __future__ import annotations

import hashlib

from fathom.evidence.claims import claims_of, marked
from fathom.models import (
    Answered,
    Contradiction,
    Making,
    Phase,
    Report,
    ReportSection,
    Source,
    StepCoverage,
    ToolFailure,
)
from fathom.models.evidence import Claim, Corroboration, Judgement, Quote, SourceQuality, Verdict
from fathom.models.plan import StepStatus

__all__ = ["PHASES", "sample_report"]

_SOURCES = [
    ("https://ports.example.gov/merrin/lagoon-2024", "Port Merrin tidal lagoon: annual statement 2024", "2024-11-18"),
    ("https://journal.example.org/tidal/14/3", "Yield of small tidal lagoons: a ten-year record", "2023-05"),
    ("https://news.example.com/merrin-turbine-repair", "Merrin lagoon idle for eleven weeks after gate fault", "2022"),
    ("https://standards.example.org/tl-210", "TL 210: Turbine gates in saline basins", "2019-02-01"),
    ("https://merrinpower.example.com/facts", "Merrin Power: facts and figures", ""),
    ("file:///archive/council-minutes.pdf", "Council minutes, meetings 61 to 74", "2021-09-30"),
    ("https://forum.example.net/t/8812", "Is the lagoon worth it? (forum thread)", "2020"),
    ("https://encyclopedia.example.org/Port_Merrin", "Port Merrin", "2024-01-09"),
]
_TYPES = ["government", "academic", "news", "standards", "company", "document", "forum", "encyclopedia"]
_OVERALL = [0.91, 0.88, 0.71, 0.8, 0.52, 0.77, 0.31, 0.64]
_IDS = [f"S{hashlib.sha256(url.encode()).hexdigest()[:6]}" for url, _, _ in _SOURCES]

_SUMMARY = """\
The lagoon at Port Merrin has covered its running cost in **six of nine years**, and has not yet earned back what it
cost to build [{0}][{1}]. The two best sources disagree on what the 2022 repair cost, and none says what the gates will
cost to replace [{2}]."""

_SECTIONS = [
    ("In short", _SUMMARY),
    (
        "What it produces",
        """\
The lagoon delivered 61.4 GWh in 2024, its best year so far [{0}]. Over nine years the mean was 54 GWh [{0}][{1}].
About a tenth of that is lost to *pumping at neap tide* [{1}].

| Year | Output (GWh) | Hours idle | Price (per MWh) |
|---|--:|--:|--:|
| 2021 | 55.2 | 310 | 58 [{0}] |
| 2022 | 38.9 | 2,204 | 121 [{0}] |
| 2023 | 57.0 | 402 | 94 [{0}] |
| 2024 | 61.4 | 288 | 77 [{0}] |

The operator states a capacity of 41 MW [{4}]. Independent measurements put the usable capacity at 32 MW [{1}].""",
    ),
    (
        "What it costs",
        """\
Construction came to 214 million, a third more than the council had approved in 2013 [{5}]. The loan runs until 2043
and takes 7.1 million a year [{5}].

Running cost falls into three parts:

- Maintenance of the gates takes 1.9 million a year [{0}].
- Dredging takes `0.8` million in most years [{0}].
- Insurance has doubled since the repair of 2022 [{2}].

The repair of 2022 cost 4.2 million [{2}]. Users of a local forum believe that it never made a profit [{6}].""",
    ),
    (
        "What wears out",
        """\
### Gates

Turbine gates in saline basins are to be replaced after 25 years [{3}]. One gate jammed in March 2022, and the lagoon
stood idle for eleven weeks [{2}]. The fault was foreseen in the minutes of 2019 [{5}].

### Basin

Silt has taken 3 % of the basin's volume since 2015 [{1}][{0}]. The basin will have to be emptied twice before 2040.

> "No basin of this size has been emptied under load." [{3}]""",
    ),
    (
        "What it means for the town",
        """\
Port Merrin had 18,300 inhabitants when the lagoon opened [{7}]. Forty-two people work at the lagoon all year [{4}].

1. The town owns 60 % of the operator [{5}].
2. Households pay 8 % less for electricity than the region does on average [{4}][{7}].
3. The promenade on the wall counts 210,000 visitors a year [{7}].""",
    ),
]

_VERDICTS = {  # of the claims that are not simply supported, by how they begin
    "Over nine years": (Verdict.contradicted, Corroboration.contradicted, [], 0.48),
    "The operator states": (Verdict.supported, Corroboration.contradicted, [], 0.83),
    "The loan runs": (Verdict.not_checked, Corroboration.single_source, [], 0.55),
    "Dredging": (Verdict.not_stated, Corroboration.unverified, ["`0.8` stands nowhere in its sources"], 0.42),
    "The repair of 2022": (Verdict.supported, Corroboration.contradicted, [], 0.9),
    "The fault was foreseen": (
        Verdict.not_stated,
        Corroboration.unverified,
        ["2019 stands nowhere in its sources"],
        0.21,
    ),
    "The basin will": (Verdict.not_checked, Corroboration.unverified, [], 0.0),
}
_AGAINST = {
    "Over nine years": (1, "The mean of the eight years from 2016 was 54 GWh."),
    "The operator states": (
        1,
        "Independent measurements put the usable capacity at 32 MW in every year but the first.",
    ),
    "The repair of 2022": (0, "In 2022 the gates were repaired for 5.6 million."),
}


def sample_report() -> Report:
    """Return the report."""
    written = [ReportSection(heading=heading, markdown=text.format(*_IDS)) for heading, text in _SECTIONS]
    claims = _claims(written)
    objected = {claim.sentence: claim.verdict for claim in claims if claim.verdict.objects}
    sections = [part.model_copy(update={"markdown": marked(part.markdown, objected)}) for part in written]
    sources = [
        Source(source_id=i, url=url, title=title, kind="web" if url.startswith("http") else "document", published=date)
        for i, (url, title, date) in zip(_IDS, _SOURCES, strict=True)
    ]
    return Report(
        title="Does the tidal lagoon at Port Merrin pay off?",
        query="Does the tidal lagoon at Port Merrin pay off, for its operator and for the town? Figures since 2015.",
        extractive=False,
        sections=sections,
        sources=sources,
        claims=claims,
        qualities=_qualities(),
        warnings=[
            "This sentence cites a source that says otherwise: “Over nine years the mean was 54 GWh.”",
            "1 claim cites “Is the lagoon worth it? (forum thread)”, a forum.",
            "“TL 210: Turbine gates in saline basins” is from 2019 and may be outdated: look for a newer one.",
        ],
        open_questions=["What will it cost to replace the gates?", "Who pays for emptying the basin?"],
        contradictions=[
            Contradiction(
                claim_a="The repair of 2022 cost 4.2 million",
                claim_b="In 2022 the gates were repaired for 5.6 million",
                source_ids=[_IDS[2], _IDS[0]],
                other_source_ids=[_IDS[0]],
            ),
            Contradiction(
                claim_a="Capacity: 41 MW",
                claim_b="Usable capacity is 32 MW",
                source_ids=[_IDS[4], _IDS[1]],
                other_source_ids=[_IDS[1]],
            ),
        ],
        coverage=_coverage(),
        limitations=["About 96,000 tokens of the sources were passed over as less relevant before they were read."],
        next_steps=["Search for: price of turbine gates in saline basins"],
        answered=Answered.partly,
        made=Making(
            as_of="2026-03-02", model="example/writer-1", llm_calls=48, tool_calls=17, cost_usd=0.2131, seconds=94.2
        ),
    )


PHASES = [
    Phase(name="planner", calls=1, seconds=6.2, cost_usd=0.0041, tokens=2_100),
    Phase(name="compressor", calls=36, seconds=118.0, cost_usd=0.1204, tokens=148_300),
    Phase(name="critic", calls=2, seconds=11.1, cost_usd=0.0126, tokens=9_800),
    Phase(name="section", calls=9, seconds=52.1, cost_usd=0.076, tokens=41_700),
]


def _claims(sections: list[ReportSection]) -> list[Claim]:
    claims: list[Claim] = []
    for number, found in enumerate(claims_of(sections), 1):
        sentence, ids = found.sentence, found.source_ids
        start = next((start for start in _VERDICTS if sentence.startswith(start)), "")
        corroboration = Corroboration.verified if len(ids) > 1 else Corroboration.single_source
        verdict, corroboration, complaints, score = _VERDICTS.get(start, (Verdict.supported, corroboration, [], 0.86))
        judged = Judgement(verdict=verdict, model="example/judge-1", reason="It is a mean of eight years, not of nine.")
        claims.append(
            Claim(
                number=number,
                section=found.section,
                sentence=sentence,
                source_ids=list(ids),
                verdict=verdict,
                score=score,
                quotes=[_quote(i, f"According to the statement, {sentence}") for i in ids],
                complaints=complaints,
                corroboration=corroboration,
                contradicting=[_quote(_IDS[_AGAINST[start][0]], _AGAINST[start][1])] if start in _AGAINST else [],
                judgement=judged if start == "Over nine years" else None,
            )
        )
    return claims


def _quote(source_id: str, text: str) -> Quote:
    plain = text.replace("*", "").replace("`", "")
    return Quote(
        source_id=source_id,
        artifact_file="port_merrin_lagoon__step2_running_cost__web_search.json",
        start=1_184,
        end=1_184 + len(plain),
        sha256=hashlib.sha256(source_id.encode()).hexdigest(),
        text=plain,
        retrieved="2026-03-02T09:14:07Z",
        before="The statement lists what follows. ",
        after=" Further figures stand in the annex.",
        headings=["Annual statement", "Operation"],
    )


def _qualities() -> list[SourceQuality]:
    return [
        SourceQuality.model_validate(
            {
                "source_id": source_id,
                "type": kind,
                "credibility": overall,
                "relevance": 0.8,
                "recency": 0.6,
                "corroboration": 0.5,
                "overall": overall,
                "published": published[:4] and (published + "-01-01")[:10],
                "flags": ["low_authority", "outdated"] if kind == "forum" else [],
            }
        )
        for source_id, kind, overall, (_, _, published) in zip(_IDS, _TYPES, _OVERALL, _SOURCES, strict=True)
    ]


def _coverage() -> list[StepCoverage]:
    rows = [
        ("Output of the lagoon since it opened", StepStatus.done, 4, 4, 3),
        ("Cost of building and running it", StepStatus.done, 5, 3, 4),
        ("Wear of gates and basin", StepStatus.done, 4, 2, 3),
        ("Effects on the town and its households", StepStatus.done, 3, 2, 2),
        ("Price of replacing the gates", StepStatus.blocked, 1, 0, 0),
    ]
    failed = [ToolFailure(code="E3002", message="web_search: no answer within 20 seconds")]
    return [
        StepCoverage(
            step_id="R2_1" if status is StepStatus.blocked else number,
            title=title,
            status=status,
            calls=calls,
            useful_notes=notes,
            sources=sources,
            failures=failed if status is StepStatus.blocked else [],
        )
        for number, (title, status, calls, notes, sources) in enumerate(rows, 1)
    ]
