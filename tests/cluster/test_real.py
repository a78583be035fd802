"""The chart on a real node: real kubelet, containers, Services and images, from `helm install` to `helm uninstall`."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import realnode
import urllib3
from images.engine import build
from images.standins import python_3_13
from plane import Object, Plane, until
from rendering import CHART, helm

pytestmark = [pytest.mark.once, pytest.mark.needs("real-node"), pytest.mark.timeout(2400)]

LOOKUPS = '''
"""Looks rows up in a large table, which two threads do sooner than one."""

import tensorflow as tf


def inputs(ctx):
    return (ctx.rng.integers(0, 4_000_000, 400_000, dtype="int32"),)


def step():
    table = tf.random.stateless_uniform((4_000_000, 16), seed=(1, 2))
    return lambda rows: tf.reduce_sum(tf.gather(table, rows), axis=0)
'''
RUN = 600.0
"""Seconds within which a run of one workload on a pool has ended."""


@dataclass
class Release:
    """The chart as it is installed on the node.

    Attributes:
        program: the Helm that installed it.
    """

    plane: Plane
    namespace: str
    program: str = "helm-4"

    def helm(self, *words: str) -> str:
        return helm(self.program, *words, "-n", self.namespace, kubeconfig=self.plane.kubeconfig)

    def upgrade(self, values: Object) -> str:
        """Installs it, or brings it up to date; returns what Helm says."""
        file = self.plane.folder / "values.json"
        file.write_text(json.dumps(values), encoding="utf-8")
        return self.helm("upgrade", "--install", "devbench", str(CHART), "--values", str(file))

    def jobs(self) -> dict[str, Object]:
        """The Jobs by their pool."""
        found = self.plane.get("jobs", "-n", self.namespace)
        return {each["metadata"]["labels"]["devbench/pool"]: each for each in found}

    def pods(self, pool: str, *phases: str) -> list[Object]:
        """The pods of a pool in one of these phases."""
        found = self.plane.get("pods", "-n", self.namespace, "-l", f"devbench/pool={pool}")
        return [each for each in found if each["status"]["phase"] in phases]

    def ended(self) -> bool:
        """Whether every Job has."""
        conditions = [each["status"].get("conditions", []) for each in self.jobs().values()]
        return all(any(one["type"] in ("Complete", "Failed") for one in each) for each in conditions)

    @contextmanager
    def forwarded(self) -> Iterator[str]:
        """The hub's address, by the command that the chart's notes name."""
        words = [str(self.plane.kubectl_program), f"--kubeconfig={self.plane.kubeconfig}", "-n", self.namespace]
        words += ["port-forward", "service/devbench-hub", ":80", "--address=127.0.0.1"]
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout
            yield "http://" + process.stdout.readline().split()[2]
            process.terminate()

    def told(self, path: str) -> Any:
        """What the hub answers."""
        with self.forwarded() as url:
            answer = urllib3.request("GET", url + path, timeout=30)
        assert answer.status == 200, answer.data
        return answer.json()


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    """A control plane with a real node that holds the images of cpu and hub."""
    base = python_3_13(tmp_path_factory.mktemp("base"))
    with TemporaryDirectory(prefix="db") as folder, realnode.started(Path(folder)) as plane:
        for backend in ("cpu", "hub"):
            realnode.load(plane, build(backend, base), f"docker.io/library/devbench:{backend}")
        yield plane


@pytest.fixture(scope="module")
def release(node: Plane) -> Release:
    """A namespace of the restricted Pod Security level, with a volume for the hub's results."""
    name = "bench"
    labels = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "warn", "audit")}
    node.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}, _volume(node))
    return Release(node, name)


def _volume(plane: Plane) -> Object:
    folder = plane.folder / "volume"
    folder.mkdir()
    term = {"key": "kubernetes.io/hostname", "operator": "In", "values": [realnode.NAME]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "results"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": "8Gi"},
            "local": {"path": str(folder)},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [term]}]}},
            "storageClassName": "own",
        },
    }


def values(**more: Any) -> Object:
    """Two pools on the one node, which differ in their CPUs."""
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


def test_two_pools_run_one_after_the_other_and_are_compared_in_the_hub(release: Release) -> None:
    said = release.upgrade(values())
    assert "kubectl -n bench port-forward service/devbench-hub" in said
    until("both Jobs have ended", release.ended, RUN)
    results = release.told("/api/v1/results")["results"]
    assert sorted(each["pool"] for each in results) == ["one", "two"]
