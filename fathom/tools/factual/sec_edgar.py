"""SEC EDGAR, what companies file in the United States: their figures, their reports, and all filings by words.

Ten requests a second for who says in the User-Agent who they are; who does not is refused. Three servers take turns:
one has the table of all companies, one the records of each, one searches the text of all filings.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from pydantic import RootModel

from fathom.config.environment import CONTACT
from fathom.errors import ToolRejected
from fathom.models import Bibliographic
from fathom.tools.factual.filings import Concept, Filing, Hits, Listed, Submissions
from fathom.tools.lookup import LookupTool, words_of
from fathom.tools.pages import WebPage

CONCEPTS = {
    "RevenueFromContractWithCustomerExcludingAssessedTax": "revenue (sales)",
    "Revenues": "revenue (sales)",
    "NetIncomeLoss": "net income (profit)",
    "Assets": "total assets",
}
"""The figures that are read, by their names in US-GAAP, and what people call them."""

REPORTS = ("10-K", "10-Q", "20-F", "40-F", "8-K", "6-K", "DEF 14A", "S-1")
MOST_FILINGS = 20
_WORD = re.compile(r"[\w&.'-]*\w")
_OF = re.compile(r"['’]s?(?!\w)")
_LEGAL_FORMS = "inc incorporated corp corporation co company ltd limited plc llc lp sa ag nv se holdings the"

_Table = RootModel[dict[str, Listed]]


class SecEdgarTool(LookupTool):
    """Reads what a company files with the SEC: figures of the last years, recent reports, filings by words."""

    name = "sec_edgar"
    service = "SEC EDGAR"
    group = "facts"
    description = (
        "Reads what companies file with the U.S. SEC: revenue, profit and assets of the last years, recent reports, "
        "filings whose text has some words. Input: a company's name or ticker, and what is looked for."
    )
    address = "https://{host}.sec.gov"
    domains = ("companies",)
    variables = (CONTACT,)
    optional = ("SEC_EDGAR_BASE_URL",)
    setup = "FATHOM_CONTACT to your e-mail address, which the SEC asks for"
    seconds_between = 0.15
    at_once = 2

    def place(self, path: str) -> str:
        """Return the address of a path on the server that has it."""
        host = {"LATEST": "efts", "files": "www"}.get(path.split("/")[1], "data")
        return self._address.replace("{host}", host) + path

    async def find(self, query: str, limit: int) -> list[WebPage]:
        """Return the record of the company that the query names, its latest reports, then filings by words."""
        table = await self.ask_json(_Table, "/files/company_tickers.json")
        company = named_in(query, table.root.values())
        pages = await self._record(company) if company else []
        words, of = " ".join(words_of(query)), f"{company.cik_str:010}" if company else ""
        found = await self.ask_json(Hits, "/LATEST/search-index", q=words, ciks=of)
        return [*pages, *map(_document, found.filings())][:limit]

    async def _record(self, company: Listed) -> list[WebPage]:
        number = f"CIK{company.cik_str:010}"
        record = await self.ask_json(Submissions, f"/submissions/{number}.json")
        filings = list(record.filings(company.cik_str, REPORTS))[:MOST_FILINGS]
        facts = {"ticker": ", ".join(record.tickers), "industry": record.industry, "incorporated in": record.state}
        lines = [f"{record.name}, {name}: {value}" for name, value in facts.items() if value]
        for concept, name in CONCEPTS.items():
            try:
                found = await self.ask_json(Concept, f"/api/xbrl/companyconcept/{number}/us-gaap/{concept}.json")
            except ToolRejected:  # the company does not report it
                continue
            lines += found.lines(f"{record.name}, {name}")
        page = WebPage(
            url=f"https://www.sec.gov/cgi-bin/browse-edgar?action=getcompany&CIK={company.cik_str:010}",
            title=f"{record.name}: figures and filings",
            published=filings[0].filed if filings else "",
            whole="\n\n".join([*lines, *(filing.line for filing in filings)]),
            reference=Bibliographic(authors=[record.name], venue="SEC EDGAR"),
        )
        newest = {filing.form: filing for filing in reversed(filings)}
        return [page, *(_document(newest[form]) for form in REPORTS[:3] if form in newest)]


def named_in(query: str, companies: Iterable[Listed]) -> Listed | None:
    """Return the company that a query names: by the most words of its name, else by its ticker in capitals."""
    words, legal_forms = _WORD.findall(_OF.sub("", query)), frozenset(_LEGAL_FORMS.split())
    said = f" {' '.join(word.lower() for word in words)} "
    named: list[tuple[int, Listed]] = []
    for company in companies:
        name = [word.lower() for word in _WORD.findall(company.title) if word.lower().strip(".") not in legal_forms]
        if name and f" {' '.join(name)} " in said and not (len(name) == 1 and name[0] in words):
            named.append((len(name), company))
        elif len(company.ticker) > 1 and company.ticker in words:
            named.append((0, company))
    return max(named, key=lambda found: found[0])[1] if named else None


def _document(filing: Filing) -> WebPage:
    return WebPage(
        url=filing.address,
        title=f"{filing.company}: {filing.form} of {filing.filed}",
        published=filing.filed,
        excerpt=filing.line,
        reference=Bibliographic(authors=[filing.company], venue="SEC EDGAR"),
    )
