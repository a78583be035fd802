"""Calls a function once the script has imported TensorFlow. What the script sets before its import still counts."""

from __future__ import annotations

import importlib.abc
import importlib.util
import os
import sys
import time
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from bench.errors import NotApplicable

PACKAGES = ("tensorflow", "keras", "tf_keras")
"""Packages whose import is waited for. Keras 3 and tf_keras import TensorFlow, so the outermost must be complete."""

READ_AT_IMPORT = (
    "TF_", "TF2_", "XLA_", "CUDA", "NVIDIA_", "NCCL_", "OMP_", "GOMP_", "KMP_", "MKL_", "OPENBLAS_", "BLIS_", "DNNL_",
    "ONEDNN_", "KERAS_", "GRPC_", "MALLOC_", "PYTHONHASHSEED",
)  # fmt: skip
"""Beginnings of the names of variables that TensorFlow, or a library below it, reads when it is imported."""

HARMLESS = ("TF_CPP_MIN_LOG_LEVEL", "TF_CPP_MAX_VLOG_LEVEL", "KMP_DUPLICATE_LIB_OK", "KMP_INIT_AT_FORK", "KMP_WARNINGS")
"""Those that change neither the speed nor the results of TensorFlow."""


class TensorFlowImport(importlib.abc.MetaPathFinder):
    """Waits for the import of TensorFlow.

    Args:
        on_import: is called once with TensorFlow, before the script can use it.

    Attributes:
        seconds: time that the imports of `PACKAGES` took.
        variables: names of those environment variables that the script set before its import and that TensorFlow, or
            a library below it, reads when it is imported.
    """

    def __init__(self, on_import: Callable[[Any], None]) -> None:
        self.seconds = 0.0
        self.variables: list[str] = []
        self._unwatch_variables: Callable[[], None] = lambda: None
        self._on_import = on_import
        self._running: list[str] = []
        self._searching = False
        self._done = False

    def install(self) -> None:
        """Start to wait. If TensorFlow is imported already, call the function now."""
        if "tensorflow" in sys.modules:
            self._finish()
        else:
            self._watch_variables()
            sys.meta_path.insert(0, self)

    def _watch_variables(self) -> None:
        """Notice each write to the environment. `os.environ` writes through these two functions."""
        originals = os.putenv, os.unsetenv

        def put(name: Any, value: Any, /) -> None:
            self._note(name)
            originals[0](name, value)

        def unset(name: Any, /) -> None:
            self._note(name)
            originals[1](name)

        def unwatch() -> None:
            os.putenv, os.unsetenv = originals

        os.putenv, os.unsetenv = put, unset
        self._unwatch_variables = unwatch

    def _note(self, name: Any) -> None:
        text = os.fsdecode(name)
        if text.startswith(READ_AT_IMPORT) and text not in HARMLESS and text not in self.variables:
            self.variables.append(text)

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the module spec that the other finders find, if the module is one of `PACKAGES`."""
        if self._searching or self._done or name not in PACKAGES:
            return None
        self._searching = True
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self._searching = False
        if spec is None or spec.loader is None:
            return None
        execute = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            start, outermost = time.perf_counter(), not self._running
            if outermost:  # the import itself changes variables
                self._unwatch_variables()
            self._running.append(name)
            try:
                execute(module)
            finally:
                self._running.remove(name)
                if outermost:
                    self.seconds += time.perf_counter() - start
            if outermost and "tensorflow" in sys.modules and not self._done:
                self._finish()

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec

    def _finish(self) -> None:
        self._done = True
        tf = sys.modules["tensorflow"]
        start = time.perf_counter()
        check_keras()
        _ = tf.keras.Model
        self.seconds += time.perf_counter() - start
        self._on_import(tf)


def check_keras() -> None:
    """Check that Keras computes with TensorFlow.

    Raises:
        NotApplicable: it computes with something else, which devbench does not measure.
    """
    backend = os.environ.get("KERAS_BACKEND") or "tensorflow"
    if backend != "tensorflow":
        raise NotApplicable(f"Keras computes with {backend}, not with TensorFlow", "Set KERAS_BACKEND=tensorflow.")
