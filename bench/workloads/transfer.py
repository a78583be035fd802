"""Copy float32 arrays of 4 B to 256 MB between NumPy and the device, in both directions.

All five source articles blame these copies for slow GPUs, but none measures them. Memory is pageable, as NumPy's is.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field, model_validator

from bench.model.series import copy_series
from bench.workloads import Context, Probe

NOT_ON = {"cpu": "its memory is the host's memory, so there is nothing to copy"}
NOT_DTYPES = dict.fromkeys(
    ("float64", "mixed_float16", "mixed_bfloat16"), "it copies float32, and only the number of bytes matters"
)
NOTES = (
    "Each copy ends by reading one element that depends on it. The same read without the copy is timed separately and "
    "subtracted. What remains is the copy, including its start.",
    "NumPy's memory is pageable, so the driver copies it through its own buffer. Pinned memory would be faster.",
)


class Params(BaseModel):
    """The sizes of the copies."""

    min_bytes: int = Field(4, ge=4, le=4**16, multiple_of=4, description="smallest copy, bytes")
    max_bytes: int = Field(4**14, ge=4, le=4**16, description="largest copy, bytes")
    factor: int = Field(4, ge=2, le=4**15, description="ratio of each size to the one before")

    @model_validator(mode="after")
    def _there_is_a_size(self) -> Params:
        if self.min_bytes > self.max_bytes:
            raise ValueError("min_bytes is larger than max_bytes")
        return self


def sizes(p: Params) -> list[int]:
    """Return the sizes in bytes, each `factor` times the one before, up to `max_bytes`."""
    result = [p.min_bytes]
    while result[-1] * p.factor <= p.max_bytes:
        result.append(result[-1] * p.factor)
    return result


def probes(p: Params, ctx: Context) -> dict[str, Probe]:
    """Return `h2d/<bytes>` and `d2h/<bytes>` for each size, and the floors that are subtracted from them."""
    import tensorflow as tf

    host = ctx.rng.random(sizes(p)[-1] // 4, dtype="float32")
    result: dict[str, Probe] = {"floor/h2d": Probe(_read_element(tf, tf.constant(host[:1])))}
    for size in sizes(p):
        result |= _both_directions(tf, ctx, host[: size // 4], size)
    return result


def _both_directions(tf: Any, ctx: Context, host: Any, size: int) -> dict[str, Probe]:
    with tf.device(ctx.device):
        resident = tf.constant(host)

    def to_device() -> Any:
        with tf.device(ctx.device):
            return _wait_for(tf.constant(host)[-1:])

    def fresh() -> Any:
        # A tensor keeps the host copy that .numpy() has made of it, so each copy needs a new tensor.
        with tf.device(ctx.device):
            tensor = resident + 1.0
            _wait_for(tensor[-1:])
            return tensor

    def compute_only() -> Any:
        with tf.device(ctx.device):
            return _wait_for((resident + 1.0)[-1:])

    return {
        copy_series("h2d", size): Probe(to_device, bytes=size, floor="floor/h2d"),
        f"floor/d2h/{size}": Probe(compute_only),
        copy_series("d2h", size): Probe(lambda: _wait_for(fresh()), bytes=size, floor=f"floor/d2h/{size}"),
    }


def _read_element(tf: Any, resident: Any) -> Any:
    return lambda: _wait_for(resident[-1:])


def _wait_for(tensor: Any) -> Any:
    """Return the tensor when its values are in host memory."""
    tensor.numpy()
    return tensor
