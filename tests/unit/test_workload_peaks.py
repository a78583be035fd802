"""The products of `peaks` on devices that compute slowly in a dtype, or not at all. A stand-in replaces TensorFlow."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from bench.workloads import Context, peaks

N = 64


class OpError(Exception):
    """The base of TensorFlow's errors."""


class InternalError(OpError):
    """What cuBLAS gives for a dtype that it does not support."""


class Tensor:
    """A matrix on the device."""

    def __init__(self, size: int, dtype: str) -> None:
        self.size, self.dtype = size, dtype

    def __getitem__(self, index: object) -> Any:
        return SimpleNamespace(numpy=lambda: 1.0)


class Gpu:
    """A device with a clock that its products move."""

    def __init__(self, seconds: dict[str, float], fails: tuple[str, ...] = ()) -> None:
        """Make a device with the time of a product of N rows in each dtype, and the dtypes that fail."""
        self.seconds, self.fails = seconds, fails
        self.now = 0.0
        self.products: list[tuple[str, int]] = []

    def perf_counter(self) -> float:
        return self.now

    def matmul(self, a: Tensor, b: Tensor) -> Tensor:
        if a.dtype in self.fails:
            raise InternalError("CUBLAS_STATUS_NOT_SUPPORTED")
        self.products.append((a.dtype, a.size))
        self.now += self.seconds.get(a.dtype, 0.0) * (a.size / N) ** 3
        return a

    @property
    def tensorflow(self) -> Any:
        return SimpleNamespace(
            errors=SimpleNamespace(OpError=OpError),
            device=lambda name: nullcontext(),
            constant=lambda array: Tensor(len(array), "float32"),
            cast=lambda tensor, dtype: Tensor(tensor.size, dtype),
            function=lambda function, jit_compile: function,
            linalg=SimpleNamespace(matmul=self.matmul),
        )


def measured(gpu: Gpu, monkeypatch: pytest.MonkeyPatch, device: str = "/device:GPU:0") -> list[str]:
    """Return the dtypes whose product is measured on a device."""
    monkeypatch.setattr(peaks, "time", gpu)
    ctx = Context(np.random.default_rng(0), device, "cuda", "float32", 1, lambda name: None)
    dtypes = ("float32", "float64", "bfloat16", "float16")
    return [dtype for dtype in dtypes if peaks._product(gpu.tensorflow, ctx, N, dtype) is not None]


def test_a_dtype_that_fails_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    assert measured(Gpu({}, fails=("bfloat16",)), monkeypatch) == ["float32", "float64", "float16"]


def test_a_device_that_fails_in_float32_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InternalError):
        measured(Gpu({}, fails=("float32", "float64")), monkeypatch)


def test_a_dtype_that_takes_too_long_on_a_gpu_is_left_out_before_it_is_run(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = Gpu({"float32": 0.2, "float64": 4.4})
    assert measured(gpu, monkeypatch) == ["float32", "bfloat16", "float16"]
    assert ("float64", N) not in gpu.products


def test_a_cpu_measures_every_dtype(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "float16" in measured(Gpu({"float16": 4.4}), monkeypatch, "/device:CPU:0")
