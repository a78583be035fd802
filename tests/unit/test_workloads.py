"""The built-in workloads. Each has the numbers, loops and notes of its article.

A new workload is one file and one row in `WORKLOADS`.
"""

from __future__ import annotations

import ast
import itertools
import json
import math
from dataclasses import dataclass, field
from typing import Any

import pytest

from bench import registry
from bench.errors import SettingsError
from bench.model.spec import LOOPS
from bench.registry.params import params_type, parse_params

pytestmark = pytest.mark.once

ALL_LOOPS = frozenset(LOOPS)
NO_FIT = ALL_LOOPS - {"fit"}
OWN_LOOP = frozenset({"as-written"})


@dataclass(frozen=True)
class Expected:
    """The expected properties of a workload.

    Args:
        params: The default of each parameter, which is the number of the article.
        loops: The loops that apply.
        cases: The names of its cases.
        data: The data set that it loads. None if it generates its data.
        article: Whether it comes from one article, which its docstring names.
    """

    params: dict[str, Any]
    loops: frozenset[str]
    cases: set[str] = field(default_factory=set)
    data: str | None = None
    article: bool = True


WORKLOADS = {
    "cifar": Expected(
        {"batch": 32, "epochs": 10, "hidden1": 3000, "hidden2": 1000, "learning_rate": 0.01},
        ALL_LOOPS, data="cifar10",
    ),
    "mnist": Expected(
        {"batch": 32, "epochs": 10, "filters": 32, "kernel": 3, "pool": 2, "learning_rate": 0.001},
        ALL_LOOPS, data="mnist",
    ),
    "matmul": Expected({"n": 1000}, NO_FIT),
    "dense-inference": Expected({"batch": 100, "features": 784, "hidden": 128, "classes": 10}, NO_FIT),
    "model-init": Expected(
        {"form": "clone", "features": 100, "hidden": 128, "classes": 10}, OWN_LOOP, cases={"build", "clone"}
    ),
    "tabular": Expected(
        {
            "feed": "slices", "rows": 1000, "batch": 10, "steps": 100, "epochs": 1,
            "features": 100, "hidden": 128, "classes": 10, "learning_rate": 0.001,
        },
        ALL_LOOPS, cases={"small", "large"},
    ),
    "input-pipeline": Expected(
        {
            "images": 10_000, "size": 64, "batch": 32, "epochs": 2, "filters": 32, "brightness": 0.1,
            "kernel": 3, "pool": 2, "classes": 10, "learning_rate": 0.001,
            "place": "serial", "sleep": "as-written", "sleep_ms": 1.0,
        },
        ALL_LOOPS, cases={"serial", "parallel", "model", "slept"},
    ),
    "op-granularity": Expected(
        {"op": "add", "size": 10, "operations": 1000, "iterations": 1_000_000},
        NO_FIT, cases={"add", "matmul", "add-graph", "matmul-graph"},
    ),
    "transfer": Expected(
        {"min_bytes": 4, "max_bytes": 256 * 1024 * 1024, "factor": 4}, OWN_LOOP, article=False
    ),
    "peaks": Expected(
        {"n": 1024, "memory_bytes": 2**28, "cache_bytes": 2**17, "repeats": 64}, OWN_LOOP, article=False
    ),
}  # fmt: skip


@pytest.fixture(params=registry.names())
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_every_workload_has_a_row_in_the_table() -> None:
    assert set(registry.names()) == set(WORKLOADS)


def test_every_default_is_the_number_of_the_article(name: str) -> None:
    assert registry.resolve(name).params == WORKLOADS[name].params


def test_every_parameter_has_a_description_and_bounds(name: str) -> None:
    schema = params_type(registry.load(name)).model_json_schema()
    for parameter, field_schema in schema["properties"].items():
        assert field_schema.get("description"), parameter
        lower, upper = {"minimum", "exclusiveMinimum"}, {"maximum", "exclusiveMaximum"}
        has_bounds = lower & field_schema.keys() and upper & field_schema.keys()
        assert "enum" in field_schema or has_bounds, parameter


def test_a_workload_names_its_article_and_imports_tensorflow_only_in_functions(name: str) -> None:
    description = registry.describe(name)
    assert description.summary.endswith(".")
    assert ('From "' in description.doc) == WORKLOADS[name].article
    tree = ast.parse(description.path.read_text(encoding="utf-8"))
    imported_at_top = {
        module
        for node in tree.body
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for module in ([alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module])
    }
    heavy = {"tensorflow", "keras", "numpy"}
    assert not {module for module in imported_at_top if module and module.split(".")[0] in heavy}


