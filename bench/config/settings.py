"""Settings, declared once: each field below is an option, a variable, a key of `devbench.toml` and its help.

An option wins over the environment, which wins over the file, which wins over the default. `param` alone
is merged, parameter by parameter. A wrong setting is told with where it came from and what is allowed.
"""

from __future__ import annotations

import difflib
import os
import warnings
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError, WithJsonSchema
from pydantic.fields import FieldInfo
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from bench import backends, whatif
from bench.config import settings_errors, syntax
from bench.errors import SettingsError, nearest
from bench.machine import system
from bench.model.comparison import THRESHOLD
from bench.model.spec import Execution, Loop

PREFIX = "DEVBENCH_"
FILE = Path("devbench.toml")
FILE_VARIABLE = PREFIX + "CONFIG"

MOUNT = Path("/results")
"""Where a container of ours puts results if something is mounted there."""
SERVER = "server"
"""Table of the file, and `SERVER_PREFIX` of the environment, that belong to `devbench hub`."""

SERVER_PREFIX = PREFIX + "HUB_"

TOKEN_VARIABLE = SERVER_PREFIX + "TOKEN"
SECRETS = (TOKEN_VARIABLE, SERVER_PREFIX + "TOKENS", SERVER_PREFIX + "READERS", PREFIX + "PUSHGATEWAY")
"""Variables that no program that is measured gets to see."""


@dataclass(frozen=True)
class Form:
    """How a setting's value is called in the help, and how one is written back."""

    metavar: str
    written: Callable[[Any], str] = str


def _what_ifs(value: tuple[str, ...]) -> tuple[str, ...]:
    """Refuse a name that is no what-if, and offer the nearest ones."""
    known = whatif.program_changes()
    for name in value:
        if name not in known:
            raise ValueError(nearest(name, known))
    return value


_NAMES = Form("NAME,…", ",".join)
_STRINGS = WithJsonSchema({"type": "array", "items": {"type": "string"}})
_WRITTEN = WithJsonSchema({"type": ["string", "number"]})
Names = Annotated[tuple[str, ...], NoDecode, BeforeValidator(syntax.names), _STRINGS, _NAMES]
Loops = Annotated[tuple[Loop, ...], NoDecode, BeforeValidator(syntax.names), _STRINGS, _NAMES]
WhatIfs = Annotated[
    tuple[str, ...], NoDecode, BeforeValidator(syntax.names), AfterValidator(_what_ifs), _STRINGS, _NAMES
]  # fmt: skip
Pairs = Annotated[dict[str, str], NoDecode, BeforeValidator(syntax.pairs), Form("NAME=VALUE")]
Share = Annotated[float, BeforeValidator(syntax.share), _WRITTEN, Form("SHARE", syntax.written_share)]
Pause = Annotated[
    float | None, BeforeValidator(lambda value: None if value is None else syntax.pause(value)),
    _WRITTEN, Form("TIME", syntax.written_seconds),
]  # fmt: skip
Url = Annotated[str | None, BeforeValidator(lambda value: None if value is None else syntax.url(value)), Form("URL")]
Seconds = Annotated[float, BeforeValidator(syntax.seconds), _WRITTEN, Form("TIME", syntax.written_seconds)]

_file: ContextVar[Path | None] = ContextVar("_file", default=None)

