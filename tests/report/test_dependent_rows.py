"""Warnings of columns that order or group dependent rows, and none without evidence."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import subgrove as sg
from subgrove._data.table import read_table
from subgrove._report.inputs import LabelledRows
from subgrove._report.suspicious_columns import dependence_warnings

N = 400


def warnings_of(residuals: Any = None, y: Any = None, **columns: Any) -> list[str]:
    X = pd.DataFrame(columns)
    rows = LabelledRows(X, np.zeros(len(X)) if y is None else y, read_table(X, lenient=True))
    return dependence_warnings(rows, rows, None if residuals is None else np.asarray(residuals)[:, None])


def rng(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


def autocorrelated(n: int, share: float = 0.8, seed: int = 1) -> Any:
    values = rng(seed).normal(size=n)
    for at in range(1, n):
        values[at] = share * values[at - 1] + np.sqrt(1 - share**2) * values[at]
    return values


X1 = rng().normal(size=N)
DAYS = pd.date_range("2024-01-01", periods=N)


@pytest.mark.parametrize(
    "column",
    [
        {"when": DAYS},
        {"when": DAYS[::-1]},
        {"year": np.arange(N) // 4 + 1900},
        {"startYear": np.tile(np.arange(1980, 2020), 10)},  # years of ten countries, one after the other
        {"time": np.arange(N) / 12 + 1990},
    ],
    ids=["dates", "last first", "year", "panel", "time"],
)
def test_rows_in_the_order_of_time_are_noticed(column: dict[str, Any]) -> None:
    (found,) = warnings_of(**column, x=X1)
    (name,) = column
    assert f"in the order of {name}" in found
    assert f"--time {name}" in found


@pytest.mark.parametrize(
    "column",
    [
        {"born": DAYS[rng(2).permutation(N)]},  # dates of birth: rows are in no order of them
        {"year_built": rng(3).integers(1900, 2020, N)},
        {"time": np.sort(rng(4).exponential(100, N).round())},  # a duration, by which the file is sorted
        {"age": np.sort(rng(5).integers(18, 90, N))},  # a file sorted by age
        {"year": np.repeat([2007, 2008, 2009], [130, 130, 140])},
        {"season": np.array(["winter", "spring", "summer", "fall"])[np.arange(N) // 100]},
    ],
    ids=["births", "built", "duration", "age", "three years", "season"],
)
def test_other_times_are_not_noticed(column: dict[str, Any]) -> None:
    assert warnings_of(rng(6).normal(size=N), **column, x=X1) == []


def test_correlated_errors_along_a_date_or_a_sorted_column_are_noticed() -> None:
    errors, order = autocorrelated(N), rng(2).permutation(N)
    assert "correlated along booked (0.67" in warnings_of(errors[order], booked=DAYS[order], x=X1)[0]
    assert "correlated along place" in warnings_of(errors, place=np.arange(N) / 7, x=X1)[0]
    assert warnings_of(errors, place=rng(3).permutation(N) / 7, x=X1) == []


def test_rows_of_other_groups_need_no_other_split() -> None:
    labels, half = np.array([f"number {one}" for one in PERSON]), PERSON < 40
    X = pd.DataFrame({"patient": labels, "age": OF_PERSON[PERSON, 0], "height": OF_PERSON[PERSON, 1]})
    train, test = (
        LabelledRows(part, np.zeros(len(part)), read_table(part, lenient=True)) for part in (X[half], X[~half])
    )
    (found,) = dependence_warnings(train, test, None)
    assert "--group" not in found
    assert "Pass groups='patient'." in found


def test_an_index_of_dates_is_noticed() -> None:
    X = pd.DataFrame({"x": X1}, index=DAYS.rename("day"))
    rows = LabelledRows(X, np.zeros(N), read_table(X, lenient=True))
    assert "--time day" in dependence_warnings(rows, rows, None)[0]


def test_large_tables_are_noticed_by_some_of_their_rows() -> None:
    n = 30_000
    person = np.repeat(np.arange(n // 5), 5)
    own = rng(3).normal(size=(n // 5, 2))[person]
    X = pd.DataFrame({"year": np.arange(n) // 300 + 1900, "age": own[:, 0], "size": own[:, 1]})
    X = X.assign(user=[f"u{one}" for one in person]).sample(frac=1, random_state=1)
    rows = LabelledRows(X, np.zeros(n), read_table(X, lenient=True))
    found = dependence_warnings(rows, rows, None)
    assert ["--time year" in found[0], "--group user" in found[1]] == [True, True]


def test_dates_that_are_text_are_noticed() -> None:
    (found,) = warnings_of(date=[f"{day:%b %d %Y}" for day in DAYS], x=X1)
    assert "date seems to be a time but holds text" in found


def test_the_order_of_the_file_is_that_of_the_index_after_a_random_split() -> None:
    X = pd.DataFrame({"date": DAYS, "x": X1}).sample(frac=1, random_state=1)
    rows = LabelledRows(X, np.zeros(N), read_table(X, lenient=True))
    assert "in the order of date" in dependence_warnings(rows, rows, None)[0]


PERSON = rng(7).permutation(np.repeat(np.arange(80), 5))
OF_PERSON = rng(8).normal(size=(80, 3))


@pytest.mark.parametrize("name", ["patient", "village"])
def test_groups_whose_rows_share_columns_are_noticed(name: str) -> None:
    labels = [f"number {one}" for one in PERSON]
    (found,) = warnings_of(**{name: labels}, age=OF_PERSON[PERSON, 0], height=OF_PERSON[PERSON, 1], x=X1)
    assert f"Rows of the same {name} have nearly the same age and height." in found
    assert f"--group {name}" in found
    assert f"groups={name!r}" in found


def test_similar_errors_or_targets_within_groups_are_noticed() -> None:
    similar = OF_PERSON[PERSON, 2] + rng(9).normal(size=N)
    labels = [f"number {one}" for one in PERSON]
    assert "similar errors of the model (correlation 0.5" in warnings_of(similar, village=labels, x=X1)[0]
    assert "similar values of the target" in warnings_of(None, similar, patient_id=PERSON, x=X1)[0]
    # Without an identifying name, similar targets are what a nominal feature is for.
    assert warnings_of(rng(6).normal(size=N), similar, village=labels, x=X1) == []


def test_numbers_by_which_rows_are_sorted_are_groups_if_they_recur() -> None:
    person, own = np.sort(PERSON), rng(9).normal(size=N)
    similar = OF_PERSON[person, 2] + own
    (found,) = warnings_of(similar, firm=person + 100, x=X1)
    assert "Rows of the same firm have similar errors" in found
    assert "--group firm" in found
    assert warnings_of(own, firm=person + 100, x=X1) == []
    assert warnings_of(similar, firm=(person * 7) % 80, x=X1) == []  # not sorted: a number like any other


@pytest.mark.parametrize("seed", range(20))
def test_ordinary_nominal_columns_are_not_noticed(seed: int) -> None:
    """Levels differ in the target, which the model knows; one other column depends on the level."""
    own = rng(seed)
    city, species, hour = own.integers(0, 40, N), own.integers(0, 3, N), own.integers(0, 24, N)
    found = warnings_of(
        own.normal(size=N),
        own.normal(size=40)[city],
        city=[f"city {one}" for one in city],
        species=np.array(["a", "b", "c"])[species],
        hour=[f"{one} h" for one in hour],
        night=hour < 6,
        weight=own.normal(size=3)[species] + own.normal(size=N),
        income=own.normal(size=40)[city] + own.normal(size=N),
        rare=own.random(N) < 0.02,
    )
    assert found == []


def test_identifiers_that_do_not_recur_are_not_noticed() -> None:
    assert warnings_of(None, X1, id=np.arange(N), x=X1) == []


def model(X: pd.DataFrame) -> Any:
    return X["x"].to_numpy()


def test_a_report_warns_unless_groups_are_passed() -> None:
    X = pd.DataFrame({"date": DAYS, "x": X1})
    y = X1 + rng(2).normal(size=N)
    first, last = (X[:280], y[:280]), (X[280:], y[280:])
    options: dict[str, Any] = {"features": ["x"], "n_repeats": 3, "random_state": 1}
    at_random = sg.report(model, (X[::2], y[::2]), (X[1::2], y[1::2]), **options)
    assert any("--time date" in one for one in at_random.summary.warnings)
    assert "--time date" in at_random.to_html()
    found = sg.report(model, first, last, **options)
    (warning,) = found.summary.warnings
    assert "--time" not in warning
    assert "Pass blocks of time such as months as groups=." in warning
    months = last[0]["date"].dt.to_period("W").astype(str)
    grouped = sg.report(model, first, last, groups=months, **options).summary
    assert grouped.warnings == ()
    assert "18 groups of dependent rows" in " ".join(grouped.methods.sentences)
    assert next(one.value for one in grouped.methods.settings if one.name == "groups of rows") == 18
    plain = found.summary
    assert grouped.features[0].conditional.noise.startswith("test rows (clustered)")
    assert grouped.model.scores[0].std_error != plain.model.scores[0].std_error
    assert grouped.model.scores[0].value == plain.model.scores[0].value


def test_samplers_of_a_report_are_fitted_on_one_row_of_each_group_if_columns_are_the_same_within_groups() -> None:
    own, groups = rng(3).normal(size=(60, 2)), np.repeat(np.arange(60), 5)
    X = pd.DataFrame({"x": own[groups, 0], "z": (own[groups, 0] + own[groups, 1])})
    y, half = own[groups, 0] + rng(4).normal(size=300), groups < 30
    pairs = [(X[rows], y[rows]) for rows in (half, ~half)]
    options: dict[str, Any] = {"features": ["x"], "n_repeats": 3, "random_state": 1}
    both = sg.report(model, *pairs, groups=(groups[half], groups[~half]), **options).summary
    of_test = sg.report(model, *pairs, groups=groups[~half], **options).summary
    sentence = "Samplers were fitted on one row of each of 30 groups of training rows"
    assert [sentence in " ".join(one.methods.sentences) for one in (both, of_test)] == [True, False]
    assert both.data.n_train == 150
    varying = [(frame.assign(x=rng(5).normal(size=len(frame)), z=0.0), target) for frame, target in pairs]
    other = sg.report(model, *varying, groups=(groups[half], groups[~half]), **options).summary
    assert sentence not in " ".join(other.methods.sentences)
