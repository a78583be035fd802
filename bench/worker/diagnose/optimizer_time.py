"""The time of a Keras optimizer in a step, and the embeddings that it rewrites. Worker's side only.

Most optimizers of Keras update every row of an embedding, although a batch reads only a few: the moments of Adam, for
example, change the other rows too. A step then takes time for the whole table, whatever the batch.
"""

from __future__ import annotations

import math
from typing import Any

from bench.model.facts import OptimizerTime
from bench.worker.diagnose.timing import median_seconds
from bench.worker.diagnose.transfers import example_batch
from bench.worker.fit_hook import FitHook
from bench.worker.rig import Rig
from bench.worker.synchronize import Synchronizer

LARGE = 100_000
"""If all trainable variables together have fewer elements than this, no optimizer takes long."""

REPEATS = 5


def measure(rig: Rig, hook: FitHook, synchronizer: Synchronizer) -> None:
    """Read the fact `optimizer`: the time to apply the gradients of one batch, measured several times.

    Nothing is read if the model has a `train_step` of its own, or is small.
    """
    tf, model = rig.tf, hook.model if hook.model is not None else rig.model
    optimizer = getattr(model, "optimizer", None)
    if optimizer is None or type(model).train_step is not tf.keras.Model.train_step or rig.yields:
        return
    batch = example_batch(rig, hook)
    if batch is None or sum(math.prod(map(int, variable.shape)) for variable in model.trainable_variables) < LARGE:
        return
    x, y, weights = tf.keras.utils.unpack_x_y_sample_weight(batch)

    @tf.function  # type: ignore[untyped-decorator]
    def gradients_of(x: Any, y: Any, weights: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = model.compute_loss(x=x, y=y, y_pred=model(x, training=True), sample_weight=weights)
        return tape.gradient(loss, model.trainable_variables)

    with tf.device(rig.ctx.device):
        gradients = gradients_of(x, y, weights)
        updates = [pair for pair in zip(gradients, model.trainable_variables, strict=True) if pair[0] is not None]

        @tf.function(jit_compile=bool(rig.facts.jit_compile))  # type: ignore[untyped-decorator]
        def apply() -> Any:
            optimizer.apply_gradients(updates)
            return optimizer.iterations

        synchronizer.sync(apply())
        seconds = median_seconds(lambda: synchronizer.sync(apply()), REPEATS)
    sparse = [(gradient, variable) for gradient, variable in updates if isinstance(gradient, tf.IndexedSlices)]
    rig.facts.optimizer = OptimizerTime(
        name=type(optimizer).__name__,
        seconds=seconds,
        rows=sum(int(variable.shape[0]) for _, variable in sparse),
        rows_read=sum(int(tf.size(tf.unique(gradient.indices).y)) for gradient, _ in sparse),
    )
