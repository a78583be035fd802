"""The sentences about results and comparisons, and the labels in them."""

from __future__ import annotations

import pytest
from synthetic import killed, measured, misplaced

from bench.analyse.compare import compare
from bench.analyse.outcome import Outcome
from bench.analyse.pairing import pair_as_group
from bench.model.comparison import Difference
from bench.model.failure import Failure
from bench.model.result import Result, Summary
from bench.render.labels import common_label, short_labels
from bench.render.report.result_set import ResultSet
from bench.render.sentences.comparison import difference, summary, verdict
from bench.render.sentences.result import outcome

pytestmark = pytest.mark.once


def sentences(*members: Result) -> list[str]:
    outcome = Outcome.of(pair_as_group(members))
    labels = ResultSet.of(members).label_of
    return list(summary(outcome.comparisons, {result.id: result for result in members}, labels))


def pair(second: list[float], first: list[float] = [0.1] * 6, **changes: object) -> list[str]:
    return sentences(measured("1", first), measured("2", second, **{"backend": "cuda", **changes}))


def test_the_verdict_faster_says_how_many_times_as_fast_with_the_interval() -> None:
    assert pair([0.0080, 0.0081, 0.0082, 0.0081, 0.0082, 0.0080]) == [
        "faster: cuda is 12.3 times [12.2, 12.5] as fast as cpu per step (6 trials)."
    ]


def test_the_verdict_slower_says_how_many_times_as_long() -> None:
    assert pair([0.150, 0.151, 0.152, 0.151, 0.152, 0.150]) == [
        "slower: cuda takes 1.510 times [1.501, 1.519] as long as cpu per step (6 trials)."
    ]


def test_the_verdict_same_names_the_threshold() -> None:
    assert pair([0.1001, 0.0999, 0.1, 0.1001, 0.0999, 0.1]) == [
        "same: cuda takes 1.0000 times [0.9991, 1.0009] as long as cpu per step, within the threshold of 2% (6 trials)."
    ]


def test_the_verdict_undecided_says_how_many_trials_would_settle_it() -> None:
    assert pair([0.085, 0.115, 0.09, 0.11, 0.088, 0.12]) == [
        "undecided: cuda takes 1.0 times [0.9, 1.2] as long as cpu per step (6 trials). About 344 trials in total "
        "would settle it."
    ]


@pytest.mark.parametrize("loop", ["fit", "step", "fused"])
def test_a_label_that_is_only_a_loop_is_quoted_because_it_would_read_as_a_word(loop: str) -> None:
    assert sentences(measured("1", [0.1] * 3), measured("2", [0.05] * 3, loop=loop)) == [
        f"faster: '{loop}' is 2.0000 times [2.0000, 2.0000] as fast as 'as-written' per step (3 trials)."
    ]
    other_backend = measured("3", [0.05] * 3, loop=loop, backend="cuda")
    comparison = compare(measured("1", [0.1] * 3), other_backend)
    assert verdict(comparison, {"1": "cpu, as-written", "3": f"cuda, {loop}"}).startswith(f"faster: cuda, {loop} is ")


def test_one_trial_gives_no_verdict_but_the_observed_ratio() -> None:
    first = measured("1", [0.1])
    assert sentences(first, measured("2", [0.05], loop="fit")) == [
        "Too few trials for a verdict. Observed ratio, 'fit' / 'as-written': 0.500."
    ]
    assert sentences(first, measured("2", [0.05], loop="fit"), measured("3", [0.1], loop="step")) == [
        "Too few trials for a verdict. Observed ratios to 'as-written': 'fit' 0.500; 'step' 1.00."
    ]


def test_failures_with_one_cause_are_one_sentence_and_are_not_compared() -> None:
    failed = {"status": "failed", "failure": killed(), "summary": Summary(), "samples": []}
    cause = "failed: the worker was killed by SIGKILL, as by the system when memory ends."
    assert sentences(
        measured("1", [0.1]), measured("2", [], loop="fit", **failed), measured("3", [], loop="step", **failed)
    ) == [f"'fit' and 'step' {cause}"]
    assert sentences(measured("1", [], **failed), measured("2", [0.1, 0.1], loop="fit")) == [
        f"'as-written' {cause}",
        "There is nothing to compare 'fit' with.",
    ]


