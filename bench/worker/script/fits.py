"""Observes Keras: its calls of `fit` and of its methods for one batch. The hook observes the steps in `fit`."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

from bench.model.recognition import TRAINING, StepKind, StepSource
from bench.worker.script.calls import Observation
from bench.worker.script.numbering import Numbering

METHODS: dict[str, StepKind] = {
    "fit": "single-fit",
    "train_on_batch": "train-on-batch",
    "test_on_batch": "evaluate",
    "predict_on_batch": "predict",
}
"""Methods of a model, and the kind of step that a call of each is. A call of `fit` is one only if it has one step."""


OTHER_KERAS = (
    "tf_keras is imported. If the script trains with it, set the environment variable TF_USE_LEGACY_KERAS to 1, which "
    "makes tf_keras the Keras of TensorFlow. devbench recognizes its fit only then."
)


PRIVATE_KERAS = (
    "The script trains with a Keras that is not tf.keras, such as tensorflow.python.keras, which is private. devbench "
    "sees only the function that its fit calls. Import from tensorflow.keras instead."
)


def other_keras(tf: Any, chosen: StepSource) -> str:
    """Return a sentence about a Keras other than `tf.keras`, if the script seems to train with it. Else empty.

    Args:
        tf: TensorFlow.
        chosen: the loop that was recognized. A function of such a Keras does not show that it trains.
    """
    if chosen.kind not in ("function", "gradients"):
        return ""
    other = sys.modules.get("tf_keras")
    if other is not None and other.Model is not tf.keras.Model:
        return OTHER_KERAS
    return PRIVATE_KERAS if chosen.name == "train_function" else ""


def observe(seen: Observation) -> None:
    """Report each outermost call of these methods as a step. What Keras calls within `fit` does not count.

    Install it after the hook into `fit`, so that it is the outermost wrapper.
    """
    model = seen.tf.keras.Model
    for name in METHODS:
        setattr(model, name, _nested(seen, getattr(model, name), name, Numbering()))


def _nested(seen: Observation, original: Callable[..., Any], name: str, numbering: Numbering) -> Callable[..., Any]:
    kind = METHODS[name]

    @functools.wraps(original)
    def devbench_call(model: Any, *args: Any, **kwargs: Any) -> Any:
        is_reported = not seen.running.depth and (seen.single_fits or kind != "single-fit")
        if is_reported:
            seen.sink.starting(kind)
        seen.running.depth += 1
        try:
            returned = original(model, *args, **kwargs)
        finally:
            seen.running.depth -= 1
        if is_reported:
            number = numbering.known(model)
            if number is None:
                number = numbering.add(model, seen.call(kind, name))
            trained = model if kind in TRAINING else None
            value = getattr(returned, "history", returned)  # what `fit` returns has the losses there
            seen.sink.step(seen.call(kind, name, number), 1, value, trained)
        return returned

    return devbench_call
