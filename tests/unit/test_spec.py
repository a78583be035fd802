"""The spec: what its fields are for, and which specs are equal."""

from __future__ import annotations

import subprocess
import sys
from typing import Any, Literal, get_args, get_origin

import pytest
from synthetic import result, spec

from bench.analyse.comparable import differences
from bench.config.settings import RunSettings, load, value_of
from bench.model.spec import IGNORED, ROLES, Data, Execution, Role, Spec, Threads
from bench.render.labels import short_labels
from bench.study.plan import plan

pytestmark = pytest.mark.once

PAIRS: dict[str, tuple[Any, Any]] = {
    "workload": ("cifar", "mnist"),
    "case": ("small", "large"),
    "file": ("/a/mine.py", "/b/mine.py"),
    "file_sha256": ("0" * 64, "1" * 64),
    "backend": ("cpu", "cuda"),
    "params": ({"batch": 32}, {"batch": 64}),
    "what_ifs": ((), ("cache",)),
    "xla": (False, True),
    "threads": (Threads(intra=2, inter=2), Threads(intra=1, inter=1)),
    "data": (Data(kind="sample"), Data(kind="full")),
}
"""Field: two different values. `values` knows switches, choices and whole numbers."""


def values(name: str) -> tuple[Any, Any]:
    """Two different values of a field. The first is the default, if the field has one."""
    field = Spec.model_fields[name]
    if name in PAIRS:
        return PAIRS[name]
    if field.annotation is bool:
        return field.default, not field.default
    if get_origin(field.annotation) is Literal:
        return field.default, next(value for value in get_args(field.annotation) if value != field.default)
    return field.default, field.default + 1


def pair(name: str) -> tuple[Spec, Spec]:
    """Two specs that differ in one field only."""
    left, right = (spec(**{name: value}) for value in values(name))
    return left, right


@pytest.mark.parametrize("name", Spec.model_fields)
def test_specs_that_differ_in_a_field_are_not_equal_unless_the_field_says_why(name: str) -> None:
    left, right = pair(name)
    found = differences(result("a", spec=left), result("b", spec=right))
    ignored = ROLES[name].compare == "ignored"
    assert (left.key == right.key) == ignored
    assert (found == []) == ignored
    assert bool(ROLES[name].reason) == ignored


@pytest.mark.parametrize("name", [name for name, role in ROLES.items() if role.compare in ("axis", "secondary")])
def test_a_comparison_can_be_about_each_field_that_says_so(name: str) -> None:
    left, right = pair(name)
    (found,) = differences(result("a", spec=left), result("b", spec=right))
    assert (found.name, found.kind) == (name, "axis")


@pytest.mark.parametrize("name", [name for name, role in ROLES.items() if role.label or name == "params"])
def test_results_that_differ_in_a_field_have_labels_that_say_so(name: str) -> None:
    left, right = pair(name)
    found = short_labels([result("a", spec=left), result("b", spec=right)])
    assert len(set(found)) == 2
    assert not any("(" in each for each in found), "only the ids distinguish them"


def test_the_content_of_the_data_counts_and_its_place_does_not() -> None:
    here, there = (Data(kind="full", name="d", sha256="1", source=place) for place in ("/mnt/a", "/mnt/b"))
    assert spec(data=here).key == spec(data=there).key
    assert differences(result("a", data=here), result("b", data=there)) == []
    assert spec(data=here).key != spec(data=here.model_copy(update={"sha256": "2"})).key


@pytest.mark.parametrize("change", [{"kind": "sample"}, {"name": "e"}, {"sha256": "2"}, {"name": "e", "sha256": "2"}])
def test_runs_of_one_program_on_different_data_cannot_be_compared(change: dict[str, Any]) -> None:
    data = Data(kind="full", name="d", sha256="1")
    (difference,) = differences(result("a", data=data), result("b", data=data.model_copy(update=change)))
    assert (difference.name, difference.kind) == ("data", "unfair")


def test_each_value_of_threads_counts() -> None:
    keys = {spec(threads=Threads(intra=intra, inter=inter)).key for intra in (1, 2) for inter in (1, 2)}
    assert len(keys) == 4


def test_a_role_that_ignores_a_field_has_to_say_why() -> None:
    with pytest.raises(TypeError, match="reason"):
        Role("ignored")


def test_every_option_of_a_role_is_a_setting() -> None:
    options = {option for role in ROLES.values() for option in role.options}
    assert options <= RunSettings.model_fields.keys()
    assert options >= Execution.model_fields.keys()


LISTS = {"xla": "auto,on,off", "threads": "1,2"}
"""Option: what `--vary` takes, for options whose values differ from the field's."""


@pytest.mark.parametrize("name", [name for name, role in ROLES.items() if role.several == "vary" and name != "params"])
def test_every_field_that_may_vary_can_be_varied(name: str) -> None:
    (option,) = ROLES[name].options
    listed = LISTS.get(option) or ",".join(map(str, values(name)))
    (group,) = plan(["matmul"], load(vary={option: listed}, loop="as-written"))
    found = [getattr(each.spec, name) for each in group.planned]
    assert len({str(each) for each in found}) == len(listed.split(","))


@pytest.mark.parametrize("name", Execution.model_fields)
def test_an_option_of_the_execution_reaches_the_spec_as_it_was_set(name: str) -> None:
    default, other = values(name)
    (group,) = plan(["matmul"], load(**{name: str(other)}))
    assert getattr(group.planned[0].spec, name) == value_of(name, str(other)) != default


def test_the_key_is_the_same_in_every_process_and_in_any_order_of_parameters() -> None:
    script = """
from bench.model.spec import Data, Spec, Threads
print(Spec(workload="w", backend="cpu", params={"b": 1, "a": [1, 2]}, threads=Threads(intra=1, inter=1),
           data=Data(kind="own")).key)
"""
    params = {"a": [1, 2], "b": 1}
    spec = Spec(workload="w", backend="cpu", params=params, threads=Threads(intra=1, inter=1), data=Data(kind="own"))
    there = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert there.stdout.strip() == spec.key
    assert len(spec.key) == 16
    assert int(spec.key, 16) >= 0


def test_only_paths_are_ignored() -> None:
    assert IGNORED == {"file": True, "data": {"source": True}}
