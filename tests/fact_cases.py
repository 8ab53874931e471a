"""What services of facts answer, in the shape that each documents, about things that we made up; see `lookup_cases`."""

from __future__ import annotations

import json

from tests.lookup_cases import Case

__all__ = ["FACT_CASES"]

_FOUND_PAGES = {"batchcomplete": True, "query": {"searchinfo": {"totalhits": 1}, "search": [{"ns": 0, "title": "%s"}]}}
_FOUND_NONE = json.dumps({"batchcomplete": True, "query": {"search": []}})


def _found(title: str) -> str:
    return json.dumps(_FOUND_PAGES).replace("%s", title)


ARTICLE = {
    "batchcomplete": True,
    "query": {
        "pages": [
            {
                "pageid": 7,
                "ns": 0,
                "title": "Fen Lake",
                "extract": "Fen Lake is a lake.\n\n\n== Tides ==\nIt rises by 0.4 m.\n\n\n=== Cause ===\nWind.",
                "contentmodel": "wikitext",
                "fullurl": "https://en.wikipedia.org/wiki/Fen_Lake",
                "revisions": [{"timestamp": "2025-02-03T04:05:06Z"}],
            }
        ]
    },
}


def _statement(
    property_id: str, kind: str, value: object, rank: str = "normal", **qualifiers: str
) -> dict[str, object]:
    snak = {"snaktype": "value", "property": property_id, "datatype": kind, "datavalue": {"value": value, "type": "x"}}
    times = {
        name: [{"snaktype": "value", "datavalue": {"value": {"time": time, "precision": 9}, "type": "time"}}]
        for name, time in qualifiers.items()
    }
    return {"mainsnak": snak, "type": "statement", "rank": rank, "qualifiers": times}


def _labels(**named: str) -> str:
    entities = {
        i: {"type": "item", "id": i, "labels": {"en": {"language": "en", "value": n}}} for i, n in named.items()
    }
    return json.dumps({"entities": entities, "success": 1})


ENTITY = {
    "success": 1,
    "entities": {
        "Q42": {
            "type": "item",
            "id": "Q42",
            "labels": {"en": {"language": "en", "value": "Fen Lake"}},
            "descriptions": {"en": {"language": "en", "value": "lake in the fens"}},
            "claims": {
                "P31": [_statement("P31", "wikibase-item", {"entity-type": "item", "numeric-id": 5, "id": "Q5"})],
                "P1082": [
                    _statement("P1082", "quantity", {"amount": "+90", "unit": "1"}, P585="+1990-00-00T00:00:00Z"),
                    _statement(
                        "P1082", "quantity", {"amount": "+120", "unit": "1"}, "preferred", P585="+2020-00-00T00:00:00Z"
                    ),
                ],
                "P2043": [
                    _statement(
                        "P2043", "quantity", {"amount": "+3.5", "unit": "http://www.wikidata.org/entity/Q828224"}
                    )
                ],
                "P571": [_statement("P571", "time", {"time": "-0044-03-15T00:00:00Z", "precision": 11})],
                "P575": [_statement("P575", "time", {"time": "+1850-00-00T00:00:00Z", "precision": 7})],
                "P625": [_statement("P625", "globe-coordinate", {"latitude": 52.5, "longitude": -0.25})],
                "P214": [_statement("P214", "external-id", "123456")],
                "P20": [{"mainsnak": {"snaktype": "somevalue", "property": "P20"}, "rank": "normal"}],
                "P21": [_statement("P21", "string", "an old word", "deprecated")],
            },
        },
    },
}
NAMES = _labels(P31="instance of", Q5="lake", P1082="population", P2043="length", Q828224="kilometre", P571="inception",
                P575="discovery", P625="coordinates")  # fmt: skip
LINES = """Fen Lake: lake in the fens

Fen Lake, instance of: lake

Fen Lake, population: 120 (2020)

Fen Lake, length: 3.5 kilometre

Fen Lake, inception: 44-03-15 BC

Fen Lake, discovery: about 1850

Fen Lake, coordinates: 52.5000, -0.2500 (latitude, longitude)"""

