"""What a workload offers once its parameters are filled in, taken from a module that is already imported.

For a built-in, this runs in the calling process; for a user's file, in the one that `python -m bench.registry` starts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
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
    """A workload with all its parameters filled in."""

    name: str
    file: str | None = Field(None, description="absolute path of a user's file; None for a built-in")
    sha256: str = Field(description="checksum of the source")
    params: dict[str, Any]
    cases: dict[str, dict[str, Any]]
    notes: list[str]
    not_on: dict[str, str]
    not_loops: dict[str, str]
    not_dtypes: dict[str, str]
    data: str | None = Field(description="name of the data set that it loads")
    offers: list[str] = Field(description="protocol functions that it defines")
    total_steps: int | None = Field(description="steps of the whole training, if known without the data")
    flops: float | None = Field(description="floating-point operations per step, by formula")
    examples: int | None = Field(description="examples per step")
    epochs: int | None
    module: str | None = Field(None, description="name of a module that runs as `python -m` runs it")

    @property
    def is_script(self) -> bool:
        """Whether it runs as Python would run it."""
        return "script" in self.offers


class ErrorDocument(BaseModel):
    """An error that the process which reads a user's file sends to its parent."""

    error: str
    message: str
    hint: str

    @classmethod
    def of(cls, error: DevbenchError) -> ErrorDocument:
        """Return the document of an error."""
        return cls(error=type(error).__name__, message=error.message, hint=error.hint)


class Inspection(BaseModel):
    """The description of a user's file."""

    params: dict[str, Any] = Field(description="JSON Schema of its Params")
    defaults: dict[str, Any]
    cases: dict[str, dict[str, Any]]
    offers: list[str]
    resolved: Resolved | ErrorDocument = Field(description="the workload with the given parameters")
    by_case: dict[str, Resolved | ErrorDocument] = Field(description="each case with the given parameters")


def resolve_module(
    module: ModuleType, assignments: Mapping[str, Any], name: str, source: Path, file: Path | None
) -> Resolved:
    """Fill in a workload's parameters.

    Args:
        module: the imported workload.
        assignments: parameters by name.
        name: the workload's name.
        source: its source file.
        file: the path of a user's file; None for a built-in.

    Raises:
        UnknownName, SettingsError: a parameter is unknown or has an invalid value.
        WorkloadError: a function or a case of the file is wrong.
    """
    p = parse_params(module, assignments)

    def call(function: str) -> Any:
        return user_file.call(module, function, p=p) if hasattr(module, function) else None

    def number(function: str) -> float | None:
        value = call(function)
        try:
            if value is None or math.isfinite(float(value)):
                return None if value is None else float(value)
        except (TypeError, ValueError):
            pass
        name = user_file.workload_name(module)
        raise WorkloadError(f"`{function}` of {name} returned {value!r:.80}, which is not a finite number")

    return Resolved(
        name=name,
        file=str(file) if file else None,
        sha256=user_file.checksum(source),
        params=p.model_dump(mode="json"),
        cases=_cases(module),
        notes=[*_texts(getattr(module, "NOTES", ())), *_texts(call("notes") or ())],
        not_on=_mapping(module, "NOT_ON"),
        not_loops=_mapping(module, "NOT_LOOPS"),
        not_dtypes=_mapping(module, "NOT_DTYPES"),
        data=getattr(module, "DATA", None),
        offers=_offers(module),
        total_steps=None if (steps := number("total_steps")) is None else int(steps),
        flops=number("flops"),
        examples=getattr(p, "batch", None),
        epochs=getattr(p, "epochs", None),
    )


def _texts(notes: str | Iterable[str]) -> list[str]:
    return [notes] if isinstance(notes, str) else list(notes)


def _mapping(module: ModuleType, constant: str) -> dict[str, Any]:
    """Return a constant of a workload that is a dict, empty if it has none.

    Raises:
        WorkloadError: it is something else.
    """
    value = getattr(module, constant, {})
    if not isinstance(value, Mapping):
        name = user_file.workload_name(module)
        raise WorkloadError(f"`{constant}` of {name} is a {type(value).__name__}, not a dict")
    return dict(value)


def _offers(module: ModuleType) -> list[str]:
    return [function for function in user_file.FUNCTIONS if hasattr(module, function)]


def _cases(module: ModuleType) -> dict[str, dict[str, Any]]:
    """Return the workload's cases. An unknown parameter or loop in one of them is an error of the file."""
    cases: dict[str, dict[str, Any]] = _mapping(module, "CASES")
    for case, values in cases.items():
        try:
            parse_params(module, case_params(values))
            if values.get("loop", LOOPS[0]) not in LOOPS:
                raise UnknownName("loop", values["loop"], LOOPS)
        except DevbenchError as error:
            name = user_file.workload_name(module)
            raise WorkloadError(f"case {case} of {name}: {error.message}", error.hint) from error
    return cases


def case_params(case: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of a case, without its loop."""
    return {name: value for name, value in case.items() if name != "loop"}


def error_from(document: ErrorDocument) -> DevbenchError:
    """Return the error as the other process raised it."""
    kind: type[DevbenchError] = getattr(errors, document.error, WorkloadError)
    error = kind.__new__(kind)  # not called, because `UnknownName` would compose another message
    DevbenchError.__init__(error, document.message, document.hint)
    return error


def inspect(file: Path, assignments: Mapping[str, Any]) -> Inspection:
    """Import a user's file and describe it and each of its cases. Runs in the separate process."""
    module = user_file.load(file)
    kind = params_type(module)
    cases = _cases(module)

    def resolve(case: Mapping[str, Any]) -> Resolved | ErrorDocument:
        try:
            return resolve_module(module, {**case_params(case), **assignments}, file.stem, file, file)
        except DevbenchError as error:
            return ErrorDocument.of(error)

    return Inspection(
        params=kind.model_json_schema(),
        defaults={
            name: field.get_default(call_default_factory=True)
            for name, field in kind.model_fields.items()
            if not field.is_required()
        },
        cases=cases,
        offers=_offers(module),
        resolved=resolve({}),
        by_case={name: resolve(case) for name, case in cases.items()},
    )
