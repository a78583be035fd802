"""Several workers in pods on a real node."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import real_node
import urllib3
from control_plane import ControlPlane, Object, wait_until
from release import RUN, Release, results, volatile_values

pytestmark = [pytest.mark.once, pytest.mark.needs("real-node"), pytest.mark.timeout(2400)]

TRAINS = '''
"""Train a small model."""

import tensorflow as tf
from pydantic import BaseModel


class Params(BaseModel):
    batch: int = 32


def data(p, ctx):
    return ctx.rng.normal(size=(640, 64)).astype("float32"), ctx.rng.integers(0, 4, 640)


def model(p):
    model = tf.keras.Sequential([tf.keras.layers.Input((64,)), tf.keras.layers.Dense(256), tf.keras.layers.Dense(4)])
    model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model
'''
TOGETHER = """#!{python}
import sys
import yaml

items = [item for item in yaml.safe_load_all(sys.stdin) if item]
for item in items:
    if item["kind"] == "Job":
        del item["spec"]["template"]["spec"]["affinity"]["podAntiAffinity"]
yaml.safe_dump_all(items, sys.stdout)
"""
"""A post-renderer of Helm that lets all workers of a run share the only node."""


LOST_SECONDS = 30.0
"""A run ends at most this many seconds after one of its workers died."""


@contextmanager
def pair(plane: ControlPlane, namespace: str, **settings: object) -> Iterator[Release]:
    """A release with one run, whose two workers share the only node. It is removed at the end."""
    release = Release(plane, namespace, "helm-3")
    release.create_namespace()
    release_values = volatile_values(workloads=["trains"], customWorkloads={"trains": {"inline": TRAINS}})
    release_values["settings"] = settings
    release_values["pools"] = {"cpu": None, "t4": None, "pair": {"cpu": 1, "workers": [2]}}
    together = plane.folder / "together"
    together.write_text(TOGETHER.format(python=sys.executable), encoding="utf-8")
    together.chmod(0o755)
    release.upgrade(release_values, "--post-renderer", str(together))
    try:
        yield release
    finally:
        release.helm("uninstall", "devbench")


def test_the_pods_of_two_workers_train_together(real_plane: ControlPlane) -> None:
    with pair(real_plane, "scaling", max_time="60s", max_processes=1) as release:
        wait_until("the Job has ended", release.ended, RUN)
        assert len(release.pods("pair", "Succeeded")) == 2, release.logs("pair")
        by_count = {}
        for item in results(release):
            document = release.fetch(f"/api/v1/results/{item['id']}")
            workers = document["spec"]["workers"]
            if workers["strategy"] != "none" and workers["reduce"]:
                by_count[workers["count"]] = document
        assert by_count.keys() == {1, 2}
        assert {document["status"] for document in by_count.values()} == {"complete"}
        (one,), (two,) = (by_count[count]["samples"] for count in (1, 2))
        assert two["first_losses"] == pytest.approx(one["first_losses"], rel=1e-3)
        with release.forward_hub() as url:
            page = urllib3.request("GET", f"{url}/scaling/{by_count[2]['parent']}", timeout=30)
        assert page.status == 200
        assert "2 workers" in page.data.decode()


def test_a_worker_that_dies_ends_the_run_with_this_reason_within_30_seconds(real_plane: ControlPlane) -> None:
    with pair(real_plane, "dying", max_time="10m") as release:

        def runs() -> list[Object]:
            return list(release.fetch("/api/v1/runs")["runs"])

        def train_together() -> bool:
            return "worker 1 of" in release.logs("pair") and "steady state" in release.phases("pair")

        wait_until("both workers train", train_together, RUN)
        (second,) = [pod for pod in release.pods("pair", "Running") if pod["metadata"]["name"].rsplit("-", 2)[1] == "1"]
        real_node.kill(real_plane, second)

        def failed() -> Object | None:
            (item,) = runs()
            return item if item["state"] == "failed" else None

        item = wait_until("the run has failed", failed, LOST_SECONDS)
        assert "worker 1" in item["run"]["reason"], item
        wait_until("the Job has ended", release.ended, LOST_SECONDS)
