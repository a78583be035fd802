"""Which stages of an input pipeline are timed, without TensorFlow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from bench.worker.diagnose import pipeline_stages
from bench.worker.stages import stages

pytestmark = pytest.mark.once


class Stage:
    """A stage of a pipeline, which has ten elements."""

    def __init__(self, before: Any = None) -> None:
        self._input_dataset = before
        self.read = 0

    def __iter__(self) -> Iterator[int]:
        for element in range(10):
            self.read += 1
            yield element


class RangeDataset(Stage):
    pass


class MapDataset(Stage):
    pass


class CacheDataset(Stage):
    pass


def timed(last: Stage) -> list[str]:
    """Return the kinds of the stages that are timed, the last one first."""
    return [pipeline_stages.describe(stage).stage for stage, _ in pipeline_stages._with_elements(stages(last))]


def test_stages_before_a_cache_are_left_out_once_it_is_filled(monkeypatch: pytest.MonkeyPatch) -> None:
    cache = CacheDataset(MapDataset(RangeDataset()))
    assert timed(MapDataset(cache)) == ["map", "cache"]
    assert cache.read == 10
    monkeypatch.setattr(pipeline_stages, "FILL_SECONDS", -1.0)
    assert timed(MapDataset(cache)) == ["map", "cache", "map", "range"]


def test_workers_of_a_keras_dataset_share_the_time_of_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    class Batches:
        def __getitem__(self, index: int) -> int:
            now[0] += 0.08
            return index

    now = [0.0]
    monkeypatch.setattr("bench.worker.diagnose.pipeline_stages.time.perf_counter", lambda: now[0])
    for workers, seconds in ((1, 0.08), (4, 0.02), (0, 0.08)):
        (stage,) = pipeline_stages.measure_py_dataset(Batches(), 3, workers)
        assert stage.seconds == pytest.approx(seconds)