def test_every_loop_either_applies_or_has_a_reason_not_to(name: str) -> None:
    resolved = registry.resolve(name)
    reasons = {loop: registry.obstacle(resolved.offers, resolved.not_loops, loop) for loop in LOOPS}
    assert {loop for loop, reason in reasons.items() if reason is None} == WORKLOADS[name].loops
    assert all(reason is None or len(reason) > 15 for reason in reasons.values())


def test_cases_are_the_variants_of_the_article(name: str) -> None:
    assert set(registry.resolve(name).cases) == WORKLOADS[name].cases


def test_a_case_sets_its_parameters_and_its_loop() -> None:
    assert registry.resolve("op-granularity").cases["matmul-graph"]["loop"] == "step"
    large = registry.resolve("tabular", registry.resolve("tabular").cases["large"])
    assert (large.params["rows"], large.params["batch"], large.params["feed"]) == (100_000, 32, "dataset")
    assert registry.resolve("input-pipeline").cases["slept"]["sleep"] == "real"


def test_a_workload_names_the_data_set_that_it_loads(name: str) -> None:
    assert registry.resolve(name).data == WORKLOADS[name].data


def test_parameters_are_unchanged_after_the_transfer_to_the_worker(name: str) -> None:
    params = registry.resolve(name).params
    received = json.loads(json.dumps(params))
    assert parse_params(registry.load(name), received).model_dump() == params


def test_the_whole_training_has_as_many_steps_as_in_the_article() -> None:
    def steps(name: str, **params: Any) -> int | None:
        return registry.resolve(name, params).total_steps

    assert steps("tabular") == 100
    assert steps("tabular", feed="dataset", rows=100_000, batch=32) == 3125
    assert steps("tabular", feed="dataset", rows=33, batch=32) == 2
    assert steps("input-pipeline") == 2 * 313
    assert steps("op-granularity") == 1000
    assert steps("op-granularity", operations=999) == math.ceil(1_000_000 / 999)
    assert steps("model-init") == 1


def test_the_operations_of_a_step_follow_from_its_shapes() -> None:
    assert registry.resolve("matmul").flops == 2e9
    assert registry.resolve("dense-inference").flops == 2 * 100 * (784 * 128 + 128 * 10)
    weights = 3072 * 3000 + 3000 * 1000 + 1000 * 10
    assert registry.resolve("cifar").flops == 6 * 32 * weights - 2 * 32 * 3072 * 3000
    assert registry.resolve("op-granularity").flops == 1000 * 100
    assert registry.resolve("op-granularity", {"op": "matmul"}).flops == 1000 * 2000


@pytest.mark.parametrize(
    ("name", "params", "words"),
    [
        ("matmul", {}, "is folded"),
        ("matmul", {}, "Session graph is empty"),
        ("cifar", {}, "sigmoid"),
        ("cifar", {}, "float64"),
        ("dense-inference", {}, "list_physical_devices('DML')"),
        ("input-pipeline", {}, "time.sleep inside Dataset.map runs once"),
        ("input-pipeline", {}, "never on a GPU"),
        ("tabular", {}, "one model and one optimizer"),
        ("transfer", {}, "pageable"),
    ],
)
def test_errors_of_an_article_are_in_the_notes(name: str, params: dict[str, Any], words: str) -> None:
    assert any(words in note for note in registry.resolve(name, params).notes)


def test_a_note_appears_only_if_it_applies() -> None:
    assert not any("is folded" in note for note in registry.resolve("matmul", {"n": 2000}).notes)
    slept = registry.resolve("input-pipeline", {"sleep": "real"}).notes
    assert not any("runs once" in note for note in slept)


def test_transfer_refuses_the_cpu_with_a_reason_and_quadruples_its_sizes() -> None:
    assert "nothing to copy" in registry.resolve("transfer").not_on["cpu"]
    module = registry.load("transfer")
    sizes = module.sizes(module.Params())
    assert sizes[0] == 4
    assert sizes[-1] == 256 * 1024 * 1024
    assert {after / before for before, after in itertools.pairwise(sizes)} == {4}


def test_the_sizes_of_the_copies_are_parameters() -> None:
    module = registry.load("transfer")
    assert module.sizes(module.Params(min_bytes=8, max_bytes=1000, factor=10)) == [8, 80, 800]
    with pytest.raises(SettingsError, match="larger than max_bytes"):
        registry.resolve("transfer", {"min_bytes": 4096, "max_bytes": 1024})


def test_a_sleep_without_a_map_is_refused_with_a_fix() -> None:
    with pytest.raises(SettingsError, match="add sleep=none"):
        registry.resolve("input-pipeline", {"place": "model"})
    assert registry.resolve("input-pipeline", {"place": "model", "sleep": "none"}).params["place"] == "model"
