"""What a worker reads from its own run besides times: what the program is, and what TensorFlow made of it.

A field is None if it was not read, because the worker was not asked to or because the loop has nothing of the kind.
False, 0 and an empty list are values that were read.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from bench.model.record import Record


class Epoch(Record):
    """The length of one pass over the data."""

    batches: int = Field(description="full batches")
    remainder: int = Field(description="examples in the partial batch at the end; 0 if there is none")

    @property
    def steps(self) -> int:
        """Batches of an epoch, the partial batch included."""
        return self.batches + bool(self.remainder)


class Asides(Record):
    """Work between some steps of a script's own loop that is no part of a step, such as a validation."""

    count: int = Field(description="how often it was seen")
    first_seconds: float = Field(description="time that it took at first, when functions may have been traced")
    seconds: float = Field(description="mean time that it took later; the same if it was seen once")
    every: float = Field(description="mean number of steps from one to the next; all steps if it was seen once")


class IteratorEnd(Record):
    """The end of an iterator of `tf.data`, where a short epoch ends."""

    age: float = Field(description="seconds since the first step that read from it")
    gap: float = Field(description="seconds from its end to the first step of the next epoch")


class Products(Record):
    """Matrix products and convolutions in the graph of a step."""

    count: int = Field(description="number of them")
    odd: int = Field(description="those with a side that does not fill a tensor core's tile")
    examples: dict[str, list[int]] = Field(
        description="operation to its sides that do not fill a tile, for the first few operations"
    )


class FitCall(Record):
    """The program's own call of `fit`."""

    callbacks: list[str] = Field(description="class names")
    verbose: int | str = Field(description="its argument verbose")
    metrics: bool = Field(description="whether the model was compiled with metrics")
    input: str = Field("", description="type of its input, such as ndarray")
    shuffles: bool = Field(False, description="whether it shuffles its input, which it only does with arrays")
    options: list[str] = Field(default_factory=list, description="its other arguments that change the work of a step")

    @property
    def prints(self) -> bool:
        """Whether it draws a progress bar."""
        return self.verbose in (1, "auto")


class CallbackTime(Record):
    """The time of one callback of `fit`."""

    name: str = Field(description="class name")
    step_seconds: float = Field(description="in its methods for batches, per step")
    epoch_seconds: float = Field(description="in its method for the end of an epoch, per epoch")
    calls: list[str] = Field(default_factory=list, description="methods of the model that it calls, such as predict")


class CallbackTimes(Record):
    """The time of the callbacks of `fit`."""

    callbacks: list[CallbackTime]


SEQUENTIAL_MAP = "map"
"""The kind of a stage that calls its function for one element at a time."""


CACHE = "cache"
"""The kind of a stage that keeps its elements after the first epoch."""


GENERATOR = "from_generator"
"""The kind of a stage that gets its elements from a Python generator."""


PY_DATASET = "Keras dataset"
"""The kind of the only stage of an input that is a Keras `PyDataset`: its method `__getitem__`."""


class PipelineStage(Record):
    """A stage of a `tf.data` pipeline."""

    stage: str = Field(description="its kind, such as batch or map, parallel")
    function: str | None = Field(None, description="name of its function; None if it has none")
    file: str | None = Field(None, description="file of that function")
    line: int | None = Field(None, description="line of that function")
    seconds: float | None = Field(
        None, description="for one element of the whole pipeline, up to and including this stage; None if not timed"
    )
    buffer: int | None = Field(None, description="elements in its shuffle buffer; None if it does not shuffle")
    filling_seconds: float | None = Field(None, description="until its shuffle buffer delivers the first element")


class OptimizerTime(Record):
    """The time of a Keras optimizer in a step."""

    name: str = Field(description="class name")
    seconds: float = Field(description="to apply the gradients of one batch")
    rows: int = Field(description="rows of all embeddings; 0 if there is none")
    rows_read: int = Field(description="rows of embeddings that a batch reads")


class MetricsTime(Record):
    """The time of the metrics that a Keras model was compiled with, in a step."""

    names: list[str] = Field(description="names of the metrics")
    seconds: float = Field(description="to update them with one batch")


class InLines(Record):
    """Something that lines of the program do."""

    lines: list[int] = Field(description="lines of the program's own file that do most of it")
    elsewhere: dict[str, list[int]] = Field(
        default_factory=dict, description="the same for other files of a script, or cells of a notebook, by name"
    )


class HostReads(InLines):
    """Numbers that Python reads back from tensors."""

    per_step: float = Field(description="reads per step")


