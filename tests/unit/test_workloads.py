"""The workloads against their articles: every number, every form, and what is said of them; and the machine's peaks."""

from __future__ import annotations

import ast
import itertools
import json
import math
from typing import Any

import pytest

from bench import registry
from bench.errors import SettingsError
from bench.model.spec import LOOPS

pytestmark = pytest.mark.once

ARTICLES: dict[str, dict[str, Any]] = {
    "cifar": {"batch": 32, "epochs": 10, "hidden1": 3000, "hidden2": 1000, "learning_rate": 0.01},
    "mnist": {"batch": 32, "epochs": 10, "filters": 32, "kernel": 3, "pool": 2, "learning_rate": 0.001},
    "matmul": {"n": 1000},
    "dense-inference": {"batch": 100, "features": 784, "hidden": 128, "classes": 10},
    "model-init": {"form": "clone", "features": 100, "hidden": 128, "classes": 10},
    "tabular": {
        "feed": "slices", "rows": 1000, "batch": 10, "steps": 100, "epochs": 1,
        "features": 100, "hidden": 128, "classes": 10, "learning_rate": 0.001,
    },
    "input-pipeline": {
        "images": 10_000, "size": 64, "batch": 32, "epochs": 2, "filters": 32, "brightness": 0.1,
        "kernel": 3, "pool": 2, "classes": 10, "learning_rate": 0.001,
        "place": "serial", "sleep": "as-written", "sleep_ms": 1.0,
    },
    "op-granularity": {"op": "add", "size": 10, "operations": 1000, "iterations": 1_000_000},
    "transfer": {"min_bytes": 4, "max_bytes": 256 * 1024 * 1024, "factor": 4},
}  # fmt: skip

OURS: dict[str, dict[str, Any]] = {
    "peaks": {"n": 1024, "memory_bytes": 2**28, "cache_bytes": 2**17, "repeats": 64},
}
"""Workloads that no article has."""

LOOPS_OF = {
    "cifar": set(LOOPS),
    "mnist": set(LOOPS),
    "tabular": set(LOOPS),
    "input-pipeline": set(LOOPS),
    "matmul": set(LOOPS) - {"fit"},
    "dense-inference": set(LOOPS) - {"fit"},
    "op-granularity": set(LOOPS) - {"fit"},
    "model-init": {"as-written"},
    "transfer": {"as-written"},
    "peaks": {"as-written"},
}


def test_the_nine_workloads_of_the_design_are_there_and_the_peaks() -> None:
    assert len(ARTICLES) == 9
    assert set(registry.names()) == set(ARTICLES) | set(OURS) == set(LOOPS_OF)


@pytest.mark.parametrize("name", [*ARTICLES, *OURS])
def test_every_default_is_the_articles_number(name: str) -> None:
    assert registry.resolve(name).params == (ARTICLES | OURS)[name]


@pytest.mark.parametrize("name", [*ARTICLES, *OURS])
def test_every_parameter_is_explained_and_bounded(name: str) -> None:
    schema = registry.params_type(registry.load(name)).model_json_schema()
    for field, described in schema["properties"].items():
        assert described.get("description"), field
        lower, upper = {"minimum", "exclusiveMinimum"}, {"maximum", "exclusiveMaximum"}
        bounded = lower & described.keys() and upper & described.keys()
        assert "enum" in described or bounded, field


@pytest.mark.parametrize("name", [*ARTICLES, *OURS])
def test_a_workload_names_the_article_it_is_from_and_imports_tensorflow_only_in_functions(name: str) -> None:
    described = registry.describe(name)
    assert described.summary.endswith(".")
    assert 'From "' in described.doc or name in ("transfer", *OURS)
    tree = ast.parse(described.path.read_text(encoding="utf-8"))
    at_top = {
        module
        for node in tree.body
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for module in ([alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module])
    }
    assert not {module for module in at_top if module and module.split(".")[0] in {"tensorflow", "keras", "numpy"}}


