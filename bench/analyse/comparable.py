"""Whether two results may be compared, what is being compared, and what else differs.

Two specs may differ in one thing, which is the axis of the comparison: backend, loop, a parameter, the user's
file. What comes with the machine (TensorFlow's version, threads, the CPU) is named beside the verdict. Anything
else makes the comparison unfair.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from bench.analyse import same_answer
from bench.model.comparison import Difference
from bench.model.environment import ROWS
from bench.model.result import Result
from bench.model.spec import ROLES

AXES = tuple(name for name, role in ROLES.items() if role.compare == "axis")
"""Fields of a spec that decide how the same work is done. Any one of them can be the axis."""

SECONDARY = tuple(name for name, role in ROLES.items() if role.compare == "secondary")
"""Fields of a spec that come with the machine or change no time by themselves: the axis only if nothing else is."""


def differences(base: Result, other: Result) -> list[Difference]:
    """All differences of two results, the axis first, then what makes them unfair, then what is named."""
    a, b = base.spec, other.spec
    files = a.file is not None and b.file is not None
    found: list[Difference] = []
    if files and a.file_sha256 != b.file_sha256:
        found.append(Difference(name="file", base=_source(base), other=_source(other), kind="axis"))
    elif a.workload != b.workload:
        why = "they are different programs; two files of your own may be compared"
        found.append(Difference(name="workload", base=a.workload, other=b.workload, kind="unfair", reason=why))
    elif a.file_sha256 != b.file_sha256:
        short = [(sha or "")[:12] for sha in (a.file_sha256, b.file_sha256)]
        found.append(Difference(name="workload's source", base=short[0], other=short[1], kind="context"))
    elif a.case and b.case and a.case != b.case:
        found.append(Difference(name="case", base=a.case, other=b.case, kind="axis"))
    whole = any(d.kind == "axis" for d in found)  # a file or a case brings its own parameters
    for name in AXES:
        left, right = getattr(a, name), getattr(b, name)
        follows = (name == "xla" and a.loop != b.loop and None in (left, right)) or (name == "loop" and whole)
        if left != right:
            found.append(
                Difference(name=name, base=_plain(left), other=_plain(right), kind="context" if follows else "axis")
            )
    found += [
        Difference(name=name, base=left, other=right, kind="context" if whole else "axis")
        for name, left, right in _unequal(a.params, b.params)
    ]
    found += _data(base, other)
    _one_axis(found)
    if base.group != other.group:
        times = [f"{each.created:%Y-%m-%d %H:%M} UTC" for each in (base, other)]
        found.append(Difference(name="when", base=times[0], other=times[1], kind="context"))
    found += _named(base, other, alone=not any(d.kind in ("axis", "unfair") for d in found))
    found += _doubts(base, other)
    return sorted(found, key=lambda d: ("axis", "unfair", "context").index(d.kind))


def axis(found: list[Difference]) -> str | None:
    """The name of what is compared; none where two specs are the same."""
    return next((d.name for d in found if d.kind == "axis"), None)


def _source(result: Result) -> str:
    return result.spec.file or result.spec.workload


def _unequal(a: Mapping[str, Any], b: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    for name in dict.fromkeys([*a, *b]):
        if a.get(name) != b.get(name):
            yield name, a.get(name), b.get(name)


def _one_axis(found: list[Difference]) -> None:
    """Where several things could be the axis there is none, and each makes the comparison unfair."""
    axes = [d for d in found if d.kind == "axis"]
    if len(axes) > 1:
        names = " and ".join(d.name for d in axes)
        for each in axes:
            each.kind, each.reason = (
                "unfair",
                f"{names} differ at the same time, so the difference cannot be attributed to one of them",
            )


def _data(base: Result, other: Result) -> Iterator[Difference]:
    a, b = base.spec.data, other.spec.data
    if a.kind != b.kind or (a.name == b.name and a.sha256 != b.sha256):
        left, right = (f"{d.kind} {d.name or ''} {(d.sha256 or '')[:12]}".strip() for d in (a, b))
        yield Difference(name="data", base=left, other=right, kind="unfair", reason="they read different data")


def _named(base: Result, other: Result, alone: bool) -> Iterator[Difference]:
    unequal = [name for name in SECONDARY if getattr(base.spec, name) != getattr(other.spec, name)]
    for name in unequal:
        left, right = (_plain(getattr(r.spec, name)) for r in (base, other))
        yield Difference(name=name, base=left, other=right, kind="axis" if alone and len(unequal) == 1 else "context")
    left, right = (each.environment.rows() for each in (base, other))
    for name, trait in ROWS.items():
        if left[name] != right[name] and not (trait.from_backend and base.spec.backend != other.spec.backend):
            yield Difference(name=name, base=left[name], other=right[name], kind="context")


def _doubts(base: Result, other: Result) -> Iterator[Difference]:
    """What happened to either that makes its time no answer."""
    statuses = [r.status for r in (base, other)]
    for result in (base, other):
        if result.failure is not None and result.failure.kind in ("same-answer", "nan"):
            yield Difference(
                name="same-answer check",
                base=statuses[0],
                other=statuses[1],
                kind="unfair",
                reason=result.failure.message,
            )
            break
    yield from _answers(base, other)
    proofs = ["–" if r.placement is None else "proven" if r.placement.verified else "not proven" for r in (base, other)]
    if "not proven" in proofs:
        result = base if proofs[0] == "not proven" else other
        reason = result.placement.reason if result.placement else None
        why = f"{result.spec.label} did not run where it claims" + (f": {reason}" if reason else "")
        yield Difference(name="placement", base=proofs[0], other=proofs[1], kind="unfair", reason=why)
    if statuses[0] != statuses[1]:
        yield Difference(name="status", base=statuses[0], other=statuses[1], kind="context")


def _answers(base: Result, other: Result) -> Iterator[Difference]:
    """First answers that differ: of two files to be known; of one computation measured apart, the end of comparing.

    Those of one group were held against each other when they were measured.
    """
    found = [next(iter(same_answer.with_losses(each)), None) for each in (base, other)]
    first, second = found
    if first is None or second is None:
        return
    shown = [", ".join(f"{value:.6g}" for value in each.first_losses) for each in (first, second)]
    if base.spec.file_sha256 != other.spec.file_sha256:
        if not same_answer.alike(first.first_losses, second.first_losses):
            yield Difference(name="first losses", base=shown[0], other=shown[1], kind="context")
        return
    tensorflow = [each.environment.tensorflow for each in (base, other)]
    apart = base.group != other.group and tensorflow[0] == tensorflow[1]
    if apart and same_answer.same_computation(base, other) and not same_answer.agree(first, second):
        why = "the same computation gave different answers, so they do not compute the same"
        yield Difference(name="first losses", base=shown[0], other=shown[1], kind="unfair", reason=why)


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return ", ".join(value) or "none"
    return value.model_dump() if hasattr(value, "model_dump") else value
