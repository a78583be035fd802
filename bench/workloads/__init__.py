"""The workload protocol: how to write a program so that devbench can run it on any device and in any loop.

A workload is one Python file. The built-ins in this folder and your own files (`devbench run ./mine.py`) work in the
same way. The file contains no timing code. It has a docstring, whose first line says what the program does, and defines
some of the names below. devbench ignores all other names. examples/mine.py is a complete example.

A file needs at least one of these:

- `as_written`: the program with its own training loop
- `data` and `model`: a compiled model, which Keras trains
- `step`: one step, fed by `data` or `inputs`
- `probes`: several small operations, each timed separately

The more of them a file defines, the more loops devbench can run, and the more an explanation can tell.

The file may import TensorFlow at its top or inside functions. The built-ins import it inside functions, so that
`devbench list` is fast.


PARAMETERS

`class Params(pydantic.BaseModel)`
    All numbers and choices of the program, each with a default. `Field(description=…)` explains a parameter and names
    its unit. `--param NAME=VALUE` sets it. devbench itself reads two parameters: `batch`, the examples per step, and
    `epochs`. Optional.


FUNCTIONS

A function takes any of these arguments, by name and in any order. `data`, `inputs` and `model` take `p` and `ctx`;
`model` also takes `data`. `notes`, `total_steps` and `flops` take only `p`.

    p        the `Params`
    ctx      the `Context`, which is described below
    model    the result of `model`
    data     the result of `data`
    inputs   the result of `inputs`

`data(…)`
    Return the examples in one of three forms: a tuple of arrays whose first axis is the example, which devbench divides
    into batches of `p.batch`; a `tf.data.Dataset` of batches; or a `keras.utils.PyDataset` (before Keras 3: a
    `Sequence`). Inputs may be nested, as in `({"user": u, "item": i}, y)`. devbench calls it once per process.
    `ctx.load("cifar10")` returns a real data set. If only `as_written` uses the data, they may have any form.
`inputs(…)`
    Return the arguments of one step as a tuple of arrays, for work that has no examples. devbench calls it several
    times, so draw different values from `ctx.rng`. Define either `data` or `inputs`, not both.
`model(…)`
    Return a Keras model. Compile it if Keras trains it.
`step(…)`
    Return a function of one batch, `f(*batch) -> tensor`. A training step returns its loss, an inference step its
    output. The function contains only TensorFlow operations, because devbench may wrap it in a `tf.function`. If the
    model is compiled, the default is the model's `train_step`. Its loss is `loss` in the dict that it returns, or the
    sum of everything in the dict if there is no `loss`, as of a GAN with two losses.
`as_written(…)`
    Run the program as its author does, in one of two forms:
    - A generator, which may be endless. It runs one step and then yields a value that depends on the whole step: a
      tensor, an array or a Keras model.
    - A plain function that calls `model.fit`. devbench observes the steps of each `fit`. The return value is ignored,
      except that `--full` reports the last values of a Keras `History`.
    Default: Keras' `fit` if the model is compiled, else `step`.
`evaluate(…)`
    Return a dict of floats, such as {"test_accuracy": 0.97}. Only `--full` calls it, after the training.
`probes(…)`
    Return a dict of names and `Probe` objects. devbench times each probe instead of a step.
`notes(p)`
    Return a list of notes that depend on the parameters. See `NOTES`.
`total_steps(p)`
    Return the number of steps of the whole training, for the projection. Default: epochs times batches per epoch,
    including the partial batch, if `data` returns examples.
`flops(p)`
    Return the floating-point operations of one step by formula. devbench compares them with TensorFlow's count.


CONSTANTS

All of them are optional. Where a value is a dict, its values are reasons, which devbench prints.

`DATA = "cifar10"`
    The data set that `data` loads. devbench checks that it is there before the run starts.
`CASES = {"small": {"rows": 1000}, "graph": {"op": "add", "loop": "step"}}`
    Named sets of parameters. The key `loop` also sets the loop. A run measures all cases, interleaved, unless
    `--case` names some of them. `--param NAME=VALUE` leaves out the cases that set NAME to another value.
`NOTES = ("…",)`
    What a reader of the result needs to know, such as an error in the program's source. devbench prints them with the
    result.
`NOT_ON = {"cpu": "…"}`
    Backends on which the workload makes no sense.
`NOT_LOOPS = {"fused": "…"}`
    Loops that would run but make no sense.
`NOT_DTYPES = {"mixed_float16": "…"}`
    Dtype policies that do not affect the workload.
`SAME_ANSWER = False`
    The first losses may differ between devices, for example because of random augmentation. This turns the same-answer
    check off. Default: `True`.

With `--dtype float64`, devbench converts float32 arrays from `inputs` to float64.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

KERAS_XLA = (
    "On a machine with an accelerator, Keras 3 turns XLA on by default, even for runs on the CPU. The article does not "
    "mention this. devbench hides accelerators from runs on the CPU. The table shows under `XLA` whether it was on."
)
"""A note for workloads that Keras trains."""


@dataclass(frozen=True)
class Probe:
    """One small operation that is timed by itself.

    Args:
        run: performs the operation once and returns a tensor that depends on all of it.
        bytes: number of bytes that it moves, if it measures a bandwidth.
        floor: name of the probe that measures the overhead of this one. Its time is subtracted.
    """

    run: Callable[[], Any]
    bytes: int | None = None
    floor: str | None = None


@dataclass
class Context:
    """The run that a workload is part of.

    Attributes:
        rng: NumPy generator, seeded by the spec. Draw all random data from it.
        device: TensorFlow's name of the device under test, such as "/device:GPU:0".
        backend: name of the backend, such as "cpu".
        dtype: dtype policy, such as "float32" or "mixed_float16".
        seed: seed of the spec.
    """

    rng: Any
    device: str
    backend: str
    dtype: str
    seed: int
    _load: Callable[[str], Any] = field(repr=False)

    @property
    def on_cpu(self) -> bool:
        """Whether the device under test is the host's CPU."""
        return "CPU" in self.device

    def load(self, name: str) -> Any:
        """Return a data set as `keras.datasets` does: ((x_train, y_train), (x_test, y_test))."""
        return self._load(name)
