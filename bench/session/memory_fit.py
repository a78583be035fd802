"""Whether workers fit into memory beside each other, in RAM and on a GPU."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from bench.backends import capabilities
from bench.machine import gpu
from bench.machine.limits import memory_available
from bench.model.result import Result
from bench.model.spec import Spec


def fits(size: float) -> bool:
    """Return whether `size` more bytes fit into memory, with a reserve of a fifth for growth."""
    return 1.2 * size <= memory_available()


def may_start_together(results: Sequence[Result]) -> bool:
    """Return whether workers may start at once.

    They may if all are known to fit into memory and at most one of them measures kernels while it starts.
    """
    peaks = [peak(result) for result in results]
    alone = sum(not capabilities(result.spec.backend).parallel_start for result in results)
    interleaved = all(result.interleaved for result in results)
    return len(results) > 1 and alone <= 1 and interleaved and all(peaks) and fits(sum(peaks))


def peak(result: Result) -> int:
    """Return the most memory of a result's workers in bytes. 0 if it is not known."""
    return max((s.telemetry.peak_rss_bytes or 0 for s in result.samples if s.telemetry), default=0)


class RoomCheck:
    """Checks whether there is room for the workers that are still to come, each as large as the largest so far.

    Args:
        workers: The spec and the environment variables of each worker, in the order in which they start.
    """

    def __init__(self, workers: Sequence[tuple[Spec, Mapping[str, str]]]) -> None:
        self._workers = workers
        self._on_gpu = [capabilities(spec.backend).telemetry is not None for spec, _ in workers]
        self._largest = 0
        several = sum(self._on_gpu) > 1
        self._gpu = gpu.MemoryCheck(gpu_memory(*workers[self._on_gpu.index(True)])) if several else None

    def holds_rest(self, position: int, size: int) -> bool:
        """Return whether there is room for all later workers, after one has warmed up.

        Args:
            position: Its position, from 0.
            size: Its resident memory in bytes.
        """
        self._largest = max(self._largest, size)
        if not fits(self._largest * (len(self._workers) - 1 - position)):
            return False
        if self._gpu is None or not self._on_gpu[position]:
            return True
        return self._gpu.holds(gpu_memory(*self._workers[position]), sum(self._on_gpu[position + 1 :]))


def gpu_memory(spec: Spec, variables: Mapping[str, str]) -> gpu.GpuMemory | None:
    """Return the memory of the GPU that a worker uses; None if it is not known.

    Args:
        spec: What the worker measures.
        variables: The environment variables that it gets in addition to those of this process.
    """
    return gpu.memory(capabilities(spec.backend).telemetry, {**os.environ, **variables})
