"""What numbers, units, dates and opposites mean, in whatever form they are written: one meaning for all who compare.

`fathom.evidence` asks whether exactly this stands in a source, `fathom.quality` whether two sources can both be right.
"""
