"""A spec: everything that defines a run, explicit and hashable.

Nothing is left to a framework default that differs by device or version. Two runs with equal specs are repetitions of
each other, and `Spec.key` names them.

Each field declares its `Role` where it is defined. Comparing (`analyse.comparable`), varying (`study.plan`), the
recommended command (`study.recommend`), peaks (`study.peaks`), names in reports (`render.labels`), the programs of the
hub and `Spec.key` derive from it.
"""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from bench.model.loops import LOOPS as LOOPS
from bench.model.loops import Loop as Loop

Dtype = Literal["float32", "float64", "mixed_float16", "mixed_bfloat16"]
DataKind = Literal["full", "sample", "synthetic", "own"]
Strategy = Literal["none", "multi-worker", "mirrored"]
Scaling = Literal["strong", "weak"]


@dataclass(frozen=True)
class Role:
    """What a field of a spec is for.

    Args:
        compare: How a difference in the field counts. "axis": a comparison can be about it. "secondary": a comparison
            can be about it if nothing else differs. "rule": `analyse.comparable` has a rule of its own for it.
            "ignored": two specs that differ in nothing else are equal.
        reason: Why the field is ignored.
        options: Names of the settings that set the field.
        several: How to measure several values in one run: "list" if the option takes a list, "vary" if `--vary` takes
            the option, None if neither does.
        computation: Whether another value is another computation, so that first losses may differ.
        place: Whether the field comes with the place where a program runs. A program may run at several places.
        peaks: Whether the peaks of the machine depend on it. All other options have their defaults when peaks are
            measured.
        label: Describe a value of the field, to tell results apart. None if a report has a rule of its own for it.
    """

    compare: Literal["axis", "secondary", "rule", "ignored"]
    reason: str = ""
    options: tuple[str, ...] = ()
    several: Literal["list", "vary"] | None = None
    computation: bool = False
    place: bool = False
    peaks: bool = False
    label: Callable[[Any], str] | None = None

    def __post_init__(self) -> None:
        if (self.compare == "ignored") != bool(self.reason):
            raise TypeError("a role needs a reason if it is ignored, and only then")


def _switch(name: str) -> Callable[[bool | None], str]:
    """Return a label for an option that is on, off, or left to the program."""
    return lambda value: name + (" as the program decides" if value is None else " on" if value else " off")


class Frozen(BaseModel):
    """A strict, immutable model: an unknown field is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Threads(Frozen):
    """TensorFlow's thread pools."""

    intra: int = Field(ge=1, description="threads within one operation")
    inter: int = Field(ge=1, description="operations at a time")


class Data(Frozen):
    """Which data a run reads."""

    kind: DataKind = Field(description="full set, shipped sample repeated, synthetic, or the program's own")
    name: str | None = Field(None, description="data set, such as cifar10; null if the program makes its own")
    source: Annotated[str | None, Role("ignored", reason="the content counts, not where it lies")] = Field(
        None, description="file or folder that holds the full set"
    )
    sha256: str | None = Field(None, description="checksum of the shipped sample or of that file")


class Env(Frozen):
    """The Python environment of a worker, if it is not devbench's own."""

    name: str = Field(description="its name, as the user gave it")
    python: Annotated[str, Role("ignored", reason="its packages count, not its location")] = Field(
        description="path of its interpreter"
    )
    version: str = Field(description="version of Python")
    sha256: str = Field(description="checksum of its packages and their versions")
    packages: Annotated[dict[str, str], Role("ignored", reason="the checksum counts")] = Field(
        default_factory=dict, description="versions of its packages, by name"
    )
    site_packages: Annotated[str | None, Role("ignored", reason="its packages count, not its location")] = Field(
        None, description="folder that holds its TensorFlow"
    )
    path: Annotated[str | None, Role("ignored", reason="it only holds what devbench needs")] = Field(
        None, description="folder with packages that devbench needs and the environment lacks"
    )


