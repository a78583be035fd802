"""The what-if `on-batch`: Call `predict_on_batch`, `test_on_batch` and `train_on_batch` for single batches."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from bench.model.causes import NEW_DATASET
from bench.model.facts import WholeDataCall
from bench.model.step_parts import StepPart
from bench.whatif import Program

WORDS = "predict_on_batch, test_on_batch and train_on_batch for single batches"
CAUSE = NEW_DATASET
ACTS_ON: frozenset[StepPart] = frozenset({"own loop", "dispatch", "computing"})
ADVICE = (
    "For single batches, call predict_on_batch, test_on_batch and train_on_batch, or the model itself: model(x, "
    "training=False). Keep predict, evaluate and fit for whole data sets."
)
TESTS_SUSPECT = True

KERAS_BATCH = 32
"""The batch size of Keras' methods if a call names none."""


def applies(program: Program) -> bool:
    """Return whether steps call methods for whole data sets on single batches."""
    return has_single_batches(program.facts.whole_data_calls or [])


def has_single_batches(calls: Iterable[WholeDataCall]) -> bool:
    """Return whether one of these calls is of a single batch."""
    return any(call.rows is not None and call.rows <= KERAS_BATCH for call in calls)


def change_tensorflow(tf: Any, on_changed: Callable[[], None]) -> None:
    """Replace calls of `predict`, `evaluate` and `fit` whose data are one batch, and which ask for nothing else."""
    kind, is_nested = tf.keras.Model, False
    own_step = kind.train_step

    def replace(name: str, on_batch: Callable[..., Any], allowed: frozenset[str]) -> None:
        original = getattr(kind, name)

        @functools.wraps(original)
        def method(model: Any, x: Any = None, *args: Any, **kwargs: Any) -> Any:
            nonlocal is_nested
            positional = args[: len(POSITIONAL[name])]
            named = {**dict(zip(POSITIONAL[name], positional, strict=False)), **kwargs}
            asked = {key for key, value in named.items() if value is not None}
            is_single = is_one_batch(tf, x, named.get("batch_size"), named.get("epochs", 1))
            # A method of a subclass may call another one. A train step of its own may need the data in the form of fit.
            is_special = is_nested or (name == "fit" and type(model).train_step is not own_step)
            asks_more = len(args) > len(positional) or not asked <= allowed | IRRELEVANT
            if is_special or asks_more or not is_single:
                return original(model, x, *args, **kwargs)
            on_changed()
            is_nested = True
            try:
                return on_batch(model, x, **{key: named[key] for key in asked & allowed})
            finally:
                is_nested = False

        setattr(kind, name, method)

    def evaluate(model: Any, x: Any, **arguments: Any) -> Any:
        model.reset_metrics()
        return model.test_on_batch(x, **arguments)

    def fit(model: Any, x: Any, **arguments: Any) -> Any:
        model.reset_metrics()
        logs = model.train_on_batch(x, return_dict=True, **arguments)
        history = tf.keras.callbacks.History()
        history.set_model(model)
        history.epoch, history.history = [0], {name: [value] for name, value in logs.items()}
        return history

    replace("predict", lambda model, x: model.predict_on_batch(x), frozenset())
    replace("evaluate", evaluate, frozenset({"y", "sample_weight", "return_dict"}))
    replace("fit", fit, frozenset({"y", "sample_weight", "class_weight"}))


POSITIONAL = {
    "predict": ("batch_size", "verbose"),
    "evaluate": ("y", "batch_size", "verbose", "sample_weight"),
    "fit": ("y", "batch_size", "epochs", "verbose"),
}
"""The first parameters after `x`, which Keras 2 and Keras 3 have in the same order."""

IRRELEVANT = {"batch_size", "verbose", "epochs", "shuffle"}
"""Arguments that change nothing about one step on one batch."""


def is_one_batch(tf: Any, x: Any, batch_size: Any, epochs: Any) -> bool:
    """Return whether the inputs are arrays or tensors that fit into one batch, for one epoch."""
    if isinstance(x, tf.data.Dataset):
        return False
    shapes: list[Sequence[int]] = [getattr(leaf, "shape", ()) for leaf in tf.nest.flatten(x)]
    if epochs != 1 or not shapes or not all(map(len, shapes)):
        return False
    return all(shape[0] <= (batch_size or KERAS_BATCH) for shape in shapes)
