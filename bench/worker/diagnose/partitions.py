"""Proof of placement: on which device did every operation of a step really run?

After the timed part the step is traced afresh with TensorFlow's graph collection on, and the graphs that
it was partitioned into are read: each node there names the device it was put on. Whatever yields no
graph has no proof, which is why an empty answer counts as none. A session of `tf.compat.v1` yields its
partition graphs as run metadata. Both are private or old API, tried on TensorFlow 2.10 and 2.21.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from bench.model.result import Operation, Placement

HOST_OPS = re.compile(
    r"^(_Arg|_Retval|_(Host)?(Send|Recv)|_Device(Arg|Retval)|NoOp|Placeholder\w*|Assert|Print\w*|.*Iterator\w*|.*Dataset\w*"
    r"|MakeUnique|Batch\w*Dataset|Identity(N)?OnHost|Switch|Merge|Enter|Exit|NextIteration|LoopCond"
    r"|Shape(N)?|Size|Rank|(Broadcast)?GradientArgs|BroadcastArgs|.*VarHandleOp|VarIsInitializedOp"
    r"|(Stateless)?(If|While|Case)|(Stateful)?PartitionedCall)$"
)
"""Operations that belong on the host: arguments, sends, iterators, and control flow's own bookkeeping."""

CARRIERS = re.compile(r"^(_Arg|_Retval|_(Host)?(Send|Recv)|_Device(Arg|Retval)|NoOp)$")
"""Operations that only carry values to and from whatever ran on a device: they name no stray of their own."""

HOST_TYPES = {3: "int32", 9: "int64", 7: "string", 20: "resource", 21: "variant", 10: "bool"}
"""DataType numbers that TensorFlow keeps in host memory (int32: tensorflow#16106)."""

SMALL_TYPE_OPS = frozenset(
    [
        "Const",
        "HostConst",
        "Identity",
        "ReadVariableOp",
        "AssignAddVariableOp",
        "Cast",
        "Less",
        "LessEqual",
        "Add",
        "AddV2",
        "Sub",
        "Mul",
        "FloorMod",
        "Range",
        "Pack",
        "Reshape",
        "StridedSlice",
        "Prod",
        "Maximum",
        "LogicalAnd",
        "GatherV2",
        "ConcatV2",
        "Fill",
        "ExpandDims",
        "Squeeze",
        "Equal",
        "FloorDiv",
    ]
)
"""Operations on shapes and counters, which belong on the host when their type is one of `HOST_TYPES`."""


def short(device: str) -> str:
    """`/job:localhost/replica:0/task:0/device:CPU:0` as `CPU:0`."""
    found = re.search(r"device:(\w+:\d+)", device, re.IGNORECASE)
    return found.group(1).upper() if found else device.upper()


def belongs_on_host(node: Any) -> bool:
    """Whether this node is where it should be when it is on the host instead of the device."""
    if HOST_OPS.match(node.op):
        return True
    if node.op not in SMALL_TYPE_OPS:
        return False
    types = [node.attr[key].type for key in ("dtype", "T", "SrcT", "Tparams") if key in node.attr]
    return bool(types) and all(kind in HOST_TYPES for kind in types)


def is_xla(node: Any) -> bool:
    """Whether this node runs a whole XLA cluster."""
    return node.op in {"_XlaRun", "XlaLaunch"} or bool(
        "_XlaMustCompile" in node.attr and node.attr["_XlaMustCompile"].b
    )


def judge(nodes: Iterable[Any], asked: str, method: str) -> Placement:
    """The verdict on the nodes of partitioned graphs.

    Args:
        nodes: NodeDefs with their devices.
        asked: the device that was asked for, in any of TensorFlow's spellings.
        method: where the nodes come from.
    """
    wanted = short(asked)
    by_device: Counter[str] = Counter()
    by_design: Counter[str] = Counter()
    misplaced: dict[tuple[str, str], Operation] = {}
    clusters = 0
    for node in nodes:
        where = short(node.device)
        by_device[where or "none"] += 1
        clusters += is_xla(node)
        if where == wanted:
            continue
        if not where or CARRIERS.match(node.op) or (where == "CPU:0" and belongs_on_host(node)):
            by_design[node.op] += 1
        else:
            misplaced[node.name, where] = Operation(name=node.name, op=node.op, device=where)
    on_device = by_device[wanted]
    reason = None
    if misplaced:
        reason = f"{len(misplaced)} operation{'s' * (len(misplaced) > 1)} ran on another device than {wanted}"
    elif not on_device:
        reason = f"no operation was seen on {wanted}: an empty proof is no proof"
    return Placement(
        requested_device=wanted,
        method=method,
        verified=reason is None,
        on_device=on_device,
        host_by_design=dict(by_design),
        misplaced=list(misplaced.values()),
        xla_clusters=clusters,
        devices=dict(by_device),
        reason=reason,
    )


@contextmanager
def collected(tf: Any) -> Iterator[list[Any]]:
    """Collects the nodes of every partitioned graph that is made within, eager ones and sessions' included.

    A function that is warm, or that XLA compiles whole, leaves no graph when it is called: it is called from a new one.
    """
    from tensorflow.python.eager import context

    nodes: list[Any] = []
    eager = context.context()
    eager.ensure_initialized()
    plain_run = tf.compat.v1.Session.run
    kind = type(tf.function(lambda: None))
    plain_call = kind.__call__

    def call(function: Any, *args: Any, **kwargs: Any) -> Any:
        warm = function.experimental_get_tracing_count() > 0 or getattr(function, "_jit_compile", False)
        if not warm or not tf.executing_eagerly():
            return plain_call(function, *args, **kwargs)
        return plain_call(tf.function(lambda *a, **k: plain_call(function, *a, **k)), *args, **kwargs)

    def run(session: Any, fetches: Any, feed_dict: Any = None, options: Any = None, run_metadata: Any = None) -> Any:
        wanted = tf.compat.v1.RunOptions(output_partition_graphs=True)
        metadata = tf.compat.v1.RunMetadata()
        value = plain_run(session, fetches, feed_dict, wanted, metadata)
        nodes.extend(_nodes(metadata.partition_graphs))
        return value

    tf.compat.v1.Session.run = run
    kind.__call__ = call
    eager.clear_kernel_cache()  # an eager operation whose kernel is warm yields no graph either
    eager.enable_graph_collection()
    try:
        yield nodes
        nodes.extend(_nodes(eager.export_run_metadata().partition_graphs))
    finally:
        eager.disable_graph_collection()
        tf.compat.v1.Session.run = plain_run
        kind.__call__ = plain_call


def _nodes(graphs: Iterable[Any]) -> Iterator[Any]:
    for graph in graphs:
        yield from graph.node
        for function in graph.library.function:
            yield from (node for node in function.node_def if node.device)


def prove(tf: Any, asked: str, run: Callable[[], Any], method: str) -> Placement:
    """Runs `run`, which must trace the step afresh and run it once, and judges where its operations went."""
    with collected(tf) as nodes:
        run()
    return judge(nodes, asked, method)
