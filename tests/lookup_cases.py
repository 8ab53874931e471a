"""What public services answer, in the shape that each documents, about works that we made up; and what is made of it.

A new service is one more `Case`: `tests/test_lookups.py` then holds it to all that is promised of every one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["CASES", "Case"]


@dataclass(frozen=True)
class Case:
    """A service with one question. Paths are the paths of requests, below the address of the service."""

    tool: str
    query: str
    answers: Mapping[str, str]  # by path: the body, JSON if it begins with a brace, else XML
    asked: Mapping[str, Mapping[str, str]]  # by path: some of the parameters sent
    found: list[Mapping[str, Any]]  # some fields of each source, and of its reference beside them
    nothing: Mapping[str, str]  # by path: what it answers when there is nothing to find
    contact: str = ""  # the parameter that holds the contact address, beside the header
    key: str = ""  # the parameter, or the header in lower case, that holds the key
    key_variable: str = ""
    without: tuple[str, ...] = field(default=())  # faults that it cannot have


ARXIV = """<?xml version="1.0" encoding="UTF-8"?>
<feed xmlns="http://www.w3.org/2005/Atom">
  <title type="html">ArXiv Query</title>
  <id>http://arxiv.org/api/abc</id>
  <updated>2026-01-02T00:00:00-05:00</updated>
  <opensearch:totalResults xmlns:opensearch="http://a9.com/-/spec/opensearch/1.1/">2</opensearch:totalResults>
  <entry>
    <id>http://arxiv.org/abs/2301.00042v3</id>
    <updated>2023-05-06T10:00:00Z</updated>
    <published>2023-01-01T10:00:00Z</published>
    <title>Tides of Methane
      Lakes on Titan</title>
    <summary>  We model lakes.
  The tide rises by 0.4 m if p &lt; 0.05.</summary>
    <author><name>Ada Brookfield</name></author>
    <author><name>Jan van der Meer</name></author>
    <arxiv:doi xmlns:arxiv="http://arxiv.org/schemas/atom">10.1234/jpl.42</arxiv:doi>
    <arxiv:journal_ref xmlns:arxiv="http://arxiv.org/schemas/atom">J. Plan. Lakes 7 (2023) 1-9</arxiv:journal_ref>
    <link href="http://arxiv.org/abs/2301.00042v3" rel="alternate" type="text/html"/>
    <link title="pdf" href="http://arxiv.org/pdf/2301.00042v3" rel="related" type="application/pdf"/>
  </entry>
  <entry>
    <id>http://arxiv.org/abs/hep-th/9901001v1</id>
    <published>1999-01-01T00:00:00Z</published>
    <title>Old lakes</title>
    <summary>They are old.</summary>
    <author><name>B. Fen</name></author>
  </entry>
