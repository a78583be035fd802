"""A pool: a kind of node, what runs on it and how long it may wait, run and cost."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, WithJsonSchema

from bench.config.settings import RunSettings
from charts.source.base import (
    NAME,
    ImageOverride,
    Object,
    Objects,
    Part,
    Quantity,
    QuantityOrNone,
    Strings,
    settings_schema,
)

DECIDED_BY_THE_CHART = frozenset(
    {
        *("backend", "hourly_price", "currency"),  # of the pool
        *("output", "json", "profile", "data_dir", "only"),  # places and forms in the container
        *("hub", "hub_token_file", "hub_wait", "run_id", "attempt"),  # of the hub
        *("metrics_port", "linger", "pushgateway", "pushgateway_url"),  # of metrics
    }
)
"""Settings of a run that can't stand under `settings`, since another value or the chart itself says them."""


RunOptions = Annotated[dict[str, Any], WithJsonSchema(settings_schema(RunSettings, DECIDED_BY_THE_CHART))]
Seconds = Annotated[int, Field(ge=1)]
Workload = Annotated[str, Field(pattern="^[A-Za-z0-9]([-A-Za-z0-9_]*[A-Za-z0-9])?$")]


class CudaCache(Part):
    """Kernels that the driver compiled for a card newer than the image's; kept, the next start does without."""

    size: QuantityOrNone = Field(
        "", description="Size of a volume made for it, such as 1Gi; empty: it goes with the pod."
    )
    storage_class: str = Field("", description="Storage class of that volume; empty: the cluster's default.")
    existing_claim: str = Field("", description="A claim that is there already, in place of one made.")


class Pool(Part):
    """What a pool may say. What it leaves out comes from `poolDefaults`, and what that leaves out from the preset."""

    model_config = ConfigDict(title="Pool")

    enabled: bool = Field(True, description="Whether it runs at all.")
    backend: Literal["cpu", "cuda"] = Field("cpu", description="The image and the device that are measured.")
    accelerator: str = Field("", description="Kind of GPU by the preset's name, such as t4; cuda pools need one.")
    preset: Literal["generic", "gke", "aks", "eks", "none"] = Field(
        "generic", description="Whose node labels, taints and prices apply (files in presets/); none: only your own."
    )
    cpu_column: bool = Field(True, description="A GPU pool also measures its own CPU, in turns with the GPU.")
    workloads: list[Workload] = Field([], description="What to measure here; empty: `workloads`.")
    settings: RunOptions = Field({}, description="Settings of its runs, over those of `settings`.")
    cpu: int = Field(3, ge=1, description="Whole CPUs, requested and limit; leave the node one of its own.")
    memory: Quantity = Field("8Gi", description="Memory, requested and limit.")
    ephemeral_storage: Quantity = Field("4Gi", description="Local disk for results and temporary files.")
    gpus: int = Field(1, ge=1, description="GPUs of a cuda pool; a run measures the first.")
    allow_shared_gpu: bool = Field(
        False, description="Run on a GPU that others use at the same time; each result warns of it."
    )
    exclusive_node: bool = Field(True, description="Never beside another run of devbench on the same node.")
    spot: bool = Field(False, description="Run on spot nodes too; an evicted run starts again.")
    instance_type: str = Field(
        "", description="Instance type to run on, which also sets the price; empty: the preset's; any: whichever."
    )
    hourly_price: float | None = Field(None, gt=0, description="What a node costs an hour; without it: the preset's.")
    currency: str = Field("USD", pattern="^[A-Z]{3}$", description="Of that price.")
    node_selector: Strings = Field({}, description="Further node labels, over the preset's.")
    tolerations: Objects = Field([], description="Further taints that its pods may run beside.")
    affinity: Object = Field({}, description="Kubernetes affinity in place of the chart's own.")
    runtime_class_name: str = Field("", description="Runtime class, where the NVIDIA runtime is not the default.")
    priority_class_name: str = Field("", description="Priority class of its pods.")
    queue: str = Field("", description="Kueue's local queue; it then decides when the Job starts.")
    run_seconds: Seconds = Field(7200, description="A pod that runs longer is ended.")
    job_seconds: int = Field(
        0, ge=0, description="The whole Job is ended after this, time spent waiting for a node included; 0: never."
    )
    cuda_cache: CudaCache = Field(CudaCache(), description="The driver's cache of compiled kernels.")
    data_claim: str = Field("", description="A claim with full data sets, mounted read-only at /data.")
    image: ImageOverride = Field(ImageOverride(), description="Another image.")
    env: Strings = Field({}, description="Further variables.")
    pod_annotations: Strings = Field({}, description="Further annotations of its pods.")
    pod_labels: Strings = Field({}, description="Further labels of its pods.")


PoolName = Annotated[str, Field(pattern=NAME)]
