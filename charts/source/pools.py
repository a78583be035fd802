"""A pool: a kind of node, its workloads and its time limits."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, WithJsonSchema

from bench.backends import reference
from bench.config.settings import RunSettings
from charts.source.backends import cluster_backends
from charts.source.base import (
    NAME,
    Auto,
    Bytes,
    BytesOrNone,
    ImageOverride,
    Object,
    Objects,
    Part,
    PodOptions,
    Strings,
    settings_schema,
)

DECIDED_BY_THE_CHART = frozenset(
    {
        *("backend", "hourly_price", "currency"),  # set per pool
        *("output", "json", "profile", "data_dir", "only"),  # fixed in the container
        "compare",  # each index measures one program
        *("hub", "hub_token_file", "hub_wait", "run_id", "attempt"),  # set by the hub's values
        *("metrics_port", "scrape_interval", "linger", "pushgateway", "pushgateway_url"),  # set by the metrics' values
    }
)
"""Settings of a run that are not allowed under `settings`, because another value or the chart sets them."""


RunOptions = Annotated[dict[str, Any], WithJsonSchema(settings_schema(RunSettings, DECIDED_BY_THE_CHART))]
Backend = Annotated[str, WithJsonSchema({"enum": list(cluster_backends()), "type": "string"})]
Seconds = Annotated[int, Field(ge=1)]
Workload = Annotated[str, Field(pattern="^[A-Za-z0-9]([-A-Za-z0-9_]{0,48}[A-Za-z0-9])?$")]
Workloads = Annotated[list[Workload], Field(json_schema_extra={"uniqueItems": True})]
# The name of a pod ends with the index of its worker, and has room for three digits.
Sizes = Annotated[list[Annotated[int, Field(ge=1, le=999)]], Field(json_schema_extra={"uniqueItems": True})]

SHARED_MEMORY = "1Gi"
"""Size of /dev/shm in a pod of a pool with `workers`, unless the values set it."""

NOT_WITH_WORKERS = ("change", "env", "full", "loop", "vary")
"""Settings that `devbench scale` refuses."""

ONLY_FOR_SCRIPTS = ("args", "watch", "workdir")
"""Settings that a built-in workload refuses."""

UNMEASURED = frozenset(
    {
        *("enabled", "evictions", "jobSeconds", "queue", "jobSet", "jobAnnotations"),  # how the Job is run
        *("hourlyPrice", "currency"),  # what a result costs
        *("podAnnotations", "podLabels", "priorityClassName", "schedulerName", "serviceAccountName"),
        *("dnsPolicy", "dnsConfig", "topologySpreadConstraints"),
    }
)
"""Values of a pool that do not change a measurement. A change to them starts no run."""


class KernelCache(Part):
    """A cache of kernels that the driver compiles for a GPU newer than the image. It makes later starts faster."""

    size: BytesOrNone = Field(
        "", description="Size of the volume, such as 1Gi. Default: no volume. The cache is then lost with the pod."
    )
    storage_class: str = Field("", description="Storage class of the volume. Default: the cluster's default.")
    existing_claim: str = Field("", description="Existing claim to use instead of a new volume.")


class Pool(PodOptions):
    """The values of a pool. They override those of `poolDefaults`, which override those of the preset."""

    model_config = ConfigDict(title="Pool")

    enabled: bool = Field(True, description="Measure on this pool.")
    backend: Backend = Field(reference(), description="Backend to measure. It selects the image.")
    accelerator: str = Field(
        "",
        description="GPU model, named as in the preset, such as t4. Required for GPU pools, except with preset none.",
    )
    preset: Literal["generic", "gke", "aks", "eks", "none"] = Field(
        "generic",
        description="File in presets/ with node labels, tolerations and prices of a cloud. generic: NVIDIA's labels, "
        "no prices. none: only your own labels.",
    )
    cpu_column: bool = Field(
        True,
        description="On a GPU pool, also measure the CPU, interleaved with the GPU. No effect in a pool with "
        "`workers`.",
    )
    workloads: Workloads = Field([], description="Workloads of this pool. Default: `workloads`.")
    settings: RunOptions = Field({}, description="Settings of the pool's runs. They override `settings`.")
    cpu: int = Field(3, ge=1, description="Number of CPUs, as request and limit. Leave one CPU of the node free.")
    # Two workers of cifar on the CPU hold 5.4 GiB of anonymous memory together. With CUDA they hold more.
    memory: Bytes = Field("10Gi", description="Memory, as request and limit.")
    ephemeral_storage: Bytes = Field(
        "4Gi", description="Local disk space for results and temporary files, as request and limit."
    )
    gpus: int = Field(
        1, ge=1, description="Number of GPUs of a GPU pool, as request and limit. Only the first is measured."
    )
    gpu_resource: str = Field(
        "",
        description="Name of the GPU resource to request, such as nvidia.com/mig-1g.5gb. Default: the backend's.",
    )
    resource_claims: Objects = Field(
        [], description="Resource claims of the pod (DRA). The container uses all of them, instead of `gpuResource`."
    )
    nodes: int = Field(
        1,
        ge=1,
        description="Number of nodes to measure at the same time. Each workload runs this many times, so the "
        "results show how much the nodes differ. The history on the hub compares the nodes. The chart does not assign "
        "runs to nodes: if one node takes more than twice as long as another, the other one can run a workload twice. "
        "Requires `exclusiveNode`.",
    )
    workers: Sizes = Field(
        [],
        description="Numbers of workers, such as [1, 2, 4], to measure how each workload scales. For each workload and "
        "each number, a Job runs `devbench scale` with one worker per node. Default: the pool runs each workload as "
        "usual.",
    )
    job_set: Auto = Field(
        "auto",
        description="Run several workers in a JobSet instead of a Job and a Service. `auto`: if the cluster has "
        "JobSets.",
    )
    shared_memory: BytesOrNone = Field(
        "",
        description="Size of /dev/shm, which NCCL needs. It is part of the memory that the pod uses. Default: "
        f"{SHARED_MEMORY} with `workers`, else the container runtime's.",
    )
    allow_shared_gpu: bool = Field(False, description="Allow a shared GPU. Each result then has a warning.")
    exclusive_node: bool = Field(True, description="Allow at most one devbench run per node at a time.")
    spot: bool = Field(False, description="Allow spot nodes. An evicted run starts again.")
    evictions: int = Field(
        5,
        ge=0,
        description="How often an evicted run starts again. After one more eviction, it counts as failed. A run of "
        "several workers fails at the first eviction.",
    )
    instance_type: str = Field(
        "",
        description="Instance type. It also determines the price. Default: the preset's. `any` allows all types.",
    )
    hourly_price: float | None = Field(
        None,
        gt=0,
        description="Price of a node per hour. Default: the list price of the instance type in the preset, if it has "
        "one. It has none for spot nodes. Without a price, results show no costs.",
    )
    currency: str = Field("USD", pattern="^[A-Z]{3}$", description="Currency of the price.")
    node_selector: Strings = Field(
        {}, description="Extra node labels that the pool's pods require. They override the preset's."
    )
    tolerations: Objects = Field([], description="Extra tolerations of the pool's pods.")
    affinity: Object = Field(
        {},
        description="Affinity of the pool's pods. The chart adds its own terms: for the node labels, the GPU, "
        "`exclusiveNode` and `workers`.",
    )
    runtime_class_name: str = Field(
        "", description="Runtime class of the pool's pods. Required if NVIDIA's runtime is not the default."
    )
    queue: str = Field(
        "",
        description="Local queue of Kueue, which then decides when the Job starts. A Job that has started keeps its "
        "queue.",
    )
    run_seconds: Seconds = Field(7200, description="Time limit of a pod in seconds.")
    job_seconds: int = Field(
        0,
        ge=0,
        description="Time limit of the Job in seconds, including the wait for a node. Default: no limit. For scheduled "
        "Jobs, the default is watcher.waitSeconds, plus runSeconds for each workload with each number of workers.",
    )
    kernel_cache: KernelCache = Field(KernelCache(), description="Cache of kernels that the driver compiles.")
    data_claim: str = Field(
        "",
        description="Existing claim with complete data sets. It is mounted read-only at /data. Several nodes need the "
        "access mode ReadOnlyMany or ReadWriteMany.",
    )
    image: ImageOverride = Field(ImageOverride(), description="Image of this pool.")
    job_annotations: Strings = Field(
        {}, description="Extra annotations of the pool's Jobs, such as a sync wave of Argo CD."
    )


PoolName = Annotated[str, Field(pattern=NAME)]
