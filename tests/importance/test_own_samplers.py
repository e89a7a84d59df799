"""Samplers of users in `importance`: what they may give, and what is said when they give something else."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn import config_context

import subgrove as sg
from subgrove._core.execution import Streams
from subgrove._data.table import read_table
from subgrove.exceptions import ColumnError, ParameterError, SamplerError
from subgrove.samplers.user_defined import UserSampler

# These samplers do not learn from rows, so training rows are the test rows.
pytestmark = pytest.mark.filterwarnings("ignore::subgrove.exceptions.SameRowsWarning")
Floats = npt.NDArray[np.float64]
N = 40
RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(
    {
        "x": RNG.normal(size=N),
        "count": RNG.integers(0, 9, N),
        "city": RNG.choice(["Bonn", "Ulm"], N),
        "flag": RNG.random(N) < 0.5,
        "grade": pd.Categorical(RNG.choice(["low", "high"], N), ["low", "high"], ordered=True),
        "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(RNG.integers(0, 90, N), unit="D"),
    }
)
Y = RNG.normal(size=N)
TABLES: dict[str, Any] = {
    "pandas": FRAME,
    "polars": pl.from_pandas(FRAME.assign(grade=FRAME["grade"].astype(str))),
    "pyarrow": pa.Table.from_pandas(FRAME.assign(grade=FRAME["grade"].astype(str)), preserve_index=False),
}
each_table = pytest.mark.parametrize("table", TABLES.values(), ids=list(TABLES))


class Sampler:
    """Gives what a function makes of the column and a generator."""

    def __init__(self, make: Any) -> None:
        self.make = make

    def fit(self, X: Any, features: Any) -> Sampler:
        return self

    def sample(self, X: Any, feature: Any, rngs: Any) -> Iterator[Any]:
        for rng in rngs:
            yield self.make(X, feature, rng)


class Spy:
    """A model that stores the tables it predicts."""

    def __init__(self) -> None:
        self.tables: list[Any] = []

    def predict(self, X: Any) -> Floats:
        self.tables.append(X)
        return np.asarray(X["x"], dtype=float)


def run(sampler: Any, table: Any = FRAME, model: Any = None, **options: Any) -> sg.ImportanceResult:
    model = model or Spy()
    return sg.importance(
        model,
        table,
        Y,
        sampler=sampler,
        **{"train": table, "features": ["x"], "n_repeats": 3, "random_state": 0, **options},
    )


def column(X: Any, name: str) -> Any:
    return X[name].to_numpy()


def shuffled(X: Any, feature: str, rng: np.random.Generator) -> Any:
    return column(X, feature)[rng.permutation(len(X))]


@each_table
@pytest.mark.parametrize("feature", list(FRAME.columns))
def test_redrawn_column_keeps_its_type(feature: str, table: Any) -> None:
    model = Spy()
    run(Sampler(shuffled), table, model, features=[feature])
    before, after, _ = model.tables  # the last are some of the first once more
    kept = before.schema == after.schema if hasattr(table, "schema") else (before.dtypes == after.dtypes).all()
    assert kept
    assert len(after) == 3 * N
    for part in range(3):
        redrawn = column(after, feature)[part * N : (part + 1) * N]
        assert sorted(map(str, redrawn)) == sorted(map(str, column(before, feature)))


@each_table
def test_whole_numbers_may_be_replaced_by_floats(table: Any) -> None:
    model = Spy()
    run(Sampler(lambda X, feature, rng: rng.normal(size=len(X))), table, model, features=["count"])
    after = column(model.tables[1], "count")
    assert after.dtype == np.float64
    assert (after != np.round(after)).all()


@each_table
def test_whole_numbers_given_as_floats_stay_whole_numbers(table: Any) -> None:
    model = Spy()
    run(Sampler(lambda X, feature, rng: rng.integers(0, 9, len(X)).astype(float)), table, model, features=["count"])
    assert column(model.tables[1], "count").dtype.kind == "i"


@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.bool_])
def test_array_of_another_dtype_stays_of_it(dtype: Any) -> None:
    """The user saw: a model trained on float32 was given float64."""
    array = RNG.integers(0, 2, size=(N, 2)).astype(dtype)
    seen: set[Any] = set()

    def model(X: Any) -> Any:
        seen.add(X.dtype)
        return X[:, 0].astype(float)

    run(Sampler(lambda X, feature, rng: rng.integers(0, 2, len(X)).astype(float)), array, model, features=["x0", "x1"])
    assert seen == {np.dtype(dtype)}


def test_array_of_whole_numbers_widens_for_the_redraws_that_need_it_only() -> None:
    array = RNG.integers(0, 9, size=(400, 2))
    seen: list[Any] = []

    def model(X: Any) -> Any:
        seen.append(X.dtype)
        return X[:, 0].astype(float)

    def make(X: Any, feature: str, rng: np.random.Generator) -> Any:
        return rng.normal(size=len(X)) if feature == "x0" else X[rng.permutation(len(X)), 1]

    with config_context(working_memory=1e-9):  # batches of 1000 rows: the two repeats of a feature
        sg.importance(model, array, np.zeros(400), sampler=Sampler(make), train=array, n_repeats=2, random_state=0)
    assert seen[:3] == [np.dtype(np.int64), np.dtype(np.float64), np.dtype(np.int64)]


@each_table
@pytest.mark.parametrize("feature", ["x", "count"])
def test_strings_for_numbers_are_rejected(feature: str, table: Any) -> None:
    """The user saw: `could not convert string to float` from the depths of a container."""
    with pytest.raises(
        SamplerError, match=rf"returned 'u' for feature '{feature}', repeat 0, whose values are numeric"
    ):
        run(Sampler(lambda X, feature, rng: np.full(len(X), "u")), table, features=[feature])
    with pytest.raises(SamplerError, match="returned 'u' for feature 'x0'"):
        run(
            Sampler(lambda X, feature, rng: np.full(len(X), "u")),
            FRAME[["x"]].to_numpy(),
            lambda X: X[:, 0],
            features=["x0"],
        )


@each_table
@pytest.mark.parametrize(("feature", "shown"), [("city", "0"), ("flag", "2")])
def test_numbers_for_labels_are_rejected(feature: str, shown: str, table: Any) -> None:
    """The user saw: numbers turned into the strings '0', '1', ..., or into True, without a word."""
    with pytest.raises(
        SamplerError, match=rf"returned {shown} for feature '{feature}', repeat 0, whose values are nominal"
    ):
        run(Sampler(lambda X, feature, rng: np.arange(len(X))), table, features=[feature])


def test_category_that_x_does_not_have_is_rejected() -> None:
    with pytest.raises(ColumnError, match=r"Values for column 'grade' do not all fit the dtype category of X"):
        run(Sampler(lambda X, feature, rng: np.full(len(X), "medium")), features=["grade"])


def test_number_for_a_date_is_rejected() -> None:
    with pytest.raises(SamplerError, match=r"cannot hold \(feature 'day', repeat 0"):
        run(Sampler(lambda X, feature, rng: np.full(len(X), "someday")), features=["day"])


@pytest.mark.parametrize("length", [0, N - 1, N + 1])
def test_wrong_length_is_rejected(length: int) -> None:
    with pytest.raises(SamplerError, match=rf"shape \({length},\) for feature 'x', repeat 0, but there are {N} rows"):
        run(Sampler(lambda X, feature, rng: np.zeros(length)))


def test_table_in_place_of_a_column_is_rejected() -> None:
    with pytest.raises(SamplerError, match=r"shape \(40, 2\) for feature 'x'"):
        run(Sampler(lambda X, feature, rng: np.zeros((N, 2))))


class Few(Sampler):
    def sample(self, X: Any, feature: Any, rngs: Any) -> Iterator[Any]:
        return iter([column(X, feature)] * 2)


class Many(Sampler):
    def sample(self, X: Any, feature: Any, rngs: Any) -> Iterator[Any]:
        while True:
            yield column(X, feature)[::-1]


class Nothing(Sampler):
    def sample(self, X: Any, feature: Any, rngs: Any) -> Any:
        return None


def test_too_few_columns_are_rejected() -> None:
    with pytest.raises(SamplerError, match=r"gave 2 columns for feature 'x', but 3 generators"):
        run(Few(None))


def test_more_columns_than_generators_are_not_predicted() -> None:
    assert len(run(Many(None)).repeats) == 3


def test_redraw_that_gives_nothing_is_rejected() -> None:
    with pytest.raises(SamplerError, match=r"sample of Nothing raised TypeError for feature 'x', repeat 0"):
        run(Nothing(None))


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_error_in_redraw_names_sampler_feature_and_repeat(n_jobs: int) -> None:
    def make(X: Any, feature: str, rng: np.random.Generator) -> Any:
        if feature == "x":
            raise ZeroDivisionError("no rows")
        return column(X, feature)

    with pytest.raises(SamplerError, match=r"Sampler raised ZeroDivisionError for feature 'x', repeat 0: no rows"):
        run(Sampler(make), features=["x", "count"], n_jobs=n_jobs)


class FailsToFit(Sampler):
    def fit(self, X: Any, features: Any) -> Sampler:
        raise KeyError("colour")


def test_error_in_fit_names_the_sampler() -> None:
    """The user saw: KeyError: 'colour', without a hint that it came from the sampler."""
    with pytest.raises(SamplerError, match="fit of FailsToFit raised KeyError: 'colour'") as caught:
        run(FailsToFit(None))
    assert isinstance(caught.value.__cause__, KeyError)


class Returns(Sampler):
    def __init__(self, given: Any) -> None:
        super().__init__(shuffled)
        self.given = given

    def fit(self, X: Any, features: Any) -> Any:
        return self.given


def test_fit_that_returns_nothing_means_the_sampler_itself() -> None:
    one, two = run(Returns(None)), run(Sampler(shuffled))
    assert one.overall["estimate"].tolist() == two.overall["estimate"].tolist()


def test_fit_that_returns_what_cannot_redraw_is_rejected() -> None:
    with pytest.raises(ParameterError, match="fit of Returns returned int, which has no method sample"):
        run(Returns(3))


def test_class_in_place_of_an_object_is_rejected() -> None:
    with pytest.raises(ParameterError, match=r"class Sampler, not an object of it: write Sampler\(\)"):
        run(Sampler)


@pytest.mark.parametrize("given", [3, object(), None, ["marginal"]])
def test_invalid_sampler_is_rejected(given: Any) -> None:
    with pytest.raises(ParameterError, match="sampler must be a name"):
        run(given)


def test_generators_belong_to_feature_and_repeat() -> None:
    drawn: dict[tuple[str, int], float] = {}

    def make(X: Any, feature: str, rng: np.random.Generator) -> Any:
        drawn[feature, len([key for key in drawn if key[0] == feature])] = rng.random()
        return column(X, feature)

    run(Sampler(make), features=["x", "count"])
    first = dict(drawn)
    drawn.clear()
    run(Sampler(make), features=["count"], n_repeats=2)
    assert drawn == {key: value for key, value in first.items() if key[0] == "count" and key[1] < 2}
    assert len(set(first.values())) == 6


class Both(Sampler):
    accepts_groups = True


def test_group_of_features_is_a_mapping() -> None:
    def make(X: Any, features: Any, rng: np.random.Generator) -> Any:
        assert features == ["x", "city"]
        order = rng.permutation(len(X))
        return {name: column(X, name)[order] for name in features}

    model = Spy()
    result = run(Both(make), model=model, features=[["x", "city"]])
    assert result.features == ("x + city",)
    pairs = set(zip(FRAME["x"], FRAME["city"], strict=True))
    assert set(zip(model.tables[1]["x"], model.tables[1]["city"], strict=True)) == pairs
    with pytest.raises(SamplerError, match="must yield a mapping"):
        run(Both(lambda X, features, rng: np.zeros(N)), features=[["x", "city"]])
    with pytest.raises(ParameterError, match="accepts_groups = True"):
        run(Sampler(make), features=[["x", "city"]])


def test_sampler_has_one_subgroup_and_an_interval_of_the_rows() -> None:
    result = run(Sampler(shuffled), n_repeats=30)
    assert result.by_subgroup["rule"].tolist() == ["all rows"]
    rows = result.per_row["x"]
    assert result.overall["std_error"][0] <= rows.std() / np.sqrt(N)  # less what is due to few repeats
    assert result.settings["sampler"] == "Sampler"


class Spying:
    """A sampler that notes on which rows it was fitted and which it redrew."""

    def __init__(self) -> None:
        self.fitted: list[set[float]] = []
        self.redrawn: list[tuple[set[float], set[float]]] = []

    def fit(self, X: Any, features: Any) -> Any:
        spy, rows = self, set(column(X, "x"))
        self.fitted.append(rows)

        class Fitted:
            def sample(self, X: Any, feature: Any, rngs: Any) -> Iterator[Any]:
                spy.redrawn.append((rows, set(column(X, "x"))))
                for rng in rngs:
                    yield column(X, feature)[rng.permutation(len(X))]

        return Fitted()


@each_table
def test_cross_fitting_fits_nothing_on_rows_it_is_evaluated_on(table: Any) -> None:
    spy = Spying()
    result = run(spy, table, train=None, features=["x", "count"])
    every = set(FRAME["x"])
    assert len(spy.fitted) == 2
    assert spy.fitted[0] | spy.fitted[1] == every
    assert len(spy.redrawn) == 4
    for fitted, redrawn in spy.redrawn:
        assert not fitted & redrawn
        assert fitted | redrawn == every
    assert result.settings["trained_on"] == "cross-fitted"
    assert result.scores[0].folds == (0, 1)


def test_training_rows_are_what_is_fitted_on() -> None:
    spy = Spying()
    train = FRAME.assign(x=FRAME["x"] + 100)
    result = run(spy, train=train)
    assert spy.fitted == [set(train["x"])]
    assert spy.redrawn == [(set(train["x"]), set(FRAME["x"]))]
    assert result.settings["trained_on"] == "train"


class LearnsNothing(Spying):
    learns = False


def test_sampler_that_learns_nothing_is_not_cross_fitted() -> None:
    spy = LearnsNothing()
    run(spy, train=None)
    assert spy.redrawn == [(set(FRAME["x"]), set(FRAME["x"]))]


def test_sampler_that_yields_one_array_again_and_again_gives_different_draws() -> None:
    class SameArray(Sampler):
        def sample(self, X: Any, feature: Any, rngs: Any) -> Iterator[Any]:
            values = np.empty(len(X))
            for rng in rngs:
                values[:] = self.make(X, feature, rng)
                yield values

    table = read_table(FRAME)
    sampler = SameArray(lambda X, feature, rng: rng.permutation(X[feature]))
    fitted = UserSampler(table.columns, sampler=sampler, X=FRAME)
    first, second = (dict[str, Any](draw) for draw in fitted.resample(table, ("x",), Streams(1, "x", 2)).draws())
    assert not np.array_equal(first["x"], second["x"])
