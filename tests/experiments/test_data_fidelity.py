"""The data-fidelity experiment: units, what they give, tables and sentences made from them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import subgrove as sg
from experiments import data, data_fidelity
from experiments.fidelity_figures import word
from experiments.fidelity_ranks import mean_ranks, published
from experiments.random_intercepts import coefficients
from experiments.redraws import METHODS, TREES, VARIANTS, Redraws, at_borders, cart, transformation_tree
from experiments.units import Size, seed_of
from subgrove._fidelity.mmd import squared_mmd


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(data.FOLDER_VARIABLE, str(tmp_path_factory.mktemp("data") / "nowhere"))
        units = data_fidelity.units(Size(reps=2, quick=True))
        parts = [data_fidelity.run(unit, seed_of("data_fidelity", unit.key)) for unit in units]
    return pd.DataFrame([{"cell": unit.cell, **row} for unit, part in zip(units, parts, strict=True) for row in part])


def made(seed: int = 0, n_sets: int = 4, n_features: int = 3, n_repeats: int = 5) -> pd.DataFrame:
    """Results in which each variant adds a known amount to the fidelity of permutation."""
    rng = np.random.default_rng(seed)
    rows = []
    for name in (f"set {k}" for k in range(n_sets)):
        base = rng.normal(5, 1)
        for feature in (f"x{k}" for k in range(n_features)):
            own = base + rng.normal(0, 0.5)
            for repetition in range(n_repeats):
                rows += [
                    {"name": name, "feature": feature, "repetition": repetition, "variant": variant, "fidelity": value}
                    for variant in VARIANTS
                    for value in [own + GAINS[variant] + rng.normal(0, 0.05)]
                ]
    table = pd.DataFrame(rows)
    return table.assign(mmd2=np.exp(-table["fidelity"]))


GAINS = {variant: 0.1 * place for place, variant in enumerate(["perm", *(name for name in VARIANTS if name != "perm")])}


def test_there_are_nineteen_variants_of_which_the_paper_has_eighteen() -> None:
    assert len(VARIANTS) == 19
    assert {*METHODS, *TREES} == {*VARIANTS} - {"imp_oob"}


def test_every_data_set_has_thirty_repetitions_the_first_ones_first() -> None:
    units = data_fidelity.units(Size())
    assert len(units) == 41 * 30
    assert [unit.params["repetition"] for unit in units] == sorted(unit.params["repetition"] for unit in units)
    assert len({unit.key for unit in units}) == len(units)


def test_quick_units_need_no_folder_of_data_sets(without_data: None) -> None:
    assert [unit.cell for unit in data_fidelity.units(Size(quick=True))] == ["wine", "breast-cancer"]


def test_a_unit_has_each_feature_and_variant_once(results: pd.DataFrame) -> None:
    one = results[(results["name"] == "wine") & (results["repetition"] == 0)]
    assert len(one) == 2 * len(VARIANTS)
    assert not one.duplicated(["feature", "variant"]).any()
    assert (one["mmd2"] > 0).all()
    np.testing.assert_allclose(one["fidelity"], -np.log(one["mmd2"]))


def test_a_unit_gives_the_same_again(without_data: None, results: pd.DataFrame) -> None:
    unit = data_fidelity.units(Size(quick=True))[0]
    again = pd.DataFrame(data_fidelity.run(unit, seed_of("data_fidelity", unit.key)))
    first = results[(results["name"] == "wine") & (results["repetition"] == 0)]
    np.testing.assert_array_equal(again["mmd2"], first["mmd2"])


def test_features_are_the_same_in_every_repetition(results: pd.DataFrame) -> None:
    assert (results.groupby("name")["feature"].nunique() == 2).all()


def test_the_squared_mmd_is_that_of_whole_samples(without_data: None) -> None:
    X, y = data_fidelity.numeric_part(-1)
    redraws = Redraws(X[:80], X[80:130].reset_index(drop=True), y[:80], [X.columns[0]], n_trees=5)
    reference = X[130:]
    drawn = redraws.of(X.columns[0], seed=3)
    found = data_fidelity.squared_mmds(reference, redraws.test, X.columns[0], drawn)
    for variant in ("none", "perm", "ale", "imp"):
        copies = [redraws.test.assign(**{X.columns[0]: column}) for column in drawn[variant]]
        assert found[variant] == pytest.approx(
            squared_mmd(reference.to_numpy(), pd.concat(copies).to_numpy()), abs=1e-12
        )


def test_numeric_part_leaves_out_labels_constant_columns_and_rows_with_missing_values(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    frame = pd.DataFrame(
        {"a": [1.0, 2.0, np.nan, 4.0], "b": [3, 3, 3, 3], "c": list("xyxy"), "d": [1, 2, 3, 4], "target": list("uvuv")}
    )
    monkeypatch.setattr(data_fidelity, "_bundled", lambda number: frame)
    X, y = data_fidelity.numeric_part(-77)
    assert set(X.columns) == {"a", "d"}
    assert X["d"].tolist() == [1, 2, 4]
    assert y.tolist() == ["u", "v", "v"]


def frame(n: int = 300) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(n, 3)), columns=["a", "b", "c"])
    return table.assign(a=table["b"] + 0.2 * table["a"])


def test_shallower_trees_are_those_grown_to_that_depth() -> None:
    table = frame()
    for tree, grower in (("cart", cart), ("trtr", transformation_tree)):
        deep = grower(table, "a")["a"]
        assert len(deep) > 4
        if tree == "cart":
            alone = sg.trees.CartTree(max_depth=2, min_samples_leaf=7, min_samples_split=20).fit(
                table[["b", "c"]], table["a"]
            )
            assert deep.at_depth(2).rules == tuple(alone.rules.values())
        else:
            assert deep.at_depth(2).rules == sg.find_subgroups(table, features="a", max_depth=2)["a"].rules


def test_a_constant_column_has_one_subgroup_and_is_redrawn_all_the_same() -> None:
    table = frame().assign(c=0.0)
    redraws = Redraws(table[:200], table[200:].reset_index(drop=True), pd.Series(["u", "v"] * 100), ["c"], n_trees=5)
    for variant, copies in redraws.of("c", seed=1).items():
        for column in copies:
            np.testing.assert_allclose(column, 0.0, atol=1e-12, err_msg=variant)


def test_ale_borders_are_quantiles_and_rows_lie_between_theirs() -> None:
    train, test = np.random.default_rng(0).normal(size=(2, 500))
    left, right = at_borders(train, test)
    assert len(set(left) | set(right)) <= 30
    inside = (test >= train.min()) & (test <= train.max())
    assert (left <= test)[inside].all()
    assert (test <= right)[inside].all()
    assert set(left) <= set(train)


def test_out_of_bag_residuals_are_wider_than_those_of_seen_rows() -> None:
    table = frame()
    redraws = Redraws(table[:200], table[200:].reset_index(drop=True), pd.Series(["u", "v"] * 100), ["c"], n_trees=50)
    drawn = redraws.of("c", seed=1)  # which depends on nothing, so that a forest can but learn noise
    assert drawn["imp_oob"][0].std() > 1.3 * drawn["imp"][0].std()


def test_features_may_be_called_by_numbers() -> None:
    results = made()
    numbered = results.assign(feature=results["feature"].factorize()[0])
    same = [coefficients(each, ["perm", "none"])["estimate"].iloc[0] for each in (results, numbered)]
    assert same[0] == pytest.approx(same[1])


def test_coefficients_are_the_gains_over_permutation() -> None:
    table = coefficients(made(), ["perm", "none", "ko", "imp"]).set_index("variant")
    for variant in ("none", "ko", "imp"):
        # 60 rows of each variant with noise of 0.05, and as many of the reference: 4 * 0.05 * sqrt(2 / 60)
        assert table.loc[variant, "estimate"] == pytest.approx(GAINS[variant], abs=0.037)
        assert table.loc[variant, "std_error"] == pytest.approx(0.05 * np.sqrt(2 / 60), rel=0.2)
    assert (table["conf_low"] < table["estimate"]).all()
    assert (table["estimate"] < table["conf_high"]).all()


def test_ranks_count_the_largest_fidelity_as_first() -> None:
    table = mean_ranks(made()).set_index("variant")
    gains = {name: GAINS[name] for name in METHODS}
    order = sorted(gains, key=lambda name: -gains[name])
    assert table.loc[order, "mean_rank"].is_monotonic_increasing
    assert table.loc[list(METHODS), "mean_rank"].sum() == pytest.approx(36)
    assert table.loc[list(METHODS), "beside_two_perm"].sum() == pytest.approx(36)
    beside = table["beside_two_perm"].to_dict()
    assert beside["perm"] == beside["cvirf"] == pytest.approx(7.5, abs=0.1)


def test_spread_at_thirty_repetitions_can_be_estimated_from_fewer() -> None:
    def noisy(n_repeats: int) -> pd.DataFrame:
        table = made(3, n_sets=10, n_features=6, n_repeats=n_repeats)
        own = (table["name"] + table["variant"]).astype("category").cat.codes.to_numpy()
        shift = np.random.default_rng(0).normal(0, 0.5, own.max() + 1)[own]  # of a method in a data set
        noise = np.random.default_rng(1).normal(0, 0.6, len(table))
        return table.assign(mmd2=np.exp(-table["fidelity"] - noise - shift))

    many, few = (mean_ranks(noisy(n)).set_index("variant") for n in (30, 4))
    assert (few["sd"] > many["sd"]).sum() >= 7
    assert few["sd_at_30"].mean() == pytest.approx(many["sd"].mean(), rel=0.1)
    np.testing.assert_allclose(many["sd_at_30"], many["sd"])


def test_published_ranks_stand_beside_ours() -> None:
    table = mean_ranks(made()).set_index("variant")
    assert table.loc["cs_trtr_30", "published_mean_rank"] == 3.51
    assert table.loc["perm", "published_mean_rank"] == 6.82
    assert published()["published_mean_rank"].sum() == pytest.approx(36, abs=0.05)
    assert np.isnan(table["published_mean_rank"].to_dict()["imp_oob"])


def test_noise_of_ranks_has_no_part_of_features_where_all_were_used() -> None:
    same = made().replace({"set 0": "bank-marketing", "set 1": "electricity", "set 2": "credit-g", "set 3": "diabetes"})
    few = mean_ranks(same).set_index("variant")["std_error"]
    # Features differ in no data set but by noise of repetitions, so both have about the same noise.
    assert (few >= 0).all()
    assert few["none"] < 0.2


def test_tables_and_report_are_made_from_results(results: pd.DataFrame) -> None:
    tables = data_fidelity.tables(results)
    assert set(tables) == {"ranks", "methods", "depths", "data_sets"}
    assert tables["data_sets"]["features"].tolist() == [2, 2]
    text = data_fidelity.report(tables)
    assert text.startswith("## Data fidelity")
    assert "2 of the paper's 42 data sets" in text
    assert "4 features in all, 2 repetitions" in text
    for row in tables["ranks"].to_dict("records"):
        assert f"| {word(str(row['variant']))} | {row['mean_rank']:.2f} |" in text


def test_figures_are_written(results: pd.DataFrame, tmp_path: Path) -> None:
    paths = data_fidelity.figures(results, tmp_path)
    assert [path.name for path in paths] == [
        "data_fidelity_methods_1.png",
        "data_fidelity_depths_1.png",
        "data_fidelity_coefficients.png",
    ]
    assert all(path.stat().st_size > 10_000 for path in paths)


def test_report_names_what_is_far_from_the_published_ranks() -> None:
    tables: dict[str, Any] = data_fidelity.tables(made(n_sets=6, n_repeats=3).assign(cell="x"))
    text = data_fidelity.report(tables)
    ranks = tables["ranks"].dropna(subset=["published_mean_rank"])
    near = int((ranks["distance"].abs() <= 3).sum())
    assert f"{near} of 8 mean ranks are within 3 standard errors" in text
    assert "published: none, cs (trtr), ko, cs (cart), imp, ale, perm, cvirf" in text