@pytest.mark.parametrize("name", LOOPS_OF)
def test_each_loop_that_makes_sense_is_offered_and_each_other_has_a_reason(name: str) -> None:
    found = registry.resolve(name)
    reasons = {loop: registry.applicable(found.offers, found.not_loops, loop) for loop in LOOPS}
    assert {loop for loop, reason in reasons.items() if reason is None} == LOOPS_OF[name]
    assert all(reason is None or len(reason) > 15 for reason in reasons.values())


def test_cases_are_the_articles_variants() -> None:
    cases = {name: registry.resolve(name).cases for name in registry.names()}
    assert {name: set(found) for name, found in cases.items() if found} == {
        "model-init": {"build", "clone"},
        "tabular": {"small", "large"},
        "input-pipeline": {"serial", "parallel", "model", "slept"},
        "op-granularity": {"add", "matmul", "add-graph", "matmul-graph"},
    }
    assert cases["op-granularity"]["matmul-graph"]["loop"] == "step"
    large = registry.resolve("tabular", cases["tabular"]["large"])
    assert (large.params["rows"], large.params["batch"], large.params["feed"]) == (100_000, 32, "dataset")
    assert cases["input-pipeline"]["slept"]["sleep"] == "real"


def test_whole_programs_have_the_articles_length() -> None:
    def steps(name: str, **params: Any) -> int | None:
        return registry.resolve(name, params).total_steps

    assert steps("tabular") == 100
    assert steps("tabular", feed="dataset", rows=100_000, batch=32) == 3125
    assert steps("tabular", feed="dataset", rows=33, batch=32) == 2
    assert steps("input-pipeline") == 2 * 313
    assert steps("op-granularity") == 1000
    assert steps("op-granularity", operations=999) == math.ceil(1_000_000 / 999)
    assert steps("model-init") == 1


def test_operations_follow_from_the_shapes() -> None:
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
        ("tabular", {}, "on one model and one optimizer"),
        ("transfer", {}, "pageable"),
    ],
)
def test_what_an_article_gets_wrong_is_said(name: str, params: dict[str, Any], words: str) -> None:
    assert any(words in note for note in registry.resolve(name, params).notes)


def test_a_note_that_does_not_hold_is_not_said() -> None:
    assert not any("is folded" in note for note in registry.resolve("matmul", {"n": 2000}).notes)
    slept = registry.resolve("input-pipeline", {"sleep": "real"}).notes
    assert not any("runs once" in note for note in slept)


def test_transfer_makes_no_sense_on_the_cpu_and_says_why() -> None:
    assert "nothing to copy" in registry.resolve("transfer").not_on["cpu"]
    module = registry.load("transfer")
    sizes = module.sizes(module.Params())
    assert sizes[0] == 4
    assert sizes[-1] == 256 * 1024 * 1024
    assert {after / before for before, after in itertools.pairwise(sizes)} == {4}


def test_the_sizes_of_copies_are_parameters() -> None:
    module = registry.load("transfer")
    assert module.sizes(module.Params(min_bytes=8, max_bytes=1000, factor=10)) == [8, 80, 800]
    with pytest.raises(SettingsError, match="larger than max_bytes"):
        registry.resolve("transfer", {"min_bytes": 4096, "max_bytes": 1024})


def test_a_sleep_without_a_map_is_refused_with_the_way_out() -> None:
    with pytest.raises(SettingsError, match="add sleep=none"):
        registry.resolve("input-pipeline", {"place": "model"})
    assert registry.resolve("input-pipeline", {"place": "model", "sleep": "none"}).params["place"] == "model"


def test_data_sets_are_named_where_they_are_read() -> None:
    named = {name: registry.resolve(name).data for name in registry.names()}
    assert {name: data for name, data in named.items() if data} == {"cifar": "cifar10", "mnist": "mnist"}


@pytest.mark.parametrize("name", [*ARTICLES, *OURS])
def test_params_survive_the_way_to_the_worker(name: str) -> None:
    params = registry.resolve(name).params
    again = json.loads(json.dumps(params))
    assert registry.parse_params(registry.load(name), again).model_dump() == params
