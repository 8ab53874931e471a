"""What a run may spend: the caps, and the prices of models."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from fathom.config.form import FormModel, Setting

DEFAULT_USD = 5.0
"""Default cap of a run in US dollars, used when the price of every model is known."""
DEFAULT_TOKENS = 3_000_000
DEFAULT_CALLS = 500


class Budget(FormModel):
    """The caps of a run, over all of its attempts; none is ever exceeded. They change no answer."""

    max_usd: Annotated[
        float | None,
        Setting(
            "--max-usd",
            "USD",
            empty=f"{DEFAULT_USD:g} if the price of every model is known, else no cap",
            page="budget",
        ),
    ] = Field(
        None,
        ge=0,
        description="Maximum cost in US dollars.",
        examples=[0.5],
    )
    max_tokens: Annotated[int, Setting("--max-tokens", "N", page="budget", most=DEFAULT_TOKENS)] = Field(
        DEFAULT_TOKENS, ge=1, description="Maximum tokens sent to and received from models.", examples=[500_000]
    )
    max_calls: Annotated[int, Setting("--max-calls", "N", page="budget", most=DEFAULT_CALLS)] = Field(
        DEFAULT_CALLS, ge=1, description="Maximum requests to models, including retries.", examples=[100]
    )
    max_seconds: Annotated[float | None, Setting("--max-seconds", "S", empty="no cap", page="budget")] = Field(
        None,
        gt=0,
        description="Maximum seconds of work, not counting pauses before a resume.",
        examples=[600],
    )
    research_share: Annotated[float, Setting(page="budget")] = Field(
        0.85,
        gt=0,
        le=1,
        description="Share of every cap that research may spend; the rest is kept for the report.",
        examples=[0.8],
    )


class BatchBudget(FormModel):
    """The caps over all questions of a batch; each question reserves a share of them before it is asked."""

    max_usd: Annotated[float | None, Setting(empty="no cap")] = Field(
        None, gt=0, description="Maximum cost in US dollars.", examples=[20]
    )
    max_tokens: Annotated[int | None, Setting(empty="no cap")] = Field(
        None, ge=1, description="Maximum tokens sent to and received from models.", examples=[10_000_000]
    )
    max_calls: Annotated[int | None, Setting(empty="no cap")] = Field(
        None, ge=1, description="Maximum requests to models.", examples=[2_000]
    )


class Price(FormModel):
    """What a model costs, in US dollars per million tokens."""

    input: float = Field(ge=0, description="US dollars per million tokens sent.", examples=[0.5])
    output: float = Field(ge=0, description="US dollars per million tokens received.", examples=[2])
    cached: Annotated[float | None, Setting(empty="same as `input`")] = Field(
        None,
        ge=0,
        description="US dollars per million sent tokens that the provider reads from its cache.",
        examples=[0.05],
        exclude_if=lambda value: value is None,
    )

    @classmethod
    def from_text(cls, text: str) -> object:
        """Take `0.25,2` and `0.25,2,0.03`, too: input, output and perhaps cached."""
        amounts = text.split(",")
        try:
            prices = [float(amount) for amount in amounts if 0 <= float(amount) < float("inf")]
        except ValueError:
            prices = []
        if len(prices) != len(amounts) or not 2 <= len(prices) <= len(cls.model_fields):
            raise ValueError("it must be INPUT,OUTPUT or INPUT,OUTPUT,CACHED in dollars per million tokens: 0.25,2")
        return dict(zip(cls.model_fields, prices, strict=False))
