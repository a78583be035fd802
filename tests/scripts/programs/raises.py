"""A script that fails before it trains."""

import tensorflow as tf

print("starting")
tf.constant([1.0]) + undefined_name
