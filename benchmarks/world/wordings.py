"""How the pages of the closed world say things: several wordings of each fact, and sentences that say none.

`{n}` is the subject's name and `{v}` the value. Pages of one subject differ in their wordings, as real pages do.
"""

from __future__ import annotations

FACTS: dict[str, tuple[str, ...]] = {
    "town.founded": (
        "{n} received its charter in {v}, when the fishing camps on both banks were joined under one council.",
        "The settlement was granted the rights of a town in {v}.",
        "Its history as a town begins in {v} with a charter that still hangs in the council chamber.",
    ),
    "town.population": (
        "At the census of 2025 the town had {v} inhabitants.",
        "{v} people were living in {n} when they were last counted, in 2025.",
        "The 2025 census put the number of residents at {v}.",
    ),
    "town.population.before": (
        "{n} has {v} inhabitants.",
        "With {v} residents it takes its place among the towns of the coast.",
    ),
    "town.quay": (
        "Ships of some size use the outer quay, which runs for {v} along the deep channel.",
        "The longest of the quays measures {v} and was rebuilt after the winter storms.",
        "At {v}, the outer quay is the longest in the harbour.",
    ),
    "town.market": (
        "The market is held every {v} from seven in the morning.",
        "Farmers from the hills set up their stalls on the square each {v}.",
        "{v} is market day.",
    ),
    "town.fare": (
        "A single crossing to the mainland costs {v} for a foot passenger.",
        "The ferry to the mainland takes foot passengers for {v} one way.",
        "Foot passengers pay {v} for a one-way ticket to the mainland.",
    ),
    "bridge.span": (
        "Its main span is {v} long.",
        "Between the two towers it crosses {v} of open water.",
        "The distance from pier to pier is {v}.",
    ),
    "bridge.opened": (
        "The first carts crossed in {v}, four years after work had begun.",
        "It was opened to traffic in {v}.",
        "Traffic has used it since {v}.",
    ),
    "bridge.architect": (
        "The design is by {v}, who had won the competition against eleven others.",
        "{v} drew the plans.",
        "It is the best-known work of the engineer {v}.",
    ),
    "bridge.toll": (
        "A car pays {v} each way.",
        "The toll for a car is {v}.",
        "Drivers are charged {v} a crossing.",
    ),
    "firm.founded": (
        "The firm was started in {v} in a rented shed.",
        "It has been in business since {v}.",
        "Founded in {v}, it is still owned by the families of its founders.",
    ),
    "firm.town": (
        "Its head office is in {v}.",
        "The company is run from {v}, where most of its people work.",
        "{n} has its seat in {v}.",
    ),
    "firm.staff": (
        "At the end of 2025 it employed {v} people.",
        "The workforce stood at {v} when the year 2025 closed.",
        "It had {v} employees at the end of 2025.",
    ),
    "firm.sales": (
        "Sales in 2025 came to {v}.",
        "Customers bought goods for {v} in 2025.",
        "The accounts for 2025 show a turnover of {v}.",
    ),
    "firm.chief": (
        "{v} became chief executive in March 2025.",
        "Since March 2025 the company has been led by {v}.",
        "The chief executive is {v}, who took over in March 2025.",
    ),
    "firm.chief.before": (
        "The chief executive is {v}.",
        "{v} leads the company.",
    ),
    "firm.makes": (
        "It is known for its {v}.",
        "What it sells is mostly {v}.",
        "Most orders are for {v}.",
    ),
    "pump.power": ("The motor is rated at {v}.", "It draws {v} under full load.", "Its motor delivers {v}."),
    "pump.weight": (
        "Without its cable it weighs {v}.",
        "Two people can lift it: it weighs {v}.",
        "The dry weight is {v}.",
    ),
    "pump.price": ("The list price is {v}.", "It sells for {v}.", "Dealers ask {v} for it."),
    "pump.warranty": (
        "The maker repairs it free of charge for {v}.",
        "It comes with a warranty of {v}.",
        "The warranty runs for {v} from delivery.",
    ),
    "pump.noise": (
        "At one metre it is heard with {v}.",
        "The noise level is {v}.",
        "It runs at {v}, measured at one metre.",
    ),
    "pump.flow": ("It moves {v}.", "At full load it lifts {v}.", "Its output is {v}."),
    "bird.weight": (
        "An adult weighs {v} on average.",
        "The mean weight of the adults that were ringed is {v}.",
        "Grown birds reach about {v}.",
    ),
    "bird.eggs": (
        "A pair lays {v} in late spring.",
        "The usual clutch is {v}.",
        "The nest holds {v} as a rule.",
    ),
    "bird.island": (
        "It breeds nowhere but on {v}.",
        "All known nests are on {v}.",
        "The only colony is that of {v}.",
    ),
    "bird.named": (
        "{v} gave the species its name.",
        "The first description is that of {v}.",
        "It was described for science by {v}.",
    ),
    "bird.year": (
        "The description was published in {v}.",
        "Science has known it since {v}.",
        "It entered the lists in {v}.",
    ),
    "standard.covers": (
        "{n} is the archipelago's standard for {v}.",
        "The standard applies to {v}.",
        "Its subject is {v}.",
    ),
    "standard.limit": (
        "The present edition allows at most {v}.",
        "No installation may exceed {v} under the edition in force.",
        "The limit is now {v}.",
    ),
    "standard.limit.before": (
        "The standard allows at most {v}.",
        "No installation may exceed {v}.",
    ),
    "standard.year": (
        "The edition in force is that of {v}.",
        "It was last revised in {v}.",
        "The current text dates from {v}.",
    ),
    "standard.interval": (
        "Inspections are due {v}.",
        "An inspector must look at each installation {v}.",
        "It asks for an inspection {v}.",
    ),
}

