"""The answer of an explanation: what to change first, without advice that was measured without gain."""

from __future__ import annotations

from typing import Any

import pytest

from bench.analyse.explain.answer import conclude
from bench.analyse.explain.shares import from_what_ifs
from bench.model.causes import BETWEEN_EPOCHS, FILLING, FIRST_STEPS, LONG_STEPS
from bench.model.explanation import Explanation, Finding, Gain, Part
from bench.model.interval import Interval
from bench.render.sentences import explanation as sentences
from bench.render.terminal.explanation import text
from bench.whatif import advice, instead


def share(value: float) -> Interval:
    return Interval(value=value, low=value - 0.02, high=value + 0.02, n=5)


def part(name: str, upper: str, lower: str, value: float, *what_ifs: str) -> Part:
    return Part(
        name=name, what="something", upper=upper, lower=lower, seconds=0.01 * value, share=share(value),
        measurable=value > 0.02, what_ifs=list(what_ifs),
    )  # fmt: skip


def gain(name: str, ratio: float, verdict: Any = None) -> Gain:
    interval = Interval(value=ratio, low=0.97 * ratio, high=1.03 * ratio, n=5)
    word = verdict or ("faster" if ratio < 0.95 else "slower" if ratio > 1.05 else "same")
    return Gain(
        name=name, what_if=name, option=f"--change {name}", ratio=interval, verdict=word, loop="step",
        advice=advice(name), cause=f"cause of {name}",
    )  # fmt: skip


def slow_map() -> Finding:
    return Finding(
        cause="slow input", sentence="Input takes 93% of the step. Slowest stage: map (slow, mine.py line 12).",
        evidence="times", what_ifs=["parallel-map", "cache"], parts=["input"], share=0.93,
    )  # fmt: skip


def concluded(**changes: Any) -> Explanation:
    fields: dict[str, Any] = {
        "id": "x", "label": "mine on cpu, step", "step_seconds": 0.035, "trials": 5, "gains": [],
        "parts": [
            part("input", "step", "host-batches", 0.93, "parallel-map", "prefetch", "cache"),
            part("copies", "host-batches", "resident", 0.0),
            part("dispatch", "resident", "fused", 0.04),
        ],
        "rest_seconds": 0.001, "rest_share": share(0.03), "lowest_level": "fused", "what_if_loop": "step",
    }  # fmt: skip
    document = Explanation(**{**fields, **changes})
    conclude(document)
    return document


def test_an_explanation_begins_with_the_cause_its_line_and_the_change_that_was_measured_to_help() -> None:
    document = concluded(findings=[slow_map()], gains=[gain("cache", 0.066), gain("parallel-map", 1.01)])
    _, answer, *_ = text(document).split("\n\n")
    lines = answer.splitlines()
    assert lines[0] == "What to change first:"
    words = " ".join(answer.split())
    assert "1. Slow input: Input takes 93% of the step. Slowest stage: map (slow, mine.py line 12)." in words
    assert f"{advice('cache')} Measured: 15.2 times [14.7, 15.6] as fast per step." in words
    assert len(document.answer) == 1  # the part is the same cause
    assert instead("parallel-map") not in words  # the cache removes most of the cause


def test_advice_that_was_measured_without_gain_is_replaced_everywhere() -> None:
    document = concluded(findings=[slow_map()], gains=[gain("parallel-map", 1.01), gain("prefetch", 1.0)])
    shown = " ".join(text(document, verbose=True).split())
    assert advice("parallel-map") not in shown
    assert advice("prefetch") not in shown
    assert instead("parallel-map") in shown
    assert advice("cache") in shown  # it was not tried


@pytest.mark.parametrize("verdict", ["undecided", "not enough data"])
def test_advice_whose_measurement_is_unclear_stays(verdict: str) -> None:
    unclear = gain("parallel-map", 0.9, verdict)
    assert advice("parallel-map") in concluded(findings=[slow_map()], gains=[unclear]).findings[0].fix


