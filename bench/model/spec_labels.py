"""Labels that tell specs apart: what differs between them, in words."""

from __future__ import annotations

from collections.abc import Sequence

from bench.model.spec import ROLES, Spec

IN_LABEL = ("workload", "case", "checkout", "backend", "env", "loop", "workers", "what_ifs")
"""Fields that `Spec.label` shows."""


def aspects(spec: Spec) -> dict[str, str]:
    """Return what can distinguish a spec: the value in words of each field and parameter, by `NAME` or `param NAME`."""
    words: dict[str, str] = {}
    for name, role in ROLES.items():
        if name == "file":
            words[name] = (spec.file_sha256 or "")[:8] if spec.file else ""
        elif name == "params":
            words |= {f"param {param}": f"{param} {value}" for param, value in spec.params.items()}
        elif role.label:
            words[name] = role.label(getattr(spec, name))
    return words


def titles(specs: Sequence[Spec]) -> list[str]:
    """Return the label of each spec. If any are equal, what differs is added to all: `mine on cpu, fit, batch 64`."""
    labels = [spec.label for spec in specs]
    if len(set(labels)) == len(labels):
        return labels
    columns = [{name: text for name, text in aspects(spec).items() if name not in IN_LABEL} for spec in specs]
    names = dict.fromkeys(name for column in columns for name in column)
    varying = [name for name in names if len({column.get(name) for column in columns}) > 1]
    return [
        ", ".join([label, *(text for name in varying if (text := column.get(name)))])
        for label, column in zip(labels, columns, strict=True)
    ]
