"""The target is read as people expect; errors about it are true and give advice that works."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from subgrove._cli.columns import KnownColumns
from subgrove._cli.learning_task import LearningTask, learning_task
from subgrove._cli.reading import read_table_file
from subgrove.exceptions import InputError

from .commands import error_message, invoke
from .conftest import options
from .messy_files import clean, english, german, text, with_column


def task(path: Path, content: bytes, target: str = "price", **values: Any) -> LearningTask:
    path = path / "data.csv"
    path.write_bytes(content)
    return learning_task(read_table_file(options(path, **values), KnownColumns({target: "--target"})), target, None)


@pytest.mark.parametrize(
    ("write", "delimiter"),
    [(lambda one: f"${english(one)}", ","), (german, ";"), (lambda one: f"{english(one)} €", "\t")],
)
def test_target_with_currency_and_separators_is_a_regression(
    tmp_path: Path, write: Callable[[float], str], delimiter: str
) -> None:
    learned = task(tmp_path, text(with_column("price", write), delimiter))
    assert learned.kind == "regression"
    assert learned.y.tolist() == clean()["price"].tolist()


def test_error_about_a_target_without_numbers_names_its_cells(tmp_path: Path) -> None:
    frame = clean().assign(price=[english(1000 + one) for one in clean()["price"]])
    with pytest.raises(InputError, match=r"'price'.*300 cells read as missing, not a number: '.*,.*\."):
        task(tmp_path, text(frame), numeric=["price"], decimal=",")


def test_total_line_is_not_a_row_of_the_target(tmp_path: Path) -> None:
    learned = task(tmp_path, text(clean().astype(str), after=[["Total", "", "", "999999"]]))
    assert learned.kind == "regression"
    assert len(learned.y) == len(clean())


def test_numeric_option_takes_currency(tmp_path: Path) -> None:
    frame = with_column("price", lambda one: f"${english(one)}")
    assert task(tmp_path, text(frame), numeric=["price"]).y.tolist() == clean()["price"].tolist()


def test_advice_on_a_target_with_many_classes_is_not_circular(folder: Path) -> None:
    """As a regression, it is either read as numbers, or the message names the texts that are not."""
    words = np.resize([f"kind {at}" for at in range(60)], 900)
    frame = clean(900).assign(price=words)
    (folder / "data.csv").write_bytes(text(frame))
    message = error_message(invoke("explain", "data.csv", "-t", "price"), "60 classes", "at most 50")
    assert "--task" not in message
    error_message(invoke("explain", "data.csv", "-t", "price", "--task", "regression"), "'kind 0'", "not a number")


def test_too_few_rows_of_the_classes_are_explained(folder: Path) -> None:
    names = [("a", "b")[at % 2] if at < 40 else f"name {at}" for at in range(300)]
    (folder / "data.csv").write_bytes(text(clean().assign(price=names)))
    error_message(
        invoke("explain", "data.csv", "-t", "price"), "40 usable rows", "260 rows of classes", "'name 40' (1)"
    )


def test_rare_class_of_two_is_kept_with_a_note(tmp_path: Path) -> None:
    """537 zeros and 9 ones once were 'the same value in all rows'."""
    frame = clean(546).assign(fraud=[int(at % 60 == 5 and at < 540) for at in range(546)])
    learned = task(tmp_path, text(frame), "fraud")
    assert learned.kind == "classification"
    assert learned.y.sum() == 9
    assert any("imprecise: '1' (9) of 546" in note for note in learned.notes)


def test_too_rare_class_of_two_is_named_with_its_rows(folder: Path) -> None:
    frame = clean().assign(fraud=[1 if at < 3 else 0 for at in range(300)])
    (folder / "data.csv").write_bytes(text(frame))
    message = error_message(
        invoke("explain", "data.csv", "-t", "fraud"), "'fraud'", "'0' (297)", "'1' (3)", "at least 5"
    )
    assert "constant" not in message


def test_left_out_classes_are_named_with_their_rows(tmp_path: Path) -> None:
    names = [("a", "b", "c")[at % 2 if at >= 7 else 2] for at in range(300)]
    learned = task(tmp_path, text(clean().assign(kind=names)), "kind")
    assert sorted(set(learned.y)) == ["a", "b"]
    assert any("7 rows" in note and "'c' (7)" in note for note in learned.notes)


def test_separator_line_is_not_the_header(folder: Path) -> None:
    (folder / "data.csv").write_bytes(b"sep=;\r\n" + text(clean(), ";"))
    result = invoke("dependence", "data.csv", "-t", "price")
    assert result.exit_code == 0, result.output


def test_unknown_loss_is_an_error_before_anything_is_read() -> None:
    error_message(invoke("explain", "nowhere.csv", "-t", "price", "--loss", "mea"), "'mea'", "loss")
