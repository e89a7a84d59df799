"""From marginal to conditional importance, one column at a time: steps sum up, and predictions are as documented."""

from __future__ import annotations

import gc
import pickle
import weakref
from itertools import permutations
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import subgrove as sg
from subgrove._importance.recompute import stored_inputs
from subgrove.exceptions import InputError, ParameterError, SubgroveWarning

TRAIN, TEST = sg.datasets.bike(split=0.7, random_state=1)
N, M = len(TEST.X), 5
FEATURES = ["temp", "hum", "yr", "weather", "wind"]
GROUPS = sg.find_subgroups(TRAIN.X, features=FEATURES, max_depth=3)
EXACT = 1e-12
COLUMNS = ["column", "importance_before", "importance_after", "step", "share", "std_error", "mc_error"]


def model(X: Any) -> Any:
    temp, hum, wind = (np.asarray(X[name], dtype=float) for name in ("temp", "hum", "wind"))
    return 1900 + 140 * np.minimum(temp, 24) + 1900 * (np.asarray(X["yr"]) == "2012") - 12 * hum - wind * temp


class Counting:
    """A model that counts the rows that it predicts."""

    def __init__(self) -> None:
        self.n_rows = 0
        self.shift = 0.0

    def predict(self, X: Any) -> Any:
        self.n_rows += len(X)
        return model(X) + self.shift


def run(sampler: Any, counting: Any = model, X: Any = TEST.X, y: Any = TEST.y, **options: Any) -> sg.ImportanceResult:
    options = {"features": FEATURES, "loss": "absolute_error", "n_repeats": M, "random_state": 3, **options}
    return sg.importance(counting, X, y, sampler=sampler, **options)


MARGINAL = run("marginal")
IMP = run(GROUPS)
FOREST = sg.samplers.Imputation(n_trees=20)


def sums_up(gap: sg.Gap) -> None:
    """Steps from one end to the other, each where the one before ended."""
    scale = max(abs(gap.marginal), abs(gap.conditional))
    steps = gap.steps
    assert list(steps.columns) == COLUMNS
    assert abs(steps["step"].sum() - (gap.marginal - gap.conditional)) <= EXACT * scale
    if len(steps):
        assert steps["importance_before"].iloc[0] == gap.marginal
        assert steps["importance_after"].iloc[-1] == gap.conditional
        assert (steps["importance_after"].iloc[:-1].to_numpy() == steps["importance_before"].iloc[1:].to_numpy()).all()
        moved = steps["importance_before"] - steps["importance_after"]
        np.testing.assert_allclose(steps["step"], moved, rtol=0, atol=EXACT * scale)


RESULTS: dict[str, tuple[sg.ImportanceResult, sg.ImportanceResult]] = {
    "subgroups": (IMP, MARGINAL),
    "cross-fitted": (run("subgroups"), MARGINAL),
    "training donors": (run(sg.samplers.SubgroupSampler(donors="train", groups=GROUPS), train=TRAIN.X), MARGINAL),
    "another seed": (IMP, run("marginal", random_state=4)),
    "no column given": (IMP, run("cart", train=TRAIN.X, given=[])),
    "some columns given": (run("subgroups", train=TRAIN.X, given={"temp": ["hum", "wind"]}), MARGINAL),
    "two sets": (run("subgroups", train=TRAIN.X, given={"hum": ["temp"], "temp": ["season"]}), MARGINAL),
    "imputation": (run(FOREST, train=TRAIN.X, features=["temp"]), MARGINAL),
    "knockoffs": (run("knockoffs", train=TRAIN.X, features=["temp"]), MARGINAL),
    "auto": (run("auto", train=TRAIN.X, features=["temp", "yr"]), MARGINAL),
    "weights": (run(GROUPS, sample_weight=np.arange(N) % 3), run("marginal", sample_weight=np.arange(N) % 3)),
    "a score": (run(GROUPS, loss="root_mean_squared_error"), run("marginal", loss="root_mean_squared_error")),
}


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("pair", RESULTS.values(), ids=list(RESULTS))
def test_steps_sum_to_the_difference_of_the_two_results(pair: Any, average: bool) -> None:
    imp, marginal = pair
    for feature in imp.features:
        if average and imp in (RESULTS["imputation"][0], RESULTS["auto"][0]):
            continue  # 62 fits; `test_a_sampler_without_trees_is_averaged_too` has fewer
        gap = imp.explain_gap(marginal, feature, average=average)
        sums_up(gap)
        overall = (result.overall.set_index("feature")["estimate"][feature] for result in (imp, marginal))
        assert (gap.conditional, gap.marginal) == tuple(overall)
        assert gap.sentences[0].startswith("Shuffling ")


