"""Copies float32 arrays between NumPy and the device, 4 B to 256 MB, both ways.

All five source articles blame these copies for slow GPUs; none measures them. Memory is pageable, as NumPy's is.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field, model_validator

from bench.workloads import Context, Probe

NOT_ON = {"cpu": "its memory is the host's: there is nothing to copy to"}
NOT_DTYPES = dict.fromkeys(
    ("float64", "mixed_float16", "mixed_bfloat16"), "it copies float32, and what counts is bytes"
)
NOTES = (
    "Each copy ends in reading one element that needs it; the same reading without the copy is timed as a floor and "
    "subtracted, so what is left is the copy with its own start.",
    "NumPy's memory is pageable, so the driver copies it through a buffer of its own: pinned memory would be faster.",
)


class Params(BaseModel):
    """Which sizes of copies are timed."""

    min_bytes: int = Field(4, ge=4, le=4**16, multiple_of=4, description="smallest copy, bytes")
    max_bytes: int = Field(4**14, ge=4, le=4**16, description="no copy is larger, bytes")
    factor: int = Field(4, ge=2, le=4**15, description="each size over the one before")

    @model_validator(mode="after")
    def _there_is_a_size(self) -> Params:
        if self.min_bytes > self.max_bytes:
            raise ValueError("min_bytes is larger than max_bytes")
        return self


def sizes(p: Params) -> list[int]:
    """4, 16, 64, … bytes as the default has it, up to `max_bytes`."""
    found = [p.min_bytes]
    while found[-1] * p.factor <= p.max_bytes:
        found.append(found[-1] * p.factor)
    return found


def probes(p: Params, ctx: Context) -> dict[str, Probe]:
    """Both directions at each size, `h2d/<bytes>` and `d2h/<bytes>`, and the floors that are part of them."""
    import tensorflow as tf

    host = ctx.rng.random(sizes(p)[-1] // 4, dtype="float32")
    found: dict[str, Probe] = {"floor/h2d": Probe(_read_element(tf, tf.constant(host[:1])))}
    for size in sizes(p):
        found |= _both_ways(tf, ctx, host[: size // 4], size)
    return found


def _both_ways(tf: Any, ctx: Context, host: Any, size: int) -> dict[str, Probe]:
    with tf.device(ctx.device):
        resident = tf.constant(host)

    def to_device() -> Any:
        with tf.device(ctx.device):
            return _arrived(tf.constant(host)[-1:])

    def fresh() -> Any:
        # A tensor keeps the host copy that .numpy() once made of it, so each copy needs a tensor of its own.
        with tf.device(ctx.device):
            made = resident + 1.0
            _arrived(made[-1:])
            return made

    def made_only() -> Any:
        with tf.device(ctx.device):
            return _arrived((resident + 1.0)[-1:])

    return {
        f"h2d/{size}": Probe(to_device, bytes=size, floor="floor/h2d"),
        f"floor/d2h/{size}": Probe(made_only),
        f"d2h/{size}": Probe(lambda: _arrived(fresh()), bytes=size, floor=f"floor/d2h/{size}"),
    }


def _read_element(tf: Any, resident: Any) -> Any:
    return lambda: _arrived(resident[-1:])


def _arrived(tensor: Any) -> Any:
    """The tensor, once its values are in host memory."""
    tensor.numpy()
    return tensor
