"""Options that are made from settings, and options that several commands share."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal, get_args, get_origin

import typer
from pydantic.fields import FieldInfo
from typer.models import ArgumentInfo

from bench.cli.command import announce
from bench.cli.completion import completer
from bench.config import settings_errors, syntax
from bench.config.base import FILE, FILE_VARIABLE, Settings
from bench.config.notation import default, is_list, notation_of, option
from bench.config.settings import RunSettings, groups, load, misspelled_variables
from bench.errors import SettingsError

HUB = RunSettings.variable("hub")
TOKEN_FILE = RunSettings.variable("hub_token_file")

HubUrl = Annotated[str | None, typer.Option(metavar="URL", help=f"URL of the hub. [env: {HUB}]", envvar=HUB)]
TokenFile = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help=f"File with the token for the hub. [env: {TOKEN_FILE}]", envvar=TOKEN_FILE),
]


def with_settings(
    function: Callable[..., None], names: Iterable[str] | None = None, texts: Mapping[str, str] = MappingProxyType({})
) -> Callable[..., None]:
    """Add the options of settings and `--config` to a command. The function gets them as one argument, `settings`.

    Args:
        function: The function of the command. It takes `settings: RunSettings` and parameters of its own.
        names: Fields of `RunSettings` that become options. Default: all of them, by group.
        texts: Help texts, by setting, for settings that have another meaning or default in this command.

    Returns:
        The function to register with Typer.
    """
    own = own_parameters(function)
    chosen = list(names if names is not None else RunSettings.model_fields)

    @functools.wraps(function)
    def call(**values: Any) -> None:
        options = {name: values.pop(name) for name in chosen}
        config = values.pop("config")
        # A list option that was not used is empty, not None, in some versions of Typer.
        settings = load(config, **{name: value for name, value in options.items() if value not in (None, [], ())})
        _warn_of_misspelled_variables()
        function(settings=settings, **values)

    if names is not None:
        parameters = [*own, *(parameter(RunSettings, name, text=texts.get(name)) for name in chosen)]
    else:
        arguments = [argument for argument in own if _is_argument(argument)]
        grouped = [
            parameter(RunSettings, name, title, texts.get(name)) for title, names in groups().items() for name in names
        ]
        parameters = [*arguments, *grouped, *(option for option in own if option not in arguments)]
    return with_parameters(call, [*parameters, config_parameter()])


def _is_argument(parameter: inspect.Parameter) -> bool:
    """Return whether a parameter is an argument, not an option."""
    return any(isinstance(item, ArgumentInfo) for item in getattr(parameter.annotation, "__metadata__", ()))


def own_parameters(function: Callable[..., None]) -> list[inspect.Parameter]:
    """Return the parameters of a function except `settings`."""
    parameters = inspect.signature(function, eval_str=True).parameters
    return [parameter for name, parameter in parameters.items() if name != "settings"]


def with_parameters(call: Callable[..., None], parameters: list[inspect.Parameter]) -> Callable[..., None]:
    """Set the signature of a function to these parameters, from which Typer makes the options, and return it."""
    call.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in parameters]
    )
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return call


def _warn_of_misspelled_variables() -> None:
    for name, meant in misspelled_variables(os.environ).items():
        announce(f"warning: {name} is not a devbench variable and is ignored. Did you mean {meant}?")


def parameter(kind: type[Settings], name: str, title: str | None = None, text: str | None = None) -> inspect.Parameter:
    """Return the option of a setting, as a parameter of a function.

    The value stays text, because options, variables and the settings file share one syntax.

    Args:
        kind: The class that declares the setting.
        name: The name of the setting.
        title: The title of the option's group in the help. Default: no group.
        text: A help text that includes the default. Default: the description of the setting.
    """
    field = kind.model_fields[name]
    value: Any = bool if field.annotation is bool else list[str] if is_list(field) else str
    declared = f"{option(name)}/{option(f'no_{name}')}" if value is bool else option(name)
    made = typer.Option(
        declared,
        metavar=None if value is bool else _metavar(name, field),
        help=describe(field, kind.variable(name)) if text is None else f"{text} [env: {kind.variable(name)}]",
        autocompletion=completer(name, field),
        rich_help_panel=title,
    )
    return _keyword(name, Annotated[value | None, made])


def describe(field: FieldInfo, variable: str) -> str:
    """Return the help of a setting: its description, allowed names, default and environment variable."""
    value, notation = default(field), notation_of(field)
    parts = [field.description or ""]
    if notation and notation.names:
        parts.append(f"Choose from {', '.join(notation.names())}.")
    if value:
        parts.append(f"Default: {value}.")
    return " ".join([*parts, f"[env: {variable}]"])


def config_parameter() -> inspect.Parameter:
    """Return the option `--config`."""
    text = f"Settings file. Default: {FILE}, if it exists. [env: {FILE_VARIABLE}]"
    return _keyword("config", Annotated[str | None, typer.Option("--config", metavar="FILE", help=text)])


def required_hub(hub: str | None) -> str:
    """Return the URL of the hub.

    Raises:
        SettingsError: No hub is set.
    """
    if not hub:
        raise SettingsError("no hub is set", f"Use --hub URL or {HUB}.")
    return hub


def duration(text: str, option: str) -> float:
    """Return the value of an option that takes a time, in seconds.

    Raises:
        SettingsError: The text is not a time.
    """
    try:
        return syntax.seconds(text)
    except ValueError as error:
        raise settings_errors.invalid(text, option, str(error)) from None


def _keyword(name: str, annotation: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


def _metavar(name: str, field: FieldInfo) -> str:
    if name.endswith("_file"):
        return "FILE"
    if notation := notation_of(field):
        return notation.metavar
    if get_origin(field.annotation) is Literal:
        return "[" + "|".join(get_args(field.annotation)) + "]"
    kinds = [field.annotation, *get_args(field.annotation)]
    return "N" if int in kinds else "DIR" if Path in kinds else "TEXT"
