"""The stack of a program is sampled without keeping the program's objects alive."""

from __future__ import annotations

import time
import weakref
from pathlib import Path

from bench.worker.diagnose.own_time import StackSampler
from bench.worker.frames import Sources


class Model:
    """An object of the program."""


def test_objects_of_the_program_are_freed_although_its_stack_is_sampled() -> None:
    def step() -> weakref.ref[Model]:
        model = Model()
        time.sleep(0.005)  # several samples
        return weakref.ref(model)

    sampler = StackSampler(Sources(str(Path(__file__))))
    sampler.start()
    try:
        alive = sum(step()() is not None for _ in range(40))
    finally:
        sampler.stop()
    assert sampler.samples
    assert alive < 10
