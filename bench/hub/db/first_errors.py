"""Validators that stop at the first wrong item of a list or a mapping.

pydantic collects all errors of a document, although the hub names only one. A document of 11 MB can have six million
errors, which took 20 s and 2.6 GB.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from pydantic import BaseModel
from pydantic_core import SchemaError, SchemaValidator

CONTAINERS = frozenset({"dict", "list", "set", "tuple"})
"""Types of schemas whose validation can stop at the first error."""


@cache
def validator(model: type[BaseModel]) -> Any:
    """Return the validator of a model, whose methods are `validate_json` and `validate_python`."""
    schema = _failing_fast(model.__pydantic_core_schema__)
    try:
        # Otherwise the parts of the model would be validated by their own validators, which collect all errors.
        return SchemaValidator(schema, _use_prebuilt=False)
    except (SchemaError, TypeError):  # an older pydantic, which cannot stop early
        return model.__pydantic_validator__


def _failing_fast(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_failing_fast(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    copy = {name: _failing_fast(value) for name, value in schema.items()}
    has_items = {"items_schema", "keys_schema"} & copy.keys()
    return {**copy, "fail_fast": True} if has_items and copy.get("type") in CONTAINERS else copy
