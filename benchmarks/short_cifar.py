"""CIFAR-10's article on its first 3,200 images, so that a whole epoch of `fit` lasts seconds, not half a minute."""

from __future__ import annotations

from typing import Any

from bench.workloads import Context, cifar

Params = cifar.Params
DATA = cifar.DATA
model = cifar.model


def data(p: cifar.Params, ctx: Context) -> tuple[Any, ...]:
    """The article's arrays, cut."""
    return tuple(array[: 100 * p.batch] for array in cifar.data(ctx))
