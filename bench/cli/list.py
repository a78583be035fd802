"""`devbench list`: what there is to run and where, told from the sources without TensorFlow."""

from __future__ import annotations

import re
from typing import Annotated, Any

import typer

from bench import backends, registry
from bench.cli.command import build, json_asked, print_json
from bench.model.spec import LOOPS
from bench.registry.params import allowed
from bench.render.text import entry

COLUMN = 19


def show(
    name: Annotated[
        str | None,
        typer.Argument(metavar="[WORKLOAD]", help="A name or a .py file: show its parameters.", show_default=False),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON document on stdout, and nothing else there.")] = False,
) -> None:
    """Show the workloads and the backends, and what each is for; of one workload its parameters too."""
    json = json or json_asked()
    if name is not None:
        told = {**workload(name), "params": params(name)}
        if json:
            print_json({"workload": told})
        else:
            typer.echo(
                "\n".join([*_workload(told), "", "parameters, such as --param " + _example(told), *_params(told)])
            )
        return
    found = {
        "workloads": [workload(name) for name in registry.names()],
        "backends": [backend(name) for name in backends.names()],
    }
    if json:
        print_json(found)
        return
    lines = ["workloads", *(line for each in found["workloads"] for line in _workload(each))]
    lines += ["", "backends", *(line for each in found["backends"] for line in _backend(each))]
    lines += ["", "A program of your own runs as these do: devbench run ./mine.py"]
    typer.echo("\n".join(lines))


def workload(name: str) -> dict[str, Any]:
    """What `list --json` says of a workload."""
    known = registry.describe(name)
    not_loops = known.constants.get("NOT_LOOPS", {})
    why_not = {loop: registry.applicable(known.offers, not_loops, loop) for loop in LOOPS}
    return {
        "name": name,
        "summary": known.summary.rstrip("."),
        "articles": re.findall(r'\bFrom "([^"]+)"', " ".join(known.doc.split())),
        "cases": list(known.constants.get("CASES", {})),
        "loops": [loop for loop, reason in why_not.items() if reason is None],
        "not_applicable": {loop: reason for loop, reason in why_not.items() if reason is not None},
        "not_on": known.constants.get("NOT_ON", {}),
        "data": known.constants.get("DATA"),
    }


def params(name: str) -> dict[str, dict[str, Any]]:
    """Parameter: its default, what it means and what is allowed, as `list NAME --json` says them."""
    schema = registry.params_schema(name)
    required = schema.get("required", ())
    return {
        each: {
            "default": known.get("default"),
            "required": each in required,
            "description": known.get("description", ""),
            "allowed": allowed(known),
        }
        for each, known in schema.get("properties", {}).items()
    }


def backend(name: str) -> dict[str, Any]:
    """What `list --json` says of a backend. The first of a backend's checks is that of its packages."""
    module = backends.load(name)
    packages = next(iter(module.checks()))
    return {
        "name": name,
        "summary": module.DESCRIPTION,
        "platforms": module.PLATFORMS,
        "installed": packages.status != "FAIL",
        "found": packages.found,
        "extra": module.EXTRA,
        "image": module.IMAGE,
    }


def _workload(told: dict[str, Any]) -> list[str]:
    lines = [entry(told["name"], told["summary"], 2, COLUMN)]
    if told["cases"]:
        lines.append(entry("", f"cases: {', '.join(told['cases'])}", 2, COLUMN))
    lines.append(entry("", f"loops: {', '.join(told['loops'])}", 2, COLUMN))
    lines += [entry("", f"from: {title}", 2, COLUMN) for title in told["articles"]]
    if told["not_on"]:
        lines.append(entry("", f"not on: {', '.join(told['not_on'])}", 2, COLUMN))
    return lines


def _example(told: dict[str, Any]) -> str:
    return next((f"{name}={each['default']}" for name, each in told["params"].items()), "name=value")


def _params(told: dict[str, Any]) -> list[str]:
    lines = []
    for name, each in told["params"].items():
        default = "no default" if each["required"] else f"default {each['default']}"
        parts = [each["description"], default, each["allowed"]]
        lines.append(entry(name, "; ".join(part for part in parts if part), 2, COLUMN))
    return lines or ["  it has none"]


def _backend(told: dict[str, Any]) -> list[str]:
    missing = f"not installed: pip install devbench[{told['extra']}]"
    how = f"installed: {told['found']}" if told["installed"] else missing
    return [
        entry(told["name"], told["summary"], 2, COLUMN),
        entry("", told["platforms"], 2, COLUMN),
        entry("", how, 2, COLUMN),
    ]


command = build(show, "list")