REPOSITORIES = {
    "total_count": 1,
    "incomplete_results": False,
    "items": [
        {
            "id": 1,
            "full_name": "fen/tides",
            "html_url": "https://github.com/fen/tides",
            "description": "Tides of lakes",
            "language": "Python",
            "license": {"key": "mit", "spdx_id": "MIT"},
            "stargazers_count": 1234,
            "forks_count": 5,
            "topics": ["lakes"],
            "homepage": None,
            "archived": True,
            "created_at": "2020-01-02T00:00:00Z",
            "pushed_at": "2025-03-04T00:00:00Z",
        }
    ],
}
QUESTIONS = {
    "items": [
        {
            "question_id": 11,
            "title": "Why does tide() &quot;fail&quot;?",
            "body": "<p>It says <code>wet &lt; dry</code>.</p><pre><code>tide()\n</code></pre>",
            "link": "https://stackoverflow.com/questions/11/why",
            "score": 3,
            "creation_date": 1600000000,
            "owner": {"display_name": "Ada B.", "user_id": 1},
            "content_license": "CC BY-SA 4.0",
        }
    ],
    "has_more": False,
    "quota_max": 300,
    "quota_remaining": 299,
}
ANSWERS = {
    "items": [
        {"question_id": 11, "answer_id": 1, "body": "<p>No idea.</p>", "score": 9, "owner": {}, "is_accepted": False},
        {
            "question_id": 11,
            "answer_id": 2,
            "body": "<p>Pour water in.</p>",
            "score": 2,
            "creation_date": 1700000000,
            "owner": {"display_name": "B &amp; C"},
            "is_accepted": True,
        },
    ],
    "has_more": False,
    "quota_remaining": 298,
}
COMPANIES = {
    "0": {"cik_str": 42, "ticker": "FENN", "title": "Fen Lake Inc."},
    "1": {"cik_str": 43, "ticker": "LK", "title": "MARSH CORP"},
}
RECORD = {
    "cik": "42",
    "name": "Fen Lake Inc.",
    "tickers": ["FENN"],
    "sicDescription": "Water Supply",
    "fiscalYearEnd": "1231",
    "stateOfIncorporationDescription": "DE",
    "filings": {
        "recent": {
            "accessionNumber": ["0000000042-25-000009", "0000000042-25-000007", "0000000042-25-000001"],
            "filingDate": ["2025-05-01", "2025-04-01", "2025-02-01"],
            "reportDate": ["2025-03-31", "", "2024-12-31"],
            "form": ["10-Q", "4", "10-K"],
            "primaryDocument": ["q.htm", "own.xml", "k.htm"],
            "primaryDocDescription": ["10-Q", "OWNERSHIP", "ANNUAL REPORT"],
        },
        "files": [],
    },
}
YEARLY = {"form": "10-K", "fp": "FY", "filed": "2025-02-01"}
INCOME = {
    "cik": 42,
    "taxonomy": "us-gaap",
    "tag": "NetIncomeLoss",
    "label": "Net Income (Loss)",
    "units": {
        "USD": [
            {"start": "2023-01-01", "end": "2023-12-31", "val": 1000000, **YEARLY, "filed": "2024-02-01"},
            {"start": "2024-01-01", "end": "2024-12-31", "val": -2500000, **YEARLY},
            {"start": "2024-10-01", "end": "2024-12-31", "val": 7, **YEARLY},
        ]
    },
}
HITS = {
    "took": 5,
    "hits": {
        "total": {"value": 1, "relation": "eq"},
        "hits": [
            {
                "_id": "0000000042-24-000003:ex99.htm",
                "_source": {
                    "ciks": ["0000000042"],
                    "adsh": "0000000042-24-000003",
                    "form": "8-K",
                    "file_date": "2024-03-04",
                    "period_ending": None,
                    "file_description": "PRESS RELEASE",
                    "display_names": ["Fen Lake Inc.  (FENN)  (CIK 0000000042)"],
                },
            }
        ],
    },
}
FIGURES = """Fen Lake Inc., ticker: FENN

Fen Lake Inc., industry: Water Supply

Fen Lake Inc., incorporated in: DE

Fen Lake Inc., net income (profit), fiscal year to 2024-12-31: -2,500,000 USD (10-K of 2025-02-01)

Fen Lake Inc., net income (profit), fiscal year to 2023-12-31: 1,000,000 USD (10-K of 2024-02-01)

Fen Lake Inc. filed the form 10-Q on 2025-05-01 for the period to 2025-03-31.

Fen Lake Inc. filed the form 10-K on 2025-02-01 for the period to 2024-12-31: ANNUAL REPORT."""
_CONCEPT = "/api/xbrl/companyconcept/CIK0000000042/us-gaap"
_NO_FIGURE = json.dumps({"tag": "Assets", "units": {}})
_ARCHIVE = "https://www.sec.gov/Archives/edgar/data/42"

