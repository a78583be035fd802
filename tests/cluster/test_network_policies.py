"""The connections that the NetworkPolicies of the chart allow.

The nodes of the tests do not enforce policies, so the tests evaluate the rules as Kubernetes defines them.
"""

from __future__ import annotations

from typing import Any

import pytest
from rendering import CHART, JOBSET, Object, pods, render

pytestmark = [pytest.mark.once, pytest.mark.needs("go"), pytest.mark.timeout(1800)]

NAMESPACES = {
    "bench": {"kubernetes.io/metadata.name": "bench"},
    "monitoring": {"kubernetes.io/metadata.name": "monitoring"},
    "kube-system": {"kubernetes.io/metadata.name": "kube-system"},
    "elsewhere": {"kubernetes.io/metadata.name": "elsewhere"},
    "ingress-nginx": {"kubernetes.io/metadata.name": "ingress-nginx"},
}
OTHER_PODS: dict[str, tuple[str, dict[str, str]]] = {
    "prometheus": ("monitoring", {"app": "prometheus"}),
    "dns": ("kube-system", {"k8s-app": "kube-dns"}),
    "someone": ("elsewhere", {"app": "web"}),
    "ingress": ("ingress-nginx", {"app": "controller"}),
    "postgresql": ("bench", {"app": "postgresql"}),
    "outside": ("", {}),
}
PORTS = {"http": 8080, "metrics": 9400}


def test_needed_connections_are_allowed() -> None:
    flows = Flows(render())
    for source, target, port in [
        ("run", "hub", 8080), ("watcher", "hub", 8080), ("test", "hub", 8080), ("someone", "hub", 8080),
        ("prometheus", "hub", 8080), ("prometheus", "run", 9400), ("run", "dns", 53), ("watcher", "dns", 53),
        ("hub", "dns", 53), ("watcher", "outside", 443), ("watcher", "outside", 6443),
    ]:  # fmt: skip
        assert flows.allowed(source, target, port), f"{source} → {target}:{port}"


def test_other_connections_are_blocked() -> None:
    flows = Flows(render())
    for source, target, port in [
        ("run", "outside", 443), ("run", "hub", 22), ("run", "run", 9400), ("someone", "run", 9400),
        ("hub", "outside", 443), ("hub", "run", 9400), ("test", "outside", 443), ("someone", "watcher", 8080),
        ("watcher", "outside", 80), ("hub", "postgresql", 5432), ("run", "someone", 54),
    ]:  # fmt: skip
        assert not flows.allowed(source, target, port), f"{source} → {target}:{port}"


def test_pods_reach_dns_at_any_address_unless_the_values_name_the_dns_pods() -> None:
    assert Flows(render()).allowed("run", "someone", 53)
    peer = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}}}
    flows = Flows(render(values={"networkPolicy": {"dns": [peer]}}))
    assert flows.allowed("run", "dns", 53)
    assert not flows.allowed("run", "someone", 53)


def test_openshifts_dns_is_reached_on_its_own_port() -> None:
    assert Flows(render()).allowed("run", "dns", 5353)


@pytest.mark.parametrize(
    "hub", [{"ingress": {"enabled": True}}, {"httpRoute": {"enabled": True}}, {"service": {"type": "LoadBalancer"}}]
)
def test_a_published_hub_is_reached_from_outside_unless_the_values_name_its_users(hub: Object) -> None:
    assert not Flows(render()).allowed("outside", "hub", 8080)
    assert Flows(render(values={"hub": hub})).allowed("outside", "hub", 8080)
    users = {"users": [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "ingress-nginx"}}}]}
    flows = Flows(render(values={"hub": hub, "networkPolicy": users}))
    assert not flows.allowed("outside", "hub", 8080)
    assert flows.allowed("ingress", "hub", 8080)


