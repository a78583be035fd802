"""An exception is shown with the program's own line, and without values or frames that tell its author nothing."""

from __future__ import annotations

import sysconfig
from pathlib import Path

import pytest

from bench.registry import program_errors

FILE = Path("/programs/mine.py")
OURS = program_errors.PACKAGE / "worker" / "loops.py"


@pytest.mark.parametrize(
    ("path", "own"),
    [
        (FILE, True),
        (FILE.with_name("layers.py"), True),
        (FILE.parent / "package" / "model.py", True),
        (FILE.parent / ".venv" / "lib" / "python3.11" / "site-packages" / "keras" / "model.py", False),
        (Path("/elsewhere/other.py"), False),
    ],
)
def test_files_in_the_folder_of_the_users_file_are_the_programs_unless_they_are_installed(
    path: Path, own: bool
) -> None:
    assert program_errors.is_program(path, FILE) == own


def test_devbench_is_not_the_program_even_if_the_users_file_lies_in_its_checkout() -> None:
    assert not program_errors.is_program(OURS, program_errors.PACKAGE.parent / "mine.py")
    assert program_errors.is_program(program_errors.PACKAGE / "workloads" / "cifar.py", None)
    assert not program_errors.is_program(OURS, None)


def test_pythons_library_is_not_the_program_even_if_the_users_file_lies_above_it() -> None:
    library = Path(sysconfig.get_path("stdlib"))
    assert not program_errors.is_program(library / "json" / "decoder.py", library.parent.parent / "mine.py")


@pytest.mark.parametrize(
    "values",
    [
        ", ".join(map(str, range(500))),
        "\n".join(f"[{n}.5e-01 -{n}.25 nan]" for n in range(200)),
    ],
)
def test_the_values_of_an_array_are_left_out_of_a_message(values: str) -> None:
    text = program_errors.message(ValueError(f"cannot convert array([{values}], dtype=float32) to a Tensor."), FILE)
    assert len(text) < 100
    assert "…" in text
    assert text.endswith("dtype=float32) to a Tensor.")


def test_a_shape_is_not_taken_for_the_values_of_an_array() -> None:
    text = "Incompatible shapes: [1,2,3,4,5,6,7,8] vs. [8]"
    assert program_errors.message(ValueError(text), FILE) == text


def test_a_long_message_keeps_its_end() -> None:
    text = program_errors.message(ValueError("word " * 1000 + "and the cause"), FILE)
    assert len(text) < 1.1 * program_errors.LONGEST
    assert text.endswith("and the cause")


def test_frames_of_devbench_are_left_out_of_a_message() -> None:
    text = f"""in user code:

    File "{OURS}", line 44, in train_step  *
        return model.train_step(batch)
    File "{FILE}", line 7, in train_step  *
        return self.rate * gradient

    TypeError: unsupported operand"""
    assert program_errors.message(TypeError(text), FILE).split("\n") == [
        "in user code:",
        "",
        f'    File "{FILE}", line 7, in train_step  *',
        "        return self.rate * gradient",
        "",
        "    TypeError: unsupported operand",
    ]


def test_a_message_that_names_no_line_of_the_program_does_not_speak_of_user_code() -> None:
    text = f"""in user code:

    File "{OURS}", line 44, in train_step  *
        return model.train_step(batch)["loss"]

    KeyError: 'loss'"""
    assert program_errors.message(LookupError(text), FILE) == "KeyError: 'loss'"
