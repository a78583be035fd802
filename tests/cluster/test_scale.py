"""200 pools of five workloads over 200 nodes: all run, and the watcher keeps up meanwhile."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import urllib3
from nodes import node
from plane import Plane, until
from rendering import CHART, helm
from scale import many
from watching import hub_in, watching

pytestmark = [pytest.mark.once, pytest.mark.needs("control-plane"), pytest.mark.timeout(1800)]

POOLS = 200
SOON = 15.0
"""Seconds within which the hub must know."""


def test_a_thousand_runs_end_and_an_unschedulable_run_is_reported_within_15_seconds(
    plane: Plane, tmp_path: Path
) -> None:
    plane.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "many"}})
    plane.apply(*(node(f"many-{n}", {"pool": f"p{n}"}) for n in range(POOLS)))
    values = {**many(POOLS), "hub": {"auth": {"existingSecret": "devbench-token"}}}
    given = tmp_path / "values.json"
    given.write_text(json.dumps(values), encoding="utf-8")
    install = ["install", "devbench", str(CHART), "-n", "many", "--values", str(given)]
    helm("helm-4", *install, kubeconfig=plane.kubeconfig)
    with hub_in(tmp_path) as hub, watching(plane, "many", hub, tmp_path):
        values["pools"]["nowhere"] = {"preset": "none", "nodeSelector": {"pool": "nowhere"}}
        given.write_text(json.dumps(values), encoding="utf-8")
        helm("helm-4", "upgrade", *install[1:], kubeconfig=plane.kubeconfig)
        until("the scheduler finds no node for it", lambda: _refused(plane))
        until("the hub knows that one waits", lambda: _waits(hub), SOON)
        until("a thousand runs are done", lambda: _succeeded(plane) == 5 * POOLS, 900)
        assert _waits(hub)
    helm("helm-4", "uninstall", "devbench", "-n", "many", kubeconfig=plane.kubeconfig)
    plane.clear("many")
    plane.kubectl("delete", "nodes", *(f"many-{n}" for n in range(POOLS)))


def _refused(plane: Plane) -> bool:
    found = plane.get("pods", "-n", "many", "-l", "devbench/pool=nowhere")
    return any(each["type"] == "PodScheduled" for pod in found for each in pod["status"].get("conditions", []))


def _waits(hub: str) -> bool:
    told = urllib3.request("GET", f"{hub}/api/v1/runs?limit=500").json()["runs"]
    return any(each["run"]["pool"] == "nowhere" and each["state"] == "running" for each in told)


def _succeeded(plane: Plane) -> int:
    return sum(job["status"].get("succeeded", 0) for job in plane.get("jobs", "-n", "many"))
