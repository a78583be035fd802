"""What a script does before the first step of a loop and after its last one, by samples of its stack."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from bench.model.facts import Facts, OutsideWork
from bench.model.recognition import Recognition, StepSource
from bench.worker.frames import Sources
from bench.worker.script.calls import ScriptCall
from bench.worker.script.outside import OutsideSampler
from bench.worker.script.scout import Scout

pytestmark = pytest.mark.once

SECONDS = 0.2


def work() -> int:
    end = time.perf_counter() + SECONDS
    return sum(1 for _ in iter(lambda: time.perf_counter() < end, False))


def evaluate() -> int:
    return work()


FIRST_LINE, LAST_LINE = work.__code__.co_firstlineno, evaluate.__code__.co_firstlineno + 2


def fit(line: int, planned: int | None = 2) -> StepSource:
    token = f"fit a.py:{line} fit"
    return StepSource(kind="fit", name="fit", file="a.py", line=line, token=token, steps=2, planned=planned, calls=2)


def run(sampler: OutsideSampler, loop: StepSource, validation: Callable[[], object] = lambda: None) -> None:
    """Call `fit`, which makes two steps and then validates."""
    sampler.starting()
    for _ in range(2):
        sampler.step(loop.token, in_fit=True)
    validation()
    sampler.returned(loop.token)


def read(sampler: OutsideSampler, chosen: StepSource, *others: StepSource, ended: bool = True) -> Facts:
    facts = Facts()
    sampler.read(facts, Recognition(chosen=chosen, others=list(others), ended=ended, seconds=1.0))
    return facts


def script(ended: bool, planned: int | None, after: Callable[[], object] = evaluate) -> Facts:
    """Return what is known about a script that works, makes two steps and does something else."""
    sampler, loop = OutsideSampler(Sources(__file__)), fit(3, planned)
    work()
    run(sampler, loop)
    after()
    return read(sampler, loop, ended=ended)


def lines(work: OutsideWork | None) -> list[int]:
    assert work is not None
    return work.lines


def test_work_before_and_after_the_steps_names_its_lines_and_its_seconds() -> None:
    facts = script(ended=True, planned=None)
    for found in (facts.before_steps, facts.after_steps):
        assert found is not None
        assert found.seconds == pytest.approx(SECONDS, rel=0.5)
        assert found.complete
        assert found.lines
        assert all(FIRST_LINE <= line <= LAST_LINE for line in found.lines)
        assert not found.elsewhere


def test_the_work_after_a_single_fit_that_ran_all_its_steps_takes_at_least_as_long_as_it_was_seen() -> None:
    seen = script(ended=False, planned=2).after_steps
    assert seen is not None
    assert not seen.complete
    assert lines(seen)


@pytest.mark.parametrize("planned", [None, 100])
def test_what_follows_is_not_known_if_the_script_may_make_more_steps(planned: int | None) -> None:
    facts = script(ended=False, planned=planned)
    assert facts.after_steps is None
    assert facts.before_steps is not None


def test_the_last_validation_of_fit_is_no_work_after_the_training() -> None:
    sampler, loop = OutsideSampler(Sources(__file__)), fit(3)
    run(sampler, loop, validation=work)
    after = read(sampler, loop).after_steps
    assert after is not None
    assert after.seconds < SECONDS / 2


def test_work_between_two_calls_of_fit_is_measured_for_itself() -> None:
    sampler, loop = OutsideSampler(Sources(__file__)), fit(3)
    run(sampler, loop, validation=work)
    work()
    run(sampler, loop)
    found = read(sampler, loop).between_fits
    assert found is not None
    assert found.seconds == pytest.approx(SECONDS, rel=0.5)
    assert found.lines
    sampler = OutsideSampler(Sources(__file__))
    run(sampler, loop)
    assert read(sampler, loop).between_fits is None


def test_another_training_is_no_work_before_or_after_the_steps() -> None:
    for chosen, other in ((0, 1), (1, 0)):
        sampler, loops = OutsideSampler(Sources(__file__)), [fit(3), fit(9)]
        for loop in loops:
            run(sampler, loop)
        facts = read(sampler, loops[chosen], loops[other])
        assert (facts.before_steps is None, facts.after_steps is None) == (chosen == 1, chosen == 0)


def test_a_script_that_waits_after_its_training_does_not_work() -> None:
    assert script(ended=False, planned=2, after=lambda: time.sleep(SECONDS)).after_steps is None


def test_the_scout_reports_what_surrounds_the_steps_of_the_chosen_loop() -> None:
    class Inspector:
        def step(self, *args: object) -> None:
            pass

        def knows(self, tokens: object) -> bool:
            return True

        def facts(self, chosen: StepSource) -> Facts:
            return Facts()

    scout = Scout(1e9, None, lambda event: None, lambda: None)
    scout.inspector = Inspector()  # type: ignore[assignment]
    scout.outside = OutsideSampler(Sources(__file__))
    evaluation = ScriptCall("evaluate", "evaluate", "a.py", 2)
    scout.starting("evaluate")
    scout.step(evaluation, 1, None, None)
    work()
    scout.starting("function")
    scout.step(ScriptCall("train-on-batch", "train_on_batch", "a.py", 7), 1, None, None)
    (chosen,) = scout.sources
    facts = scout.facts(Recognition(chosen=chosen, ended=True, seconds=1.0))
    assert facts is not None
    assert facts.before_steps is not None
    assert facts.before_steps.seconds == pytest.approx(SECONDS, rel=0.5)
    assert facts.after_steps is not None
    assert facts.after_steps.seconds < SECONDS
