"""The workload protocol: what a program offers, so that devbench can run it on any device, in any loop.

A workload is one Python file: a built-in of this folder, or a user's own (`devbench run ./mine.py`), on
the same footing. It holds a docstring whose first line says what it is, and some of the names below.
It holds no timing code. It may import TensorFlow at its top or inside its functions; built-ins do it
inside, so that listing them is quick.

`class Params(pydantic.BaseModel)`
    Every number of the program, with its default and, in `Field(description=…)`, its unit. Two names mean
    something to devbench: `batch` (examples a step) and `epochs`. Optional.

The functions take any of these arguments, by name, in any order:

    p        the Params                     ctx     the `Context` below
    model    what `model` returned          data    what `data` returned
    inputs   what `inputs` returned

`data(...)`
    The examples: a tuple of arrays whose first axis is the example (devbench batches them by `p.batch`), or
    a `tf.data.Dataset` of batches. Called once. Real data comes from `ctx.load("cifar10")`.
`inputs(...)`
    For work that has no examples: a tuple of arrays, the arguments of one step. Called several times, for
    inputs that differ, so draw them from `ctx.rng`. Offer this or `data`, not both.
`model(...)`
    A Keras model; compiled if it is to be trained by Keras.
`step(...)`
    Returns a function of one batch, `f(*batch) -> tensor`, pure TensorFlow, that devbench may put into a
    `tf.function`: a training step returns its loss, an inference step its output. Not needed where the
    model is compiled: the step is then Keras' own `train_step`.
`as_written(...)`
    The program as its author drives it. Either an endless (or finite) generator that does one step and
    yields something that depends on all of it (a tensor, an array, a Keras model), or a plain function
    that calls `model.fit` somewhere; devbench sees the steps of any `fit`. Whatever such a function
    returns is ignored, but for a Keras `History`, whose last values `--full` reports. Without it, a
    compiled model is run by `fit`, and otherwise `step`.
`evaluate(...)`
    Only for `--full`, after the training: returns a dict of floats, such as {"test_accuracy": 0.97}.
`probes(...)`
    For things to be timed one by one instead of a step: a dict of name to `Probe`.

And these constants, all optional:

`DATA = "cifar10"`       the data set that `data` loads, so that it can be looked for before anything runs
`CASES = {"small": {"rows": 1000}, "graph": {"op": "add", "loop": "step"}}`
                         presets of params (and, by the key `loop`, of the loop); all are run, taking turns,
                         unless `--case` or a `--param` that they set chooses
`NOTES = ("…",)`         what a reader of the result must know, such as what the source article gets wrong;
                         or a function `notes(p)` that returns them
`NOT_ON = {"cpu": "…"}`  backends where the work makes no sense, with the reason
`NOT_LOOPS = {"fused": "…"}`  loops that make no sense although they could be built, with the reason
`NOT_DTYPES = {"mixed_float16": "…"}`  dtype policies that change nothing of the work, with the reason; float64 makes
                         `inputs` float64
`ANSWER = "changed"`      where the first steps' losses need not agree between devices, such as with random augmentation

`total_steps(p) -> int`  steps of the whole program, for the projection; where `data` gives examples it is
                         epochs times the batches of an epoch, the last partial one included
`flops(p) -> float`      floating-point operations of one step by formula, to check TensorFlow's own count
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

KERAS_XLA = (
    "Keras 3 turns XLA on by itself wherever the machine has an accelerator, for its runs on the CPU too, which no "
    "article says. devbench hides accelerators from a run on the CPU; `XLA` in the table says what became of it."
)
"""A note of the workloads that Keras trains."""


@dataclass(frozen=True)
class Probe:
    """One small thing that is timed by itself.

    Args:
        run: does it once and returns a tensor that depends on all of it.
        bytes: how many bytes it moves, if that is what it is for.
        floor: name of the probe whose time is part of this one's and is subtracted from it.
    """

    run: Callable[[], Any]
    bytes: int | None = None
    floor: str | None = None


@dataclass
class Context:
    """What a workload may need to know of its run.

    Attributes:
        rng: NumPy generator seeded by the spec; draw all random data from it.
        device: TensorFlow's name of the device under test, such as "/device:GPU:0".
        backend: "cpu", "cuda" or "directml".
        dtype: the dtype policy, such as "float32" or "mixed_float16".
        seed: the spec's seed.
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
        """The named data set, as `keras.datasets` shapes it: ((x_train, y_train), (x_test, y_test))."""
        return self._load(name)