</feed>
"""

OPENALEX = {
    "meta": {"count": 2, "page": 1, "per_page": 5},
    "results": [
        {
            "id": "https://openalex.org/W42",
            "doi": "https://doi.org/10.1234/JPL.42",
            "display_name": "Tides of <i>methane</i> lakes",
            "publication_date": "2023-04-05",
            "authorships": [
                {
                    "author_position": "first",
                    "author": {"id": "https://openalex.org/A1", "display_name": "Ada Brookfield"},
                },
                {"author": {"display_name": None}},
            ],
            "primary_location": {
                "landing_page_url": "https://doi.org/10.1234/jpl.42",
                "source": {"display_name": "Journal of Planetary Lakes"},
                "license": None,
            },
            "best_oa_location": {
                "landing_page_url": "https://repository.example/42",
                "pdf_url": "https://repository.example/42.pdf",
                "license": "cc-by",
            },
            "abstract_inverted_index": {
                "The": [0],
                "tide": [1, 5],
                "rises": [2],
                "when": [3],
                "the": [4],
                "turns.": [6],
            },
            "is_retracted": False,
        },
        {
            "id": "https://openalex.org/W43",
            "doi": None,
            "display_name": "A report on shores",
            "publication_date": None,
            "authorships": [],
            "primary_location": None,
            "best_oa_location": None,
            "abstract_inverted_index": None,
            "is_retracted": True,
        },
    ],
}

CROSSREF = {
    "status": "ok",
    "message-type": "work-list",
    "message": {
        "total-results": 2,
        "items": [
            {
                "DOI": "10.1234/jpl.42",
                "title": ["Tides of methane lakes &amp; seas"],
                "author": [
                    {"given": "Ada", "family": "Brookfield", "sequence": "first", "affiliation": []},
                    {"name": "The Lake Survey", "sequence": "additional", "affiliation": []},
                ],
                "container-title": ["Journal of Planetary Lakes"],
                "publisher": "Fen Press",
                "issued": {"date-parts": [[2023, 4]]},
                "abstract": "<jats:title>Abstract</jats:title><jats:p>The tide rises by 0.4&#160;m.</jats:p>",
                "license": [
                    {"URL": "https://www.example.org/tdm", "content-version": "tdm", "delay-in-days": 0},
                    {"URL": "https://creativecommons.org/licenses/by/4.0", "content-version": "vor"},
                ],
                "link": [
                    {"URL": "https://fen.example/check", "intended-application": "similarity-checking"},
                    {
                        "URL": "https://fen.example/42.pdf",
                        "content-type": "application/pdf",
                        "intended-application": "text-mining",
                    },
                ],
            },
            {
                "DOI": "10.1234/jpl.43(a)<1>",
                "title": [],
                "container-title": [],
                "publisher": "Fen Press",
                "issued": {"date-parts": [[None]]},
                "license": [{"URL": "https://www.example.org/tdm"}],
                "link": [{"URL": "https://fen.example/43.pdf", "intended-application": "text-mining"}],
            },
        ],
    },
}

SEMANTIC_SCHOLAR = {
    "total": 2,
    "offset": 0,
    "data": [
        {
            "paperId": "a1",
            "url": "https://www.semanticscholar.org/paper/a1",
            "title": "Tides of methane lakes",
            "abstract": None,
            "authors": [{"authorId": "1", "name": "Ada Brookfield"}],
            "externalIds": {"ArXiv": "2301.00042", "CorpusId": 1},
            "venue": "",
            "journal": {"name": "arXiv", "volume": "1"},
            "year": 2023,
            "publicationDate": None,
            "openAccessPdf": None,
        },
        {
            "paperId": "a2",
            "url": "https://www.semanticscholar.org/paper/a2",
            "title": "Shores",
            "abstract": "Shores move.",
            "authors": [],
            "externalIds": None,
            "venue": "Shore Letters",
            "journal": None,
            "year": 2020,
            "publicationDate": "2020-02-03",
            "openAccessPdf": {"url": "https://shore.example/a2.pdf", "status": "GOLD", "license": "CCBY"},
        },
    ],
}

PUBMED_IDS = {
    "header": {"type": "esearch", "version": "0.3"},
    "esearchresult": {"count": "2", "retmax": "5", "retstart": "0", "idlist": ["101", "102"]},
}

PUBMED = """<?xml version="1.0" ?>
<!DOCTYPE PubmedArticleSet PUBLIC "-//NLM//DTD PubMedArticle, 1st January 2025//EN"
 "https://dtd.nlm.nih.gov/ncbi/pubmed/out/pubmed_250101.dtd">
<PubmedArticleSet>
<PubmedArticle>
  <MedlineCitation Status="MEDLINE" Owner="NLM">
    <PMID Version="1">101</PMID>
    <Article PubModel="Print">
      <Journal>
        <JournalIssue CitedMedium="Internet">
          <PubDate><Year>2022</Year><Month>Mar</Month><Day>4</Day></PubDate>
        </JournalIssue>
        <Title>Journal of Lake Medicine</Title>
      </Journal>
      <ArticleTitle>Drinking from <i>Lacus</i> lakes.</ArticleTitle>
      <Abstract>
        <AbstractText Label="METHODS">We asked 12 people.</AbstractText>
        <AbstractText Label="RESULTS">Thirst fell (<i>p</i> &lt; 0.01).</AbstractText>
      </Abstract>
      <AuthorList CompleteYN="Y">
        <Author ValidYN="Y"><LastName>Brookfield</LastName><ForeName>Ada M</ForeName><Initials>AM</Initials></Author>
        <Author ValidYN="Y"><CollectiveName>Lake Study Group</CollectiveName></Author>
      </AuthorList>
      <PublicationTypeList><PublicationType UI="D016441">Retracted Publication</PublicationType></PublicationTypeList>
    </Article>
  </MedlineCitation>
  <PubmedData><ArticleIdList>
    <ArticleId IdType="pubmed">101</ArticleId><ArticleId IdType="doi">10.1234/jlm.7</ArticleId>
    <ArticleId IdType="pmc">PMC4242</ArticleId>
  </ArticleIdList></PubmedData>
