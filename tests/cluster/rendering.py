"""The objects that Helm renders from the chart."""

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
GENERATED_TOKEN = CHART / "ci" / "generated-token-values.yaml"
"""The case that needs a cluster, because Helm looks up its token there."""

OFFLINE = [case for case in CASES if case != GENERATED_TOKEN]
JOBSET = "jobset.x-k8s.io/v1alpha2/JobSet"
OPERATOR = tuple(f"monitoring.coreos.com/v1/{kind}" for kind in ("PodMonitor", "ServiceMonitor", "PrometheusRule"))
HELMS = ("helm-3", "helm-4")
TOKEN: dict[str, Any] = {"hub": {"auth": {"existingSecret": "devbench-token"}}}
"""Values that name the Secret of a token."""

DEFAULTS: dict[str, Any] = {**TOKEN, "pools": {"t4": {"enabled": True}}}
"""The same, with the GPU pool that is off by default."""

Object = dict[str, Any]
Values = dict[str, Any]


class HelmError(Exception):
    """Helm failed. The message is its output."""


def helm(program: str, *words: str, stdin: str | None = None, kubeconfig: Path | None = None) -> str:
    """Run Helm and return its output.

    Args:
        program: "helm-3" or "helm-4".
        words: its arguments.
        stdin: its standard input.
        kubeconfig: kubeconfig of the cluster. Default: no cluster.

    Raises:
        HelmError: Helm failed.
    """
    environ = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(programs.cache()),
        "KUBECONFIG": str(kubeconfig or "/dev/null"),
    }
    completed = subprocess.run(
        [str(programs.tool(program)), *words], input=stdin, env=environ, capture_output=True, text=True, cwd=ROOT
    )
    if completed.returncode:
        raise HelmError(completed.stderr + completed.stdout)
    return completed.stdout


def text(
    *files: Path,
    values: Values | None = None,
    program: str = "helm-4",
    chart: Path = CHART,
    options: tuple[str, ...] = (),
) -> str:
    """Return the manifests that Helm renders, including the pod of the Helm test."""
    version = programs.kubernetes_version()
    words = ["template", "devbench", str(chart), "--namespace", "bench", "--kube-version", version, *options]
    for file in files:
        words += ["--values", str(file)]
    return helm(program, *words, "--values", "-", stdin=json.dumps(values or {}))


def objects(manifests: str) -> list[Object]:
    """Return the objects in manifests."""
    return [item for item in yaml.load_all(manifests, Loader=yaml.CSafeLoader) if item]


def render(*files: Path, values: Values | None = None, **options: Any) -> list[Object]:
    """Return the objects of the chart. Without files, the values are added to `DEFAULTS`."""
    return objects(text(*files, values=merge(DEFAULTS, values or {}) if not files else values, **options))


def only(rendered: list[Object], kind: str, name: str = "") -> Object:
    """Return the only object of a kind whose name ends with `name`."""
    (match,) = [item for item in rendered if item["kind"] == kind and item["metadata"]["name"].endswith(name)]
    return match


def jobs(rendered: list[Object]) -> dict[str, Object]:
    """Return the Jobs by pool."""
    return {item["metadata"]["labels"]["devbench/pool"]: item for item in rendered if item["kind"] == "Job"}


def runs(rendered: list[Object], kind: str = "Job") -> dict[int, Object]:
    """Return the Jobs, JobSets or CronJobs of runs with `workers` of one workload, by the number of workers."""
    made = [item for item in rendered if item["kind"] == kind]
    return {int(item["metadata"]["annotations"]["devbench/workers"]): item for item in made}


def pods(rendered: list[Object]) -> list[tuple[str, Object]]:
    """Return the name of every object that creates pods, with the template of the pods."""
    templates = []
    for item in rendered:
        name = f"{item['kind']}/{item['metadata']['name']}"
        if item["kind"] == "Pod":
            templates.append((name, item))
        elif item["kind"] in ("Job", "Deployment"):
            templates.append((name, item["spec"]["template"]))
        elif item["kind"] == "CronJob":
            templates.append((name, item["spec"]["jobTemplate"]["spec"]["template"]))
        elif item["kind"] == "JobSet":
            (job,) = item["spec"]["replicatedJobs"]
            templates.append((name, job["template"]["spec"]["template"]))
    return templates


def many_pools(count: int) -> Values:
    """Return values with `count` pools of five workloads, each pool on its own nodes."""
    return {
        "workloads": ["cifar", "mnist", "matmul", "tabular", "dense-inference"],
        "pools": {
            "cpu": None,
            "t4": None,
            **{f"p{n}": {"preset": "none", "nodeSelector": {"pool": f"p{n}"}, "cpu": 1} for n in range(count)},
        },
        "poolDefaults": {"memory": "1Gi"},
    }


def variables(template: Object) -> dict[str, Any]:
    """Return the environment variables of a pod's container, with their values or sources."""
    (container,) = template["spec"]["containers"]
    return {variable["name"]: variable.get("value", variable.get("valueFrom")) for variable in container["env"]}


def merge(defaults: Values, overrides: Values) -> Values:
    """Return values with others on top, as Helm merges files of values."""
    merged = dict(defaults)
    for key, value in overrides.items():
        nested = isinstance(value, dict) and isinstance(merged.get(key), dict)
        merged[key] = merge(merged[key], value) if nested else value
    return merged


def required_labels(spec: Object) -> dict[str, str]:
    """Return the node labels that a run requires."""
    required = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    (term,) = required["nodeSelectorTerms"]
    return {item["key"]: item["values"][0] for item in term["matchExpressions"] if item["operator"] == "In"}


def operator_versions() -> tuple[str, ...]:
    """Return the options with which Helm renders as for a cluster that has Prometheus' operator."""
    return tuple(f"--api-versions={kind}" for kind in OPERATOR)


def notes(values: Values) -> str:
    """Return what Helm prints after an installation with these values and an existing token."""
    complete = json.dumps(merge(values, TOKEN))
    return helm("helm-4", "install", "devbench", str(CHART), "--dry-run=client", "--values", "-", stdin=complete)
