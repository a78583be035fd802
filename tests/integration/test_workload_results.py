"""Every workload with a real TensorFlow: its values are correct, and repeated operations are not optimized away.

TensorFlow runs in two separate processes: one computes values, the other measures times. Times are only compared within
one process.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from tensorflow_script import run_script
from warm_workers import WarmServer

from bench import registry


@pytest.fixture(scope="module")
def results(warm_server: WarmServer | None) -> dict[str, Any]:
    return run_script(
        """
    from tensorflow.python.framework import ops
    results = {}

    def product_flops(function, *batch):
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
            w.values["model"] = w.call("model")
            function = lambda *b, m=w.values["model"]: m.train_step(b)["loss"]
        ratios[name] = product_flops(function, *batch) / w.call("flops")
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
            result = tf.function(w.call("step"), jit_compile=xla)(first, second).numpy()
            chains[f"{op} {xla}"] = [float(np.abs(result - value).max()), float(np.abs(value).max())]
    results["chains"] = chains
    w = Workload("op-granularity", op="matmul", operations=3)
    result = next(w.call("as_written")).numpy()
    first, second = w.values["inputs"]
    results["eager"] = float(np.abs(result - first @ second).max())

    # The Session folds products of up to 10 MiB.
    v1 = tf.compat.v1
    folded = {}
    for n in (1000, 1700):
        w = Workload("matmul", n=n)
        operations, sessions = [], []
        run = v1.Session.run
        def run_with_graphs(self, fetches):
            meta, options = v1.RunMetadata(), v1.RunOptions(output_partition_graphs=True)
            sessions.append(self)
            value = run(self, fetches, options=options, run_metadata=meta)
            operations.extend(node.op for graph in meta.partition_graphs for node in graph.node)
            return value
        v1.Session.run = run_with_graphs
        w.values["inputs"] = pair = w.call("inputs")
        steps = w.call("as_written")
        next(steps)
        value = next(steps)
        v1.Session.run = run
        correct = bool(np.allclose(value, pair[0] @ pair[1], rtol=1e-3))
        has_note = any("folded" in note for note in w.call("notes"))
        folded[str(n)] = [not any("MatMul" in op for op in operations), correct, has_note, len(set(map(id, sessions)))]
    results["folded"] = folded

    # Models that a step creates.
    models = {}
    for form in ("build", "clone"):
        w = Workload("model-init", form=form)
        steps = w.call("as_written")
        first, second = next(steps), next(steps)
        models[form] = [first is not second, sum(int(np.prod(v.shape)) for v in second.trainable_variables),
                        first(np.zeros((1, 100), "float32")).shape.as_list()]
    results["models"] = models

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

    # The sleep of the article runs when the map is traced, the real one for each image.
    sleeps = {}
    for sleep in ("as-written", "real", "none"):
        w = Workload("input-pipeline", images=64, size=8, sleep=sleep)
        calls = []
        w.module.time.sleep, original = calls.append, w.module.time.sleep
        dataset = w.call("data")
        at_tracing = len(calls)
        batches = list(dataset)
        w.module.time.sleep = original
        sleeps[sleep] = [at_tracing, len(calls), calls[:1]]
    results["sleeps"] = sleeps

    # Brightness: equal in both maps, within bounds, different for each image. In the model, equal with XLA.
    def images(place):
        w = Workload("input-pipeline", images=96, size=8, sleep="none", place=place)
        return np.concatenate([x.numpy() for x, y in w.call("data")])
    plain, serial, parallel = images("model"), images("serial"), images("parallel")
    shift = (serial - plain).reshape(96, -1)
    w = Workload("input-pipeline", images=96, size=8, sleep="none", place="model")
    layer = w.call("model").layers[0]
    on, off = (tf.function(lambda x: layer(x, training=True), jit_compile=xla)(plain).numpy() for xla in (True, False))
    results["brightness"] = {
        "equal in parallel": bool((serial == parallel).all()),
        "deviation of the shift within an image": float(shift.std(axis=1).max()),
        "largest": float(np.abs(shift).max()),
        "different": len(set(np.round(shift[:, 0], 5))),
        "in the model": float(np.abs(on - plain).max()),
        "images that the model shifts differently": len(set(np.round((off - plain)[:, 0, 0, 0], 5))),
        "xla": float(np.abs(on - off).max()),
        "largest outside training": float(np.abs(layer(plain, training=False).numpy() - plain).max()),
    }

    # The return values of the programs as written, with few examples to save time.
    histories = {}
    for name in ("cifar", "mnist"):
        w = Workload(name, epochs=1, **({"hidden1": 20, "hidden2": 10} if name == "cifar" else {"filters": 2}))
        x, y = w.call("data")
        w.values["data"] = x[:640], y[:640]
        history = w.call("as_written")
        w.values["ctx"]._load = lambda n: tuple((a[:640], b[:640]) for a, b in load(Data(kind="sample", name=n), 1))
        histories[name] = [history.params["steps"], sorted(history.history), w.call("evaluate"),
                           str(x.dtype), list(x.shape), float(x.max()), str(y.dtype), list(y.shape)]
    w = Workload("input-pipeline", images=80, size=8, epochs=1, sleep="none", place="model")
    history = w.call("as_written")
    histories["input-pipeline"] = [history.params["steps"], sorted(history.history)]
    results["histories"] = histories

    # Transfers on the CPU copy nothing, but the values must be correct and each read must use a new tensor.
    w = Workload("transfer", max_bytes=64)
    probes = w.call("probes")
    results["probes"] = {name: [probe.bytes, probe.floor] for name, probe in probes.items()}
    first, second = probes["d2h/64"].run(), probes["d2h/64"].run()
    upload = probes["h2d/64"].run()
    results["transfer"] = [first is not second, first.shape.as_list(), upload.shape.as_list(),
                           float(first[-1].numpy() - 1.0 - upload[0].numpy())]

    w = Workload("dense-inference")
    steps, function = w.call("as_written"), tf.function(w.call("step"))
    results["inference"] = float(np.abs(next(steps).numpy() - function(*w.call("inputs")).numpy()).max()) >= 0
    results["inference shape"] = next(steps).shape.as_list()
    report(**results)
    """,
        warm_server,
    )


@pytest.fixture(scope="module")
def work(warm_server: WarmServer | None) -> dict[str, Any]:
    """Ratios of the CPU time of four times the work to that of the work. Each time is the shortest of several rounds.

    The CPU time is that of all threads. Other processes on a busy machine lengthen wall time. They also lengthen CPU
    time, by up to 80% on a shared core, but never shorten it. So a round runs the smaller work four times, which gives
    both the same chance of a quiet moment, and rounds continue while the ratio is implausible. Also the dtypes of the
    indexes by which the loop `fused` takes its batches.
    """
    return run_script(
        """
    def ratio_of(small, large):
        def cpu_seconds(work, times):
            start = time.process_time()
            for _ in range(times):
                work()
            return time.process_time() - start

        small_seconds, large_seconds = [], []
        while len(small_seconds) < 5 or (not 2.5 < ratio < 6.5 and len(small_seconds) < 40):
            small_seconds.append(cpu_seconds(small, 4) / 4)
            large_seconds.append(cpu_seconds(large, 1))
            ratio = min(large_seconds) / min(small_seconds)
        return ratio

    results = {}
    for xla in (False, True):
        for op, size, few in (("add", 128, 6000), ("matmul", 64, 6000)):  # so many that the call itself is cheap
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
    indexes = set()
    for name, params in (("matmul", {"n": 300}), ("dense-inference", {})):
        for xla in ("off", "on"):
            (group,) = plan([name], settings(loop="fused", xla=xla, param=params))
            spec, module = group.planned[0].spec, registry.load(name)
            p = parse_params(module, params)
            rig = Rig(tf, spec, module, p, context(), lambda event: None, WhatIfs(tf, ()))
            if rig.has("model"):
                rig.model = rig.call("model")
            many, _ = fused_function(rig)
            graph = many.get_concrete_function(tf.constant(0, tf.int64), tf.constant(1)).graph.as_graph_def()
            nodes = [node for part in graph.library.function for node in part.node_def]
            indexes |= {tf.dtypes.as_dtype(n.attr["Tindices"].type).name for n in nodes if n.op == "GatherV2"}
            few = 60 if name == "matmul" else 300
            counts = [tf.constant(few), tf.constant(4 * few)]
            many(tf.constant(0, tf.int64), counts[0])
            works = [lambda count=count: many(tf.constant(0, tf.int64), count)[0].numpy() for count in counts]
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
    report(ratios=results, indexes=sorted(indexes))
    """,
        warm_server,
    )


def test_four_times_the_work_takes_about_four_times_the_cpu_time(work: dict[str, Any]) -> None:
    ratios = work["ratios"]
    assert len(ratios) == 13
    outliers = {name: ratio for name, ratio in ratios.items() if not 2.5 < ratio < 6.5}
    assert not outliers, ratios


def test_the_fused_loop_takes_its_batches_by_an_index_that_stays_on_a_gpu(work: dict[str, Any]) -> None:
    assert work["indexes"] == ["int64"]  # a GPU keeps int32 in host memory, so each step would copy it


def test_a_chain_of_operations_in_one_graph_computes_what_numpy_does(results: dict[str, Any]) -> None:
    assert set(results["chains"]) == {"add False", "add True", "matmul False", "matmul True"}
    for difference, largest in results["chains"].values():
        assert difference < 1e-4 * max(largest, 1)
        assert 0.1 < largest < 5_000
    assert results["eager"] < 1e-5


def test_operations_by_formula_agree_with_the_count_of_tensorflow(results: dict[str, Any]) -> None:
    assert len(results["flops"]) == 6
    outliers = {name: ratio for name, ratio in results["flops"].items() if not 0.999 < ratio < 1.08}
    assert not outliers


def test_the_session_folds_the_articles_product_and_the_note_appears_only_then(
    results: dict[str, Any],
) -> None:
    folded, correct, has_note, sessions = results["folded"]["1000"]
    assert folded
    assert correct
    assert has_note
    assert sessions == 2
    folded, correct, has_note, sessions = results["folded"]["1700"]
    assert not folded
    assert correct
    assert not has_note


def test_each_step_of_model_init_creates_a_new_model_with_all_its_weights(results: dict[str, Any]) -> None:
    weights = 100 * 128 + 128 + 128 * 10 + 10
    assert results["models"] == {"build": [True, weights, [1, 10]], "clone": [True, weights, [1, 10]]}


def test_tabular_learns_with_both_feeds_and_with_its_step(results: dict[str, Any]) -> None:
    for losses in results["losses"].values():
        assert len(set(losses)) > 290
        assert sum(losses[-30:]) < sum(losses[:30])


def test_the_sleep_of_the_article_runs_once_and_the_real_one_for_every_image(results: dict[str, Any]) -> None:
    assert results["sleeps"] == {"as-written": [1, 1, [0.001]], "real": [0, 64, [0.001]], "none": [0, 0, []]}


def test_brightness_is_the_same_in_every_order_and_with_xla(results: dict[str, Any]) -> None:
    brightness = results["brightness"]
    assert brightness["equal in parallel"]
    assert brightness["deviation of the shift within an image"] < 1e-6
    assert 0.05 < brightness["largest"] < 0.1001
    assert brightness["different"] > 80
    assert 0.05 < brightness["in the model"] < 0.1001
    assert brightness["images that the model shifts differently"] > 80
    assert brightness["xla"] < 1e-6
    assert brightness["largest outside training"] == 0


def test_training_workloads_return_a_history_and_evaluate_on_the_test_set(results: dict[str, Any]) -> None:
    for name, shape in (("cifar", [50_000, 32, 32, 3]), ("mnist", [60_000, 28, 28, 1])):
        steps, keys, evaluated, *arrays = results["histories"][name]
        assert steps == 20
        assert keys == ["accuracy", "loss"]
        assert set(evaluated) == {"test_accuracy", "test_loss"}
        assert 0 <= evaluated["test_accuracy"] <= 1
        labels = ["float32", [50_000, 10]] if name == "cifar" else ["uint8", [60_000]]
        assert arrays == ["float64" if name == "cifar" else "float32", shape, 1.0, *labels]
    assert results["histories"]["input-pipeline"] == [3, ["accuracy", "loss"]]


def test_each_transfer_reads_the_right_values_from_a_new_tensor(results: dict[str, Any]) -> None:
    assert results["transfer"][:3] == [True, [16], [1]]
    assert abs(results["transfer"][3]) < 1e-6
    assert results["probes"] == {
        "floor/h2d": [None, None],
        **{f"floor/d2h/{size}": [None, None] for size in (4, 16, 64)},
        **{f"h2d/{size}": [size, "floor/h2d"] for size in (4, 16, 64)},
        **{f"d2h/{size}": [size, f"floor/d2h/{size}"] for size in (4, 16, 64)},
    }


def test_inference_returns_ten_probabilities_per_example(results: dict[str, Any]) -> None:
    assert results["inference"]
    assert results["inference shape"] == [100, 10]


def test_a_users_file_that_imports_tensorflow_is_resolved_without_importing_it_in_the_parent(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text("import tensorflow as tf\n\ndef step():\n    return tf.square\n", encoding="utf-8")
    assert registry.resolve(path).offers == ["step"]
    assert "tensorflow" not in sys.modules
