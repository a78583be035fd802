"""The settings of a run.

Each field declares an option, a variable, a key of `devbench.toml`, and their help. Each class holds one group of
settings, and its docstring is the title of the group in `--help`. `model.spec.Execution` holds the settings that are
part of a spec exactly as they are set.
"""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, ValidationError
from pydantic_settings import NoDecode, PydanticBaseSettingsSource, SettingsConfigDict

from bench import whatif
from bench.config import base, settings_errors, syntax
from bench.config.image_defaults import ImageDefaults
from bench.config.notation import (
    NAMES,
    STRINGS,
    Assignments,
    Names,
    Notation,
    Pause,
    Seconds,
    Share,
    Url,
    Words,
    one_of,
    option,
    write,
)
from bench.errors import nearest
from bench.model.comparison import THRESHOLD
from bench.model.spec import LOOPS, Execution, Loop


def _what_ifs(value: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names if all are what-ifs. Otherwise, raise a ValueError that suggests similar names."""
    available = whatif.program_changes()
    for name in value:
        if name not in available:
            raise ValueError(nearest(name, available))
    return value


Loops = Annotated[tuple[Loop, ...], NoDecode, BeforeValidator(syntax.names), one_of(LOOPS), NAMES]
WhatIfNames = Annotated[
    tuple[str, ...],
    NoDecode,
    BeforeValidator(syntax.names),
    AfterValidator(_what_ifs),
    STRINGS,
    replace(NAMES, names=whatif.program_changes),
]


class SelectionOptions(BaseModel):
    """What to measure."""

    backend: Names = Field(
        ("cpu",),
        min_length=1,
        description="Backends to measure on, such as cpu,cuda. Several are interleaved. Default: cpu, or the backend "
        "of the devbench image.",
    )
    loop: Loops = Field(
        (),
        description="Loops to run the steps in: as-written, fit, step, host-batches, resident or fused. Several are "
        "interleaved. Default: the workload's own loop, usually as-written.",
    )
    env: Assignments = Field(
        {},
        description="Python environment to run in, as NAME=PATH: the folder of a virtual or conda environment, or its "
        "interpreter. Repeat it to compare several, interleaved. The environments need TensorFlow, but not devbench.",
    )
    case: Names = Field(
        (),
        description="Cases of the workload to measure. Several are interleaved. Default: all cases that agree with "
        "--param.",
    )
    param: Assignments = Field({}, description="Parameter of the workload, such as batch=64. Repeat it to set several.")
    change: WhatIfNames = Field((), description="What-ifs to apply, separated by commas, such as cache,prefetch.")
    compare: bool = Field(
        False, description="Measure several programs (scripts or workload files), interleaved, and compare them."
    )
    vary: Assignments = Field(
        {},
        json_schema_extra={"maxProperties": 1},
        description="Measure several values of one option or parameter, interleaved. Examples: "
        "dtype=float32,mixed_bfloat16; xla=on,off; threads=1,2; batch=32,256.",
    )


class MeasurementOptions(BaseModel):
    """How to measure."""

    target_error: Share = Field(
        0.03, description="Stop when half the 95% interval is at most this share of the step time."
    )
    threshold: Share = Field(
        THRESHOLD,
        description="Smallest difference that matters. A run that compares stops when every verdict is settled.",
    )
    max_time: Seconds = Field(
        90.0,
        description="Time limit per workload. Default: a fifth of the projected training, between 45s and 90s (5m when "
        "comparing).",
    )
    max_processes: int = Field(30, ge=1, description="Maximum number of processes for each result.")
    worker_timeout: Seconds = Field(
        120.0,
        description="Stop a process that sends nothing for this long. A script that uses the CPU before its first step "
        "may be silent for 10m.",
    )
    full: bool = Field(False, description="Also run the whole training, and compare its time with the projection.")
    profile: Path | None = Field(
        None, description="Folder for a trace of TensorFlow's profiler. Tracing takes one more process."
    )


class TensorFlowOptions(Execution):
    """How TensorFlow runs."""

    xla: Literal["auto", "on", "off"] = Field(
        "auto",
        description="Compile with XLA. auto: in the as-written loop the program decides, in all other loops it is off.",
    )
    threads: int | None = Field(
        None, ge=1, description="Threads in each of TensorFlow's thread pools. Default: the number of available CPUs."
    )


class ScriptOptions(BaseModel):
    """Scripts."""

    args: Words = Field(
        None,
        description="Arguments of the script in one string, such as '--epochs 3'. Default: the arguments after --, as "
        "in `devbench run train.py -- --epochs 3`.",
    )
    watch: int | None = Field(
        None,
        ge=1,
        description="Number of the loop to time, if the script has several. Default: the loop with the most steps.",
    )
    workdir: Path | None = Field(
        None,
        description="Folder to run the script in. devbench does not copy it. Default: each process runs in a new copy "
        "of the current folder, or of the script's folder if the script is elsewhere.",
    )


class DataOptions(BaseModel):
    """Data sets."""

    data: Literal["auto", "full", "sample", "synthetic"] = Field(
        "auto",
        description="auto: the full data set if it is found, otherwise the sample. full: the full data set, downloaded "
        "if necessary. sample: the small set that comes with devbench. synthetic: random data.",
    )
    data_dir: Path | None = Field(None, description="Folder with full data sets. The cache of Keras is searched too.")


class CostOptions(BaseModel):
    """Cost."""

    hourly_price: Annotated[float | None, Notation("PRICE")] = Field(
        None, gt=0, lt=1e9, description="Price of this machine per hour. Results then include costs."
    )
    currency: Annotated[str, Notation("CODE")] = Field(
        "USD", pattern=syntax.CURRENCY, description="Currency of the price: three letters, such as EUR."
    )


with warnings.catch_warnings():
    # `json` hides a deprecated method of BaseModel. The setting has the name of its option.
    warnings.filterwarnings("ignore", message='Field name "json"')

    class OutputOptions(BaseModel):
        """Output."""

        output: Path = Field(Path("results"), description="Folder for results.")
        json: bool = Field(False, description="Write one JSON document to stdout, and nothing else.")  # type: ignore[assignment]


class MetricsOptions(BaseModel):
    """Prometheus metrics."""

    metrics_port: int | None = Field(
        None, ge=0, le=65535, description="Serve metrics on this port during the run. 0 picks a free port."
    )
    metrics_host: Annotated[str, Notation("HOST")] = Field(
        "", description="Address to listen on. Default: all interfaces."
    )
    scrape_interval: Seconds = Field(30.0, description="Time between two scrapes by Prometheus.")
    linger: Pause = Field(
        None,
        description="Keep serving metrics for this long after the run. 0 stops at once. Default: until the next "
        "scrape, for at most twice the scrape interval. A failed run uses all of it. A run that was not scraped for as "
        "long does not wait.",
    )
    pushgateway: Url = Field(None, description="Pushgateway to push the metrics to after the run.")


class HubOptions(BaseModel):
    """Results server."""

    hub: Annotated[str | None, Notation("URL")] = Field(
        None, pattern=syntax.ADDRESS, description="URL of a hub to send the results to, such as http://hub:8080."
    )
    hub_token_file: Path | None = Field(None, description="File with the token for the hub.")
    hub_wait: Pause = Field(
        None,
        description="How long to retry at the end of the run if the hub does not answer. Default: up to 1m, or 2s if "
        "it never answered, or not for the last minute.",
    )
    run_id: Annotated[str | None, Notation("ID")] = Field(
        None,
        pattern=syntax.NAME,
        description="Id of the run, such as a Job's UID and index. The ids of its results start with it. Default: a "
        "new id.",
    )
    attempt: int = Field(
        1,
        ge=1,
        le=2**31 - 1,
        description="Attempt number for --run-id. A later attempt replaces an earlier one that is not complete.",
    )


class RunSettings(
    SelectionOptions,
    MeasurementOptions,
    OutputOptions,
    TensorFlowOptions,
    ScriptOptions,
    DataOptions,
    CostOptions,
    MetricsOptions,
    HubOptions,
    base.Settings,
):
    """The settings of a run. `load` gathers them."""

    model_config = SettingsConfigDict(env_prefix=base.PREFIX)

    # With its full type: the pydantic of the directml lock cannot evaluate a bare ClassVar.
    MERGED: ClassVar[Mapping[str, Callable[[object], dict[str, str]]]] = {"param": syntax.pairs}

    @classmethod
    def last_sources(cls) -> tuple[PydanticBaseSettingsSource, ...]:
        """Return the source of an image's defaults."""
        return (ImageDefaults(cls),)


def load(config: str | Path | None = None, **options: Any) -> RunSettings:
    """Gather the settings of a run, as `base.load` does. `param` is merged, parameter by parameter.

    Raises:
        SettingsError: A name or a value is wrong, in any of the sources.
    """
    return base.load(RunSettings, config, options)


def groups() -> dict[str, list[str]]:
    """Return the groups of settings in the order of the help: the title of each, with the names of its settings."""
    kinds = [kind for kind in RunSettings.__bases__ if issubclass(kind, BaseModel) and kind is not base.Settings]
    return {title(kind): list(kind.model_fields) for kind in kinds}


def title(kind: type[BaseModel]) -> str:
    """Return the title of a group of settings."""
    return (kind.__doc__ or "").rstrip(".")


def arguments(name: str, value: Any) -> list[str]:
    """Return a setting as arguments of the command line: ["--dtype", "float64"], ["--no-tf32"]."""
    if isinstance(value, bool):
        return [option(name if value else f"no_{name}")]
    if isinstance(value, dict):
        return [word for pair in value.items() for word in (option(name), "=".join(pair))]
    return [option(name), write(RunSettings.model_fields[name], value)]


def value_of(name: str, text: str) -> Any:
    """Convert text, as an option accepts it, to the value of a setting.

    Raises:
        SettingsError: The text is not a valid value of the setting.
    """
    try:
        settings = RunSettings.__pydantic_validator__.validate_assignment(RunSettings.model_construct(), name, text)
    except ValidationError as error:
        raise settings_errors.from_validation(error, option) from None
    return getattr(settings, name)


DATA_URL_VARIABLE = base.PREFIX + "DATA_URL"
"""A variable that is no setting (`bench.datasets.download`), although its name resembles one."""


def misspelled_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that look like misspelled settings, each with the variable that was probably meant.

    Other unknown variables are not errors: Kubernetes sets `DEVBENCH_PORT_…` in pods if a service is named devbench.
    """
    expected = [RunSettings.variable(name) for name in RunSettings.model_fields]
    names = [name for name in map(str.upper, environ) if name.startswith(base.PREFIX)]
    known = {*expected, base.FILE_VARIABLE, DATA_URL_VARIABLE}
    unknown = {name for name in names if not name.startswith(f"{base.PREFIX}HUB_")} - known
    near = {name: difflib.get_close_matches(name, expected, n=1, cutoff=0.88) for name in sorted(unknown)}
    return {name: matches[0] for name, matches in near.items() if matches}
