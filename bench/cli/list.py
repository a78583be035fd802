"""`devbench list`: show workloads and backends, read from their sources without importing TensorFlow."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from bench import backends, registry
from bench.cli import completion
from bench.cli.command import Json, build, json_requested, print_json
from bench.model.loops import LOOPS
from bench.registry.notebook import is_notebook
from bench.registry.user_file import decision
from bench.render.text import entry
from bench.version import install_command

COLUMN = 19

MODULE = "`-m` runs a module as a script"
"""The reason why a module is a script, as a clause."""

SCRIPT_PARAMS: dict[str, dict[str, Any]] = {
    "batch": {
        "default": None,
        "required": False,
        "description": "`batch_size` of `fit`, if the script passes arrays to `fit`",
        "allowed": "",
    }
}
"""The parameters of every script, as `params` returns them."""


def show(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="WORKLOAD",
            help="Name of a workload, a .py file or a notebook. Default: list all workloads and backends.",
            autocompletion=completion.workloads,
        ),
    ] = None,
    json: Json = False,
) -> None:
    """List workloads and backends, or the parameters of a workload.

    For a file, says whether it is a script or a workload.
    """
    json = json or json_requested()
    if name is not None:
        document = described(name)
        if json:
            print_json({"workload": document})
        elif registry.is_script(name):
            kind = "notebook" if is_notebook(name) else "script"
            reason = f": {document['reason']}" if kind == "script" else ", which runs as a script"
            lines = [f"{name} is a {kind}{reason}.", f"Run it: devbench run {name}", "", *_params(document["params"])]
            typer.echo("\n".join(lines))
        else:
            head = [f"{name} is a workload: {document['reason']}."] if "reason" in document else []
            typer.echo("\n".join([*head, *_workload(document), "", *_params(document["params"])]))
        return
    documents = {
        "workloads": [workload(name) for name in registry.names()],
        "backends": [backend(name) for name in backends.names()],
    }
    if json:
        print_json(documents)
        return
    lines = ["workloads", *(line for document in documents["workloads"] for line in _workload(document))]
    lines += ["", "backends", *(line for document in documents["backends"] for line in _backend(document))]
    lines += ["", "Show a workload's parameters: devbench list cifar", "Run your own program: devbench run train.py"]
    typer.echo("\n".join(lines))


def described(name: str) -> dict[str, Any]:
    """Return the description of one workload for `list NAME --json`. A user's file is imported by another process."""
    if not registry.is_path(name):
        return {**workload(name), "params": params(registry.params_schema(name))}
    if registry.is_script(name):
        from bench.registry.scripts import NOT_LOOPS

        return {
            **workload(name, ["script"], {"NOT_LOOPS": NOT_LOOPS}),
            "script": True,
            "reason": MODULE if registry.is_module(name) else decision(Path(name).expanduser()).reason,
            "params": SCRIPT_PARAMS,
        }
    from bench.registry.description import Resolved

    file = Path(name).expanduser()
    inspection = registry.inspect_file(file)
    constants: dict[str, Any] = {"CASES": inspection.cases}
    if isinstance(inspection.resolved, Resolved):
        resolved = inspection.resolved
        constants |= {"NOT_LOOPS": resolved.not_loops, "NOT_ON": resolved.not_on, "DATA": resolved.data}
    return {
        **workload(name, inspection.offers, constants),
        "script": False,
        "reason": decision(file).reason,
        "params": params(inspection.params),
    }


def workload(
    name: str, offers: Collection[str] | None = None, constants: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return the description of a workload for `list --json`.

    Args:
        name: The name or path of the workload.
        offers: The protocol functions that it defines. Default: those that its source shows.
        constants: Constants that replace those that its source shows.
    """
    description = registry.describe(name)
    offers = description.offers if offers is None else offers
    constants = {**description.constants, **(constants or {})}
    not_loops = constants.get("NOT_LOOPS", {})
    obstacles = {loop: registry.obstacle(offers, not_loops, loop) for loop in LOOPS}
    return {
        "name": name,
        "summary": description.summary.rstrip("."),
        "articles": re.findall(r'\bFrom "([^"]+)"', " ".join(description.doc.split())),
        "cases": list(constants.get("CASES", {})),
        "loops": [loop for loop, reason in obstacles.items() if reason is None],
        "not_applicable": {loop: reason for loop, reason in obstacles.items() if reason is not None},
        "not_on": constants.get("NOT_ON", {}),
        "data": constants.get("DATA"),
    }


def params(schema: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return parameters for `list NAME --json`: by name, the default, the description and the allowed values.

    Args:
        schema: The JSON Schema of the workload's `Params`.
    """
    from bench.registry.params import allowed_values

    required = schema.get("required", ())
    return {
        name: {
            "default": parameter.get("default"),
            "required": name in required,
            "description": parameter.get("description", ""),
            "allowed": allowed_values(parameter),
        }
        for name, parameter in schema.get("properties", {}).items()
    }


def backend(name: str) -> dict[str, Any]:
    """Return the description of a backend for `list --json`.

    The first check of a backend says whether its packages are installed.
    """
    module = backends.load(name)
    packages = next(iter(module.checks()))
    return {
        "name": name,
        "summary": module.DESCRIPTION,
        "platforms": module.PLATFORMS,
        "installed": packages.status != "FAIL",
        "packages": packages.detail,
        "extra": name,
        "image": f"devbench:{name}",
    }


def _workload(document: dict[str, Any]) -> list[str]:
    lines = [entry(document["name"], document["summary"], 2, COLUMN)]
    if document["cases"]:
        lines.append(entry("", f"cases: {', '.join(document['cases'])}", 2, COLUMN))
    lines.append(entry("", f"loops: {', '.join(document['loops'])}", 2, COLUMN))
    lines += [entry("", f"from: {title}", 2, COLUMN) for title in document["articles"]]
    if document["not_on"]:
        lines.append(entry("", f"not on: {', '.join(document['not_on'])}", 2, COLUMN))
    return lines


def _params(documents: dict[str, Any]) -> list[str]:
    if not documents:
        return ["This workload has no parameters."]
    defaults = {name: parameter["default"] for name, parameter in documents.items() if not parameter["required"]}
    name, default = next(iter(defaults.items()), (next(iter(documents)), None))
    example = f"{name}={64 if documents is SCRIPT_PARAMS else default}" if defaults else f"{name}=VALUE"
    lines = [f"parameters (set them with --param, for example --param {example})"]
    for name, parameter in documents.items():
        value = "set by the script" if documents is SCRIPT_PARAMS else parameter["default"]
        default = "required" if parameter["required"] else f"default: {value}"
        limits = "; ".join(filter(None, (default, parameter["allowed"])))
        lines.append(entry(name, f"{parameter['description']} ({limits})".lstrip(), 2, COLUMN))
    return lines


def _backend(document: dict[str, Any]) -> list[str]:
    missing = f"not installed: {install_command(document['extra'])} in a checkout"
    return [
        entry(document["name"], document["summary"], 2, COLUMN),
        entry("", document["platforms"], 2, COLUMN),
        entry("", f"installed: {document['packages']}" if document["installed"] else missing, 2, COLUMN),
    ]


command = build(show, "list")
