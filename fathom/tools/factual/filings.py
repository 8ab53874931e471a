"""What SEC EDGAR answers, and what it says in lines of text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date

from pydantic import AliasPath, BaseModel, Field

from fathom.tools.lookup import Records

ARCHIVE = "https://www.sec.gov/Archives/edgar/data"
YEARS = 5
_DAYS_OF_A_YEAR = range(350, 380)


class Listed(BaseModel):
    """A company in the table of those whose shares are traded."""

    cik_str: int
    ticker: str
    title: str


class Filing(BaseModel):
    """A document that a company filed."""

    company: str
    form: str
    filed: str
    period: str = ""
    about: str = ""
    address: str

    @property
    def line(self) -> str:
        """What was filed when, as a sentence."""
        period = f" for the period to {self.period}" if self.period else ""
        about = f": {self.about}" if self.about and self.about != self.form else ""
        return f"{self.company} filed the form {self.form} on {self.filed}{period}{about}."


class _Recent(BaseModel):
    """Columns of a table, a row for each filing, the newest first."""

    accessionNumber: list[str] = []
    filingDate: list[str] = []
    reportDate: list[str] = []
    form: list[str] = []
    primaryDocument: list[str] = []
    primaryDocDescription: list[str] = []


class Submissions(BaseModel):
    """A company's record."""

    name: str
    tickers: list[str] = []
    industry: str = Field("", validation_alias="sicDescription")
    year_end: str = Field("", validation_alias="fiscalYearEnd")
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


class _Figure(BaseModel):
    val: float
    end: str
    start: str = ""
    form: str = ""
    filed: str = ""


class Concept(BaseModel):
    """A figure of a company in all its reports, by unit."""

    units: dict[str, list[_Figure]]

    def lines(self, name: str) -> Iterator[str]:
        """Yield the figure of each of the last years, as it was filed last; `name` says whose it is and what it is."""
        for unit, figures in self.units.items():
            yearly = {f.end: f for f in figures if f.form in ("10-K", "20-F", "40-F") and _is_of_a_year(f)}
            for end in sorted(yearly, reverse=True)[:YEARS]:
                found = yearly[end]
                when = f"fiscal year to {end}" if found.start else f"on {end}"
                yield f"{name}, {when}: {found.val:,.12g} {unit} ({found.form} of {found.filed})"


def _is_of_a_year(figure: _Figure) -> bool:
    days = (date.fromisoformat(figure.end) - date.fromisoformat(figure.start)).days if figure.start else 365
    return days in _DAYS_OF_A_YEAR


class _Source(BaseModel):
    ciks: list[str] = []
    adsh: str
    form: str = ""
    file_date: str = ""
    period_ending: str = ""
    file_description: str = ""
    display_names: list[str] = []


class _Hit(BaseModel):
    id: str = Field(validation_alias="_id")
    source: _Source = Field(validation_alias="_source")


class Hits(BaseModel):
    """What a search by words finds: documents by number and name, without their text."""

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
