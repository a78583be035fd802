"""The strategy of `tf.distribute` under which the workers of a spec train, and a step that runs under it."""

from __future__ import annotations

import contextlib
import functools
import importlib
import json
import os
from collections.abc import Callable, Sequence
from typing import Any

from bench.backends import capabilities
from bench.errors import DeviceAbsent
from bench.machine import installed
from bench.model.spec import Spec
from bench.worker.losses import LOSSES
from bench.worker.protocol import ClusterRun

HEARTBEAT_SECONDS = 3600
"""Seconds of silence after which TensorFlow gives up a worker: very long, because devbench suspends workers.

devbench itself watches the workers (`bench.worker.cluster.chief`).
"""

COORDINATION_CONFIG = (
    "tensorflow.compiler.xla.tsl.protobuf.coordination_config_pb2",  # 2.20 and later
    "tensorflow.tsl.protobuf.coordination_config_pb2",  # 2.16 and 2.18
    "tensorflow.core.protobuf.coordination_config_pb2",  # 2.10
)
"""Names of the module that holds the settings of TensorFlow's coordination service, from new to old versions."""

DIRECT = "no_grpc_proxy"
"""The variable that lists the hosts to which gRPC connects without a proxy. It replaces `no_proxy`."""

REGISTER_SECONDS = 120
"""Seconds in which the workers' TensorFlow must find each other. By then, all processes run."""


def make(tf: Any, spec: Spec, cluster: ClusterRun) -> Any:
    """Return the strategy of a spec's workers. None if the spec asks for none.

    Args:
        tf: TensorFlow. It must not have run an operation.
        spec: the spec. It has workers.
        cluster: how this worker meets the others. `addresses` is filled in.
    """
    workers = spec.workers
    if workers is None or workers.strategy == "none":
        return None
    is_gpu = capabilities(spec.backend).gpu
    if workers.strategy == "mirrored":
        if not workers.reduce:
            _keep_gradients_apart(tf)
        return tf.distribute.MirroredStrategy(_replica_devices(tf, workers.count, is_gpu))
    communication = tf.distribute.experimental.CommunicationImplementation
    options = tf.distribute.experimental.CommunicationOptions(
        implementation=communication.NCCL if is_gpu else communication.RING
    )
    os.environ.pop("TF_CONFIG", None)
    if workers.count > 1 and workers.reduce:
        task = {"type": "worker", "index": cluster.index}
        os.environ["TF_CONFIG"] = json.dumps({"cluster": {"worker": cluster.addresses}, "task": task})
        connect_directly(cluster.addresses)
        _keep_suspended_workers(workers.count)
    return tf.distribute.MultiWorkerMirroredStrategy(communication_options=options)


def connect_directly(addresses: Sequence[str]) -> None:
    """Let gRPC connect to the workers without a proxy.

    gRPC uses the variable `http_proxy`, which is meant for downloads.

    Args:
        addresses: host and port of each worker.
    """
    exceptions = os.environ.get(DIRECT) or os.environ.get("no_proxy", "")
    hosts = [address.rpartition(":")[0].strip("[]") for address in addresses]
    os.environ[DIRECT] = ",".join(dict.fromkeys([*filter(None, exceptions.split(",")), *hosts]))


def _replica_devices(tf: Any, count: int, is_gpu: bool) -> list[str]:
    """Make a device available for each replica. Return the names of the devices.

    Raises:
        DeviceAbsent: there are fewer GPUs than replicas.
    """
    if not is_gpu:
        part = tf.config.LogicalDeviceConfiguration()
        tf.config.set_logical_device_configuration(tf.config.list_physical_devices("CPU")[0], [part] * count)
        return [f"CPU:{index}" for index in range(count)]
    gpus = tf.config.list_physical_devices("GPU")
    if len(gpus) < count:
        raise DeviceAbsent(f"{count} replicas need as many GPUs, and TensorFlow sees {len(gpus)}", "Use fewer workers.")
    tf.config.set_visible_devices(gpus[:count], "GPU")
    for gpu in gpus[:count]:
        tf.config.experimental.set_memory_growth(gpu, True)
    return [f"GPU:{index}" for index in range(count)]


