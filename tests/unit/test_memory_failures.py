"""A program that gets no memory is reported as out of memory, whichever library says so."""

from __future__ import annotations

from typing import Any

import pytest

from bench.registry.program_errors import PACKAGE
from bench.session import worker_failure
from bench.worker.failure import failure_of

ResourceExhaustedError = type("ResourceExhaustedError", (Exception,), {})
InternalError = type("InternalError", (Exception,), {})

ABORT = "F external/local_xla/xla/stream_executor/cuda/cuda_dnn.cc:100] Check failed: CUDNN_STATUS_ALLOC_FAILED"


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (
            ResourceExhaustedError(
                "{{function_node x}} OOM when allocating tensor with shape[9,9] and type float on GPU"
            ),
            "OOM when allocating tensor with shape[9,9] and type float",
        ),
        (ResourceExhaustedError("no more handles"), "ResourceExhaustedError: no more handles"),
        (MemoryError("none left"), "MemoryError: none left"),
        (
            MemoryError("Unable to allocate 8.00 GiB for an array with shape (1073741824,) and data type float64"),
            "Unable to allocate 8.00 GiB for an array with shape (1073741824,) and data type float64",
        ),
        (
            InternalError("Failed copying input tensor from CPU:0 to GPU:0: Dst tensor is not initialized."),
            "Dst tensor is not initialized",
        ),
        (
            InternalError("CUDA runtime implicit initialization failed. CUDA_ERROR_OUT_OF_MEMORY: out of memory"),
            "CUDA_ERROR_OUT_OF_MEMORY: out of memory",
        ),
        (InternalError("Failed to create cuDNN handle: CUDNN_STATUS_ALLOC_FAILED"), "CUDNN_STATUS_ALLOC_FAILED"),
        (InternalError("cuBLAS: CUBLAS_STATUS_ALLOC_FAILED"), "CUBLAS_STATUS_ALLOC_FAILED"),
        (InternalError("cufftPlan: CUFFT_ALLOC_FAILED"), "CUFFT_ALLOC_FAILED"),
        (
            RuntimeError("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 68719476736 bytes."),
            "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 68719476736 bytes",
        ),
        (RuntimeError("HRESULT failed with 0x8007000e: D3D12CreateCommittedResource"), "0x8007000e"),
    ],
)
def test_an_error_for_lack_of_memory_is_recognized_by_its_type_or_its_text(error: Exception, message: str) -> None:
    failure = failure_of(error, None, "steps")
    assert (failure.kind, failure.message) == ("memory", message)
    assert "smaller batch" in failure.hint


def test_lack_of_memory_is_recognized_at_the_end_of_a_long_message_about_a_graph() -> None:
    layer = '  File "/usr/lib/python3.13/site-packages/keras/src/layers/layer.py", line 12, in __call__\n\n'
    definition = f"Detected at node conv/Conv2D defined at (most recent call last):\n{60 * layer}"
    cause = "Failed copying input tensor from CPU:0 to GPU:0: Dst tensor is not initialized."
    text = f"Graph execution error:\n\n{definition}\n{cause}\n\t [[{{{{node conv/Conv2D}}}}]] [Op:__inference_step_1]"
    for error in (InternalError(text), ResourceExhaustedError(text)):
        failure = failure_of(error, None, "steps")
        assert (failure.kind, failure.message) == ("memory", "Dst tensor is not initialized")


@pytest.mark.parametrize("text", ["Unable to allocate a seat", "out of range", "CUDNN_STATUS_EXECUTION_FAILED"])
def test_another_error_is_not_taken_for_lack_of_memory(text: str) -> None:
    assert failure_of(InternalError(text), None, "steps").kind == "error"


@pytest.mark.parametrize("prefix", ["2026-01-02 03:04:05.678901: ", "F0000 00:00:1700000000.000001    77 x.cc:1] "])
def test_a_worker_that_aborts_for_lack_of_memory_failed_for_lack_of_memory(prefix: str) -> None:
    failure = worker_failure.exited(-6, "steps", f"an earlier line\n{prefix}{ABORT}\n", None)
    assert (failure.kind, failure.signal) == ("memory", "SIGABRT")
    assert failure.message == "the worker was killed by SIGABRT: CUDNN_STATUS_ALLOC_FAILED"
    assert "smaller batch" in failure.hint


def test_a_warning_about_memory_before_a_crash_is_not_its_cause() -> None:
    retry = "2026-01-02 03:04:05.678901: W bfc_allocator.cc:1] CUDA_ERROR_OUT_OF_MEMORY: out of memory, retrying\n"
    assert worker_failure.exited(-11, "steps", retry, None).kind == "crashed"


@pytest.mark.parametrize(("module", "is_fault"), [("tensorflow.python.errors", False), ("builtins", True)])
def test_an_error_of_a_library_is_not_called_a_fault_of_devbench_if_only_our_frames_are_left(
    module: str, is_fault: bool
) -> None:
    kind = type("NotInstalledError", (Exception,), {"__module__": module})
    namespace: dict[str, Any] = {}
    exec(compile("def fit(error):\n    raise error", str(PACKAGE / "worker" / "fit_hook.py"), "exec"), namespace)
    with pytest.raises(kind) as caught:
        namespace["fit"](kind("TensorBoard is not installed"))
    error = caught.value
    assert error.__traceback__ is not None
    failure = failure_of(error, "/programs/mine.py", "steps")
    assert ("fault of devbench" in failure.hint) == is_fault
