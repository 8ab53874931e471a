"""What is true in the closed world, an archipelago that does not exist: towns, bridges, firms, pumps, birds, standards.

Every value is invented. A fact has the forms in which a text may give it, the first of them the usual one; where the
world changed, what was true before; and where the world's farms of copied text have it wrong, their error.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Fact:
    """A value with the ways to write it. `before` and `wrong` are values that a report must not give as the answer."""

    forms: tuple[str, ...]
    before: str = ""
    wrong: str = ""

    @property
    def value(self) -> str:
        """The usual form."""
        return self.forms[0]


@dataclass(frozen=True)
class Subject:
    """Something that has pages. `slug` names it in addresses."""

    kind: str
    name: str
    slug: str
    facts: dict[str, Fact] = field(default_factory=dict)


_UNITS: dict[str, tuple[str, ...]] = {
    "quay": ("{} metres", "{} m"),
    "fare": ("{} crowns",),
    "span": ("{} metres", "{} m"),
    "toll": ("{} crowns",),
    "sales": ("{} million crowns", "{} m crowns"),
    "power": ("{} kW", "{} kilowatts"),
    "pump-weight": ("{} kg", "{} kilograms"),
    "price": ("{} crowns",),
    "warranty": ("{} months",),
    "noise": ("{} dB", "{} decibels"),
    "flow": ("{} litres a minute", "{} l/min"),
    "bird-weight": ("{} grams", "{} g"),
}


def _read(kind: str, text: str) -> tuple[Subject, ...]:
    """Return the subjects of a table: `population.before` is what was true before, `founded.wrong` the farms' error."""
    head, *lines = ([cell.strip() for cell in line.split("|")] for line in text.strip().splitlines())
    subjects = []
    for name, *cells in lines:
        values = dict(zip(head[1:], cells, strict=True))
        facts = {}
        for fact, value in values.items():
            if "." in fact:
                continue
            units = _UNITS.get(fact) or _UNITS.get(f"{kind}-{fact}") or ("{}",)
            forms = [unit.format(value) for unit in units]
            if len(units) == 1 and "," in value and value.replace(",", "").isdigit():
                forms.append(units[0].format(value.replace(",", "")))
            wrong = values.get(f"{fact}.wrong", "")
            facts[fact] = Fact(tuple(forms), values.get(f"{fact}.before", ""), units[0].format(wrong) if wrong else "")
        subjects.append(Subject(kind, name, name.lower().replace(" ", "-"), facts))
    return tuple(subjects)


TOWNS = _read(
    "town",
    """
    name        | founded | founded.wrong | population | population.before | quay | market    | fare
    Velmouth    | 1412    | 1512          | 48,310     | 44,902            | 640  | Thursday  | 18
    Karrow      | 1388    |               | 31,775     | 33,480            | 410  | Saturday  | 14
    Tessing     | 1603    |               | 12,946     | 11,208            | 275  | Tuesday   | 22
    Iskerholm   | 1571    | 1471          | 9,084      | 9,731             | 190  | Friday    | 27
    Dunmarra    | 1296    |               | 22,617     | 21,055            | 520  | Wednesday | 16
    Pellwick    | 1733    |               | 6,358      | 6,120             | 130  | Monday    | 25
    Sorrenhaven | 1454    |               | 17,402     | 15,866            | 365  | Thursday  | 19
    Aldergate   | 1347    | 1437          | 27,193     | 26,540            | 300  | Saturday  | 12
    Brinsey     | 1689    |               | 4,871      | 5,290             | 95   | Friday    | 31
    Quillan     | 1525    |               | 14,229     | 13,377            | 240  | Wednesday | 21
    """,
)

