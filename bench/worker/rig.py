"""What one worker set up: the workload, its model and its data, and the batches that loops read from them.

Inputs always vary: where a loop reads prepared batches, `POOL` different ones take turns, so that nothing can be
hoisted or merged into one. Worker's side only.
"""

from __future__ import annotations

import inspect
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from bench.errors import NotApplicable
from bench.model.facts import Epoch, Facts
from bench.model.spec import Spec
from bench.worker.diagnose.pipeline_stages import stages
from bench.worker.protocol import FactsRead
from bench.worker.what_ifs import WhatIfs
from bench.workloads import Context

POOL = 32
"""Batches that `host-batches`, `resident` and `fused` cycle through."""


@dataclass
class Rig:
    """Everything a loop needs, set up once a worker."""

    tf: Any
    spec: Spec
    module: ModuleType
    p: Any
    ctx: Context
    send: Callable[[Any], None]
    what_ifs: WhatIfs
    model: Any = None
    data: Any = None
    facts: Facts = field(default_factory=Facts)
    seen: dict[str, Any] = field(default_factory=dict)

    def report_facts(self) -> None:
        """Send the facts that are known so far."""
        self.send(FactsRead(facts=self.facts))

    def call(self, name: str) -> Any:
        """Calls one of the workload's functions with the arguments that its signature names."""
        function = getattr(self.module, name)
        have = {"p": self.p, "ctx": self.ctx, "model": self.model, "data": self.data}
        wanted = inspect.signature(function).parameters
        if "inputs" in wanted:
            have["inputs"] = self.inputs()
        with self.tf.device(self.ctx.device):
            return function(**{key: have[key] for key in wanted})

    def has(self, name: str) -> bool:
        """Whether the workload offers this function."""
        return callable(getattr(self.module, name, None))

    def inputs(self) -> tuple[Any, ...]:
        """One step's arguments, from the workload's `inputs`, different at each call; float64 where that is asked."""
        parts = as_tuple(self.call("inputs"))
        if self.spec.dtype != "float64":
            return parts
        return tuple(a.astype("float64") if getattr(a, "dtype", None) == "float32" else a for a in parts)

    @property
    def yields(self) -> bool:
        """Whether what is driven is the author's own loop, a generator of steps."""
        function = getattr(self.module, "as_written", None)
        return self.spec.loop == "as-written" and inspect.isgeneratorfunction(function)

    @property
    def is_dataset(self) -> bool:
        """Whether the workload's data come as a `tf.data.Dataset` of batches."""
        return isinstance(self.data, self.tf.data.Dataset)

    @property
    def compiled(self) -> bool:
        """Whether Keras can train the model."""
        return self.model is not None and getattr(self.model, "optimizer", None) is not None

    @property
    def epoch(self) -> Epoch | None:
        """The length of an epoch; None if it cannot be told."""
        if self.data is None:
            return None
        if self.is_dataset:
            count = int(self.data.cardinality().numpy())
            rest = left_over(self.data)
            return Epoch(batches=count - bool(rest), remainder=rest) if count > 0 else None
        if not isinstance(self.data, tuple) or not hasattr(self.p, "batch"):
            return None
        batches, remainder = divmod(len(self.data[0]), int(self.p.batch))
        return Epoch(batches=batches, remainder=remainder)


def as_tuple(value: Any) -> tuple[Any, ...]:
    """A batch as the arguments of a step."""
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def floats_narrowed(arrays: Sequence[Any], dtype: str) -> tuple[Any, ...]:
    """float64 arrays as the dtype that the loop computes in; the rest as they are. Keras does the same in `fit`."""
    wanted = "float64" if dtype == "float64" else "float32"
    return tuple(a.astype(wanted) if getattr(a, "dtype", None) == "float64" else a for a in arrays)


def batches(rig: Rig) -> Iterator[tuple[Any, ...]]:
    """Endless batches in NumPy arrays, in the order of the data."""
    if rig.has("inputs"):
        while True:
            yield rig.inputs()
    elif rig.is_dataset:
        for batch in rig.data.repeat().as_numpy_iterator():
            yield as_tuple(batch)
    elif isinstance(rig.data, tuple) and hasattr(rig.p, "batch"):
        whole = max(1, len(rig.data[0]) // rig.p.batch)
        for index in itertools.count():
            start = index % whole * rig.p.batch
            yield floats_narrowed([a[start : start + rig.p.batch] for a in rig.data], rig.spec.dtype)
    else:
        raise NotApplicable(
            f"{rig.spec.workload} gives no batches",
            "Offer `inputs`, or `data` as a tuple of arrays with `batch` in Params, or as a tf.data.Dataset.",
        )


def pool(rig: Rig) -> list[tuple[Any, ...]]:
    """The batches that the loops without input take turns through, all of one size."""
    size = rig.epoch.batches if rig.epoch else POOL
    found = list(itertools.islice(batches(rig), max(1, min(POOL, size))))
    return [batch for batch in found if not is_smaller(batch, found[0])]


def is_smaller(batch: tuple[Any, ...], first: tuple[Any, ...]) -> bool:
    """Whether a batch has another number of examples than the first: it is what was left over at the end."""
    return bool(batch) and getattr(batch[0], "shape", None) != getattr(first[0], "shape", None)


def left_over(dataset: Any) -> int:
    """Examples in the last batch of a `tf.data.Dataset` that is not full; 0 where it is, or where that can't be told.

    Read from the pipeline: what comes into its last `batch`, where nothing behind that changes how many there are.
    """
    chain = stages(dataset)
    last = next((n for n, stage in reversed(list(enumerate(chain))) if hasattr(stage, "_batch_size")), 0)
    if not last:
        return 0
    examples, count, size = int(chain[last - 1].cardinality()), int(dataset.cardinality()), int(chain[last]._batch_size)
    return examples % size if examples > 0 and count == math.ceil(examples / size) else 0


def pipeline(rig: Rig) -> Any:
    """The workload's data as an endless `tf.data.Dataset` of batches: its own, or one over its arrays."""
    tf = rig.tf
    if rig.is_dataset:
        return rig.what_ifs.dataset(rig.data).repeat()
    if isinstance(rig.data, tuple) and hasattr(rig.p, "batch"):
        arrays = floats_narrowed(rig.data, rig.spec.dtype)
        dataset = tf.data.Dataset.from_tensor_slices(arrays).batch(rig.p.batch, drop_remainder=True)
        return dataset.repeat().prefetch(tf.data.AUTOTUNE)
    return None


def steps_of_training(rig: Rig) -> int | None:
    """Steps of the workload's whole program: its own word, or epochs times the batches of its data."""
    if rig.has("total_steps"):
        return int(rig.call("total_steps"))
    epoch = steps_of_epoch(rig)
    return epoch * int(getattr(rig.p, "epochs", 1)) if epoch else None


def steps_of_epoch(rig: Rig) -> int | None:
    """Batches of the data, the partial one included; none where that can't be told."""
    return rig.epoch.steps if rig.epoch else None