class Workers(Frozen):
    """Workers that train together under a strategy of `tf.distribute`, each in a process of its own."""

    count: int = Field(ge=1, description="number of workers; under the strategy mirrored, number of replicas")
    strategy: Strategy = Field(
        description="none: one worker without a strategy. multi-worker: MultiWorkerMirroredStrategy. mirrored: "
        "MirroredStrategy, with all replicas in one process"
    )
    scaling: Scaling = Field(
        "strong", description="strong: the workers share each batch. weak: each worker has batches of its own"
    )
    reduce: bool = Field(
        True, description="whether the gradients are reduced among the workers; if not, each trains a model of its own"
    )
    cpus: int | None = Field(None, description="CPUs that each worker is pinned to; null if workers are not pinned")

    @property
    def label(self) -> str:
        """How a result with these workers is told apart, such as "2 workers (weak)" or "2 workers, no all-reduce"."""
        if self.strategy == "none":
            return "no strategy"
        noun = "replica" if self.strategy == "mirrored" else "worker"
        words = f"{self.count} {noun}{'s' if self.count > 1 else ''}"
        if self.scaling == "weak":
            words += " (weak)"
        return words if self.reduce else f"{words}, no all-reduce"

    @property
    def batches(self) -> int:
        """Batches of the program that all workers together compute in one step."""
        return self.count if self.scaling == "weak" else 1


class Script(Frozen):
    """A program that runs as Python would run it."""

    arguments: tuple[str, ...] = Field((), description="its arguments, `sys.argv` without the first element")
    module: str | None = Field(None, description="name of its module, if it runs as `python -m` runs one")
    watch: int | None = Field(None, description="number of the loop to time; null for the one with most steps")


def _script_label(script: Script | None) -> str:
    """Return the arguments of a script, and the loop of it that was chosen."""
    if script is None:
        return ""
    watched = f" (watching loop {script.watch})" if script.watch else ""
    return shlex.join(script.arguments) + watched


class WorkloadSpec(Frozen):
    """What runs: a workload with its parameters, on a backend, driven by a loop."""

    workload: Annotated[str, Role("rule", computation=True, label=str)] = Field(
        description="a built-in's name, or the stem of a user's file"
    )
    case: Annotated[str | None, Role("rule", options=("case",), several="list", label=lambda case: case or "")] = Field(
        None, description="name of the preset of params, where the workload has several"
    )
    file: Annotated[str | None, Role("ignored", reason="the text counts (file_sha256), not where it lies")] = Field(
        None, description="absolute path of a user's file; null for a built-in"
    )
    file_sha256: Annotated[str | None, Role("rule")] = Field(None, description="checksum of the workload's source")
    checkout: Annotated[str | None, Role("axis", computation=True, label=lambda folder: folder or "")] = Field(
        None, description="folder or commit that tells two files with the same name apart, such as base"
    )
    backend: Annotated[str, Role("axis", options=("backend",), several="list", place=True, peaks=True, label=str)] = (
        Field(description="where it runs, such as cpu or cuda")
    )
    loop: Annotated[Loop, Role("axis", options=("loop",), several="list", label=str)] = Field(
        "as-written", description="how steps are driven"
    )
    env: Annotated[
        Env | None,
        Role(
            "axis",
            options=("env",),
            several="list",
            computation=True,
            peaks=True,
            label=lambda env: env.name if env else "",
        ),
    ] = Field(None, description="its Python environment; null for devbench's own")
    params: Annotated[dict[str, Any], Role("rule", options=("param",), several="vary", computation=True)] = Field(
        default_factory=dict, description="every parameter with its value"
    )
    script: Annotated[
        Script | None, Role("secondary", options=("args", "watch"), computation=True, label=_script_label)
    ] = Field(None, description="how to run the file if it is a script; null for a workload")
    workers: Annotated[Workers | None, Role("axis", label=lambda workers: workers.label if workers else "")] = Field(
        None, description="workers that train together; null for a program that runs as usual"
    )
    what_ifs: Annotated[
        tuple[str, ...],
        Role(
            "axis",
            options=("change",),
            computation=True,
            label=lambda names: f"with {', '.join(names)}" if names else "",
        ),
    ] = Field((), description="what-ifs that change the program from outside")


