"""The fields of a result as Markdown: a section per model, made from the models' descriptions."""

from __future__ import annotations

import types
from collections.abc import Iterator
from datetime import datetime
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from bench.model.result import Result
from docs.tables import NONE, table

PLAIN = {bool: "true or false", int: "integer", float: "number", str: "text", datetime: "time"}


def result_fields() -> str:
    """Return a section for `Result` and for each model in it, in the order in which they are met."""
    return "\n".join(f"### {model.__name__}\n\n{summary(model)}\n\n{fields(model)}" for model in models(Result))


def models(root: type[BaseModel]) -> list[type[BaseModel]]:
    """Return a model and all models in it, breadth first."""
    collected = [root]
    for model in collected:
        for field in model.model_fields.values():
            collected += [inner for inner in _models(field.annotation) if inner not in collected]
    return collected


def fields(model: type[BaseModel]) -> str:
    """Return the table of a model's fields: name, type and meaning."""
    rows = ((f"`{name}`", _type(field.annotation), meaning(field)) for name, field in model.model_fields.items())
    return table(("field", "type", "meaning"), rows)


def meaning(field: FieldInfo) -> str:
    """Return a field's description, or else the summary of the model that it holds; "–" if there is neither."""
    if field.description:
        return field.description.replace("None if", "null if")
    held = next(_models(field.annotation), None)
    return summary(held) if held else NONE


def summary(model: type[BaseModel]) -> str:
    """Return the first paragraph of a model's docstring."""
    return " ".join((model.__doc__ or "").partition("\n\n")[0].replace("None if", "null if").split())


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _models(argument)


def _type(annotation: Any) -> str:
    """Return a type as a reader of JSON names it."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _type(arguments[0])
    if origin in (Union, types.UnionType):
        return " or ".join("null" if argument is type(None) else _type(argument) for argument in arguments)
    if origin is Literal:
        return ", ".join(f"`{argument}`" for argument in arguments)
    if origin in (list, tuple):
        return f"list of {_type(arguments[0])}"
    if origin is dict:
        return f"map to {_type(arguments[1])}"
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return f"[{annotation.__name__}](#{annotation.__name__.lower()})"
    return PLAIN.get(annotation, "any")
