"""The cost of the partial batch at the end of an epoch, for loops that call the step themselves.

For `fit`, `epoch_ends` measures it.
"""

from __future__ import annotations

from bench.worker.batches import sliced
from bench.worker.diagnose.timing import median_seconds
from bench.worker.protocol import PhaseEnded
from bench.worker.rig import Rig
from bench.worker.synchronize import Synchronizer


def measure(rig: Rig, synchronizer: Synchronizer) -> None:
    """Measure the phases `partial_batch`, the first step on it, which may trace, and `partial_batch_again`."""
    state, epoch = rig.state, rig.epoch
    if state.function is None or state.fused_arguments is not None or epoch is None or not epoch.remainder:
        return
    parts = sliced(rig.tf, state.example or (), 0, epoch.remainder)
    with rig.tf.device(rig.ctx.device):
        first = median_seconds(lambda: synchronizer.sync(state.function(*parts)), 1)
        repeated = median_seconds(lambda: synchronizer.sync(state.function(*parts)), 3)
    rig.send(PhaseEnded(phase="partial_batch", seconds=first))
    rig.send(PhaseEnded(phase="partial_batch_again", seconds=repeated))
