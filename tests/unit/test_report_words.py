"""The sentences that a chapter begins with, and what its results are called in them."""

from __future__ import annotations

import pytest
from synthetic import killed, measured, misplaced

from bench.model.result import Failure, Result, Summary
from bench.render import sentences as words
from bench.render.report.names import heading, names
from bench.render.report.subject import Subject

pytestmark = pytest.mark.once


def sentences(*results: Result) -> list[str]:
    subject = Subject.of(results, 0.02)
    return list(words.verdicts(subject.comparisons, {each.id: each for each in results}, subject.name_of))


def pair(second: list[float], first: list[float] = [0.1] * 6, **changes: object) -> list[str]:
    return sentences(measured("1", first), measured("2", second, **{"backend": "cuda", **changes}))


def test_faster_is_told_as_how_many_times_as_fast_with_the_interval() -> None:
    (told,) = pair([0.0080, 0.0081, 0.0082, 0.0081, 0.0082, 0.0080])
    assert told.startswith("cuda is 12.3 times [12.")
    assert told.endswith("] as fast as cpu per step")


def test_slower_is_told_as_how_many_times_as_long() -> None:
    (told,) = pair([0.150, 0.151, 0.152, 0.151, 0.152, 0.150])
    assert told.startswith("cuda takes 1.510 times [1.50")
    assert told.endswith("] as long as cpu per step")


def test_the_same_is_told_with_the_difference_that_matters() -> None:
    (told,) = pair([0.1001, 0.0999, 0.1, 0.1001, 0.0999, 0.1])
    assert told.startswith("cuda is as fast as cpu per step, the difference is within 2% (1.0000 [0.999")


def test_undecided_is_told_with_how_many_trials_would_settle_it() -> None:
    (told,) = pair([0.085, 0.115, 0.09, 0.11, 0.088, 0.12])
    assert told.startswith("undecided: cuda takes 1.0")
    assert "trials would settle it" in told


def test_one_trial_gives_no_verdict_and_what_was_seen_is_told_as_that() -> None:
    first = measured("1", [0.1])
    told = sentences(first, measured("2", [0.05], loop="fit"), measured("3", [0.1], loop="step"))
    assert told == [
        "no verdict from one trial; seen was, as time per step over that of as-written: fit 0.500; step 1.00"
    ]


def test_failures_with_one_cause_are_one_sentence_and_nothing_is_compared_with_them() -> None:
    failed = {"status": "failed", "failure": killed(), "summary": Summary(), "samples": []}
    cause = "failed: the worker was killed by SIGKILL, as by the system when memory ends"
    told = sentences(
        measured("1", [0.1]), measured("2", [], loop="fit", **failed), measured("3", [], loop="step", **failed)
    )
    assert told == [f"fit and step {cause}"]
    told = sentences(measured("1", [], **failed), measured("2", [0.1, 0.1], loop="fit"))
    assert told == [f"as-written {cause}", "so there is nothing to compare fit with"]


def test_nan_is_told_as_a_failure() -> None:
    failure = Failure(kind="nan", message="the loss became NaN at step 3")
    broken = measured("2", [0.1, 0.1], loop="fit", status="failed", failure=failure)
    assert sentences(measured("1", [0.1, 0.1]), broken) == ["fit failed: the loss became NaN at step 3"]


def test_an_unfair_comparison_gets_its_reason_and_no_verdict() -> None:
    (told,) = pair([0.05] * 6, placement=misplaced())
    assert told.startswith("no fair comparison of cuda with cpu: cifar on cuda, as-written did not run where it claims")


def test_what_interleaved_is_compared_with_what_is_nearest_and_a_failure_is_told_once() -> None:
    failed = {"status": "failed", "failure": killed(), "summary": Summary(), "samples": []}
    told = sentences(
        measured("1", [0.10, 0.10, 0.101], case="large"),
        measured("2", [0.01, 0.01, 0.0101], case="small"),
        measured("3", [], case="large", backend="cuda", **failed),
        measured("4", [0.02, 0.02, 0.0201], case="small", backend="cuda"),
    )
    assert [each.split(" [")[0] for each in told] == [
        "large, cuda failed: the worker was killed by SIGKILL, as by the system when memory ends",
        "small, cpu is 10.000 times",
        "small, cuda takes 2.00 times",
    ]
    assert told[1].endswith("as fast as large, cpu per step")
    assert told[2].endswith("as long as small, cpu per step")


def test_one_result_alone_is_told_by_its_step_and_by_how_sure_that_is() -> None:
    assert words.level(measured("1", [0.1, 0.1, 0.101])).startswith("a step takes 100.3 ± ")
    assert words.level(measured("1", [0.1])) == (
        "a step takes 100 ms, as one process has it, so nobody knows how sure that is"
    )
    assert words.level(measured("1", [])) == "no step was measured"


def test_names_hold_only_what_tells_results_apart() -> None:
    assert names([measured("1", [0.1]), measured("2", [0.1], backend="cuda")]) == ["cpu", "cuda"]
    assert names([measured("1", [0.1], case="small", params={"n": 1}), measured("2", [0.1], case="large")]) == [
        "small",
        "large",
    ]
    batches = [measured(str(n), [0.1], params={"batch": n, "epochs": 3}) for n in (32, 64)]
    assert names(batches) == ["batch 32", "batch 64"]
    loops = [measured("1", [0.1]), measured("2", [0.1], loop="fused", xla=False)]
    assert names(loops) == ["as-written", "fused"]
    assert names([*loops, measured("3", [0.1], loop="fused", xla=True)])[1:] == ["fused, XLA off", "fused, XLA on"]


def test_names_fall_back_on_the_place_and_then_on_the_id() -> None:
    old, new = ({"framework": {"tensorflow": version}} for version in ("2.10.0", "2.21.0"))
    runs = [measured("1", [0.1], environment=old), measured("2", [0.1], environment=new)]
    assert names(runs) == ["TensorFlow 2.10.0", "TensorFlow 2.21.0"]
    assert names([measured("10", [0.1]), measured("20", [0.1])]) == ["cpu, as-written (10)", "cpu, as-written (20)"]


def test_a_heading_holds_what_results_have_in_common() -> None:
    assert heading([measured("1", [0.1]), measured("2", [0.1], loop="fit")]) == "cifar on cpu"
    assert heading([measured("1", [0.1]), measured("2", [0.1], backend="cuda")]) == "cifar, as-written"
    assert heading([measured("1", [0.1], case="a"), measured("2", [0.1], case="b")]) == "cifar on cpu, as-written"