def test_a_change_that_was_not_tried_says_how_much_it_can_save_at_most() -> None:
    document = concluded(parts=[part("dispatch", "resident", "fused", 0.4, "steps-per-execution")])
    ((cause, lines),) = sentences.changes(document)
    assert cause.startswith("40% of the step is dispatch: ")
    assert lines == [f"{advice('steps-per-execution')} (not tried, can save at most 40%)"]


def test_a_change_that_was_tried_without_a_clear_result_is_called_undecided() -> None:
    tapes = Finding(cause="persistent tapes", sentence="", evidence="", share=0.11, what_ifs=["single-use-tapes"])
    unclear = gain("single-use-tapes", 0.95, "undecided")
    ((_, lines),) = sentences.changes(concluded(parts=[], findings=[tapes], gains=[unclear]))
    assert lines == [f"{advice('single-use-tapes')} (undecided, can save at most 11%)"]


def test_a_change_that_was_tried_and_failed_is_not_called_undecided() -> None:
    tapes = Finding(cause="persistent tapes", sentence="", evidence="", share=0.11, what_ifs=["single-use-tapes"])
    failed = gain("single-use-tapes", 1.0, "not enough data").model_copy(update={"ratio": None, "failure": "an error"})
    ((_, lines),) = sentences.changes(concluded(parts=[], findings=[tapes], gains=[failed]))
    assert lines == [f"{advice('single-use-tapes')} (tried, but failed, can save at most 11%)"]


def test_a_share_of_an_epoch_is_not_taken_for_one_of_the_step() -> None:
    between = Finding(cause=BETWEEN_EPOCHS, sentence="", evidence="", share=0.6)
    filling = Finding(cause=FILLING, sentence="", evidence="", share=0.8, fix="Use a smaller buffer.")
    assert [change.name for change in concluded(findings=[between, filling]).answer[:2]] == [FILLING, BETWEEN_EPOCHS]


@pytest.mark.parametrize(
    ("ratio", "verdict", "line"),
    [
        (0.1, "faster", "Pass noise as a tensor. Measured: 10"),
        (0.95, "undecided", "Pass noise as a tensor. (undecided, can save at most 40%)"),
    ],
)
def test_the_fix_that_a_what_if_measured_is_shown_with_its_gain(ratio: float, verdict: str, line: str) -> None:
    document = concluded(parts=[], findings=[retracing()], gains=[gain("reduce-retracing", ratio, verdict)])
    ((cause, lines),) = sentences.changes(document)
    assert cause.startswith("Retracing: ")
    (shown,) = lines
    assert shown.startswith(line)


def test_a_fix_that_a_what_if_refuted_is_not_proposed() -> None:
    document = concluded(parts=[], findings=[retracing()], gains=[gain("reduce-retracing", 1.0)])
    assert document.findings[0].fix == instead("reduce-retracing")
    assert not any("tensor" in line for _, lines in sentences.changes(document) for line in lines)


def retracing() -> Finding:
    return Finding(
        cause="retracing", sentence="It traces.", evidence="", share=0.4, estimated=True,
        fix="Pass noise as a tensor.", what_ifs=["reduce-retracing"],
    )  # fmt: skip


def test_what_fills_the_shuffle_buffer_leaves_less_of_an_epoch_to_the_steps() -> None:
    filling = Finding(cause=FILLING, sentence="", evidence="", share=0.8)
    document = concluded(findings=[filling], parts=[part("dispatch", "resident", "fused", 0.9)])
    assert [change.name for change in document.answer] == [FILLING, "dispatch"]
    assert document.steps_are_minor


def test_a_gain_belongs_to_the_finding_whose_only_change_it_is() -> None:
    eager = Finding(
        cause="eager execution", sentence="", evidence="", share=0.99, estimated=True, fix="Use a @tf.function."
    )
    tapes = Finding(cause="persistent tapes", sentence="", evidence="", share=0.3, what_ifs=["single-use-tapes"])
    document = concluded(parts=[], findings=[eager, tapes], gains=[gain("single-use-tapes", 0.7)])
    shown = {change.name: change for change in document.answer}
    assert [tried.name for tried in shown["persistent tapes"].gains] == ["single-use-tapes"]
    assert shown["persistent tapes"].fix == ""
    assert shown["eager execution"].gains == []


