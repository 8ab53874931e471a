"""Settings over a template: what a user chooses, then what the template sets, then what is left open.

What is chosen must be told from what only has its default wherever settings go: Prefect stores them as JSON, and its
form writes every box. So settings with a template are written without what was not chosen, and of a form that was
filled in, which has null in its empty boxes, what has its default counts as not chosen.
"""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import (
    Field,
    ModelWrapValidatorHandler,
    SerializerFunctionWrapHandler,
    field_validator,
    model_serializer,
    model_validator,
)

from fathom.config.form import FormModel, SetBy, Setting
from fathom.config.templates import merged, settings_in, shipped, template_of
from fathom.errors import InvalidInput


class TemplatedSettings(FormModel):
    """Settings that a template can set."""

    template: Annotated[
        str | None,
        Setting("--template", "NAME|FILE", page="templates", by_template=False, set_by=SetBy.server),
    ] = Field(
        None,
        title="Template: name",
        description=f"Kind of research: {', '.join(shipped())}; or your own template: on the command line its file, "
        "elsewhere its text. It sets every setting that is left at its default here.",
        exclude_if=lambda template: template is None,
    )

    @field_validator("template")
    @classmethod
    def _check_template(cls, template: str | None) -> str | None:
        try:
            if template:
                settings_in(template_of(template), cls)
        except InvalidInput as error:
            raise ValueError(f"{error.message} ({error.next_step})") from None
        return template or None

    @model_validator(mode="wrap")
    @classmethod
    def _over_template(cls, given: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        plain = handler(given)
        if not plain.template or not isinstance(given, dict):
            return plain
        is_form = None in given.values()
        chosen = plain.model_dump(mode="json", exclude_unset=True, exclude_none=True, exclude_defaults=is_form)
        settings = handler(merged(settings_in(template_of(plain.template), cls), chosen))
        settings.model_fields_set.intersection_update(chosen)
        return settings

    @model_serializer(mode="wrap")
    def _only_chosen(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        written: dict[str, Any] = handler(self)
        return {name: value for name, value in written.items() if not self.template or name in self.model_fields_set}
