"""What a what-if saves of the program's own step, and what that says about a cause."""

from __future__ import annotations

from typing import Any

import pytest
from test_explain import level
from test_explain_answer import concluded, gain, part, share

from bench.analyse.explain.fixed_cost import fixed_cost
from bench.analyse.explain.shares import from_what_ifs
from bench.model.explanation import Explanation, Finding, Gain


def own_and_input() -> dict[str, Any]:
    """Return a program that spends 60% of its step in its own loop, and 30% in its input."""
    return {
        "parts": [part("own loop", "as-written", "step", 0.6), part("input", "step", "host-batches", 0.3, "cache")],
        "rest_share": share(0.1),
        "lowest_level": "host-batches",
    }


def read(**changes: Any) -> Finding:
    fields: dict[str, Any] = {"cause": "reads", "sentence": "It reads.", "evidence": "x", **changes}
    return Finding(**fields)


def test_a_what_if_saves_the_share_of_the_program_that_its_loop_takes() -> None:
    in_step = gain("cache", 0.3)  # 70% of the loop step, which takes 40% of the program's own step
    document = concluded(**own_and_input(), gains=[in_step])
    assert [change.name for change in document.answer] == ["own loop", "input"]  # weights: half of 60%, and 28%


def test_a_what_if_does_not_remove_a_cause_in_a_part_that_its_loop_lacks() -> None:
    own = read(share=0.6, parts=["own loop"])
    tried = gain("without-callbacks", 0.8)
    tried.loop = "fit"
    document = concluded(**own_and_input(), findings=[own], gains=[tried])
    assert all(change.gains == [] for change in document.answer if change.name == "reads")
    tried.loop = "as-written"
    assert [
        change.name for change in concluded(**own_and_input(), findings=[own], gains=[tried]).answer if change.gains
    ] == ["reads"]


def explained(finding: Finding, tried: Gain) -> Explanation:
    document = concluded(**own_and_input(), gains=[tried.model_copy(update={"loop": "as-written"})])
    document.findings, document.answer = [finding], []
    from_what_ifs(document)
    return document


def test_a_cause_whose_test_gained_nothing_keeps_no_share() -> None:
    metrics = read(
        cause="metrics in each step", sentence="They take 30% of the step.", share=0.3, what_ifs=["without-metrics"]
    )
    (finding,) = explained(metrics, gain("without-metrics", 1.0)).findings
    assert finding.share == pytest.approx(0.03)
    assert (
        finding.sentence
        == "They take 30% of the step. But the test of this (without-metrics) saved at most 3% of the step."
    )


def test_a_cause_keeps_its_share_if_its_test_is_undecided_or_removes_only_a_part_of_it() -> None:
    metrics = read(share=0.3, what_ifs=["without-metrics"])
    assert explained(metrics.model_copy(), gain("without-metrics", 0.97, "undecided")).findings[0].share == 0.3
    slow = read(share=0.3, what_ifs=["cache"])
    assert explained(slow, gain("cache", 1.0)).findings[0].share == 0.3


@pytest.mark.parametrize(
    ("sentence", "verdict", "raised"),
    [("It traces.", "faster", 0.9), ("It traces.", "undecided", 0.25), ("It takes 25% of the step.", "faster", 0.25)],
)
def test_an_estimate_is_raised_to_what_its_test_gained_unless_the_sentence_names_it(
    sentence: str, verdict: str, raised: float
) -> None:
    traced = read(sentence=sentence, share=0.25, estimated=True, what_ifs=["reduce-retracing"])
    (finding,) = explained(traced, gain("reduce-retracing", 0.1, verdict)).findings
    assert finding.share == pytest.approx(raised)
    assert finding.estimated


@pytest.mark.parametrize(("verdict", "words"), [("undecided", "at most 22%"), ("faster", "about 20%")])
def test_a_bound_is_not_called_an_estimate(verdict: str, words: str) -> None:
    eager = read(estimated=True, what_ifs=["function"])
    (finding,) = explained(eager, gain("function", 0.8, verdict)).findings
    assert finding.sentence == f"It reads. That takes {words} of the step."
    assert not finding.estimated


def test_a_share_of_5_percent_is_named_beside_one_of_15_percent() -> None:
    document = concluded(findings=[read(sentence="It read 15% of the rows.", share=0.05, parts=["input"])])
    (answer,) = [change.cause for change in document.answer if change.name == "reads"]
    assert answer.endswith("It read 15% of the rows. That takes at most 5% of the step.")


def test_the_fixed_cost_of_a_lower_loop_is_a_share_of_the_program() -> None:
    levels = {32: 0.010, 128: 0.016, 512: 0.040}  # seconds per step in the loop step, which is 40% of the program
    base, *larger = (level("step", seconds, params={"batch": batch}) for batch, seconds in levels.items())
    document = concluded(**own_and_input(), what_if_loop="step")
    document.findings = list(fixed_cost(base, larger))
    from_what_ifs(document)
    (finding,) = document.findings
    assert finding.sentence.startswith("80% of a step of the loop step does not depend on its batch.")
    assert finding.share == pytest.approx(0.4 * 0.8, rel=0.01)