class WholeDataCall(Record):
    """Calls of a method of a Keras model that is meant for whole data sets, in a program's own steps."""

    called: str = Field(description="the method: predict, evaluate or fit")
    per_step: float = Field(description="calls per step")
    rows: int | None = Field(None, description="rows of the latest call; null if it got no arrays")


class LongSteps(InLines):
    """Steps of a script's own loop that are rare and take much longer, such as those that save a checkpoint."""

    count: int = Field(description="how many were seen")
    seconds: float = Field(description="mean time by which they are longer than the median step")
    every: float = Field(description="mean number of steps from one to the next")
    median: float = Field(description="median time of all steps")


class OutsideWork(InLines):
    """What a script does before its first step or after its last one, in the process that found its steps."""

    seconds: float = Field(description="time that it took in that process")
    complete: bool = Field(True, description="whether it ended there; if not, it takes longer")
    call: str | None = Field(
        None, description="method of a Keras model that takes most of it: predict, evaluate or fit"
    )


class EagerOperations(InLines):
    """Operations that run one by one from Python, not in a graph."""

    per_step: float = Field(description="operations per step")
    operations: list[str] = Field(description="types, the most frequent first")


class PersistentTapes(InLines):
    """Persistent gradient tapes that a step makes, each for at most one gradient."""

    per_step: float = Field(description="tapes per step")
    several_gradients: bool = Field(description="whether other persistent tapes of a step compute several gradients")


CallKind = Literal["graph", "eager", "keras", "tracing", "building", "read", "input", "summary", "python", "other"]
"""What a line of the program spends its time on.

graph: a `tf.function` or a session. eager: operations that run one by one. keras: a method of Keras that runs its own
steps. tracing: tracing graphs. building: building layers, models, optimizers or functions. read: reading numbers from a
tensor. input: getting a batch. summary: writing summaries. python: Python without TensorFlow. other: none of these.
"""


WHOLE_DATA_CALLS = ("predict", "evaluate", "fit")
"""Methods of a Keras model for whole data sets. Each call prepares an input pipeline and reads back what it returns."""

KERAS_CALLS = (*WHOLE_DATA_CALLS, "train_on_batch", "predict_on_batch", "test_on_batch")
"""Methods of a Keras model that run steps of their own."""


class OwnTimePart(Record):
    """The time of one line of the program's own steps, in one kind of call."""

    line: int = Field(description="line of the program; 0 if the time passed outside it")
    file: str = Field("", description="name of another file of a script, or a cell; empty for the program's own file")
    called: str = Field(description="name of the function that the line calls; empty if it calls none")
    kind: CallKind = Field(description="what the call does")
    share: float = Field(description="of the program's own step")


class OwnTime(Record):
    """Where the host's time in the program's own steps goes, by samples of the stack."""

    steps: int = Field(description="number of steps that were sampled")
    step_seconds: float = Field(description="of a step while it was sampled")
    parts: list[OwnTimePart] = Field(description="the largest first; small ones are left out")

    def share(self, *kinds: CallKind) -> float:
        """Return the share of the step that calls of these kinds take."""
        return sum(part.share for part in self.parts if part.kind in kinds)


class GraphOperations(InLines):
    """Operations of one kind in the graphs that were traced."""

    operations: int = Field(description="number of them")


class Float64(GraphOperations):
    """Operations that compute in float64."""

    arguments: int = Field(description="arguments of graphs that arrive as float64")


ReasonKind = Literal["value", "shape", "dtype", "object", "structure", "new function"]
"""What differs between two traces: the value, shape or dtype of an argument, and so on."""


class TraceReason(Record):
    """Why TensorFlow traced a function again: the first argument that differs from those of its trace before."""

    kind: ReasonKind = Field(
        description="what differs; `structure`: an argument is missing or of another kind; `new function`: nothing, so "
        "each trace is of a new `tf.function`"
    )
    argument: str = Field("", description="name of the argument, or of a value in it; empty for a new function")
    before: str = Field("", description="its value, shape or dtype in the trace before; empty if it has none")
    after: str = Field("", description="the same in this trace")


class Retraced(Record):
    """A function of the program, or a call in it, that made TensorFlow trace graphs more than a few times."""

    function: str = Field(description="its name; of a call, the name of the function that is called, such as predict")
    file: str = Field(description="its file")
    line: int = Field(description="its first line; of a call, the line of the call")
    is_call: bool = Field(False, description="whether it is a call, in which TensorFlow traced functions of its own")
    of_pipeline: bool = Field(False, description="whether most of these functions belong to an input pipeline")
    count: int = Field(description="how often it was traced")
    reason: TraceReason | None = Field(None, description="why it is usually traced again; null for a call")


