"""Imports what a worker imports, and prints the versions. `devbench doctor --env ENV` runs this file in ENV."""

from __future__ import annotations

import importlib
import platform

from bench.machine import installed


def main() -> None:
    """Import TensorFlow and the worker."""
    import tensorflow as tf

    importlib.import_module("bench.worker.main")
    print(f"TensorFlow {tf.__version__}, Keras {installed.keras(tf)}, Python {platform.python_version()}")


if __name__ == "__main__":
    main()
