"""What a workload says of itself once its parameters are filled in; asked of a module that is already imported.

For a built-in that is this process, for a user's file the short-lived one that `python -m bench.registry` starts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from pydantic import BaseModel, Field

from bench import errors
from bench.errors import DevbenchError, UnknownName, WorkloadError
from bench.model.spec import LOOPS
from bench.registry import user_file
from bench.registry.params import params_type, parse_params


class Resolved(BaseModel):
    """A workload with every parameter filled in."""

    name: str
    file: str | None = Field(None, description="absolute path of a user's file; none for a built-in")
    sha256: str = Field(description="checksum of the source")
    params: dict[str, Any]
    cases: dict[str, dict[str, Any]]
    notes: list[str]
    not_on: dict[str, str]
    not_loops: dict[str, str]
    not_dtypes: dict[str, str]
    data: str | None = Field(description="data set that it loads")
    offers: list[str] = Field(description="protocol functions that it has")
    total_steps: int | None = Field(description="steps of the whole program, where they can be told without its data")
    flops: float | None = Field(description="operations of one step by formula")
    examples: int | None = Field(description="examples a step")
    epochs: int | None


class Problem(BaseModel):
    """An error on its way from the process that read a user's file."""

    error: str
    message: str
    hint: str


class Inspection(BaseModel):
    """What a user's file says of itself."""

    params: dict[str, Any] = Field(description="JSON Schema of its Params")
    defaults: dict[str, Any]
    cases: dict[str, dict[str, Any]]
    offers: list[str]
    resolved: Resolved | Problem = Field(description="with the assignments that were asked for")
    by_case: dict[str, Resolved | Problem] = Field(description="the same, each case under the assignments")


def answer(module: ModuleType, given: Mapping[str, Any], name: str, source: Path, file: Path | None) -> Resolved:
    """A workload with the parameters `given`; `file` is none for a built-in.

    Raises:
        UnknownName, SettingsError: a parameter can't be.
        WorkloadError: a function or a case of the file is wrong.
    """
    p = parse_params(module, given)

    def told(function: str) -> Any:
        return user_file.call(module, function, p=p) if hasattr(module, function) else None

    constant = getattr(module, "NOTES", ())
    notes = [constant] if isinstance(constant, str) else list(constant)
    steps, flops = told("total_steps"), told("flops")
    return Resolved(
        name=name,
        file=str(file) if file else None,
        sha256=user_file.checksum(source),
        params=p.model_dump(mode="json"),
        cases=_cases(module),
        notes=[*notes, *(told("notes") or ())],
        not_on=getattr(module, "NOT_ON", {}),
        not_loops=getattr(module, "NOT_LOOPS", {}),
        not_dtypes=getattr(module, "NOT_DTYPES", {}),
        data=getattr(module, "DATA", None),
        offers=[function for function in user_file.FUNCTIONS if hasattr(module, function)],
        total_steps=None if steps is None else int(steps),
        flops=None if flops is None else float(flops),
        examples=getattr(p, "batch", None),
        epochs=getattr(p, "epochs", None),
    )


def _cases(module: ModuleType) -> dict[str, dict[str, Any]]:
    """The workload's presets, each checked: a misspelt parameter or loop in one is the file's error."""
    cases: dict[str, dict[str, Any]] = getattr(module, "CASES", {})
    for case, values in cases.items():
        try:
            parse_params(module, params_of(values))
            if values.get("loop", LOOPS[0]) not in LOOPS:
                raise UnknownName("loop", values["loop"], LOOPS)
        except DevbenchError as error:
            raise WorkloadError(f"case {case} of {user_file.named(module)}: {error.message}", error.hint) from error
    return cases


def params_of(case: Mapping[str, Any]) -> dict[str, Any]:
    """A preset without its loop."""
    return {key: value for key, value in case.items() if key != "loop"}


def error_of(problem: Problem) -> DevbenchError:
    """The error as it was raised over there. `UnknownName` makes its own text, so it is filled in afterwards."""
    kind: type[DevbenchError] = getattr(errors, problem.error, WorkloadError)
    error = kind.__new__(kind)
    DevbenchError.__init__(error, problem.message, problem.hint)
    return error


def _attempt(work: Callable[[], Resolved]) -> Resolved | Problem:
    try:
        return work()
    except DevbenchError as error:
        return Problem(error=type(error).__name__, message=error.message, hint=error.hint)


def inspect(file: Path, given: Mapping[str, Any]) -> Inspection:
    """In the process of its own: loads the file, and answers for it and each of its cases."""
    module = user_file.load(file)
    kind = params_type(module)
    cases = _cases(module)

    def under(case: Mapping[str, Any]) -> Resolved | Problem:
        return _attempt(lambda: answer(module, {**params_of(case), **given}, file.stem, file, file))

    return Inspection(
        params=kind.model_json_schema(),
        defaults={
            n: f.get_default(call_default_factory=True) for n, f in kind.model_fields.items() if not f.is_required()
        },
        cases=cases,
        offers=[function for function in user_file.FUNCTIONS if hasattr(module, function)],
        resolved=under({}),
        by_case={name: under(case) for name, case in cases.items()},
    )
