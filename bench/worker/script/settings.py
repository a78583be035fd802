"""TensorFlow's settings in a process of a script: those that the run asks for, and those that the script changes."""

from __future__ import annotations

import functools
import inspect
import itertools
import os
import random
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from bench import backends
from bench.model.spec import Spec
from bench.worker.diagnose.placement import short
from bench.worker.protocol import EnvironmentRead
from bench.worker.script.calls import Observation


class Seeds:
    """Seeds Python and NumPy, and notes the seeds that the script sets afterwards.

    NumPy's generators that the script makes without a seed get one too: each has its own, in the order of their making.

    Args:
        seed: the seed that the run asks for.

    Attributes:
        chosen: the latest seed that the script set, by the name of the generator.
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self.chosen: dict[str, Any] = {}
        for name, module in {"Python": random, "NumPy": np.random}.items():
            original = module.seed
            original(seed)
            module.seed = self._noting(name, original)  # type: ignore[attr-defined]
        self._lineage: list[int] = []  # which child of which child of the script's process this is
        self._children = 0
        self._numbers = itertools.count()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(before=self._before_fork, after_in_child=self._in_child)
        np.random.default_rng = self._seeding(np.random.default_rng)

    def _noting(self, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def seed(*args: Any, **kwargs: Any) -> Any:
            self.chosen[name] = next(iter([*args, *kwargs.values()]), None)
            return original(*args, **kwargs)

        return seed

    def _seeding(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def default_rng(seed: Any = None) -> Any:
            return original([self._seed, *self._lineage, next(self._numbers)] if seed is None else seed)

        return default_rng

    def _before_fork(self) -> None:
        self._children += 1

    def _in_child(self) -> None:
        """Let the generators of a child process differ from those of its parent and of other children."""
        self._lineage.append(self._children)
        self._children, self._numbers = 0, itertools.count()

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Restore the states of Python's and NumPy's generators afterwards: the script may have seeded them already."""
        python, numpy, chosen = random.getstate(), np.random.get_state(), dict(self.chosen)
        try:
            yield
        finally:
            random.setstate(python)
            np.random.set_state(numpy)
            self.chosen = chosen

    def differences(self) -> list[str]:
        """Return each seed that differs from the one that the run asks for, in words. TensorFlow must be imported."""
        from tensorflow.python.eager import context
        from tensorflow.python.framework import ops

        eager = ops.executing_eagerly_outside_functions()
        chosen = {**self.chosen, "TensorFlow": context.global_seed() if eager else ops.get_default_graph().seed}
        return [
            f"seed of {name} {value} instead of {self._seed}"
            for name, value in chosen.items()
            if str(value) != str(self._seed)
        ]


def configure(tf: Any, spec: Spec, seeds: Seeds) -> str:
    """Make all settings that would otherwise be left to defaults of TensorFlow. Return the device.

    TensorFlow does not run an operation yet. The script may change the settings afterwards.
    """
    backend = backends.load(spec.backend)
    tf.config.threading.set_intra_op_parallelism_threads(spec.threads.intra)
    tf.config.threading.set_inter_op_parallelism_threads(spec.threads.inter)
    device: str = backend.configure(tf)
    if hasattr(tf.config.experimental, "enable_tensor_float_32_execution"):
        tf.config.experimental.enable_tensor_float_32_execution(spec.tf32)
    with seeds.kept():
        tf.keras.utils.set_random_seed(spec.seed)
    seed_graphs(tf.Graph, spec.seed)
    if spec.deterministic:
        tf.config.experimental.enable_op_determinism()
    if spec.dtype == "float64":
        tf.keras.backend.set_floatx("float64")
    elif spec.dtype != "float32":
        tf.keras.mixed_precision.set_global_policy(spec.dtype)
    return device


def seed_graphs(kind: Any, seed: int) -> None:
    """Seed each graph that a script makes, as it does for sessions: the global seed is only that of eager execution.

    Args:
        kind: the class of graphs. The graphs of `tf.functions` then take the global seed.
        seed: the seed.
    """
    original = kind.__init__

    @functools.wraps(original)
    def create(graph: Any, *args: Any, **kwargs: Any) -> None:
        original(graph, *args, **kwargs)
        graph.seed = seed

    kind.__init__ = create


