"""Input pipelines in an explanation: caches, workers, and advice that does not fit the program."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from test_explain import level

from bench import whatif
from bench.analyse.explain.answer import conclude
from bench.analyse.explain.findings import findings
from bench.analyse.explain.ladder import ladder
from bench.model.explanation import Explanation, Finding, Part
from bench.model.facts import PY_DATASET, Facts, FitCall, PipelineStage

STAGES = {"map": 0.003, "cache": 0.0001, "batch": 0.001}
"""Seconds up to each stage. The cache holds what map returned."""


def stages(times: Mapping[str, float | None]) -> list[PipelineStage]:
    return [PipelineStage(stage=name, seconds=seconds) for name, seconds in times.items()]


def read(facts: Facts, **phases: float) -> tuple[Part, list[Finding]]:
    """Return the input part of a program with these facts, and its findings about the input."""
    levels = [level("step", 0.006), level("host-batches", 0.004)]
    for process in levels[0].samples:
        process.facts = facts
        process.phases.update(phases)  # type: ignore[arg-type]
    parts, rest, trials = ladder(levels)
    found = findings(levels, parts)
    explanation = Explanation(
        id="x", label="x", step_seconds=0.006, trials=trials, parts=parts, rest_seconds=0.004, rest_share=rest,
        lowest_level="host-batches", gains=[], findings=found,
    )  # fmt: skip
    conclude(explanation)
    return explanation.parts[0], [finding for finding in explanation.findings if finding.cause == "slow input"]


def test_a_stage_before_a_cache_that_holds_all_batches_is_not_blamed() -> None:
    _, (finding,) = read(Facts(pipeline=stages(STAGES)))
    assert finding.sentence.endswith("Slowest stage: batch.")
    assert "map" not in finding.evidence


def test_a_stage_before_a_cache_that_is_still_filled_is_blamed() -> None:
    _, (finding,) = read(Facts(pipeline=stages({"map": 0.003, "cache": 0.0031, "batch": 0.0035})))
    assert finding.sentence.endswith("Slowest stage: map.")


def test_a_cache_is_not_blamed_for_the_stage_after_it() -> None:
    _, (finding,) = read(Facts(pipeline=stages({"batch": 0.0001, "cache": None, "map": 0.003})))
    assert finding.sentence.endswith("Slowest stage: map.")
    assert finding.what_ifs == ["parallel-map"]


@pytest.mark.parametrize(
    ("facts", "fitting"),
    [
        ({}, {"parallel-map", "prefetch", "cache"}),
        ({"pipeline": stages(STAGES)}, {"parallel-map", "prefetch"}),
        ({"pipeline": stages({"map, parallel": 0.001, "batch": 0.002, "prefetch": 0.002})}, {"cache"}),
        ({"pipeline": stages({PY_DATASET: 0.002})}, set()),
        ({"fit": FitCall(callbacks=[], verbose=0, metrics=False, input="ndarray")}, set()),
    ],
)
def test_advice_about_the_pipeline_fits_the_program(facts: dict[str, Any], fitting: set[str]) -> None:
    part, found = read(Facts(**facts))
    advised = {name for name in ("parallel-map", "prefetch", "cache") if whatif.advice(name) in part.fix}
    assert advised == fitting
    assert {name for finding in found for name in finding.what_ifs} <= fitting
    assert ("Pass a tf.data pipeline" in part.fix) == ("fit" in facts)


def test_a_program_with_a_cache_is_not_told_to_call_cache_before_its_shuffle() -> None:
    def fix(*before: str) -> str:
        shuffle = PipelineStage(stage="shuffle", seconds=0.001, buffer=9, filling_seconds=2)
        times = [*stages(dict.fromkeys(before, 0.001)), shuffle]
        program = level("step", 0.006)
        for process in program.samples:
            process.facts = Facts(pipeline=times)
        found = findings([program])
        return next(finding.fix for finding in found if finding.cause == "filling the shuffle buffer")

    assert "cache()" in fix("map")
    assert "cache()" not in fix("map", "cache")


def test_workers_that_prepare_batches_in_advance_leave_only_a_wait() -> None:
    def found(wait: float) -> list[Finding]:
        program = level("as-written", 0.010)
        for process in program.samples:
            process.facts = Facts(pipeline=stages({PY_DATASET: 0.009}))
            process.phases["input_wait"] = wait
        return [finding for finding in findings([program]) if finding.cause == "slow input"]

    assert found(0.0001) == []
    (some,) = found(0.002)
    assert some.share == pytest.approx(0.2, abs=0.03)
    assert "because workers prepare batches in advance" in some.sentence
    (serial,) = found(0.009)
    assert serial.share == pytest.approx(0.85, abs=0.1)


def test_the_time_of_a_wait_is_told_as_a_bound() -> None:
    program = level("as-written", 0.010)
    for process in program.samples:
        process.phases["input_wait"] = 0.006
    (finding,) = [finding for finding in findings([program]) if finding.cause == "slow input"]
    assert finding.sentence.startswith("A step waits up to 6 ms for its next batch, at most ")
