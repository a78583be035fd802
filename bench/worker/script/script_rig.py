"""The rig of a script, which the loops and the diagnosis use like that of a workload."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from bench.model.spec import Spec
from bench.worker.rig import Rig
from bench.worker.what_ifs import WhatIfs
from bench.workloads import Context

if TYPE_CHECKING:
    from bench.worker.cluster.member import Member


def script_rig(
    tf: Any,
    spec: Spec,
    module: ModuleType,
    device: str,
    send: Callable[[Any], None],
    what_ifs: WhatIfs,
    p: Any = None,
    member: Member | None = None,
) -> Rig:
    """Return the rig of a script.

    Args:
        tf: TensorFlow.
        spec: what is measured.
        module: stands for the script: its file, and the functions of the protocol that loops need.
        device: the device under test.
        send: sends an event to the parent.
        what_ifs: the what-ifs to apply.
        p: the parameters that loops need. None if the script runs as it is written.
        member: this worker as one of several. None if it is alone.
    """
    ctx = Context(
        rng=np.random.default_rng([spec.seed, 0]),
        device=device,
        backend=spec.backend,
        dtype=spec.dtype,
        seed=spec.seed,
        _load=lambda name: None,
    )
    return Rig(tf=tf, spec=spec, module=module, p=p, ctx=ctx, send=send, what_ifs=what_ifs, member=member)
