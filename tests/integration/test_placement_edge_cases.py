"""The placement check in rare cases, with a real TensorFlow in a separate process."""

from __future__ import annotations

from typing import Any

import pytest
from tensorflow_script import run_script
from warm_workers import WarmServer


@pytest.fixture(scope="module")
def report(warm_server: WarmServer | None) -> dict[str, Any]:
    return run_script(
        """
    from types import SimpleNamespace
    from bench.worker.diagnose import placement
    from bench.worker.what_ifs import WhatIfs
    from bench.worker.timed_loop import Finished
    from bench.worker.fit_hook import FitHook
    from bench.worker.rig import LoopState

    hook = FitHook(tf, lambda model: None, lambda event: None, WhatIfs(tf, ()))

    def placed():
        rig = SimpleNamespace(tf=tf, ctx=SimpleNamespace(device=DEVICE), state=LoopState(), spec=None)
        rig.scope = lambda: tf.device(DEVICE)
        placed = placement.check(rig, hook)
        return [placed.verified, placed.on_device, [operation.name for operation in placed.misplaced]]

    def network():
        hook.model, hook.iterator = None, None
        model = tf.keras.Sequential([tf.keras.Input(shape=(8,)), tf.keras.layers.Dense(4)])
        model.compile("sgd", "mse")
        return model

    def check_resumed():
        rows = np.ones((64, 8), "float32")
        network().fit(rows, rows[:, :4], epochs=3, initial_epoch=2, verbose=0)
        return placed()

    def check_generated():
        batches = ((np.ones((16, 8), "float32"), np.ones((16, 4), "float32")) for _ in range(6))
        network().fit(batches, steps_per_epoch=3, epochs=2, verbose=0)
        return placed()

    def check_after(steps):
        remaining = [steps]
        def on_step(logs, done):
            remaining[0] -= done
            if not remaining[0]:
                raise Finished(None)
        hook.on_step = on_step
        rows = np.ones((64, 8), "float32")
        try:
            network().fit(rows, rows[:, :4], batch_size=16, epochs=3, shuffle=False, verbose=0)
        except Finished:
            pass
        hook.on_step = lambda logs, done: None
        return placed()

    report(
        within_an_epoch=check_after(6), at_the_end_of_an_epoch=check_after(8), after_a_resumed_training=check_resumed(),
        after_the_end_of_a_generator=check_generated(),
    )
    """,
        warm_server,
    )


def test_a_step_of_fit_is_verified_wherever_the_run_ends(report: dict[str, Any]) -> None:
    for where, (verified, on_device, misplaced) in report.items():
        assert (verified, misplaced) == (True, []), where
        assert on_device > 10, where
