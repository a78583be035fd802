"""The CIFAR-10 article with 100 batches, so that an epoch of `fit` takes seconds, not half a minute."""

from __future__ import annotations

from typing import Any

from bench.workloads import Context, cifar

Params = cifar.Params
DATA = cifar.DATA
model = cifar.model


def data(p: cifar.Params, ctx: Context) -> tuple[Any, ...]:
    """Return the first 100 batches of the article's arrays."""
    return tuple(array[: 100 * p.batch] for array in cifar.data(ctx))
