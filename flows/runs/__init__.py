"""The runs of a store, as data: find, read, list, judge, answer and steer them, for every interface."""
