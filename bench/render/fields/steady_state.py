"""The steady state: step times, rates and costs."""

from __future__ import annotations

from bench.render import numbers
from bench.render.fields.field import Field, priced, quantity, summary

HEADING = "steady state"

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
