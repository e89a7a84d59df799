"""What every sampler must do, whatever its method: one list of checks for all of them."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from dataclasses import FrozenInstanceError, dataclass
from datetime import datetime, timedelta
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import RandomForestRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder

from subgrove._core.execution import Streams
from subgrove._data.replace_columns import Donors
from subgrove._data.table import read_table
from subgrove.exceptions import InputError, ParameterError
from subgrove.samplers.auto import Auto
from subgrove.samplers.base import FittedSampler, Sampler
from subgrove.samplers.forest_nodes import ForestNodes
from subgrove.samplers.imputation import Imputation
from subgrove.samplers.intervals import Intervals
from subgrove.samplers.knockoffs import Knockoffs
from subgrove.samplers.marginal import Marginal
from subgrove.samplers.shifted_subgroups import ShiftedSubgroups
from subgrove.samplers.subgroups import SubgroupSampler
from subgrove.samplers.unchanged import Unchanged

N_TRAIN, N_TEST = 240, 120
SIZES = ["s", "m", "l", "xl"]
NUMBERS = ["temp", "count", "day"]
KINDS = {
    "temp": "numeric",
    "count": "numeric",
    "day": "numeric",
    "flag": "nominal",
    "season": "nominal",
    "size": "ordered",
}


def mixed(n: int, seed: int) -> pd.DataFrame:
    """One column of each kind, all of them depending on each other."""
    rng = np.random.default_rng(seed)
    temp = rng.normal(15, 8, n).round(2)
    warm = (temp + rng.normal(0, 4, n)) / 10
    return pd.DataFrame(
        {
            "temp": temp,
            "count": rng.poisson(np.exp(np.clip(warm, -1, 3))),
            "flag": rng.random(n) < 1 / (1 + np.exp(-warm)),
            "season": np.array(["FALL", "SPRING", "SUMMER"])[np.clip(np.round(warm), 0, 2).astype(int)],
            "size": pd.Categorical(np.array(SIZES)[np.clip(np.round(warm), 0, 3).astype(int)], SIZES, ordered=True),
            "day": [datetime(2020, 1, 1) + timedelta(days=float(day)) for day in (100 * warm).round()],
        }
    ).astype({"day": "datetime64[us]"})


TRAIN, TEST = mixed(N_TRAIN, 0), mixed(N_TEST, 1)
Y = (TRAIN["temp"] + TRAIN["count"] + 5 * TRAIN["flag"]).rename("y")


@cache
def forest() -> Any:
    """A pipeline that ends in a forest, fitted on some of the columns."""
    steps = ColumnTransformer([("o", OrdinalEncoder(), ["season", "flag"]), ("n", "passthrough", ["temp", "count"])])
    model = RandomForestRegressor(3, min_samples_leaf=20, max_features=1, random_state=0)
    return make_pipeline(steps, model).fit(TRAIN, Y)


@dataclass(frozen=True)
class Case:
    """A sampler; `floats` says whether whole numbers become floats."""

    make: Callable[[], Sampler]
    floats: bool = False

    @property
    def features(self) -> list[str]:
        return [name for name, kind in KINDS.items() if kind in self.make().feature_kinds]


CASES = {
    "unchanged": Case(Unchanged),
    "marginal": Case(Marginal),
    "marginal with fixed points": Case(lambda: Marginal(fixed_points=True)),
    "subgroups": Case(lambda: SubgroupSampler(max_depth=2)),
    "subgroups with donors of train": Case(lambda: SubgroupSampler(max_depth=2, donors="train")),
    "cart": Case(lambda: SubgroupSampler(tree="cart")),
    "cart with donors of train": Case(lambda: SubgroupSampler(tree="cart", donors="train")),
    "intervals": Case(lambda: Intervals(5)),
    "knockoffs": Case(Knockoffs, floats=True),
    "equal knockoffs": Case(lambda: Knockoffs("equi"), floats=True),
    "imputation": Case(lambda: Imputation(n_trees=15), floats=True),
    "imputation with residuals of train": Case(lambda: Imputation(n_trees=15, residuals="train"), floats=True),
    "imputation with residuals of test": Case(lambda: Imputation(n_trees=15, residuals="test"), floats=True),
    "forest nodes": Case(lambda: ForestNodes(forest())),
    "forest nodes in place of a grid": Case(lambda: ForestNodes(forest(), partition="nodes", association="train")),
    "target leaves": Case(lambda: ForestNodes(target=Y)),
    "shifted subgroups": Case(ShiftedSubgroups),
    "shifted subgroups in small leaves": Case(
        lambda: ShiftedSubgroups(max_depth=3, min_samples_leaf=10, residual_retention=0.3)
    ),
    "auto": Case(Auto),
    "auto with small leaves": Case(lambda: Auto(min_samples_leaf=7, alpha=0.5)),
}
each = pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())


@cache
def _fitted(case: Case) -> FittedSampler:
    return case.make().fit(TRAIN, case.features)


def draws(fitted: FittedSampler, X: Any, feature: str, n_repeats: int = 3, seed: int = 0) -> list[list[Any]]:
    """Plain values, a list for each repeat."""
    return [values(column) for column in fitted.sample(X, feature, Streams(seed, feature, n_repeats))]


def values(column: Any) -> list[Any]:
    if hasattr(column, "to_pylist"):
        return list(column.to_pylist())
    return list(column.tolist() if hasattr(column, "tolist") else column.to_list())


def all_draws(case: Case, fitted: FittedSampler, X: Any, **settings: int) -> Iterator[tuple[str, list[list[Any]]]]:
    for feature in case.features:
        yield feature, draws(fitted, X, feature, **settings)


@each
def test_same_seed_gives_the_same_draws(case: Case) -> None:
    again = case.make().fit(TRAIN, case.features)
    for feature, found in all_draws(case, _fitted(case), TEST):
        assert found == draws(_fitted(case), TEST, feature)
        assert found == draws(again, TEST, feature)


@each
def test_another_seed_gives_other_draws(case: Case) -> None:
    if case is CASES["unchanged"]:
        pytest.skip("it has no draws")
    # Of a column with many values: within a subgroup, others may have one value only.
    assert draws(_fitted(case), TEST, "temp") != draws(_fitted(case), TEST, "temp", seed=1)


@each
def test_order_and_subset_of_features_change_nothing(case: Case) -> None:
    turned = case.make().fit(TRAIN, case.features[::-1])
    for feature, found in all_draws(case, _fitted(case), TEST):
        assert found == draws(turned, TEST, feature)
        assert found == draws(case.make().fit(TRAIN, [feature]), TEST, feature)


@each
def test_more_repeats_go_on_where_fewer_ended(case: Case) -> None:
    for feature, found in all_draws(case, _fitted(case), TEST, n_repeats=7):
        assert found[:2] == draws(_fitted(case), TEST, feature, n_repeats=2)


@each
def test_fit_leaves_the_constructor_as_it_was(case: Case) -> None:
    method = case.make()
    before = method.get_params()
    shown = repr(method)
    fitted = method.fit(TRAIN, case.features)
    after = method.get_params()
    assert list(after) == list(before)
    assert all(after[name] is before[name] for name in before)
    assert repr(method) == shown
    assert not isinstance(fitted, Sampler)


@each
def test_constructor_gives_back_what_it_was_given(case: Case) -> None:
    params = case.make().get_params()
    copy = type(case.make())(**params)
    assert all(copy.get_params()[name] is value for name, value in params.items())


@each
def test_fitted_is_frozen(case: Case) -> None:
    with pytest.raises(FrozenInstanceError):
        _fitted(case).columns = ()  # type: ignore[misc]


@each
def test_pickled_and_back_draws_the_same(case: Case) -> None:
    method = pickle.loads(pickle.dumps(case.make()))
    assert type(method) is type(case.make())
    copy = pickle.loads(pickle.dumps(_fitted(case)))
    for feature, found in all_draws(case, _fitted(case), TEST):
        assert found == draws(copy, TEST, feature)


@each
def test_tables_are_left_as_they_were(case: Case) -> None:
    train, test = TRAIN.copy(deep=True), TEST.copy(deep=True)
    fitted = case.make().fit(train, case.features)
    list(all_draws(case, fitted, test))
    pd.testing.assert_frame_equal(train, TRAIN)
    pd.testing.assert_frame_equal(test, TEST)


def in_polars(X: pd.DataFrame) -> pl.DataFrame:
    columns = {name: X[name].tolist() for name in X.columns}
    return pl.DataFrame(columns, schema_overrides={"size": pl.Enum(SIZES)})


def in_pyarrow(X: pd.DataFrame) -> pa.Table:
    size = pa.DictionaryArray.from_arrays(pa.array(X["size"].cat.codes), pa.array(SIZES), ordered=True)
    columns = {name: pa.array(X[name].tolist()) for name in X.columns}
    return pa.table({**columns, "size": size})


@pytest.mark.parametrize("container", [in_polars, in_pyarrow])
@each
def test_containers_give_the_same_values(case: Case, container: Callable[[pd.DataFrame], Any]) -> None:
    fitted = case.make().fit(container(TRAIN), case.features)
    for feature, found in all_draws(case, _fitted(case), TEST):
        assert draws(fitted, container(TEST), feature) == found


@each
def test_fitted_on_one_container_resamples_another(case: Case) -> None:
    for feature, found in all_draws(case, _fitted(case), TEST):
        assert draws(_fitted(case), in_polars(TEST), feature) == found


@pytest.mark.parametrize("order", ["C", "F"])
@each
def test_arrays_give_what_frames_do(case: Case, order: Any) -> None:
    method = case.make()
    if isinstance(method, ForestNodes) and method.forest is not None:
        method = ForestNodes(RandomForestRegressor(3, random_state=0).fit(TRAIN[["temp", "count"]].to_numpy(), Y))
    names = {"temp": "x0", "count": "x1"}
    train, test = (X[list(names)].astype(float).rename(columns=names) for X in (TRAIN, TEST))
    framed, plain = method.fit(train), method.fit(np.asarray(train, order=order))
    for feature in names.values():
        assert draws(plain, np.asarray(test, order=order), feature) == draws(framed, test, feature)


@each
def test_resampled_column_keeps_its_dtype(case: Case) -> None:
    for feature in case.features:
        for column in _fitted(case).sample(TEST, feature, Streams(0, feature, 2)):
            expected = np.dtype(float) if feature == "count" and case.floats else TEST[feature].dtype
            assert pd.Series(column).dtype == expected
            assert len(column) == N_TEST


@each
def test_kinds_that_are_not_taken_raise_an_error_by_name(case: Case) -> None:
    method = case.make()
    for feature in set(KINDS) - set(case.features):
        with pytest.raises(ParameterError) as error:
            method.fit(TRAIN, [feature])
        assert repr(method.name) in str(error.value)
        assert repr(feature) in str(error.value)


@each
def test_column_that_training_does_not_have_raises_an_error(case: Case) -> None:
    with pytest.raises(ParameterError, match="'wind'"):
        case.make().fit(TRAIN, ["wind"])


@each
def test_rows_with_other_columns_raise_an_error(case: Case) -> None:
    with pytest.raises(InputError, match="'temp'"):
        next(_fitted(case).sample(TEST.drop(columns="temp"), case.features[-1], 1))


@each
def test_order_of_columns_and_more_of_them_change_nothing(case: Case) -> None:
    turned = TEST[TEST.columns[::-1]].assign(more=1.0)
    for feature, found in all_draws(case, _fitted(case), TEST):
        assert draws(_fitted(case), turned, feature) == found


@each
def test_single_row_is_resampled(case: Case) -> None:
    for _, found in all_draws(case, _fitted(case), TEST.head(1)):
        assert [len(column) for column in found] == [1, 1, 1]


HOLED = ("count", "season", "size", "day")


def holed(X: pd.DataFrame) -> pd.DataFrame:
    X = X.astype({"count": float, "flag": object})
    for at, name in enumerate(HOLED):
        X.loc[X.index[at::9], name] = None
    return X


@each
def test_missing_values_are_taken_or_rejected_by_name(case: Case) -> None:
    method = case.make()
    train, test = holed(TRAIN), holed(TEST)
    if isinstance(method, ForestNodes) and method.forest is not None:
        pytest.skip("whether the user's forest takes missing values is its own affair")
    for feature in case.features:
        if method.accepts_missing:
            for column in draws(method.fit(train, [feature]), test, feature):
                assert len(column) == N_TEST
        elif feature in HOLED or isinstance(method, Knockoffs):
            with pytest.raises(ParameterError) as error:
                method.fit(train, [feature])
            assert repr(method.name) in str(error.value)
            with pytest.raises(ParameterError) as error:
                draws(method.fit(TRAIN, [feature]), test, feature)
            assert repr(method.name) in str(error.value)


@each
def test_groups_are_resampled_jointly_or_rejected_by_name(case: Case) -> None:
    method, group = case.make(), case.features[:2]
    if not method.accepts_groups or getattr(method, "tree", None) == "cart":
        with pytest.raises(ParameterError, match=f"({method.name!r} resamples|'cart' takes) one feature at a time"):
            method.fit(TRAIN, [group])
        return
    fitted = method.fit(TRAIN, [group])
    resampled = fitted.resample(fitted.read(TEST), tuple(group), Streams(0, " + ".join(group), 2))
    for changes in resampled.draws():
        assert set(changes) == set(group)


@pytest.mark.parametrize("weighted", [False, True])
@each
def test_draws_can_be_repeated(case: Case, weighted: bool) -> None:
    weights = np.arange(1.0, N_TEST + 1) if weighted else None
    fitted = _fitted(case)
    for feature in case.features:
        resampled = fitted.resample(fitted.read(TEST), (feature,), Streams(0, feature, 2), weights=weights)
        first, second = (
            [np.asarray(getattr(changes[feature], "rows", changes[feature])).tolist() for changes in resampled.draws()]
            for _ in range(2)
        )
        assert first == second
        assert [len(column) for column in first] == [N_TEST, N_TEST]


@pytest.mark.parametrize("feature", ["count", "flag", "season", "size"])
@each
def test_exact_expectation_is_that_of_the_draws(case: Case, feature: str) -> None:
    if feature not in case.features:
        pytest.skip("not a kind that this sampler takes")
    n_repeats = 300
    fitted = _fitted(case)
    resampled = fitted.resample(fitted.read(TEST), (feature,), Streams(0, feature, n_repeats))
    if resampled.exact is None:
        pytest.skip("this sampler draws")
    changed = np.zeros(N_TEST)
    for step in resampled.exact.terms():
        changed[step.rows] += step.weights
    own = TEST[feature].tolist()
    drawn = np.array(
        [
            [one != two for one, two in zip(column, own, strict=True)]
            for column in draws(fitted, TEST, feature, n_repeats)
        ]
    )
    # Shares of 300 draws have a standard deviation of at most 0.5 / sqrt(300) = 0.029 in each of 120 rows.
    assert drawn.mean(axis=0)[resampled.exact.rows] == pytest.approx(changed[resampled.exact.rows], abs=5 * 0.029)
    # Over rows they average out; rows of a subgroup are drawn together, which the factor allows for.
    assert drawn[:, resampled.exact.rows].mean() == pytest.approx(
        changed[resampled.exact.rows].mean(), abs=5 * 0.029 / 3
    )


@each
def test_groups_of_rows_and_population_belong_together(case: Case) -> None:
    fitted = _fitted(case)
    for feature in case.features:
        resampled = fitted.resample(read_table(TEST), (feature,), Streams(0, feature, 2))
        assert resampled.groups.code.shape == (N_TEST,)
        assert resampled.groups.code.max() < len(resampled.groups)
        assert resampled.population.shape in {(len(resampled.groups),), (1,)}


@each
def test_no_row_receives_the_value_of_another_row_of_its_cluster(case: Case) -> None:
    """Where values come from other rows of the table; a sampler with fixed points may even keep a row's own value."""
    fitted, clusters = _fitted(case), np.random.default_rng(1).integers(0, 30, N_TEST)
    table = read_table(TEST).with_clusters(clusters)
    for feature in case.features:
        resampled = fitted.resample(table, (feature,), Streams(0, feature, 3))
        if getattr(fitted, "fixed_points", False) or isinstance(case.make(), Unchanged):
            continue
        for changes in resampled.draws():
            column = changes[feature]
            if isinstance(column, Donors) and not column.train:
                moved = column.rows != np.arange(N_TEST)  # a cell of one cluster keeps its values
                assert (clusters[column.rows] != clusters)[moved].all()
                assert moved.mean() > 0.5
