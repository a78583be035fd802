"""Attributes of classes that are replaced for a while."""

from __future__ import annotations

import pytest

from bench.worker.patches import patched

pytestmark = pytest.mark.once


class Base:
    def fit(self) -> str:
        return "base"


class Model(Base):
    def predict(self) -> str:
        return "model"


def fail(model: Model) -> str:
    raise ValueError("in a step")


def test_a_method_is_replaced_until_the_context_ends_even_by_an_error() -> None:
    own = vars(Model)["predict"]
    with pytest.raises(ValueError, match="in a step"), patched(Model, predict=fail):
        Model().predict()
    assert vars(Model)["predict"] is own


def test_a_method_that_a_class_inherits_is_inherited_again_afterwards() -> None:
    with patched(Model, fit=lambda model: "observed"):
        assert Model().fit() == "observed"
        assert Base().fit() == "base"
    assert "fit" not in vars(Model)
    assert Model().fit() == "base"