FILLERS: dict[str, tuple[str, ...]] = {
    "town": (
        "The harbour lies open to the south-west, and in autumn the swell can close it for days.",
        "Visitors usually come for the covered rope walk and for the view from the signal hill.",
        "Two schools, a small hospital and the customs house stand around the upper square.",
        "Fishing has lost weight, while repair yards and summer guests have gained it.",
        "Older houses are built of grey slate, and many still have a loft for drying nets.",
        "The council meets in public on the first evening of the month.",
        "A bus line connects the harbour with the villages on the plateau four times a day.",
        "In winter most of the cafés on the front close, and the town belongs to itself again.",
        "The breakwater was raised twice after storms, and a third raising is being discussed.",
        "A lifeboat has been stationed here for longer than anyone can remember.",
    ),
    "bridge": (
        "Painters work on it the whole year round, and when they reach one end they begin again at the other.",
        "Cyclists share the northern lane with pedestrians.",
        "In strong wind it is closed to high vehicles.",
        "The stone for the piers came from quarries on the far side of the sound.",
        "A small museum in the toll house tells how it was built.",
        "The lamps were replaced some years ago by warmer and less bright ones.",
        "Inspectors found the bearings in good order at their last visit.",
    ),
    "firm": (
        "Its apprentices come from the technical school and most of them stay.",
        "The works are open to visitors once a year.",
        "About half of what it makes goes abroad.",
        "A new hall is to be built on the site of the old boiler house.",
        "The works council agreed to a four-day week in the winter months.",
        "Competitors on the mainland are larger but slower to deliver, as customers say.",
        "The company sponsors the rowing regatta.",
    ),
    "pump": (
        "The casing can be opened with a single key.",
        "Sand does it no harm, the maker says, though the filter should be rinsed every week.",
        "A float switch stops it before it runs dry.",
        "Spare impellers are kept by most chandlers.",
        "The cable is ten metres long and resists oil.",
        "Users praise the handle and complain about the plug.",
    ),
    "bird": (
        "It feeds at dusk and is more often heard than seen.",
        "Wardens keep a distance of fifty paces from the nests.",
        "The call is a short rising whistle, repeated three times.",
        "In hard winters a few birds are driven to the mainland.",
        "Cats were removed from the breeding ground, and the numbers have recovered since.",
        "Young birds are streaked and hard to tell from their relatives.",
    ),
    "standard": (
        "It was drawn up by a committee of makers, users and inspectors.",
        "Installations that were accepted under earlier editions have a period of grace.",
        "A guide with worked examples is sold by the standards office.",
        "Comments on the next edition can be sent in until the end of the year.",
        "The text is available in the libraries of all ten towns.",
    ),
    "spam": (
        "You will not believe what comes next, so read on until the very end!",
        "Experts agree that this is the ultimate guide, and our readers love it.",
        "Sign up to our newsletter for more amazing facts, deals and coupons.",
        "Top ten lists are what we do best, and this one is our best so far.",
        "Click through all forty slides to find out the secret.",
        "This article may contain affiliate links, for which we receive a commission.",
    ),
}
