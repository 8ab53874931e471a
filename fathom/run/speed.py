"""How fast the models of a run are, and what that means for it: told once a model, after its first answer."""

from __future__ import annotations

from collections.abc import Callable

from fathom.config.settings import ResolvedSettings
from fathom.llm.base import Completion, Pace
from fathom.run.estimate import usual_tokens
from fathom.telemetry.progress import Event, publish

SLOW_MINUTES = 10
LEAST_MINUTES = 1  # a run that takes less needs no word about it


class Speed:
    """Reads the completions of a run."""

    def __init__(self, settings: ResolvedSettings, tell: Callable[[Event], None] = publish) -> None:
        self._settings = settings
        self._tell = tell
        self._told = set[str]()

    def heard(self, completion: Completion) -> None:
        """Tell how fast a model is, when that is new and known."""
        if completion.pace and completion.model not in self._told:
            self._told.add(completion.model)
            if words := self._words(completion, completion.pace):
                self._tell(Event("speed", words))

    def _words(self, completion: Completion, pace: Pace) -> str:
        sent, received = usual_tokens(self._settings, completion.model)
        read = pace.wait / completion.usage.prompt_tokens if completion.usage.prompt_tokens else 0.0
        minutes = (sent * read + received / pace.tokens_per_second) / 60
        if minutes < LEAST_MINUTES:
            return ""
        said = f"{completion.model} makes {pace.tokens_per_second:.0f} tokens a second; such a run often takes "
        said += f"{minutes:.0f} minutes"
        if minutes < SLOW_MINUTES:
            return said
        return f"{said}. Faster: --profile quick, or --role-model compressor=extractive"