class Recompiled(Record):
    """A function, or the train step of `fit`, that XLA compiles again for each new shape of its arguments."""

    function: str = Field("", description="name of the function; empty for the train step of fit")
    file: str = Field("", description="its file")
    line: int = Field(0, description="its line")
    shapes: int = Field(description="new shapes that were seen")
    calls: int = Field(description="calls, or batches, in which they were seen")
    seconds: float = Field(description="time that compiling adds to a call, mean over these calls")
    before: str = Field("", description="shape of an argument that changes")
    after: str = Field("", description="the same in a later call")


class Facts(Record):
    """Everything that a worker reads from its run besides times."""

    jit_compile: bool | None = Field(None, description="whether XLA compiled the steps")
    run_eagerly: bool | None = Field(None, description="whether the Keras model ran eagerly")
    functions_eager: bool | None = Field(
        None, description="whether each `tf.function` ran eagerly, as after `tf.config.run_functions_eagerly(True)`"
    )
    dtype_policy: str | None = Field(
        None, description="Keras' global dtype policy, if a script sets another one than the run asks for"
    )
    traces: int | None = Field(None, description="how often TensorFlow traced Python into a graph")
    trace_seconds: float | None = Field(None, description="time that these traces took")
    flops_per_step: float | None = Field(
        None, description="floating-point operations that TensorFlow counts in the unoptimized graph of a step"
    )
    flops_formula: float | None = Field(
        None, description="floating-point operations of a step by the workload's formula"
    )
    bytes_per_step: float | None = Field(
        None, description="least bytes of a step: arguments, results and variables once, changed variables twice"
    )
    products: Products | None = None
    gradient_bytes: int | None = Field(None, description="bytes of the gradients of all trainable variables")
    total_steps: int | None = Field(None, description="steps of the whole training")
    stopped_after: int | None = Field(
        None, description="steps after which the program's own training stopped by itself, before it ran as planned"
    )
    epoch: Epoch | None = None
    batch: int | None = Field(
        None, description="examples of a step, if a script's call of fit divides arrays into batches"
    )
    validated_epochs: float | None = Field(
        None, description="share of the epochs of fit after which fit runs the validation, from 0 to 1"
    )
    asides: Asides | None = None
    long_steps: LongSteps | None = None
    before_steps: OutsideWork | None = Field(None, description="work of a script before its first step")
    between_fits: OutsideWork | None = Field(
        None, description="work of a script between two calls of fit, with its mean time"
    )
    after_steps: OutsideWork | None = Field(
        None, description="work of a script after its last step; null if its last step was not seen"
    )
    ended_epochs: int | None = Field(None, description="epochs that ended in the timed part")
    steps_run: int | None = Field(None, description="steps in timed blocks, warm-up included")
    steps_issued: int | None = Field(None, description="all steps that the worker ran until it counted its traces")
    restarts: int | None = Field(None, description="how often the program ended and was started again")
    iterator_ends: list[IteratorEnd] | None = Field(
        None, description="one for each pair of short epochs; empty if one iterator serves all epochs"
    )
    fit: FitCall | None = None
    callback_times: CallbackTimes | None = None
    pipeline: list[PipelineStage] | None = Field(None, description="stages of the program's pipeline, its source first")
    pipeline_reachable: bool | None = Field(None, description="whether a what-if can change the pipeline")
    host_reads: HostReads | None = None
    whole_data_calls: list[WholeDataCall] | None = Field(
        None, description="calls of `predict`, `evaluate` and `fit` in the program's own step"
    )
    persistent_tapes: PersistentTapes | None = None
    eager: EagerOperations | None = None
    own_time: OwnTime | None = None
    optimizer: OptimizerTime | None = None
    metrics: MetricsTime | None = None
    float64: Float64 | None = None
    int32: GraphOperations | None = Field(None, description="int32 arithmetic, which TensorFlow keeps on the host")
    python: GraphOperations | None = Field(None, description="calls back into Python from a graph")
    script_settings: list[str] | None = Field(
        None, description="settings that a script made itself, where they differ from what the run asked for"
    )
    replay_obstacle: str | None = Field(
        None, description="why devbench cannot run the steps of a script in its own loops; null if it can"
    )
    eager_step: str | None = Field(
        None, description="name of the function of a script that is its eager step; null if there is none"
    )
    retracing_share: float | None = Field(
        None,
        description="share of the program's own step that new graphs take: calls that trace one, minus calls of known "
        "graphs",
    )
    recompiled: Recompiled | None = None
    retraced: list[Retraced] | None = Field(None, description="empty if nothing was traced more than a few times")

    def completed(self, other: Facts) -> Facts:
        """Return these facts. A fact that was not read here is taken from `other`."""
        known = {name: value for name, value in self if value is not None}
        return other.model_copy(update=known)
