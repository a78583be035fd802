"""The environment with TensorFlow 2.10. The suite runs there again. If it cannot be created, this test is skipped."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

pytestmark = [pytest.mark.once, pytest.mark.essential]

SCRIPT = """
import sys
from importlib.metadata import version
print(sys.version_info[:2], *(version(name).rpartition(".")[0] for name in ("tensorflow-cpu", "keras")))
print(version("tensorflow-directml-plugin"))
import tensorflow as tf
print(tf.reduce_sum(tf.ones((3, 4))).numpy())
"""


def test_the_suite_can_run_again_with_tensorflow_2_10_and_the_directml_plugin(directml_python: Path) -> None:
    process = subprocess.run([directml_python, "-c", SCRIPT], check=True, capture_output=True, text=True)
    assert process.stdout.splitlines() == ["(3, 10) 2.10 2.10", "0.4.0.dev230202", "12.0"]
