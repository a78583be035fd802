"""Other Python environments: which interpreter and packages they have, and why one cannot be used."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from bench.config.settings import RunSettings
from bench.errors import OutputError, SettingsError, UsageError
from bench.machine import installed, pip, python_env, user_cache, uv
from bench.session import env_checks, worker_packages
from bench.study import made_envs
from bench.study.plan import groups
from bench.worker import self_check
from benchmarks.changes import PACKAGE, wheel

pytestmark = pytest.mark.once


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an environment without packages."""
    folder = tmp_path_factory.mktemp("envs") / "empty"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    return folder


def test_an_environment_is_read_by_its_own_interpreter() -> None:
    env = python_env.read("own", Path(sys.prefix))
    assert env.version == ".".join(map(str, sys.version_info[:3]))
    assert env.tag == sys.implementation.cache_tag
    assert env.tensorflow == (installed.tensorflow() or ("", None))[1]
    assert env.site_packages == str(installed.site_packages())
    assert not worker_packages.missing(env)
    assert env.digest == python_env.read("again", Path(sys.executable)).digest


def test_an_environment_that_prints_at_its_start_is_read(tmp_path: Path) -> None:
    program = tmp_path / "python"
    program.write_text(f'#!/bin/sh\necho welcome\nexec {sys.executable} "$@"\n')
    program.chmod(0o755)
    assert python_env.read("it", program).tag == sys.implementation.cache_tag


def test_an_environment_that_cannot_be_used_is_refused_with_the_reason(empty: Path, tmp_path: Path) -> None:
    (tmp_path / "python").write_text("#!/bin/sh\necho broken >&2; exit 3\n")
    (tmp_path / "python").chmod(0o755)
    for path, words in (
        (tmp_path / "nowhere", "does not exist"),
        (tmp_path, "is not a Python environment"),
        (tmp_path / "python", "does not run"),
        (empty, "--env x has no TensorFlow"),
        (Path("~nobody-of-this-name/env"), "is in a home folder that is not known"),
    ):
        with pytest.raises(SettingsError, match=words):
            python_env.read("x", path)


