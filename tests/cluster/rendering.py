"""What Helm makes of the chart."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import programs
import yaml

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "charts" / "devbench"
CASES = sorted((CHART / "ci").glob("*-values.yaml"))
MADE = CHART / "ci" / "made-token-values.yaml"
"""The case that needs a cluster: its token is looked for there."""

OFFLINE = [case for case in CASES if case != MADE]
OPERATOR = tuple(f"monitoring.coreos.com/v1/{kind}" for kind in ("PodMonitor", "ServiceMonitor", "PrometheusRule"))
TOKEN = {"hub": {"auth": {"existingSecret": "devbench-token"}}}
Object = dict[str, Any]
Values = dict[str, Any]


class Refused(Exception):
    """Helm ended with an error; what it said."""


def helm(program: str, *words: str, given: str | None = None, kubeconfig: Path | None = None) -> str:
    """What Helm prints.

    Args:
        program: helm-3 or helm-4.
        words: of its command line.
        given: its stdin.
        kubeconfig: of the cluster; without it no cluster can be reached.

    Raises:
        Refused: it ended with an error.
    """
    environ = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(programs.cache()),
        "KUBECONFIG": str(kubeconfig or "/dev/null"),
    }
    done = subprocess.run(
        [str(programs.tool(program)), *words], input=given, env=environ, capture_output=True, text=True, cwd=ROOT
    )
    if done.returncode:
        raise Refused(done.stderr + done.stdout)
    return done.stdout


def text(
    *files: Path,
    values: Values | None = None,
    program: str = "helm-4",
    chart: Path = CHART,
    options: tuple[str, ...] = (),
) -> str:
    """The manifests as Helm writes them, the test's pod included."""
    version = programs.kubernetes_version()
    words = ["template", "devbench", str(chart), "--namespace", "bench", "--kube-version", version, *options]
    for file in files:
        words += ["--values", str(file)]
    return helm(program, *words, "--values", "-", given=json.dumps(values or {}))


def objects(written: str) -> list[Object]:
    """Manifests as objects."""
    return [each for each in yaml.load_all(written, Loader=yaml.CSafeLoader) if each]


def render(*files: Path, values: Values | None = None, **given: Any) -> list[Object]:
    """The chart's objects, with a token's Secret named if no file names one."""
    return objects(text(*files, values=_merged(TOKEN, values or {}) if not files else values, **given))


def one(found: list[Object], kind: str, name: str = "") -> Object:
    """The only object of a kind whose name ends so."""
    (match,) = [each for each in found if each["kind"] == kind and each["metadata"]["name"].endswith(name)]
    return match


def jobs(found: list[Object]) -> dict[str, Object]:
    """The Jobs by their pool."""
    return {each["metadata"]["labels"]["devbench/pool"]: each for each in found if each["kind"] == "Job"}


def pods(found: list[Object]) -> list[tuple[str, Object]]:
    """The name of every object that makes pods, with their template."""
    made = []
    for each in found:
        name = f"{each['kind']}/{each['metadata']['name']}"
        if each["kind"] == "Pod":
            made.append((name, each))
        elif each["kind"] in ("Job", "Deployment"):
            made.append((name, each["spec"]["template"]))
        elif each["kind"] == "CronJob":
            made.append((name, each["spec"]["jobTemplate"]["spec"]["template"]))
    return made


def variables(template: Object) -> dict[str, Any]:
    """A container's variables, each with its value or its source."""
    (container,) = template["spec"]["containers"]
    return {each["name"]: each.get("value", each.get("valueFrom")) for each in container["env"]}


def _merged(under: Values, over: Values) -> Values:
    merged = dict(under)
    for key, value in over.items():
        nested = isinstance(value, dict) and isinstance(merged.get(key), dict)
        merged[key] = _merged(merged[key], value) if nested else value
    return merged
