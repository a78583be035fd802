"""Monitors, rules, dashboards, routes and notes of the chart."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from rendering import CHART, ROOT, Object, notes, only, operator_versions, render

pytestmark = [pytest.mark.once, pytest.mark.needs("go"), pytest.mark.timeout(1800)]

RESTRICTED = {"readersSecret": "devbench-readers"}
PUBLISHED = {"hub": {"service": {"type": "NodePort"}}}


def test_monitors_have_common_labels_timeouts_and_relabelings() -> None:
    scrape = {"enabled": True, "timeoutSeconds": 5, "relabelings": [{"action": "labelmap", "regex": "a"}]}
    metrics = {
        "labels": {"release": "stack", "team": "ml"},
        "podMonitor": {**scrape, "labels": {"team": "own"}},
        "serviceMonitor": {**scrape, "metricRelabelings": [{"action": "drop", "regex": "b"}]},
        "prometheusRule": {"enabled": True},
    }
    rendered = render(values={"metrics": metrics})
    (endpoint,) = only(rendered, "ServiceMonitor")["spec"]["endpoints"]
    assert (endpoint["scrapeTimeout"], endpoint["relabelings"], endpoint["metricRelabelings"]) == (
        "5s", scrape["relabelings"], [{"action": "drop", "regex": "b"}],
    )  # fmt: skip
    assert only(rendered, "PodMonitor")["metadata"]["labels"]["team"] == "own"
    for kind in ("PodMonitor", "ServiceMonitor", "PrometheusRule"):
        assert only(rendered, kind)["metadata"]["labels"]["release"] == "stack", kind


@pytest.mark.parametrize(
    ("values", "warned"),
    [
        (PUBLISHED, False),
        ({}, False),
        ({**PUBLISHED, "networkPolicy": {"users": [{"namespaceSelector": {}}]}}, True),
        ({**PUBLISHED, "networkPolicy": {"users": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]}}, False),
        ({**PUBLISHED, "networkPolicy": {"enabled": False, "users": [{"namespaceSelector": {}}]}}, False),
    ],
)
def test_the_notes_warn_if_the_network_policy_blocks_external_access_to_the_hub(values: Object, warned: bool) -> None:
    assert ("The NetworkPolicy of the hub admits only pods" in notes(values)) is warned


@pytest.mark.parametrize(
    ("hub", "line"),
    [
        ({}, "port-forward service/devbench-hub 8080:80"),
        ({"ingress": {"enabled": True, "hosts": ["b.example.org"]}}, "  http://b.example.org/"),
        (
            {"ingress": {"enabled": True, "hosts": ["b.org"], "tls": [{}]}, "settings": {"root_path": "/bench"}},
            "  https://b.org/bench",
        ),
        ({"httpRoute": {"enabled": True, "hostnames": ["b.example.org"]}}, "  http://b.example.org/"),
        ({"service": {"type": "LoadBalancer", "port": 81}}, "open http://ADDRESS:81/"),
        ({"service": {"type": "NodePort"}}, "open http://ADDRESS-OF-A-NODE:PORT/"),
    ],
)
def test_the_notes_say_where_the_results_are(hub: Object, line: str) -> None:
    assert line in notes({"hub": hub})


def test_a_hub_with_a_root_path_is_routed_only_under_that_path() -> None:
    routes = {"ingress": {"enabled": True}, "httpRoute": {"enabled": True, "parentRefs": [{"name": "gateway"}]}}
    for settings, path in (({}, "/"), ({"root_path": "/devbench"}, "/devbench")):
        rendered = render(CHART / "ci" / "default-values.yaml", values={"hub": {"settings": settings, **routes}})
        (rule,) = only(rendered, "Ingress")["spec"]["rules"]
        assert [entry["path"] for entry in rule["http"]["paths"]] == [path]
        (route,) = only(rendered, "HTTPRoute")["spec"]["rules"]
        assert [match["path"]["value"] for match in route["matches"]] == [path]


def test_monitors_are_rendered_if_the_cluster_knows_their_kinds_or_the_values_enable_them() -> None:
    def kinds(values: Object, *options: str) -> set[str]:
        rendered = render(values=values, options=options)
        return {item["kind"] for item in rendered if item["apiVersion"].startswith("monitoring")}

    enabled = {name: {"enabled": True} for name in ("podMonitor", "serviceMonitor")}
    disabled = {name: {"enabled": False} for name in ("podMonitor", "serviceMonitor", "prometheusRule")}
    assert kinds({}) == set()
    assert kinds({"metrics": enabled}) == {"PodMonitor", "ServiceMonitor"}
    assert kinds({}, *operator_versions()) >= {"PodMonitor", "ServiceMonitor"}
    assert kinds({"metrics": disabled}, *operator_versions()) == set()


def test_prometheus_scrapes_a_restricted_hub_as_a_reader_and_never_gets_the_write_tokens() -> None:
    def endpoint(**auth: str) -> Object:
        values = {"hub": {"auth": auth}, "metrics": {"serviceMonitor": {"enabled": True}}}
        (item,) = only(render(values=values), "ServiceMonitor")["spec"]["endpoints"]
        return {name: value for name, value in item.items() if name not in ("port", "path", "interval")}

    read = {name: {"name": "devbench-scraper", "key": name} for name in ("username", "password")}
    assert endpoint(**RESTRICTED, scraperSecret="devbench-scraper") == {"basicAuth": read}
    assert endpoint(scraperSecret="devbench-scraper") == endpoint() == {}


def test_a_restricted_hub_without_a_monitor_has_no_scrape_annotations_and_needs_no_scraper() -> None:
    def has_scrape_annotations(auth: Object, monitor: object = "auto") -> bool:
        values = {"hub": {"auth": auth}, "metrics": {"serviceMonitor": {"enabled": monitor}}}
        annotations = only(render(values=values), "Deployment", "-hub")["spec"]["template"]["metadata"]["annotations"]
        assert annotations["devbench/token"] == "devbench-token"
        return any(name.startswith("prometheus.io/") for name in annotations)

    for monitor in ("auto", False):
        assert has_scrape_annotations({}, monitor)
        assert not has_scrape_annotations(RESTRICTED, monitor)


def test_dashboards_become_config_maps_with_the_label_of_grafanas_sidecar(tmp_path: Path) -> None:
    chart = tmp_path / "devbench"
    shutil.copytree(CHART, chart)
    (chart / "dashboards").mkdir(exist_ok=True)
    (chart / "dashboards" / "try_it.json").write_text('{"title": "{{ x }}"}', encoding="utf-8")
    values = {"metrics": {"dashboards": {"enabled": True, "annotations": {"grafana_folder": "devbench"}}}}
    config_map = only(render(values=values, chart=chart), "ConfigMap", "try-it")
    assert config_map["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert config_map["metadata"]["annotations"] == {"grafana_folder": "devbench"}
    assert config_map["data"] == {"devbench-try_it.json": '{"title": "{{ x }}"}'}


def alerts_of(values: Object) -> list[Object]:
    """Return the alerting rules."""
    groups = only(render(values=values), "PrometheusRule")["spec"]["groups"]
    return [rule for group in groups for rule in group["rules"] if "alert" in rule]


def test_without_a_schedule_no_result_counts_as_too_old() -> None:
    rule = {"metrics": {"prometheusRule": {"enabled": True}}}
    default, scheduled = (
        {alert["alert"] for alert in alerts_of({**rule, **values})}
        for values in ({}, {"schedule": {"cron": "@weekly"}})
    )
    assert scheduled - default == {"DevbenchResultTooOld"}
    assert len(default) == 5


@pytest.mark.parametrize(
    ("hub", "warned"),
    [
        ({}, False),
        ({"ingress": {"enabled": True}}, True),
        ({"service": {"type": "LoadBalancer"}}, True),
        ({"ingress": {"enabled": True}, "auth": RESTRICTED}, False),
    ],
)
def test_the_notes_warn_if_everyone_can_read_a_published_hub(hub: Object, warned: bool) -> None:
    assert ("WARNING: everyone who can reach the hub can read all results" in notes({"hub": hub})) is warned


def test_the_notes_name_the_workloads_of_each_pool() -> None:
    said = notes({"pools": {"cpu": {"workloads": ["matmul"]}}})
    assert "devbench measures:\n  cpu: matmul with cpu, on nodes with kubernetes.io/arch=amd64, " in said


def test_each_alert_links_to_its_own_section_of_the_page_about_alerts() -> None:
    page = (ROOT / "docs" / "alerts.md").read_text(encoding="utf-8")
    sections = {line.removeprefix("## ").lower() for line in page.splitlines() if line.startswith("## ")}
    rule = {"enabled": True, "runbookUrl": "https://example.org/alerts.html"}
    alerts = alerts_of({"metrics": {"prometheusRule": rule}, "schedule": {"cron": "0 3 * * 1"}})
    assert {alert["alert"].lower() for alert in alerts} == sections
    for alert in alerts:
        assert alert["annotations"]["runbook_url"] == f"https://example.org/alerts.html#{alert['alert'].lower()}"
