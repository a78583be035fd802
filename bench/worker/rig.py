"""The rig of a worker: the workload, its model and its data. Worker's side only."""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from types import ModuleType
from typing import TYPE_CHECKING, Any

from bench.model.facts import Epoch, Facts
from bench.model.spec import Spec
from bench.worker import examples
from bench.worker.examples import as_tuple
from bench.worker.frames import Sources
from bench.worker.protocol import FactsRead
from bench.worker.stages import dataset_remainder
from bench.worker.what_ifs import WhatIfs
from bench.workloads import Context, Probe

if TYPE_CHECKING:
    from bench.worker.cluster.member import Member
    from bench.worker.cluster.share import DataShare


@dataclass
class LoopState:
    """What a loop leaves for the diagnosis. A field is None if the loop leaves no such value.

    Attributes:
        function: the compiled step, a `tf.function` of one batch; of the loop `fused`, the function of many steps.
        example: the batch that the step was traced for.
        fused_arguments: the arguments with which `function` runs two steps, if the loop is `fused`.
        iterator: the iterator of `tf.data` that feeds the steps.
        program_steps: steps of the first run of the author's own loop. None until this run ends by itself.
    """

    function: Any = None
    example: tuple[Any, ...] | None = None
    fused_arguments: tuple[Any, Any] | None = None
    iterator: Any = None
    program_steps: int | None = None


@dataclass
class Rig:
    """Everything that a loop needs. A worker sets up one rig.

    Attributes:
        tf: TensorFlow.
        spec: what is measured.
        module: the workload.
        p: its parameters.
        ctx: its context.
        send: sends an event to the parent.
        what_ifs: applies the what-ifs.
        member: this worker as one of several. None if it is alone.
        model: the workload's model. None if it has none.
        data: the workload's data. None if it has none.
        probes: the workload's probes, by name. None if it has none.
        state: what the loop leaves for the diagnosis.
        facts: the facts about the run so far.
        unwound: what unwound a script. It keeps the local objects of the script alive: a `tf.function` may be a method
            of one, to which it refers only weakly, as to its variables. None if no script was unwound.
        sources: names the files of the program. None if the workload's file is the only one.
    """

    tf: Any
    spec: Spec
    module: ModuleType
    p: Any
    ctx: Context
    send: Callable[[Any], None]
    what_ifs: WhatIfs
    member: Member | None = None
    model: Any = None
    data: Any = None
    probes: Mapping[str, Probe] | None = None
    state: LoopState = field(default_factory=LoopState)
    facts: Facts = field(default_factory=Facts)
    unwound: BaseException | None = None
    sources: Sources | None = None

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
        """Return the scope to run the program in: that of its strategy, else of its device, or none.

        There is none if the author's own code or `fit` trains, because it changes what is timed: inside a scope, the
        operations of Keras' `fit` that read its iterator run on a GPU, outside on the host. The device under test is
        the default device anyway.
        """
        own = self.spec.loop == "as-written" and (self.has("as_written") or self.has("model"))
        if self.strategy is not None:
            return self.strategy.scope()  # type: ignore[no-any-return]
        if own or self.spec.loop == "fit" or self.spec.script is not None:
            return contextlib.nullcontext()
        return self.tf.device(self.ctx.device)  # type: ignore[no-any-return]

    @property
    def strategy(self) -> Any:
        """The strategy of `tf.distribute`. None if there is none."""
        return self.member.strategy if self.member else None

    @property
    def share(self) -> DataShare | None:
        """This worker's part of the data. None if it computes on all of it."""
        return self.member.share if self.member else None

    def has(self, name: str) -> bool:
        """Whether the workload defines a function."""
        return callable(getattr(self.module, name, None))

    def inputs(self) -> tuple[Any, ...]:
        """Return the arguments of one step from the workload's `inputs`. They differ from call to call."""
        parts = as_tuple(self.call("inputs"))
        if self.spec.dtype != "float64" or self.spec.script is not None:
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
    def is_py_dataset(self) -> bool:
        """Whether the workload's data are a Keras `PyDataset`."""
        return examples.is_py_dataset(self.tf, self.data)

    @property
    def arrays(self) -> tuple[Any, ...] | None:
        """The workload's data as arrays that devbench divides into batches. None if they are something else."""
        if self.data is None or not hasattr(self.p, "batch"):
            return None
        return examples.arrays(self.tf, self.data)

    def check_data(self) -> None:
        """Check that the loop can take batches from the data, unless only the author's own loop uses them.

        Raises:
            WorkloadError: it cannot.
        """
        own_loop = self.spec.loop == "as-written" and self.has("as_written")
        if self.has("data") and not own_loop and not self.has("probes"):
            examples.check(self.tf, self.data, self.spec.workload, hasattr(self.p, "batch"))

    @property
    def compiled(self) -> bool:
        """Whether Keras can train the model."""
        return self.model is not None and getattr(self.model, "optimizer", None) is not None

    @functools.cached_property
    def _py_dataset_remainder(self) -> int:
        return examples.py_dataset_remainder(self.tf, self.data)

    @property
    def epoch(self) -> Epoch | None:
        """The length of an epoch. None if it is not known."""
        if self.data is None:
            return None
        if self.is_dataset:
            count = int(self.data.cardinality().numpy())
            remainder = dataset_remainder(self.data)
            return Epoch(batches=count - bool(remainder), remainder=remainder) if count > 0 else None
        if self.is_py_dataset:
            length = examples.py_dataset_length(self.data)
            remainder = self._py_dataset_remainder
            return Epoch(batches=length - bool(remainder), remainder=remainder) if length else None
        if (arrays := self.arrays) is None:
            return None
        batches, remainder = divmod(examples.count(self.tf, arrays), int(self.p.batch))
        return Epoch(batches=batches, remainder=remainder)


def steps_of_training(rig: Rig) -> int | None:
    """Return the steps of the whole training: by `total_steps`, or epochs times batches. None if it is not known."""
    if rig.has("total_steps"):
        return int(rig.call("total_steps"))
    return rig.epoch.steps * epochs_of(rig) if rig.epoch else None


def epochs_of(rig: Rig) -> int:
    """Return the epochs of the whole training by the program's parameters."""
    return int(getattr(rig.p, "epochs", 1))


def context_of(spec: Spec, device: str, load: Callable[[str], Any] = lambda name: None) -> Context:
    """Return the context of a program.

    Args:
        spec: what is measured.
        device: the device under test.
        load: returns a data set by its name. A script loads its data sets itself.
    """
    import numpy as np

    return Context(
        rng=np.random.default_rng([spec.seed, 0]),
        device=device,
        backend=spec.backend,
        dtype=spec.dtype,
        seed=spec.seed,
        _load=load,
    )
