"""Causes before the first step and after the last one, and their place among the causes of a slow step."""

from __future__ import annotations

import pytest
from synthetic import explanation, ladder_results
from test_analyse_compare import sample
from test_explain_shares_of_time import trained

from bench.analyse.explain import wall_time
from bench.analyse.explain.answer import conclude
from bench.analyse.explain.findings import findings
from bench.model.causes import AFTER_STEPS, BEFORE_STEPS
from bench.model.explanation import STEPS, Explanation, Finding, WallTimePart
from bench.model.facts import Facts, OutsideWork
from bench.model.result import Result
from bench.render.sentences import explanation as sentences

STEP_SECONDS, NUMBER = 0.01, 400
"""Their product is the time of all steps: 4 s."""


def script(before: float, after: OutsideWork | None = None, **work: object) -> Result:
    """Return the result of a script. It starts in 2 s, and its first step is as fast as the others."""
    facts = Facts(
        before_steps=OutsideWork.model_validate({"seconds": before, "lines": [24], **work}), after_steps=after
    )
    phases = {"import": 2.0, "build": before, "first_step": STEP_SECONDS}
    return trained([sample(1, STEP_SECONDS, phases=phases, facts=facts)], NUMBER)


def found(base: Result) -> dict[str, Finding]:
    return {finding.cause: finding for finding in findings([base])}


def test_the_time_of_a_script_includes_what_follows_its_last_step() -> None:
    parts = {part.name: part for part in wall_time.wall_time(script(6.0, OutsideWork(seconds=8.0, lines=[40])))}
    seconds = {name: part.seconds for name, part in parts.items()}
    assert seconds == pytest.approx(
        {wall_time.START: 2.0, wall_time.BEFORE: 6.0, wall_time.TRACING: 0.01, STEPS: 3.99, wall_time.AFTER: 8.0}
    )
    assert {name for name, part in parts.items() if part.outside} == {
        wall_time.START, wall_time.BEFORE, wall_time.AFTER
    }  # fmt: skip


def test_long_work_before_the_first_step_is_a_cause_with_its_lines() -> None:
    finding = found(script(6.0))[BEFORE_STEPS]
    assert "prepares the data and builds the model for 6 s" in finding.sentence
    assert "line 24)" in finding.sentence
    assert "That is 50% of the time of the whole program." in finding.sentence
    assert finding.share == pytest.approx(0.5)


def test_lines_are_not_named_if_most_of_the_work_came_before_tensorflow() -> None:
    sentence = found(script(6.0, seconds=1.0))[BEFORE_STEPS].sentence
    assert "for 6 s. That is 50%" in sentence


def test_short_work_before_the_first_step_is_no_cause() -> None:
    assert BEFORE_STEPS not in found(script(1.0))


def test_a_workload_that_prepares_its_data_for_long_is_told_so() -> None:
    phases = {"import": 2.0, "data": 6.0, "build": 0.5, "first_step": STEP_SECONDS}
    finding = found(trained([sample(1, STEP_SECONDS, phases=phases)], NUMBER))[BEFORE_STEPS]
    assert "the program prepares the data for 6 s. That is 48%" in finding.sentence


def test_long_work_after_the_last_step_names_the_methods_of_the_model() -> None:
    finding = found(script(0.0, OutsideWork(seconds=6.0, lines=[40], call="evaluate")))[AFTER_STEPS]
    assert "works for 6 s (" in finding.sentence
    assert "line 40), most of it in evaluate. That is 50%" in finding.sentence
    assert finding.fix == "Give evaluate fewer examples or a larger batch_size."


def test_work_that_did_not_end_takes_more_than_its_share() -> None:
    base = script(0.0, OutsideWork(seconds=6.0, lines=[40], complete=False))
    finding = found(base)[AFTER_STEPS]
    assert "works for more than 6 s (" in finding.sentence
    assert "That is more than 50%" in finding.sentence
    ((_, advice),) = sentences.changes(concluded([finding]))
    assert not any("at most" in line for line in advice)


def concluded(found: list[Finding], wall_time: list[WallTimePart] | None = None) -> Explanation:
    document = explanation([*ladder_results(), *ladder_results()[:2]])
    document.parts, document.gains, document.combined = [], [], None
    document.findings, document.wall_time = found, wall_time or []
    conclude(document)
    return document


@pytest.mark.parametrize(("before", "first"), [(0.45, BEFORE_STEPS), (0.25, "slow input")])
def test_causes_are_sorted_by_their_share_of_the_whole_program(before: float, first: str) -> None:
    outside = Finding(cause=BEFORE_STEPS, sentence="Before.", evidence="", share=before)
    step = Finding(cause="slow input", sentence="Input.", evidence="", share=0.7, parts=["input"])
    parts = [
        WallTimePart(name=wall_time.BEFORE, seconds=10 * before, share=before, outside=True),
        WallTimePart(name=STEPS, seconds=10 * (1 - before), share=1 - before),
    ]
    document = concluded([step, outside], parts)
    assert document.answer[0].name == first
    assert f"{before:.0%} of the time of the whole program is {BEFORE_STEPS}." in sentences.headline(document)


def test_the_headline_says_that_starting_takes_most_of_a_short_program() -> None:
    def headline(start: float) -> str:
        parts = [
            WallTimePart(name=wall_time.START, seconds=start, share=start, outside=True),
            WallTimePart(name=STEPS, seconds=1 - start, share=1 - start),
        ]
        return sentences.headline(concluded([], sorted(parts, key=lambda part: -part.share)))

    assert "Starting Python and TensorFlow takes 60% of the time of the whole program." in headline(0.6)
    assert "Starting" not in headline(0.4)


def test_the_steps_of_a_program_that_mostly_prepares_its_data_are_minor() -> None:
    for share in (0.4, 0.6):
        finding = Finding(cause=BEFORE_STEPS, sentence="Before.", evidence="", share=share)
        assert concluded([finding]).steps_are_minor == (share > 0.5)


def test_a_result_without_projection_has_no_work_outside() -> None:
    base = script(6.0)
    base.projection = None
    assert BEFORE_STEPS not in found(base)
