"""Contradictions between sources: what is one, and what only looks like one."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fathom.contradictions.finding import Said, find_contradictions
from fathom.facts.extraction import facts_of, figures_of

CONTRADICTIONS = [
    # numbers
    ("Lindholm employs 412 people.", "The company employs 398 people and runs five routes."),
    ("The project will cost 118 million euros in all.", "The project will cost 121 million euros in all."),
    ("The Norrholm bridge is 412 metres long.", "The Norrholm bridge is 0.5 km long."),
    ("The Aurora carries 80 cars.", "The Aurora carries 90 cars and has a restaurant."),
    ("The population of Norrholm is 12,400.", "The population of Norrholm is 15,900."),
    ("The plant at Ostra generates 40 MW.", "The plant at Ostra generates 60 megawatts."),
    ("The crossing takes 35 minutes.", "The crossing takes 50 minutes."),
    ("The crossing to Ostra takes 30 to 35 minutes.", "The crossing to Ostra takes at least 50 minutes."),
    ("About 400 cars fit on the ferry Aurora.", "Over 600 cars fit on the ferry Aurora."),
    ("The system at Norrholm has three pumps.", "The system at Norrholm has 5 pumps."),
    (
        "The ferry Aurora carries 80 cars and 300 passengers on two decks.",
        "The ferry Aurora carries 80 cars and 450 passengers on two decks.",
    ),
    # whoever says it
    (
        "According to the ministry, the tunnel cost $40 million.",
        "According to the auditors, the tunnel cost $52 million.",
    ),
    # dates
    ("The ferry Aurora entered service on 3 June 2023.", "The ferry Aurora entered service on 5 June 2023."),
    ("Lindholm was founded in 1896 by two brothers.", "Lindholm was founded in 1898."),
    ("In 1896, Lindholm was founded by two brothers.", "Lindholm was founded in 1898."),
    ("The treaty of Norrholm was signed on 4 May 1921.", "The treaty of Norrholm was signed in June 1921."),
    (
        "The Lindholm line was opened by the king in 1911 and closed in 1970.",
        "The Lindholm line was opened by the king in 1913 and closed in 1970.",
    ),
    ("Holm was born in Norrholm in 1931.", "Ada Holm (born 1934 in Vester) was a physicist."),
    (
        "Lindholm Energy was established in Vester in 2014.",
        "Lindholm Energy, founded and established in 2012, sells heat.",
    ),
    # denial
    ("The harbour of Norrholm is not open to private yachts.", "The harbour of Norrholm is open to private yachts."),
    ("The Aurora cannot sail in winter storms.", "The Aurora can sail in winter storms."),
    ("The harbour pumps failed to start in the storm.", "The harbour pumps start in the storm."),
    ("The council of Ostra approved the new harbour plan.", "The council of Ostra rejected the new harbour plan."),
    (
        "Zelitin increases the risk of bleeding in older patients.",
        "Zelitin decreases the risk of bleeding in older patients.",
    ),
]

NEAR_MISSES = [
    # rounding, approximation, ranges, bounds
    ("The project will cost 118 million euros in all.", "The project will cost 118.4 million euros in all."),
    ("The sensor has a resolution of 4.0 mm.", "The sensor has a resolution of 4.02 mm."),
    ("The crossing takes 30 to 40 minutes.", "The crossing takes 35 minutes."),
    ("The crossing takes 30 to 40 minutes.", "The crossing takes between 38 and 45 minutes."),
    ("About 400 people live on Ostra.", "The island of Ostra has 420 people."),
    ("More than 400 people live on the island of Ostra.", "Exactly 520 people live on the island of Ostra."),
    ("The plant employs nearly 1,000 people.", "The plant employs 970 people."),
    ("The system has 3 pumps.", "The system has three pumps."),
    # other units
    ("The Norrholm bridge is 35 miles long.", "The Norrholm bridge is 56 km long."),
    ("The battery of the Aurora weighs 2,000 kg.", "The battery of the Aurora weighs 2 tonnes."),
    ("The ship carries 80 cars.", "The ship carries 300 passengers."),
    ("The tax on Ostra is 5 euros per day.", "The tax on Ostra is 40 euros per month."),
    # another time
    ("Fares rose by 4 percent in 2023.", "Fares rose by 6 percent in 2024."),
    ("In 2019 Lindholm employed 412 people.", "In 2021 Lindholm employed 398 people."),
    ("Lindholm employs 412 people.", "In 2019, Lindholm employed 398 people."),
    ("The ferry Aurora entered service in June 2023.", "The ferry Aurora entered service on 5 June 2023."),
    ("Lindholm was founded around 1896.", "Lindholm was founded in 1897."),
    # another thing
    ("The route to Norrholm takes 35 minutes.", "The route to Ostra takes 50 minutes."),
    ("Lindholm was founded in 1896.", "Hansen was founded in 1898."),
    ("The budget of the project is 96 million euros.", "The revenue of the ferry was 74 million euros."),
    ("The board approved 450,000 euros.", "The board approved the ship for 96 million euros in March."),
    (
        "The northern terminal of the ferry handles 400 cars a day.",
        "The southern terminal of the ferry handles 600 cars a day.",
    ),
    ("The median income on Ostra is 40,000 euros.", "The mean income on Ostra is 52,000 euros."),
    ("Pelican 3.11 was released in October 2022.", "Pelican 3.12 was released in October 2023."),
    ("The first ship was delivered in 2019.", "The second ship was delivered in 2021."),
    ("The report was published in 2019.", "The report was published in 2021."),
    ("Lindholm began building ships in 1950.", "Lindholm began building ferries in 1961."),
    ("The ship was planned to cost 96 million euros.", "The ship cost 118 million euros."),
    ("Sales of Lindholm rose by 40 million euros.", "Sales of Lindholm were 400 million euros."),
    ("Lindholm reported a revenue of $4.2 billion in 2022.", "Lindholm reported a profit of $0.6 billion in 2022."),
    ("Water boils at 100 °C at sea level.", "Water boils at 93 °C at 2,000 metres."),
    ("Unemployment among women was 4.1 percent.", "Unemployment among men was 5.2 percent."),
    ("Lindholm opened its Vester plant in 2015.", "Lindholm opened its Ostra plant in 2018."),
    ("The bill was adopted by the Senate in March 2020.", "The bill was adopted by the House in January 2020."),
    # no denial of the other
    ("Not only ferries are allowed to enter the harbour.", "Ferries are allowed to enter the harbour."),
    ("Zelitin increases the production of insulin.", "Insulin decreases the production of zelitin."),
    ("Zelitin does not increase the risk of stroke.", "Zelitin reduces the risk of stroke."),
    ("If ice blocks the harbour, ferries do not sail.", "Ferries sail where ice blocks the harbour."),
    ("Is the harbour open to yachts?", "The harbour is not open to yachts."),
    ("The team won the World Cup in three Fall Classics.", "The team won the World Cup in three Spring Classics."),
]


def between(a: str, b: str, titles: tuple[str, str] = ("", "")) -> bool:
    return bool(find_contradictions([Said(a, ("S00000a",), titles[0]), Said(b, ("S00000b",), titles[1])]))


@pytest.mark.parametrize(("a", "b"), CONTRADICTIONS)
def test_what_cannot_both_hold_is_found(a: str, b: str) -> None:
    assert between(a, b)
    assert between(b, a)


@pytest.mark.parametrize(("a", "b"), NEAR_MISSES)
def test_what_can_both_hold_is_left_alone(a: str, b: str) -> None:
    assert not between(a, b)
    assert not between(b, a)


def test_whose_population_it_is_stands_in_the_title() -> None:
    """Sentences that name nothing are compared where the titles say that they are about the same."""
    a, b = "The population was 6,138 at the last census.", "The population was 9,304 at the last census."
    assert not between(a, b, ("Norrholm, Vester", "Ostra island"))
    assert between(a, b, ("Norrholm, Vester", "A visit to Norrholm"))


@pytest.mark.parametrize("sentence", ["Dealers ask {} crowns for it.", "Drivers are charged {} crowns a crossing."])
def test_what_is_meant_stands_in_the_title_if_only_the_first_word_could_be_a_name(sentence: str) -> None:
    a, b = sentence.format("3,120"), sentence.format("4,875")
    assert not between(a, b, ("A day at the Corvid bridge", "Gannet"))
    assert between(a, b, ("A day at the Corvid bridge", "Corvid"))


SAME_SUBJECT = [
    (  # a publisher is no subject
        "The crossing takes {} minutes in calm weather.",
        ("35", "50"),
        ("The Aurora enters service | Coast News", "Lindholm Line: the Aurora - Shipping Register"),
    ),
    (  # a capital that only the title gives
        "The population was {} at the last census.",
        ("6,138", "9,304"),
        ("Population of Norrholm", "Census of Norrholm"),
    ),
    (  # what the sentence names may be what the other's title names
        "{} people and runs five routes.",
        ("Lindholm employs 412", "The company employs 398"),
        ("Ferries of the coast", "Lindholm looks back on a busy year"),
    ),
    (  # one title names the model, the other does not
        "The dry weight is {} kilograms.",
        ("23", "31"),
        ("Tried out: the Otter 12", "Otter pumps - Encyclopedia"),
    ),
    (  # one year, told in two reports
        "In 2020 the company sold {} ships.",
        ("118", "131"),
        ("Lindholm annual report 2020", "Lindholm annual report 2021"),
    ),
    (  # what happened once has one date, whenever it is told
        "The plant of Vester was opened by the minister in {}.",
        ("2015", "2017"),
        ("Vester power plant annual report 2021", "Vester power plant annual report 2023"),
    ),
]
OTHER_SUBJECT = [
    (  # more words shared than not
        "Ships of some size use the outer quay, which runs for {} metres along the channel.",
        ("275", "410"),
        ("Vester plans for the next ten years 2025 vester", "Ostra plans for the next ten years 2025 ostra"),
    ),
    (  # words of addresses
        "Customers bought goods for {} million crowns in 2025.",
        ("119", "233"),
        ("Lindholm Freight - Encyclopedia wiki lindholm freight", "Hansen Optics - Encyclopedia wiki hansen optics"),
    ),
    ("The dry weight is {} kilograms.", ("23", "47"), ("Tried out: the Marlin S", "Marlin L - Encyclopedia marlin l")),
    ("Tidewright waits {} seconds.", ("30", "60"), ("Tidewright 3.1 manual", "Tidewright 3.2 release notes")),
    ("Lindholm employs {} people.", ("412", "398"), ("Lindholm annual report 2021", "Lindholm annual report 2023")),
    ("The ferry runs {} times a day.", ("12", "9"), ("Lindholm plans for Norrholm", "Hansen plans for Norrholm")),
]


@pytest.mark.parametrize(("sentence", "values", "titles"), SAME_SUBJECT)
def test_sentences_are_about_what_their_titles_name(
    sentence: str, values: tuple[str, str], titles: tuple[str, str]
) -> None:
    a, b = map(sentence.format, values)
    assert between(a, b, titles)
    assert between(b, a, titles[::-1])


@pytest.mark.parametrize(("sentence", "values", "titles"), OTHER_SUBJECT)
def test_titles_that_name_other_things_versions_or_years_are_about_other_things(
    sentence: str, values: tuple[str, str], titles: tuple[str, str]
) -> None:
    a, b = map(sentence.format, values)
    assert not between(a, b, titles)
    assert not between(b, a, titles[::-1])


def test_a_name_that_opens_a_sentence_says_what_is_meant() -> None:
    a, b = "Alderney sold 3,120 tickets to visitors.", "Alderney sold 4,875 tickets to visitors."
    assert between(a, b, ("A day on the island", "Boats of the coast"))


def test_a_series_of_figures_is_no_contradiction() -> None:
    said = [Said(f"The population was {n:,} at the last census.", (f"S00000{n % 10}",)) for n in (612, 943, 1374, 2915)]
    assert find_contradictions(said) == []


def test_a_source_does_not_contradict_itself_and_all_who_agree_are_named() -> None:
    a, b, c = "The Aurora carries 80 cars.", "The Aurora carries 90 cars.", "The ferry Aurora carries 90 cars."
    assert find_contradictions([Said(f"{a} {b}", ("S00000a",))]) == []
    (found,) = find_contradictions([Said(a, ("S00000a",)), Said(b, ("S00000b",)), Said(c, ("S00000c",))])
    assert (found.claim_a, found.claim_b) == (a, b)
    assert found.source_ids == ["S00000a", "S00000b", "S00000c"]


def test_two_thousand_sentences_are_compared_quickly() -> None:
    """Also where all are alike: nothing is compared with everything."""
    alike = [
        Said(f"The ferry Nr{i} of the Lindholm line carries {i % 97 + 20} cars.", (f"S{i:06x}",)) for i in range(1000)
    ]
    words = [f"w{chr(97 + i % 26)}{chr(97 + i // 26 % 26)}ord" for i in range(676)]
    various = [
        Said(
            f"The {words[i % 676]} {words[i * 7 % 676]} of {words[i * 3 % 676].title()} holds {i} boxes.",
            (f"T{i:06x}",),
        )
        for i in range(1000)
    ]
    started = time.process_time()
    find_contradictions([*alike, *various])
    assert time.process_time() - started < 60  # 0.5 s; minutes, were each compared with each


def test_a_number_of_hundreds_of_digits_is_no_amount() -> None:
    assert not between(f"The Aurora carries 1{'0' * 400} cars.", "The Aurora carries 90 cars.")


@given(st.text(max_size=300), st.text(max_size=300))
def test_any_text_is_read_and_nothing_contradicts_itself(a: str, b: str) -> None:
    find_contradictions([Said(a, ("S00000a",)), Said(b, ("S00000b",))])
    assert find_contradictions([Said(a, ("S00000a",)), Said(a, ("S00000b",))]) == []


@given(st.integers(min_value=1, max_value=10**7), st.sampled_from(["cars", "km", "euros", "%", "million people"]))
def test_a_figure_lies_within_what_rounding_leaves_open(number: int, unit: str) -> None:
    (figure,) = figures_of(facts_of(f"The Aurora holds {number:,} {unit}."))
    size = {"km": 1000.0, "million people": 1e6}.get(unit, 1.0)
    assert figure.low <= number * size <= figure.high
    assert figure.high - figure.low <= 0.1 * number * size + 1e-9


@pytest.mark.parametrize(("a", "b"), [("15 EUR", "14 EUR"), ("14 days", "15 days"), ("4 projects", "3 projects")])
def test_whole_numbers_side_by_side_are_not_the_same(a: str, b: str) -> None:
    said = [Said(f"The Merrin plan allows {amount} to every team.", (f"S{n}a0a0a",)) for n, amount in enumerate((a, b))]
    assert len(find_contradictions(said)) == 1
