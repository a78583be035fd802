"""The rig of one worker: the workload, its model and its data, and the batches that loops read from them.

Inputs always vary. A loop that reads prepared batches cycles through `POOL` different ones, so that TensorFlow cannot
hoist work out of the loop or merge steps. Worker's side only.
"""

from __future__ import annotations

import contextlib
import inspect
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from bench.errors import NotApplicable
from bench.model.facts import Epoch, Facts
from bench.model.spec import Spec
from bench.worker.diagnose.pipeline_stages import stages
from bench.worker.protocol import FactsRead
from bench.worker.what_ifs import WhatIfs
from bench.workloads import Context, Probe

POOL = 32
"""Batches that `host-batches`, `resident` and `fused` cycle through."""


@dataclass
class LoopState:
    """What a loop leaves for the diagnosis. A field is None if the loop has no such thing.

    Attributes:
        function: the compiled step, a `tf.function` of one batch; of the loop `fused`, the function of many steps.
        example: the batch that the step was traced for.
        fused_arguments: the arguments with which `function` runs two steps, if the loop is `fused`.
        iterator: the iterator of `tf.data` that feeds the steps.
        program_steps: steps of the first run of the author's own loop, if it ended by itself.
    """

    function: Any = None
    example: tuple[Any, ...] | None = None
    fused_arguments: tuple[Any, Any] | None = None
    iterator: Any = None
    program_steps: int | None = None


@dataclass
class Rig:
    """Everything that a loop needs. A worker sets it up once.

    Attributes:
        tf: TensorFlow.
        spec: what is measured.
        module: the workload.
        p: its parameters.
        ctx: its context.
        send: sends an event to the parent.
        what_ifs: the what-ifs to apply.
        model: the workload's model. None if it has none.
        data: the workload's data. None if it has none.
        probes: the workload's probes, by name. None if it has none.
        state: what the loop leaves for the diagnosis.
        facts: the facts about the run so far.
    """

    tf: Any
    spec: Spec
    module: ModuleType
    p: Any
    ctx: Context
    send: Callable[[Any], None]
    what_ifs: WhatIfs
    model: Any = None
    data: Any = None
    probes: Mapping[str, Probe] | None = None
    state: LoopState = field(default_factory=LoopState)
    facts: Facts = field(default_factory=Facts)

    def report_facts(self) -> None:
        """Send the facts that were read so far."""
        self.send(FactsRead(facts=self.facts))

    def call(self, name: str) -> Any:
        """Call a function of the workload with the arguments that its signature names."""
        function = getattr(self.module, name)
        available = {"p": self.p, "ctx": self.ctx, "model": self.model, "data": self.data}
        parameters = inspect.signature(function).parameters
        if "inputs" in parameters:
            available["inputs"] = self.inputs()
        with self.scope():
            return function(**{name: available[name] for name in parameters})

    def scope(self) -> AbstractContextManager[Any]:
        """Return the device scope of the program. None is set if the program trains itself.

        The device under test is the default device anyway. A scope around the author's training changes what is timed:
        inside one, the operations of Keras' `fit` that read its iterator run on a GPU, outside it on the host.
        """
        own = self.spec.loop == "as-written" and (self.has("as_written") or self.has("model"))
        if own or self.spec.loop == "fit":
            return contextlib.nullcontext()
        return self.tf.device(self.ctx.device)  # type: ignore[no-any-return]

    def has(self, name: str) -> bool:
        """Whether the workload defines a function."""
        return callable(getattr(self.module, name, None))

    def inputs(self) -> tuple[Any, ...]:
        """Return the arguments of one step from the workload's `inputs`, different at each call."""
        parts = as_tuple(self.call("inputs"))
        if self.spec.dtype != "float64":
            return parts
        return tuple(a.astype("float64") if getattr(a, "dtype", None) == "float32" else a for a in parts)

    @property
    def yields(self) -> bool:
        """Whether the loop is the author's own, a generator of steps."""
        function = getattr(self.module, "as_written", None)
        return self.spec.loop == "as-written" and inspect.isgeneratorfunction(function)

    @property
    def is_dataset(self) -> bool:
        """Whether the workload's data are a `tf.data.Dataset` of batches."""
        return isinstance(self.data, self.tf.data.Dataset)

    @property
    def compiled(self) -> bool:
        """Whether Keras can train the model."""
        return self.model is not None and getattr(self.model, "optimizer", None) is not None

    @property
    def epoch(self) -> Epoch | None:
        """The length of an epoch. None if it is not known."""
        if self.data is None:
            return None
        if self.is_dataset:
            count = int(self.data.cardinality().numpy())
            remainder = dataset_remainder(self.data)
            return Epoch(batches=count - bool(remainder), remainder=remainder) if count > 0 else None
        if not isinstance(self.data, tuple) or not hasattr(self.p, "batch"):
            return None
        batches, remainder = divmod(len(self.data[0]), int(self.p.batch))
        return Epoch(batches=batches, remainder=remainder)


