"""The spec: the roles of its fields, and the equality of specs."""

from __future__ import annotations

import subprocess
import sys
from typing import Any, Literal, get_args, get_origin

import pytest
from synthetic import result, spec

from bench.analyse.comparable import differences
from bench.analyse.roofline import fingerprint
from bench.config.settings import RunSettings, load, value_of
from bench.model.spec import IGNORED, PLACE, ROLES, Data, Env, Execution, Role, Script, Spec, Threads, Workers
from bench.render.labels import short_labels
from bench.study.peaks import peaks_settings
from bench.study.plan import plan

pytestmark = pytest.mark.once

ENV = Env(name="a", python="/python", version="3.11.7", sha256="a" * 64)

PAIRS: dict[str, tuple[Any, Any]] = {
    "workload": ("cifar", "mnist"),
    "case": ("small", "large"),
    "file": ("/a/mine.py", "/b/mine.py"),
    "file_sha256": ("0" * 64, "1" * 64),
    "checkout": ("base", "head"),
    "backend": ("cpu", "cuda"),
    "env": (ENV, ENV.model_copy(update={"name": "b", "sha256": "b" * 64})),
    "params": ({"batch": 32}, {"batch": 64}),
    "script": (Script(), Script(arguments=("--epochs", "3"))),
    "workers": (None, Workers(count=2, strategy="multi-worker")),
    "what_ifs": ((), ("cache",)),
    "xla": (False, True),
    "threads": (Threads(intra=2, inter=2), Threads(intra=1, inter=1)),
    "data": (Data(kind="sample"), Data(kind="full")),
}
"""Two different values of each field. `values` has those of switches, choices and whole numbers."""


def values(name: str) -> tuple[Any, Any]:
    """Return two different values of a field. The first is the default, if the field has one."""
    field = Spec.model_fields[name]
    if name in PAIRS:
        return PAIRS[name]
    if field.annotation is bool:
        return field.default, not field.default
    if get_origin(field.annotation) is Literal:
        return field.default, next(value for value in get_args(field.annotation) if value != field.default)
    return field.default, field.default + 1


def pair(name: str) -> tuple[Spec, Spec]:
    """Return two specs that differ in one field only."""
    left, right = (spec(**{name: value}) for value in values(name))
    return left, right


@pytest.mark.parametrize("name", Spec.model_fields)
def test_specs_that_differ_in_a_field_are_unequal_unless_its_role_ignores_it_with_a_reason(name: str) -> None:
    left, right = pair(name)
    fields = differences(result("a", spec=left), result("b", spec=right))
    ignored = ROLES[name].compare == "ignored"
    assert (left.key == right.key) == ignored
    assert (fields == []) == ignored
    assert bool(ROLES[name].reason) == ignored


@pytest.mark.parametrize("name", [name for name, role in ROLES.items() if role.compare in ("axis", "secondary")])
def test_a_field_with_the_role_of_an_axis_can_be_the_axis_of_a_comparison(name: str) -> None:
    left, right = pair(name)
    (difference,) = differences(result("a", spec=left), result("b", spec=right))
    assert (difference.name, difference.kind) == (name, "axis")


@pytest.mark.parametrize("name", [name for name, role in ROLES.items() if role.label or name == "params"])
def test_labels_of_results_that_differ_in_a_field_contain_the_difference(name: str) -> None:
    left, right = pair(name)
    labels = short_labels([result("a", spec=left), result("b", spec=right)])
    assert len(set(labels)) == 2
    assert not any("(" in label for label in labels), "only the ids distinguish them"


@pytest.mark.parametrize("name", Spec.model_fields)
def test_every_field_declares_exactly_one_role(name: str) -> None:
    assert sum(isinstance(item, Role) for item in Spec.model_fields[name].metadata) == 1


@pytest.mark.parametrize("name", Spec.model_fields)
def test_peaks_are_measured_again_for_a_spec_that_differs_in_a_field_on_which_they_depend(name: str) -> None:
    left, right = pair(name)
    assert (fingerprint(result("a", spec=left)) != fingerprint(result("b", spec=right))) == ROLES[name].peaks


