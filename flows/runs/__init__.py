"""Operations on runs: find, read, list, judge, start, resume, answer, steer and replay, for every interface."""
