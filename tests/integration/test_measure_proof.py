"""Proof of placement in corners that a run meets by chance, with a real TensorFlow in a process of its own."""

from __future__ import annotations

from typing import Any

import pytest
from test_workloads_real_work import ask


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    return ask("""
    from types import SimpleNamespace
    from bench.measure import proof
    from bench.measure.changes import Changes
    from bench.measure.conductor import Finished
    from bench.measure.watch import Watch

    watch = Watch(tf, lambda model: None, lambda event: None, Changes(tf, ()))

    def after(steps):
        watch.model, left = None, [steps]
        def on_step(logs, done):
            left[0] -= done
            if not left[0]:
                raise Finished(None)
        watch.on_step = on_step
        model = tf.keras.Sequential([tf.keras.Input(shape=(8,)), tf.keras.layers.Dense(4)])
        model.compile("sgd", "mse")
        rows = np.ones((64, 8), "float32")
        try:
            model.fit(rows, rows[:, :4], batch_size=16, epochs=3, shuffle=False, verbose=0)
        except Finished:
            pass
        rig = SimpleNamespace(tf=tf, ctx=SimpleNamespace(device=DEVICE), seen={}, spec=None)
        placed = proof.placement(rig, watch)
        return [placed.proven, placed.on_device, [each.name for each in placed.misplaced]]

    say(within=after(6), at_the_end=after(8))
    """)


def test_a_run_that_ends_with_an_epoch_is_proven_as_one_that_ends_within(found: dict[str, Any]) -> None:
    for where, (proven, on_device, misplaced) in found.items():
        assert (proven, misplaced) == (True, []), where
        assert on_device > 10, where
