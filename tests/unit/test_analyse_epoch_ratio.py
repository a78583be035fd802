"""Ratios over whole epochs: what they are, when there is none, and the sentences about them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest
from synthetic import MOMENT, interval, result

from bench.analyse.compare import compare
from bench.analyse.epoch_ratio import epoch_contrast
from bench.analyse.samples import paired_contrast
from bench.model.facts import Asides, Epoch, Facts
from bench.model.result import Result
from bench.model.sample import Block, ProcessSample, Series
from bench.render.sentences.comparison import details, over_epochs, summary, verdict, whole_epochs
from bench.session import stopping
from bench.session.design import with_first

pytestmark = pytest.mark.once

STEP, LENGTH = 0.010, 10
NOISE = (1.0, 1.02, 0.98, 1.01, 0.99)


def side(
    ends: Sequence[float], turn: int, group: str = "g", facts: dict[str, Any] | None = None, **spec: Any
) -> Result:
    """Return a result whose steps take 10 ms and whose epochs of ten steps end in these seconds, trial by trial.

    Only the starts of the first three trials are measured, and with them the ends of epochs.

    Args:
        ends: seconds of the end of an epoch, in each trial.
        turn: position in each round of two processes.
        group: only results of one group are interleaved.
        facts: of the processes, besides their epochs.
        spec: changes to the spec.
    """
    samples = []
    for trial, seconds in enumerate(ends, 1):
        steps = [STEP * (1.03, 0.99, 1.0, 0.98, 1.01, 1.0)[(n + turn) % 6] for n in range(12)]
        blocks = [Block(seconds=s, steps=1, cpu_seconds=s, position=2 * n + turn) for n, s in enumerate(steps)]
        phases = {"first_step": 0.1, "first_epoch_end": 3 * seconds, "epoch_end": seconds} if trial <= 3 else {}
        read = Facts(**{"epoch": Epoch(batches=LENGTH, remainder=0), **(facts or {})})
        samples.append(
            ProcessSample(
                trial=trial, pid=trial, started=MOMENT, phases=phases, series=[Series(blocks=blocks)], facts=read
            )
        )
    return result(f"{group}{turn}", group=group, samples=samples, **spec)


def pair(first: float, other: float, trials: int = 2, **changes: Any) -> tuple[Result, Result]:
    """Return two results with equal steps. The epochs of one end in `first` seconds, those of the other in `other`."""
    noise = NOISE[:trials]
    return (
        side([first * n for n in noise], 0, params={"validate": False}),
        side([other * n for n in reversed(noise)], 1, params={"validate": True}, **changes),
    )


def test_a_side_whose_epochs_were_not_timed_gives_no_ratio_over_whole_epochs() -> None:
    base, other = pair(0.01, 1.0)
    for sample in base.samples:
        sample.phases = {"first_step": 0.1}
    assert compare(base, other).epoch_ratio is None
    # fit validates, but nothing timed it
    assert compare(*pair(0.01, 1.0, facts={"validated_epochs": 1.0})).epoch_ratio is None
    # only one side has seen work between the steps of its own loop
    asides = Asides(every=10, count=1, seconds=5.0, first_seconds=5.0)
    assert compare(*pair(0.01, 0.01, facts={"asides": asides})).epoch_ratio is None


def test_only_loops_as_written_are_compared_over_whole_epochs_because_devbenchs_own_run_no_callbacks() -> None:
    as_written, fit = pair(0.01, 1.0, loop="fit")
    assert compare(as_written, fit).epoch_ratio is None
    for group in ("g", "h"):
        other = side([0.5, 0.5], 0, group=group, loop="fit")
        assert compare(fit, other).epoch_ratio is None


def test_a_comparison_gives_the_ratio_over_whole_epochs_beside_the_undecided_verdict_on_the_steps() -> None:
    comparison = compare(*pair(0.01, 1.0))
    assert comparison.epoch_ratio is not None
    assert comparison.epoch_ratio.value == pytest.approx(10.0, rel=0.02)
    assert (comparison.verdict, comparison.epoch_verdict) == ("undecided", "slower")
    assert verdict(comparison).startswith("undecided: ")
    sentence = whole_epochs(comparison)
    assert sentence == (
        "Over whole epochs, with validations and callbacks spread over the steps, cifar on cpu, as-written, validate "
        "on takes 10 times [7, 14] as long as cifar on cpu, as-written, validate off (2 trials)."
    )
    assert sentence in details(comparison)
    results = {each.id: each for each in pair(0.01, 1.0)}
    (summarized,) = summary(
        [comparison], results, {side.id: side.label for side in (comparison.base, comparison.other)}
    )
    assert summarized.endswith(sentence)
    base, other = pair(0.01, 1.0)
    assert "is 10 times [7, 14] as fast as cifar" in whole_epochs(compare(other, base))
    assert whole_epochs(compare(*pair(0.01, 0.01))) == ""


@pytest.mark.parametrize(("end", "differs"), [(0.01, False), (50.0, True)])
def test_a_comparison_says_that_faster_steps_make_no_difference_if_the_ends_of_epochs_dominate(
    end: float, differs: bool
) -> None:
    other, base = pair(end, end, 3)
    for block in (block for sample in base.samples for block in sample.series[0].blocks):
        block.seconds *= 3
    comparison = compare(base, other)
    assert (comparison.verdict, comparison.differs_over_epochs) == ("faster", differs)
    if differs:
        assert comparison.epoch_verdict == "undecided"
        assert "times [" in whole_epochs(comparison)
        assert whole_epochs(comparison).endswith("(3 trials): undecided.")
        assert over_epochs(comparison) == "; over whole epochs undecided"
        same = comparison.model_copy(update={"epoch_verdict": "same"})
        assert whole_epochs(same).endswith(", within the threshold of 2% (3 trials).")
    else:
        assert whole_epochs(comparison) == ""
        assert over_epochs(comparison) == ""


def test_a_ratio_per_example_over_whole_epochs_counts_the_examples_of_partial_batches() -> None:
    def of_batch(batch: int, epoch: Epoch, turn: int) -> Result:
        """Return a result whose epochs of 640 examples take 112 ms: 100 ms for their end, the rest for the examples."""
        each = side([0.1] * 3, turn, facts={"epoch": epoch}, params={"batch": batch})
        for sample in each.samples:
            sample.phases |= {"partial_batch": 0.1, "partial_batch_again": 0.012 * epoch.remainder / 640}
            for block in sample.series[0].blocks:
                block.seconds *= 1.2 * batch / 640
        each.summary.step_seconds = interval(0.012 * batch / 640)
        each.summary.examples_per_second = 640 / 0.012
        return each

    results = of_batch(320, Epoch(batches=2, remainder=0), 0), of_batch(600, Epoch(batches=1, remainder=40), 1)
    comparison = compare(*results)
    assert comparison.unit == "example"
    assert comparison.epoch_ratio is not None
    assert comparison.epoch_ratio.value == pytest.approx(1.0, rel=0.02)
    current = stopping.accuracy(results, 0.02, with_first, over_epochs=True)
    assert current is not None
    assert not current.by_epochs


def write_checkpoints(each: Result, seconds: float) -> None:
    """Let one of the steps of each process take so much longer that the mean step takes these seconds longer."""
    for sample in each.samples:
        sample.series[0].blocks[5].seconds += seconds * len(sample.series[0].blocks)


def test_rare_slow_steps_belong_to_whole_epochs() -> None:
    base, other = pair(0.001, 0.5)  # 10 and 60 ms per step
    write_checkpoints(base, 0.1)  # 110 ms
    for results in ((base, other), (base, other.model_copy(update={"group": "h"}))):
        comparison = compare(*results)
        assert comparison.epoch_ratio is not None
        assert comparison.epoch_ratio.value == pytest.approx(60 / 110, rel=0.02)
        assert comparison.epoch_verdict != "slower"


def test_results_of_separate_runs_are_compared_over_whole_epochs_by_their_processes() -> None:
    base, other = pair(0.01, 1.0, 3, group="h")
    assert epoch_contrast(base, other) is None
    comparison = compare(base, other)
    assert comparison.epoch_ratio is not None
    assert comparison.epoch_ratio.value == pytest.approx(10.0, rel=0.02)
    assert comparison.epoch_verdict == "slower"


def test_on_a_machine_whose_rounds_vary_more_the_time_between_epochs_is_expected_to_vary_more() -> None:
    def between_epochs(noise: float) -> float:
        base, other = pair(0.1, 0.1)
        for each, sign in ((base, 1), (other, -1)):
            for sample in each.samples:
                for n, block in enumerate(sample.series[0].blocks):
                    block.seconds *= math.exp(sign * noise * (-1) ** n)
        epochs, steps = epoch_contrast(base, other), paired_contrast(base, other)
        assert epochs is not None
        assert steps is not None
        return math.sqrt(epochs.variance - steps.variance)

    assert between_epochs(0.3) > 1.5 * between_epochs(0.0)
