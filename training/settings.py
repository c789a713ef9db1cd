"""How a run goes, whatever it trains: the settings of training.trainer."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from helios.config import Section


def _switch(value: Any) -> Any:
    """YAML reads a bare on and off as true and false."""
    return {True: "on", False: "off"}[value] if isinstance(value, bool) else value


class TrainSettings(Section):
    """Optimiser, schedule, checkpoints and stopping; the recipe says what is learned."""

    epochs: int = Field(default=1, ge=1)
    max_steps: int | None = Field(default=None, ge=1)
    """Stop after so many optimiser steps; the schedule ends there too."""
    learning_rate: float = Field(default=2e-5, gt=0.0)
    schedule: Literal["cosine", "linear", "constant"] = "cosine"
    """What follows the warm-up: a way down to zero, or none."""
    warmup: float = Field(default=0.1, ge=0.0)
    """Steps of linear warm-up: below 1 a share of all steps, otherwise their number."""
    weight_decay: float = Field(default=0.01, ge=0.0)
    """For matrices; vectors (biases, norms) never decay."""
    clip: float | None = Field(default=1.0, gt=0.0)
    """Largest norm of the gradient; None does not clip."""
    accumulate: int = Field(default=1, ge=1)
    """Batches of one optimiser step, over all processes: the result does not depend on how many there are."""
    bf16: Annotated[Literal["auto", "on", "off"], BeforeValidator(_switch)] = "auto"
    """Mixed precision; `auto` where the device multiplies bf16 natively."""
    seed: int = Field(default=13, ge=0)
    evaluate_steps: int | None = Field(default=None, ge=1)
    """Measure after so many steps, besides after every epoch."""
    evaluate_first: bool = True
    """Measure before the first step too: the untrained model may win."""
    best_by: str | None = None
    """The measure that chooses the best checkpoint; None is the first that the recipe reports, `last` takes the newest
    weights whatever was measured: where differences are chance, choosing by them only adds some."""
    lower_is_better: bool = False
    patience: int | None = Field(default=None, ge=1)
    """Stop after so many measurements without a better one."""
    checkpoint_steps: int | None = Field(default=None, ge=1)
    """Save after so many steps."""
    checkpoint_minutes: float | None = Field(default=10.0, gt=0.0)
    """Save when so much time has passed since the last save."""
    log_steps: int = Field(default=10, ge=1)
    """Log the mean loss of so many steps."""


NEWEST = "last"
HOUSEKEEPING = frozenset(
    {"checkpoint_steps", "checkpoint_minutes", "log_steps", "patience", "best_by", "lower_is_better"}
)
"""Settings that may change between a kill and its resume: they do not touch the weights' path."""