def test_a_loss_of_nan_is_a_failure() -> None:
    failure = Failure(kind="nan", message="the loss became NaN at step 3")
    diverged = measured("2", [0.1, 0.1], loop="fit", status="failed", failure=failure)
    assert sentences(measured("1", [0.1, 0.1]), diverged) == ["'fit' failed: the loss became NaN at step 3."]


def test_an_unfair_comparison_has_a_reason_and_no_verdict() -> None:
    assert pair([0.05] * 6, placement=misplaced()) == [
        "cuda cannot be compared fairly with cpu: cifar on cuda, as-written did not run where it was asked to."
    ]


def test_each_result_is_compared_with_its_nearest_baseline_and_a_failure_appears_once() -> None:
    failed = {"status": "failed", "failure": killed(), "summary": Summary(), "samples": []}
    lines = sentences(
        measured("1", [0.10, 0.10, 0.101], case="large"),
        measured("2", [0.01, 0.01, 0.0101], case="small"),
        measured("3", [], case="large", backend="cuda", **failed),
        measured("4", [0.02, 0.02, 0.0201], case="small", backend="cuda"),
    )
    assert lines == [
        "large, cuda failed: the worker was killed by SIGKILL, as by the system when memory ends.",
        "faster: small, cpu is 10.000 times [10.000, 10.000] as fast as large, cpu per step (3 trials).",
        "slower: small, cuda takes 2.00 times [1.98, 2.01] as long as small, cpu per step (3 trials).",
    ]


def test_a_single_result_has_its_step_time_with_the_error_if_that_is_known() -> None:
    assert outcome(measured("1", [0.1, 0.1, 0.101])) == "Step time: 100.3 ± 1.4 ms."
    assert outcome(measured("1", [0.1])) == "Step time: 100 ms (from one process, so the error is unknown)."
    assert outcome(measured("1", [])) == "No step was measured."


def test_labels_contain_only_what_distinguishes_the_results() -> None:
    assert short_labels([measured("1", [0.1]), measured("2", [0.1], backend="cuda")]) == ["cpu", "cuda"]
    cases = [measured("1", [0.1], case="small", params={"n": 1}), measured("2", [0.1], case="large")]
    assert short_labels(cases) == ["small", "large"]
    batches = [measured(str(n), [0.1], params={"batch": n, "epochs": 3}) for n in (32, 64)]
    assert short_labels(batches) == ["batch 32", "batch 64"]
    loops = [measured("1", [0.1]), measured("2", [0.1], loop="fused", xla=False)]
    assert short_labels(loops) == ["as-written", "fused"]
    with_xla = [*loops, measured("3", [0.1], loop="fused", xla=True)]
    assert short_labels(with_xla)[1:] == ["fused, XLA off", "fused, XLA on"]


def test_labels_of_equal_specs_contain_the_place_or_else_the_id() -> None:
    old, new = ({"framework": {"tensorflow": version}} for version in ("2.10.0", "2.21.0"))
    runs = [measured("1", [0.1], environment=old), measured("2", [0.1], environment=new)]
    assert short_labels(runs) == ["TensorFlow 2.10.0", "TensorFlow 2.21.0"]
    repetitions = [measured("10", [0.1]), measured("20", [0.1])]
    assert short_labels(repetitions) == ["cpu, as-written (10)", "cpu, as-written (20)"]


def test_a_common_label_contains_what_the_results_have_in_common() -> None:
    assert common_label([measured("1", [0.1]), measured("2", [0.1], loop="fit")]) == "cifar on cpu"
    assert common_label([measured("1", [0.1]), measured("2", [0.1], backend="cuda")]) == "cifar, as-written"
    cases = [measured("1", [0.1], case="a"), measured("2", [0.1], case="b")]
    assert common_label(cases) == "cifar on cpu, as-written"


def test_a_long_list_of_packages_is_cut() -> None:
    names = [f"{letter} 1" for letter in "abcdefg"]
    packages = Difference(name="packages", base=", ".join(names), other="a 2, b 2", kind="context")
    assert difference(packages, 5) == "differs: packages: a 1, b 1, c 1, d 1, e 1 and 2 more vs. a 2, b 2"
    assert difference(packages, 6) == difference(packages)  # "and 1 more" would not be shorter
