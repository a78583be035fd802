"""Starting a trial's workers: one by one, so that each start is measured alone, or at once where starts are known.

TensorFlow's import and Keras' preparations use one core mostly, so on several cores a trial that starts at once is
there in a fraction of the time. Whoever is ready waits suspended; warming up and measuring are done alone and in turns,
as ever. Memory decides too: what it does not hold together is measured one after another.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bench.machine import gpu
from bench.machine.limits import memory_available, thread_count
from bench.model.result import Result
from bench.session.worker_sample import Sampling

if TYPE_CHECKING:
    from bench.session.session import Session


def fit(held: float) -> bool:
    """Whether there is memory for so many bytes more, and a fifth of them for what grows."""
    return 1.2 * held <= memory_available()


def one_by_one(session: Session, order: Sequence[Result]) -> list[tuple[Result, Sampling]]:
    """Workers that were started one after another; those that do not fit into memory together are measured right here.

    Args:
        session: that starts and measures them.
        order: their results.

    Returns:
        Each result with its worker, suspended, whose turns are to come; without those that ended badly.
    """
    pairs: list[tuple[Result, Sampling]] = []
    together = len(order) > 1
    on_gpu = [result for result in order if result.spec.backend == "cuda"]
    before = gpu.memory() if together and len(on_gpu) > 1 else None
    largest = 0
    for index, result in enumerate(order):
        worker = session.start(result, place=index)
        if worker is None:
            continue
        largest = max(largest, worker.handle.rss()) if together else 0
        if together and (
            not fit(largest * (len(order) - 1 - index))
            or (before and result is on_gpu[0] and not gpu.holds(before, gpu.memory(), len(on_gpu) - 1))
        ):
            together = False
            for each in session.results:
                each.interleaved = False
            for pair in pairs:  # those that were started already have their turn before the others begin
                session.measure([pair])
            pairs = []
        if together:
            worker.suspend()
            pairs.append((result, worker))
        else:
            session.measure([(result, worker)])
    return pairs


def may_coincide(order: Sequence[Result]) -> bool:
    """Whether these may start at once: all are known to fit into memory, and no two would choose kernels on a GPU."""
    peaks = [max((s.telemetry.peak_rss_bytes or 0 for s in r.samples if s.telemetry), default=0) for r in order]
    on_devices = sum(result.spec.backend != "cpu" for result in order)
    interleaved = all(result.interleaved for result in order)
    return len(order) > 1 and on_devices <= 1 and interleaved and all(peaks) and fit(sum(peaks))


def at_once(session: Session, order: Sequence[Result]) -> list[tuple[Result, Sampling]]:
    """Workers that have set themselves up beside each other, as many as there are CPUs, and then warmed up alone.

    Args:
        session: that starts them.
        order: their results.

    Returns:
        Each result with its worker, suspended; without those that ended badly.
    """
    pairs: list[tuple[Result, Sampling]] = []
    cpus = thread_count()
    for first in range(0, len(order), cpus):
        chunk = [(result, session.begin(result, place=None)) for result in order[first : first + cpus]]
        for result, worker in chunk:
            with session.guarded(result, worker):
                worker.set_up()
                worker.suspend()
        pairs += chunk
    for result, worker in pairs:
        if worker.sample.failure is None:
            with session.guarded(result, worker):
                worker.resume()
                worker.warm_up()
                worker.suspend()
    return [(result, worker) for result, worker in pairs if worker.sample.failure is None]
