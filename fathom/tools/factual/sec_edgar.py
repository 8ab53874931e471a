"""SEC EDGAR, the filings of companies in the United States: their figures, their reports, and all filings by words.

It allows ten requests a second to clients that identify themselves in the User-Agent, and refuses others. Three servers
take turns: one has the table of all companies, one the records of each, one searches the text of all filings.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import date

from pydantic import AliasPath, Field, RootModel

from fathom.config.environment import CONTACT
from fathom.errors import ToolRejected
from fathom.models import Bibliographic, Received
from fathom.tools.lookup import LookupTool, Records, words_of
from fathom.tools.pages import WebPage

ARCHIVE = "https://www.sec.gov/Archives/edgar/data"
YEARS = 5
_DAYS_OF_A_YEAR = range(350, 380)


class Listed(Received):
    """A company in the table of those whose shares are traded."""

    cik_str: int
    ticker: str
    title: str


class Filing(Received):
    """A document that a company filed."""

    company: str
    form: str
    filed: str
    period: str = ""
    about: str = ""
    address: str

    @property
    def line(self) -> str:
        """The filing and its date, as a sentence."""
        period = f" for the period to {self.period}" if self.period else ""
        about = f": {self.about}" if self.about and self.about != self.form else ""
        return f"{self.company} filed the form {self.form} on {self.filed}{period}{about}."


class _Recent(Received):
    """Columns of a table, a row for each filing, the newest first."""

    accessionNumber: list[str] = []
    filingDate: list[str] = []
    reportDate: list[str] = []
    form: list[str] = []
    primaryDocument: list[str] = []
    primaryDocDescription: list[str] = []


class CompanyRecord(Received):
    """A company's record."""

    name: str
    tickers: list[str] = []
    industry: str = Field("", validation_alias="sicDescription")
    state: str = Field("", validation_alias="stateOfIncorporationDescription")
    recent: _Recent = Field(_Recent(), validation_alias=AliasPath("filings", "recent"))

    def filings(self, cik: int, forms: Sequence[str]) -> Iterator[Filing]:
        """Yield the filings of some forms, the newest first."""
        columns = self.recent
        rows = zip(columns.accessionNumber, columns.filingDate, columns.reportDate, columns.form,
                   columns.primaryDocument, columns.primaryDocDescription, strict=False)  # fmt: skip
        for number, filed, period, form, document, about in rows:
            if form in forms and document:
                address = f"{ARCHIVE}/{cik}/{number.replace('-', '')}/{document}"
                yield Filing(company=self.name, form=form, filed=filed, period=period, about=about, address=address)


class _Figure(Received):
    val: float
    end: str
    start: str = ""
    form: str = ""
    filed: str = ""


class Concept(Received):
    """A figure of a company in all its reports, by unit."""

    units: dict[str, list[_Figure]]

    def lines(self, name: str) -> Iterator[str]:
        """Yield the figure of each of the last years, as it was filed last; `name` names the company and the figure."""
        for unit, figures in self.units.items():
            yearly = {f.end: f for f in figures if f.form in ("10-K", "20-F", "40-F") and _is_of_a_year(f)}
            for end in sorted(yearly, reverse=True)[:YEARS]:
                found = yearly[end]
                when = f"fiscal year to {end}" if found.start else f"on {end}"
                yield f"{name}, {when}: {found.val:,.12g} {unit} ({found.form} of {found.filed})"


def _is_of_a_year(figure: _Figure) -> bool:
    days = (date.fromisoformat(figure.end) - date.fromisoformat(figure.start)).days if figure.start else 365
    return days in _DAYS_OF_A_YEAR


class _Source(Received):
    ciks: list[str] = []
    adsh: str
    form: str = ""
    file_date: str = ""
    period_ending: str = ""
    file_description: str = ""
    display_names: list[str] = []


class _Hit(Received):
    id: str = Field(validation_alias="_id")
    source: _Source = Field(validation_alias="_source")


class Hits(Received):
    """The results of a search by words: documents by number and name, without their text."""

    found: Records[_Hit] = Field([], validation_alias=AliasPath("hits", "hits"))

    def filings(self) -> Iterator[Filing]:
        """Yield the documents, the best first."""
        for hit in self.found:
            source, document = hit.source, hit.id.partition(":")[2]
            if document and source.ciks and source.ciks[0].isdigit():
                yield Filing(
                    company=(source.display_names or [""])[0].partition("  (")[0],
                    form=source.form,
                    filed=source.file_date,
                    period=source.period_ending,
                    about=source.file_description,
                    address=f"{ARCHIVE}/{int(source.ciks[0])}/{source.adsh.replace('-', '')}/{document}",
                )


CONCEPTS = {
    "RevenueFromContractWithCustomerExcludingAssessedTax": "revenue (sales)",
    "Revenues": "revenue (sales)",
    "NetIncomeLoss": "net income (profit)",
    "Assets": "total assets",
}
"""The figures that are read, by their names in US-GAAP, and their common names."""

REPORTS = ("10-K", "10-Q", "20-F", "40-F", "8-K", "6-K", "DEF 14A", "S-1")
MOST_FILINGS = 20
_WORD = re.compile(r"[\w&.'-]*\w")
_OF = re.compile(r"['’]s?(?!\w)")
_LEGAL_FORMS = "inc incorporated corp corporation co company ltd limited plc llc lp sa ag nv se holdings the"

_Table = RootModel[dict[str, Listed]]


class SecEdgarTool(LookupTool):
    """Reads a company's filings with the SEC: figures of the last years, recent reports, filings by words."""

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
        record = await self.ask_json(CompanyRecord, f"/submissions/{number}.json")
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
