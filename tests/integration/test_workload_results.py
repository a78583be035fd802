"""Every workload with a real TensorFlow: its results are right, and repeated work is really done.

TensorFlow runs in two separate processes: one computes results, the other measures times. Times are only compared with
each other, within one process.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from tensorflow_script import ask

from bench import registry


@pytest.fixture(scope="module")
def answers() -> dict[str, Any]:
    return ask("""
    from tensorflow.python.framework import ops
    results = {}

    def counted(function, *batch):
        # Only products: no optimizer, no biases, and no gradient of the images, which nothing uses.
        graph = tf.function(function).get_concrete_function(*[tf.TensorSpec(a.shape, a.dtype) for a in batch]).graph
        products = [op for op in graph.get_operations() if op.type in ("MatMul", "Conv2D", "Conv2DBackpropFilter")]
        return float(sum(ops.get_stats_for_node_def(graph, op.node_def, "flops").value for op in products))

    # Operations by formula, compared with TensorFlow's count.
    ratios = {}
    for name in ("cifar", "mnist", "input-pipeline", "tabular", "dense-inference", "matmul"):
        small = {"images": 64, "sleep": "none"} if name == "input-pipeline" else {}
        w = Workload(name, **small)
        if name == "cifar":
            batch = [np.zeros((32, 32, 32, 3), "float32"), np.zeros((32, 10), "float32")]
        elif name == "mnist":
            batch = [np.zeros((32, 28, 28, 1), "float32"), np.zeros(32, "uint8")]
        elif name == "input-pipeline":
            batch = [np.zeros((32, 64, 64, 3), "float32"), np.zeros(32, "int64")]
        elif name == "tabular":
            batch = [a[:10].astype(t) for a, t in zip(w.call("data"), ("float32", "int64"))]
        else:
            batch = list(w.call("inputs"))
        if hasattr(w.module, "step"):
            function = w.call("step")
        else:
            w.given["model"] = w.call("model")
            function = lambda *b, m=w.given["model"]: m.train_step(b)["loss"]
        ratios[name] = counted(function, *batch) / w.call("flops")
    results["flops"] = ratios

    # The chains, with and without XLA, compared with NumPy.
    chains = {}
    for op in ("add", "matmul"):
        w = Workload("op-granularity", op=op, operations=500)
        first, second = w.call("inputs")
        value = first
        for _ in range(500):
            value = value + second if op == "add" else value @ second
        for xla in (False, True):
            got = tf.function(w.call("step"), jit_compile=xla)(first, second).numpy()
            chains[f"{op} {xla}"] = [float(np.abs(got - value).max()), float(np.abs(value).max())]
    results["chains"] = chains
    w = Workload("op-granularity", op="matmul", operations=3)
    result = next(w.call("as_written")).numpy()
    first, second = w.given["inputs"]
    results["eager"] = float(np.abs(result - first @ second).max())

    # The Session folds products of up to 10 MiB.
    v1 = tf.compat.v1
    folded = {}
    for n in (1000, 1700):
        w = Workload("matmul", n=n)
        seen, sessions = [], []
        run = v1.Session.run
        def spy(self, fetches):
            meta, options = v1.RunMetadata(), v1.RunOptions(output_partition_graphs=True)
            sessions.append(self)
            value = run(self, fetches, options=options, run_metadata=meta)
            seen.extend(node.op for graph in meta.partition_graphs for node in graph.node)
            return value
        v1.Session.run = spy
        w.given["inputs"] = pair = w.call("inputs")
        steps = w.call("as_written")
        next(steps)
        value = next(steps)
        v1.Session.run = run
        right = bool(np.allclose(value, pair[0] @ pair[1], rtol=1e-3))
        noted = any("folded" in note for note in w.call("notes"))
        folded[str(n)] = [not any("MatMul" in op for op in seen), right, noted, len(set(map(id, sessions)))]
    results["folded"] = folded

    # Models that a step creates.
    made = {}
    for form in ("build", "clone"):
        w = Workload("model-init", form=form)
        steps = w.call("as_written")
        one, two = next(steps), next(steps)
        made[form] = [one is not two, sum(int(np.prod(v.shape)) for v in two.trainable_variables),
                      one(np.zeros((1, 100), "float32")).shape.as_list()]
    results["made"] = made

    # Tabular learns with both feeds and with its step.
    losses = {}
    for feed, rows, batch in (("slices", 1000, 10), ("dataset", 320, 32)):
        w = Workload("tabular", feed=feed, rows=rows, batch=batch, learning_rate=0.01)
        steps = w.call("as_written")
        losses[feed] = [float(next(steps)) for _ in range(300)]
    w = Workload("tabular", learning_rate=0.01)
    function = tf.function(w.call("step"))
    rows, labels = w.call("data")
    losses["step"] = [float(function(rows[:10].astype("float32"), labels[:10])) for _ in range(300)]
    results["losses"] = losses

    # The sleep as written runs while the map is traced; the real one runs for each image.
    sleeps = {}
    for sleep in ("as-written", "real", "none"):
        w = Workload("input-pipeline", images=64, size=8, sleep=sleep)
        naps = []
        w.module.time.sleep, kept = naps.append, w.module.time.sleep
        dataset = w.call("data")
        at_tracing = len(naps)
        batches = list(dataset)
        w.module.time.sleep = kept
        sleeps[sleep] = [at_tracing, len(naps), naps[:1]]
    results["sleeps"] = sleeps

    # Brightness: the same in both maps, within bounds, different for each image; in the model, the same with XLA.
    def images(place):
        w = Workload("input-pipeline", images=96, size=8, sleep="none", place=place)
        return np.concatenate([x.numpy() for x, y in w.call("data")])
    plain, serial, parallel = images("model"), images("serial"), images("parallel")
    shift = (serial - plain).reshape(96, -1)
    w = Workload("input-pipeline", images=96, size=8, sleep="none", place="model")
    layer = w.call("model").layers[0]
    on, off = (tf.function(lambda x: layer(x, training=True), jit_compile=xla)(plain).numpy() for xla in (True, False))
    results["brightness"] = {
        "same in parallel": bool((serial == parallel).all()),
        "one shift an image": float(shift.std(axis=1).max()),
        "largest": float(np.abs(shift).max()),
        "different": len(set(np.round(shift[:, 0], 5))),
        "in the model": float(np.abs(on - plain).max()),
        "images that the model shifts differently": len(set(np.round((off - plain)[:, 0, 0, 0], 5))),
        "xla": float(np.abs(on - off).max()),
        "idle outside training": float(np.abs(layer(plain, training=False).numpy() - plain).max()),
    }

    # The return values of the programs as written; with few examples, so that this is fast.
    histories = {}
    for name in ("cifar", "mnist"):
        w = Workload(name, epochs=1, **({"hidden1": 20, "hidden2": 10} if name == "cifar" else {"filters": 2}))
        x, y = w.call("data")
        w.given["data"] = x[:640], y[:640]
        history = w.call("as_written")
        w.given["ctx"]._load = lambda n: tuple((a[:640], b[:640]) for a, b in load(Data(kind="sample", name=n), 1))
        histories[name] = [history.params["steps"], sorted(history.history), w.call("evaluate"),
                           str(x.dtype), list(x.shape), float(x.max()), str(y.dtype), list(y.shape)]
    w = Workload("input-pipeline", images=80, size=8, epochs=1, sleep="none", place="model")
    history = w.call("as_written")
    histories["input-pipeline"] = [history.params["steps"], sorted(history.history)]
    results["histories"] = histories

    # Transfers on the CPU: there is no copy, but the values must be right and each read must use a new tensor.
    w = Workload("transfer", max_bytes=64)
    probes = w.call("probes")
    results["probes"] = {name: [probe.bytes, probe.floor] for name, probe in probes.items()}
    one, two = probes["d2h/64"].run(), probes["d2h/64"].run()
    up = probes["h2d/64"].run()
    results["transfer"] = [one is not two, one.shape.as_list(), up.shape.as_list(),
                        float(one[-1].numpy() - 1.0 - up[0].numpy())]

    w = Workload("dense-inference")
    steps, function = w.call("as_written"), tf.function(w.call("step"))
    results["inference"] = float(np.abs(next(steps).numpy() - function(*w.call("inputs")).numpy()).max()) >= 0
    results["inference shape"] = next(steps).shape.as_list()
    say(**results)
    """)


@pytest.fixture(scope="module")
def ratios() -> dict[str, Any]:
    """Measure the ratio of CPU times of four times the work and of the work, by the shortest of several rounds.

    It is the CPU time of all threads, because other processes on a busy machine lengthen wall time. They lengthen CPU
    time too, by up to 80% on a shared core, but never shorten it. So a round runs the smaller work four times, to give
    both the same chance of a quiet moment, and rounds continue while the ratio is implausible.
    """
    return ask("""
    def ratio_of(less, more):
        def cpu_seconds(work, times):
            start = time.process_time()
            for _ in range(times):
                work()
            return time.process_time() - start

        few, many = [], []
        while len(few) < 5 or (not 2.5 < ratio < 6.5 and len(few) < 40):
            few.append(cpu_seconds(less, 4) / 4)
            many.append(cpu_seconds(more, 1))
            ratio = min(many) / min(few)
        return ratio

    results = {}
    for xla in (False, True):
        for op, size, few in (("add", 128, 6000), ("matmul", 64, 6000)):  # enough to make the call itself cheap
            works = []
            for operations in (few, 4 * few):
                w = Workload("op-granularity", op=op, size=size, operations=operations)
                pair = [tf.constant(a) for a in w.call("inputs")]
                function = tf.function(w.call("step"), jit_compile=xla)
                function(*pair).numpy()
                works.append(lambda function=function, pair=pair: function(*pair).numpy())
            results[f"op-granularity {op}, {'XLA' if xla else 'no XLA'}"] = ratio_of(*works)
        w = Workload("matmul", n=400)
        pairs = [[tf.constant(a) for a in w.call("inputs")] for _ in range(4)]
        function = tf.function(w.call("step"), jit_compile=xla)
        function(*pairs[0]).numpy()
        def many(count):
            for index in range(count):
                value = function(*pairs[index % 4])
            return value.numpy()
        results[f"matmul, {'XLA' if xla else 'no XLA'}"] = ratio_of(lambda: many(10), lambda: many(40))

    # The loop that runs many steps in one graph and keeps only the last result.
    from bench.worker.what_ifs import WhatIfs
    from bench.worker.loops import fused_function
    from bench.study.plan import plan
    from bench.worker.rig import Rig
    from bench.config.settings import load as settings
    for name, params in (("matmul", {"n": 300}), ("dense-inference", {})):
        for xla in ("off", "on"):
            (group,) = plan([name], settings(loop="fused", xla=xla, param=params))
            spec, module = group.planned[0].spec, registry.load(name)
            p = registry.parse_params(module, params)
            rig = Rig(tf, spec, module, p, context(), lambda event: None, WhatIfs(tf, ()))
            if rig.has("model"):
                rig.model = rig.call("model")
            many, _ = fused_function(rig)
            few = 60 if name == "matmul" else 300
            counts = [tf.constant(few), tf.constant(4 * few)]
            many(tf.constant(0), counts[0])
            works = [lambda count=count: many(tf.constant(0), count)[0].numpy() for count in counts]
            results[f"{name} fused, XLA {xla}"] = ratio_of(*works)

    w = Workload("matmul", n=400)
    steps = w.call("as_written")
    next(steps)
    few, many = (lambda count=count: [next(steps) for _ in range(count)] for count in (3, 12))
    results["matmul as written"] = ratio_of(few, many)
    works = []
    for operations in (1500, 6000):
        w = Workload("op-granularity", operations=operations)
        steps = w.call("as_written")
        next(steps)
        works.append(lambda steps=steps: next(steps).numpy())
    results["op-granularity as written"] = ratio_of(*works)
    w = Workload("model-init")
    steps = w.call("as_written")
    next(steps)
    few, many = (lambda count=count: [next(steps) for _ in range(count)] for count in (3, 12))
    results["model-init"] = ratio_of(few, many)
    say(**results)
    """)


def test_four_times_the_work_takes_about_four_times_the_processor_time(ratios: dict[str, float]) -> None:
    assert len(ratios) == 13
    wrong = {name: ratio for name, ratio in ratios.items() if not 2.5 < ratio < 6.5}
    assert not wrong, ratios


def test_a_chain_of_operations_in_one_graph_computes_what_numpy_does(answers: dict[str, Any]) -> None:
    assert set(answers["chains"]) == {"add False", "add True", "matmul False", "matmul True"}
    for difference, largest in answers["chains"].values():
        assert difference < 1e-4 * max(largest, 1)
        assert 0.1 < largest < 5_000
    assert answers["eager"] < 1e-5


def test_operations_by_formula_agree_with_the_count_of_tensorflow(answers: dict[str, Any]) -> None:
    assert len(answers["flops"]) == 6
    wrong = {name: ratio for name, ratio in answers["flops"].items() if not 0.999 < ratio < 1.08}
    assert not wrong


def test_the_session_folds_the_articles_product_and_the_note_appears_only_then(
    answers: dict[str, Any],
) -> None:
    folded, right, noted, sessions = answers["folded"]["1000"]
    assert folded
    assert right
    assert noted
    assert sessions == 2
    folded, right, noted, sessions = answers["folded"]["1700"]
    assert not folded
    assert right
    assert not noted


def test_each_step_of_model_init_creates_a_new_model_with_all_its_weights(answers: dict[str, Any]) -> None:
    weights = 100 * 128 + 128 + 128 * 10 + 10
    assert answers["made"] == {"build": [True, weights, [1, 10]], "clone": [True, weights, [1, 10]]}


def test_tabular_learns_with_both_feeds_and_with_its_step(answers: dict[str, Any]) -> None:
    for losses in answers["losses"].values():
        assert len(set(losses)) > 290
        assert sum(losses[-30:]) < sum(losses[:30])


def test_the_articles_sleep_happens_once_and_the_real_one_for_every_image(answers: dict[str, Any]) -> None:
    assert answers["sleeps"] == {"as-written": [1, 1, [0.001]], "real": [0, 64, [0.001]], "none": [0, 0, []]}


def test_brightness_is_the_same_in_every_order_and_with_xla(answers: dict[str, Any]) -> None:
    found = answers["brightness"]
    assert found["same in parallel"]
    assert found["one shift an image"] < 1e-6
    assert 0.05 < found["largest"] < 0.1001
    assert found["different"] > 80
    assert 0.05 < found["in the model"] < 0.1001
    assert found["images that the model shifts differently"] > 80
    assert found["xla"] < 1e-6
    assert found["idle outside training"] == 0


def test_training_workloads_return_a_history_and_evaluate_on_the_test_set(answers: dict[str, Any]) -> None:
    for name, shape in (("cifar", [50_000, 32, 32, 3]), ("mnist", [60_000, 28, 28, 1])):
        steps, keys, evaluated, *arrays = answers["histories"][name]
        assert steps == 20
        assert keys == ["accuracy", "loss"]
        assert set(evaluated) == {"test_accuracy", "test_loss"}
        assert 0 <= evaluated["test_accuracy"] <= 1
        labels = ["float32", [50_000, 10]] if name == "cifar" else ["uint8", [60_000]]
        assert arrays == ["float64" if name == "cifar" else "float32", shape, 1.0, *labels]
    assert answers["histories"]["input-pipeline"] == [3, ["accuracy", "loss"]]


def test_each_transfer_reads_the_right_values_from_a_new_tensor(answers: dict[str, Any]) -> None:
    assert answers["transfer"][:3] == [True, [16], [1]]
    assert abs(answers["transfer"][3]) < 1e-6
    assert answers["probes"] == {
        "floor/h2d": [None, None],
        **{f"floor/d2h/{size}": [None, None] for size in (4, 16, 64)},
        **{f"h2d/{size}": [size, "floor/h2d"] for size in (4, 16, 64)},
        **{f"d2h/{size}": [size, f"floor/d2h/{size}"] for size in (4, 16, 64)},
    }


def test_inference_returns_ten_probabilities_per_example(answers: dict[str, Any]) -> None:
    assert answers["inference"]
    assert answers["inference shape"] == [100, 10]


def test_a_users_file_that_imports_tensorflow_is_resolved_without_importing_it_here(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text("import tensorflow as tf\n\ndef step():\n    return tf.square\n", encoding="utf-8")
    assert registry.resolve(path).offers == ["step"]
    assert "tensorflow" not in sys.modules
