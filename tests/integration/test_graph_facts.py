"""The facts about traced graphs, with a real TensorFlow in a separate process."""

from __future__ import annotations

from tensorflow_script import run_script
from warm_workers import WarmServer


def test_int32_arithmetic_on_data_is_distinguished_from_that_on_shapes(warm_server: WarmServer | None) -> None:
    report = run_script(
        """
    from bench.model.facts import Facts
    from bench.worker.diagnose.graph_facts import read_graphs
    from bench.worker.frames import Sources

    @tf.function(input_signature=[tf.TensorSpec([None, 8], tf.int32), tf.TensorSpec([32, 64], tf.int32)])
    def step(rows, table):
        count = tf.shape(rows)[0] * 2 + 1
        return rows * 3 + count, tf.reduce_sum(table - 1)

    @tf.function(input_signature=[tf.TensorSpec([32, 64], tf.float32)])
    def other(rows):
        return rows * 3 + tf.cast(tf.shape(rows) + 1, tf.float32)[0]

    graphs = [function.get_concrete_function().graph for function in (step, other)]
    facts = [Facts(), Facts()]
    for graph_facts, graph in zip(facts, graphs):
        read_graphs(graph_facts, [graph], Sources("x.py"))
    report(int32_operations=[graph_facts.int32.operations for graph_facts in facts])
    """,
        warm_server,
    )
    assert report["int32_operations"] == [3, 0]
