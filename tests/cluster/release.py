"""A release of the chart on a real node, as the tests use it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import urllib3
from control_plane import ControlPlane, Object
from rendering import CHART, helm

LOOKUPS = '''
"""Look up rows in a large table, which is faster with two threads than with one."""

import tensorflow as tf


def inputs(ctx):
    return (ctx.rng.integers(0, 4_000_000, 400_000, dtype="int32"),)


def step():
    table = tf.random.stateless_uniform((4_000_000, 16), seed=(1, 2))
    return lambda rows: tf.reduce_sum(tf.gather(table, rows), axis=0)
'''

RUN = 600.0
"""Time limit of a run of one workload on a pool, in seconds."""


@dataclass
class Release:
    """A release of the chart on the node.

    Attributes:
        plane: control plane of the node.
        namespace: namespace of the release.
        program: "helm-3" or "helm-4".
    """

    plane: ControlPlane
    namespace: str
    program: str = "helm-4"

    def helm(self, *words: str) -> str:
        return helm(self.program, *words, "-n", self.namespace, kubeconfig=self.plane.kubeconfig)

    def create_namespace(self, labels: dict[str, str] | None = None) -> None:
        """Create the namespace of the release, with labels."""
        metadata = {"name": self.namespace, "labels": labels or {}}
        self.plane.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})

    def upgrade(self, values: Object, *options: str) -> str:
        """Install or upgrade the release, with further options of Helm, and return its output."""
        file = self.plane.folder / "values.json"
        file.write_text(json.dumps(values), encoding="utf-8")
        return self.helm("upgrade", "--install", "devbench", str(CHART), "--values", str(file), *options)

    def jobs(self) -> dict[str, Object]:
        """Return the Jobs by pool."""
        jobs = self.plane.get("jobs", "-n", self.namespace)
        return {job["metadata"]["labels"]["devbench/pool"]: job for job in jobs}

    def pods(self, pool: str, *phases: str) -> list[Object]:
        """Return the pods of a pool that are in one of these phases."""
        pods = self.plane.get("pods", "-n", self.namespace, "-l", f"devbench/pool={pool}")
        return [pod for pod in pods if pod["status"]["phase"] in phases]

    def phases(self, pool: str, known: frozenset[str] = frozenset()) -> list[str]:
        """Return the phase of each run of a pool that measures something, without the runs that are `known` by id."""
        items = self.fetch("/api/v1/runs?limit=200")["runs"]
        phases = [
            (item["run"]["progress"] or {}).get("phase")
            for item in items
            if item["run"]["pool"] == pool and item["run"]["id"] not in known and item["state"] == "running"
        ]
        return [phase for phase in phases if phase not in (None, "waiting")]

    def logs(self, pool: str) -> str:
        """Return the output of a pool's runs."""
        words = ("-n", self.namespace, "-l", f"devbench/pool={pool}", "--prefix", "--tail=-1")
        return self.plane.kubectl("logs", *words, check=False)

    def ended(self) -> bool:
        """Return whether every Job has ended."""
        conditions = [job["status"].get("conditions", []) for job in self.jobs().values()]
        return all(
            any(condition["type"] in ("Complete", "Failed") for condition in job_conditions)
            for job_conditions in conditions
        )

    @contextmanager
    def forward_hub(self) -> Iterator[str]:
        """Forward a port to the hub with the command from the notes of the chart, and yield its address."""
        words = [str(self.plane.kubectl_program), f"--kubeconfig={self.plane.kubeconfig}", "-n", self.namespace]
        words += ["port-forward", "service/devbench-hub", ":80", "--address=127.0.0.1"]
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout
            yield "http://" + process.stdout.readline().split()[2]
            process.terminate()

    def fetch(self, path: str) -> Any:
        """Return the response of the hub to a GET request."""
        with self.forward_hub() as url:
            response = urllib3.request("GET", url + path, timeout=30)
        assert response.status == 200, response.data
        return response.json()


def values(**more: Any) -> Object:
    """Return values with two pools on the same node, with one and two CPUs."""
    nothing = {"cpu": "0"}
    return {
        "workloads": ["lookups"],
        "customWorkloads": {"lookups": {"inline": LOOKUPS}},
        "settings": {"max_time": "20s", "max_processes": 3},
        "poolDefaults": {"preset": "none", "memory": "2Gi", "ephemeralStorage": "256Mi"},
        "pools": {"cpu": None, "t4": None, "one": {"cpu": 1}, "two": {"cpu": 2}},
        "image": {"pullPolicy": "Never"},
        "hub": {"persistence": {"storageClass": "own"}, "resources": {"requests": nothing}},
        "watcher": {"resources": {"requests": nothing}},
        "metrics": {"lingerSeconds": 5},
        **more,
    }


def volatile_values(**more: Any) -> Object:
    """Return the same values, without a volume for the results of the hub."""
    changed = values(**more)
    changed["hub"]["persistence"] = {"enabled": False}
    return changed


def results(release: Release) -> list[Object]:
    """Return all results of the hub, newest first."""
    return list(release.fetch("/api/v1/results?limit=200")["results"])
