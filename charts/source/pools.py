"""A pool: a kind of node, what runs on it, and how long that may wait and run."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, WithJsonSchema

from bench.backends import reference
from bench.config.settings import RunSettings
from charts.source.backends import cluster_backends
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
        *("backend", "hourly_price", "currency"),  # set per pool
        *("output", "json", "profile", "data_dir", "only"),  # fixed in the container
        *("hub", "hub_token_file", "hub_wait", "run_id", "attempt"),  # set by the hub's values
        *("metrics_port", "linger", "pushgateway", "pushgateway_url"),  # set by the metrics' values
    }
)
"""Settings of a run that are not allowed under `settings`, because another value or the chart sets them."""


RunOptions = Annotated[dict[str, Any], WithJsonSchema(settings_schema(RunSettings, DECIDED_BY_THE_CHART))]
Backend = Annotated[str, WithJsonSchema({"enum": list(cluster_backends()), "type": "string"})]
Seconds = Annotated[int, Field(ge=1)]
Workload = Annotated[str, Field(pattern="^[A-Za-z0-9]([-A-Za-z0-9_]*[A-Za-z0-9])?$")]


class CudaCache(Part):
    """A cache for kernels that the driver compiles for a GPU newer than the image. It makes later starts faster."""

    size: QuantityOrNone = Field(
        "", description="Size of its volume, such as 1Gi. Default: no volume; the cache is lost with the pod."
    )
    storage_class: str = Field("", description="Storage class of the volume. Default: the cluster's default.")
    existing_claim: str = Field("", description="Existing claim to use instead of a new volume.")


class Pool(Part):
    """The values of a pool. Missing ones come from `poolDefaults`, then from the preset."""

    model_config = ConfigDict(title="Pool")

    enabled: bool = Field(True, description="Run this pool.")
    backend: Backend = Field(reference(), description="Backend to measure. It selects the image.")
    accelerator: str = Field(
        "", description="Kind of GPU, by the preset's name, such as t4. Required for cuda pools with a preset."
    )
    preset: Literal["generic", "gke", "aks", "eks", "none"] = Field(
        "generic",
        description="Node labels, taints and prices to use, from the files in presets/. `none` uses only your own.",
    )
    cpu_column: bool = Field(True, description="Also measure the CPU of a GPU pool, interleaved with the GPU.")
    workloads: list[Workload] = Field([], description="Workloads of this pool. Default: `workloads`.")
    settings: RunOptions = Field({}, description="Settings of its runs. They override `settings`.")
    cpu: int = Field(3, ge=1, description="Number of whole CPUs, as request and limit. Leave one CPU to the node.")
    memory: Quantity = Field("8Gi", description="Memory, as request and limit.")
    ephemeral_storage: Quantity = Field("4Gi", description="Local disk space for results and temporary files.")
    gpus: int = Field(1, ge=1, description="Number of GPUs of a cuda pool. A run measures the first one.")
    allow_shared_gpu: bool = Field(False, description="Run on a shared GPU. Each result then has a warning.")
    exclusive_node: bool = Field(True, description="Never run two runs of devbench on the same node at once.")
    spot: bool = Field(False, description="Also run on spot nodes. An evicted run starts again.")
    instance_type: str = Field(
        "",
        description="Instance type to run on. It also sets the price. Default: the preset's. `any` allows every type.",
    )
    hourly_price: float | None = Field(None, gt=0, description="Price of a node per hour. Default: the preset's.")
    currency: str = Field("USD", pattern="^[A-Z]{3}$", description="Currency of the price.")
    node_selector: Strings = Field(
        {}, description="Extra node labels that its pods require. They override the preset's."
    )
    tolerations: Objects = Field([], description="Extra tolerations of its pods.")
    affinity: Object = Field({}, description="Affinity that replaces the chart's own.")
    runtime_class_name: str = Field("", description="Runtime class. Needed if the NVIDIA runtime is not the default.")
    priority_class_name: str = Field("", description="Priority class of its pods.")
    queue: str = Field("", description="Kueue's local queue. Kueue then decides when the Job starts.")
    run_seconds: Seconds = Field(7200, description="Time limit of a pod, in seconds.")
    job_seconds: int = Field(
        0,
        ge=0,
        description="Time limit of the whole Job in seconds, including the wait for a node. 0: no limit.",
    )
    cuda_cache: CudaCache = Field(CudaCache(), description="Cache for kernels that the driver compiles.")
    data_claim: str = Field("", description="Existing claim with full data sets, mounted read-only at /data.")
    image: ImageOverride = Field(ImageOverride(), description="Another image for this pool.")
    env: Strings = Field({}, description="Extra environment variables.")
    pod_annotations: Strings = Field({}, description="Extra annotations of its pods.")
    pod_labels: Strings = Field({}, description="Extra labels of its pods.")


PoolName = Annotated[str, Field(pattern=NAME)]
