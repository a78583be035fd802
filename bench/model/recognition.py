"""How the steps of a script were recognized, and which other loops the script has.

Before the trials, one process runs the script and counts the steps of each loop (`bench.worker.script.scout`). It
chooses the loop that the trials time.
"""

from __future__ import annotations

from typing import Literal, get_args

from pydantic import Field

from bench.model.record import Record

StepKind = Literal[
    "fit", "single-fit", "train-on-batch", "updates", "session-training", "gradients", "predict", "evaluate",
    "function", "model", "session",
]  # fmt: skip
"""What a step is.

fit: a call of the train function of Keras' `fit`. single-fit: a call of `fit`, if each call has one step.
train-on-batch: a call of `train_on_batch`. updates: the work between two updates by the same optimizer.
session-training: a `Session.run` that updates variables. gradients: the work between two eager tapes that compute
gradients, if nothing else trains. The others train nothing: a batch of `predict` or `evaluate`, an outermost call of a
`tf.function` or of a Keras model, and any other `Session.run`.
"""

TRAINING: tuple[StepKind, ...] = get_args(StepKind)[:6]
"""The kinds that train."""

WORDS: dict[StepKind, tuple[str, str]] = {
    "fit": ("calls of fit", "step of Keras' fit"),
    "single-fit": ("calls of fit with one step each", "call of Keras' fit with one step"),
    "train-on-batch": ("calls of train_on_batch", "call of train_on_batch"),
    "updates": ("optimizer updates", "work between two updates of the optimizer"),
    "session-training": ("calls of Session.run that train", "call of Session.run that trains"),
    "gradients": ("computed gradients", "work between two gradients of eager tapes"),
    "predict": ("batches of predict", "batch of predict"),
    "evaluate": ("batches of evaluate", "batch of evaluate"),
    "function": ("calls of a tf.function", "outermost call of a tf.function"),
    "model": ("calls of a model", "outermost call of a model"),
    "session": ("calls of Session.run", "call of Session.run"),
}
"""Each kind in words: several of them, and what one step is."""


class StepSource(Record):
    """A loop of a script whose steps can be counted."""

    number: int = Field(1, description="its number for --watch, from 1, in the order in which the loops begin")
    kind: StepKind = Field(description="what a step is")
    name: str = Field(description="what is called, such as fit, or the name of a tf.function or an optimizer")
    file: str = Field(description="the script's file that calls it; empty if no line of the script does")
    line: int = Field(description="line of the call")
    token: str = Field(description="tells the steps of this loop from others in every process of the script")
    group: list[str] = Field(default_factory=list, description="tokens of the other lines that make a step with it")
    steps: int = Field(description="steps that were seen")
    planned: int | None = Field(None, description="steps that the calls plan; null if that is not known")
    calls: int = Field(0, description="calls that were seen")
    steps_per_call: int | None = Field(1, description="steps in each call; null if it varies")

    @property
    def trains(self) -> bool:
        """Whether its steps train."""
        return self.kind in TRAINING

    @property
    def place(self) -> str:
        """The call in words, such as `fit in train.py, line 31`."""
        return f"{self.name} in {self.file}, line {self.line}" if self.file else self.name

    @property
    def most_steps(self) -> int:
        """The steps that it has if devbench does not stop it, as far as known."""
        return max(self.steps, self.planned or 0)


class Recognition(Record):
    """How the steps of a script were recognized."""

    chosen: StepSource = Field(description="the loop whose steps are timed")
    others: list[StepSource] = Field(default_factory=list, description="other loops of the script, in their order")
    ended: bool = Field(description="whether the script ended by itself; if not, later loops were not seen")
    seconds: float = Field(description="how long the script ran until it ended or enough was known")
    variables: list[str] = Field(
        default_factory=list,
        description="environment variables that it set before TensorFlow, which reads them, was imported",
    )

    @property
    def total_steps(self) -> int | None:
        """Steps of the whole training. None if that is not known."""
        return self.chosen.steps if self.ended else self.chosen.planned
