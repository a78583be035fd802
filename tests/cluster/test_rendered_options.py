"""Options of pods and of the hub's Service reach the objects."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from rendering import Object, jobs, merge, only, pods, render
from value_paths import POD_OPTIONS

pytestmark = [pytest.mark.once, pytest.mark.needs("go"), pytest.mark.timeout(1800)]

OF_CONTAINER = {"env": "env", "envFrom": "envFrom", "extraVolumeMounts": "volumeMounts"}
"""Options of the container, with their fields."""

OF_POD = {
    "extraVolumes": "volumes",
    "initContainers": "initContainers",
    "tolerations": "tolerations",
    "topologySpreadConstraints": "topologySpreadConstraints",
    "priorityClassName": "priorityClassName",
    "schedulerName": "schedulerName",
    "serviceAccountName": "serviceAccountName",
    "dnsPolicy": "dnsPolicy",
    "dnsConfig": "dnsConfig",
}
"""Options of the pod, with their fields."""

SERVICE: dict[str, Any] = {
    "type": "LoadBalancer",
    "nodePort": 30080,
    "loadBalancerClass": "example.org/internal",
    "loadBalancerSourceRanges": ["192.0.2.0/24"],
    "externalTrafficPolicy": "Local",
    "ipFamilyPolicy": "PreferDualStack",
    "ipFamilies": ["IPv6", "IPv4"],
    "annotations": {"example.org/note": "hello"},
}


@pytest.mark.parametrize("of", ["run", "hub", "watcher", "test"])
def test_every_option_of_a_pod_reaches_it(of: str) -> None:
    section = {"run": "poolDefaults"}.get(of, of)
    rendered = render(values={section: POD_OPTIONS})
    templates = [pod for _, pod in pods(rendered) if pod["metadata"]["labels"]["app.kubernetes.io/component"] == of]
    assert templates
    for template in templates:
        assert list(missing(template)) == []


def missing(template: Object) -> Iterator[str]:
    """Yield the options that a pod does not have."""
    spec = template["spec"]
    (container,) = spec["containers"]
    for option, value in POD_OPTIONS.items():
        if option == "env":
            value = [
                {"name": name, "value" if isinstance(each, str) else "valueFrom": each} for name, each in value.items()
            ]
        if option in OF_CONTAINER:
            found = container.get(OF_CONTAINER[option])
        elif option in OF_POD:
            found = spec.get(OF_POD[option])
        elif option in ("podAnnotations", "podLabels"):
            found = template["metadata"][option.removeprefix("pod").lower()]
        elif option == "affinity":
            found = {name: spec["affinity"].get(name) for name in value}
        else:
            assert option == "nodeSelector", f"{option} is new: say where it goes"
            found = spec.get("nodeSelector") or {"team": "ml" if "'team'" in str(spec["affinity"]) else ""}
        if not _contains(found, value):
            yield option


def _contains(found: Any, value: Any) -> bool:
    if isinstance(value, list):
        return found is not None and all(item in found for item in value)
    if isinstance(value, dict):
        return found is not None and value.items() <= found.items()
    return bool(found == value)


def test_every_option_of_the_service_reaches_it() -> None:
    service = only(render(values={"hub": {"service": SERVICE}}), "Service")
    (port,) = service["spec"]["ports"]
    assert port["nodePort"] == SERVICE["nodePort"]
    assert service["metadata"]["annotations"] == SERVICE["annotations"]
    for name in SERVICE.keys() - {"nodePort", "annotations"}:
        assert service["spec"][name] == SERVICE[name], name


def test_routes_to_the_hub_have_labels_and_annotations_of_the_user() -> None:
    own = {"labels": {"team": "ml"}, "annotations": {"example.org/note": "hello"}}
    for section, kind in (("ingress", "Ingress"), ("httpRoute", "HTTPRoute")):
        values = merge({"hub": {section: {"enabled": True}}}, {"hub": {section: own}})
        metadata = only(render(values=values), kind)["metadata"]
        assert own["labels"].items() <= metadata["labels"].items()
        assert metadata["annotations"] == own["annotations"]


def test_a_pool_and_the_release_can_annotate_jobs() -> None:
    values = {"commonAnnotations": {"note": "all"}, "poolDefaults": {"jobAnnotations": {"note": "job", "wave": "1"}}}
    rendered = render(values=values)
    for job in jobs(rendered).values():
        assert {"note": "job", "wave": "1"}.items() <= job["metadata"]["annotations"].items()
    assert only(rendered, "Deployment", "-hub")["metadata"]["annotations"]["note"] == "all"
