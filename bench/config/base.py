"""The base of all settings: the sources of values, their precedence and their errors.

An option wins over its environment variable, the variable over the settings file, and the file over the default.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from pydantic import ValidationError, field_validator
from pydantic.fields import FieldInfo
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from bench.config import settings_errors, syntax
from bench.config.notation import option
from bench.errors import SettingsError, nearest

PREFIX = "DEVBENCH_"
FILE = Path("devbench.toml")
FILE_VARIABLE = PREFIX + "CONFIG"

HUB_TABLE = "server"
"""Table of the settings file that holds the settings of `devbench hub`."""

_file: ContextVar[Path | None] = ContextVar("_file", default=None)
"""The settings file of the current call of `load`. pydantic passes no arguments to `settings_customise_sources`."""


class Settings(BaseSettings):
    """Base of `RunSettings` and `HubSettings`."""

    model_config = SettingsConfigDict(env_ignore_empty=True, extra="forbid", frozen=True)

    TABLE: ClassVar[str] = ""
    """Table of the settings file that holds these settings. "" is the top of the file."""

    MERGED: ClassVar[Mapping[str, Callable[[object], dict[str, str]]]] = {}
    """Settings that are tables and are merged over all sources, entry by entry, each with its reader."""

    @field_validator("*")
    @classmethod
    def expand_home(cls, value: Any) -> Any:
        """Replace `~` at the beginning of a path. A shell does not do so in `--output=~/results` or in a file."""
        return syntax.expanded(value) if isinstance(value, Path) else value

    @classmethod
    def variable(cls, name: str) -> str:
        """Return the environment variable of a setting: "DEVBENCH_DATA_DIR" for data_dir."""
        return f"{cls.model_config['env_prefix']}{name.upper()}"

    @classmethod
    def key(cls, name: str, file: Path | None) -> str:
        """Return the name of a key of the settings file in an error."""
        return f"'{name}' under [{cls.TABLE}] in {file}" if cls.TABLE else f"'{name}' in {file}"

    @classmethod
    def last_sources(cls) -> tuple[PydanticBaseSettingsSource, ...]:
        """Return further sources of defaults. The settings file takes precedence over them."""
        return ()

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Return the sources in the order of precedence."""
        file = _file.get()
        files = [_File(cls, file)] if file else []
        return (init_settings, _EnvironmentVariables(cls), *files, *cls.last_sources())


S = TypeVar("S", bound=Settings)


def load(kind: type[S], config: str | Path | None, options: Mapping[str, Any]) -> S:
    """Gather settings from all sources.

    Args:
        kind: Which settings.
        config: Settings file. Default: `DEVBENCH_CONFIG`, or `devbench.toml` in the working directory, if it exists.
        options: Values that were set explicitly. None counts as not set.

    Raises:
        SettingsError: A name or a value is wrong, in any of the sources.
    """
    values = {name: value for name, value in options.items() if value is not None}
    for name in values:
        if name not in kind.model_fields:
            raise SettingsError(f"unknown setting '{name}'", nearest(name, kind.model_fields))
        values[name] = _merge(kind, name, values[name], option(name))
    file = _settings_file(config)
    token = _file.set(file)
    try:
        return kind(**values)
    except ValidationError as error:
        raise settings_errors.from_validation(error, _origin(kind, values, file)) from None
    finally:
        _file.reset(token)


def _settings_file(config: str | Path | None) -> Path | None:
    """Return the settings file: the named one, which must exist, or else `devbench.toml` if it exists."""
    name = config or os.environ.get(FILE_VARIABLE)
    if not name:
        return FILE if _is_file(FILE) else None
    origin = "--config" if config else FILE_VARIABLE
    try:
        path = syntax.expanded(Path(name))
    except ValueError as error:
        raise settings_errors.invalid(name, origin, str(error)) from None
    if not _is_file(path):
        raise SettingsError(f"no settings file at {path}", f"Check {origin}.")
    return path


def _is_file(path: Path) -> bool:
    """Return whether there is a file.

    Raises:
        SettingsError: Its folder cannot be read.
    """
    try:
        return path.is_file()
    except OSError as error:
        raise _unreadable(path, error) from None


def _unreadable(path: Path, error: OSError) -> SettingsError:
    return SettingsError(f"cannot read {path}: {error.strerror}", "Check its permissions.")


def _merge(kind: type[Settings], name: str, value: object, origin: str) -> object:
    """Return a value of a setting, converted to a table if the setting is in `MERGED`.

    Raises:
        SettingsError: The value cannot be converted.
    """
    if name not in kind.MERGED:
        return value
    try:
        return kind.MERGED[name](value)
    except ValueError as error:
        raise settings_errors.invalid(value, origin, str(error)) from None


def _origin(kind: type[Settings], options: Mapping[str, Any], file: Path | None) -> Callable[[str], str]:
    """Return a function that names the source of a setting's value."""
    variables = {name.upper() for name, value in os.environ.items() if value}

    def origin(name: str) -> str:
        if name in options:
            return option(name)
        variable = kind.variable(name)
        return variable if variable in variables else kind.key(name, file)

    return origin


class _EnvironmentVariables(EnvSettingsSource):
    """The environment variables."""

    def __init__(self, kind: type[Settings]) -> None:
        self.kind = kind
        super().__init__(kind)

    def prepare_field_value(self, field_name: str, field: FieldInfo, value: Any, value_is_complex: bool) -> Any:
        if field_name in self.kind.MERGED and value is not None:
            return _merge(self.kind, field_name, value, self.kind.variable(field_name))
        return super().prepare_field_value(field_name, field, value, value_is_complex)


class _File(TomlConfigSettingsSource):
    """The settings file. An unknown key is an error."""

    def __init__(self, kind: type[Settings], file: Path) -> None:
        try:
            super().__init__(kind, file)
        except ValueError as error:  # a TOMLDecodeError, or bytes that are not UTF-8
            raise SettingsError(f"{file} is not valid TOML: {error}", 'Write lines such as: max_time = "2m"') from None
        except OSError as error:
            raise _unreadable(file, error) from None
        values = self.toml_data.get(kind.TABLE, {}) if kind.TABLE else self.toml_data
        if not isinstance(values, dict):
            raise SettingsError(f"'{kind.TABLE}' in {file} is not a table", f"Write [{kind.TABLE}].")
        self.values: dict[str, Any] = {}
        for name, value in values.items():
            if name in kind.model_fields:
                self.values[name] = _merge(kind, name, value, kind.key(name, file))
            elif kind.TABLE or name != HUB_TABLE:
                raise SettingsError(f"unknown key {kind.key(name, file)}", nearest(name, kind.model_fields))

    def __call__(self) -> dict[str, Any]:
        return self.values
