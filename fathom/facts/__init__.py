"""The facts in a sentence: numbers with their units, dates, names, negations and opposites, however they are written.

`fathom.evidence` asks whether exactly this is in a source, `fathom.contradictions` if two sources can both be right.
"""
