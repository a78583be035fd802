"""Applies the what-ifs that a spec names to the program. Worker's side only."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from bench import whatif
from bench.errors import NotApplicable
from bench.worker.examples import has_batch_size


class WhatIfs:
    """Applies what-ifs, and records which of them were applied.

    Args:
        tf: TensorFlow.
        names: the what-ifs to apply, of `bench.whatif.program_changes()`.
        xla: whether XLA compiles Keras models. None if the program decides.
        batch: the examples per step of a script's `fit`. None if the script decides.
    """

    def __init__(self, tf: Any, names: Sequence[str], xla: bool | None = None, batch: int | None = None) -> None:
        self._tf = tf
        self._xla = xla
        self._batch = batch
        self._has_batch = False
        self._modules = {name: whatif.load(name) for name in whatif.program_changes() if name in names}
        self._applied: set[str] = set()
        for name, module in self._modules.items():
            if hasattr(module, "change_tensorflow"):
                module.change_tensorflow(tf, functools.partial(self._applied.add, name))

    def dataset(self, dataset: Any) -> Any:
        """Return the input pipeline, changed by the what-ifs."""
        for name, module in self._modules.items():
            if hasattr(module, "change_dataset"):
                dataset = module.change_dataset(self._tf, dataset)
                self._applied.add(name)
        return dataset

    def fit(self, model: Any, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments of a call of `fit`, by name, changed by the what-ifs. The model is changed in place."""
        self.pin_xla(model)
        if self._batch is not None and has_batch_size(self._tf, arguments.get("x")):
            arguments = {**arguments, "batch_size": self._batch}
            self._has_batch = True
        if self._modules and isinstance(arguments.get("x"), self._tf.data.Dataset):
            arguments = {**arguments, "x": self.dataset(arguments["x"])}
        for name, module in self._modules.items():
            if hasattr(module, "change_fit"):
                new_arguments = module.change_fit(self._tf, model, arguments)
                if new_arguments is not None:
                    arguments = new_arguments
                    self._applied.add(name)
        return arguments

    def step(self, function: Any) -> Any:
        """Return the eager step of a script, a function, changed by the what-ifs."""
        for name, module in self._modules.items():
            if hasattr(module, "change_step"):
                function = module.change_step(self._tf, function)
                self._applied.add(name)
        return function

    def pin_xla(self, model: Any) -> None:
        """Set XLA of a compiled model as the spec says. Keras must not have made its train function yet."""
        if self._xla is None:
            return
        if hasattr(type(model), "jit_compile"):
            model.jit_compile = self._xla
        else:
            model._jit_compile = self._xla

    def check(self) -> None:
        """Check at the first step that the batch and every what-if were applied.

        Raises:
            NotApplicable: one of them had nothing to change.
        """
        if self._batch is not None and not self._has_batch:
            raise NotApplicable(
                "--param batch does not apply to this script, because its steps are not those of a fit with arrays",
                "Change the batch in the script, or pass it as an argument of the script.",
            )
        unapplied = [name for name in self._modules if name not in self._applied]
        if unapplied:
            raise NotApplicable(
                f"--change {','.join(unapplied)} does not apply to this program and loop",
                "A pipeline can be changed if data is a tf.data.Dataset, and fit if it trains the model. A step "
                "can be changed if it is a function of a script that runs eagerly, and a tape if it is persistent and "
                "runs eagerly.",
            )
