"""A profiler's trace compared with the ladder: each disagreement is explained."""

from __future__ import annotations

from typing import Any

import pytest
from synthetic import explanation, ladder_results, profile, result

from bench.analyse.explain import utilization
from bench.analyse.explain.profile_check import disagreements
from bench.analyse.outcome import Outcome
from bench.analyse.pairing import pair_groups
from bench.model.profile import Profile
from bench.render.sentences.explanation import trace
from bench.render.terminal import explanation as rendered
from bench.render.terminal import table

pytestmark = pytest.mark.once

EXPLANATION = explanation(ladder_results())
"""Its ladder has 20% input and 20% computing, in steps of 10 ms."""


def differences(profile: Profile) -> list[str]:
    return disagreements(profile, EXPLANATION.parts, EXPLANATION.rest_share, EXPLANATION.step_seconds)


def test_a_gpu_that_waits_for_the_host_is_a_finding_with_the_share_of_the_untraced_step() -> None:
    waits = {"step_seconds": 0.0134, "device_share": 0.0594, "input_share": 0.0, "host_share": 0.87}
    document = EXPLANATION.model_copy(update={"profile": profile(**waits)})
    (finding,) = utilization.idle_gpu(document)
    assert finding.share == pytest.approx(1 - 0.0594 * 1.34, abs=0.001)
    assert finding.sentence.startswith("The GPU runs no kernel during 92% of the step.")
    assert {"batch", "xla"} <= set(finding.what_ifs)


@pytest.mark.parametrize("changes", [{"device_share": 0.6}, {"device_share": None}, {"input_share": 0.5}])
def test_a_gpu_that_computes_or_waits_for_input_is_not_called_idle(changes: dict[str, float | None]) -> None:
    traced: dict[str, Any] = {"device_share": 0.1, "input_share": 0.0, **changes}
    assert not [*utilization.idle_gpu(EXPLANATION.model_copy(update={"profile": profile(**traced)}))]


def test_a_trace_that_agrees_with_the_ladder_gives_no_sentence() -> None:
    assert differences(profile(device_share=0.25, input_share=0.15)) == []


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"device_share": 0.6}, ("run for 60% of the step", "lowest level of the ladder takes 20%")),
        ({"input_share": 0.5}, ("waits for input for 50%", "input costs 20%")),
        ({"input_share": 0.0}, ("waits for input for 0%", "takes CPU time")),
        ({"step_seconds": 0.02}, ("2.0 times as long", "the ladder is more accurate")),
    ],
)
def test_a_disagreement_is_shown_with_both_figures(changes: dict[str, float], words: tuple[str, str]) -> None:
    (sentence,) = differences(profile(**{"device_share": 0.25, "input_share": 0.15, **changes}))
    assert all(word in sentence for word in words)


def test_a_device_without_a_trace_cannot_disagree() -> None:
    assert differences(profile(device_share=None, input_share=0.15)) == []
    assert "operations running" not in trace(profile(device_share=None))


def test_the_explanation_and_the_table_show_the_trace() -> None:
    text = " ".join(rendered.text(EXPLANATION).split())
    assert "50 steps, 11.0 ms each: operations running 30%, waiting for input 20%" in text
    assert "Longest operations in a step: MatMul 2.00 ms, Relu 1.00 ms." in text
    assert "Trace: /traces/cifar" in text
    table_text = table.text(Outcome.of(pair_groups([result(profile=profile())])), verbose=True)
    assert "share of a traced step" in table_text
    assert "waiting for input" in table_text
