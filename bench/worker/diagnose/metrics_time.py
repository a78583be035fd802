"""The time of the metrics of a Keras model in a step. Worker's side only."""

from __future__ import annotations

from typing import Any

from bench.model.facts import MetricsTime
from bench.whatif.without_metrics import metrics_of
from bench.worker.diagnose.timing import median_seconds
from bench.worker.diagnose.transfers import example_batch
from bench.worker.fit_hook import FitHook
from bench.worker.rig import Rig
from bench.worker.synchronize import Synchronizer

REPEATS = 5


def measure(rig: Rig, hook: FitHook, synchronizer: Synchronizer) -> None:
    """Read the fact `metrics`: the time to update the metrics with one batch, measured several times.

    Nothing is read if the model has no metrics, has a `train_step` of its own, or runs eagerly.
    """
    tf, model = rig.tf, hook.model if hook.model is not None else rig.model
    train_step = getattr(type(model), "train_step", None)
    if rig.yields or train_step is not tf.keras.Model.train_step or not metrics_of(model) or rig.facts.run_eagerly:
        return
    batch = example_batch(rig, hook)
    if batch is None:
        return
    x, y, weights = tf.keras.utils.unpack_x_y_sample_weight(batch)
    compiled = getattr(model, "_compile_metrics", None) or model.compiled_metrics
    with tf.device(rig.ctx.device):
        predictions = model(x, training=False)

        @tf.function(jit_compile=bool(rig.facts.jit_compile))  # type: ignore[untyped-decorator]
        def update() -> Any:
            compiled.update_state(y, predictions, sample_weight=weights)
            return tf.constant(0)

        synchronizer.sync(update())
        seconds = median_seconds(lambda: synchronizer.sync(update()), REPEATS)
    names = [metric.name for metric in compiled.metrics]
    rig.facts.metrics = MetricsTime(names=names, seconds=seconds)
