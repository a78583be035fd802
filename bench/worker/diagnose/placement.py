"""The placement check: on which device each operation of a step ran.

After the timed part, the step is traced again while TensorFlow collects graphs. Each node of the partitioned graphs
names its device. If a step leaves no graph, its placement is not verified, so the check never passes without evidence.
A session of `tf.compat.v1` returns its partitioned graphs as run metadata. Both ways use private or old functions. They
were tested with TensorFlow 2.10 and 2.21. Worker's side only.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Set
from contextlib import contextmanager, nullcontext
from typing import Any

from bench.model.placement import Operation, Placement
from bench.worker.failure import short_text
from bench.worker.fit_hook import FitHook
from bench.worker.loops import fused_function, python_step
from bench.worker.patches import patched
from bench.worker.rig import Rig

HOST_OPS = re.compile(
    r"^(_Arg|_Retval|_(Host)?(Send|Recv)|_Device(Arg|Retval)|NoOp|Placeholder\w*|Assert|Print\w*|.*Iterator\w*|.*Dataset\w*"
    r"|Optional\w+"
    r"|MakeUnique|Batch\w*Dataset|Identity(N)?OnHost|Switch|Merge|Enter|Exit|NextIteration|LoopCond"
    r"|Shape(N)?|Size|Rank|(Broadcast)?GradientArgs|BroadcastArgs|.*VarHandleOp|VarIsInitializedOp"
    r"|(Stateless)?(If|While|Case)|(Stateful)?PartitionedCall)$"
)
"""Operations that belong on the host: arguments, transfers, iterators, and the bookkeeping of control flow."""

RECEIVES = re.compile(r"^_(Host)?Recv$")
"""Operations that receive a value from another device."""

CARRIERS = re.compile(r"^(_Arg|_Retval|_(Host)?(Send|Recv)|_Device(Arg|Retval)|NoOp)$")
"""Operations that only carry values to and from a device. They are never misplaced."""

HOST_TYPES = {3: "int32", 9: "int64", 7: "string", 20: "resource", 21: "variant", 10: "bool"}
"""Numbers of the dtypes that TensorFlow keeps in host memory (int32: tensorflow#16106)."""

SMALL_TYPE_OPS = frozenset([
    "Const", "HostConst", "Identity", "ReadVariableOp", "AssignAddVariableOp", "Cast", "Less", "LessEqual", "Add",
    "AddV2", "Sub", "Mul", "FloorMod", "Range", "Pack", "Reshape", "StridedSlice", "Prod", "Maximum", "LogicalAnd",
    "GatherV2", "ConcatV2", "Fill", "ExpandDims", "Squeeze", "Equal", "FloorDiv", "LogicalOr", "LogicalNot",
])  # fmt: skip
"""Operations on shapes and counters. They belong on the host if their dtype is one of `HOST_TYPES`."""

BOOLEAN_OPS = frozenset(["LogicalAnd", "LogicalOr", "LogicalNot"])
"""Those of `SMALL_TYPE_OPS` that have no attribute for their dtype, which is always bool."""

ONE_STEP = {
    "epochs": 1, "initial_epoch": 0, "steps_per_epoch": 1, "verbose": 0, "callbacks": None, "validation_data": None,
    "validation_split": 0.0,
}  # fmt: skip
"""The arguments with which `fit` runs one step and nothing else, such as a validation."""

GENERATED = 10
"""Batches for one step of `fit`, which reads in advance."""

TYPE_ATTRIBUTES = ("dtype", "T", "SrcT", "Tparams", "Tidx")
"""Attributes that name the dtype of such an operation. `Range` has only `Tidx`. Elsewhere, `Tidx` is an integer."""


def check(rig: Rig, hook: FitHook) -> Placement:
    """Run one step as the loop does, in the same device scope. Return where its operations ran.

    If the step fails, as one that cannot be run again does, its placement is not verified.
    """
    run, method = _new_step(rig, hook)
    own_training = hook.model is not None or rig.state.function is None
    try:
        with (
            collected_nodes(rig.tf) as nodes,
            rig.scope() if own_training else rig.tf.device(rig.ctx.device),
            hook.scope() if hook.model is not None else nullcontext(),
        ):
            run()
    except Exception as error:
        placement = judge([], rig.ctx.device, method)
        reason = f"another step failed with {short_text(error)}"
        return placement.model_copy(update={"reason": reason})
    return judge(nodes, rig.ctx.device, method)


def judge(nodes: Iterable[Any], requested: str, method: str) -> Placement:
    """Return the placement that the nodes of partitioned graphs show.

    Args:
        nodes: the nodes, as NodeDefs with their devices.
        requested: the requested device, in any spelling of TensorFlow.
        method: where the nodes come from.
    """
    requested = short(requested)
    by_device: Counter[str] = Counter()
    by_design: Counter[str] = Counter()
    misplaced: dict[tuple[str, str], Operation] = {}
    clusters = 0
    nodes = list(nodes)
    received = {node.name for node in nodes if RECEIVES.match(node.op)}
    for node in nodes:
        device = short(node.device)
        by_device[device or "none"] += 1
        clusters += is_xla(node)
        if device == requested:
            continue
        if not device or is_carrier(node, received) or (device == "CPU:0" and belongs_on_host(node)):
            by_design[node.op] += 1
        else:
            misplaced[node.name, device] = Operation(name=node.name, op=node.op, device=device)
    on_device = by_device[requested]
    reason = None
    if misplaced:
        reason = f"{len(misplaced)} operation{'s' * (len(misplaced) > 1)} ran on another device than {requested}"
    elif not on_device:
        reason = f"no operation was seen on {requested}"
    return Placement(
        requested_device=requested,
        method=method,
        verified=reason is None,
        on_device=on_device,
        host_by_design=dict(by_design),
        misplaced=list(misplaced.values()),
        xla_clusters=clusters,
        devices=dict(by_device),
        reason=reason,
    )


def short(device: str) -> str:
    """Shorten the name of a device: `/job:localhost/replica:0/task:0/device:CPU:0` and `/cpu:0` are `CPU:0`."""
    match = re.search(r"device:(\w+:\d+)", device, re.IGNORECASE)
    return match.group(1).upper() if match else device.lstrip("/").upper()


def is_carrier(node: Any, received: Set[str]) -> bool:
    """Whether a node only carries a value, or an ordering of two nodes, from one device to another.

    For an ordering, TensorFlow sends an empty constant and passes on what it receives (`graph_partition.cc`).

    Args:
        node: the node.
        received: the names of the nodes that receive values.
    """
    if node.op == "Const" and "value" in node.attr:
        return any(not dimension.size for dimension in node.attr["value"].tensor.tensor_shape.dim)
    return bool(CARRIERS.match(node.op)) or (node.op == "Identity" and any(name in received for name in node.input))


def belongs_on_host(node: Any) -> bool:
    """Whether a node may run on the host instead of the device."""
    if HOST_OPS.match(node.op):
        return True
    if node.op not in SMALL_TYPE_OPS:
        return False
    if node.op in BOOLEAN_OPS:
        return True
    types = [node.attr[key].type for key in TYPE_ATTRIBUTES if key in node.attr]
    return bool(types) and all(kind in HOST_TYPES for kind in types)


def is_xla(node: Any) -> bool:
    """Whether a node runs a whole XLA cluster."""
    return node.op in {"_XlaRun", "XlaLaunch"} or bool(
        "_XlaMustCompile" in node.attr and node.attr["_XlaMustCompile"].b
    )


@contextmanager
def collected_nodes(tf: Any, calls: bool = True) -> Iterator[list[Any]]:
    """Collect the nodes of every partitioned graph that is made in this context, also by eager calls and sessions.

    A function that is warm, or that XLA compiles as a whole, leaves no graph when it is called. It is therefore called
    from a new function.

    Args:
        tf: TensorFlow.
        calls: whether calls of functions are changed like this. Otherwise, the caller uses `call_from_new_function`.
    """
    from tensorflow.python.eager import context

    nodes: list[Any] = []
    eager = context.context()
    eager.ensure_initialized()
    original_run = tf.compat.v1.Session.run
    kind = type(tf.function(lambda: None))
    original_call = kind.__call__

    def call(function: Any, *args: Any, **kwargs: Any) -> Any:
        return call_from_new_function(tf, original_call, function, *args, **kwargs)

    def run(session: Any, fetches: Any, feed_dict: Any = None, options: Any = None, run_metadata: Any = None) -> Any:
        with_graphs = tf.compat.v1.RunOptions(output_partition_graphs=True)
        metadata = tf.compat.v1.RunMetadata()
        value = original_run(session, fetches, feed_dict, with_graphs, metadata)
        nodes.extend(_nodes(metadata.partition_graphs))
        return value

    with patched(tf.compat.v1.Session, run=run), patched(kind, __call__=call) if calls else nullcontext():
        eager.clear_kernel_cache()  # an eager operation whose kernel is warm leaves no graph either
        eager.enable_graph_collection()
        try:
            yield nodes
            nodes.extend(_nodes(eager.export_run_metadata().partition_graphs))
        finally:
            eager.disable_graph_collection()


def call_from_new_function(tf: Any, original_call: Any, function: Any, *args: Any, **kwargs: Any) -> Any:
    """Call a `tf.function`. If the call would leave no graph, make it from a new `tf.function`.

    Args:
        tf: TensorFlow.
        original_call: the unpatched `__call__` of a `tf.function`.
        function: the `tf.function`.
        args: its arguments.
        kwargs: its arguments by name.
    """
    warm = function.experimental_get_tracing_count() > 0 or getattr(function, "_jit_compile", False)
    if not warm or not tf.executing_eagerly():
        return original_call(function, *args, **kwargs)

    def call(*args: Any, **kwargs: Any) -> Any:
        returned = original_call(function, *args, **kwargs)
        # In a graph of TensorFlow 2.10, a function that returns nothing returns the operation that calls it.
        return None if isinstance(returned, tf.Operation) else returned

    return original_call(tf.function(call), *args, **kwargs)


def _nodes(graphs: Iterable[Any]) -> Iterator[Any]:
    for graph in graphs:
        yield from graph.node
        for function in graph.library.function:
            yield from (node for node in function.node_def if "device:" in node.device.lower())  # it was placed


def _new_step(rig: Rig, hook: FitHook) -> tuple[Callable[[], Any], str]:
    """Return a function that traces one step again and runs it, and the source of its nodes in words."""
    state = rig.state
    if hook.model is not None:
        return lambda: _train_function(rig, hook), "partition graphs of a new train function"
    if state.fused_arguments is not None:
        run_steps, arguments = fused_function(rig)[0], state.fused_arguments
        return lambda: run_steps(*arguments), "partition graphs of new steps in one graph"
    if state.function is not None:
        step, example = rig.tf.function(python_step(rig), jit_compile=bool(rig.spec.xla)), state.example or ()
        return lambda: step(*example), "partition graphs of a new step"
    if rig.probes is not None:
        probes = rig.probes.values()
        return lambda: [probe.run() for probe in probes], "graphs of eager operations"
    return lambda: next(iter(rig.call("as_written"))), "graphs of a new step of the program's own loop"


def _train_function(rig: Rig, hook: FitHook) -> None:
    """Make Keras' train function again, and run it on the input that `fit` was reading, or on a full batch.

    The partial batch is left for `epoch_ends`, which times its compilation.
    """
    train_function = hook.make_train_function(hook.model, force=True) or hook.model.train_function
    try:
        if hook.iterator is None or not hook.epochs.full_batches_left:  # a script ended by itself
            raise StopIteration
        getattr(train_function, "devbench_original", train_function)(hook.iterator)
    except (rig.tf.errors.OutOfRangeError, StopIteration):  # the timed part ended with an epoch
        arguments = {**hook.arguments, **ONE_STEP}
        if (batch := hook.generated) is not None:  # a generator cannot be read again
            arguments["x"] = (batch for _ in range(GENERATED))
        with hook.unobserved():
            hook.model.fit(**arguments)
