"""The results of a scaling study, sorted by what they measure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bench.model.result import Result
from bench.model.spec import Spec, Workers


def is_size(spec: Spec) -> bool:
    """Return whether a spec is the program with a number of workers, not a level that divides its step."""
    workers = spec.workers
    return workers is not None and workers.strategy != "none" and workers.reduce


@dataclass(frozen=True)
class Levels:
    """The results of a study, sorted into levels.

    Attributes:
        bare: one worker without a strategy.
        bare_on_host_batches: the same on batches in memory. None if it was not measured.
        sizes: with a strategy and the reduction, by number of workers.
        alone: with a strategy and without the reduction, by number of workers.
        alone_on_host_batches: the same on batches in memory.
    """

    bare: Result | None
    bare_on_host_batches: Result | None
    sizes: Mapping[int, Result]
    alone: Mapping[int, Result]
    alone_on_host_batches: Mapping[int, Result]

    @classmethod
    def of(cls, results: Sequence[Result]) -> Levels:
        """Sort results. If a level was measured several times, the last one counts."""
        main = next((result.spec.loop for result in results if is_size(result.spec)), "step")
        bare, sizes, alone = {}, {}, {}
        for result in results:
            workers, on_host_batches = result.spec.workers, result.spec.loop != main
            if workers is None:
                continue
            if workers.strategy == "none":
                bare[on_host_batches] = result
            elif workers.reduce and not on_host_batches:
                sizes[workers.count] = result
            else:
                alone[workers.count, on_host_batches] = result
        return cls(
            bare.get(False),
            bare.get(True),
            dict(sorted(sizes.items())),
            {count: result for (count, other), result in alone.items() if not other},
            {count: result for (count, other), result in alone.items() if other},
        )


def workers_of(result: Result) -> Workers:
    """Return the workers of a result of a scaling study."""
    assert result.spec.workers is not None
    return result.spec.workers


def machines_of(workers: Workers) -> int:
    """Return the number of machines. Workers with CPUs of their own share one."""
    return 1 if workers.cpus else workers.count
