"""The placement check on partitioned graphs, with synthetic nodes in the format of TensorFlow."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from bench.worker.diagnose import placement
from bench.worker.diagnose.placement import judge, short

pytestmark = pytest.mark.once

FLOAT, INT32, UINT8, STRING, INT64 = 1, 3, 4, 7, 9


@dataclass
class Attr:
    """The fields of an AttrValue that the check reads."""

    type: int = 0
    b: bool = False
    tensor: Any = None


@dataclass
class Node:
    """The fields of a NodeDef that the check reads."""

    name: str
    op: str
    device: str
    attr: dict[str, Attr] = field(default_factory=dict)
    input: list[str] = field(default_factory=list)


def node(op: str, device: str, dtype: int | None = None, name: str = "", key: str = "T") -> Node:
    """Return a node on a device such as "GPU:0", in TensorFlow's long spelling."""
    full = f"/job:localhost/replica:0/task:0/device:{device}" if device else ""
    return Node(name or op.lower(), op, full, {} if dtype is None else {key: Attr(type=dtype)})


def test_all_spellings_of_a_device_are_shortened_to_one() -> None:
    for spelling in (
        "/job:localhost/replica:0/task:0/device:GPU:0",
        "/device:GPU:0",
        "GPU:0",
        "/device:gpu:0",
        "/GPU:0",
    ):
        assert short(spelling) == "GPU:0"


