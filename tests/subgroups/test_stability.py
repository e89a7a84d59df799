"""How often splits come back on halves of the rows."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import adjusted_rand_score

import subgrove as sg
from subgrove._subgroups.stability import agreement
from subgrove.exceptions import InputError, ParameterError

BIKE = sg.datasets.bike().X


def step(rng: np.random.Generator, n: int) -> pd.DataFrame:
    """x depends on whether z is above 1, by two standard deviations, and on nothing else."""
    z = rng.uniform(0, 3, size=n)
    return pd.DataFrame({"x": rng.normal(size=n) + 2 * (z > 1), "z": z, "u": rng.normal(size=n)})


def test_split_that_is_there_comes_back_and_its_cut_is_near_the_truth() -> None:
    """Half of 400 rows has about 67 rows in a unit of z. A cut that is k rows off is as likely as the true one with a
    probability below exp(-k * 2**2 / 8), which is exp(-10) for 20 rows, a distance of 0.3."""
    X = step(np.random.default_rng(1), 400)
    found = sg.find_subgroups(X, features="x").stability(X, n_resamples=40, random_state=1)
    first = found.splits.iloc[0]
    assert first[["node", "column", "share"]].tolist() == ["all rows", "z", 1.0]
    assert 0.7 < first["cut_low"] <= first["cut_high"] < 1.3
    assert first["cut_low"] <= first["cut"] <= first["cut_high"]
    assert found.overall["rand"].item() > 0.8
    assert found.sentences[0].startswith("x: z is the first split in 40 of 40 resamples, with the split point between ")


def test_split_by_chance_seldom_comes_back() -> None:
    """Where nothing depends and each of two columns is tested at level 0.05 together, a first split on either has the
    probability 0.05; 13 or more of 100 would have the probability 0.0015. Halves overlap, so a tree is looked for that
    does not split on all rows."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(400, 3))
    groups = sg.find_subgroups(X, features="x0")
    assert len(groups["x0"]) == 1
    found = groups.stability(X, n_resamples=100, random_state=1)
    assert found.columns["first"].sum() <= 0.12
    assert found.splits.empty
    assert found.sentences[0].startswith("x0: one subgroup; a tree splits in ")


def test_redundant_columns_replace_each_other_while_subgroups_stay() -> None:
    """Over four tables the column that comes first less often does so in some halves; which one it is, is chance."""
    firsts, rands = [], []
    for run in range(4):
        rng = np.random.default_rng(run)
        X = step(rng, 600)
        X["twin"] = X["z"] + rng.normal(0, 0.02, size=600)
        X["z"] += rng.normal(0, 0.02, size=600)
        found = sg.find_subgroups(X, features="x", max_depth=1).stability(X, n_resamples=20, random_state=1)
        first = found.columns.set_index("column")["first"].to_dict()
        z, twin = first.get("z", 0.0), first.get("twin", 0.0)
        assert z + twin == pytest.approx(1)
        firsts.append(min(z, twin))
        rands.append(found.overall["rand"].item())
    assert np.mean(firsts) > 0.05
    assert min(rands) > 0.9


def test_levels_that_belong_together_are_together() -> None:
    rng = np.random.default_rng(3)
    level = rng.choice([*"abcd"], size=500)
    X = pd.DataFrame({"x": rng.normal(size=500) + 2 * np.isin(level, ["a", "b"]), "level": level})
    found = sg.find_subgroups(X, features="x", max_depth=1).stability(X, n_resamples=30, random_state=1)
    pairs = {(row["level"], row["other"]): (row["together"], row["share"]) for _, row in found.levels.iterrows()}
    apart, kept = (False, 0.0), (True, 1.0)
    assert pairs == {
        ("a", "b"): kept, ("a", "c"): apart, ("a", "d"): apart, ("b", "c"): apart, ("b", "d"): apart, ("c", "d"): kept
    }  # fmt: skip
    assert found.splits["pair_agreement"].item() == 1.0


def test_agreement_is_the_adjusted_rand_index_and_the_share_of_pairs() -> None:
    rng = np.random.default_rng(5)
    for _ in range(20):
        one, other = rng.integers(0, 4, 60), rng.integers(0, 3, 60)
        other[one == 0] = 0
        rand, together = agreement(one, other)
        assert rand == pytest.approx(adjusted_rand_score(one, other))
        same = one[:, None] == one
        np.fill_diagonal(same, False)
        assert together == pytest.approx((other[:, None] == other)[same].mean())
    everyone = np.zeros(10, dtype=int)
    assert agreement(everyone, everyone) == (1.0, 1.0)
    assert agreement(everyone, np.arange(10)) == (0.0, 0.0)