@pytest.mark.needs("posix")
@pytest.mark.parametrize(
    ("commands", "words"),
    [
        ("""echo '{"version": "3.7.3"}'""", "has Python 3.7.3$"),
        ("echo hello", "is not an interpreter of Python"),
        ("true", "is not an interpreter of Python"),
        ("exit 3", "does not run: it ended with exit code 3"),
        ("printf '\\377' >&2; exit 1", "does not run: \ufffd"),
        ("exec sleep 60", "did not list its packages within 0.2 s$"),
    ],
)
def test_a_program_that_is_no_usable_python_is_refused_with_the_reason(
    commands: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "sleep" in commands:
        monkeypatch.setattr(python_env, "SECONDS", 0.2)
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\n{commands}\n")
    program.chmod(0o755)
    with pytest.raises(SettingsError, match=words):
        python_env.read("x", program)


def test_a_start_up_file_of_an_environment_may_print(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_text(f'#!/bin/sh\necho hello\nexec "{sys.executable}" "$@"\n')
    program.chmod(0o755)
    assert python_env.read("x", program).version == python_env.read("own", Path(sys.prefix)).version


def test_each_environment_is_a_spec_of_its_own_even_if_their_packages_are_equal(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("print(1)")
    settings = RunSettings(env={"a": sys.prefix, "b": sys.executable})
    (group,) = groups([script], settings)
    a, b = (planned.spec for planned in group.planned)
    assert (a.label, b.label) == ("train on cpu in a, as-written", "train on cpu in b, as-written")
    assert a.env is not None
    assert b.env is not None
    assert a.env.sha256 == b.env.sha256
    assert a.key != b.key


def test_what_a_worker_needs_is_copied_for_an_environment_with_the_same_python(
    empty: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uv, "find", lambda: None)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    tag = sys.implementation.cache_tag or ""
    env = python_env.PythonEnv("old", str(empty / "bin" / "python"), "3", tag, {"tensorflow": "2.20.0"})
    folder = worker_packages.folder_for(env)
    assert folder is not None
    check = f"import sys; sys.path.insert(0, {str(folder)!r}); import pydantic; print(pydantic.__file__)"
    done = subprocess.run([env.python, "-c", check], check=True, capture_output=True, text=True)
    assert Path(done.stdout.strip()).is_relative_to(folder)
    other = python_env.PythonEnv("other", env.python, "3", "cpython-399", env.packages)
    with pytest.raises(SettingsError, match="--env other lacks pydantic, and devbench cannot install it"):
        worker_packages.folder_for(other)


@pytest.fixture
def fresh_index() -> Iterator[None]:
    """Let devbench ask for pip and its index again, also after the test."""
    for function in (uv.index, pip.command):
        function.cache_clear()
    yield
    for function in (uv.index, pip.command):
        function.cache_clear()


@pytest.mark.parametrize(
    ("listed", "variables", "options"),
    [
        ("", {}, ()),
        ("global.index-url='https://a/simple'\n", {"UV_DEFAULT_INDEX": "https://a/simple"}, ()),
        ("global.index-url='https://a'\n:env:.index-url='https://b'\n", {"UV_DEFAULT_INDEX": "https://b"}, ()),
        (
            "install.extra-index-url='\\nhttps://a\\nhttps://b'\n",
            {"UV_INDEX": "https://a https://b", "UV_INDEX_STRATEGY": "unsafe-best-match"},
            (),
        ),
        ("global.no-index='true'\nglobal.find-links='/w /x'\n", {"UV_FIND_LINKS": "/w,/x"}, ("--no-index",)),
        ("global.no-index='false'\nglobal.timeout='60'\n", {}, ()),
    ],
)
def test_uv_uses_the_index_that_pip_is_configured_for(
    listed: str, variables: dict[str, str], options: tuple[str, ...]
) -> None:
    assert uv._index(listed) == (variables, options)


@pytest.mark.usefixtures("fresh_index")
def test_uv_finds_packages_in_each_folder_that_pip_is_configured_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for version in ("1.0", "2.0"):
        (tmp_path / version).mkdir()
        wheel(tmp_path / version, version, "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", f"{tmp_path / '1.0'} {tmp_path / '2.0'}")
    for version in ("1.0", "2.0"):
        assert uv.run("it failed", "pip", "compile", "--quiet", "-", text=f"{PACKAGE}=={version}").count(version)


@pytest.mark.usefixtures("fresh_index")
def test_what_uv_says_is_part_of_the_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    with pytest.raises(SettingsError, match="--with nothing==1 cannot be resolved for Python 3"):
        made_envs.make("nothing==1")


@pytest.mark.usefixtures("fresh_index")
def test_a_password_of_a_package_index_is_visible_to_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "uv"
    program.write_text('#!/bin/sh\necho "$@" > "$0.arguments"\necho "no $UV_DEFAULT_INDEX" >&2\nexit 1\n')
    program.chmod(0o755)
    monkeypatch.setattr(uv, "find", lambda: str(program))
    monkeypatch.setenv("PIP_INDEX_URL", "https://user:p@ss@host/simple")
    with pytest.raises(SettingsError, match="no https://host/simple") as caught:
        made_envs.make("it@https://user:p@ss@host/it-1.0-py3-none-any.whl")
    assert "p@ss" not in f"{caught.value.message} {caught.value.hint}"
    assert "p@ss" not in (tmp_path / "uv.arguments").read_text()
    monkeypatch.setattr(made_envs, "environment", Path)
    assert list(made_envs.make("it@https://user:p@ss@host/it.whl")) == ["it@https://host/it.whl"]
    with pytest.raises(SettingsError) as refused:
        made_envs.make("it@https://user:p@ss@host/it.whl,")
    assert "p@ss" not in refused.value.message


@pytest.mark.usefixtures("fresh_index")
def test_a_local_package_has_an_environment_for_each_checkout_and_each_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(made_envs, "NEEDED", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    backend = (
        "import zipfile\n"
        "def build_wheel(folder, *_):\n"
        "    with zipfile.ZipFile(folder + '/local_package-1-py3-none-any.whl', 'w') as wheel:\n"
        "        wheel.write('local_package.py')\n"
        "        info = 'local_package-1.dist-info/'\n"
        "        wheel.writestr(info + 'METADATA', 'Metadata-Version: 2.1\\nName: local-package\\nVersion: 1\\n')\n"
        "        wheel.writestr(info + 'WHEEL', 'Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')\n"
        "        wheel.writestr(info + 'RECORD', '')\n"
        "    return 'local_package-1-py3-none-any.whl'\n"
    )
    project = (
        "[project]\nname = 'local-package'\nversion = '1'\n"
        "[build-system]\nrequires = []\nbuild-backend = 'backend'\nbackend-path = ['.']\n"
    )

    def written(folder: Path, text: str) -> str:
        """Return what the module of the environment of `.` says."""
        folder.mkdir(exist_ok=True)
        for name, content in (("pyproject.toml", project), ("backend.py", backend), ("local_package.py", text)):
            if not (folder / name).exists() or (folder / name).read_text() != content:
                (folder / name).write_text(content)
        monkeypatch.chdir(folder)
        (module,) = made_envs.environment(".").glob("lib/python*/site-packages/local_package.py")
        return module.read_text()

    assert written(tmp_path / "a b", "A = 1\n") == "A = 1\n"
    assert written(tmp_path / "c", "A = 2\n") == "A = 2\n"
    assert written(tmp_path / "c", "A = 3\n") == "A = 3\n"
    (tmp_path / "c" / "results").mkdir()
    (tmp_path / "c" / "results" / "it.json").write_text("{}")
    assert written(tmp_path / "c", "A = 3\n") == "A = 3\n"
    assert len(list((tmp_path / "cache" / "devbench" / "environments").iterdir())) == 3


def test_a_failure_of_the_network_differs_from_a_version_that_cannot_be_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "uv"
    program.write_text("#!/bin/sh\ncat >&2\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setattr(uv, "find", lambda: str(program))
    with pytest.raises(uv.Unreachable):
        uv.run("it failed", "venv", text="error sending request for url (https://host/)\ntcp connect error")
    with pytest.raises(SettingsError) as caught:
        uv.run("it failed", "venv", text="no solution found: async-timeout==4 and connection-pool have no wheels")
    assert not isinstance(caught.value, uv.Unreachable)


def test_environments_cannot_be_made_without_uv(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uv, "find", lambda: None)
    with pytest.raises(SettingsError, match="uv is not installed") as caught:
        made_envs.make("tensorflow==2.20.0")
    assert "pip install uv" in caught.value.hint
    with pytest.raises(SettingsError, match="contains an empty environment"):
        made_envs.make("tensorflow==2.20.0,")


def test_a_comma_within_a_requirement_does_not_end_an_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(made_envs, "environment", Path)
    made = made_envs.make("tensorflow[and-cuda,extra]>=2.19, <2.21,!=2.20.1 pandas,tensorflow==2.21.0")
    assert list(made) == ["tensorflow[and-cuda,extra]>=2.19, <2.21,!=2.20.1 pandas", "tensorflow==2.21.0"]


def test_doctor_accepts_an_environment_whose_keras_is_the_package_tf_keras(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "tensorflow", SimpleNamespace(__version__="2.16.2", keras=SimpleNamespace()))
    monkeypatch.setitem(sys.modules, "tf_keras", SimpleNamespace(__version__="2.16.0"))
    monkeypatch.setattr(importlib, "import_module", lambda name: None)
    self_check.main()
    assert capsys.readouterr().out.startswith("TensorFlow 2.16.2, Keras 2.16.0, Python 3")


@pytest.mark.parametrize("error", [SettingsError("uv is not installed"), OutputError("cannot write the cache")])
def test_doctor_names_the_reason_if_an_environment_lacks_packages_that_cannot_be_installed(
    error: UsageError, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(env: python_env.PythonEnv) -> None:
        raise error

    monkeypatch.setattr(worker_packages, "folder_for", refused)
    environment, packages = env_checks.checks("own", Path(sys.prefix))
    assert environment.name == "environment"
    assert (packages.status, packages.detail) == ("FAIL", error.message)


@pytest.mark.usefixtures("fresh_index")
def test_uv_uses_the_index_of_a_pip_on_the_path_if_python_has_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without = tmp_path / "python"
    without.write_text("#!/bin/sh\nexit 1\n")
    program = tmp_path / "pip"
    program.write_text("#!/bin/sh\necho \"global.index-url='https://here/simple'\"\n")
    for executable in (without, program):
        executable.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(without))
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert uv.index() == ({"UV_DEFAULT_INDEX": "https://here/simple"}, ())


@pytest.mark.usefixtures("fresh_index")
def test_pip_comes_with_python_if_the_environment_has_none(
    empty: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", str(empty / "bin" / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert pip.run("--version").stdout.startswith("pip ")


def test_a_folder_of_the_cache_that_another_process_made_meanwhile_is_kept(tmp_path: Path) -> None:
    target = tmp_path / "cache" / "made"
    with user_cache.new_folder(target) as made:
        made.mkdir()
        target.mkdir()
        (target / "theirs").touch()
    assert list(target.parent.iterdir()) == [target]
    assert [path.name for path in target.iterdir()] == ["theirs"]


def test_a_cache_that_cannot_be_written_is_an_error_of_the_user(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with (
        pytest.raises(OutputError, match=r"cannot write devbench's cache in .*file") as caught,
        user_cache.new_folder(tmp_path / "file" / "made"),
    ):
        pass
    assert "XDG_CACHE_HOME" in caught.value.hint


def test_a_user_without_a_home_folder_is_told_how_to_choose_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", unknown)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.delenv("LOCALAPPDATA", raising=False)
    with pytest.raises(SettingsError, match="no home folder") as caught:
        user_cache.folder()
    assert "XDG_CACHE_HOME" in caught.value.hint


def test_a_folder_of_the_cache_that_is_not_complete_is_removed(tmp_path: Path) -> None:
    def interrupted() -> None:
        with user_cache.new_folder(tmp_path / "made") as made:
            made.mkdir()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("python", "tensorflow_version", "status"),
    [("3.12.3", "2.20.0", "PASS"), ("3.10.1", "2.10.1", "PASS"), ("3.11.2", "2.15.0", "WARN"),
     ("3.14.0", "2.21.0", "WARN"), ("3.12.3", "2.22.0rc1", "WARN"), ("3.12.3", None, "PASS")],
)  # fmt: skip
def test_doctor_warns_about_versions_that_workers_do_not_support(
    python: str, tensorflow_version: str | None, status: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packages = {"tensorflow": tensorflow_version} if tensorflow_version else {}
    env = python_env.PythonEnv("it", sys.executable, python, "", packages)
    monkeypatch.setattr(python_env, "read", lambda name, path: env)
    assert next(env_checks.checks("it", tmp_path)).status == status
