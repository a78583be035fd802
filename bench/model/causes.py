"""The names of the causes of lost time that an explanation finds.

Results hold them, so a name that changes makes older explanations look different. What-ifs name their own causes.
"""

from __future__ import annotations

FIRST_STEPS = "first-step costs"
"""Tracing and the first step."""

BETWEEN_EPOCHS = "time between epochs"
"""What passes between the steps of two epochs."""

BETWEEN_STEPS = "work between some steps"
"""Work in a script's own loop that most steps go without."""

LONG_STEPS = "rare long steps"
"""Steps of a script's own loop that are rare and take much longer than the others."""

FILLING = "filling the shuffle buffer"
PARTIAL_BATCH = "partial last batch"

BEFORE_STEPS = "work before the first step"
AFTER_STEPS = "work after the last step"

OUTSIDE = (BEFORE_STEPS, AFTER_STEPS)
"""Causes whose share is one of the whole program."""

OF_ALL_TIME = (
    BETWEEN_EPOCHS, BETWEEN_STEPS, LONG_STEPS, FILLING, PARTIAL_BATCH, FIRST_STEPS, *OUTSIDE
)  # fmt: skip
"""Causes whose share is one of an epoch, of the training or of the whole program, not of the step."""

SLOW_INPUT = "slow input"
CALLBACKS = "callbacks and logging"
SHUFFLING = "shuffling in fit"
ARGUMENTS = "arguments of fit"
KERAS = "Keras overhead"
METRICS = "metrics in each step"
OPTIMIZER = "optimizer"
EMBEDDINGS = "optimizer that rewrites whole embeddings"

READS = "per-step synchronization"
EAGER = "eager execution"
RETRACING = "retracing"
RECOMPILING = "XLA compiling new shapes"
FLOAT64 = "float64"
PYTHON_IN_GRAPH = "Python inside the graph"
ON_HOST = "operations on the host"
NEW_DATASET = "a new dataset for each call"
PYTHON = "Python between calls of TensorFlow"
BUILDING = "objects built in the loop"
SUMMARIES = "summaries in each step"

GROWING = "steps that take longer and longer"
SMALL_STEPS = "small steps"
SURROUNDINGS = "time around the computing"
TOO_LITTLE_PARALLELISM = "too little parallelism"
CPU_QUOTA = "CPU quota"
IDLE_GPU = "idle GPU"
ODD_SHAPES = "shapes that do not fill tensor cores"