def test_a_step_that_cannot_run_again_is_not_verified(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(name: str) -> Any:
        raise OSError("the socket is closed")

    monkeypatch.setattr(placement, "collected_nodes", lambda tf: nullcontext([]))
    rig: Any = SimpleNamespace(
        tf=None, call=start, scope=nullcontext, ctx=SimpleNamespace(device="/device:GPU:0"), probes=None,
        state=SimpleNamespace(function=None, fused_arguments=None),
    )  # fmt: skip
    hook: Any = SimpleNamespace(model=None)
    checked = placement.check(rig, hook)
    assert (checked.verified, checked.on_device) == (False, 0)
    assert checked.reason == "another step failed with OSError: the socket is closed"


@pytest.mark.parametrize("generated", [None, "batch"])
def test_the_step_of_fit_runs_without_validation_callbacks_or_the_epochs_before_it(generated: str | None) -> None:
    called: dict[str, Any] = {}
    model: Any = SimpleNamespace(fit=lambda **arguments: called.update(arguments))
    own = {"x": "rows", "epochs": 9, "initial_epoch": 5, "validation_split": 0.2, "callbacks": ["own"], "batch_size": 8}
    hook: Any = SimpleNamespace(
        model=model, iterator=None, generated=generated, arguments=own, unobserved=nullcontext,
        make_train_function=lambda model, force: model.fit,
    )  # fmt: skip
    errors = SimpleNamespace(OutOfRangeError=KeyError)
    placement._train_function(SimpleNamespace(tf=SimpleNamespace(errors=errors)), hook)  # type: ignore[arg-type]
    x = called.pop("x")
    assert set(x) == {"batch"} if generated else x == "rows"
    assert (called["initial_epoch"], called["epochs"], called["steps_per_epoch"]) == (0, 1, 1)
    assert not any((called["validation_split"], called["validation_data"], called["callbacks"]))
    assert called["batch_size"] == 8


def test_a_step_that_ran_on_the_requested_device_is_verified() -> None:
    placement = judge([node("MatMul", "CPU:0", FLOAT), node("_Arg", "CPU:0", FLOAT)], "/device:CPU:0", "by hand")
    assert (placement.verified, placement.on_device, placement.misplaced, placement.reason) == (True, 2, [], None)
    assert (placement.requested_device, placement.method, placement.devices) == ("CPU:0", "by hand", {"CPU:0": 2})


def test_a_step_without_nodes_is_not_verified() -> None:
    placement = judge([], "/device:CPU:0", "by hand")
    assert not placement.verified
    assert placement.reason == "no operation was seen on CPU:0"


def test_nodes_on_the_host_alone_do_not_verify_a_gpu() -> None:
    placement = judge([node("IteratorGetNext", "CPU:0"), node("_Send", "CPU:0", FLOAT)], "/device:GPU:0", "by hand")
    assert not placement.verified
    assert placement.on_device == 0
    assert placement.misplaced == []


def test_an_operation_on_another_cpu_is_misplaced() -> None:
    planted = node("MatMul", "CPU:1", FLOAT, "model/planted")
    placement = judge([node("MatMul", "CPU:0", FLOAT), planted], "/device:CPU:0", "by hand")
    assert not placement.verified
    assert [(o.name, o.op, o.device) for o in placement.misplaced] == [("model/planted", "MatMul", "CPU:1")]
    assert "1 operation" in (placement.reason or "")


def test_operations_that_carry_values_to_a_misplaced_one_are_not_misplaced() -> None:
    strays = [node(op, "CPU:1", FLOAT, op) for op in ("_Recv", "MatMul", "_Send", "_Arg", "_Retval", "NoOp")]
    placement = judge([node("MatMul", "CPU:0", FLOAT), *strays], "/device:CPU:0", "by hand")
    assert [o.op for o in placement.misplaced] == ["MatMul"]
    assert not placement.verified


@pytest.mark.parametrize("op", ["MatMul", "Conv2D", "ResourceApplyGradientDescent", "Relu", "BiasAdd", "AddV2", "Mul"])
def test_computing_on_the_host_is_misplaced_on_a_gpu(op: str) -> None:
    placement = judge([node("MatMul", "GPU:0", FLOAT), node(op, "CPU:0", FLOAT, "stray")], "/device:GPU:0", "by hand")
    assert [o.name for o in placement.misplaced] == ["stray"]
    assert not placement.verified


HOST = [
    node("IteratorGetNext", "CPU:0"),
    node("AnonymousIteratorV3", "CPU:0"),
    node("_Arg", "CPU:0", FLOAT),
    node("_Retval", "CPU:0", FLOAT),
    node("_Send", "CPU:0", FLOAT),
    node("_HostRecv", "CPU:0", FLOAT),
    node("Const", "CPU:0", INT32, key="dtype"),
    node("Const", "CPU:0", STRING, key="dtype"),
    node("AddV2", "CPU:0", INT64),
    node("Less", "CPU:0", INT32),
    node("VarHandleOp", "CPU:0", FLOAT, key="dtype"),
    node("StatefulPartitionedCall", "CPU:0"),
    node("While", "CPU:0"),
    node("NoOp", "CPU:0"),
    node("Identity", ""),
    node("OptionalFromValue", "CPU:0"),
    node("OptionalGetValue", "CPU:0"),
    node("LogicalAnd", "CPU:0"),
    node("LogicalNot", "CPU:0"),
    node("Range", "CPU:0", INT32, key="Tidx"),
]


@pytest.mark.parametrize("operation", HOST, ids=lambda operation: f"{operation.op}-{operation.attr}")
def test_operations_that_belong_on_the_host_are_counted_and_not_misplaced(operation: Node) -> None:
    placement = judge([node("MatMul", "GPU:0", FLOAT), operation], "/device:GPU:0", "by hand")
    assert placement.verified
    assert placement.host_by_design == {operation.op: 1}


def test_shape_arithmetic_without_a_dtype_is_misplaced() -> None:
    placement = judge([node("MatMul", "GPU:0", FLOAT), node("AddV2", "CPU:0")], "/device:GPU:0", "by hand")
    assert [o.op for o in placement.misplaced] == ["AddV2"]


def test_a_cast_of_images_on_the_host_is_misplaced() -> None:
    cast = Node("cast", "Cast", "/device:CPU:0", {"SrcT": Attr(type=UINT8), "DstT": Attr(type=FLOAT)})
    placement = judge([node("MatMul", "GPU:0", FLOAT), cast], "/device:GPU:0", "by hand")
    assert [o.op for o in placement.misplaced] == ["Cast"]


def test_an_operation_in_many_graphs_is_listed_once() -> None:
    stray = node("MatMul", "CPU:0", FLOAT, "stray")
    placement = judge([node("MatMul", "GPU:0", FLOAT), stray, stray, stray], "/device:GPU:0", "by hand")
    assert len(placement.misplaced) == 1
    assert placement.devices == {"GPU:0": 1, "CPU:0": 3}


def test_xla_clusters_are_counted() -> None:
    compiled = node("StatefulPartitionedCall", "CPU:0")
    compiled.attr["_XlaMustCompile"] = Attr(b=True)
    plain = node("StatefulPartitionedCall", "CPU:0", name="plain")
    plain.attr["_XlaMustCompile"] = Attr(b=False)
    assert judge([compiled, plain, node("_XlaRun", "CPU:0")], "/device:CPU:0", "by hand").xla_clusters == 2


def test_what_orders_the_nodes_of_two_devices_is_not_misplaced() -> None:
    shape = SimpleNamespace(dim=[SimpleNamespace(size=0)])
    empty = node("Const", "CPU:0", FLOAT, "empty", key="dtype")
    empty.attr["value"] = Attr(tensor=SimpleNamespace(tensor_shape=shape))
    received = Node("passed/on", "Identity", empty.device, {"T": Attr(type=FLOAT)}, ["passed"])
    placement = judge(
        [node("MatMul", "GPU:0", FLOAT), empty, node("_Recv", "CPU:0", FLOAT, "passed"), received], "GPU:0", "by hand"
    )
    assert placement.verified
    assert placement.host_by_design == {"Const": 1, "_Recv": 1, "Identity": 1}


def test_a_constant_or_identity_that_holds_a_value_is_misplaced() -> None:
    shape = SimpleNamespace(dim=[SimpleNamespace(size=4)])
    full = node("Const", "CPU:0", FLOAT, "full", key="dtype")
    full.attr["value"] = Attr(tensor=SimpleNamespace(tensor_shape=shape))
    identity = Node("copy", "Identity", full.device, {"T": Attr(type=FLOAT)}, ["full"])
    placement = judge([node("MatMul", "GPU:0", FLOAT), full, identity], "GPU:0", "by hand")
    assert [operation.name for operation in placement.misplaced] == ["full", "copy"]