def test_a_change_that_was_not_tried_itself_is_not_called_undecided() -> None:
    refuted = [gain("parallel-map", 1.0), gain("cache", 1.0)]
    ((_, (line,)),) = sentences.changes(concluded(parts=[], findings=[slow_map()], gains=refuted))
    assert line == f"{instead('parallel-map')} (not tried, can save at most 93%)"


def test_a_cause_that_one_what_if_removes_takes_what_it_saves_or_at_most_what_it_may_save() -> None:
    def share_with(tried: Gain) -> float | None:
        document = concluded(parts=[])
        tapes = Finding(cause="persistent tapes", sentence="", evidence="", what_ifs=["single-use-tapes"])
        document.findings = [tapes]
        document.gains = [tried.model_copy(update={"loop": "as-written"})]
        from_what_ifs(document)
        return document.findings[0].share

    assert share_with(gain("single-use-tapes", 0.7)) == pytest.approx(0.3)
    assert share_with(gain("single-use-tapes", 0.95, "undecided")) == pytest.approx(1 - 0.97 * 0.95)
    assert share_with(gain("single-use-tapes", 1.2)) == 0.0


def test_changes_are_sorted_by_what_they_save_and_a_small_gain_does_not_hide_a_large_cause() -> None:
    parts = [
        part("input", "step", "host-batches", 0.6, "cache"),
        part("dispatch", "resident", "fused", 0.2, "steps-per-execution"),
    ]
    fields = {"parts": parts, "rest_share": share(0.2)}
    tried = concluded(**fields, gains=[gain("steps-per-execution", 0.85), gain("cache", 0.5)])
    assert [change.gains[0].name for change in tried.answer] == ["cache", "steps-per-execution"]
    small = concluded(**fields, gains=[gain("steps-per-execution", 0.94)])
    assert [(change.kind, change.name) for change in small.answer] == [("part", "input"), ("part", "dispatch")]


def test_the_time_between_epochs_comes_first_if_it_takes_most() -> None:
    between = Finding(cause=BETWEEN_EPOCHS, sentence="1 s passes.", evidence="phases", share=0.97)
    document = concluded(findings=[between, slow_map()], gains=[gain("cache", 0.066)])
    assert document.answer[0].name == BETWEEN_EPOCHS


def test_parts_of_steps_that_are_a_small_part_of_all_time_are_not_in_the_answer() -> None:
    between = Finding(cause=BETWEEN_EPOCHS, sentence="", evidence="", share=0.96)
    document = concluded(findings=[slow_map(), between])
    assert [(change.kind, change.name) for change in document.answer] == [("finding", BETWEEN_EPOCHS)]


def test_what_surrounds_the_computing_is_a_cause_even_if_its_parts_cannot_be_told_apart() -> None:
    def unclear(rest: float, findings: list[Finding]) -> list[str]:
        parts = [part("Keras fit", "fit", "step", 0.4), part("dispatch", "resident", "fused", 0.5)]
        for each in parts:
            each.share, each.measurable = Interval(value=each.share.value, low=-0.2, high=1.1, n=1), False
        document = concluded(trials=1, parts=parts, rest_share=share(rest), findings=findings)
        return [change.cause for change in document.answer]

    (cause,) = unclear(0.07, [])
    assert cause.startswith("Time around the computing: At least 91% of the step is not computing.")
    assert cause.endswith("About 93% is mostly dispatch and Keras fit, which 1 trial cannot tell apart.")
    assert unclear(0.9, []) == []
    (known,) = unclear(0.07, [slow_map()])
    assert known.startswith("Slow input")


