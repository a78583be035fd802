"""Shares of the mean step, which includes rare long steps, in an explanation."""

from __future__ import annotations

from typing import Any

import pytest
from synthetic import interval, result
from test_analyse_compare import sample
from test_explain_answer import part

from bench.analyse.explain.findings import findings
from bench.model.causes import BETWEEN_STEPS, FILLING, FIRST_STEPS, PARTIAL_BATCH
from bench.model.explanation import Finding, Part
from bench.model.facts import Asides, CallbackTime, CallbackTimes, Facts, FitCall, PipelineStage, Retraced
from bench.model.phase import Phase
from bench.model.result import Projection, Result
from bench.model.sample import Block

RARE = [0.01] * 9 + [0.11]
"""Steps of 10 ms, one of which is long. The mean step takes 20 ms."""


def measured(blocks: list[float], facts: Facts, phases: dict[Phase, float] | None = None) -> Result:
    samples = [sample(n, 0.01, facts=facts, phases={"first_step": 0.01, **(phases or {})}) for n in (1, 2, 3)]
    for each in samples:
        each.series[0].blocks = [Block(seconds=s, steps=1, cpu_seconds=s) for s in blocks]
    projection = Projection(steps=100, build_and_fit_seconds=interval(2), total_seconds=interval(3))
    return result(samples=samples, projection=projection)


@pytest.mark.parametrize(
    ("cause", "facts", "phases"),
    [
        (BETWEEN_STEPS, {"asides": Asides(count=2, first_seconds=2, seconds=2, every=100)}, {}),
        (
            FILLING,
            {
                "epoch": {"batches": 100, "remainder": 0},
                "pipeline": [PipelineStage(stage="shuffle", seconds=0.001, buffer=9, filling_seconds=2)],
            },
            {},
        ),
        (PARTIAL_BATCH, {}, {"partial_batch": 2.01, "partial_batch_again": 0.01}),
        (FIRST_STEPS, {}, {"first_step": 2.0}),
        (
            "retracing",
            {
                "retraced": [Retraced(function="f", file="a.py", line=1, count=90)],
                "steps_run": 100,
                "trace_seconds": 1.0,
            },
            {},
        ),
    ],
)
def test_a_share_of_all_time_is_one_of_the_mean_steps(
    cause: str, facts: dict[str, Any], phases: dict[Phase, float]
) -> None:
    found = {finding.cause: finding for finding in findings([measured(RARE, Facts(**facts), phases)])}
    assert found[cause].share == pytest.approx(0.5, abs=0.01)


def callbacks_of(blocks: list[float], seconds: float, parts: list[Part]) -> Finding:
    """Return the finding about callbacks that take `seconds` per step, in steps with these times."""
    timed = CallbackTimes(callbacks=[CallbackTime(name="Saver", step_seconds=seconds, epoch_seconds=0.0)])
    facts = Facts(fit=FitCall(callbacks=["Saver"], verbose=0, metrics=False), callback_times=timed)
    base = measured(blocks, facts)
    return next(found for found in findings([base], parts) if found.cause == "callbacks and logging")


def test_callbacks_that_work_in_a_few_steps_take_a_share_of_the_mean_step() -> None:
    none = part("own loop", "as-written", "fit", 0.0)
    rare = callbacks_of(RARE, 0.01, [none])
    assert rare.share == pytest.approx(0.5)
    assert "take 50% of the mean step, most of it in a few long steps." in rare.sentence
    assert rare.what_ifs == []  # a what-if compares typical steps, so it cannot refute it
    assert rare.fix


def test_cheap_callbacks_beside_rare_long_steps_are_not_called_rare() -> None:
    cheap = callbacks_of(RARE, 0.001, [part("own loop", "as-written", "fit", 0.1)])
    assert cheap.share == pytest.approx(0.1)
    assert "mean step" not in cheap.sentence
    assert callbacks_of(RARE, 0.001, []).share == pytest.approx(0.05)


def test_callbacks_that_run_beside_the_step_take_no_more_than_the_ladder_shows() -> None:
    beside = part("own loop", "as-written", "fit", 0.02)  # at most 4%
    noisy = [0.01] * 9 + [0.017]  # 6% of the mean step
    assert callbacks_of(noisy, 0.001, [beside]).share == pytest.approx(0.04)
    with pytest.raises(StopIteration):
        callbacks_of(noisy, 0.001, [part("own loop", "as-written", "fit", 0.0)])
