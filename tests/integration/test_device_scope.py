"""The device scope of a program, and the placement check in that scope, on two logical CPUs."""

from __future__ import annotations

import pytest
from tensorflow_script import run_script
from warm_workers import WarmServer

RIG = """
    tf.config.set_logical_device_configuration(
        tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2
    )
    from types import SimpleNamespace
    from bench.model.facts import Facts
    from bench.worker import loops
    from bench.worker.diagnose import placement
    from bench.worker.fit_hook import FitHook
    from bench.worker.rig import LoopState, Rig
    from bench.worker.timed_loop import Finished
    from bench.worker.what_ifs import WhatIfs

    devices = []

    class Counter:
        steps_left = 1
        def __init__(self, steps):
            self.rest = steps
        def begin(self):
            pass
        def tick(self, value, steps=1):
            self.rest -= steps
            if self.rest <= 0:
                raise Finished(None)

    def model():
        built = tf.keras.Sequential([tf.keras.Input(shape=(8,)), tf.keras.layers.Dense(4)])
        built.compile("sgd", "mse")
        return built

    def data():
        devices.append(tf.constant(1.0).device[-5:])
        rows = np.ones((64, 8), "float32")
        return rows, rows[:, :4]

    def run(loop, device, **more):
        module = SimpleNamespace(model=model, data=data, __file__="x.py", **more)
        spec = SimpleNamespace(loop=loop, xla=False, dtype="float32", workload="x", script=None)
        what_ifs = WhatIfs(tf, ())
        hook = FitHook(tf, lambda model: None, lambda event: None, what_ifs)
        ctx = SimpleNamespace(device=device)
        rig = Rig(tf, spec, module, SimpleNamespace(batch=16), ctx, lambda event: None, what_ifs)
        rig.data, rig.model = rig.call("data"), rig.call("model")
        counter = Counter(6)
        hook.on_step = lambda logs, steps: counter.tick(logs, steps)
        try:
            loops.LOOPS[loop](rig, counter)
        except Finished:
            pass
        checked = placement.check(rig, hook)
        return [checked.verified, checked.on_device > 5, checked.devices, [(o.op, o.name) for o in checked.misplaced]]
"""


@pytest.mark.parametrize("loop", ["step", "resident", "fused"])
def test_the_placement_check_runs_in_the_scope_that_was_timed(loop: str, warm_server: WarmServer | None) -> None:
    answer = run_script(f"{RIG}\n    report(check=run({loop!r}, '/device:CPU:1'))", warm_server)
    verified, many, devices, misplaced = answer["check"]
    assert misplaced == []
    assert (verified, many) == (True, True), devices


@pytest.mark.parametrize("loop", ["as-written", "fit"])
def test_a_program_that_trains_itself_runs_without_a_device_scope(loop: str, warm_server: WarmServer | None) -> None:
    answer = run_script(f"{RIG}\n    report(check=run({loop!r}, '/device:CPU:1'), devices=devices)", warm_server)
    assert answer["devices"] == ["CPU:0"]
    assert set(answer["check"][2]) <= {"CPU:0", "none"}


@pytest.mark.parametrize(("device", "verified"), [("/device:CPU:0", False), ("/device:CPU:1", True)])
def test_a_scope_of_the_program_around_fit_holds_in_the_check_too(
    device: str, verified: bool, warm_server: WarmServer | None
) -> None:
    answer = run_script(
        f"""{RIG}
    def as_written(data):
        with tf.device("/device:CPU:1"):
            model().fit(*data, epochs=3, batch_size=16, verbose=0)

    report(check=run("as-written", {device!r}, as_written=as_written))
    """,
        warm_server,
    )
    assert answer["check"][0] is verified, answer


def test_the_check_can_read_the_dtype_of_each_operation_that_belongs_on_the_host_by_its_dtype(
    warm_server: WarmServer | None,
) -> None:
    answer = run_script(
        """
    from tensorflow.python.framework import op_def_registry
    from bench.worker.diagnose import placement

    unread = []
    for name in sorted(placement.SMALL_TYPE_OPS - placement.BOOLEAN_OPS):
        definition = op_def_registry.get(name)
        if definition is not None:
            attributes = {attribute.name for attribute in definition.attr if attribute.type == "type"}
            results = {argument.type_attr for argument in [*definition.input_arg, *definition.output_arg]}
            if not attributes & results & set(placement.TYPE_ATTRIBUTES):
                unread.append(name)
    fixed = {
        name: [argument.type for argument in op_def_registry.get(name).output_arg] for name in placement.BOOLEAN_OPS
    }
    report(unread=unread, fixed=fixed)
    """,
        warm_server,
    )
    assert answer["unread"] == []
    assert set(map(tuple, answer["fixed"].values())) == {(10,)}
