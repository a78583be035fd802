"""What results are called beside each other: only what tells them apart."""

from __future__ import annotations

from collections.abc import Sequence

from bench.model.result import Result
from bench.model.spec import ROLES


def names(results: Sequence[Result]) -> list[str]:
    """A short name for each of a chapter's results, unlike the others'."""
    columns = [_aspects(each) for each in results]
    varying = [key for key in _keys(columns) if len({column.get(key) for column in columns}) > 1]
    if any(key in varying for key in ("workload", "case", "file")):  # each brings its own parameters
        varying = [key for key in varying if not key.startswith("param ")]
    without = [key for key in varying if key != "xla"]
    if "loop" in varying and _apart(columns, without):  # as-written leaves XLA to the program, the others have it off
        varying = without
    spec = [key for key in varying if key not in _PLACES]
    varying = spec if _apart(columns, spec) else varying
    found = [_joined(column, varying or ["backend", "loop"]) for column in columns]
    return [
        name if found.count(name) == 1 else f"{name} ({each.id[-8:]})"
        for name, each in zip(found, results, strict=True)
    ]


def heading(results: Sequence[Result]) -> str:
    """What all of them are: workload, and backend and loop where they are the same."""
    specs = [each.spec for each in results]
    titles, workloads = {spec.title for spec in specs}, list(dict.fromkeys(spec.workload for spec in specs))
    title = titles.pop() if len(titles) == 1 else " and ".join(workloads)
    backends, loops = {spec.backend for spec in specs}, {spec.loop for spec in specs}
    where = f" on {backends.pop()}" if len(backends) == 1 else ""
    return title + where + (f", {loops.pop()}" if len(loops) == 1 else "")


_PLACES = ("tensorflow", "cpu", "threads")


def _aspects(result: Result) -> dict[str, str]:
    """What a result can be told apart by: the fields of its spec, then where it ran."""
    spec, environment = result.spec, result.environment
    found: dict[str, str] = {}
    for name, role in ROLES.items():
        if name == "file":
            found[name] = (spec.file_sha256 or "")[:8] if spec.file else ""
        elif name == "params":
            found |= {f"param {param}": f"{param} {value}" for param, value in spec.params.items()}
        elif role.label:
            found[name] = role.label(getattr(spec, name))
    found["tensorflow"] = f"TensorFlow {environment.tensorflow or 'unknown'}"
    found["cpu"] = environment.host.cpu.model or "unknown CPU"
    return found


def _keys(columns: Sequence[dict[str, str]]) -> list[str]:
    return list(dict.fromkeys(key for column in columns for key in column))


def _joined(column: dict[str, str], keys: Sequence[str]) -> str:
    return ", ".join(text for key in keys if (text := column.get(key)))


def _apart(columns: Sequence[dict[str, str]], keys: Sequence[str]) -> bool:
    return len({_joined(column, keys) for column in columns}) == len(columns)
