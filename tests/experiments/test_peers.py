"""Other packages on the rows of the ground-truth simulation."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from experiments import ground_truth, peers
from experiments.ground_truth_rows import Repetition, drawn_repetition
from experiments.ground_truth_samplers import one_unit
from experiments.peers_report import methods
from experiments.units import Size, Unit, seed_of
from subgrove._core.kinds import Floats

HERE = not peers.missing_packages()


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "missing_packages", list)


def a_unit() -> Unit:
    return one_unit(Size(), "I", "linear", 300, 10, 0)


@pytest.mark.usefixtures("installed")
def test_units_are_repetitions_of_setting_one_with_the_keys_of_ground_truth() -> None:
    units = peers.units(Size())
    counts = pd.Series([unit.cell for unit in units]).value_counts()
    assert len(counts) == 16
    assert {counts[cell] for cell in counts.index if "-300-" in cell} == {100}
    assert {counts[cell] for cell in counts.index if "-3000-" in cell} == {30}
    assert {unit.key for unit in units} <= {unit.key for unit in ground_truth.units(Size())}


def test_packages_that_are_missing_are_reported_with_the_line_that_installs_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(peers, "missing_packages", lambda: ["knockpy"])
    with pytest.raises(
        ModuleNotFoundError, match=r"knockpy is not installed. Run `python -m pip install --group peers`"
    ):
        peers.units(Size())


def test_rows_and_truth_are_those_of_ground_truth(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(one: Repetition) -> Floats:
        return np.zeros(20)

    monkeypatch.setattr(peers, "PEERS", {"hidimstat_ridge": nothing})
    unit = a_unit()
    rows = peers.run(unit, seed=1)
    theirs = next(one for one in ground_truth.units(Size(quick=True)) if one.key == unit.key)
    true = [row for row in ground_truth.run(theirs, seed_of("ground_truth", unit.key)) if row["method"] == "true"]
    for row, other in zip([row for row in rows if row["method"] == "true"], true, strict=True):
        assert (row["m"], row["estimate"], row["truth"]) == (other["m"], other["estimate"], other["truth"])
    assert [row["estimate"] for row in rows if row["method"] == "hidimstat_ridge"] == [0.0, 0.0]


def results() -> pd.DataFrame:
    place = {"setting": "I", "scenario": "linear", "n": 300, "p": 10}
    errors = {"hidimstat_ridge": 2.0, "knockpy_sdp": 3.0, "true": 1.0}
    return pd.DataFrame(
        [
            place | {"rep": rep, "method": name, "m": m, "estimate": 4 + sign * error, "truth": 4.0}
            for name, error in errors.items()
            for rep, sign in enumerate((-1, 1, 1))
            for m in (1, 20)
        ]
    )


def test_errors_are_reported_as_multiples_of_the_true_samplers(tmp_path: Path) -> None:
    found = results()
    text = peers.report(peers.tables(found))
    assert "| linear | 300 | 10 | 4.00 (4.00) | 9.00 (9.00) | 1.00 |" in text
    assert "hidimstat, ridge 4.00 (linear 300 x 10), knockpy, sdp 9.00 (linear 300 x 10)" in text
    assert "smaller error" not in text
    (path,) = peers.figures(found, tmp_path)
    assert path.stat().st_size > 10_000


@pytest.mark.parametrize(
    ("error", "said"), [(1.5, "in 1 of 1 cells."), (2.5, "in 0 of 1 cells. Not in linear 300 x 10 (6.25 against")]
)
def test_a_sampler_of_ours_is_put_beside_them_on_the_rows_that_they_had(error: float, said: str) -> None:
    found = results()
    ours = found[found["method"] == "true"].assign(method="auto", chosen="shifted")
    ours["estimate"] = 4 + (ours["estimate"] - 4) * error
    more = pd.concat([ours, ours.assign(rep=ours["rep"] + 50), ours.assign(truth=5.0)])
    both = peers.beside(found, more)
    assert (both["method"] == "auto").sum() == 6  # the repetitions that packages were not evaluated on are left out
    assert methods(both) == ["hidimstat_ridge", "knockpy_sdp", "auto"]
    assert f"`auto` has a smaller error than the best of the packages {said}" in peers.report(peers.tables(both))
    assert peers.beside(found, pd.DataFrame()) is found


def test_a_lost_cell_says_how_sure_that_is() -> None:
    ours = results()[lambda rows: rows["method"] == "true"].assign(method="auto")
    ours["estimate"] = [4 + {0: 1.0, 1: 2.0, 2: 3.0}[rep] for rep in ours["rep"]]
    text = peers.report(peers.tables(pd.concat([results(), ours])))
    # Squares 1, 4 and 9 less 4 each: mean 0.667, standard error 2.33.
    assert "(4.67 against 4.00 of hidimstat, ridge: 0.667 more, standard error 2.33)" in text
    assert "none of these differences is more than two standard errors" in text


@pytest.mark.skipif(not HERE, reason="the group peers is not installed")
@pytest.mark.parametrize("name", list(peers.PEERS))
def test_each_package_finds_an_importance_near_the_truth_where_all_is_normal(name: str) -> None:
    state = str(np.random.get_state())  # noqa: NPY002  # that it is left alone is the point
    estimates, again = [], []
    for rep in range(12):
        unit = one_unit(Size(), "I", "independent", 300, 10, rep)
        one = drawn_repetition(unit.params, seed_of("ground_truth", unit.key))
        found = peers.PEERS[name](one)
        assert found.shape == (20,)
        estimates.append(found.mean())
        again.append(peers.PEERS[name](one).mean() if rep == 0 else np.nan)
    assert again[0] == estimates[0]
    # Twelve estimates of 4 with standard deviation 1: four standard errors, and a tenth for what a fit of 200 rows has
    # of its own. An importance that was halved would be off by 2.
    assert abs(np.mean(estimates) - 4) < 4 / np.sqrt(12) + 0.4
    assert str(np.random.get_state()) == state  # noqa: NPY002