</PubmedArticle>
<PubmedArticle>
  <MedlineCitation><PMID Version="1">102</PMID>
    <Article>
      <Journal>
        <JournalIssue><PubDate><MedlineDate>1998 Spring</MedlineDate></PubDate></JournalIssue><Title>Fens</Title>
      </Journal>
      <ArticleTitle>Fen fever.</ArticleTitle>
    </Article>
  </MedlineCitation>
  <PubmedData><ArticleIdList><ArticleId IdType="pubmed">102</ArticleId></ArticleIdList></PubmedData>
</PubmedArticle>
</PubmedArticleSet>
"""

EUROPE_PMC = {
    "version": "6.9",
    "hitCount": 2,
    "resultList": {
        "result": [
            {
                "id": "101",
                "source": "MED",
                "pmid": "101",
                "pmcid": "PMC4242",
                "doi": "10.1234/jlm.7",
                "title": "Drinking from lakes.",
                "authorString": "Brookfield A, Lake Study Group.",
                "authorList": {
                    "author": [
                        {"fullName": "Brookfield A", "firstName": "Ada", "lastName": "Brookfield", "initials": "A"},
                        {"collectiveName": "Lake Study Group"},
                    ]
                },
                "journalInfo": {"journal": {"title": "Journal of Lake Medicine"}, "yearOfPublication": 2022},
                "abstractText": "<h4>Results</h4>Thirst fell.",
                "firstPublicationDate": "2022-03-04",
                "license": "cc by",
                "isOpenAccess": "Y",
                "fullTextUrlList": {
                    "fullTextUrl": [
                        {"availabilityCode": "S", "documentStyle": "doi", "url": "https://doi.org/10.1234/jlm.7"},
                        {
                            "availabilityCode": "OA",
                            "documentStyle": "html",
                            "url": "https://europepmc.org/articles/PMC4242",
                        },
                        {
                            "availabilityCode": "OA",
                            "documentStyle": "pdf",
                            "url": "https://europepmc.org/articles/PMC4242?pdf=render",
                        },
                    ]
                },
                "pubTypeList": {"pubType": ["research-article", "Journal Article"]},
            },
            {
                "id": "PPR9",
                "source": "PPR",
                "title": "Fen fever",
                "bookOrReportDetails": {"publisher": "fenRxiv", "yearOfPublication": 2021},
                "firstPublicationDate": "2021-05-06",
            },
        ]
    },
}

CASES = [
    Case(
        "arxiv",
        'the tides of "methane" lakes ANDNOT (ti:x)',
        {"/query": ARXIV},
        {"/query": {"search_query": "all:(tides AND methane AND lakes AND ti AND x)", "max_results": "5"}},
        [
            {
                "url": "https://arxiv.org/abs/2301.00042",
                "title": "Tides of Methane Lakes on Titan",
                "text": "We model lakes. The tide rises by 0.4 m if p < 0.05.",
                "published": "2023-01-01",
                "authors": ["Ada Brookfield", "Jan van der Meer"],
                "doi": "10.1234/jpl.42",
                "venue": "J. Plan. Lakes 7 (2023) 1-9",
                "full_text": "http://arxiv.org/pdf/2301.00042v3",
            },
            {
                "url": "https://arxiv.org/abs/hep-th/9901001",
                "doi": "10.48550/arxiv.hep-th/9901001",
                "venue": "arXiv",
                "full_text": "",
            },
        ],
        {"/query": '<feed xmlns="http://www.w3.org/2005/Atom"><title>ArXiv Query</title></feed>'},
    ),
    Case(
        "openalex",
        "tides of methane-rich lakes",
        {"/works": json.dumps(OPENALEX)},
        {"/works": {"search": "tides methane-rich lakes", "per_page": "5"}},
        [
            {
                "url": "https://doi.org/10.1234/jpl.42",
                "title": "Tides of methane lakes",
                "text": "The tide rises when the tide turns.",
                "published": "2023-04-05",
                "authors": ["Ada Brookfield"],
                "doi": "10.1234/jpl.42",
                "venue": "Journal of Planetary Lakes",
                "licence": "cc-by",
                "full_text": "https://repository.example/42.pdf",
            },
            {"url": "https://openalex.org/W43", "title": "Retracted: A report on shores", "retracted": True},
        ],
        {"/works": '{"meta": {"count": 0}, "results": []}'},
        contact="mailto",
        key="api_key",
        key_variable="OPENALEX_API_KEY",
    ),
    Case(
        "crossref",
        "Brookfield: tides of methane lakes",
        {"/works": json.dumps(CROSSREF)},
        {"/works": {"query.bibliographic": "Brookfield: tides of methane lakes", "rows": "5"}},
        [
            {
                "url": "https://doi.org/10.1234/jpl.42",
                "title": "Tides of methane lakes & seas",
                "text": "Abstract\nThe tide rises by 0.4 m.",
                "published": "2023-04",
                "authors": ["Brookfield, Ada", "The Lake Survey"],
                "venue": "Journal of Planetary Lakes",
                "licence": "https://creativecommons.org/licenses/by/4.0",
                "full_text": "https://fen.example/42.pdf",
            },
            {
                "url": "https://doi.org/10.1234/jpl.43(a)%3C1%3E",
                "text": "Fen Press",
                "published": "",
                "doi": "10.1234/jpl.43(a)<1>",
                "licence": "https://www.example.org/tdm",
                "full_text": "",
            },
        ],
        {"/works": '{"status": "ok", "message": {"total-results": 0, "items": []}}'},
        contact="mailto",
    ),
    Case(
        "semantic_scholar",
        "how methane-rich lakes have tides",
        {"/paper/search": json.dumps(SEMANTIC_SCHOLAR)},
        {"/paper/search": {"query": "methane rich lakes tides", "limit": "5"}},
        [
            {
                "url": "https://arxiv.org/abs/2301.00042",
                "text": "Tides of methane lakes. Ada Brookfield. arXiv. 2023",
                "published": "2023",
                "venue": "arXiv",
                "doi": "10.48550/arxiv.2301.00042",
                "full_text": "https://arxiv.org/pdf/2301.00042",
            },
            {
                "url": "https://www.semanticscholar.org/paper/a2",
                "text": "Shores move.",
                "published": "2020-02-03",
                "venue": "Shore Letters",
                "licence": "CCBY",
                "full_text": "https://shore.example/a2.pdf",
            },
        ],
        {"/paper/search": '{"total": 0, "offset": 0}'},
        key="x-api-key",
        key_variable="S2_API_KEY",
    ),
    Case(
        "pubmed",
        "drinking[ti] from lakes",
        {"/esearch.fcgi": json.dumps(PUBMED_IDS), "/efetch.fcgi": PUBMED},
        {
            "/esearch.fcgi": {"term": "drinking ti lakes", "retmax": "5", "tool": "fathom", "sort": "relevance"},
            "/efetch.fcgi": {"id": "101,102", "retmode": "xml"},
        },
        [
            {
                "url": "https://doi.org/10.1234/jlm.7",
                "title": "Retracted: Drinking from Lacus lakes.",
                "text": "METHODS: We asked 12 people.\nRESULTS: Thirst fell (p < 0.01).",
                "published": "2022-03-04",
                "authors": ["Brookfield, Ada M", "Lake Study Group"],
                "venue": "Journal of Lake Medicine",
                "full_text": "https://europepmc.org/articles/PMC4242?pdf=render",
            },
            {"url": "https://pubmed.ncbi.nlm.nih.gov/102", "published": "1998 Spring", "venue": "Fens", "doi": ""},
        ],
        {"/esearch.fcgi": '{"esearchresult": {"count": "0", "idlist": []}}'},
        contact="email",
        key="api_key",
        key_variable="NCBI_API_KEY",
    ),
    Case(
        "europe_pmc",
        "drinking from AUTH:lakes",
        {"/search": json.dumps(EUROPE_PMC)},
        {"/search": {"query": "drinking AUTH lakes", "pageSize": "5", "resultType": "core"}},
        [
            {
                "url": "https://doi.org/10.1234/jlm.7",
                "title": "Drinking from lakes.",
                "text": "Results\nThirst fell.",
                "published": "2022-03-04",
                "authors": ["Brookfield, Ada", "Lake Study Group"],
                "venue": "Journal of Lake Medicine",
                "licence": "cc by",
                "full_text": "https://europepmc.org/articles/PMC4242?pdf=render",
            },
            {
                "url": "https://europepmc.org/article/PPR/PPR9",
                "text": "Fen fever. fenRxiv. 2021-05-06",
                "venue": "fenRxiv",
            },
        ],
        {"/search": '{"version": "6.9", "hitCount": 0, "resultList": {"result": []}}'},
        contact="email",
    ),
]