def test_columns_come_in_the_order_in_which_the_tree_splits_on_them() -> None:
    for feature in FEATURES:
        assert IMP.explain_gap(MARGINAL, feature).columns == GROUPS[feature].conditioning


def test_a_step_ends_at_the_importance_within_the_pruned_tree() -> None:
    """Each importance on the way is what `importance` gives for the tree cut back to the columns so far."""
    from dataclasses import replace

    for feature in ("temp", "hum"):
        gap = IMP.explain_gap(MARGINAL, feature)
        for place, after in enumerate(gap.steps["importance_after"]):
            smaller = GROUPS[feature].restricted_to(gap.columns[: place + 1])
            alone = run(replace(GROUPS, partitions=(smaller,)), features=[feature])
            assert after == pytest.approx(alone.overall["estimate"][0], rel=EXACT)


def test_the_mean_over_orders_is_that_of_each_order_computed_alone() -> None:
    from dataclasses import replace

    feature = "hum"
    columns = GROUPS[feature].conditioning
    assert len(columns) == 3
    known: dict[frozenset[str], float] = {}
    for order in permutations(columns):
        for size in range(len(columns) + 1):
            key = frozenset(order[:size])
            if key not in known:
                groups = replace(GROUPS, partitions=(GROUPS[feature].restricted_to(key),))
                known[key] = run(groups, features=[feature]).overall["estimate"][0]
    total = dict.fromkeys(columns, 0.0)
    orders = list(permutations(columns))
    for order in orders:
        for size, name in enumerate(order):
            total[name] += (known[frozenset(order[:size])] - known[frozenset(order[: size + 1])]) / len(orders)
    gap = IMP.explain_gap(MARGINAL, feature, average=True)
    assert gap.orders == "all orders"
    scale = max(known.values())
    np.testing.assert_allclose(gap.steps["step"], [total[name] for name in gap.columns], atol=1e-11 * scale)


def test_many_columns_are_averaged_over_drawn_orders_that_the_seed_fixes() -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.integers(0, 2, (4000, 8)).astype(float), columns=[f"z{j}" for j in range(8)])
    X["x"] = X.to_numpy() @ (1.6 ** np.arange(8)) + 0.1 * rng.normal(size=4000)
    train, test = X[:3700], X[3700:]
    y = rng.normal(size=300)
    options: dict[str, Any] = {"features": ["x"], "n_repeats": 2, "random_state": 1}
    sampler = sg.samplers.SubgroupSampler(max_depth=8, min_samples_leaf=5, donors="train")
    imp = sg.importance(lambda X: X["x"], test, y, sampler=sampler, train=train, **options)
    marginal = sg.importance(lambda X: X["x"], test, y, sampler="marginal", **options)
    one, two = (imp.explain_gap(marginal, "x", average=True) for _ in range(2))
    assert len(one.columns) > 6
    assert one.orders == "32 orders"
    pd.testing.assert_frame_equal(one.steps, two.steps, check_exact=True)
    sums_up(one)


def test_only_the_sets_between_the_ends_are_predicted() -> None:
    """`n_repeats` redraws of all rows for each set between none and all, and 100 rows to see that it is the same."""
    counting = Counting()
    marginal, imp = run("marginal", counting), run(GROUPS, counting)
    for feature in FEATURES:
        between = max(len(GROUPS[feature].conditioning) - 1, 0)
        counting.n_rows = 0
        gap = imp.explain_gap(marginal, feature)
        if feature in ("temp", "hum", "wind"):  # others have few values, and exact expectations
            assert counting.n_rows == between * M * N + 100 * (between > 0)
        assert gap.n_rows_predicted == counting.n_rows
        predicted = counting.n_rows
        str(gap), repr(gap), gap.steps  # reading predicts nothing
        assert counting.n_rows == predicted


def test_orders_predict_each_pruned_tree_once() -> None:
    counting = Counting()
    marginal, imp = run("marginal", counting), run(GROUPS, counting)
    columns = GROUPS["hum"].conditioning
    trees = set()
    for order in permutations(columns):
        for size in range(len(columns)):
            trees.add(GROUPS["hum"].restricted_to(order[:size]).rules)
    counting.n_rows = 0
    imp.explain_gap(marginal, "hum", average=True)
    assert counting.n_rows == (len(trees) - 1) * M * N + 100