with warnings.catch_warnings():
    # `json` hides a deprecated method of BaseModel: the setting is called as its option is.
    warnings.filterwarnings("ignore", message='Field name "json"')

    class RunSettings(Execution, BaseSettings):
        """What a run is asked to do. `load` makes one with errors that a user can read."""

        model_config = SettingsConfigDict(env_prefix=PREFIX, env_ignore_empty=True, extra="forbid", frozen=True)

        backend: Names = Field(
            ("cpu",), min_length=1, description="Where to run; several take turns: cpu,cuda. In an image: its own."
        )
        loop: Loops = Field(
            (),
            description="How steps are driven: as-written, fit, step, host-batches, resident, fused; several take "
            "turns. Without it: as the workload's own default, mostly as-written.",
        )
        case: Names = Field((), description="Which of a workload's cases; without it all of them take turns.")
        compare: bool = Field(False, description="Let different files take turns too, and say which is faster.")
        param: Pairs = Field({}, description="A workload's parameter, such as batch=64; may be given again.")
        vary: Pairs = Field(
            {},
            description="Let values of a setting or parameter take turns: dtype=float32,mixed_bfloat16, xla=on,off, "
            "threads=1,2, batch=32,256. Of one thing at a time.",
        )
        change: WhatIfs = Field(
            (),
            description=f"What-ifs to apply: {', '.join(whatif.program_changes())}. Separate several with commas.",
        )
        xla: Literal["auto", "on", "off"] = Field(
            "auto", description="XLA; auto is off in every loop but as-written, where the program decides."
        )
        threads: int | None = Field(None, ge=1, description="TensorFlow's threads; without it the CPU limit of here.")
        data: Literal["auto", "full", "sample", "synthetic"] = Field(
            "auto", description="Full set if found, else the shipped sample (auto); full downloads it if need be."
        )
        data_dir: Path | None = Field(None, description="Folder that holds the full data sets.")
        target_error: Share = Field(0.03, description="Measure until the step's time is known to within this.")
        threshold: Share = Field(THRESHOLD, description="Smallest relative difference that matters.")
        max_time: Seconds = Field(
            90.0,
            description="Start no more processes for a workload after this; without it a fifth of the training that it "
            "projects, but 45s at least and 1m30s at most, or 5m where several compare.",
        )
        max_processes: int = Field(30, ge=1, description="Start at most so many processes for each spec.")
        worker_timeout: Seconds = Field(120.0, description="A process that is silent for so long is hung.")
        hourly_price: float | None = Field(
            None, gt=0, lt=1e9, description="What this machine costs an hour; results then say what steps cost."
        )
        currency: str = Field("USD", pattern=syntax.CURRENCY, description="Of that price, three letters such as EUR.")
        full: bool = Field(False, description="Train all epochs as well, and show projection and truth.")
        profile: Path | None = Field(
            None, description="Have TensorFlow's profiler trace some steps into this folder, in one more process."
        )
        metrics_port: int | None = Field(
            None, ge=0, le=65535, description="Serve metrics for Prometheus at this port while it runs; 0 takes any."
        )
        metrics_host: str = Field("", description="Address to serve them at; without it all of this machine's.")
        scrape_interval: Seconds = Field(30.0, description="How often they are scraped.")
        linger: Pause = Field(
            None,
            description="Serve them for so long after a run, 0 for not; without it twice the scrape interval.",
        )
        pushgateway: Url = Field(None, description="Push the metrics of a run that is over to this Pushgateway.")
        output: Path = Field(Path("results"), description="Folder that the results are written to.")
        hub: str | None = Field(
            None, pattern=syntax.ADDRESS, description="Address of a hub that the results are sent to as well."
        )
        hub_token_file: Path | None = Field(None, description="File that holds the hub's token.")
        hub_wait: Pause = Field(
            None,
            description="At its end, send again for so long while the hub is away; without it for a minute at most.",
        )
        run_id: str | None = Field(
            None,
            pattern=syntax.NAME,
            description="What asked for this run, such as a Job's UID and index: its results are called after it.",
        )
        attempt: int = Field(1, ge=1, le=2**31 - 1, description="Which attempt at that id; a later one supersedes it.")
        json: bool = Field(False, description="One JSON document on stdout, and nothing else there.")  # type: ignore[assignment]

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
            files = [_File(settings_cls, file)] if file else []
            return (init_settings, _Environment(settings_cls), *files, _Image(settings_cls))


def load(config: str | Path | None = None, **given: Any) -> RunSettings:
    """Gathers the settings of a run.

    Args:
        config: settings file, in place of `devbench.toml` in the working directory.
        given: what was asked for in so many words; None counts as not given.

    Raises:
        SettingsError: a name or a value is wrong, in whichever place.
    """
    given = {name: value for name, value in given.items() if value is not None}
    for name in given:
        if name not in RunSettings.model_fields:
            options = map(option, RunSettings.model_fields)
            raise SettingsError(f"there is no option {option(name)}", nearest(option(name), options))
    if "param" in given:
        given["param"] = _pairs(given["param"], f"option {option('param')}")
    file = _settings_file(config)
    token = _file.set(file)
    try:
        return RunSettings(**given)
    except ValidationError as error:
        raise _told(error, given, file) from None
    finally:
        _file.reset(token)


def option(name: str) -> str:
    """A setting's option: "--data-dir" for data_dir."""
    return "--" + name.lstrip("-").replace("_", "-")


def variable(name: str) -> str:
    """A setting's environment variable: "DEVBENCH_DATA_DIR" for data_dir."""
    return PREFIX + name.upper()


def form(field: FieldInfo) -> Form | None:
    """How a field's values are written, where that is not plain text."""
    return next((each for each in field.metadata if isinstance(each, Form)), None)


