"""The second environment, in which the suite runs again. Where it can't be made, this file is what says so."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

pytestmark = [pytest.mark.once, pytest.mark.essential]

ASK = """
import sys
from importlib.metadata import version
print(sys.version_info[:2], *(version(name).rpartition(".")[0] for name in ("tensorflow-cpu", "keras")))
print(version("tensorflow-directml-plugin"))
import tensorflow as tf
print(tf.reduce_sum(tf.ones((3, 4))).numpy())
"""


def test_the_suite_can_run_again_with_tensorflow_2_10_and_the_directml_plugin(directml_python: Path) -> None:
    ran = subprocess.run([directml_python, "-c", ASK], check=True, capture_output=True, text=True)
    assert ran.stdout.splitlines() == ["(3, 10) 2.10 2.10", "0.4.0.dev230202", "12.0"]
