"""Values that the chart refuses before anything is installed, by its schema or while it renders."""

from __future__ import annotations

import pytest
from rendering import HELMS, HelmError, Object, render

pytestmark = [pytest.mark.once, pytest.mark.needs("go"), pytest.mark.timeout(1800)]

RESTRICTED = {"readersSecret": "devbench-readers"}
helms = pytest.mark.parametrize("program", HELMS)


@helms
@pytest.mark.parametrize(
    ("values", "key"),
    [
        ({"worklods": ["cifar"]}, "worklods"),
        ({"pools": {"t4": {"kernel_cache": {}}}}, "kernel_cache"),
        ({"settings": {"max_tme": "1m"}}, "max_tme"),
        ({"hub": {"auth": {"secret": "x"}}}, "secret"),
        ({"poolDefaults": {"memmory": "1Gi"}}, "memmory"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_an_unknown_key_is_an_error_that_names_it(values: Object, key: str, program: str) -> None:
    with pytest.raises(HelmError, match=key):
        render(values=values, program=program)


@helms
@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"hub": {"replicas": 2}}, "existingSecret"),
        ({"hub": {"enabled": False}}, "url"),
        ({"pools": {"Big": {}}}, "Big"),
        ({"pools": {"t4": {"cpu": 2.5}}}, "cpu"),
        ({"settings": {"backend": "cuda"}}, "backend"),
        ({"customWorkloads": {"mine": {"inline": "x", "configMap": {"name": "y"}}}}, "mine"),
        (
            {"hub": {"auth": RESTRICTED}, "metrics": {"serviceMonitor": {"enabled": True}}},
            "hub.auth.scraperSecret is required",
        ),
    ],
    ids=[
        *("two hubs on SQLite", "no hub", "an invalid label", "half a CPU", "a backend for all pools", "two sources"),
        "a monitor without a reader",
    ],
)
def test_invalid_values_are_refused(values: Object, message: str, program: str) -> None:
    with pytest.raises(HelmError, match=message):
        render(values=values, program=program)


def test_more_cpus_than_the_node_can_spare_are_refused() -> None:
    with pytest.raises(HelmError, match=r"pools\.t4\.cpu is 4, but a n1-standard-4 has 4 vCPUs .* at most 3"):
        render(values={"pools": {"t4": {"preset": "gke", "cpu": 4}}})


def test_an_unknown_gpu_is_refused_with_a_list_of_those_that_the_preset_knows() -> None:
    with pytest.raises(HelmError, match="accelerator is 'k80', but the preset eks has only a100, h100, l4, l40s, t4"):
        render(values={"pools": {"t4": {"preset": "eks", "accelerator": "k80"}}})


@helms
@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"workloads": ["cifr"]}, "workloads names 'cifr', which is neither a built-in workload .*cifar"),
        ({"pools": {"cpu": {"workloads": ["nmist"]}}}, "pools.cpu.workloads names 'nmist'"),
        ({"workloads": ["cifar", "cifar"]}, "workloads"),
        ({"workloads": ["x" * 60]}, "workloads"),
        ({"customWorkloads": {"my workload": {"inline": "a"}}}, "my workload"),
        ({"poolDefaults": {"memory": 16}}, "memory"),
        ({"poolDefaults": {"memory": "16"}}, "memory"),
        ({"hub": {"resources": {"limits": {"memory": 512}}}}, "memory"),
        ({"hub": {"persistence": {"size": "8"}}}, "size"),
        ({"nameOverride": "a.b"}, "nameOverride"),
        ({"fullnameOverride": "Bench"}, "fullnameOverride"),
        ({"poolDefaults": {"env": {"a b": "c"}}}, "a b"),
        ({"pools": {"cpu": {"nodes": 2, "exclusiveNode": False}}}, "pools.cpu.exclusiveNode must be true"),
        ({"pools": {"cpu": {"workers": [0, 2]}}}, "workers"),
        ({"pools": {"cpu": {"workers": [2, 2]}}}, "workers"),
        ({"pools": {"cpu": {"workers": 2}}}, "workers"),
        ({"pools": {"cpu": {"workers": [1.5]}}}, "workers"),
        ({"pools": {"cpu": {"workers": [1000]}}}, "workers"),
        ({"pools": {"cpu": {"workers": [1, 2], "nodes": 2}}}, "as many nodes as workers"),
        ({"pools": {"t4": {"workers": [1, 2], "kernelCache": {"size": "1Gi"}}}}, "ReadWriteMany"),
        ({"pools": {"t4": {"nodes": 2, "kernelCache": {"size": "1Gi"}}}}, "uses 2 nodes at the same time"),
        ({"pools": {"cpu": {"workers": [1, 2], "settings": {"loop": "fit"}}}}, "pools.cpu has workers"),
        ({"settings": {"args": "--epochs 3"}}, "pools.cpu has the setting args"),
        ({"settings": {"max_time": "2 minutes"}}, "max_time"),
        ({"poolDefaults": {"env": {"DEVBENCH_RUN_ID": "1"}}}, "DEVBENCH_RUN_ID"),
        ({"poolDefaults": {"sharedMemory": 1}}, "sharedMemory"),
        ({"metrics": {"podMonitor": {"timeoutSeconds": 60}}}, "metrics.podMonitor.timeoutSeconds is 60"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_would_fail_later_is_refused_before_anything_is_installed(
    values: Object, message: str, program: str
) -> None:
    with pytest.raises(HelmError, match=message):
        render(values=values, program=program)
