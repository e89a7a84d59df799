"""`subgrove explain --time` and `--group`: rows that are not independent are split, validated and explained as such."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import subgrove as sg
from subgrove._cli.default_model import cross_validate
from subgrove._cli.learning_task import LearningTask
from subgrove._cli.splitting import cross_validation_folds, dependent_groups, known_classes, split_rows, with_roles
from subgrove.exceptions import InputError

from .commands import error_message, invoke


def visits(n_persons: int = 60, size: int = 6, seed: int = 1) -> pd.DataFrame:
    """Return visits of persons, in the order of time; the target has an effect of the person and a trend."""
    rng = np.random.default_rng(seed)
    n = n_persons * size
    person, own = rng.permutation(np.repeat(np.arange(n_persons), size)), rng.normal(size=(n_persons, 2))
    dose = rng.normal(size=n)
    return pd.DataFrame(
        {
            "person": [f"p{number:03}" for number in person],
            "day": pd.date_range("2024-01-01", periods=n).strftime("%Y-%m-%d"),
            "age": own[person, 0].round(2),
            "height": own[person, 1].round(2),
            "dose": dose.round(3),
            "pain": (dose + 2 * rng.normal(size=n_persons)[person] + rng.normal(size=n)).round(3),
        }
    )


@pytest.fixture
def file(folder: Path) -> Path:
    path = folder / "visits.csv"
    visits().to_csv(path, index=False)
    return path


def task(time: Any = None, groups: Any = None, classes: bool = False) -> LearningTask:
    frame = visits()
    y = pd.Series(np.where(frame["pain"] > 0, "yes", "no")) if classes else frame["pain"]
    kind = "classification" if classes else "regression"
    return LearningTask(frame[["age", "dose"]], y, kind, (), time, groups)  # type: ignore[arg-type]


PERSONS = np.unique(visits()["person"], return_inverse=True)[1]
MONTHS = np.arange(360) // 30


def test_test_rows_are_the_last_ones_by_time_and_equal_times_stay_together() -> None:
    learned, held_out = split_rows(task(time=MONTHS[::-1].copy()), random_state=1)
    assert learned.time is not None
    assert held_out.time is not None
    assert learned.time.max() < held_out.time.min()
    assert len(held_out.y) == 120  # 4 of 12 months, nearest to 30 %


def test_groups_are_not_divided_between_training_and_test_rows() -> None:
    one, two, other = (split_rows(task(groups=PERSONS), random_state=seed) for seed in (1, 1, 2))
    assert not set(one[0].groups) & set(one[1].groups)  # type: ignore[arg-type]
    assert len(one[1].y) == pytest.approx(0.3 * 360, abs=6)
    assert np.array_equal(one[1].groups, two[1].groups)  # type: ignore[arg-type]
    assert not np.array_equal(one[1].groups, other[1].groups)  # type: ignore[arg-type]


def test_folds_by_time_are_predicted_from_earlier_rows_only() -> None:
    folds = cross_validation_folds(task(time=MONTHS), random_state=1)
    assert len(folds) == 5
    for first, second in folds:
        assert MONTHS[first].max() < MONTHS[second].min()
    assert np.array_equal(np.sort(np.concatenate([second for _, second in folds])), np.arange(180, 360))


def test_folds_by_group_hold_out_each_row_once() -> None:
    folds = cross_validation_folds(task(groups=PERSONS), random_state=1)
    for first, second in folds:
        assert not set(PERSONS[first]) & set(PERSONS[second])
    assert np.array_equal(np.sort(np.concatenate([second for _, second in folds])), np.arange(360))


def test_cross_validation_by_group_does_not_know_the_held_out_persons() -> None:
    by_person = LearningTask(visits()[["age", "height", "dose"]], visits()["pain"], "regression", (), None, PERSONS)
    (at_random,) = cross_validate(
        LearningTask(by_person.X, by_person.y, "regression", ()), forest=False, random_state=1
    )
    (by_group,) = cross_validate(by_person, forest=False, random_state=1)
    assert at_random.value > 0.4  # age and height identify the person
    assert by_group.value < 0.2
    assert by_group.std_error > 1.3 * at_random.std_error


def test_blocks_of_time_are_consecutive_rows() -> None:
    blocks = dependent_groups(task(time=np.arange(360)))
    assert blocks is not None
    assert np.array_equal(blocks, np.arange(360) // 10)
    assert np.array_equal(dependent_groups(task(time=MONTHS, groups=PERSONS)), PERSONS)  # type: ignore[arg-type]
    assert dependent_groups(task()) is None


def test_test_rows_of_unknown_classes_are_left_out_with_a_note() -> None:
    learned, held_out = task(classes=True).rows(np.arange(200)), task(classes=True).rows(np.arange(200, 360))
    held_out.y.iloc[:3] = "perhaps"
    kept = known_classes(learned, held_out)
    assert len(kept.y) == 157
    assert kept.notes == ("3 test rows of classes that no training row has left out.",)


def test_a_class_that_appears_late_has_no_probability_in_cross_validation() -> None:
    late = task(time=np.arange(360), classes=True)
    late.y.iloc[300:] = "new"
    share, accuracy, _ = cross_validate(late, forest=False, random_state=1)
    assert np.isfinite(share.value)
    assert accuracy.value < 0.75


@pytest.mark.parametrize(("column", "message"), [("time", "Split by time"), ("groups", "Split by group")])
def test_a_column_with_one_value_cannot_split_rows(column: str, message: str) -> None:
    zeros = np.zeros(360, dtype=np.intp)
    constant = task(zeros if column == "time" else None, zeros if column == "groups" else None)
    with pytest.raises(InputError, match=message):
        split_rows(constant, random_state=1)
    with pytest.raises(InputError, match="Cross-validation by"):
        cross_validation_folds(constant, random_state=1)


def test_explain_by_group_says_so_on_the_page_and_clusters_errors(file: Path, folder: Path) -> None:
    done = invoke(
        "explain", file, "-t", "pain", "--group", "person", "--drop", "day", "--json", "out.json", "--n-repeats", 3
    )
    assert done.exit_code == 0, done.output
    assert "person is not a feature: it groups the rows." in done.stderr
    assert "5-fold cross-validation by person, 360 rows" in done.stdout
    assert "Warning" not in done.stderr
    summary = sg.Report.load(folder / "out.json").summary
    assert [one.feature for one in summary.features] != []
    assert "person" not in {one.feature for one in summary.features}
    assert "whole groups of person selected at random" in summary.model.origin
    assert "Standard errors are clustered by person. person is not a feature." in summary.model.origin
    assert "18 groups of dependent rows" in " ".join(summary.methods.sentences)
    assert all("clustered" in one.conditional.noise for one in summary.features)


def test_explain_by_time_says_so_on_the_page(file: Path, folder: Path) -> None:
    done = invoke(
        "explain", file, "-t", "pain", "--time", "day", "--drop", "person", "--json", "out.json", "--n-repeats", 3
    )
    assert done.exit_code == 0, done.output
    assert "day is not a feature: it orders the rows." in done.stderr
    assert "5-fold forward cross-validation by day" in done.stdout
    summary = sg.Report.load(folder / "out.json").summary
    assert "the first 70% of the rows by day (252), explained on the other 108" in summary.model.origin
    assert "Standard errors take blocks of consecutive test rows as independent." in summary.model.origin


def test_explain_by_time_and_group_splits_by_time_and_clusters_by_group(file: Path, folder: Path) -> None:
    done = invoke(
        "explain", file, "-t", "pain", "--time", "day", "--group", "person", "--json", "out.json", "--n-repeats", 3
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    origin = sg.Report.load(folder / "out.json").summary.model.origin
    assert "the first 70% of the rows by day" in origin
    assert "Standard errors are clustered by person." in origin


def test_groups_of_given_test_rows_are_read_from_their_file(file: Path, folder: Path) -> None:
    visits(30, seed=2).to_csv(folder / "new.csv", index=False)
    done = invoke(
        "explain", file, "-t", "pain", "--group", "person", "--drop", "day", "--test", "new.csv", "--json", "out.json",
        "--n-repeats", 3,
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    summary = sg.Report.load(folder / "out.json").summary
    assert "30 groups of dependent rows" in " ".join(summary.methods.sentences)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--time", "date"), ("no column 'date' (--time)",)),
        (("--group", "pain"), ("--group pain is the target",)),
        (("--time", "person"), ("--time person holds text",)),
    ],
)
def test_invalid_columns_are_error_messages(words: tuple[str, ...], message: tuple[str, ...], file: Path) -> None:
    error_message(invoke("explain", file, "-t", "pain", *words), *message)


def test_missing_groups_are_an_error_message(folder: Path) -> None:
    frame = visits()
    frame.loc[:4, "person"] = None
    frame.to_csv(folder / "visits.csv", index=False)
    done = invoke("explain", "visits.csv", "-t", "pain", "--group", "person")
    error_message(done, "--group person: 5 rows without a value")


def test_two_groups_are_too_few(folder: Path) -> None:
    visits().assign(person=np.arange(360) % 2).to_csv(folder / "visits.csv", index=False)
    error_message(
        invoke("explain", "visits.csv", "-t", "pain", "--group", "person"), "The test rows are of one group only"
    )


def test_a_column_that_a_fitted_model_uses_stays_a_feature() -> None:
    frame = visits().assign(day=np.arange(360))
    whole = LearningTask(frame[["day", "dose"]], frame["pain"], "regression", ())
    assert list(with_roles(whole, "day", None, ("day", "dose")).X) == ["day", "dose"]
    assert list(with_roles(whole, "day", None).X) == ["dose"]
    with pytest.raises(InputError, match="There is no feature besides day and dose"):
        with_roles(whole, "day", "dose")


def test_the_terminal_warns_of_visits_of_the_same_person(file: Path) -> None:
    done = invoke("explain", file, "-t", "pain", "--n-repeats", 2)
    assert done.exit_code == 0, done.output
    assert "Warning: The rows are in the order of day" in done.stderr
    assert "Rows of the same person have nearly the same age and height." in done.stderr
    assert "--group person" in done.stderr


def test_text_that_recurs_but_is_left_out_may_be_groups(folder: Path) -> None:
    visits(220, 3).to_csv(folder / "visits.csv", index=False)
    done = invoke("explain", "visits.csv", "-t", "pain", "--n-repeats", 2)
    assert "If rows of the same person depend on each other, use --group person." in done.stderr


def test_a_column_that_has_values_in_later_rows_only_is_no_problem() -> None:
    late = task(time=np.arange(360))
    late.X["late"] = np.where(np.arange(360) < 300, np.nan, 1.0 * np.arange(360))
    (score,) = cross_validate(late, forest=False, random_state=1)
    assert np.isfinite(score.value)
