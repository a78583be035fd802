"""Single changes to a program that devbench can make from outside: to its `tf.data` pipeline, and to its call of `fit`.

Each is a name for `--change`, so that what an explanation found can be run again. Worker's side only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bench.errors import NotApplicable

STEPS_PER_EXECUTION = 32


class Changes:
    """Makes the changes that a spec names, and knows which of them found something to change.

    Args:
        tf: TensorFlow.
        names: of `bench.model.spec.CHANGES`.
        xla: whether Keras is to compile by XLA; none where the program decides.
    """

    def __init__(self, tf: Any, names: Sequence[str], xla: bool | None = None) -> None:
        self._tf = tf
        self._xla = xla
        self._names = names
        self._made: set[str] = set()

    def dataset(self, dataset: Any) -> Any:
        """The pipeline with its changes, in the order in which they make sense.

        `parallel-map` asks for TensorFlow's own rewriting, which leaves a map that calls Python as it is. `cache` keeps
        what the whole pipeline gives, so a shuffle in it is drawn once only.
        """
        tf = self._tf
        if self._asked("parallel-map"):
            options = tf.data.Options()
            options.experimental_optimization.map_parallelization = True
            dataset = dataset.with_options(options)
        if self._asked("cache"):
            dataset = dataset.cache()
        if self._asked("prefetch"):
            dataset = dataset.prefetch(tf.data.AUTOTUNE)
        return dataset

    def fit(self, model: Any, kwargs: dict[str, Any]) -> dict[str, Any]:
        """Arguments of a call of `fit`, by name, with their changes; those of the model are made in place."""
        self.pin(model)
        if not self._names:
            return kwargs
        if isinstance(kwargs.get("x"), self._tf.data.Dataset):
            kwargs = {**kwargs, "x": self.dataset(kwargs["x"])}
        if self._asked("without-callbacks"):
            kwargs = {**kwargs, "callbacks": None, "verbose": 0}
        if "without-metrics" in self._names and metrics_of(model):
            self._asked("without-metrics")
            without_metrics(model)
        if self._asked("steps-per-execution"):
            if not hasattr(model, "_configure_steps_per_execution"):
                model.steps_per_execution = STEPS_PER_EXECUTION
            elif int(model._steps_per_execution.numpy()) != STEPS_PER_EXECUTION:
                # Keras 2.10 makes a variable anew, which a train function that was traced before does not see.
                model._configure_steps_per_execution(STEPS_PER_EXECUTION)
        if self._asked("graph"):
            model.run_eagerly = False
        return kwargs

    def pin(self, model: Any) -> None:
        """Decides on XLA for a compiled model, whoever made it, before Keras makes its train function."""
        if self._xla is None:
            return
        if hasattr(type(model), "jit_compile"):
            model.jit_compile = self._xla
        else:
            model._jit_compile = self._xla

    def check(self) -> None:
        """At the first step all changes must have been made.

        Raises:
            NotApplicable: one found nothing to change.
        """
        idle = [name for name in self._names if name not in self._made]
        if idle:
            raise NotApplicable(
                f"--change {','.join(idle)} finds nothing to change in this program and loop",
                "Pipelines are changed where data is a tf.data.Dataset, fit where a model is trained by it.",
            )

    def _asked(self, name: str) -> bool:
        if name in self._names:
            self._made.add(name)
        return name in self._names


def metrics_of(model: Any) -> Any:
    """The metrics that a model was compiled with, as its user gave them; falsy where there are none. Keras 3, 2.10."""
    compiled = model._compile_metrics if hasattr(model, "_compile_metrics") else model.compiled_metrics
    if compiled is None:
        return None
    return compiled._user_metrics or compiled._user_weighted_metrics


def without_metrics(model: Any) -> None:
    """Takes its metrics from a compiled model, but for the loss; a train function that reckons them is made anew."""
    if hasattr(model, "_compile_metrics"):
        model._compile_metrics = None
    else:
        model.compiled_metrics = type(model.compiled_metrics)(output_names=model.output_names)
    model.train_function = None
