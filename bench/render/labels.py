"""Labels of phases, and of results that are shown together: what distinguishes them and what they have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bench.model import spec_labels
from bench.model.result import Result
from bench.model.spec import LOOPS, PLACE, ROLES, Spec
from bench.render.text import plain

WITH_THE_MACHINE = ("tensorflow", "cpu", *(name for name in PLACE if ROLES[name].compare == "secondary"))
"""Aspects that come with the machine. A label contains them only if it would not be unique without them."""


@dataclass(frozen=True)
class Listed:
    """A result in a list: its label and purpose, the key of its spec, and where it was measured."""

    label: str
    purpose: str
    key: str
    place: str


def phase_label(phase: str) -> str:
    """Return the label of a phase, or of an activity of a worker, such as "device init"."""
    return "warm-up" if phase == "warm_up" else phase.replace("_", " ")


def quoted(label: str) -> str:
    """Return a label for use in a sentence. The name of a loop gets quotation marks, because it reads like a word."""
    return f"'{label}'" if label in LOOPS else label


def short_labels(results: Sequence[Result]) -> list[str]:
    """Return a short label for each result, different from all others, such as "cpu" and "cuda"."""
    columns = [_aspects(result) for result in results]
    varying = [key for key in _keys(columns) if len({column.get(key) for column in columns}) > 1]
    if any(key in varying for key in ("workload", "case", "file")):  # these differ in parameters anyway
        varying = [key for key in varying if not key.startswith("param ")]
    without = [key for key in varying if key != "xla"]
    if "loop" in varying and _distinct(columns, without):  # only as-written can leave XLA to the program
        varying = without
    spec = [key for key in varying if key not in WITH_THE_MACHINE]
    varying = spec if _distinct(columns, spec) else varying
    labels = [plain(_label(column, varying or ["backend", "loop"])) for column in columns]
    return [
        label if labels.count(label) == 1 else f"{label} ({plain(result.id[-8:])})"
        for label, result in zip(labels, results, strict=True)
    ]


def common_label(results: Sequence[Result]) -> str:
    """Return what all results have in common: the workload, and the backend and loop if these are the same."""
    specs = [result.spec for result in results]
    titles, workloads = {spec.title for spec in specs}, list(dict.fromkeys(spec.workload for spec in specs))
    title = titles.pop() if len(titles) == 1 else " and ".join(workloads)
    backends, loops = {spec.backend for spec in specs}, {spec.loop for spec in specs}
    backend = f" on {backends.pop()}" if len(backends) == 1 else ""
    return plain(title + backend + (f", {loops.pop()}" if len(loops) == 1 else ""))


def ambiguous(listed: Sequence[Listed]) -> set[str]:
    """Return the keys of the specs that share label and purpose with another spec of the list."""
    keys_of: dict[tuple[str, str], set[str]] = {}
    for item in listed:
        keys_of.setdefault((item.label, item.purpose), set()).add(item.key)
    return {key for keys in keys_of.values() if len(keys) > 1 for key in keys}


def names(listed: Sequence[Listed], specs: Mapping[str, Spec]) -> list[str]:
    """Return a name for each result of a list: its label, and what differs between the results that share the label.

    Args:
        listed: the list.
        specs: specs by key, at least those of the keys that `ambiguous` returns. A result without a spec here has only
            its label.
    """
    with_label: dict[tuple[str, str], list[Listed]] = {}
    for item in dict.fromkeys(listed):
        if item.key in specs:
            with_label.setdefault((item.label, item.purpose), []).append(item)
    details: dict[Listed, str] = {}
    for items in with_label.values():
        details |= dict(zip(items, _varied(items, specs), strict=True))
    return [plain(", ".join(filter(None, (item.label, details.get(item))))) for item in listed]


def _varied(items: Sequence[Listed], specs: Mapping[str, Spec]) -> list[str]:
    """Return what differs between results with the same label.

    An aspect that comes with the place, such as threads, counts only if it differs between results of one place.
    """
    columns = [spec_labels.aspects(specs[item.key]) for item in items]
    varied = []
    for key in _keys(columns):
        values = {
            (item.place if key in PLACE else "", column.get(key)) for item, column in zip(items, columns, strict=True)
        }
        if key != "file" and len(values) > len({place for place, _ in values}):
            varied.append(key)
    return [_label(column, varied) for column in columns]


def _aspects(result: Result) -> dict[str, str]:
    """Return what can distinguish a result: the fields of its spec, then where it ran."""
    environment = result.environment
    aspects = spec_labels.aspects(result.spec)
    aspects["tensorflow"] = f"TensorFlow {environment.tensorflow or 'unknown'}"
    aspects["cpu"] = environment.host.cpu.model or "unknown CPU"
    return aspects


def _keys(columns: Sequence[dict[str, str]]) -> list[str]:
    return list(dict.fromkeys(key for column in columns for key in column))


def _label(column: dict[str, str], keys: Sequence[str]) -> str:
    return ", ".join(text for key in keys if (text := column.get(key)))


def _distinct(columns: Sequence[dict[str, str]], keys: Sequence[str]) -> bool:
    return len({_label(column, keys) for column in columns}) == len(columns)