def test_the_hub_reaches_postgresql_and_only_named_users_reach_the_hub() -> None:
    flows = Flows(render(CHART / "ci/postgresql-values.yaml"))
    assert flows.allowed("hub", "postgresql", 5432)
    assert not flows.allowed("hub", "outside", 5432)
    assert not flows.allowed("run", "postgresql", 5432)
    assert flows.allowed("ingress", "hub", 8080)
    assert not flows.allowed("someone", "hub", 8080)


def test_runs_and_the_watcher_reach_the_port_of_an_external_hub() -> None:
    flows = Flows(render(CHART / "ci/outside-hub-values.yaml"))
    for source in ("run", "watcher", "test"):
        assert flows.allowed(source, "outside", 8443)
        assert not flows.allowed(source, "outside", 8444)


@pytest.mark.parametrize("options", [(), (f"--api-versions={JOBSET}",)], ids=["Jobs", "JobSets"])
def test_only_the_workers_of_one_run_reach_each_other_and_on_every_port(options: tuple[str, ...]) -> None:
    own = {"workers": [1, 2, 4]}
    flows = Flows(render(values={"workloads": ["cifar"], "pools": {"cpu": own, "t4": own}}, options=options))
    workers = [name for name in flows.places if "-cpu-w" in name]
    assert len(workers) == 3
    for name in workers:
        for port in (22, 2222, 9400, 40000):
            several = "-w1-" not in name
            assert flows.allowed(name, name, port) is several, f"{name}:{port}"
        for other in {*flows.places} - {name, "hub", "dns", "prometheus"}:
            assert not flows.allowed(name, other, 2222), f"{name} → {other}"
            assert not flows.allowed(other, name, 2222), f"{other} → {name}"
        assert flows.allowed(name, "hub", 8080)
        assert flows.allowed(name, "dns", 53)
        assert flows.allowed("prometheus", name, 9400)
        assert not flows.allowed("prometheus", name, 2222)


class Flows:
    """The policies in rendered objects, and the pods that they apply to."""

    def __init__(self, rendered: list[Object]) -> None:
        self.policies = [policy["spec"] for policy in rendered if policy["kind"] == "NetworkPolicy"]
        self.places = dict(OTHER_PODS)
        for _, template in pods(rendered):
            labels = template["metadata"]["labels"]
            self.places[labels.get("devbench/run", labels["app.kubernetes.io/component"])] = ("bench", labels)

    def allowed(self, source: str, target: str, port: int) -> bool:
        """Return whether the source may open a connection and the target may accept it."""
        return self._side("Egress", "egress", "to", source, target, port) and self._side(
            "Ingress", "ingress", "from", target, source, port
        )

    def _side(self, kind: str, rules: str, peers: str, pod: str, peer: str, port: int) -> bool:
        namespace, labels = self.places[pod]
        policies = [
            policy
            for policy in self.policies
            if namespace == "bench" and kind in policy["policyTypes"] and _selected(policy["podSelector"], labels)
        ]
        if not policies:
            return True
        return any(
            self._peers(rule.get(peers), peer) and _ports(rule.get("ports"), port)
            for policy in policies
            for rule in policy.get(rules, [])
        )

    def _peers(self, listed: list[Object] | None, name: str) -> bool:
        namespace, labels = self.places[name]
        if not listed:
            return True
        return any(
            namespace != ""
            and "ipBlock" not in peer
            and (
                _selected(peer["namespaceSelector"], NAMESPACES[namespace])
                if "namespaceSelector" in peer
                else namespace == "bench"
            )
            and _selected(peer.get("podSelector", {}), labels)
            for peer in listed
        )


def _ports(listed: list[Object] | None, port: int) -> bool:
    return not listed or any(PORTS.get(rule["port"], rule["port"]) == port for rule in listed)


def _selected(selector: dict[str, Any], labels: dict[str, str]) -> bool:
    assert set(selector) <= {"matchLabels"}, "this test does not evaluate expressions"
    return all(labels.get(key) == value for key, value in selector.get("matchLabels", {}).items())