def test_a_sampler_without_trees_is_fitted_again_given_the_strongest_columns_first() -> None:
    counting = Counting()
    marginal, imp = (run(one, counting, train=TRAIN.X, features=["temp"]) for one in ("marginal", FOREST))
    counting.n_rows = 0
    gap = imp.explain_gap(marginal)
    assert gap.kind == "sampler"
    assert gap.columns[0] == "season"
    assert gap.columns[-1] == "the other 5 columns"
    assert len(gap.columns) == 4
    assert counting.n_rows == 3 * M * N + 100
    for place in range(3):
        given = list(gap.columns[: place + 1])
        alone = run(FOREST, train=TRAIN.X, features=["temp"], given=given)
        assert gap.parts[place].end == pytest.approx(alone.overall["estimate"][0], rel=EXACT)


def test_a_sampler_without_trees_is_averaged_too() -> None:
    imp = run(FOREST, train=TRAIN.X, features=["temp"], given=["season", "hum"])
    gap = imp.explain_gap(MARGINAL, "temp", average=True)
    one, two = (run(FOREST, train=TRAIN.X, features=["temp"], given=[name]) for name in gap.columns)
    first, second = (result.overall["estimate"][0] for result in (one, two))
    expected = [
        ((gap.marginal - first) + (second - gap.conditional)) / 2,
        ((gap.marginal - second) + (first - gap.conditional)) / 2,
    ]
    np.testing.assert_allclose(gap.steps["step"], expected, rtol=1e-10)
    assert set(gap.columns) == {"season", "hum"}


def test_a_sampler_without_given_has_one_step() -> None:
    counting = Counting()
    marginal, imp = (run(one, counting, train=TRAIN.X, features=["temp"]) for one in ("marginal", "knockoffs"))
    counting.n_rows = 0
    gap = imp.explain_gap(marginal)
    assert gap.columns == ("the other 8 columns",)
    assert counting.n_rows == 0
    fitted = FOREST.fit(TRAIN.X, ["temp"])
    assert run(fitted, features=["temp"]).explain_gap(MARGINAL, "temp").columns == ("the other 8 columns",)


def test_noise_of_steps_is_that_of_paired_differences() -> None:
    """With one column, the step is the difference of the two results."""
    shallow = run(GROUPS.at_depth(1))
    gap = shallow.explain_gap(MARGINAL, "temp")
    (error,) = gap.steps["std_error"]
    rows = "test rows"
    compared = shallow.with_noise(rows).compare(MARGINAL.with_noise(rows)).set_index("feature").loc["temp"]
    assert error == pytest.approx(compared["std_error"], rel=1e-9)
    assert gap.std_error == error
    assert gap.n_rows_predicted == 0


def test_without_a_split_there_is_no_step_or_one_that_names_the_draws() -> None:
    assert IMP.explain_gap(MARGINAL, "yr").parts == ()
    assert "no split" in str(IMP.explain_gap(MARGINAL, "yr"))
    donors, _ = RESULTS["training donors"]
    gap = donors.explain_gap(MARGINAL, "yr")
    assert gap.columns == ("other draws",)
    assert "only because donors were other rows" in str(gap)
    alone = TEST.X[["temp"]]
    one = [
        sg.importance(lambda X: X["temp"], alone, TEST.y, sampler=each, random_state=1) for each in (FOREST, "marginal")
    ]
    assert "There is no other column" in str(one[0].explain_gap(one[1]))


def test_losses_are_separate() -> None:
    losses = ["squared_error", "absolute_error"]
    imp, marginal = run(GROUPS, loss=losses), run("marginal", loss=losses)
    expected = IMP.explain_gap(MARGINAL, "temp").steps
    for gap in (
        imp.explain_gap(marginal, "temp", loss="absolute_error"),
        imp.for_loss("absolute_error").explain_gap(marginal, "temp"),
    ):
        assert gap.loss == "absolute_error"
        pd.testing.assert_frame_equal(gap.steps, expected, rtol=1e-12)
    assert imp.explain_gap(marginal, "temp").loss == "squared_error"
    with pytest.raises(ParameterError, match="loss='poisson' is not among the losses"):
        imp.explain_gap(marginal, "temp", loss="poisson")
    with pytest.raises(ParameterError, match="marginal has no loss 'squared_error'"):
        imp.explain_gap(MARGINAL, "temp")


def test_groups_of_features_have_gaps() -> None:
    group = [["temp", "hum"]]
    imp, marginal = (run(one, train=TRAIN.X, features=group) for one in ("subgroups", "marginal"))
    for counting in (None, "temp + hum", ["hum", "temp"]):
        gap = imp.explain_gap(marginal, counting)
        assert gap.feature == "temp + hum"
        sums_up(gap)
    assert gap.columns


