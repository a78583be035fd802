"""A script without TensorFlow."""

print(sum(range(10)))