def arguments(name: str, value: Any) -> list[str]:
    """Return a setting as arguments of the command line: ["--dtype", "float64"], ["--no-tf32"]."""
    if isinstance(value, bool):
        return [option(name if value else f"no_{name}")]
    if isinstance(value, dict):
        return [word for pair in value.items() for word in (option(name), "=".join(pair))]
    shape = form(RunSettings.model_fields[name])
    return [option(name), shape.written(value) if shape else str(value)]


def value_of(name: str, text: str) -> Any:
    """A setting's value from text, as its option takes it.

    Raises:
        SettingsError: it can't be.
    """
    try:
        made = RunSettings.__pydantic_validator__.validate_assignment(RunSettings.model_construct(), name, text)
    except ValidationError as error:
        raise settings_errors.of_all(error, option) from None
    return getattr(made, name)


def default(field: FieldInfo) -> str:
    """What applies where nothing is given, as a person writes it; "" where that is nothing."""
    value: Any = field.default
    if isinstance(value, bool):
        return "on" if value else "off"
    if value in (None, (), {}):
        return ""
    shape = form(field)
    return shape.written(value) if shape else str(value)


def mistyped(environ: Mapping[str, str]) -> dict[str, str]:
    """Variables that look like a setting's but are none, with the one that was probably meant.

    Kubernetes puts `DEVBENCH_PORT_…` into the pods beside a service named devbench, so an unknown
    variable alone is no error.
    """
    known = [variable(name) for name in RunSettings.model_fields]
    ours = (name for name in map(str.upper, environ) if name.startswith(PREFIX) and not name.startswith(SERVER_PREFIX))
    others = set(ours) - {*known, FILE_VARIABLE}
    near = {name: difflib.get_close_matches(name, known, n=1, cutoff=0.88) for name in sorted(others)}
    return {name: found[0] for name, found in near.items() if found}


class _Environment(EnvSettingsSource):
    """The environment, where parameters stand in one variable, so that they can be merged with the file's."""

    def prepare_field_value(self, field_name: str, field: FieldInfo, value: Any, value_is_complex: bool) -> Any:
        if field_name == "param" and value is not None:
            return _pairs(value, f"variable {variable('param')}")
        return super().prepare_field_value(field_name, field, value, value_is_complex)


class _Image(PydanticBaseSettingsSource):
    """What our container images make of defaults: their backend, and `/results` where something is mounted there."""

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        """The value of one field, its name, and that it is not complex."""
        return self().get(field_name), field_name, False

    def __call__(self) -> dict[str, Any]:
        image = system.image()
        if image is None:
            return {}
        output = {"output": MOUNT} if os.path.ismount(MOUNT) else {}
        backend = image.rpartition(":")[2]
        return {"backend": backend, **output} if backend in backends.names() else output


class _File(TomlConfigSettingsSource):
    """The settings file, which may hold no key that means nothing."""

    def __init__(self, settings_cls: type[BaseSettings], file: Path) -> None:
        self.file = file
        try:
            super().__init__(settings_cls, file)
        except ValueError as error:  # a TOMLDecodeError, or bytes that are not UTF-8
            raise SettingsError(f"{file} is not valid TOML: {error}", 'A line reads: max_time = "2m"') from None
        except OSError as error:
            raise SettingsError(f"{file} can't be read: {error.strerror}") from None

    def __call__(self) -> dict[str, Any]:
        values: dict[str, Any] = super().__call__()
        values.pop(SERVER, None)
        for key in values:
            if key not in RunSettings.model_fields:
                raise SettingsError(f"unknown key '{key}' in {self.file}", nearest(key, RunSettings.model_fields))
        if "param" in values:
            values["param"] = _pairs(values["param"], f"key 'param' in {self.file}")
        return values


def _settings_file(config: str | Path | None) -> Path | None:
    """The file to read: the one that was named, which must be there, or the usual one if it is."""
    named = config or os.environ.get(FILE_VARIABLE)
    if not named:
        return FILE if FILE.is_file() else None
    if not Path(named).is_file():
        raise SettingsError(f"there is no settings file {named}", f"Named by --config or {FILE_VARIABLE}.")
    return Path(named)


def _pairs(value: object, origin: str) -> dict[str, str]:
    try:
        return syntax.pairs(value)
    except ValueError as error:
        raise settings_errors.of_value(value, origin, str(error)) from None


def _told(error: ValidationError, given: Mapping[str, Any], file: Path | None) -> SettingsError:
    """The same errors as a user meets them: which place, which value, what is allowed."""
    present = {name.upper() for name, value in os.environ.items() if value}

    def origin(name: str) -> str:
        if name in given:
            return f"option {option(name)}"
        return f"variable {variable(name)}" if variable(name) in present else f"key '{name}' in {file}"

    return settings_errors.of_all(error, origin)
