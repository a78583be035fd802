"""Runs a script as Python would run it, and recognizes and times its steps from outside. Worker's side only.

`program` runs the script, `imports` waits for its import of TensorFlow, and an observer for each kind of step
(`fits`, `updates`, `inference`, `sessions`) calls a sink after each step. There are two sinks: the `scout` counts the
steps of all loops of the script, and `watch` hands the steps of one loop to the timed loop. `script_worker` connects
them.
"""