@pytest.mark.parametrize("name", [name for name, role in ROLES.items() if role.options])
def test_peaks_are_measured_with_the_options_on_which_they_depend_and_with_no_others(name: str) -> None:
    other: dict[str, Any] = {
        "backend": "cpu,cuda", "loop": "fused", "case": "small", "param": {"n": "8"}, "change": "cache", "xla": "on",
        "threads": "3", "data": "synthetic", "data_dir": "/data", "args": "--epochs 3", "watch": "2",
        "env": "a=/a",
    }  # fmt: skip
    for option in ROLES[name].options:
        text = other.get(option) or str(values(name)[1])
        settings = peaks_settings(spec(threads=Threads(intra=3, inter=3)), load(**{option: text}))
        if name in Execution.model_fields:
            assert (getattr(settings, option) == value_of(option, text)) == ROLES[name].peaks
        assert settings.backend == ("cpu",)
        assert settings.threads == 3
        if not ROLES[name].peaks and option != "param":
            assert getattr(settings, option) == RunSettings.model_fields[option].default


def test_peaks_are_measured_in_the_environment_of_the_program() -> None:
    assert peaks_settings(spec(), load(env="old=/a")).env == {"old": "/a"}


@pytest.mark.parametrize("name", Spec.model_fields)
def test_the_hub_takes_specs_for_one_program_that_differ_only_in_their_place_or_in_ignored_fields(name: str) -> None:
    left, right = pair(name)
    same = name in PLACE or ROLES[name].compare == "ignored"
    assert (left.program_key == right.program_key) == same


def test_specs_with_the_same_data_in_another_place_are_equal() -> None:
    local, remote = (Data(kind="full", name="d", sha256="1", source=place) for place in ("/mnt/a", "/mnt/b"))
    assert spec(data=local).key == spec(data=remote).key
    assert differences(result("a", data=local), result("b", data=remote)) == []
    assert spec(data=local).key != spec(data=local.model_copy(update={"sha256": "2"})).key


@pytest.mark.parametrize("change", [{"kind": "sample"}, {"name": "e"}, {"sha256": "2"}, {"name": "e", "sha256": "2"}])
def test_runs_of_one_program_on_different_data_cannot_be_compared(change: dict[str, Any]) -> None:
    data = Data(kind="full", name="d", sha256="1")
    (difference,) = differences(result("a", data=data), result("b", data=data.model_copy(update=change)))
    assert (difference.name, difference.kind) == ("data", "unfair")


def test_specs_that_differ_in_either_number_of_threads_are_unequal() -> None:
    keys = {spec(threads=Threads(intra=intra, inter=inter)).key for intra in (1, 2) for inter in (1, 2)}
    assert len(keys) == 4


def test_a_role_that_ignores_a_field_needs_a_reason() -> None:
    with pytest.raises(TypeError, match="reason"):
        Role("ignored")


def test_every_option_of_a_role_is_a_setting() -> None:
    options = {option for role in ROLES.values() for option in role.options}
    assert options <= RunSettings.model_fields.keys()
    assert options >= Execution.model_fields.keys()


LISTS = {"xla": "auto,on,off", "threads": "1,2"}
"""The values for `--vary` of options whose values differ from those of their fields."""


@pytest.mark.parametrize("name", [name for name, role in ROLES.items() if role.several == "vary" and name != "params"])
def test_every_field_that_may_vary_can_be_varied(name: str) -> None:
    (option,) = ROLES[name].options
    texts = LISTS.get(option) or ",".join(map(str, values(name)))
    (group,) = plan(["matmul"], load(vary={option: texts}, loop="as-written"))
    fields = [getattr(planned.spec, name) for planned in group.planned]
    assert len({str(field) for field in fields}) == len(texts.split(","))


@pytest.mark.parametrize("name", Execution.model_fields)
def test_an_execution_option_reaches_the_spec_unchanged(name: str) -> None:
    default, other = values(name)
    (group,) = plan(["matmul"], load(**{name: str(other)}))
    assert getattr(group.planned[0].spec, name) == value_of(name, str(other)) != default


def test_the_key_does_not_depend_on_the_process_or_the_order_of_parameters() -> None:
    script = """
from bench.model.spec import Data, Spec, Threads
print(Spec(workload="w", backend="cpu", params={"b": 1, "a": [1, 2]}, threads=Threads(intra=1, inter=1),
           data=Data(kind="own")).key)
"""
    params = {"a": [1, 2], "b": 1}
    spec = Spec(workload="w", backend="cpu", params=params, threads=Threads(intra=1, inter=1), data=Data(kind="own"))
    process = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert process.stdout.strip() == spec.key
    assert len(spec.key) == 16
    assert int(spec.key, 16) >= 0


def test_only_paths_are_ignored() -> None:
    assert IGNORED == {"file": True, "data": {"source": True}}
