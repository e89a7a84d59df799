"""What the paper proves of cs-PFI, and closed forms: Theorem 1, Appendix A, 2 beta^2 Var(x | rest), balanced redraws.

The sample is one of columns: a table of 100 and more i.i.d. columns, a model that sums them, and a target from
which it differs by noise. The increase of column j is (r_i + b (x_ij - x_dj))^2 - r_i^2, whose expectation does not
depend on the residuals r; so the estimates of the columns are as good as estimates of independent samples.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest

import subgrove as sg
from subgrove._core.execution import Streams
from subgrove._data.table import read_table

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.intp]
BETA = 1.5


def partition(X: Floats, n_groups: int, features: list[str] | None = None) -> sg.Subgroups:
    """Subgroups by the last column, which holds the number of the group; whatever the other columns are."""
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(n_groups), 40)
    train = np.column_stack([10.0 * group + rng.normal(size=len(group)), group])
    name = f"x{X.shape[1] - 1}"
    found = sg.find_subgroups(train, features=["x0"], max_depth=12, min_samples_leaf=20)["x0"]
    assert len(found) == n_groups
    split_on = tuple(replace(column, name=name) if column.name == "x1" else column for column in found.tree.columns)
    nodes = tuple(
        node if node.split is None else replace(node, split=replace(node.split, column=name))
        for node in found.tree.nodes
    )
    tree = replace(found.tree, columns=split_on, nodes=nodes)
    names = features or [f"x{j}" for j in range(X.shape[1] - 1)]
    parameters = {"tree": "transformation", "max_depth": 12, "kinds": None}
    partitions = tuple(sg.Partition((feature,), tree) for feature in names)
    return sg.Subgroups(partitions, read_table(X).columns, "of other rows", parameters)


def grouped_columns(rng: np.random.Generator, sizes: list[int], n_columns: int, centre: float) -> Floats:
    """Columns N(centre * group, 1), all in the same groups; the last column is the number of the group."""
    group = rng.permutation(np.repeat(np.arange(len(sizes)), sizes)).astype(np.float64)
    return np.column_stack([centre * group[:, None] + rng.normal(size=(len(group), n_columns)), group])


def summed(X: Floats) -> Any:
    return BETA * X[:, :-1].sum(axis=1)


def with_noise(rng: np.random.Generator, X: Floats) -> Any:
    return summed(X) + rng.normal(size=len(X))


def estimates(X: Floats, y: Floats, sampler: Any, **options: Any) -> sg.ImportanceResult:
    features = [f"x{j}" for j in range(X.shape[1] - 1)]
    arguments = {"n_repeats": 1, "random_state": 1, "check_fidelity": False, **options}
    return sg.importance(summed, X, y, sampler=sampler, features=features, **{"loss": "squared_error", **arguments})


def in_samples(rng: np.random.Generator, sizes: list[int], n_tables: int, n_repeats: int = 1) -> tuple[Any, Any]:
    """Marginal estimates, and those by subgroup, of tables of 100 independent columns in groups of these sizes."""
    marginal, by_group = [], []
    for _ in range(n_tables):
        X = grouped_columns(rng, sizes, 100, centre=0.0)
        y = with_noise(rng, X)
        marginal.append(estimates(X, y, "marginal", n_repeats=n_repeats).overall["estimate"])
        by_group.append(estimates(X, y, partition(X, len(sizes)), n_repeats=n_repeats).by_subgroup)
    return pd.concat(marginal), pd.concat(by_group)


def test_theorem_1_subgroups_have_the_expectation_of_the_marginal_importance() -> None:
    """Independent features, arbitrary groups of 4, 16 and 40 rows: every subgroup is unbiased, also the small one."""
    rng = np.random.default_rng(11)
    sizes = [4, 16, 40]
    marginal, by_group = in_samples(rng, sizes, 6)
    for k, size in enumerate(sizes):
        part = by_group[by_group["subgroup"] == k]
        assert (part["n"] == size).all()
        off = part["estimate"].to_numpy() - marginal.to_numpy()
        # 600 columns: four standard errors of the mean difference.
        assert abs(off.mean()) < 4 * off.std(ddof=1) / np.sqrt(600)
        assert abs(part["estimate"].mean() - 2 * BETA**2) < 4 * part["estimate"].std() / np.sqrt(600)


@pytest.mark.parametrize("n_repeats", [1, pytest.param(20, marks=pytest.mark.slow)])
def test_theorem_1_variance_of_a_subgroup_is_n_over_n_k_as_large(n_repeats: int) -> None:
    """Groups of 60 and 240 of 300 rows, chosen at random: factors 5 and 1.25."""
    rng = np.random.default_rng(12)
    sizes = [60, 240]
    marginal, by_group = in_samples(rng, sizes, 4, n_repeats)
    for k, size in enumerate(sizes):
        ratio = by_group.loc[by_group["subgroup"] == k, "estimate"].var() / marginal.var()
        # Two variances of 400 values each: log ratio has sd sqrt(2 * 2 / 399) = 0.10 at most; four of these.
        assert abs(np.log(ratio / (300 / size))) < 0.4


def weights_of(rng: np.random.Generator, n: int, kind: str) -> Any:
    if kind == "none":
        return None
    return rng.integers(1, 5, n).astype(float) if kind == "whole" else rng.uniform(0.1, 3.0, n)


@pytest.mark.parametrize("kind", ["none", "whole", "fractions"])
@pytest.mark.parametrize("loss", ["squared_error", "absolute_error"])
def test_appendix_a_overall_is_the_weighted_mean_of_subgroups(kind: str, loss: str) -> None:
    rng = np.random.default_rng(3)
    X = grouped_columns(rng, [3, 17, 60, 120], 4, centre=1.0)
    X[:, 1] = np.round(X[:, 1])  # few values: exact in some subgroups, drawn in others
    y = with_noise(rng, X)
    weights = weights_of(rng, len(X), kind)
    result = estimates(X, y, partition(X, 4), n_repeats=7, sample_weight=weights, loss=loss)
    overall = result.overall.set_index("feature")["estimate"]
    counted = np.ones(len(X)) if weights is None else weights
    for score in result.scores:
        block = result.by_subgroup.query(f"feature == '{score.title}'")
        mean = float((block["estimate"] * block["n"]).sum() / block["n"].sum())
        assert overall[score.title] == pytest.approx(mean, rel=1e-12)
        per_row = result.per_row[score.title].to_numpy()
        assert overall[score.title] == pytest.approx(float(per_row @ counted / counted.sum()), rel=1e-11)
        each = (score.repeats[0] * score.sizes).sum(axis=1) / score.sizes.sum()
        np.testing.assert_allclose(score.overall[0], each, rtol=1e-12)


@pytest.mark.parametrize("size", [2, 5, 10, 30])
def test_linear_model_with_gaussian_features_has_2_beta_squared_conditional_variance(size: int) -> None:
    """Subgroups of exactly 2, 5, 10, 30 test rows; x | rest ~ N(3 group, 1), so the importance is 2 beta^2."""
    rng = np.random.default_rng(size)
    columns = 200
    X = grouped_columns(rng, [size] * 8, columns, centre=3.0)
    y = with_noise(rng, X)
    found = estimates(X, y, partition(X, 8)).overall["estimate"]
    # Four standard errors of the mean over 200 columns; the marginal importance is tens of times as large.
    assert abs(found.mean() - 2 * BETA**2) < 4 * found.std() / np.sqrt(columns)
    assert estimates(X, y, "marginal").overall["estimate"].mean() > 20 * BETA**2


@pytest.mark.parametrize("size", [2, 5, 10, 30])
def test_fixed_points_take_one_part_in_n_k_off(size: int) -> None:
    """Each repeat alone has the bias, so one repeat and many columns show it."""
    rng = np.random.default_rng(100 + size)
    columns = 250
    X = grouped_columns(rng, [size] * 4, columns, centre=3.0)
    y = with_noise(rng, X)
    groups = partition(X, 4)
    shuffled = estimates(X, y, sg.samplers.SubgroupSampler(groups=groups, fixed_points=True), n_repeats=2).overall[
        "estimate"
    ]
    expected = 2 * BETA**2 * (size - 1) / size
    margin = 4 * shuffled.std() / np.sqrt(columns)
    assert abs(shuffled.mean() - expected) < margin
    if size <= 5:  # there the margin separates the two
        assert expected + margin < 2 * BETA**2
    ours = estimates(X, y, groups, n_repeats=2).overall["estimate"]
    assert abs(ours.mean() - 2 * BETA**2) < 4 * ours.std() / np.sqrt(columns)


def test_fixed_points_of_the_marginal_redraw_take_one_part_in_n_off() -> None:
    rng = np.random.default_rng(5)
    X = np.column_stack([rng.normal(size=(6, 500)), np.zeros(6)])
    y = with_noise(rng, X)
    found = estimates(X, y, sg.samplers.Marginal(fixed_points=True)).overall["estimate"]
    assert abs(found.mean() - 2 * BETA**2 * 5 / 6) < 4 * found.std() / np.sqrt(500)


def brute_force(X: Floats, y: Floats, code: Ints, place: list[int], weights: Ints) -> Floats:
    """Mean increase of each row over all other rows of its subgroup; a row of weight w is w rows."""
    means = np.zeros(len(X))
    for i in range(len(X)):
        total, count = 0.0, 0
        for j in np.flatnonzero(code == code[i]):
            times = int(weights[j]) - (1 if i == j else 0)
            changed = X[i : i + 1].copy()
            changed[0, place] = X[j, place]
            total += times * float((y[i] - curved(changed)[0]) ** 2 - (y[i] - curved(X[i : i + 1])[0]) ** 2)
            count += times
        means[i] = total / count if count else 0.0
    return means


def curved(X: Floats) -> Floats:
    return np.asarray(X[:, 0] * X[:, 1] + X[:, 1] ** 2)


def small_table(rng: np.random.Generator) -> Floats:
    group = np.repeat([0, 1, 2], [4, 9, 14])
    return np.column_stack([rng.integers(0, 3, 27), rng.normal(size=27), group]).astype(float)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("place", [[0], [1], [0, 1]], ids=["few values", "many values", "two columns together"])
def test_exact_expectation_is_the_average_over_all_other_rows(place: list[int], weighted: bool) -> None:
    rng = np.random.default_rng(7)
    X = small_table(rng)
    y = rng.normal(size=27)
    weights = rng.integers(1, 4, 27) if weighted else np.ones(27, dtype=int)
    names = [f"x{j}" for j in place]
    groups = partition(X, 3, [names[0]])
    groups = replace(groups, partitions=(replace(groups.partitions[0], members=tuple(names)),))
    for sampler, code in ((groups, X[:, 2].astype(int)), ("marginal", np.zeros(27, dtype=int))):
        result = sg.importance(
            curved,
            X,
            y,
            sampler=sampler,
            features=[names],
            n_repeats=26,
            sample_weight=sg.FrequencyWeights(weights) if weighted else None,
            random_state=0,
            loss="squared_error",
        )
        expected = brute_force(X, y, code, place, weights)
        np.testing.assert_allclose(result.per_row.iloc[:, 0], expected, rtol=1e-9, atol=1e-12)
        row = result.overall.iloc[0]
        assert row["estimate"] == pytest.approx(float(expected @ weights / weights.sum()), rel=1e-10)
        assert row["mc_error"] == 0
        assert result.scores[0].n_exact == 27


def test_drawn_repeats_are_the_exact_expectation_once_every_donor_has_served() -> None:
    """A score needs whole redrawn columns, so nothing is exact: n - 1 balanced repeats still give the same number."""
    rng = np.random.default_rng(8)
    X = np.column_stack([rng.normal(size=(11, 2)), np.zeros(11)])
    y = rng.normal(size=11)
    drawn = sg.importance(
        curved,
        X,
        y,
        sampler="marginal",
        loss=["squared_error", "root_mean_squared_error"],
        n_repeats=10,
        random_state=1,
    ).for_loss("squared_error")
    exact = sg.importance(curved, X, y, sampler="marginal", n_repeats=10, random_state=2, loss="squared_error")
    assert [score.n_exact for score in drawn.scores] == [0, 0, 0]
    assert [score.n_exact for score in exact.scores] == [11, 11, 11]
    np.testing.assert_allclose(drawn.overall["estimate"], exact.overall["estimate"], rtol=1e-10, atol=1e-12)
    assert (drawn.overall["mc_error"] < 1e-12).all()


def donors(sampler: Any, X: Floats, n_repeats: int, seed: int = 3) -> Ints:
    """Donors of each row and repeat: the redrawn column holds row numbers."""
    columns = sampler.sample(X, "x0", Streams(seed, "x0", n_repeats))
    return np.array([np.asarray(column) for column in columns]).astype(int)


def test_balanced_redraws_use_every_donor_once_before_any_twice() -> None:
    sizes = [3, 5, 9]
    code = np.random.default_rng(0).permutation(np.repeat([0, 1, 2], sizes))
    X = np.column_stack([np.arange(17.0), code])
    fitted = sg.samplers.SubgroupSampler(groups=partition(X, 3)).fit(None, ["x0"])
    drawn = donors(fitted, X, 24)
    assert (code[drawn] == code).all()
    assert (drawn != np.arange(17)).all()
    for k, size in enumerate(sizes):
        for row in np.flatnonzero(code == k):
            others = sorted(set(np.flatnonzero(code == k)) - {row})
            for start in range(0, 24 - (size - 2), size - 1):
                assert sorted(drawn[start : start + size - 1, row].tolist()) == others
    assert (np.sort(drawn, axis=1) == np.arange(17)).all()  # every row gives its value to one row


def test_donors_of_few_repeats_do_not_recur() -> None:
    X = np.column_stack([np.arange(40.0), np.zeros(40)])
    drawn = donors(sg.samplers.Marginal().fit(X), X, 25)
    assert all(len(set(column)) == 25 for column in drawn.T.tolist())


@pytest.mark.parametrize("n_test", [[4, 9], [30, 2]])
def test_training_donors_recur_only_after_the_whole_leaf_has_served(n_test: list[int]) -> None:
    pools = [7, 12]
    train = np.column_stack([np.arange(19.0), np.repeat([0, 1], pools)])
    X = np.column_stack([np.full(sum(n_test), 100.0), np.repeat([0, 1], n_test)])
    fitted = sg.samplers.SubgroupSampler(groups=partition(train, 2), donors="train").fit(train, ["x0"])
    drawn = donors(fitted, X, 12)
    for row, k in enumerate(X[:, 1].astype(int)):
        pool = np.flatnonzero(train[:, 1] == k).tolist()
        assert sorted(drawn[: len(pool), row].tolist()) == pool
        assert len(set(drawn[:5, row].tolist())) == 5
    # Within a repeat the donors are spread over the leaf: none serves more than one row more often than another.
    for k, size in enumerate(n_test):
        for repeat in drawn[:, X[:, 1] == k]:
            times = np.bincount(repeat, minlength=19)[train[:, 1] == k]
            assert times.max() - times.min() <= 1
            assert times.sum() == size


def test_training_donors_of_few_values_are_the_average_over_the_training_leaf() -> None:
    rng = np.random.default_rng(9)
    train = np.column_stack([rng.integers(0, 4, 50), rng.normal(size=50), np.repeat([0, 1], 25)]).astype(float)
    X = np.column_stack([rng.integers(0, 6, 20), rng.normal(size=20), np.repeat([0, 1], 10)]).astype(float)
    y = rng.normal(size=20)
    sampler = sg.samplers.SubgroupSampler(groups=partition(X, 2, ["x0"]), donors="train")
    found = sg.importance(
        curved, X, y, sampler=sampler, train=train, features=["x0"], n_repeats=4, random_state=0, loss="squared_error"
    )
    expected = []
    for i in range(20):
        leaf = train[train[:, 2] == X[i, 2], 0]
        rows = np.column_stack([leaf, np.full(25, X[i, 1])])
        expected.append(np.mean((y[i] - curved(rows)) ** 2) - (y[i] - curved(X[i : i + 1])[0]) ** 2)
    np.testing.assert_allclose(found.per_row["x0"], expected, rtol=1e-10)
    assert found.overall["mc_error"][0] == 0
