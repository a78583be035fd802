"""Values that the shell completes: names of workloads, backends, loops, cases, what-ifs, and choices."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from textwrap import shorten
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

import typer

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

WIDTH = 70
"""Maximum characters of a summary. Some shells would break a longer one into two candidates."""

Completer = Callable[..., list[Any]]
"""A callback as Typer calls it: it returns values, or pairs of a value and its summary."""


def workloads(incomplete: str) -> list[tuple[str, str]]:
    """Return the built-in workloads that start with a text. The shell itself completes files."""
    from bench import registry

    names = [name for name in registry.names() if name.startswith(incomplete)]
    return [(name, shorten(registry.describe(name).summary, WIDTH, placeholder="…")) for name in names]


def completer(name: str, field: FieldInfo) -> Completer | None:
    """Return the function that completes the values of a setting. None if the shell completes them, or nothing does."""
    if get_origin(field.annotation) is Literal:
        return _list(lambda context: get_args(field.annotation))
    candidates = {"backend": _backends, "loop": _loops, "case": _cases, "change": _what_ifs}.get(name)
    return _list(candidates) if candidates else None


def _list(candidates: Callable[[typer.Context], Iterable[str]]) -> Completer:
    """Return a function that completes the last name of a comma-separated list."""

    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        before, comma, last = incomplete.rpartition(",")
        used = before.split(",")
        return [f"{before}{comma}{name}" for name in candidates(ctx) if name.startswith(last) and name not in used]

    return complete


def _backends(context: typer.Context) -> Iterable[str]:
    from bench import backends

    return backends.names()


def _loops(context: typer.Context) -> Iterable[str]:
    from bench.model.spec import LOOPS

    return LOOPS


def _what_ifs(context: typer.Context) -> Iterable[str]:
    from bench import whatif

    return whatif.program_changes()


def _cases(context: typer.Context) -> Iterable[str]:
    """Return the cases of the built-in workloads on the command line."""
    from bench import registry

    given = context.params.get("workloads") or [context.params.get("workload")]
    names = [name for name in given if name in registry.names()] or registry.names()
    return dict.fromkeys(case for name in names for case in registry.describe(name).constants.get("CASES", {}))
