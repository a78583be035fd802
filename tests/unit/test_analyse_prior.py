"""Intervals with a prior of the variance: Smyth's formulas, a single trial, shares, and simulated machines."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import pytest
from scipy import stats as scipy_stats
from synthetic import MOMENT, result

from bench.analyse import prior, stats
from bench.analyse.break_even import break_even
from bench.analyse.compare import compare
from bench.analyse.explain.caveats import caveats
from bench.analyse.explain.ladder import ladder
from bench.analyse.prior import Prior
from bench.analyse.samples import paired_contrast
from bench.model.result import Result, ResultWarning
from bench.model.sample import Block, ProcessSample, Series
from bench.model.spec import Loop

pytestmark = pytest.mark.once


def blocks(steps: Sequence[float], turn: int, of: int = 2) -> list[Block]:
    """Return the blocks of the process that comes `turn`-th in each round of `of` processes."""
    return [Block(seconds=s, steps=1, cpu_seconds=s, position=of * n + turn) for n, s in enumerate(steps)]


def interleaved(loops: Sequence[Loop], trials: Sequence[Sequence[Sequence[float]]]) -> list[Result]:
    """Return a result for each loop, interleaved.

    Args:
        loops: the loops.
        trials: the step times of each loop's rounds, for each trial.
    """
    return [
        result(
            loop,
            loop=loop,
            samples=[
                ProcessSample(
                    trial=number,
                    pid=number,
                    started=MOMENT,
                    phases={"import": 3.0, "first_step": 0.1 * (turn + 1)},
                    series=[Series(blocks=blocks(trial[turn], turn, len(loops)))],
                )
                for number, trial in enumerate(trials, 1)
            ],
        )
        for turn, loop in enumerate(loops)
    ]


def trial(
    rng: random.Random, ratios: Sequence[float], noise: float, rounds: int = 20, between: float = 0.007
) -> list[list[float]]:
    """Return the step times of one trial on a machine whose rounds vary by `noise`, some of them more."""
    processes = [ratio * math.exp(rng.gauss(0, between / math.sqrt(2))) for ratio in ratios]
    times: list[list[float]] = [[] for _ in ratios]
    level = 0.0
    for _ in range(rounds):
        level = 0.7 * level + rng.gauss(0, noise)
        for process, seconds in zip(processes, times, strict=True):
            disturbed = 3.0 if rng.random() < 0.1 else 1.0
            seconds.append(0.01 * process * math.exp(level + disturbed * rng.gauss(0, noise)))
    return times


def test_a_moderated_variance_is_that_of_smyths_formula() -> None:
    # (4 · 0.04 + 2 · 0.01) / 6 = 0.03, with 4 + 2 degrees of freedom.
    assert Prior(0.04, 4).moderate(0.01, 2) == pytest.approx((0.03, 6))
    contrast = stats.Contrast.paired([0.0] * 3, [0.4, 0.5, 0.6], Prior(0.04, 4))  # their own variance is 0.01
    half = scipy_stats.t.ppf(0.975, 6) * math.sqrt(0.03 / 3)
    assert (contrast.interval().low, contrast.interval().high) == pytest.approx((0.5 - half, 0.5 + half))


def test_an_adjusted_contrast_has_the_prior_and_one_degree_of_freedom_less() -> None:
    differences, first = [0.1, 0.2, 0.1, 0.2, 0.1, 0.2], [1, -1] * 3
    contrast = stats.Contrast.adjusted(differences, first, Prior(0.09, 4))
    assert contrast.freedom == 8
    assert contrast.variance == pytest.approx(4 * 0.09 / 8 / 6)  # starting first explains all of their own variance


def test_one_trial_has_the_interval_of_the_prior() -> None:
    contrast = stats.Contrast.paired([0.0], [0.7], Prior(0.01, 4))
    half = scipy_stats.t.ppf(0.975, 4) * 0.1
    assert (contrast.interval().low, contrast.interval().high) == pytest.approx((0.7 - half, 0.7 + half))
    assert contrast.interval().n == 1


def test_one_interleaved_trial_has_a_verdict_and_processes_that_ran_apart_have_none() -> None:
    rng = random.Random(1)
    times = trial(rng, (1.0, 0.5), 0.02)
    base, other = interleaved(("step", "fused"), [times])
    comparison = compare(base, other)
    assert comparison.ratio is not None
    assert (comparison.verdict, comparison.ratio.n) == ("faster", 1)
    for sample in other.samples:
        for block in sample.series[0].blocks:
            block.position += 1000
    assert compare(base, other).verdict == "not enough data"


def test_a_noisy_trial_has_a_wider_interval_than_a_quiet_one() -> None:
    rng = random.Random(2)
    widths = []
    for noise in (0.01, 0.03):
        base, other = interleaved(("step", "fused"), [trial(rng, (1.0, 0.5), noise)])
        contrast = paired_contrast(base, other)
        assert contrast is not None
        widths.append(math.sqrt(contrast.variance))
    assert widths[1] / widths[0] == pytest.approx(3, rel=0.5)


@pytest.mark.parametrize("noise", [0.01, 0.1])
@pytest.mark.parametrize("count", [1, 3])
def test_at_least_93_percent_of_intervals_contain_the_true_ratio_on_quiet_and_on_noisy_machines(
    count: int, noise: float
) -> None:
    rng = random.Random(11)
    runs, covered = 200, 0
    for _ in range(runs):
        sides = interleaved(("step", "fused"), [trial(rng, (1.0, 0.8), noise) for _ in range(count)])
        contrast = paired_contrast(sides[0], sides[1])
        assert contrast is not None
        ratio = contrast.ratio()
        covered += (ratio.low or 0) <= 0.8 <= (ratio.high or math.inf)
    assert covered / runs >= 0.93


@pytest.mark.parametrize("count", [1, 3])
def test_at_least_93_percent_of_ladders_contain_all_true_shares(count: int) -> None:
    rng = random.Random(5)
    runs, covered = 100, 0
    for _ in range(runs):
        levels = interleaved(("step", "resident", "fused"), [trial(rng, (1.0, 0.7, 0.2), 0.03) for _ in range(count)])
        parts, rest, _ = ladder(levels)
        shares = [part.share for part in parts]
        covered += all(
            (share.low or 0.0) <= truth <= (share.high or 0.0) for share, truth in zip(shares, (0.3, 0.5), strict=True)
        )
        assert rest.low is not None
    assert covered / runs >= 0.93


def test_the_prior_of_a_share_follows_from_that_of_the_ratio() -> None:
    quiet = [blocks([seconds] * 10, turn, 3) for turn, seconds in enumerate((1.0, 0.5, 0.1))]
    whole, middle, lowest = ([level] for level in quiet)
    between = prior.QUIET**2

    def variance(known: Prior | None) -> float:
        assert known is not None
        return known.variance

    assert variance(prior.of_ratio(whole, middle)) == pytest.approx(between)
    assert variance(prior.of_share(whole, None, middle)) == pytest.approx(between * 0.5**2)
    assert variance(prior.of_share(whole, lowest, None)) == pytest.approx(between * 0.1**2)
    assert variance(prior.of_share(whole, middle, lowest)) == pytest.approx(between * (0.5**2 + 0.1**2 + 0.4**2) / 2)


def test_one_trial_with_clearly_different_steps_has_a_break_even() -> None:
    rng = random.Random(3)
    base, other = interleaved(("step", "fused"), [trial(rng, (1.0, 0.5), 0.02)])
    for side in (base, other):
        side.samples[0].start_position = 0
    even = break_even(base, other, paired=True)
    assert even is not None
    assert even.winner == "other"
    assert even.steps is not None
    assert (even.steps.low, even.steps.n) == (None, 1)


def test_a_noisy_explanation_says_how_much_wider_its_intervals_are_and_why() -> None:
    rng = random.Random(4)
    quiet, noisy = (
        interleaved(("step", "fused"), [trial(rng, (1.0, 0.5), noise) for _ in range(3)]) for noise in (0.005, 0.2)
    )
    noisy[0].warnings = [
        ResultWarning(key="load", message="the machine was busy before the run", fix="Wait."),
        ResultWarning(key="stolen", message="the hypervisor took a CPU's time", fix="Use a dedicated machine."),
        ResultWarning(key="clocks", message="the GPU's clock varied", fix="Lock its clocks."),
        ResultWarning(key="float64", message="the step computes in float64"),
    ]
    noisy[1].warnings = [ResultWarning(key="load", message="the machine was very busy before the run", fix="Wait.")]
    assert caveats(quiet) == []
    text, other = caveats(noisy)
    assert "times as wide" in text
    assert text.endswith(
        "Possible causes: the machine was busy before the run; the hypervisor took a CPU's time; the GPU's clock "
        "varied. Close other programs, or use a dedicated machine. Lock its clocks."
    )
    assert other == "step: the step computes in float64"