def _keep_gradients_apart(tf: Any) -> None:
    """Let each replica of this process apply its own gradients, so that each one trains its own model.

    Keras 3 reduces the gradients by the context of the replica. Keras 2 has an option for it.
    """

    def unreduced(self: Any, reduce_op: Any, value: Any, options: Any = None) -> Any:
        return value

    tf.distribute.ReplicaContext.all_reduce = unreduced
    if installed.keras(tf).startswith("2."):
        optimizer = tf.keras.optimizers.Optimizer
        optimizer.apply_gradients = functools.partialmethod(
            optimizer.apply_gradients, experimental_aggregate_gradients=False
        )


def _coordination_config() -> Any:
    """Return TensorFlow's module of the settings of the coordination service, whose place differs between versions.

    Raises:
        ImportError: this version has it in another place.
    """
    *others, oldest = COORDINATION_CONFIG
    for name in others:
        with contextlib.suppress(ImportError):
            return importlib.import_module(name)
    return importlib.import_module(oldest)


def _keep_suspended_workers(count: int) -> None:
    """Let TensorFlow's coordination service wait for workers that devbench has suspended.

    TensorFlow has no public function for it. `MultiWorkerMirroredStrategy` keeps a service that is configured already.
    """
    from tensorflow.python.eager import context

    config = _coordination_config()
    options: dict[str, Any] = {"coordinated_jobs": ["worker"]}  # as 2.10 takes it
    if hasattr(config, "CoordinatedJob"):
        options = {
            "coordinated_jobs": [config.CoordinatedJob(name="worker", num_tasks=count)],
            "shutdown_barrier_timeout_in_ms": 1000,
        }
    context.context().configure_coordination_service(
        service_type="standalone",
        service_leader="/job:worker/replica:0/task:0",
        heartbeat_timeout_in_ms=HEARTBEAT_SECONDS * 1000,
        cluster_register_timeout_in_ms=REGISTER_SECONDS * 1000,
        **options,
    )


def distributed(strategy: Any, step: Callable[..., Any]) -> Callable[..., Any]:
    """Return a wrapper of a function, such as a step, that runs it as the replica of this worker."""

    @functools.wraps(step)
    def run(*args: Any, **kwargs: Any) -> Any:
        return strategy.experimental_local_results(strategy.run(step, args=args, kwargs=kwargs))[0]

    return run


class ReducedLosses:
    """A compiled step. The first losses are averaged over the workers, because they are compared.

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
        """Run a step. Return its loss."""
        value = self._function(*batch)
        if self._left:
            self._left -= 1
            value = self._mean(value)
        return value


def train_as_one(tf: Any, replicas: int) -> None:
    """Let a program's own step train as one of several workers. The step computes the mean over its own batch.

    The mean of the workers' gradients is the gradient of the whole batch, so devbench lets Keras' optimizers average
    them. By default, they add them up, and Keras' losses divide by the number of workers or refuse to compute the mean
    (Keras 2).
    """
    if getattr(train_as_one, "done", False):
        return
    train_as_one.done = True  # type: ignore[attr-defined]
    _keep_losses(tf)
    optimizer = tf.keras.optimizers.Optimizer
    name = "apply" if hasattr(optimizer, "apply") else "apply_gradients"
    original = getattr(optimizer, name)

    def scaled(gradients: Sequence[Any]) -> list[Any]:
        return [None if gradient is None else tf.math.scalar_mul(1.0 / replicas, gradient) for gradient in gradients]

    @functools.wraps(original)
    def apply(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        if tf.distribute.in_cross_replica_context():
            return original(self, *args, **kwargs)
        gradients, *rest = args or [kwargs.pop("grads" if name == "apply" else "grads_and_vars")]
        if name == "apply":
            return original(self, scaled(list(gradients)), *rest, **kwargs)
        values, variables = zip(*gradients, strict=True)
        return original(self, zip(scaled(values), variables, strict=True), *rest, **kwargs)

    setattr(optimizer, name, apply)


def _keep_losses(tf: Any) -> None:
    """Let Keras' losses return the mean over this worker's batch. Keras has no public function for it."""
    if installed.keras(tf).startswith("2."):
        auto, mean = tf.keras.losses.Reduction.AUTO, tf.keras.losses.Reduction.SUM_OVER_BATCH_SIZE
        loss_class = tf.keras.losses.Loss
        loss_class._get_reduction = lambda self: mean if self.reduction == auto else self.reduction
        return
    from keras.src.losses import loss

    loss.scale_loss_for_distribution = lambda value: value
