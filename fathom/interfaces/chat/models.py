"""The models that the endpoint offers: profiles of research."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fathom.config.groups import Profile
from fathom.config.settings import SETTINGS
from fathom.interfaces.chat.errors import NoModel

MODELS: Mapping[str, Mapping[str, Any]] = {
    "fathom": {},
    **{f"fathom-{one}": {"profile": one.value} for one in Profile if one is not SETTINGS["profile"].default},
}
"""Their settings by name; `fathom` has the server's default, and in a follow-up the settings of the run before."""


def settings_of(model: str) -> dict[str, Any]:
    """Return the settings that a model stands for.

    Raises:
        NoModel: there is none of that name.
    """
    if model not in MODELS:
        raise NoModel(f"The model {model[:60]!r} does not exist.", next_step=f"choose one of {', '.join(MODELS)}")
    return dict(MODELS[model])


def model_of(settings: Mapping[str, Any]) -> str:
    """Return the name of the model that stands for a run's profile."""
    profile = settings.get("profile")
    return next((name for name, own in MODELS.items() if own.get("profile") == profile), "fathom")
