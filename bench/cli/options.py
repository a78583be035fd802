"""Options made from the settings: each field's name, description, default and variable, never written twice."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

import typer
from pydantic.fields import FieldInfo

from bench.config.settings import FILE, FILE_VARIABLE, RunSettings, default, form, load, mistyped, option, variable


def with_settings(function: Callable[..., None], names: Iterable[str] | None = None) -> Callable[..., None]:
    """Gives a function the options of the named settings (or all) and `--config`, gathered as one argument.

    Args:
        function: takes `settings: RunSettings` by name, beside parameters of its own.
        names: fields of RunSettings; all of them without it.
    """
    own = [each for each in inspect.signature(function, eval_str=True).parameters.values() if each.name != "settings"]
    chosen = list(names if names is not None else RunSettings.model_fields)

    @functools.wraps(function)
    def call(**given: Any) -> None:
        asked = {name: given.pop(name) for name in chosen}
        config = given.pop("config")
        # A list option that was not given is empty, not None, in some versions of Typer.
        settings = load(config, **{name: value for name, value in asked.items() if value not in (None, [], ())})
        _warn()
        function(settings=settings, **given)

    options = [parameter(name, RunSettings.model_fields[name], variable(name)) for name in chosen]
    parameters = [*own, *options, _config()]
    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {each.name: each.annotation for each in parameters}
    return call


def _warn() -> None:
    for wrong, right in mistyped(os.environ).items():
        typer.echo(f"warning: {wrong} is no setting and is not read; did you mean {right}?", err=True)


def parameter(name: str, field: FieldInfo, origin: str) -> inspect.Parameter:
    """One option. Its value stays text, for the settings to read, so that every place teaches the same syntax.

    Args:
        name: of the setting.
        field: the setting.
        origin: the variable that gives it too.
    """
    kind: Any = str
    if field.annotation is bool:
        kind = bool
    elif get_origin(field.annotation) in (tuple, dict):
        kind = list[str]
    declared = f"{option(name)}/{option('no_' + name)}" if kind is bool else option(name)
    metavar = None if kind is bool else "FILE" if name.endswith("_file") else _metavar(field)
    made = typer.Option(declared, metavar=metavar, help=_help(field, origin), show_default=False)
    return _keyword(name, Annotated[kind | None, made])


def _config() -> inspect.Parameter:
    text = f"Settings file. [default: {FILE}, if there; {FILE_VARIABLE}]"
    made = typer.Option("--config", metavar="FILE", help=text, show_default=False)
    return _keyword("config", Annotated[str | None, made])


def _keyword(name: str, annotation: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


def _metavar(field: FieldInfo) -> str:
    shape = form(field)
    if shape:
        return shape.metavar
    kinds = [field.annotation, *get_args(field.annotation)]
    if get_origin(field.annotation) is Literal:
        return "[" + "|".join(get_args(field.annotation)) + "]"
    return "N" if int in kinds else "DIR" if Path in kinds else "TEXT"


def _help(field: FieldInfo, origin: str) -> str:
    """The description with what applies if nothing is given, and the variable that could give it."""
    written = default(field)
    return f"{field.description} [{f'default: {written}; ' if written else ''}{origin}]"
