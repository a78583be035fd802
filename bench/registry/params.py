"""A workload's parameters: converts text to their types, and refuses invalid values."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from pydantic import BaseModel, ValidationError

from bench.errors import SettingsError, UnknownName, WorkloadError
from bench.registry.user_file import workload_name

_BOUNDS = {
    "minimum": "at least {}",
    "exclusiveMinimum": "greater than {}",
    "maximum": "at most {}",
    "exclusiveMaximum": "less than {}",
}
"""Words for the bounds in a JSON Schema."""


class NoParams(BaseModel):
    """The parameters of a workload without `Params`."""


def params_type(module: ModuleType) -> type[BaseModel]:
    """Return the workload's `Params`, or an empty model.

    Raises:
        WorkloadError: `Params` is not a pydantic model.
    """
    kind = getattr(module, "Params", NoParams)
    if not (isinstance(kind, type) and issubclass(kind, BaseModel)):
        message = f"Params of {workload_name(module)} is not a pydantic model"
        raise WorkloadError(message, "Write `class Params(pydantic.BaseModel)`.")
    return kind


def parse_params(module: ModuleType, assignments: Mapping[str, Any]) -> BaseModel:
    """Return the workload's parameters: the given values, with text converted, and the defaults.

    Raises:
        UnknownName: the workload has no such parameter.
        SettingsError: a value has the wrong type or is out of range, or a parameter without a default is missing.
    """
    kind = params_type(module)
    for name in assignments:
        if name not in kind.model_fields:
            hint = f"`devbench list {_command_line_name(module)}` shows all of them."
            raise UnknownName("parameter", name, kind.model_fields, hint)
    values = dict(assignments)
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        structured = {str(e["loc"][0]) for e in error.errors() if e["loc"] and isinstance(e["input"], str)}
    for name in structured & values.keys():  # text of another type may be JSON, such as "[4, 8]" for a list
        try:
            values[name] = json.loads(values[name])
        except ValueError:
            continue
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        raise _settings_error(kind, dict(assignments), error) from error


def _settings_error(kind: type[BaseModel], assignments: dict[str, Any], error: ValidationError) -> SettingsError:
    """Describe the first invalid parameter: its name, its value and what is allowed."""
    first = error.errors()[0]
    if not first["loc"]:
        reason = first["msg"].removeprefix("Value error, ")
        return SettingsError(f"these parameters do not fit together: {reason}")
    name = str(first["loc"][0])
    if first["type"] == "missing":
        return SettingsError(f"parameter {name} has no default", f"Set it: --param {name}=…")
    schema = kind.model_json_schema()["properties"].get(name, {})
    description = kind.model_fields[name].description
    use = f"Use {values}" if (values := allowed_values(schema)) else first["msg"]
    hint = f"{use}: {description}." if description else f"{use}."
    return SettingsError(f"invalid value '{assignments.get(name)!s}' for parameter {name}", hint)


def _command_line_name(module: ModuleType) -> str:
    """Return how to name a workload on the command line."""
    path = Path(module.__file__ or "")
    return workload_name(module).replace("_", "-") if path.parent.name == "workloads" else str(path)


def allowed_values(schema: Mapping[str, Any]) -> str:
    """Return what a parameter's JSON Schema allows, such as "a whole number from 1 to 8"; "" if it sets no bounds."""
    if "enum" in schema:
        return "one of " + ", ".join(map(str, schema["enum"]))
    kind = {"integer": "a whole number", "number": "a number", "boolean": "true or false"}.get(schema.get("type", ""))
    if not kind:
        return ""
    limits = {name: f"{schema[name]:,}" for name in _BOUNDS if name in schema}
    if limits.keys() == {"minimum", "maximum"}:
        return f"{kind} from {limits['minimum']} to {limits['maximum']}"
    bounds = " and ".join(_BOUNDS[name].format(limit) for name, limit in limits.items())
    return f"{kind} of {bounds}" if bounds.startswith("at") else f"{kind} {bounds}".rstrip()
