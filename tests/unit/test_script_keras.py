"""The package tf_keras, which may be the Keras of TensorFlow or another one beside it."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from bench.machine import installed
from bench.worker.script import fits

pytestmark = pytest.mark.once

LEGACY = SimpleNamespace(Model=object(), __version__="2.21.0")


def tensorflow(model: object, **attributes: Any) -> Any:
    """Return a TensorFlow whose Keras has a model class."""
    return SimpleNamespace(keras=SimpleNamespace(Model=model, **attributes))


def test_another_keras_is_one_that_the_script_imports_beside_that_of_tensorflow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delitem(sys.modules, "tf_keras", raising=False)
    assert not fits.uses_other_keras(tensorflow(object()))
    monkeypatch.setitem(sys.modules, "tf_keras", LEGACY)
    assert fits.uses_other_keras(tensorflow(object()))
    assert not fits.uses_other_keras(tensorflow(LEGACY.Model))


def test_the_version_of_tf_keras_is_known_although_its_module_in_tensorflow_has_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "tf_keras", LEGACY)
    assert installed.keras(tensorflow(LEGACY.Model)) == "2.21.0"
    assert installed.keras(tensorflow(object(), __version__="3.15.0")) == "3.15.0"
