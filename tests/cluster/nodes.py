"""Nodes that don't exist, with the labels, taints and sizes that three clouds document for theirs."""

from __future__ import annotations

from typing import Any

Object = dict[str, Any]
GPU = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}


def node(
    name: str,
    labels: dict[str, str],
    taints: list[dict[str, str]] | None = None,
    cpu: str = "3920m",
    memory: str = "13Gi",
    gpus: int = 0,
) -> Object:
    """A node that kwok plays.

    Args:
        name: its name.
        labels: beside those that every node bears.
        taints: that keep pods away.
        cpu: allocatable CPUs.
        memory: allocatable memory.
        gpus: allocatable GPUs.
    """
    size = {"cpu": cpu, "memory": memory, "ephemeral-storage": "90Gi", "pods": "110"}
    if gpus:
        size["nvidia.com/gpu"] = str(gpus)
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "annotations": {"kwok.x-k8s.io/node": "fake", "node.alpha.kubernetes.io/ttl": "0"},
            "labels": {
                "kubernetes.io/arch": "amd64",
                "kubernetes.io/os": "linux",
                "kubernetes.io/hostname": name,
                **labels,
            },
        },
        "spec": {"taints": taints or []},
        "status": {"allocatable": size, "capacity": size},
    }


def gfd(product: str, **more: str) -> dict[str, str]:
    """Labels of NVIDIA's GPU feature discovery."""
    return {
        "nvidia.com/gpu.present": "true",
        "nvidia.com/gpu.product": product,
        "nvidia.com/gpu.count": "1",
        **{f"nvidia.com/gpu.{name}": value for name, value in more.items()},
    }


def typed(instance: str, **labels: str) -> dict[str, str]:
    """The label of an instance type, with others."""
    return {"node.kubernetes.io/instance-type": instance, **labels}


CLOUDS = [
    # GKE taints GPU nodes and labels them itself; AKS taints by habit only; on EKS both are the operator's.
    node("gke-cpu", typed("n2-standard-4", **{"cloud.google.com/gke-nodepool": "default"})),
    node("gke-t4", typed("n1-standard-4", **{"cloud.google.com/gke-accelerator": "nvidia-tesla-t4"}), [GPU], gpus=1),
    node("gke-t4-bare", typed("n1-standard-4", **{"cloud.google.com/gke-accelerator": "nvidia-tesla-t4"}), gpus=1),
    node(
        "gke-t4-shared",
        typed(
            "n1-standard-4",
            **{
                "cloud.google.com/gke-accelerator": "nvidia-tesla-t4",
                "cloud.google.com/gke-gpu-sharing-strategy": "time-sharing",
            },
        ),
        [GPU],
        gpus=4,
    ),
    node(
        "gke-a100",
        typed("a2-highgpu-1g", **{"cloud.google.com/gke-accelerator": "nvidia-tesla-a100"}),
        [GPU],
        cpu="11",
        memory="80Gi",
        gpus=1,
    ),
    node("aks-cpu", typed("Standard_D4s_v5", **{"kubernetes.azure.com/mode": "user"})),
    node(
        "aks-t4",
        typed("Standard_NC4as_T4_v3", **{"kubernetes.azure.com/accelerator": "nvidia"}),
        [{"key": "sku", "value": "gpu", "effect": "NoSchedule"}],
        memory="24Gi",
        gpus=1,
    ),
    node(
        "aks-t4-spot",
        typed(
            "Standard_NC4as_T4_v3",
            **{"kubernetes.azure.com/accelerator": "nvidia", "kubernetes.azure.com/scalesetpriority": "spot"},
        ),
        [{"key": "kubernetes.azure.com/scalesetpriority", "value": "spot", "effect": "NoSchedule"}],
        memory="24Gi",
        gpus=1,
    ),
    node("eks-cpu", typed("m5.xlarge")),
    node("eks-t4", typed("g4dn.xlarge", **gfd("Tesla-T4")), [GPU], gpus=1),
    node("eks-t4-unlabelled", typed("g4dn.xlarge"), gpus=1),
    node("generic-cpu", {}),
    node("generic-small", {}, cpu="1900m", memory="3Gi"),
    node("generic-arm", {"kubernetes.io/arch": "arm64"}),
    node("generic-t4", gfd("Tesla-T4", **{"sharing-strategy": "none"}), [GPU], gpus=1),
    node("generic-t4-sliced", gfd("Tesla-T4-SHARED", **{"sharing-strategy": "time-slicing"}), [GPU], gpus=4),
    node("generic-t4-mps", gfd("Tesla-T4", **{"sharing-strategy": "mps"}), [GPU], gpus=4),
    node("generic-l4", gfd("NVIDIA-L4"), [GPU], gpus=1),
]
