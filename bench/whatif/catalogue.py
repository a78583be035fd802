"""The single changes that an explanation tries: what each is, what it would fix, and how it is asked for."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from bench.model.explanation import Named
from bench.model.plan import Planned
from bench.model.result import Result
from bench.model.spec import CHANGES, Spec, Threads
from bench.model.spec import Change as ChangeName

FIXES: dict[ChangeName, str] = {
    "cache": "making the same batches again each epoch",
    "prefetch": "input that is not made ahead",
    "parallel-map": "maps one at a time",
    "steps-per-execution": "a call of TensorFlow for each step",
    "without-callbacks": "callbacks and output",
    "without-metrics": "metrics reckoned at each step",
    "graph": "eager execution",
}
"""What a change from outside fixes, where it helps."""


@dataclass(frozen=True)
class Change:
    """One thing changed of a spec.

    Args:
        named: what it is in words, how it is asked for, and what it fixes where it helps.
        kind: of changes of one kind only the best is taken.
        update: the spec's fields.
        examples: factor by which the examples of a step grow.
    """

    named: Named
    kind: str
    update: Mapping[str, Any] = field(hash=False)
    examples: float = 1.0


def changes(
    spec: Spec,
    offered: Sequence[ChangeName] = (),
    rows: int | None = None,
    compiled: bool | None = None,
    not_dtypes: Collection[str] = (),
    own: bool = False,
) -> list[Change]:
    """The single changes that make sense for a spec; those of one kind together.

    Args:
        spec: what is changed.
        offered: changes from outside that find something to change in it.
        rows: examples that there are, so that no batch is larger; none where that is not known.
        compiled: whether XLA compiles it, where the program decides that.
        not_dtypes: dtype policies that change nothing of it.
        own: whether the loop is the program's own, so that nobody else decides what XLA compiles of it.
    """
    compiled = bool(spec.xla) if compiled is None else compiled
    found = [*_batches(spec, rows), *([] if own else _compiled(compiled)), *_dtypes(spec, not_dtypes)]
    for name in offered:
        update = {"changes": (*spec.changes, name)}
        found.append(Change(Named(CHANGES[name], f"--change {name}", FIXES[name]), name, update))
    return [*found, *_threads(spec), *_kernels(spec)]


def _batches(spec: Spec, rows: int | None) -> Iterator[Change]:
    batch = spec.params.get("batch")
    for factor in (4, 16) if isinstance(batch, int) else ():
        size = int(batch or 0) * factor
        if rows is not None and size > rows:
            return
        named = Named(f"batch {size}", f"--param batch={size}", "too small batches")
        yield Change(named, "batch", {"params": {**spec.params, "batch": size}}, factor)


def _compiled(compiled: bool) -> Iterator[Change]:
    if compiled:
        yield Change(Named("without XLA", "--xla off", "XLA, which is slower here"), "xla", {"xla": False})
    else:
        yield Change(Named("with XLA", "--xla on", "missing fusion"), "xla", {"xla": True})


def _dtypes(spec: Spec, but: Collection[str]) -> Iterator[Change]:
    narrower = {
        "float64": ["float32"],
        "float32": ["mixed_bfloat16"] if spec.backend == "cpu" else ["mixed_float16", "mixed_bfloat16"],
    }
    for dtype in [each for each in narrower.get(spec.dtype, []) if each not in but]:
        fixes = f"{spec.dtype} where fewer bits would do"
        yield Change(Named(f"in {dtype}", f"--dtype {dtype}", fixes), "dtype", {"dtype": dtype})


def _threads(spec: Spec) -> Iterator[Change]:
    threads = spec.threads.intra
    for count in dict.fromkeys([1, threads // 4, threads // 2, 2 * threads]):
        if count not in (0, threads):
            words = f"{count} thread{'s' if count > 1 else ''}"
            named = Named(words, f"--threads {count}", "too many threads" if count < threads else "too few threads")
            yield Change(named, "threads", {"threads": Threads(intra=count, inter=count)})


def _kernels(spec: Spec) -> Iterator[Change]:
    if spec.backend == "cpu" and spec.onednn:
        named = Named("without oneDNN", "--no-onednn", "oneDNN's kernels, which are slower here")
        yield Change(named, "onednn", {"onednn": False})
    elif spec.backend == "cpu":
        yield Change(Named("with oneDNN", "--onednn", "plain kernels"), "onednn", {"onednn": True})
    if spec.backend == "cuda" and not spec.tf32:
        yield Change(Named("with TF32", "--tf32", "products without TF32"), "tf32", {"tf32": True})


def from_outside(base: Result) -> list[ChangeName]:
    """The changes from outside that find something to change, as the base's own run tells."""
    facts = next((s.facts for s in base.samples if "fit" in s.facts or "pipeline" in s.facts), {})
    found: list[ChangeName] = []
    if facts.get("reachable"):
        found += ["cache", "prefetch", "parallel-map"]
    if facts.get("fit"):
        found.append("steps-per-execution")
        if facts["fit"]["callbacks"] or facts["fit"].get("verbose") in (1, "auto"):
            found.append("without-callbacks")
        if facts["fit"].get("metrics"):
            found.append("without-metrics")
        if facts.get("run_eagerly"):
            found.append("graph")
    return found


def rows_of(base: Result) -> int | None:
    """Examples in the data of a run, where it has them in arrays."""
    facts = next((s.facts for s in base.samples if "epoch" in s.facts), {})
    epoch, batch = facts.get("epoch"), base.spec.params.get("batch")
    if not epoch or not isinstance(batch, int) or (not epoch.get("rest") and facts.get("reachable")):
        return None
    return int(epoch["batches"]) * batch + int(epoch["rest"])


def changed(base: Planned, change: Change) -> Planned:
    """The same with one thing changed; changes from outside add up."""
    examples = round(base.examples * change.examples) if base.examples else None
    update = dict(change.update)
    if "changes" in update:
        update["changes"] = tuple(dict.fromkeys([*base.spec.changes, *update["changes"]]))
    return replace(base, spec=base.spec.model_copy(update=update), examples=examples)
