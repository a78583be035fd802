"""The steady state: step times, rates and costs."""

from __future__ import annotations

from bench.model.result import Result
from bench.render import numbers
from bench.render.fields.field import Field, priced, quantity, summary

HEADING = "steady state"

EPOCHS_MATTER = 0.95
"""The throughput over whole epochs is shown only if it is less than this share of the throughput of the steps."""


def _whole_epochs(result: Result) -> float | None:
    """Return the throughput over whole epochs. None if it is unknown or hardly lower than that of the steps."""
    steps, epochs = result.summary.examples_per_second, result.summary.epoch_examples_per_second
    return epochs if steps and epochs and epochs < EPOCHS_MATTER * steps else None


FIELDS = (
    Field(
        "step_seconds", "step", summary("step_seconds"), numbers.interval, HEADING, "s", "step_seconds",
        brief="step time",
    ),
    Field("step_seconds_mean", "step, mean", summary("step_seconds_mean"), numbers.interval, HEADING, "s"),
    *(
        Field(
            f"step_seconds_p{p}", f"single step, p{p}", summary(f"step_seconds_p{p}"), numbers.time, HEADING, "s",
            f"p{p}_seconds",
        )
        for p in (50, 90, 99)
    ),
    Field(
        "examples_per_second", "throughput", summary("examples_per_second"), quantity("examples/s"), HEADING,
        "examples/s", "examples_per_second", brief="throughput",
    ),
    Field(
        "epoch_examples_per_second", "throughput, whole epochs", _whole_epochs, quantity("examples/s"), HEADING,
        "examples/s", "epoch_examples_per_second", brief="in whole epochs",
    ),
    Field(
        "flops_per_second", "compute", summary("flops_per_second"), quantity("FLOP/s"), HEADING, "FLOP/s",
        "flops_per_second",
    ),
    Field(
        "cost_per_1000_steps",
        "1,000 steps, {}",
        lambda result: priced(result, result.summary.cost_per_1000_steps),
        numbers.money,
        HEADING,
        metric="cost_per_1000_steps",
        entry_label="currency",
        brief="1,000 steps, {}",
    ),
)  # fmt: skip
