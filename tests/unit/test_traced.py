"""A profiler's trace beside the ladder: where they agree nothing is said, where they differ it is said why."""

from __future__ import annotations

import pytest
from synthetic import explanation, ladder_results, profile, result

from bench.analyse.explain.profile_check import disagreements
from bench.model.result import Profile
from bench.render.terminal import explanation as rendered
from bench.render.terminal import table

pytestmark = pytest.mark.once

WHY = explanation(ladder_results())
"""Its ladder finds 20% input and 20% computing, of steps of 10 ms."""


def told(found: Profile) -> list[str]:
    return disagreements(found, WHY.parts, WHY.rest_share, WHY.step_seconds)


def test_a_trace_that_says_what_the_ladder_says_is_left_alone() -> None:
    assert told(profile(device_share=0.25, input_share=0.15)) == []


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"device_share": 0.6}, ("60% of the step", "20% that no level takes away")),
        ({"input_share": 0.5}, ("waited for during 50%", "input costs 20%")),
        ({"input_share": 0.0}, ("waited for during 0%", "takes processors")),
        ({"step_seconds": 0.02}, ("2.0 times as long", "the ladder is nearer to the truth")),
    ],
)
def test_what_differs_is_told_with_both_figures(changes: dict[str, float], words: tuple[str, str]) -> None:
    (sentence,) = told(profile(**{"device_share": 0.25, "input_share": 0.15, **changes}))
    assert all(each in sentence for each in words)


def test_a_device_that_writes_no_trace_has_no_share_to_disagree_about() -> None:
    assert told(profile(device_share=None, input_share=0.15)) == []
    assert "operations running" not in rendered.traced(profile(device_share=None))


def test_the_explanation_and_the_table_show_what_was_traced() -> None:
    text = " ".join(rendered.text(WHY).split())
    assert "50 steps of 11.0 ms: operations running 30%, waiting for input 20%" in text
    assert "Longest in a step: MatMul 2.00 ms, Relu 1.00 ms." in text
    assert "It lies in /traces/cifar." in text
    shown = table.text([result(profile=profile())], [])
    assert "of a step, traced" in shown
    assert "waiting for input" in shown
