"""Every value of the chart, and another value for each: for tests that go through all of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel

from charts.source.pools import Pool
from charts.source.values import Values

CONTAINER = {"name": "first", "image": "first:1", "command": ["true"]}
SPREAD = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": {}}

POD_OPTIONS: dict[str, Any] = {
    "env": {"TZ": "UTC", "FROM": {"fieldRef": {"fieldPath": "metadata.name"}}},
    "envFrom": [{"configMapRef": {"name": "variables"}}],
    "extraVolumes": [{"name": "scratch", "emptyDir": {}}],
    "extraVolumeMounts": [{"name": "scratch", "mountPath": "/scratch"}],
    "initContainers": [CONTAINER],
    "nodeSelector": {"team": "ml"},
    "tolerations": [{"operator": "Exists"}],
    "affinity": {"podAffinity": {}},
    "topologySpreadConstraints": [SPREAD],
    "priorityClassName": "low",
    "schedulerName": "other",
    "serviceAccountName": "other",
    "dnsPolicy": "Default",
    "dnsConfig": {"searches": ["example.org"]},
    "podAnnotations": {"note": "hello"},
    "podLabels": {"team": "ml"},
}
"""Another value for each option of a pod."""

POOL: dict[str, Any] = {
    **POD_OPTIONS,
    "enabled": False,
    "backend": "cpu",
    "accelerator": "l4",
    "preset": "gke",
    "cpuColumn": False,
    "workloads": ["matmul"],
    "settings": {"seed": 2},
    "cpu": 2,
    "memory": "4Gi",
    "ephemeralStorage": "2Gi",
    "gpus": 2,
    "gpuResource": "nvidia.com/mig-1g.5gb",
    "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpu"}],
    "nodes": 2,
    "workers": [1, 2],
    "jobSet": False,
    "sharedMemory": "2Gi",
    "allowSharedGpu": True,
    "exclusiveNode": False,
    "spot": True,
    "evictions": 1,
    "instanceType": "g4dn.xlarge",
    "hourlyPrice": 9.5,
    "currency": "EUR",
    "runtimeClassName": "nvidia",
    "queue": "benchmarks",
    "runSeconds": 60,
    "jobSeconds": 60,
    "kernelCache": {"size": "1Gi"},
    "dataClaim": "data",
    "image": {"tag": "other"},
    "jobAnnotations": {"argocd.argoproj.io/sync-wave": "1"},
}
"""Another value for each value of a pool."""

UNRELATED: dict[str, Any] = {
    "schedule": {"cron": "0 3 * * 1", "historyLimit": 1},
    "security": {"runAsUser": 2000, "runAsGroup": None, "fsGroup": 2000},
    "hub": {
        **POD_OPTIONS,
        "replicas": 2,
        "auth": {"existingSecret": "other", "tokenKey": "key", "readersSecret": "readers", "scraperSecret": "scraper"},
        "database": {"existingSecret": "database"},
        "settings": {"threshold": 0.1},
        "service": {"type": "NodePort", "port": 8000},
        "ingress": {"enabled": True, "hosts": ["bench.example.org"]},
        "image": {"tag": "other"},
    },
    "watcher": {**POD_OPTIONS, "waitSeconds": 5},
    "metrics": {"port": 9500, "lingerSeconds": 3, "annotations": False, "podMonitor": {"intervalSeconds": 5}},
    "networkPolicy": {"enabled": False},
    "test": {**POD_OPTIONS, "waitSeconds": 5},
    "commonLabels": {"team": "ml"},
    "commonAnnotations": {"note": "hello"},
    "extraObjects": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "extra"}}],
    "enabled": True,
}
"""Other values of all sections that do not change a measurement."""


def paths() -> list[tuple[str, ...]]:
    """Return the path of every value and every section, those of a pool below poolDefaults and below the pool t4."""
    return [*_paths(Values(), ()), *(("pools", "t4", *path) for path in _paths(Pool(), ()))]


def nested(path: tuple[str, ...], value: Any) -> dict[str, Any]:
    """Return values with a value at a path."""
    for name in reversed(path):
        value = {name: value}
    return dict(value)


def _paths(part: BaseModel, prefix: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    for name, field in type(part).model_fields.items():
        path = (*prefix, field.alias or name)
        yield path
        value = getattr(part, name)
        if isinstance(value, BaseModel):
            yield from _paths(value, path)
        elif isinstance(value, dict) and path != ("pools",):
            yield from ((*path, key) for key in value)