def test_number_of_jobs_and_subset_of_features_change_nothing() -> None:
    groups = sg.find_subgroups(BIKE, features=["temp", "hum"])
    one, two = (groups.stability(BIKE, n_resamples=12, random_state=0, n_jobs=jobs) for jobs in (1, 2))
    assert one == two
    alone = sg.find_subgroups(BIKE, features="hum").stability(BIKE, n_resamples=12, random_state=0)
    assert alone.features[0] == one.features[1]
    assert pickle.loads(pickle.dumps(one)) == one


def test_more_resamples_go_on_where_fewer_ended() -> None:
    groups = sg.find_subgroups(BIKE, features="temp")
    few, more = (groups.stability(BIKE, n_resamples=n, random_state=3).features[0].regrown for n in (4, 13))
    assert more[:4] == few
    other = groups.stability(BIKE, n_resamples=4, random_state=4).features[0].regrown
    assert other != few


def test_trees_are_those_of_the_halves() -> None:
    """Grown by hand on the same rows, with half the least number of rows."""
    groups = sg.find_subgroups(BIKE, features="temp", max_depth=2, min_samples_leaf=31)
    found = groups.stability(BIKE, n_resamples=3, random_state=5)
    for number, regrown in enumerate(found.features[0].regrown):
        from subgrove._core.execution import Streams

        rows = np.sort(Streams(5, "stability", 3)[number].permutation(len(BIKE))[: len(BIKE) // 2])
        half = sg.find_subgroups(BIKE.iloc[rows], features="temp", max_depth=2, min_samples_leaf=16)["temp"]
        assert regrown.n_subgroups == len(half)
        assert dict(regrown.depths).keys() == set(half.conditioning)
        assert regrown.rand == pytest.approx(adjusted_rand_score(groups["temp"].assign(BIKE), half.assign(BIKE)))


@pytest.mark.parametrize("tree", ["transformation", "cart"])
def test_every_kind_of_column_and_tree_and_chosen_depth(tree: Any) -> None:
    X = BIKE.assign(
        day=pd.date_range("2011-01-01", periods=len(BIKE)),
        size=pd.Categorical(pd.cut(BIKE["temp"], 3, labels=["low", "mid", "high"]), ordered=True),
        gap=BIKE["wind"].where(BIKE["hum"] < 80),
    )
    groups = sg.find_subgroups(X, tree=tree, max_depth="auto", features=["temp", "yr", "size", "gap", "season"])
    found = groups.stability(X, n_resamples=3, random_state=1)
    assert len(found.overall) == 5
    assert "nan" not in " ".join(found.sentences)
    shares = found.splits["share"].to_numpy()
    assert ((shares >= 0) & (shares <= 1)).all()
    assert all(each.partition.tree.depth >= 0 for each in found.features)


def test_group_of_features_and_weights() -> None:
    weights = np.arange(len(BIKE)) % 3
    groups = sg.find_subgroups(BIKE, features=[("temp", "hum")], sample_weight=weights)
    found = groups.stability(BIKE, n_resamples=3, sample_weight=weights, random_state=1)
    assert found.overall["feature"].tolist() == ["temp + hum"]
    with pytest.raises(ParameterError, match="Pass the same sample_weight"):
        groups.stability(BIKE)
    with pytest.raises(ParameterError, match="Omit sample_weight"):
        sg.find_subgroups(BIKE, features="temp").stability(BIKE, sample_weight=weights)


def test_input_is_not_changed_and_other_rows_are_rejected() -> None:
    X = BIKE.copy()
    groups = sg.find_subgroups(X, features="temp")
    groups.stability(X, n_resamples=2, random_state=1)
    pd.testing.assert_frame_equal(X, BIKE)
    with pytest.raises(InputError, match="not the table that the subgroups were found on"):
        groups.stability(X[::-1])
    with pytest.raises(ParameterError, match="n_resamples must be a whole number >= 1"):
        groups.stability(X, n_resamples=0)


def test_progress_is_shown_on_request(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    groups = sg.find_subgroups(BIKE, features="temp")
    groups.stability(BIKE, n_resamples=2, random_state=1)
    assert capsys.readouterr().err == ""
    monkeypatch.setenv("SUBGROVE_PROGRESS", "1")
    groups.stability(BIKE, n_resamples=2, random_state=1)
    assert "Growing trees" in capsys.readouterr().err