def test_a_part_of_many_loops_is_a_cause_only_if_there_is_no_other_one() -> None:
    between = Finding(cause=BETWEEN_EPOCHS, sentence="", evidence="", share=0.4)
    many = part("everything except computing", "as-written", "fused", 0.6)
    assert [change.name for change in concluded(findings=[between], parts=[many]).answer] == [BETWEEN_EPOCHS]
    assert [change.share for change in concluded(parts=[many]).answer] == [0.6]


def test_a_cause_with_its_own_share_comes_before_one_that_shares_the_difference_of_many_loops() -> None:
    many = part("everything except computing", "as-written", "fused", 0.43)
    converted = Finding(
        cause="float64", sentence="Batches arrive as float64.", evidence="", share=0.43,
        parts=["own loop", "fit", "input", "copies", "dispatch"], shared=True,
    )  # fmt: skip
    read = Finding(cause="per-step synchronization", sentence="", evidence="", share=0.13, estimated=True)
    document = concluded(findings=[converted, read], parts=[many])
    assert [change.name for change in document.answer] == ["per-step synchronization", "float64"]


def test_small_findings_and_consequences_of_the_main_cause_are_details() -> None:
    minor = [
        Finding(cause="too little parallelism", sentence="Idle.", evidence="x", share=None),
        Finding(cause="float64", sentence="Wide.", evidence="x", share=0.03),
        Finding(cause=FIRST_STEPS, sentence="Slow start.", evidence="x", share=0.3),
    ]
    document = concluded(findings=[slow_map(), *minor])
    assert [finding.cause for finding in document.findings if not finding.detail] == ["slow input"]
    assert not any(word in text(document) for word in ("Idle.", "Wide.", "Slow start."))
    assert "3 findings that matter less: --verbose." in text(document)
    assert all(word in text(document, verbose=True) for word in ("Idle.", "Wide.", "Slow start."))


def test_first_steps_are_named_only_if_they_take_most_and_nothing_else_is_found() -> None:
    def named(value: float) -> bool:
        start = Finding(cause=FIRST_STEPS, sentence="Slow start.", evidence="x", share=value)
        return bool(concluded(findings=[start], parts=[], rest_share=share(1.0)).answer)

    assert named(0.6)
    assert not named(0.3)


def test_a_lower_level_is_a_bound_and_not_a_proposal() -> None:
    shown = " ".join(text(concluded(findings=[slow_map()])).split())
    assert "no more than 33 times [20, 100] as fast is possible (loop fused)" in shown
    assert "Fastest" not in shown
    assert "--loop" not in shown


def test_a_bound_is_one_of_the_typical_step_if_other_steps_take_much_of_the_time() -> None:
    long = Finding(cause=LONG_STEPS, sentence="", evidence="", share=0.4)
    shown = " ".join(text(concluded(findings=[slow_map(), long])).split())
    assert "no more than 33 times [20, 100] as fast per typical step is possible" in shown


def test_a_bound_that_is_not_known_and_parts_of_steps_that_matter_little_are_not_in_the_answer() -> None:
    document = concluded(findings=[slow_map()])
    document.rest_share = Interval(value=0.25, low=0.0, high=1.4, n=1)
    assert "as fast is possible" not in text(document)
    between = Finding(cause=BETWEEN_EPOCHS, sentence="", evidence="", share=0.93)
    shown = " ".join(text(concluded(findings=[slow_map(), between])).split())
    assert "93% of an epoch passes between its steps" in shown
    assert "of it is input" not in shown
    assert "as fast is possible" not in shown


def test_a_share_that_was_estimated_is_named_and_explains_the_own_loop() -> None:
    reads = Finding(
        cause="per-step synchronization", sentence="Python reads 1 number.", evidence="x", share=0.62, estimated=True
    )
    own = part("the program's own loop", "as-written", "step", 0.7)
    document = concluded(findings=[reads], parts=[own], rest_share=share(0.3))
    assert [change.cause for change in document.answer] == [
        "Per-step synchronization: Python reads 1 number. That takes about 62% of the step."
    ]
