"""Rooflines of results: which peak bounds a step, and how close it is."""

from __future__ import annotations

from typing import Any

import pytest
from synthetic import interval, result
from test_analyse_compare import sample

from bench.analyse.explain.utilization import bound
from bench.analyse.roofline import fingerprint, peaks_of, roofline
from bench.model.result import Result, Summary
from bench.model.roofline import Peaks, Roofline
from bench.model.sample import Block, ProcessSample, Series

PEAKS = Peaks(
    fingerprint="f",
    flops_per_second={"float32": 100e9, "bfloat16": 400e9},
    memory_bytes_per_second=10e9,
    cache_bytes_per_second=80e9,
    cache_bytes=2**18,
)


def result_of(seconds: float, flops: float, transferred: float, **changes: Any) -> Result:
    facts = {"flops_per_step": flops, "bytes_per_step": transferred}
    samples = [sample(n, seconds, facts=facts) for n in (1, 2, 3)]
    return result(samples=samples, summary=Summary(step_seconds=interval(seconds)), **changes)


def roofline_of(*args: Any, **changes: Any) -> Roofline:
    model = roofline(result_of(*args, **changes), PEAKS)
    assert model is not None
    return model


def test_low_intensity_is_bound_by_memory() -> None:
    model = roofline_of(0.001, 1e6, 8e6)
    assert model.bound == "memory"
    assert model.intensity == pytest.approx(0.125)
    assert model.memory_peak == pytest.approx(1.25e9)
    assert model.share == pytest.approx(0.8)
    assert not model.exceeds_memory_peak


def test_high_intensity_is_bound_by_the_compute_peak_of_the_dtype() -> None:
    assert roofline_of(0.01, 0.9e9, 1e6).share == pytest.approx(0.9)
    narrow = roofline_of(0.01, 0.9e9, 1e6, dtype="mixed_bfloat16")
    assert (narrow.dtype, narrow.compute_peak) == ("bfloat16", 400e9)


def test_the_dtype_is_the_one_that_a_script_sets_itself() -> None:
    measured = result_of(0.01, 0.9e9, 1e6)
    for process in measured.samples:
        process.facts.dtype_policy = "mixed_bfloat16"
    model = roofline(measured, PEAKS)
    assert model is not None
    assert (model.dtype, model.compute_peak) == ("bfloat16", 400e9)


def test_a_step_in_a_cache_may_exceed_the_memory_peak() -> None:
    model = roofline_of(0.0001, 1e6, 8e6)
    assert model.exceeds_memory_peak
    assert model.share > 1


def test_without_operations_bytes_or_a_peak_of_the_dtype_there_is_no_roofline() -> None:
    assert roofline(result(), PEAKS) is None
    assert roofline(result_of(0.01, 1e6, 1e6, dtype="float64"), PEAKS) is None


def test_a_roofline_uses_operations_by_formula_rather_than_counted_ones() -> None:
    measured = result_of(0.01, 3e6, 1e6)
    for process in measured.samples:
        process.facts.flops_formula = 2e6
    model = roofline(measured, PEAKS)
    assert model is not None
    assert (model.flops, model.flops_method) == (2e6, "formula")


@pytest.mark.parametrize(
    ("step", "cause"),
    [((0.01, 0.9e9, 1e6), ["compute-bound"]), ((0.001, 1e6, 8e6), ["memory-bound"]), ((0.1, 1e6, 8e6), [])],
)
def test_only_a_step_near_its_peak_is_bound_by_it(step: tuple[float, float, float], cause: list[str]) -> None:
    assert [f.cause for f in bound(roofline_of(*step), 0.9)] == cause
    assert list(bound(roofline_of(*step), 0.1)) == []


def test_peaks_are_read_from_the_fastest_process_and_identified_by_the_machine() -> None:
    def process(number: int, slow: float) -> ProcessSample:
        times = {"matmul/float32": 0.02, "triad/memory": 0.1, "triad/cache": 0.001}
        measured = sample(number, 0.01)
        measured.series = [
            Series(name=name, bytes=8 * 10**8, blocks=[Block(seconds=slow * s, steps=1, cpu_seconds=0.0)] * 3)
            for name, s in times.items()
        ]
        return measured

    params = {"n": 1000, "memory_bytes": 2**28, "cache_bytes": 2**17, "repeats": 64}
    measured = result(workload="peaks", params=params, samples=[process(1, 1.4), process(2, 1.0), process(3, 1.1)])
    peaks = peaks_of(measured)
    assert peaks is not None
    # The fastest process counts, because noise only lowers a peak.
    assert peaks.flops_per_second == {"float32": pytest.approx(1e11)}
    assert peaks.memory_bytes_per_second == pytest.approx(8e9)
    assert peaks.cache_bytes_per_second == pytest.approx(8e11)
    assert peaks.fingerprint == fingerprint(result())
    assert peaks.fingerprint != fingerprint(result(backend="cuda"))
    assert peaks_of(result()) is None


def test_a_step_in_a_cache_is_compared_with_the_cache_peak() -> None:
    model = roofline_of(0.0001, 1e6, 8e6)  # the step moves 80 GB/s; the peaks are 10 (memory) and 80 (cache)
    (finding,) = bound(model, 0.9)
    assert "100% of the cache peak" in finding.sentence
    assert not list(bound(model.model_copy(update={"cache_peak": None}), 0.9))
    assert not list(bound(model.model_copy(update={"cache_peak": 1e12}), 0.9))
