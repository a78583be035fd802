"""The generated parts of the documentation, one function each. Each returns Markdown that ends with a newline."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from pydantic.fields import FieldInfo

from bench import errors, whatif
from bench.cli.app import COMMANDS, load
from bench.cli.command import record
from bench.config.base import Settings
from bench.config.hub_settings import HubSettings
from bench.config.notation import default, option
from bench.config.settings import RunSettings, groups
from bench.config.syntax import write_seconds
from bench.model.spec import Data, Spec, Threads
from bench.model.step_parts import STEP_PARTS
from bench.publish.prometheus.collector import MAX_RUNS
from bench.publish.prometheus.counters import INFO
from bench.publish.prometheus.metrics import MAX_SERIES, METRICS, RunMetric
from bench.render import numbers
from bench.session import stopping
from bench.study import budget, scale, sweep
from docs.result_fields import result_fields
from docs.tables import NONE, table

ROOT = Path(__file__).resolve().parent.parent

EXAMPLES = tuple(
    Spec(
        workload="mine", backend=backend, tf32=False, params={"batch": 64}, threads=Threads(intra=4, inter=4),
        data=Data(kind="own"),
    )
    for backend in ("cpu", "cuda")
)  # fmt: skip
"""Programs whose what-ifs show how to apply each what-if."""


def commands() -> str:
    """Return a section per command: its help, its arguments and options, and which settings it takes."""
    return "\n".join(_command(name) for name in COMMANDS)


def settings_tables() -> str:
    """Return every setting of a run by group: option, variable, key in `devbench.toml`, default and meaning."""
    return "\n".join(f"### {title}\n{_settings_table(names)}" for title, names in groups().items())


def hub_settings_table() -> str:
    """Return every setting of the hub: option, variable, default and meaning."""
    rows = (
        (_options(name, field), f"`{HubSettings.variable(name)}`", _default(field), _meaning(field))
        for name, field in HubSettings.model_fields.items()
    )
    return table(("option", "variable", "default", "meaning"), rows)


def exit_codes() -> str:
    """Return every exit code with the exception that causes it."""
    rows = [("0", NONE, "Success.")]
    for error in sorted(_errors(errors.DevbenchError), key=lambda error: error.exit_code):
        if error is not errors.Interrupted:
            rows.append((str(error.exit_code), f"`{error.__name__}`", _summary(error)))
    codes = ", ".join(str(errors.Interrupted(number).exit_code) for number in (signal.SIGINT, signal.SIGTERM))
    return table(("code", "exception", "meaning"), [*rows, (codes, "`Interrupted`", _summary(errors.Interrupted))])


def limits() -> str:
    """Return what `--max-time` limits in each command that measures, and its default."""
    own = RunSettings.model_fields["max_time"].default
    comparing = write_seconds(stopping.COMPARING_SECONDS)
    single = f"{numbers.percent(stopping.PROJECTION_SHARE)} of the projected training, between "
    single += f"{write_seconds(stopping.SHORTEST_SECONDS)} and {write_seconds(own)}"
    rows = (
        ("`run`, one result per workload", "the trials of each workload", single),
        ("`run`, several results that are compared", "the trials of each workload", comparing),
        ("`explain`", "the whole explanation", write_seconds(budget.LIMIT)),
        ("`sweep`", "the whole sweep", write_seconds(sweep.SECONDS)),
        ("`scale`", "the whole study", write_seconds(scale.SECONDS)),
        ("`gate`", "the whole gate; with `--explain`, the explanation has the same limit again", comparing),
        ("`bisect`", "each race", comparing),
    )
    return table(("command", "what `--max-time` limits", "default"), rows)


def gate_outcomes() -> str:
    """Return how often the verdicts of gates were right in the benchmark, as a list."""
    lines = (ROOT / "benchmarks" / "changes.jsonl").read_text(encoding="utf-8").splitlines()
    gates = [run for run in map(json.loads, lines) if run["kind"] == "gate"]
    rows = []
    for slower in sorted({run["slower"] for run in gates}):
        verdicts = [run["verdict"] for run in gates if run["slower"] == slower]
        alarms = verdicts.count("slower")
        change = f"with {numbers.percent(slower)} more work" if slower else "without a change"
        raised = "none" if not alarms else "all" if alarms == len(verdicts) else str(alarms)
        rows.append(f"- Of {len(verdicts)} gates {change}, {raised} raised an alarm.")
    return "\n".join(rows) + "\n"


def run_metrics() -> str:
    """Return every metric of a run: type, unit, labels other than `run`, and meaning. Then the number of series."""
    rows = ((f"`{metric.name}`", metric.kind, metric.unit or NONE, _labels(metric), metric.help) for metric in METRICS)
    of_histograms = sum(metric.max_series for metric in METRICS if metric.kind == "histogram")
    cardinality = (
        f"A run has at most {MAX_SERIES} series, {of_histograms} of them from the histogram.\n"
        f"A process serves its {MAX_RUNS} latest runs, so a long sweep has at most {MAX_SERIES * MAX_RUNS} series."
    )
    return table(("metric", "type", "unit", "labels", "meaning"), rows) + f"\n{cardinality}\n"


def what_ifs() -> str:
    """Return every what-if: how to apply it, the parts of a step that it acts on, and what it does."""
    rows = ((f"`{name}`", _apply(name), _acts_on(name), _what_it_does(name)) for name in whatif.names())
    return table(("what-if", "apply it with, for example", "part", "what it does"), rows)


def layers(package: str) -> str:
    """Return the layers of a package by its import contract in `pyproject.toml`, from top to bottom."""
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    contract = project.partition(f'containers = ["{package}"]\n')[2]
    layers = re.search(r"^layers = \[\n(.*?)^\]", contract, re.MULTILINE | re.DOTALL)
    lines = [re.findall(r"\w+", line) for line in (layers[1] if layers else "").splitlines()]
    named = [names for names in lines if names != ["__main__"]]
    rows = ((str(number), ", ".join(f"`{name}`" for name in names)) for number, names in enumerate(named, start=1))
    return table(("layer", "folders and files"), rows)


PARTS: dict[str, Callable[[], str]] = {
    "commands": commands,
    "settings": settings_tables,
    "hub-settings": hub_settings_table,
    "limits": limits,
    "gate-outcomes": gate_outcomes,
    "exit-codes": exit_codes,
    "metrics": run_metrics,
    "what-ifs": what_ifs,
    "result-fields": result_fields,
    "layers": lambda: layers("bench"),
    "worker-layers": lambda: layers("bench.worker"),
}


def _settings_table(names: Iterable[str]) -> str:
    rows = (
        (_options(name, field), f"`{RunSettings.variable(name)}`", f"`{name}`", _default(field), _meaning(field))
        for name, field in ((name, RunSettings.model_fields[name]) for name in names)
    )
    return table(("option", "variable", "key", "default", "meaning"), rows)


def _command(name: str) -> str:
    command = load(name)
    context = command.make_context(name, [], resilient_parsing=True)
    settings_taken = [parameter.name for parameter in command.params if _is_setting(parameter, RunSettings)]
    hub_settings_taken = [parameter.name for parameter in command.params if _is_setting(parameter, HubSettings)]
    own = [parameter for parameter in command.params if parameter.name not in {*settings_taken, *hub_settings_taken}]
    parts = [
        f"### devbench {name}",
        *(" ".join(paragraph.split()) for paragraph in command.help.split("\n\n")),
        f"```text\ndevbench {name} {' '.join(command.collect_usage_pieces(context))}\n```",
        table(("argument or option", "meaning"), (_record(parameter, context) for parameter in own)).rstrip(),
    ]
    if set(settings_taken) == set(RunSettings.model_fields):
        parts.append("It also takes every [setting](#settings).")
    elif settings_taken:
        options = ", ".join(f"`{option(name)}`" for name in settings_taken)
        parts.append(f"It also takes these [settings](#settings): {options}.")
    elif hub_settings_taken:
        parts.append("It also takes the [settings of the hub](hub.md#settings).")
    return "\n\n".join(parts) + "\n"


def _is_setting(parameter: Any, kind: type[Settings]) -> bool:
    """Return whether an option was made from a setting: its help then ends with the setting's variable."""
    return parameter.name in kind.model_fields and (parameter.help or "").endswith(f"{kind.variable(parameter.name)}]")


