"""What results are called beside each other: only what tells them apart."""

from __future__ import annotations

from collections.abc import Sequence

from bench.model.result import Result
from bench.model.spec import Spec


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
    spec, environment = result.spec, result.environment
    cpu = (environment.get("host") or {}).get("cpu") or {}
    return {
        "workload": spec.workload,
        "case": spec.case or "",
        "file": (spec.file_sha256 or "")[:8] if spec.file else "",
        "backend": spec.backend,
        "loop": spec.loop,
        **{f"param {name}": f"{name} {value}" for name, value in spec.params.items()},
        **_switches(spec),
        "tensorflow": f"TensorFlow {(environment.get('framework') or {}).get('tensorflow', 'unknown')}",
        "cpu": str(cpu.get("model") or "unknown CPU"),
        "threads": f"{spec.threads.intra}+{spec.threads.inter} threads",
    }


def _switches(spec: Spec) -> dict[str, str]:
    def switch(name: str, value: bool | None) -> str:
        return name + (" as the program decides" if value is None else " on" if value else " off")

    return {
        "what_ifs": f"with {', '.join(spec.what_ifs)}" if spec.what_ifs else "",
        "dtype": spec.dtype,
        "xla": switch("XLA", spec.xla),
        "tf32": switch("TF32", spec.tf32),
        "onednn": switch("oneDNN", spec.onednn),
        "deterministic": switch("determinism", spec.deterministic),
        "data": f"{spec.data.kind} data",
        "seed": f"seed {spec.seed}",
    }


def _keys(columns: Sequence[dict[str, str]]) -> list[str]:
    return list(dict.fromkeys(key for column in columns for key in column))


def _joined(column: dict[str, str], keys: Sequence[str]) -> str:
    return ", ".join(text for key in keys if (text := column.get(key)))


def _apart(columns: Sequence[dict[str, str]], keys: Sequence[str]) -> bool:
    return len({_joined(column, keys) for column in columns}) == len(columns)