def test_tables_come_in_the_container_of_the_user() -> None:
    table = pl.from_pandas(TEST.X)
    imp, marginal = (run(one, X=table, y=TEST.y.to_numpy(), features=["temp"]) for one in (GROUPS, "marginal"))
    steps = imp.explain_gap(marginal).steps
    assert isinstance(steps, pl.DataFrame)
    expected = IMP.explain_gap(MARGINAL, "temp").steps
    assert steps["step"].to_list() == expected["step"].tolist()


def test_a_result_that_was_loaded_or_pickled_needs_its_inputs(tmp_path: Any) -> None:
    IMP.save(tmp_path / "imp.json")
    loaded = sg.ImportanceResult.load(tmp_path / "imp.json")
    for other in (loaded, pickle.loads(pickle.dumps(IMP))):
        with pytest.raises(ParameterError, match="explain_gap needs the model and the rows"):
            other.explain_gap(MARGINAL, "temp")
    assert IMP.explain_gap(MARGINAL, "temp").parts  # pickling took nothing away
    shallow = pickle.loads(pickle.dumps(run(GROUPS.at_depth(1))))
    assert shallow.explain_gap(MARGINAL, "temp").columns == ("season",)  # one column needs no more than the two ends


def test_pickled_results_hold_neither_model_nor_rows() -> None:
    small = len(pickle.dumps(run("marginal", features=["temp"])))
    more = pd.DataFrame(0.0, index=TEST.X.index, columns=[f"more{j}" for j in range(200)])
    many = pd.concat([TEST.X, more], axis=1)
    large = run("marginal", X=many, features=["temp"])
    assert len(pickle.dumps(large)) < 2 * small
    pickle.dumps(run("marginal", lambda X: model(X), features=["temp"]))  # a lambda cannot be pickled


def test_a_result_holds_no_forest_and_no_copy_of_the_rows() -> None:
    """Forests of all features may take gigabytes; a gap fits the ones that it needs again."""
    alive: list[Any] = []

    class Watched(sg.samplers.Imputation):
        def fit(self, X: Any, features: Any = None) -> Any:
            fitted = super().fit(X, features)
            alive.append(weakref.ref(fitted))
            return fitted

    imp = run(Watched(n_trees=5), train=TRAIN.X, features=["temp", "hum"])
    gc.collect()
    assert [one() for one in alive] == [None]
    assert imp.explain_gap(MARGINAL, "temp").parts
    assert stored_inputs(imp._source, "a test").rows is TEST.X


def test_model_that_changed_is_warned_of() -> None:
    counting = Counting()
    marginal, imp = run("marginal", counting), run(GROUPS, counting)
    counting.shift = 500.0
    with pytest.warns(SubgroveWarning, match="does not return the predictions"):
        imp.explain_gap(marginal, "temp")


def test_rows_that_changed_are_rejected() -> None:
    X = TEST.X.copy()
    marginal, imp = run("marginal", X=X), run(GROUPS, X=X)
    X.loc[X.index[0], "hum"] = 99.5
    with pytest.raises(InputError, match="X was changed after the importance was computed"):
        imp.explain_gap(marginal, "temp")


def another_model(X: Any) -> Any:
    return 2 * model(X)


@pytest.mark.parametrize(
    ("imp", "marginal", "feature", "message"),
    [
        (IMP, 3, "temp", "marginal must be an ImportanceResult"),
        (IMP, IMP, "temp", "marginal was computed with sampler 'subgroups'"),
        (MARGINAL, MARGINAL, "temp", "This result is of sampler 'marginal', which does not condition on other columns"),
        (IMP, MARGINAL, "nope", "feature='nope' is not among the features of this result"),
        (IMP, MARGINAL, None, "feature=None is not among the features"),
        (IMP, run("marginal", features=["yr"]), "temp", "marginal has no feature 'temp'; it has yr"),
        (IMP, run("marginal", another_model), "temp", "The two results are of different models"),
        (IMP, run("marginal", X=TEST.X[:200], y=TEST.y[:200]), "temp", "different rows or weights"),
        (IMP, run("marginal", sample_weight=np.arange(N) % 2 + 1), "temp", "different rows or weights"),
    ],
)
def test_what_cannot_be_compared_is_rejected(imp: Any, marginal: Any, feature: Any, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        imp.explain_gap(marginal, feature)


def test_gaps_are_frozen_and_picklable() -> None:
    gap = IMP.explain_gap(MARGINAL, "temp")
    assert pickle.loads(pickle.dumps(gap)) == gap
    with pytest.raises(AttributeError):
        gap.marginal = 0.0  # type: ignore[misc]  # that is what is tried