def as_tuple(value: Any) -> tuple[Any, ...]:
    """Return a batch as the arguments of a step."""
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def cast_float64(arrays: Sequence[Any], dtype: str) -> tuple[Any, ...]:
    """Cast float64 arrays to the dtype that the loop computes in, as Keras does in `fit`. Keep the others."""
    target = "float64" if dtype == "float64" else "float32"
    return tuple(a.astype(target) if getattr(a, "dtype", None) == "float64" else a for a in arrays)


def batches(rig: Rig) -> Iterator[tuple[Any, ...]]:
    """Yield batches of NumPy arrays without end, in the order of the data."""
    if rig.has("inputs"):
        while True:
            yield rig.inputs()
    elif rig.is_dataset:
        for batch in rig.data.repeat().as_numpy_iterator():
            yield as_tuple(batch)
    elif isinstance(rig.data, tuple) and hasattr(rig.p, "batch"):
        full = max(1, len(rig.data[0]) // rig.p.batch)
        for index in itertools.count():
            start = index % full * rig.p.batch
            yield cast_float64([a[start : start + rig.p.batch] for a in rig.data], rig.spec.dtype)
    else:
        raise NotApplicable(
            f"{rig.spec.workload} has no batches",
            "Define `inputs`, or `data` that returns a tf.data.Dataset, or a tuple of arrays with `batch` in Params.",
        )


def pool(rig: Rig) -> list[tuple[Any, ...]]:
    """Return the batches that loops without an input pipeline cycle through, all of one size."""
    size = rig.epoch.batches if rig.epoch else POOL
    candidates = list(itertools.islice(batches(rig), max(1, min(POOL, size))))
    return [batch for batch in candidates if not is_smaller(batch, candidates[0])]


def is_smaller(batch: tuple[Any, ...], first: tuple[Any, ...]) -> bool:
    """Whether a batch is the partial batch: it has another number of examples than the first one."""
    return bool(batch) and getattr(batch[0], "shape", None) != getattr(first[0], "shape", None)


def dataset_remainder(dataset: Any) -> int:
    """Return the examples in the partial batch of a `tf.data.Dataset`. 0 if there is none or it is not known.

    It is read from the pipeline: from the elements that enter its last `batch` stage, if no later stage changes the
    number of batches.
    """
    chain = stages(dataset)
    last = next((index for index, stage in reversed(list(enumerate(chain))) if hasattr(stage, "_batch_size")), 0)
    if not last:
        return 0
    examples, count, size = int(chain[last - 1].cardinality()), int(dataset.cardinality()), int(chain[last]._batch_size)
    return examples % size if examples > 0 and count == math.ceil(examples / size) else 0


def pipeline(rig: Rig) -> Any:
    """Return the workload's data as an endless `tf.data.Dataset` of batches. None if it has no data."""
    tf = rig.tf
    if rig.is_dataset:
        return rig.what_ifs.dataset(rig.data).repeat()
    if isinstance(rig.data, tuple) and hasattr(rig.p, "batch"):
        arrays = cast_float64(rig.data, rig.spec.dtype)
        size = max(1, min(int(rig.p.batch), len(arrays[0])))  # a batch of all rows, if it asks for more
        dataset = tf.data.Dataset.from_tensor_slices(arrays).batch(size, drop_remainder=True)
        return dataset.repeat().prefetch(tf.data.AUTOTUNE)
    return None


def steps_of_training(rig: Rig) -> int | None:
    """Return the steps of the whole training: by `total_steps`, or epochs times batches. None if it is not known."""
    if rig.has("total_steps"):
        return int(rig.call("total_steps"))
    return rig.epoch.steps * epochs_of(rig) if rig.epoch else None


def epochs_of(rig: Rig) -> int:
    """Return the epochs of the whole training by the program's parameters."""
    return int(getattr(rig.p, "epochs", 1))
