"""Inference with the signature of a saved model."""

import tempfile

import tensorflow as tf


class Scorer(tf.Module):
    def __init__(self):
        super().__init__()
        self.weight = tf.Variable(tf.random.normal((8, 1)))

    @tf.function(input_signature=[tf.TensorSpec((None, 8), name="rows")])
    def score(self, rows):
        return {"scores": tf.sigmoid(rows @ self.weight)}


folder = tempfile.mkdtemp()
scorer = Scorer()
tf.saved_model.save(scorer, folder, signatures=scorer.score)
infer = tf.saved_model.load(folder).signatures["serving_default"]
rows = tf.random.normal((16, 8))
for _ in range(70):
    infer(rows=rows)
