"""200 pools of five workloads on 200 nodes: all runs end, and the watcher reports in time."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import urllib3
from control_plane import ControlPlane, wait_until
from hub_and_watcher import run_hub, run_watcher
from nodes import node
from rendering import CHART, helm, many_pools

pytestmark = [pytest.mark.once, pytest.mark.needs("control-plane"), pytest.mark.timeout(1800)]

POOLS = 200
REPORT_SECONDS = 15.0
"""Time limit for a report to reach the hub, in seconds."""


def test_a_thousand_runs_end_and_an_unschedulable_run_is_reported_within_15_seconds(
    plane: ControlPlane, tmp_path: Path
) -> None:
    plane.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "many"}})
    plane.apply(*(node(f"many-{n}", {"pool": f"p{n}"}) for n in range(POOLS)))
    values = {**many_pools(POOLS), "hub": {"auth": {"existingSecret": "devbench-token"}}}
    values_file = tmp_path / "values.json"
    values_file.write_text(json.dumps(values), encoding="utf-8")
    install = ["install", "devbench", str(CHART), "-n", "many", "--values", str(values_file)]
    helm("helm-4", *install, kubeconfig=plane.kubeconfig)
    with run_hub(tmp_path) as hub, run_watcher(plane, "many", hub, tmp_path):
        values["pools"]["nowhere"] = {"preset": "none", "nodeSelector": {"pool": "nowhere"}}
        values_file.write_text(json.dumps(values), encoding="utf-8")
        helm("helm-4", "upgrade", *install[1:], kubeconfig=plane.kubeconfig)
        wait_until("the scheduler finds no node for the pool", lambda: _is_unschedulable(plane))
        wait_until("the hub knows of the waiting run", lambda: _is_reported(hub), REPORT_SECONDS)
        wait_until("a thousand runs have ended", lambda: _completed(plane) == 5 * POOLS, 900)
        assert _is_reported(hub)
    helm("helm-4", "uninstall", "devbench", "-n", "many", kubeconfig=plane.kubeconfig)
    plane.clear("many")
    plane.kubectl("delete", "nodes", *(f"many-{n}" for n in range(POOLS)))


def _is_unschedulable(plane: ControlPlane) -> bool:
    pods = plane.get("pods", "-n", "many", "-l", "devbench/pool=nowhere")
    return any(condition["type"] == "PodScheduled" for pod in pods for condition in pod["status"].get("conditions", []))


def _is_reported(hub: str) -> bool:
    runs = urllib3.request("GET", f"{hub}/api/v1/runs?limit=500").json()["runs"]
    return any(item["run"]["pool"] == "nowhere" and item["state"] == "running" for item in runs)


def _completed(plane: ControlPlane) -> int:
    return sum(job["status"].get("succeeded", 0) for job in plane.get("jobs", "-n", "many"))
