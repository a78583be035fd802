"""The hub's settings: each field is an option of `devbench hub`, a variable, and a key of the file's table [server].

An option wins over the environment, which wins over the file, which wins over the default. What is secret is no
option, since options can be seen by everyone on a machine: it stands in a file or in a variable.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from contextvars import ContextVar
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, ValidationError, WithJsonSchema
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict, TomlConfigSettingsSource

from bench.config import settings_errors, syntax
from bench.config.settings import FILE, FILE_VARIABLE, SECRETS, SERVER, SERVER_PREFIX, Form, Share
from bench.errors import SettingsError, nearest
from bench.model.comparison import THRESHOLD

_, TOKENS, READERS, _ = SECRETS

_DAY = 86_400
_PATH = re.compile(r"(/[A-Za-z0-9._~-]+)+")
PATH = "write a path such as /devbench"
_file: ContextVar[Path | None] = ContextVar("_file", default=None)


def _days(value: Any) -> Any:
    """A number of days, or a time as other settings have it, in days."""
    text = str(value).strip()
    if text.endswith("d"):
        return text[:-1]
    return value if text.replace(".", "", 1).isdigit() else syntax.seconds(value) / _DAY


def _path(value: Any) -> Any:
    """A path as addresses begin with it: no slash at its end, and none alone."""
    text = str(value).strip().rstrip("/")
    if text and not _PATH.fullmatch(text):
        raise ValueError(PATH)
    return text


UrlPath = Annotated[str, BeforeValidator(_path), Form("PATH")]
Days = Annotated[float, BeforeValidator(_days), WithJsonSchema({"type": ["string", "number"]}), Form("DAYS")]


class HubSettings(BaseSettings):
    """What a hub is asked to be. `load` makes one with errors that a user can read."""

    model_config = SettingsConfigDict(env_prefix=SERVER_PREFIX, env_ignore_empty=True, extra="forbid", frozen=True)

    database: str = Field("hub.db", description="SQLite's file, or postgresql://USER@HOST/NAME.")
    host: str = Field("127.0.0.1", description="Address to listen on; 0.0.0.0 is all of them.")
    port: int = Field(8080, ge=0, le=65535, description="Port to listen on; 0 takes a free one.")
    root_path: UrlPath = Field("", description="Path under which a proxy shows the hub, such as /devbench.")
    tokens_file: Path | None = Field(None, description="File of the tokens that may write, one a line.")
    readers_file: Path | None = Field(None, description="File of who may read, USER:PASSWORD, one a line.")
    threshold: Share = Field(THRESHOLD, description="A difference that matters, in the verdicts of the pages.")
    keep_days: Days | None = Field(None, gt=0, description="Remove what came longer ago; without it nothing is.")
    keep_results: int | None = Field(None, ge=1, description="Keep so many results, the newest; without it all.")

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """The order of precedence."""
        file = _file.get()
        return (init_settings, env_settings, *([_Table(settings_cls, file)] if file else []))


class _Table(TomlConfigSettingsSource):
    """The table [server] of the settings file."""

    def __init__(self, settings_cls: type[BaseSettings], file: Path) -> None:
        self.file = file
        try:
            super().__init__(settings_cls, file)
        except ValueError as error:
            raise SettingsError(f"{file} is not valid TOML: {error}", 'A line reads: database = "hub.db"') from None
        except OSError as error:
            raise SettingsError(f"{file} can't be read: {error.strerror}") from None
        table = self.toml_data.get(SERVER, {})
        for key in table:
            if key not in HubSettings.model_fields:
                known = HubSettings.model_fields
                raise SettingsError(f"unknown key '{key}' under [{SERVER}] in {file}", nearest(key, known))
        self.init_kwargs = table

    def __call__(self) -> dict[str, Any]:
        return dict(self.init_kwargs)


def load(config: str | Path | None = None, **given: Any) -> HubSettings:
    """Gathers the settings of a hub.

    Args:
        config: settings file, in place of `devbench.toml` in the working directory.
        given: what was asked for in so many words; None counts as not given.

    Raises:
        SettingsError: a name or a value is wrong, in whichever place.
    """
    asked = {name: value for name, value in given.items() if value is not None}
    named = config or os.environ.get(FILE_VARIABLE)
    if named and not Path(named).is_file():
        raise SettingsError(f"there is no settings file {named}", f"Named by --config or {FILE_VARIABLE}.")
    file = Path(named) if named else FILE if FILE.is_file() else None
    token = _file.set(file)
    try:
        return HubSettings(**asked)
    except ValidationError as error:
        raise settings_errors.of_all(error, _origin(asked, file)) from None
    finally:
        _file.reset(token)


def variable(name: str) -> str:
    """A setting's environment variable: "DEVBENCH_HUB_PORT" for port."""
    return SERVER_PREFIX + name.upper()


def _origin(given: dict[str, Any], file: Path | None) -> Callable[[str], str]:
    def told(name: str) -> str:
        if name in given:
            return f"option --{name.replace('_', '-')}"
        present = {each.upper() for each, value in os.environ.items() if value}
        return f"variable {variable(name)}" if variable(name) in present else f"key '{name}' of [{SERVER}] in {file}"

    return told
