"""The package tf_keras, which may be the Keras of TensorFlow or another one beside it."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from bench.machine import installed
from bench.model.recognition import StepKind, StepSource
from bench.worker.script import fits

pytestmark = pytest.mark.once

LEGACY = SimpleNamespace(Model=object(), __version__="2.21.0")


def tensorflow(model: object, **attributes: Any) -> Any:
    """Return a TensorFlow whose Keras has a model class."""
    return SimpleNamespace(keras=SimpleNamespace(Model=model, **attributes))


def source(kind: StepKind, name: str) -> StepSource:
    """Return a loop that was recognized."""
    return StepSource(kind=kind, name=name, file="train.py", line=1, token="", steps=9)


INFERS = source("function", "infer")


def test_another_keras_is_one_that_the_script_imports_beside_that_of_tensorflow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delitem(sys.modules, "tf_keras", raising=False)
    assert fits.other_keras(tensorflow(object()), INFERS) == ""
    monkeypatch.setitem(sys.modules, "tf_keras", LEGACY)
    assert fits.other_keras(tensorflow(object()), INFERS) == fits.OTHER_KERAS
    assert fits.other_keras(tensorflow(object()), source("fit", "fit")) == ""
    assert fits.other_keras(tensorflow(LEGACY.Model), INFERS) == ""


def test_the_train_function_of_a_private_keras_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "tf_keras", raising=False)
    tf = tensorflow(object())
    assert fits.other_keras(tf, source("function", "train_function")) == fits.PRIVATE_KERAS
    assert fits.other_keras(tf, source("updates", "train_function")) == ""  # the script calls that of tf.keras itself


def test_the_version_of_tf_keras_is_known_although_its_module_in_tensorflow_has_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "tf_keras", LEGACY)
    assert installed.keras(tensorflow(LEGACY.Model)) == "2.21.0"
    assert installed.keras(tensorflow(object(), __version__="3.15.0")) == "3.15.0"
