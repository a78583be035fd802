"""Whether a file is a script or a workload is decided from its source, before anything of it runs."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from bench import registry
from bench.errors import SettingsError, WorkloadError
from bench.registry import user_file
from bench.registry.script import Decision

pytestmark = pytest.mark.once


def write(folder: Path, text: str, name: str = "mine.py") -> Path:
    path = folder / name
    path.write_text(textwrap.dedent(text), encoding="utf-8")
    return path


SCRIPTS = {
    "a model at the top": "import keras\nmodel = keras.Sequential([])\nmodel.fit([], [])\n",
    "a model from a function": "def build():\n    return object()\n\nmodel: object = build()\n",
    "a training at the top": "for epoch in range(1000):\n    pass\n",
    "a main guard": "def main(): ...\n\nif __name__ == '__main__':\n    def step(): ...\n    main()\n",
    "a module named model": "import model\nnet = model.build()\n",
    "a star import of a library": "from os.path import *\nfor n in range(3):\n    pass\n",
    "a star import of a file": "from helpers_of_mine import *\nmain()\n",
    "a counter": "for epoch in range(2):\n    step = epoch * 10\n",
    "several targets": "lr, step = 0.1, 0\n",
    "an argument": "import argparse\nargs = argparse.Namespace(model='a')\nmodel = args.model\n",
    "an attribute of a model": "class model: ...\nmodel.rate = len\n",
    "a helper with other parameters": "def model(x, w): ...\n\nif __name__ == '__main__':\n    model(1, 2)\n",
    "a helper with other parameters and a training": "def model(shape): ...\n\nnet = model(3)\nh = net.fit([], [])\n",
    "a training by a helper of its own": "def model(): ...\n\nm = model()\nm.fit([], [])\nm.save('best.keras')\n",
    "a training in a longer expression": "def model(): ...\n\nh = model().fit([], []).history\n",
    "a training in a call of main": "def model(): ...\n\ndef main():\n    model().fit([], [])\n\nmain()\n",
    "a helper with other parameters and a call of main": "def model(shape): ...\n\ndef main(): ...\n\nmain()\n",
    "a training in a call with the model": "def model(n): ...\n\ndef train(m):\n    m.fit([])\n\ntrain(model(3))\n",
    "a helper named step and a call": "def step(x, y): ...\n\ndef run():\n    step(1, 2)\n\nrun()\n",
    "a step of a custom loop": "def step(data): ...\n\nfor n in range(3):\n    step(n)\n",
    "a training under a main guard": (
        "def model(): ...\n\ndef main():\n    model().fit([])\n\nif __name__ == '__main__':\n    main()\n"
    ),
    "functions of a workload that a main guard trains": (
        "def data(): ...\ndef model(): ...\n\nif __name__ == '__main__':\n    model().fit(*data())\n"
    ),
    "a main function that is passed on": (
        "from absl import app\ndef model(): ...\ndef main(argv):\n    net = model()\n    net.fit([])\n\napp.run(main)\n"
    ),
    "a training in a thread": (
        "import threading\ndef data(): ...\ndef model(): ...\n\ndef main():\n    model().fit(*data())\n\n"
        "thread = threading.Thread(target=main)\nthread.start()\n"
    ),
    "several trainings": (
        "def data(): ...\ndef model(): ...\n\ndef train(n):\n    return model().fit(*data())\n\n"
        "runs = list(map(train, range(3)))\n"
    ),
    "a training in a method": (
        "def model(): ...\ndef data(): ...\n\nclass Trainer:\n    def run(self):\n        self.model.fit(*data())\n\n"
        "trainer = Trainer()\ntrainer.run()\n"
    ),
    "a training in an inner function": (
        "def data(): ...\ndef model(): ...\n\ndef main():\n    def train():\n        model().fit(*data())\n"
        "    train()\n\nmain()\n"
    ),
    "a gradient tape": (
        "import tensorflow as tf\ndef data(): ...\ndef model(): ...\n\n"
        "def train():\n    with tf.GradientTape() as tape: ...\n\nfor n in range(3):\n    train()\n"
    ),
    "an imported gradient tape": (
        "from tensorflow import GradientTape\ndef data(): ...\ndef model(): ...\n\nwith GradientTape() as tape: ...\n"
    ),
    "an inference": "def data(): ...\ndef model(): ...\n\nnet = model()\nfor batch in data():\n    net(batch)\n",
    "a training by a file written for devbench": (
        "def data(p): ...\ndef model(p): ...\n\nnet = model(1)\nnet.fit(*data(1))\n"
    ),
    "a training in a block": (
        "def model(): ...\ndef data(): ...\n\nwith strategy.scope():\n    net = model()\ntry:\n    net.fit(*data())\n"
        "except KeyboardInterrupt:\n    pass\n"
    ),
    "a training in the body of a class": (
        "def data(): ...\ndef model(): ...\n\nclass Run:\n    history = model().fit(*data())\n"
    ),
    "a model in a wrapper for sklearn": (
        "from scikeras.wrappers import KerasClassifier\nfrom sklearn.pipeline import make_pipeline\n"
        "def data(): ...\ndef model(): ...\n\nmake_pipeline(KerasClassifier(model)).fit(*data())\n"
    ),
    "a search by a tuner": (
        "import keras_tuner as kt\ndef data(): ...\ndef model(): ...\n\nkt.RandomSearch(model).search(data())\n"
    ),
    "a command line from a class": (
        "import fire\ndef data(): ...\ndef model(): ...\n\n"
        "class App:\n    def train(self):\n        model().fit(*data())\n"
        "\nif __name__ == '__main__':\n    fire.Fire(App)\n"
    ),
    "an imported training under a main guard": (
        "from trainer import train\ndef data(): ...\ndef model(): ...\n\nif __name__ == '__main__':\n"
        "    train(model(), data())\n"
    ),
    "an argument p with a default": (
        "def model(p=0.5): ...\ndef data(): ...\n\nif __name__ == '__main__':\n    model().fit(*data())\n"
    ),
    "an inherited method": (
        "def data(): ...\ndef model(): ...\n\nclass Base:\n    def run(self):\n        model().fit(*data())\n\n"
        "class Own(Base): ...\n\nOwn().run()\n"
    ),
    "a method": "class Trainer:\n    def step(self): ...\n\nTrainer().step()\n",
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_is_described_without_running_it(name: str, tmp_path: Path) -> None:
    trace = tmp_path / "ran"
    write(tmp_path, "def main(): ...\n\ndef build(): ...\n", "helpers_of_mine.py")
    path = write(tmp_path, f"open({str(trace)!r}, 'w').close()\n{SCRIPTS[name]}")
    assert registry.is_script(path)
    resolved = registry.resolve(path)
    assert (resolved.is_script, resolved.name, resolved.params) == (True, "mine", {})
    assert registry.obstacle(resolved.offers, resolved.not_loops, "as-written") is None
    assert registry.obstacle(resolved.offers, resolved.not_loops, "fit") == "a script runs only as it is written"
    with pytest.raises(WorkloadError, match="is a script, not a workload"):
        registry.params_schema(path)
    with pytest.raises(SettingsError, match="is a script, so it has no parameter rows"):
        registry.resolve(path, {"batch": "3", "rows": "9"})
    assert not trace.exists()


@pytest.mark.parametrize(
    "text",
    [
        "if __name__ == '__main__':\n    import subprocess\n    subprocess.run(['devbench', 'run', __file__])\n",
        "if __name__ == '__main__':\n    print(model().summary())\n",
        "def count():\n    return 3\n\nROWS = count()\nNAMES = [str(n) for n in range(ROWS)]\n",
        "def load():\n    for n in range(3): ...\n    return [], []\n\nTRAIN, TEST = load()\n",
        "import tensorflow as tf\ntf.random.set_seed(1)\nfor gpu in tf.config.list_physical_devices('GPU'): ...\n",
        "def seed(): ...\n\nseed()\n",
        "from sklearn.preprocessing import StandardScaler\nscaler = StandardScaler()\nROWS = scaler.fit([]).mean_\n",
        "import sklearn.cluster as cluster\nCENTRES = cluster.KMeans(3).fit([]).cluster_centers_\n",
        "def train(net):\n    net.fit([])\n",
        "class Net:\n    def train_step(self, data):\n        self.optimizer.apply_gradients([])\n",
        "import tensorflow as tf\n\ndef raw():\n    with tf.GradientTape(): ...\n\nfast = tf.function(raw)\n",
        "@tf.function\ndef once():\n    with tf.GradientTape(): ...\n",
        "import os\nclass Checkpoints:\n    def get(self): model().fit([])\n\nHOME = os.environ.get('HOME')\n",
        "def note(epoch): model().predict([])\n\nregister(note)\n",
        "import inspect\nNAMES = inspect.signature(model)\n",
        "from sklearn.preprocessing import StandardScaler\nclass Prepare:\n    def __init__(self):\n"
        "        self.scaler = StandardScaler()\n        self.scaler.fit([])\n\nPREPARE = Prepare()\n",
        "from keras.preprocessing.image import ImageDataGenerator\nMORE = ImageDataGenerator()\nMORE.fit([])\n",
        "import xgboost\nTREES = xgboost.XGBRegressor().fit([], [])\n",
    ],
)
def test_a_workload_may_configure_load_and_compute_at_its_top(text: str, tmp_path: Path) -> None:
    path = write(tmp_path, f"def data(): ...\ndef model(): ...\n{text}")
    assert user_file.decision(path) == Decision(False, "it defines `model` in line 2")


def test_a_workload_written_for_devbench_may_fit_what_is_not_known_to_be_a_model(tmp_path: Path) -> None:
    text = (
        "class Params: ...\ndef data(p): ...\ndef model(p): ...\n\ndef prepare(scaler): scaler.fit([])\n\nprepare(3)\n"
    )
    assert user_file.decision(write(tmp_path, text)) == Decision(False, "it defines `model` in line 3")


def test_a_workload_written_for_devbench_may_train_under_a_main_guard(tmp_path: Path) -> None:
    guard = "if __name__ == '__main__':\n    model(Params()).fit(*data(Params()))\n"
    path = write(tmp_path, f"class Params: ...\ndef data(p): ...\ndef model(p): ...\n{guard}")
    assert user_file.decision(path) == Decision(False, "it defines `model` in line 3")
    path = write(tmp_path, f"class Params: ...\ndef model(p): ...\n{guard}")  # no complete workload
    assert user_file.decision(path) == Decision(True, "it calls `fit` itself, in line 4")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("print(1)\n", "it defines none of the functions as_written, step, model and probes that devbench could call"),
        ("def model(): ...\nh = model().fit().history\n", "it calls `fit` itself, in line 2"),
        ("def data(): ...\ndef model(): ...\nm = model()\n", "it calls its function `model` itself, in line 3"),
        (
            "def model(): ...\nfor n in 'ab': ...\n",
            "it runs code of its own in line 2, and `model` alone is no workload",
        ),
    ],
)
def test_the_reason_why_a_file_is_a_script_names_the_line(text: str, reason: str, tmp_path: Path) -> None:
    assert user_file.decision(write(tmp_path, text)) == Decision(True, reason)


@pytest.mark.parametrize(
    "text",
    [
        "from step_of_mine import step\n",
        "from step_of_mine import *\n",
        "import step_of_mine\nstep = step_of_mine.step\n",
        "from functools import partial\nfrom step_of_mine import step as general\nstep = partial(general)\n",
        "def make():\n    def inner(): ...\n    return inner\n\nstep = make()\n",
        "try:\n    import nothing_of_this_name\nexcept ImportError:\n    def step(): ...\n",
        "if True:\n    step = lambda: None\n",
    ],
)
def test_a_function_that_is_not_defined_at_the_top_counts_too(text: str, tmp_path: Path) -> None:
    write(tmp_path, "def step(): ...\n", "step_of_mine.py")
    assert registry.inspect_file(write(tmp_path, text)).offers == ["step"]
