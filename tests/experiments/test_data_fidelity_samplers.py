"""Samplers of the package among the paper's methods on the rows of the data-fidelity experiment."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import subgrove as sg
from experiments import beyond, data_fidelity, data_fidelity_samplers
from experiments.__main__ import main
from experiments.data_fidelity import drawn_rows, squared_mmds
from experiments.fidelity_beside import choices, data_sets, pairs, ranks, samplers
from experiments.fidelity_ranks import mean_ranks
from experiments.redraws import METHODS, VARIANTS, stream_of
from experiments.store import Store
from experiments.units import Size, seed_of

FEATURES = {"a": ("x1", "x2"), "b": ("x1",)}


def made(order: dict[str, list[str]], sampler: str = "auto", repetitions: int = 2) -> pd.DataFrame:
    """Results in which the methods of each data set come in a known order, the best first."""
    rows = [
        {
            "key": f"{name}/r{repetition:02d}",
            "cell": name,
            "name": name,
            "feature": feature,
            "repetition": repetition,
            "variant": variant,
            "mmd2": 0.001 * (1 + place),
            "chosen": "marginal" if variant == sampler else "",
            "kept": 0.25 if variant == sampler else np.nan,
        }
        for name, variants in order.items()
        for feature in FEATURES[name]
        for repetition in range(repetitions)
        for place, variant in enumerate([*variants, *(one for one in VARIANTS if one not in variants)])
    ]
    return pd.DataFrame(rows)


FIRST = {"a": ["auto", *METHODS], "b": ["none", "ko", "auto", *(one for one in METHODS if one not in ("none", "ko"))]}


def test_units_are_those_of_the_papers_methods() -> None:
    size = Size(reps=2, samplers=("auto",))
    ours, theirs = data_fidelity_samplers.units(size), data_fidelity.units(size)
    assert [(one.key, one.cell) for one in ours] == [(one.key, one.cell) for one in theirs]
    assert all(one.params["samplers"] == ("auto",) for one in ours)


def test_rows_are_those_of_the_papers_methods_and_the_sampler_has_its_own_stream(without_data: None) -> None:
    (unit, *_) = data_fidelity_samplers.units(Size(quick=True, samplers=("marginal",)))
    ours = pd.DataFrame(data_fidelity_samplers.run(unit, seed=99)).set_index(["feature", "variant"])["mmd2"]
    seed = seed_of("data_fidelity", unit.key)  # the seed of the unit in data_fidelity counts, not 99
    theirs = data_fidelity.run(data_fidelity.units(Size(quick=True))[0], seed)
    for row in theirs:
        if row["variant"] == "none":
            assert ours[row["feature"], "none"] == row["mmd2"]
    rows = drawn_rows(unit.params, seed)
    fitted = sg.samplers.Marginal().fit(rows.train)
    for feature in rows.features:
        drawn = [np.asarray(one) for one in fitted.sample(rows.test, feature, [stream_of(seed, feature, "marginal")])]
        expected = squared_mmds(rows.reference, rows.test, feature, {"marginal": drawn})["marginal"]
        assert ours[feature, "marginal"] == expected


def test_what_was_chosen_and_its_scores_are_stored(without_data: None) -> None:
    (unit, *_) = data_fidelity_samplers.units(Size(quick=True, samplers=("auto",)))
    lines = data_fidelity_samplers.run(unit, 0)
    chosen = [one for one in lines if one["variant"] == "auto"]
    assert len(chosen) == 2
    for one in chosen:
        assert one["chosen"] in one["scores"]
        assert one["scores"].startswith("marginal ")
    assert all(one["chosen"] is None for one in lines if one["variant"] == "none")


def test_nine_are_ranked_as_the_paper_ranks_eight() -> None:
    results = made(FIRST)
    table = ranks(results).set_index("variant")
    # First of nine in two features of a, third in the one of b.
    assert table.loc["auto", "mean_rank"] == pytest.approx((1 + 1 + 3) / 3)
    assert table.loc["none", "mean_rank"] == pytest.approx((2 + 2 + 1) / 3)
    assert table["n"].tolist() == [3] * 9
    assert table.loc["none", "behind"] == pytest.approx((1 + 1 - 2) / 3)
    assert table["behind"]["auto"] == 0
    assert table["behind_se"]["auto"] == 0
    eight = mean_ranks(results[results["variant"] != "auto"]).set_index("variant")["mean_rank"]
    for name in METHODS:
        assert table.loc[name, "without"] == eight[name]
    assert np.isnan(table["without"]["auto"])


def test_ranks_without_a_sampler_are_of_the_rows_it_was_evaluated_on() -> None:
    results = made(FIRST)
    options = results[(results["variant"] != "auto") | (results["name"] == "a")]
    table = ranks(options).set_index("variant")
    assert table["n"].tolist() == [2] * 9
    assert table.loc["ko", "without"] == 1 + METHODS.index("ko")  # as in a; in b it is second


def test_wins_and_losses_count_features_and_data_sets() -> None:
    table = pairs(made(FIRST)).set_index("variant")
    assert table.loc["ko", "better"] == pytest.approx(2 / 3)
    assert (table.loc["ko", "sets_won"], table.loc["ko", "sets_lost"]) == (1, 1)
    assert table.loc["perm", "better"] == 1
    assert table["gain"]["perm"] > 0
    same = made(FIRST)
    same["mmd2"] = 0.5
    even = pairs(same).set_index("variant")
    assert (even["better"] == 0.5).all()
    assert (even[["sets_won", "sets_lost"]] == 0).all(axis=None)


def test_data_sets_and_choices_have_mean_ranks() -> None:
    results = made(FIRST)
    sets = data_sets(results).set_index("name")
    assert sets.loc["a", "rank"] == 1
    assert sets.loc["b", "rank"] == 3
    assert (sets["features"]["a"], sets["repetitions"]["a"], sets["chosen"]["a"]) == (2, 2, "marginal 4")
    results.loc[(results["variant"] == "auto") & (results["name"] == "b"), "chosen"] = "subgroups"
    chosen = choices(results).set_index("candidate")
    assert (chosen["times"]["marginal"], chosen["rank"]["marginal"], chosen["kept"]["marginal"]) == (4, 1, 0.25)
    assert chosen["share"]["marginal"] == pytest.approx(2 / 3)
    assert chosen.loc["subgroups", "rank"] == 3
    assert choices(results.assign(chosen="")).empty


def test_of_several_samplers_each_is_ranked_alone() -> None:
    one = made(FIRST)
    other = one[one["variant"] == "auto"].assign(variant="shifted_subgroups", mmd2=1.0, chosen="")
    both = pd.concat([one, other])
    assert samplers(both) == ["auto", "shifted_subgroups"]
    table = ranks(both).set_index(["sampler", "variant"])["mean_rank"]
    assert table["shifted_subgroups", "shifted_subgroups"] == 9
    pd.testing.assert_series_equal(table["auto"], ranks(one).set_index("variant")["mean_rank"])


def test_stored_units_of_other_rows_or_none_are_rejected() -> None:
    ours = made({"a": ["auto", "none"], "b": ["auto", "none"]})
    ours = ours[ours["variant"].isin(["auto", "none"])]
    theirs = made({"a": ["auto", *METHODS], "b": ["auto", *METHODS]})
    theirs = theirs[theirs["variant"] != "auto"]
    both = data_fidelity_samplers.beside(ours, theirs[theirs["repetition"] == 0])
    assert set(both["repetition"]) == {0}
    assert (both["variant"] == "none").sum() == 3
    assert samplers(both) == ["auto"]
    with pytest.raises(SystemExit, match=r"Run `python -m experiments data_fidelity run` first"):
        data_fidelity_samplers.beside(ours, pd.DataFrame())
    moved = theirs.assign(mmd2=theirs["mmd2"].where(theirs["name"] != "b", theirs["mmd2"] * 1.001))
    with pytest.raises(SystemExit, match="of other rows in b"):
        data_fidelity_samplers.beside(ours, moved)


def test_the_report_says_whether_the_goal_is_met(tmp_path: Path) -> None:
    good = data_fidelity_samplers.tables(made(FIRST))
    text = data_fidelity_samplers.report(good)
    assert "better than 7 of the paper's 7 methods" in text
    assert "In 1 of 2 data sets" in text
    assert "2 data sets, 3 features, 2 repetitions. A sampler" in text
    once = data_fidelity_samplers.tables(made(FIRST, repetitions=1))
    assert "2 data sets, 3 features, 1 repetition. A sampler" in data_fidelity_samplers.report(once)
    assert "| marginal | 100% | 25% | 1.67 |" in text
    last = {name: [one for one in METHODS if one != "perm"] + ["auto", "perm"] for name in FIRST}
    text = data_fidelity_samplers.report(data_fidelity_samplers.tables(made(last)))
    assert "better than 1 of the paper's 7 methods" in text
    assert "**Not better than " in text
    (path,) = data_fidelity_samplers.figures(made(FIRST), tmp_path)
    assert path.name == "beyond_fidelity_auto.png"
    assert path.stat().st_size > 10_000
    for title, table in good.items():
        table.to_csv(tmp_path / f"data_fidelity_auto_{title}.csv", index=False)
    assert "## Data fidelity among the paper's methods" in beyond.text(tmp_path)


def test_the_command_adds_a_sampler_and_leaves_stored_units_alone(without_data: None, tmp_path: Path) -> None:
    options = ["--quick", "--out", str(tmp_path), "--results", str(tmp_path / "kept")]
    with pytest.raises(SystemExit, match="no stored units"):
        main(["data_fidelity", *options, "--sampler", "auto"])
    assert main(["data_fidelity", "run", *options]) == 0
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "data_fidelity-quick").rglob("*.csv")}
    assert main(["data_fidelity", *options, "--sampler", "auto"]) == 0
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert len(Store(tmp_path / "data_fidelity_auto-quick").done()) == 2
    table = pd.read_csv(tmp_path / "tables" / "data_fidelity_auto_ranks.csv")
    assert set(table["variant"]) == {*METHODS, "auto"}
    assert table["mean_rank"].sum() == pytest.approx(45)
    assert not (tmp_path / "kept").exists()