def report(tf: Any, spec: Spec, send: Callable[[Any], None]) -> None:
    """Report TensorFlow's version and the device."""
    from bench.machine.environment import framework

    backend = backends.load(spec.backend)
    send(EnvironmentRead(framework=framework(tf, backends.recorded_packages()), device=backend.describe(tf)))


def memory(tf: Any) -> dict[str, Any]:
    """Return the memory growth and the memory limits of each GPU, by the name of the setting."""
    found: dict[str, Any] = {}
    for gpu in tf.config.list_physical_devices("GPU"):
        name = short(gpu.name.removeprefix("/physical_device:"))
        parts = tf.config.get_logical_device_configuration(gpu) or []
        found[f"memory growth of {name}"] = tf.config.experimental.get_memory_growth(gpu)
        found[f"memory limits of {name} in MiB"] = [part.memory_limit for part in parts if part.memory_limit] or None
    return found


class CompiledFunctions:
    """Notes the functions of the script that set `jit_compile` otherwise than the run.

    Args:
        seen: what the observers share.
        xla: whether the run asks for XLA.
    """

    def __init__(self, seen: Observation, xla: bool) -> None:
        self.named: dict[str, None] = {}
        kind = type(seen.tf.function(lambda: None))
        original = kind.__init__

        @functools.wraps(original)
        def create(function: Any, *args: Any, **kwargs: Any) -> None:
            original(function, *args, **kwargs)
            chosen, code = function._jit_compile, _code(function.python_function)
            if chosen is not None and bool(chosen) != xla and seen.is_program(code.co_filename):
                where = f"{seen.name_of(code.co_filename)}, line {code.co_firstlineno}"
                self.named[f"jit_compile={chosen} for {code.co_name} in {where}"] = None

        kind.__init__ = create


class DeviceScopes:
    """Notes the calls of `tf.device` in the script that name another device than the run.

    Args:
        seen: what the observers share.
        device: the device of the run.
    """

    def __init__(self, seen: Observation, device: str) -> None:
        self.named: dict[str, None] = {}
        original, wanted = seen.tf.device, short(device)

        @functools.wraps(original)
        def scope(device_name: Any) -> Any:
            if isinstance(device_name, str) and short(device_name) not in (wanted, wanted.partition(":")[0]):
                call = seen.call("function", "tf.device")
                if seen.is_program(sys._getframe(1).f_code.co_filename):
                    self.named[f"tf.device({device_name!r}) in {call.file}, line {call.line}"] = None
            return original(device_name)

        seen.tf.device = scope


def differences(tf: Any, spec: Spec, memory_asked: Mapping[str, Any]) -> list[str]:
    """Return each setting that differs from what the run asks for, in words.

    Args:
        tf: TensorFlow.
        spec: the spec.
        memory_asked: what `memory` returned before the script could change it.
    """
    policy = tf.keras.mixed_precision.global_policy().name
    threads = tf.config.threading
    variables = {
        name: (os.environ.get(name), value)
        for name, value in backends.load(spec.backend).environment(spec).items()
        if name.endswith("VISIBLE_DEVICES")
    }
    found: dict[str, tuple[Any, Any]] = {
        "threads within an operation": (threads.get_intra_op_parallelism_threads(), spec.threads.intra),
        "operations at a time": (threads.get_inter_op_parallelism_threads(), spec.threads.inter),
        "TF32": (tf.config.experimental.tensor_float_32_execution_enabled(), spec.tf32),
        "visible GPUs": (
            len(tf.config.get_visible_devices("GPU")),
            int(backends.capabilities(spec.backend).gpu and bool(tf.config.list_physical_devices("GPU"))),
        ),
        "dtype policy": (policy, "float32" if spec.dtype == "float64" and policy == "float32" else spec.dtype),
        "TF_ENABLE_ONEDNN_OPTS": (os.environ.get("TF_ENABLE_ONEDNN_OPTS"), "1" if spec.onednn else "0"),
        **variables,
        **{name: (actual, memory_asked.get(name)) for name, actual in memory(tf).items()},
    }
    return [f"{name} {actual} instead of {asked}" for name, (actual, asked) in found.items() if actual != asked]


def _code(function: Any) -> Any:
    """Return the code of a Python function. Return that of `_code` itself if the function has none."""
    return getattr(inspect.unwrap(function), "__code__", _code.__code__)
