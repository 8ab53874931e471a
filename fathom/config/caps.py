"""What a run may spend: the caps, and the prices of models."""

from __future__ import annotations

from pydantic import Field

from fathom.config.form import FormModel

DEFAULT_USD = 5.0
"""Default cap of a run in US dollars, used when the price of every model is known."""


class Budget(FormModel):
    """The caps of a run, over all of its attempts; none is ever exceeded. They change no answer."""

    max_usd: float | None = Field(
        None,
        ge=0,
        description=f"Maximum cost in US dollars. Empty: {DEFAULT_USD:g} if the price of every model is known, "
        "else no cap.",
        examples=[0.5],
    )
    max_tokens: int = Field(
        3_000_000, ge=1, description="Maximum tokens sent to and received from models.", examples=[500_000]
    )
    max_calls: int = Field(500, ge=1, description="Maximum requests to models, including retries.", examples=[100])
    max_seconds: float | None = Field(
        None,
        gt=0,
        description="Maximum seconds of work, not counting pauses before a resume. Empty: no cap.",
        examples=[600],
    )
    research_share: float = Field(
        0.85,
        gt=0,
        le=1,
        description="Share of every cap that research may spend; the rest is kept for the report.",
        examples=[0.8],
    )


class BatchBudget(FormModel):
    """The caps over all questions of a batch; each question reserves a share of them before it is asked."""

    max_usd: float | None = Field(None, gt=0, description="Maximum cost in US dollars. Empty: no cap.", examples=[20])
    max_tokens: int | None = Field(
        None, ge=1, description="Maximum tokens sent to and received from models. Empty: no cap.", examples=[10_000_000]
    )
    max_calls: int | None = Field(
        None, ge=1, description="Maximum requests to models. Empty: no cap.", examples=[2_000]
    )


class Price(FormModel):
    """What a model costs, in US dollars per million tokens."""

    input: float = Field(ge=0, description="US dollars per million tokens sent.", examples=[0.5])
    output: float = Field(ge=0, description="US dollars per million tokens received.", examples=[2])
    cached: float | None = Field(
        None,
        ge=0,
        description="US dollars per million sent tokens that the provider reads from its cache. Empty: same as "
        "`input`.",
        examples=[0.05],
        exclude_if=lambda value: value is None,
    )
