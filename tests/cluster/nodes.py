"""Simulated nodes with the labels, taints and sizes that three cloud providers document."""

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
    """Return a node that kwok simulates.

    Args:
        name: name of the node.
        labels: labels in addition to those of every node.
        taints: taints of the node.
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


def gpu_labels(product: str, **more: str) -> dict[str, str]:
    """Return the labels that NVIDIA's GPU feature discovery sets."""
    return {
        "nvidia.com/gpu.present": "true",
        "nvidia.com/gpu.product": product,
        "nvidia.com/gpu.count": "1",
        **{f"nvidia.com/gpu.{name}": value for name, value in more.items()},
    }


def instance_labels(instance: str, **labels: str) -> dict[str, str]:
    """Return the label of an instance type and further labels."""
    return {"node.kubernetes.io/instance-type": instance, **labels}


CLOUDS = [
    # GKE taints and labels GPU nodes. On AKS, administrators usually add the taint. On EKS, the GPU operator sets both.
    node("gke-cpu", instance_labels("n2-standard-4", **{"cloud.google.com/gke-nodepool": "default"})),
    node(
        "gke-t4",
        instance_labels("n1-standard-4", **{"cloud.google.com/gke-accelerator": "nvidia-tesla-t4"}),
        [GPU],
        gpus=1,
    ),
    node(
        "gke-t4-bare",
        instance_labels("n1-standard-4", **{"cloud.google.com/gke-accelerator": "nvidia-tesla-t4"}),
        gpus=1,
    ),
    node(
        "gke-t4-shared",
        instance_labels(
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
        instance_labels("a2-highgpu-1g", **{"cloud.google.com/gke-accelerator": "nvidia-tesla-a100"}),
        [GPU],
        cpu="11",
        memory="80Gi",
        gpus=1,
    ),
    node("aks-cpu", instance_labels("Standard_D4s_v5", **{"kubernetes.azure.com/mode": "user"})),
    node(
        "aks-t4",
        instance_labels("Standard_NC4as_T4_v3", **{"kubernetes.azure.com/accelerator": "nvidia"}),
        [{"key": "sku", "value": "gpu", "effect": "NoSchedule"}],
        memory="24Gi",
        gpus=1,
    ),
    node(
        "aks-t4-spot",
        instance_labels(
            "Standard_NC4as_T4_v3",
            **{"kubernetes.azure.com/accelerator": "nvidia", "kubernetes.azure.com/scalesetpriority": "spot"},
        ),
        [{"key": "kubernetes.azure.com/scalesetpriority", "value": "spot", "effect": "NoSchedule"}],
        memory="24Gi",
        gpus=1,
    ),
    node("eks-cpu", instance_labels("m5.xlarge")),
    node("eks-t4", instance_labels("g4dn.xlarge", **gpu_labels("Tesla-T4")), [GPU], gpus=1),
    node("eks-t4-unlabelled", instance_labels("g4dn.xlarge"), gpus=1),
    node("generic-cpu", {}),
    node("generic-small", {}, cpu="1900m", memory="3Gi"),
    node("generic-arm", {"kubernetes.io/arch": "arm64"}),
    node("generic-t4", gpu_labels("Tesla-T4", **{"sharing-strategy": "none"}), [GPU], gpus=1),
    node("generic-t4-sliced", gpu_labels("Tesla-T4-SHARED", **{"sharing-strategy": "time-slicing"}), [GPU], gpus=4),
    node("generic-t4-mps", gpu_labels("Tesla-T4", **{"sharing-strategy": "mps"}), [GPU], gpus=4),
    node("generic-l4", gpu_labels("NVIDIA-L4"), [GPU], gpus=1),
]
