"""A script that needs its arguments, its helper, its data file, its folder and a child process."""

import argparse
import multiprocessing
import os
import sys
from pathlib import Path

import numpy as np
import tensorflow as tf
from helper.scaling import scale

SIZES = [int(line) for line in open("data/sizes.txt")]
assert (Path(__file__).parent / "data" / "sizes.txt").exists()
assert os.environ["DEVBENCH"] == "1"
assert sys.path[0] == str(Path(__file__).resolve().parent)


def double(value):
    return 2 * value


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, required=True)
    epochs = parser.parse_args().epochs
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.map(double, [1, 2]) == [2, 4]
    x = scale(np.random.rand(320, SIZES[0]).astype("float32"))
    model = tf.keras.Sequential([tf.keras.Input(shape=(SIZES[0],)), tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    print("training", sys.argv[1:])
    model.fit(x, x.sum(axis=1), batch_size=16, epochs=epochs, verbose=0)
    print("trained")
    sys.exit(0)


if __name__ == "__main__":
    main()
