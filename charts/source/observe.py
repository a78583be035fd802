"""Metrics, dashboards and network policies."""

from __future__ import annotations

from pydantic import Field

from charts.source.base import Auto, Objects, Part, Strings


class Monitor(Part):
    """An object of the Prometheus operator."""

    enabled: Auto = Field(
        "auto", description="Create this object of the Prometheus operator. `auto`: if the cluster has the operator."
    )
    labels: Strings = Field({}, description="Extra labels of this object. They override `metrics.labels`.")


class ScrapedBy(Monitor):
    """A monitor with a scrape interval."""

    interval_seconds: int = Field(30, ge=1, description="Scrape interval in seconds.")
    timeout_seconds: int = Field(
        0, ge=0, description="Scrape timeout in seconds, at most the interval. Default: Prometheus' own."
    )
    relabelings: Objects = Field([], description="Relabelings of the target.")
    metric_relabelings: Objects = Field([], description="Relabelings of the metrics.")


class Rules(Monitor):
    """The rules of the Prometheus operator."""

    runbook_url: str = Field(
        "",
        pattern="^(https?://.+)?$",
        description="Address of a copy of `docs/alerts.md`. Each alert links to its section. Default: no link.",
    )


class Dashboards(Part):
    """Grafana dashboards as ConfigMaps. Grafana's sidecar finds them by their label."""

    enabled: Auto = Field(
        "auto", description="Create the ConfigMaps. `auto`: if the cluster has the Prometheus operator."
    )
    labels: Strings = Field({"grafana_dashboard": "1"}, description="Labels that Grafana's sidecar selects.")
    annotations: Strings = Field({}, description="Annotations, such as the folder in Grafana.")


class Metrics(Part):
    """Prometheus metrics of runs and of the hub."""

    enabled: bool = Field(True, description="Serve metrics of runs.")
    port: int = Field(9400, ge=1024, le=65535, description="Port of the metrics of runs.")
    linger_seconds: int | None = Field(
        None,
        ge=0,
        description="Seconds that a finished run keeps serving its metrics. Default: until the next scrape, for at "
        "most two intervals of the PodMonitor. A failed run uses both. A run that was not scraped in two intervals "
        "does not wait.",
    )
    annotations: bool = Field(
        True,
        description="Add prometheus.io annotations if there is no monitor. A hub with a `readersSecret` gets none, "
        "because annotations cannot name a reader.",
    )
    labels: Strings = Field(
        {},
        description="Extra labels of the monitors and rules, such as the `release` label that the Prometheus operator "
        "selects.",
    )
    pod_monitor: ScrapedBy = Field(ScrapedBy(), description="PodMonitor of the runs.")
    service_monitor: ScrapedBy = Field(ScrapedBy(), description="ServiceMonitor of the hub.")
    prometheus_rule: Rules = Field(Rules(), description="Recording and alerting rules.")
    dashboards: Dashboards = Field(Dashboards(), description="Grafana dashboards.")


class NetworkPolicy(Part):
    """The allowed traffic. All other traffic to and from devbench's pods is blocked."""

    enabled: bool = Field(True, description="Create network policies.")
    prometheus_namespace: str = Field(
        "monitoring", description="Namespace of Prometheus. If empty, all namespaces may scrape."
    )
    users: Objects = Field(
        [],
        description="Peers that may open the pages of the hub, such as the namespace of an ingress controller. "
        "Default: all pods of the cluster, or all addresses if the hub has an Ingress, an HTTPRoute, or a Service of a "
        "type other than ClusterIP, because load balancers send from addresses of their own.",
    )
    dns: Objects = Field(
        [],
        description="DNS servers. Default: any address on `dnsPorts`, because a node-local cache is not a pod.",
    )
    dns_ports: list[int] = Field([53, 5353], description="Ports of the DNS servers. OpenShift's pods use 5353.")
    api_server: Objects = Field(
        [], description="Network policy peers of the API server. Default: any address on `apiServerPorts`."
    )
    api_server_ports: list[int] = Field([443, 6443], description="Ports of the API server.")
    postgresql: Objects = Field(
        [], description="Network policy peers of PostgreSQL. Default: any address on `postgresqlPort`."
    )
    postgresql_port: int = Field(5432, ge=1, le=65535, description="Port of PostgreSQL.")
    outside_hub: Objects = Field(
        [], description="Network policy peers of the hub at `hub.url`. Default: any address on its port."
    )
    run_egress: Objects = Field([], description="Extra egress rules of runs, for example to download data sets.")
