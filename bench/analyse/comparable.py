"""Whether two results can be compared fairly, along which axis, and what else differs.

Two specs may differ in one thing, which is the axis of the comparison: the backend, the loop, a parameter, or the
user's file. What comes with the machine, such as the version of TensorFlow, is the context. Any other difference makes
the comparison unfair.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from bench.analyse import same_answer
from bench.machine.installed import TENSORFLOWS
from bench.model.comparison import FIRST_LOSSES, PYTHON_ENVIRONMENT, Difference
from bench.model.environment import ROWS
from bench.model.placement import Placement
from bench.model.result import Result
from bench.model.spec import ROLES, Env

AXES = tuple(name for name, role in ROLES.items() if role.compare == "axis")
"""Fields of a spec that decide how the same work is done. Any one of them can be the axis."""

SECONDARY = tuple(name for name, role in ROLES.items() if role.compare == "secondary")
"""Fields of a spec that come with the machine or change no time by themselves.

Such a field is the axis only if the specs differ in nothing else.
"""


def differences(base: Result, other: Result) -> list[Difference]:
    """Return all differences of two results: first the axis, then what makes them unfair, then the context."""
    program = list(_program(base, other))
    # Another file or case brings its own loop and parameters, so differences in these are context. Another checkout may
    # have other modules, which define the parameters.
    other_program = any(difference.kind == "axis" for difference in program)
    other_params = other_program or base.spec.checkout != other.spec.checkout
    diffs = [
        *program,
        *_execution(base, other, other_program),
        *_params(base, other, other_params),
        *_data(base, other, other_program),
    ]
    _refuse_several_axes(diffs)
    if base.group != other.group:
        times = [f"{result.created:%Y-%m-%d %H:%M} UTC" for result in (base, other)]
        diffs.append(Difference(name="date", base=times[0], other=times[1], kind="context"))
    diffs += _secondary(base, other, alone=not any(difference.kind in ("axis", "unfair") for difference in diffs))
    diffs += _environment(base, other)
    diffs += _checks(base, other)
    return sorted(diffs, key=lambda difference: ("axis", "unfair", "context").index(difference.kind))


def axis(diffs: Iterable[Difference]) -> str | None:
    """Return the name of the axis; None if the specs are the same."""
    return next((difference.name for difference in diffs if difference.kind == "axis"), None)


def _program(base: Result, other: Result) -> Iterator[Difference]:
    """Yield the difference of the programs, or of the cases of one program."""
    a, b = base.spec, other.spec
    if a.file is not None and b.file is not None and a.file_sha256 != b.file_sha256:
        yield Difference(name="file", base=a.file, other=b.file, kind="axis")
    elif a.workload != b.workload:
        reason = "they are different programs; only two files of your own can be compared"
        yield Difference(name="workload", base=a.workload, other=b.workload, kind="unfair", reason=reason)
    elif a.file_sha256 != b.file_sha256:
        short = [(digest or "")[:12] for digest in (a.file_sha256, b.file_sha256)]
        yield Difference(name="workload's source", base=short[0], other=short[1], kind="context")
    elif a.case != b.case:
        # A case only names parameters and a loop. Without another name or other values, the work is the same.
        other_case = None not in (a.case, b.case) and (a.params, a.loop) != (b.params, b.loop)
        yield Difference(name="case", base=a.case, other=b.case, kind="axis" if other_case else "context")


def _execution(base: Result, other: Result, other_program: bool) -> Iterator[Difference]:
    """Yield differences in how the work is done.

    If the loops differ and one of them decides about XLA itself, a difference in XLA is context.
    """
    a, b = base.spec, other.spec
    for name in AXES:
        left, right = getattr(a, name), getattr(b, name)
        implied = (name == "xla" and a.loop != b.loop and None in (left, right)) or (name == "loop" and other_program)
        if name == "env":
            yield from _env(left, right)
        elif name == "checkout" and a.file_sha256 != b.file_sha256:
            continue  # the files are the axis
        elif left != right:
            kind = "context" if implied else "axis"
            yield Difference(name=name, base=_json_value(left), other=_json_value(right), kind=kind)


def _env(base: Env | None, other: Env | None) -> Iterator[Difference]:
    """Yield the difference of two Python environments, and the packages that differ between them."""
    if (base and base.name, base and base.sha256) == (other and other.name, other and other.sha256):
        return
    names = [env.name if env else "devbench's environment" for env in (base, other)]
    yield Difference(name=PYTHON_ENVIRONMENT, base=names[0], other=names[1], kind="axis")
    if base is None or other is None:
        return
    # TensorFlow is left out, because its version is a row of the machine.
    sides = [{k: v for k, v in env.packages.items() if k not in TENSORFLOWS} for env in (base, other)]
    changed = sorted(name for name in sides[0].keys() & sides[1].keys() if sides[0][name] != sides[1][name])
    if changed:
        versions = [", ".join(f"{name} {side[name]}" for name in changed) for side in sides]
        yield Difference(name="packages", base=versions[0], other=versions[1], kind="context")
    if sides[0].keys() != sides[1].keys():
        only = [", ".join(sorted(a.keys() - b.keys())) or None for a, b in (sides, sides[::-1])]
        yield Difference(name="packages in one environment only", base=only[0], other=only[1], kind="context")


def _params(base: Result, other: Result, other_params: bool) -> Iterator[Difference]:
    a, b = base.spec.params, other.spec.params
    for name in dict.fromkeys([*a, *b]):
        if a.get(name) != b.get(name):
            yield Difference(name=name, base=a.get(name), other=b.get(name), kind="context" if other_params else "axis")


def _data(base: Result, other: Result, other_program: bool) -> Iterator[Difference]:
    """Yield the difference of the data. Another file or case may read another data set of the same kind."""
    a, b = base.spec.data, other.spec.data
    if (a.kind, a.name, a.sha256) == (b.kind, b.name, b.sha256):
        return
    left, right = (f"{data.kind} {data.name or ''} {(data.sha256 or '')[:12]}".strip() for data in (a, b))
    if other_program and a.kind == b.kind and a.name != b.name:
        yield Difference(name="data", base=left, other=right, kind="context")
    else:
        yield Difference(name="data", base=left, other=right, kind="unfair", reason="they read different data")


def _refuse_several_axes(diffs: Iterable[Difference]) -> None:
    """Turn several axes into unfair differences: the ratio could not be attributed to one of them."""
    axes = [difference for difference in diffs if difference.kind == "axis"]
    if len(axes) > 1:
        names = " and ".join(difference.name for difference in axes)
        for difference in axes:
            difference.kind = "unfair"
            difference.reason = f"{names} differ, so the ratio cannot be attributed to one of them"


def _secondary(base: Result, other: Result, alone: bool) -> Iterator[Difference]:
    names = [name for name in SECONDARY if getattr(base.spec, name) != getattr(other.spec, name)]
    for name in names:
        left, right = (_json_value(getattr(result.spec, name)) for result in (base, other))
        yield Difference(name=name, base=left, other=right, kind="axis" if alone and len(names) == 1 else "context")


def _environment(base: Result, other: Result) -> Iterator[Difference]:
    """Yield differences of the machines. What comes with a backend is left out if the backends differ."""
    left, right = (result.environment.rows() for result in (base, other))
    for name, trait in ROWS.items():
        if left[name] != right[name] and not (trait.from_backend and base.spec.backend != other.spec.backend):
            yield Difference(name=name, base=left[name], other=right[name], kind="context")


def _checks(base: Result, other: Result) -> Iterator[Difference]:
    """Yield differences in the checks (same-answer, first losses, placement) and in the status."""
    left, right = base.status, other.status
    for result in (base, other):
        failure = result.failure
        if failure is not None and failure.kind in ("same-answer", "nan"):
            yield Difference(name="same-answer check", base=left, other=right, kind="unfair", reason=failure.message)
            break
    yield from _first_losses(base, other)
    for result in (base, other):
        placement = result.placement
        if placement is not None and not placement.verified:
            reason = f"{result.spec.label} did not run where it was asked to"
            reason += f": {placement.reason}" if placement.reason else ""
            checks = [_check(result.placement) for result in (base, other)]
            yield Difference(name="placement", base=checks[0], other=checks[1], kind="unfair", reason=reason)
            break
    if left != right:
        yield Difference(name="status", base=left, other=right, kind="context")


def _check(placement: Placement | None) -> str:
    return "not checked" if placement is None else "verified" if placement.verified else "not verified"


def _first_losses(base: Result, other: Result) -> Iterator[Difference]:
    """Yield first losses that differ.

    Two files or checkouts may compute different things, so a difference in their losses is context. The same
    computation must have the same losses. Within a group, the same-answer check has compared them already.
    """
    first, second = (next(iter(same_answer.samples_with_losses(result)), None) for result in (base, other))
    if first is None or second is None:
        return
    left, right = (", ".join(f"{loss:.6g}" for loss in sample.first_losses) for sample in (first, second))
    if (base.spec.file_sha256, base.spec.checkout) != (other.spec.file_sha256, other.spec.checkout):
        if not same_answer.equal_losses(first.first_losses, second.first_losses):
            yield Difference(name=FIRST_LOSSES, base=left, other=right, kind="context")
        return
    separate = base.group != other.group and base.environment.tensorflow == other.environment.tensorflow
    if separate and same_answer.same_computation(base, other) and not same_answer.losses_agree(first, second):
        reason = "they compute different first losses, so they do not compute the same"
        yield Difference(name=FIRST_LOSSES, base=left, other=right, kind="unfair", reason=reason)


def _json_value(value: Any) -> Any:
    """Return a value of a spec as a text or as JSON types."""
    if isinstance(value, tuple):
        return ", ".join(value) or "none"
    return value.model_dump() if hasattr(value, "model_dump") else value
