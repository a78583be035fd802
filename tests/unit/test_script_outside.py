"""What a script does before the first step of a loop and after its last one, by samples of its stack."""

from __future__ import annotations

import time

import pytest

from bench.model.facts import Facts, OutsideWork
from bench.model.recognition import StepSource
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


def script(ended: bool, planned: int | None, after: int = 1) -> Facts:
    """Return what is known about a script that works, makes two steps and works again."""
    sampler = OutsideSampler(Sources(__file__))
    work()
    sampler.starting()
    for _ in range(2):
        sampler.step("fit a.py:3 fit")
    for _ in range(after):
        evaluate()
    facts = Facts()
    source = StepSource(
        kind="fit", name="fit", file="a.py", line=3, token="fit a.py:3 fit", steps=2, planned=planned, calls=2
    )
    sampler.read(facts, source, ended)
    return facts


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
    facts = script(ended=False, planned=planned, after=0)
    assert facts.after_steps is None
    assert facts.before_steps is not None


def test_the_scout_reports_what_surrounds_the_steps_of_the_chosen_loop() -> None:
    class NoInspector:
        def step(self, *args: object) -> None:
            pass

        def facts(self, chosen: StepSource) -> Facts:
            raise AssertionError("no line of the script runs in the steps of fit")

    scout = Scout(1e9, None, lambda event: None, lambda: None)
    scout.inspector = NoInspector()  # type: ignore[assignment]
    scout.outside = OutsideSampler(Sources(__file__))
    evaluation = ScriptCall("evaluate", "evaluate", "a.py", 2)
    scout.starting("evaluate")
    scout.step(evaluation, 1, None, None)
    work()
    scout.starting("function")
    scout.step(ScriptCall("fit", "fit", "a.py", 7), 1, None, None)
    (chosen,) = scout.sources
    facts = scout.facts(chosen, ended=True)
    assert facts is not None
    assert facts.before_steps is not None
    assert facts.before_steps.seconds == pytest.approx(SECONDS, rel=0.5)
    assert facts.after_steps is not None
    assert facts.after_steps.seconds < SECONDS
