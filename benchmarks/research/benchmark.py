"""What one benchmark declares, so that the runner needs to know nothing else of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from benchmarks.results import Question, Result
from fathom.config.settings import Mode
from fathom.errors import InvalidInput

SYSTEM = "fathom"  # the name that submissions have


class Finished(NamedTuple):
    """A question that was researched to its end."""

    question: Question
    result: Result
    article: str  # the report as Markdown, with a numbered source list
    explanation: str  # its first section on one line
    folder: Path  # of the run


@dataclass(frozen=True)
class Benchmark:
    """A set of questions, and the form in which it wants the answers.

    Attributes:
        home: Where its code and data are got.
        licence: Of its data, as its authors state it.
        data: Path of the questions in a checkout; empty where they are not in one.
        get: What a person does to have the data.
        read: Returns the questions of a file, in its order.
        write: Writes the finished questions into an empty folder, in the benchmark's own form.
        score: The benchmark's own commands that score the submission.
    """

    name: str
    title: str
    home: str
    licence: str
    data: str
    get: str
    mode: Mode
    read: Callable[[Path], list[Question]]
    write: Callable[[Path, Sequence[Finished]], None]
    score: str

    def questions(self, given: Path | None) -> list[Question]:
        """Return the questions of a file, or of a checkout of the benchmark.

        Raises:
            InvalidInput: there is no such file, or it is not one of this benchmark.
        """
        step = f"{self.get}, then give --data PATH"
        if given is None:
            raise InvalidInput(f"{self.title} needs its data.", next_step=step)
        path = given / self.data if given.is_dir() and self.data else given
        if not path.is_file():
            raise InvalidInput(f"{path} is no file.", next_step=step)
        try:
            found = self.read(path)
        except (LookupError, ValueError, TypeError, AttributeError, OSError) as error:
            why = f"it has no {error}" if isinstance(error, KeyError) else f"{error}"
            raise InvalidInput(f"{path} is not a file of {self.title}: {why}.", next_step=step) from None
        if not found:
            raise InvalidInput(f"There is no question in {path}.", next_step=step)
        if empty := next((question.id for question in found if not question.question.strip()), ""):
            raise InvalidInput(f"The question {empty!r} in {path} is empty.", next_step=step)
        ids = [question.id for question in found]
        if twice := next((one for one in ids if ids.count(one) > 1), ""):
            raise InvalidInput(f"The id {twice!r} stands twice in {path}.", next_step=step)
        return found
