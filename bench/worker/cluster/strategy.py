"""The strategy of `tf.distribute` under which the workers of a spec train, and a step that runs under it."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Callable, Sequence
from typing import Any

from bench.backends import capabilities
from bench.model.spec import Spec
from bench.worker.losses import LOSSES
from bench.worker.protocol import ClusterRun

HEARTBEAT_SECONDS = 3600
"""Seconds of silence after which TensorFlow gives up a worker. devbench suspends workers, and watches them itself."""

REGISTER_SECONDS = 120
"""Seconds in which the workers' TensorFlow must have found each other. All processes run by then."""


def make(tf: Any, spec: Spec, cluster: ClusterRun) -> Any:
    """Return the strategy of a spec's workers. None if the spec asks for none.

    Args:
        tf: TensorFlow, which must not have run an operation.
        spec: the spec. It has workers.
        cluster: how this worker meets the others. Their addresses are known.
    """
    workers = spec.workers
    if workers is None or workers.strategy == "none":
        return None
    is_gpu = capabilities(spec.backend).gpu
    communication = tf.distribute.experimental.CommunicationImplementation
    options = tf.distribute.experimental.CommunicationOptions(
        implementation=communication.NCCL if is_gpu else communication.RING
    )
    os.environ.pop("TF_CONFIG", None)
    if workers.count > 1 and workers.reduce:
        task = {"type": "worker", "index": cluster.index}
        os.environ["TF_CONFIG"] = json.dumps({"cluster": {"worker": cluster.addresses}, "task": task})
        _keep_suspended_workers(workers.count)
    return tf.distribute.MultiWorkerMirroredStrategy(communication_options=options)


def _keep_suspended_workers(count: int) -> None:
    """Let TensorFlow's coordination service wait for workers that devbench has suspended.

    TensorFlow has no public function for it. `MultiWorkerMirroredStrategy` leaves a service alone that is configured.
    """
    from tensorflow.python.eager import context

    try:
        from tensorflow.compiler.xla.tsl.protobuf import coordination_config_pb2
    except ImportError:  # before 2.13
        from tensorflow.core.protobuf import coordination_config_pb2
    context.context().configure_coordination_service(
        service_type="standalone",
        service_leader="/job:worker/replica:0/task:0",
        heartbeat_timeout_in_ms=HEARTBEAT_SECONDS * 1000,
        cluster_register_timeout_in_ms=REGISTER_SECONDS * 1000,
        shutdown_barrier_timeout_in_ms=1000,
        coordinated_jobs=[coordination_config_pb2.CoordinatedJob(name="worker", num_tasks=count)],
    )


def distributed(strategy: Any, step: Callable[..., Any]) -> Callable[..., Any]:
    """Return a step that runs under a strategy, as a plain function of one batch of this worker."""

    @functools.wraps(step)
    def run(*batch: Any) -> Any:
        return strategy.experimental_local_results(strategy.run(step, args=batch))[0]

    return run


class ReducedLosses:
    """A compiled step. The first losses, which are compared, are averaged over the workers.

    Args:
        tf: TensorFlow.
        strategy: the strategy of the workers.
        function: the compiled step of one batch. It returns the loss of this worker's batch.
    """

    def __init__(self, tf: Any, strategy: Any, function: Any) -> None:
        self._mean = functools.partial(strategy.reduce, tf.distribute.ReduceOp.MEAN, axis=None)
        self._function = function
        self._left = LOSSES

    def __call__(self, *batch: Any) -> Any:
        """Run a step."""
        value = self._function(*batch)
        if self._left:
            self._left -= 1
            value = self._mean(value)
        return value


def average_gradients(tf: Any, replicas: int) -> None:
    """Let Keras' optimizers average the gradients of the workers. By default they add them up.

    A program's own step computes the mean over its own batch. The mean of these gradients is that of the whole batch.
    """
    optimizer = tf.keras.optimizers.Optimizer
    name = "apply" if hasattr(optimizer, "apply") else "apply_gradients"
    original = getattr(optimizer, name)

    def scaled(gradients: Sequence[Any]) -> list[Any]:
        return [None if gradient is None else tf.math.scalar_mul(1.0 / replicas, gradient) for gradient in gradients]

    @functools.wraps(original)
    def apply(self: Any, gradients: Any, *args: Any, **kwargs: Any) -> Any:
        if tf.distribute.in_cross_replica_context():
            return original(self, gradients, *args, **kwargs)
        if name == "apply":
            return original(self, scaled(list(gradients)), *args, **kwargs)
        values, variables = zip(*gradients, strict=True)
        return original(self, zip(scaled(values), variables, strict=True), *args, **kwargs)

    setattr(optimizer, name, apply)