FACT_CASES = [
    Case(
        tool="wikipedia",
        query="the tides of Fen Lake",
        answers={"/api.php?list=search": _found("Fen Lake"), "/api.php?titles=Fen Lake": json.dumps(ARTICLE)},
        asked={"/api.php?list=search": {"srsearch": "tides Fen Lake", "srlimit": "5", "format": "json"}},
        found=[
            {
                "url": "https://en.wikipedia.org/wiki/Fen_Lake",
                "title": "Fen Lake",
                "published": "2025-02-03T04:05:06Z",
                "text": "Fen Lake is a lake.\n\n\n## Tides\nIt rises by 0.4 m.\n\n\n### Cause\nWind.",
                "licence": "CC BY-SA 4.0",
                "full": True,
            }
        ],
        nothing={"/api.php?list=search": _FOUND_NONE},
    ),
    Case(
        tool="wikidata",
        query="Fen Lake",
        answers={
            "/api.php?list=search": _found("Q42"),
            "/api.php?props=labels|descriptions|claims": json.dumps(ENTITY),
            "/api.php?props=labels": NAMES,
        },
        asked={"/api.php?props=labels": {"ids": "P31|Q5|P1082|P2043|Q828224|P571|P575|P625", "languages": "en|en"}},
        found=[
            {
                "url": "https://www.wikidata.org/wiki/Q42",
                "title": "Fen Lake",
                "text": LINES,
                "licence": "CC0 1.0",
                "full": True,
            }
        ],
        nothing={"/api.php?list=search": _FOUND_NONE},
    ),
    Case(
        tool="github",
        query="tides of the lakes",
        answers={"/search/repositories": json.dumps(REPOSITORIES)},
        asked={"/search/repositories": {"q": "tides lakes", "per_page": "5"}},
        found=[
            {
                "url": "https://github.com/fen/tides",
                "title": "fen/tides",
                "published": "2025-03-04T00:00:00Z",
                "authors": ["fen"],
                "licence": "MIT",
                "text": "fen/tides, description: Tides of lakes\n\nfen/tides, language: Python\n\n"
                "fen/tides, licence: MIT\n\nfen/tides, stars: 1,234\n\nfen/tides, forks: 5\n\n"
                "fen/tides, topics: lakes\n\nfen/tides, archived: yes, it is no longer developed\n\n"
                "fen/tides, created: 2020-01-02\n\nfen/tides, last change: 2025-03-04",
                "full": False,
            }
        ],
        nothing={"/search/repositories": '{"total_count": 0, "items": []}'},
        key="authorization",
        key_variable="GITHUB_TOKEN",
    ),
    Case(
        tool="stack_exchange",
        query="why does tide() fail",
        answers={"/search/advanced": json.dumps(QUESTIONS), "/questions/11/answers": json.dumps(ANSWERS)},
        asked={
            "/search/advanced": {"q": "tide fail", "site": "stackoverflow", "sort": "relevance", "filter": "withbody"},
            "/questions/11/answers": {"site": "stackoverflow", "sort": "votes"},
        },
        found=[
            {
                "url": "https://stackoverflow.com/questions/11/why",
                "title": 'Why does tide() "fail"?',
                "published": "2023-11-14",
                "authors": ["Ada B."],
                "licence": "CC BY-SA 4.0",
                "text": "It says `wet < dry`.\n\n```\ntide()\n```\n\n"
                "## Answer of B & C (accepted, score 2, 2023-11-14)\n\nPour water in.\n\n"
                "## Answer of somebody (score 9)\n\nNo idea.",
                "full": True,
            }
        ],
        nothing={"/search/advanced": '{"items": [], "has_more": false}'},
        key="key",
        key_variable="STACK_EXCHANGE_KEY",
    ),
    Case(
        tool="sec_edgar",
        query="profit of Fen Lake",
        answers={
            "/files/company_tickers.json": json.dumps(COMPANIES),
            "/submissions/CIK0000000042.json": json.dumps(RECORD),
            f"{_CONCEPT}/RevenueFromContractWithCustomerExcludingAssessedTax.json": _NO_FIGURE,
            f"{_CONCEPT}/Revenues.json": _NO_FIGURE,
            f"{_CONCEPT}/NetIncomeLoss.json": json.dumps(INCOME),
            f"{_CONCEPT}/Assets.json": _NO_FIGURE,
            "/LATEST/search-index": json.dumps(HITS),
        },
        asked={"/LATEST/search-index": {"q": "profit Fen Lake", "ciks": "0000000042"}},
        found=[
            {
                "url": "https://www.sec.gov/cgi-bin/browse-edgar?action=getcompany&CIK=0000000042",
                "title": "Fen Lake Inc.: figures and filings",
                "published": "2025-05-01",
                "text": FIGURES,
                "full": True,
            },
            {
                "url": f"{_ARCHIVE}/000000004225000001/k.htm",
                "title": "Fen Lake Inc.: 10-K of 2025-02-01",
                "full": False,
            },
            {"url": f"{_ARCHIVE}/000000004225000009/q.htm", "title": "Fen Lake Inc.: 10-Q of 2025-05-01"},
            {
                "url": f"{_ARCHIVE}/000000004224000003/ex99.htm",
                "text": "Fen Lake Inc. filed the form 8-K on 2024-03-04: PRESS RELEASE.",
                "venue": "SEC EDGAR",
            },
        ],
        nothing={
            "/files/company_tickers.json": json.dumps({"0": COMPANIES["1"]}),
            "/LATEST/search-index": '{"hits": {"total": {"value": 0}, "hits": []}}',
        },
    ),
]