def _record(parameter: Any, context: Any) -> tuple[str, str]:
    """Return an argument's or option's names and help."""
    names, text = record(parameter, context)
    return f"`{names}`", " ".join(text.split())


def _options(name: str, field: FieldInfo) -> str:
    names = [name, f"no_{name}"] if field.annotation is bool else [name]
    return ", ".join(f"`{option(name)}`" for name in names)


def _default(field: FieldInfo) -> str:
    return default(field) or NONE


def _meaning(field: FieldInfo) -> str:
    choices = get_args(field.annotation) if get_origin(field.annotation) is Literal else ()
    allowed = ", ".join(f"`{choice}`" for choice in choices)
    return (field.description or "") + (f" One of {allowed}." if allowed else "")


def _apply(name: str) -> str:
    """Return the option that applies a what-if. If the option has a value, it is that for a program in `EXAMPLES`."""
    if name in whatif.program_changes():
        return f"`--change {name}`"
    what_ifs = (what_if for spec in EXAMPLES for what_if in whatif.load(name).candidates(whatif.Program(spec)))
    return f"`{next(what_ifs).option}`"


def _acts_on(name: str) -> str:
    acts_on = whatif.load(name).ACTS_ON
    return "all" if len(acts_on) == len(STEP_PARTS) else ", ".join(part for part in STEP_PARTS if part in acts_on)


def _what_it_does(name: str) -> str:
    """Return the summary of the what-if's file, without the name that it starts with."""
    return (whatif.load(name).__doc__ or "").partition("\n")[0].partition(": ")[2]


def _errors(base: type[errors.DevbenchError]) -> Iterator[type[errors.DevbenchError]]:
    yield base
    for subclass in base.__subclasses__():
        if subclass.__module__ == errors.__name__:  # others exist only while their module is imported
            yield from _errors(subclass)


def _summary(error: type[errors.DevbenchError]) -> str:
    return (error.__doc__ or "").partition("\n\n")[0].replace("\n", " ")


def _labels(metric: RunMetric) -> str:
    names = [*(INFO if metric.kind == "info" else ()), *(["le"] if metric.kind == "histogram" else ())]
    names += [metric.label] if metric.label else []
    return ", ".join(f"`{name}`" for name in names) or NONE
