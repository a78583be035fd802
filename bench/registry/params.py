"""A workload's parameters: typed from what was written, refused with the name, the value and what is allowed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from pydantic import BaseModel, ValidationError

from bench.errors import SettingsError, UnknownName, WorkloadError
from bench.registry.user_file import named


class NoParams(BaseModel):
    """What a workload without `Params` has."""


def params_type(module: ModuleType) -> type[BaseModel]:
    """The workload's `Params`, or an empty model."""
    found = getattr(module, "Params", NoParams)
    if not (isinstance(found, type) and issubclass(found, BaseModel)):
        raise WorkloadError(
            f"Params of {named(module)} is not a pydantic model", "Write `class Params(pydantic.BaseModel)`."
        )
    return found


def parse_params(module: ModuleType, assignments: Mapping[str, Any]) -> BaseModel:
    """The workload's parameters, from what was assigned (strings are converted) and the defaults.

    Raises:
        UnknownName: it has no such parameter.
        SettingsError: a value is of the wrong type or out of range, or one without a default is missing.
    """
    kind = params_type(module)
    for name in assignments:
        if name not in kind.model_fields:
            raise UnknownName(
                "parameter", name, kind.model_fields, f"`devbench list {_called(module)}` says what it has."
            )
    values = dict(assignments)
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        structured = {str(e["loc"][0]) for e in error.errors() if e["loc"] and isinstance(e["input"], str)}
    for name in structured & values.keys():
        try:
            values[name] = json.loads(values[name])
        except ValueError:
            continue
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        raise _refused(kind, dict(assignments), error) from error


def _refused(kind: type[BaseModel], given: dict[str, Any], error: ValidationError) -> SettingsError:
    """The first thing that is wrong with the parameters, in words: name, value, what is allowed."""
    first = error.errors()[0]
    if not first["loc"]:
        return SettingsError(f"these parameters don't go together: {first['msg'].removeprefix('Value error, ')}")
    name = str(first["loc"][0])
    if first["type"] == "missing":
        return SettingsError(f"parameter {name} has no default", f"Give it: --param {name}=…")
    schema = kind.model_json_schema()["properties"].get(name, {})
    hint = kind.model_fields[name].description or ""
    said = allowed(schema)
    why = f"it is {said}" if said else first["msg"]
    return SettingsError(f"parameter {name}={given.get(name)!s} is not allowed: {why}", hint)


def _called(module: ModuleType) -> str:
    """How a workload is named on a command line."""
    own = Path(module.__file__ or "")
    return named(module).replace("_", "-") if own.parent.name == "workloads" else str(own)


def allowed(schema: Mapping[str, Any]) -> str:
    """A parameter's range in words, such as "a whole number, at least 1", from its JSON Schema; "" where none."""
    if "enum" in schema:
        return "one of " + ", ".join(map(str, schema["enum"]))
    kind = {"integer": "a whole number", "number": "a number", "boolean": "true or false"}.get(schema.get("type", ""))
    limits = {
        "minimum": "at least {}",
        "exclusiveMinimum": "more than {}",
        "maximum": "at most {}",
        "exclusiveMaximum": "less than {}",
    }
    bounds = " and ".join(text.format(f"{schema[key]:,}") for key, text in limits.items() if key in schema)
    return f"{kind}{', ' + bounds if bounds else ''}" if kind else ""