BRIDGES = _read(
    "bridge",
    """
    name           | span  | opened | opened.wrong | architect      | toll
    Sallow Bridge  | 312   | 1931   | 1913         | Ingrid Vessel  | 3
    Hendry Viaduct | 488   | 1958   |              | Tomas Arkwell  | 5
    Marrow Span    | 176   | 1894   |              | Odile Renner   | 2
    Tollen Arch    | 254   | 1972   | 1927         | Per Lindqvale  | 4
    Wick Causeway  | 1,140 | 2004   |              | Sanna Okoro    | 6
    """,
)

FIRMS = _read(
    "firm",
    """
    name                | founded | town      | staff | sales | chief          | chief.before | makes
    Halvorsen Tidal     | 1987    | Velmouth  | 1,240 | 386   | Runa Castellan | Bo Halvorsen | tidal turbines
    Brinsey Ropeworks   | 1764    | Brinsey   | 212   | 41    | Matti Sorrel   | Anke Dreyer  | mooring ropes
    Quillan Instruments | 1922    | Quillan   | 675   | 158   | Leda Marsh     | Jon Tavener  | tide gauges
    Aldergate Ceramics  | 1851    | Aldergate | 430   | 77    | Piet Holloway  | Greta Unwin  | glazed tiles
    Pellwick Dairies    | 1903    | Pellwick  | 188   | 52    | Nora Finch     | Aldo Rees    | smoked cheese
    Dunmarra Shipyards  | 1840    | Dunmarra  | 2,015 | 612   | Elias Thorn    | Mona Varga   | ferries
    Karrow Freight      | 1949    | Karrow    | 904   | 233   | Sigrid Palmer  | Otto Lund    | cargo services
    Tessing Optics      | 1976    | Tessing   | 356   | 119   | Hanne Quist    | Ralf Iverson | lighthouse lenses
    """,
)

PUMPS = _read(
    "pump",
    """
    name      | power | weight | price | warranty | noise | flow
    Corvid 40 | 4.2   | 61     | 2,350 | 36       | 58    | 410
    Corvid 60 | 6.8   | 94     | 3,120 | 36       | 63    | 655
    Marlin S  | 3.1   | 47     | 1,980 | 24       | 52    | 300
    Marlin L  | 7.5   | 118    | 3,640 | 48       | 66    | 720
    Otter 12  | 1.4   | 23     | 890   | 18       | 49    | 145
    Gannet X  | 9.6   | 152    | 4,875 | 60       | 71    | 930
    """,
)

BIRDS = _read(
    "bird",
    """
    name              | weight | weight.wrong | eggs        | island        | named           | year
    ash-backed petrel | 184    |              | one egg     | Little Sorren | Clara Wedmore   | 1877
    reed shrike       | 39     | 93           | five eggs   | Aldermarsh    | Josef Tann      | 1902
    Velmark plover    | 97     |              | four eggs   | Isker Sands   | Edwin Salter    | 1861
    lantern owl       | 326    |              | three eggs  | Quill Wood    | Maud Perrin     | 1934
    salt finch        | 21     | 31           | six eggs    | Brinsey Flats | Henrik Ohle     | 1889
    stone tern        | 118    |              | two eggs    | Gull Skerries | Ada Fenwright   | 1915
    """,
)

STANDARDS = _read(
    "standard",
    """
    name     | covers                  | limit                    | limit.before             | year | interval
    VSN 2204 | harbour hydraulic lines | 210 bar                  | 180 bar                  | 2024 | every 18 months
    VSN 3117 | ferry gangways          | 450 kg                   | 400 kg                   | 2023 | every 12 months
    VSN 4410 | lighthouse lamps        | 1,500 watts              | 2,000 watts              | 2025 | every 36 months
    VSN 5052 | drinking-water pipes    | 0.3 mg of lead per litre | 0.5 mg of lead per litre | 2022 | every 6 months
    """,
)

SUBJECTS = (*TOWNS, *BRIDGES, *FIRMS, *PUMPS, *BIRDS, *STANDARDS)
BY_NAME = {subject.name: subject for subject in SUBJECTS}
