"""Metrics, dashboards, and who may talk to whom."""

from __future__ import annotations

from pydantic import Field

from charts.source.base import Auto, Objects, Part, Strings


class Monitor(Part):
    """An object of the Prometheus operator."""

    enabled: Auto = Field("auto", description="auto: where the cluster has the operator's resources.")
    labels: Strings = Field({}, description="Further labels, such as the `release` that the operator selects by.")


class ScrapedBy(Monitor):
    """One that says how often to scrape."""

    interval_seconds: int = Field(30, ge=1, description="Time between two scrapes.")


class Dashboards(Part):
    """Grafana's dashboards as ConfigMaps, which its sidecar finds by their label."""

    enabled: Auto = Field("auto", description="auto: where the cluster has the Prometheus operator.")
    labels: Strings = Field({"grafana_dashboard": "1"}, description="What the sidecar looks for.")
    annotations: Strings = Field({}, description="Such as the folder to show them in.")


class Metrics(Part):
    """What Prometheus reads of runs and hub."""

    enabled: bool = Field(True, description="Runs serve metrics while they live.")
    port: int = Field(9400, ge=1024, le=65535, description="Port of a run's metrics.")
    linger_seconds: int | None = Field(
        None,
        ge=0,
        description="A run stays this long after its end, for the last scrape; without it: two of the PodMonitor's "
        "intervals.",
    )
    annotations: bool = Field(
        True,
        description="prometheus.io annotations, where no monitor is asked for; none on a hub whose reads are closed, "
        "since they name no reader.",
    )
    pod_monitor: ScrapedBy = Field(ScrapedBy(), description="PodMonitor of the runs.")
    service_monitor: ScrapedBy = Field(ScrapedBy(), description="ServiceMonitor of the hub.")
    prometheus_rule: Monitor = Field(Monitor(), description="Recording and alerting rules.")
    dashboards: Dashboards = Field(Dashboards(), description="Grafana's dashboards.")


class NetworkPolicy(Part):
    """Which flows are let through; everything else of devbench's pods is shut."""

    enabled: bool = Field(True, description="Whether there are any.")
    prometheus_namespace: str = Field("monitoring", description="Namespace that Prometheus scrapes from; empty: all.")
    users: Objects = Field(
        [{"namespaceSelector": {}}],
        description="Peers that may open the hub's pages, such as an ingress controller's namespace. From outside the "
        "cluster (a load balancer, a NodePort) nobody may until an ipBlock lets them.",
    )
    dns: Objects = Field(
        [],
        description="Peers that answer DNS; empty: any address, on port 53, since a node's own cache is no pod.",
    )
    api_server: Objects = Field(
        [], description="Peers that are the API server; empty: any address, on the ports below."
    )
    api_server_ports: list[int] = Field([443, 6443], description="Ports of the API server.")
    postgresql: Objects = Field([], description="Peers that are PostgreSQL; empty: any address, on the port below.")
    postgresql_port: int = Field(5432, ge=1, le=65535, description="Port of PostgreSQL.")
    outside_hub: Objects = Field([], description="Peers that are an outside hub; empty: any address, on its port.")
    run_egress: Objects = Field([], description="Further egress rules of runs, such as for downloading data sets.")