class Execution(Frozen):
    """How TensorFlow executes the program, for options that a spec holds exactly as they are set.

    `RunSettings` inherits these fields. A new option of this kind is one declaration here.
    """

    dtype: Annotated[Dtype, Role("axis", options=("dtype",), several="vary", label=str)] = Field(
        "float32", description="Keras dtype policy."
    )
    tf32: Annotated[bool, Role("axis", options=("tf32",), several="vary", peaks=True, label=_switch("TF32"))] = Field(
        True, description="Use TF32 for float32 products on GPUs that support it (Ampere and newer)."
    )
    onednn: Annotated[bool, Role("axis", options=("onednn",), several="vary", peaks=True, label=_switch("oneDNN"))] = (
        Field(True, description="Use oneDNN kernels on the CPU.")
    )
    deterministic: Annotated[
        bool, Role("axis", options=("deterministic",), several="vary", label=_switch("determinism"))
    ] = Field(False, description="Use only deterministic operations, so that runs repeat bit for bit.")
    seed: Annotated[int, Role("secondary", options=("seed",), computation=True, label=lambda seed: f"seed {seed}")] = (
        Field(1, ge=0, lt=2**32, description="Seed for weights, batch order and synthetic data.")
    )


class Spec(Execution, WorkloadSpec):
    """Everything that defines a run."""

    xla: Annotated[bool | None, Role("axis", options=("xla",), several="vary", label=_switch("XLA"))] = Field(
        None,
        description="whether XLA compiles the steps; null if the program decides, which only the loop as-written "
        "allows; jit_compile in the facts says what it decided",
    )
    threads: Annotated[
        Threads,
        Role(
            "secondary",
            options=("threads",),
            several="vary",
            place=True,
            peaks=True,
            label=lambda threads: f"{threads.intra}+{threads.inter} threads",
        ),
    ]
    data: Annotated[
        Data, Role("rule", options=("data", "data_dir"), computation=True, label=lambda data: f"{data.kind} data")
    ]

    @property
    def key(self) -> str:
        """16 hex digits that name this spec. Results with equal keys are repetitions."""
        document = self.model_dump(mode="json", exclude=IGNORED)
        return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()[:16]

    @property
    def program_key(self) -> str:
        """16 hex digits that name what runs, wherever it runs."""
        document = self.model_dump(mode="json", exclude=IGNORED | dict.fromkeys(PLACE, True))
        return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()[:16]

    @property
    def title(self) -> str:
        """The workload, with its case if it has cases: `cifar`, `tabular/small`."""
        return f"{self.workload}/{self.case}" if self.case else self.workload

    @property
    def label(self) -> str:
        """Its name in a sentence: `tabular/small on cpu, fit`, or `… with cache`."""
        what_ifs = f" with {' and '.join(self.what_ifs)}" if self.what_ifs else ""
        env = f" in {self.env.name}" if self.env else ""
        checkout = f" of {self.checkout}" if self.checkout else ""
        workers = f", {self.workers.label}" if self.workers else ""
        return f"{self.title}{checkout} on {self.backend}{env}, {self.loop}{what_ifs}{workers}"


def _role(name: str) -> Role:
    """Return the role of a field of `Spec`.

    Raises:
        TypeError: The field declares none.
    """
    for item in Spec.model_fields[name].metadata:
        if isinstance(item, Role):
            return item
    raise TypeError(f"Spec.{name} declares no Role")


ROLES: Mapping[str, Role] = MappingProxyType({name: _role(name) for name in Spec.model_fields})
"""The role of each field of `Spec`, in the order of its fields."""


def _ignored(model: type[BaseModel]) -> dict[str, Any]:
    """Return the ignored fields of a model and of the models in it, as `model_dump(exclude=…)` takes them."""
    ignored: dict[str, Any] = {}
    for name, field in model.model_fields.items():
        if any(isinstance(item, Role) and item.compare == "ignored" for item in field.metadata):
            ignored[name] = True
        elif isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            ignored |= {name: inner} if (inner := _ignored(field.annotation)) else {}
    return ignored


IGNORED = _ignored(Spec)
"""The fields that do not count when specs are compared, as `model_dump(exclude=…)` takes them."""

PLACE = tuple(name for name, role in ROLES.items() if role.place)
"""The fields that come with the place where a program runs."""
