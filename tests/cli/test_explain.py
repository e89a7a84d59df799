"""`subgrove explain` from a file to a report: what is told, what is written, and that it is true."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import subgrove as sg
from subgrove._cli import explain
from subgrove._cli.reading import Request, read_data
from subgrove._cli.target import pose
from subgrove._cli.training import DefaultModel, cross_validate, split_rows, train

from .conftest import rows
from .run import invoke, refused

QUICK = ("--repeats", 3, "--features", "a", "--drop", "sold")


def problem(path: Path, target: str, other: str) -> Any:
    return pose(read_data(Request(path, needed={target: ""}, drop=(other,))), target, None)


def test_a_page_is_written_and_performance_comes_first(houses: Path, folder: Path) -> None:
    result = invoke("explain", houses, "-t", "price", *QUICK, "--json", "out.json", "--markdown", "out.md")
    assert result.exit_code == 0, result.output
    assert sorted(path.name for path in folder.iterdir()) == ["houses.csv", "out.json", "out.md", "report.html"]
    told = result.stdout
    assert told.index("Held-out performance") < told.index("Importance:") < told.index("Report: report.html")
    report = sg.Report.load("out.json")
    assert (folder / "report.html").read_text(encoding="utf-8") == report.to_html()
    assert (folder / "out.md").read_text(encoding="utf-8") == report.to_markdown()


def test_the_table_in_the_terminal_has_the_numbers_of_the_report(houses: Path, folder: Path) -> None:
    result = invoke("explain", houses, "-t", "price", "--repeats", 3, "--drop", "sold", "--json", "out.json")
    features = sg.Report.load("out.json").summary.features
    lines = {line.split()[0]: line.split() for line in result.stdout.split("Importance:")[1].splitlines()[2:5]}
    assert list(lines) == [one.feature for one in features]
    for one in features:
        assert lines[one.feature][1] == f"{one.conditional.estimate:.3g}"


def test_json_on_standard_output_is_nothing_but_json(houses: Path) -> None:
    result = invoke("explain", houses, "-t", "price", *QUICK, "--json", "-")
    assert json.loads(result.stdout)["schema"] == "subgrove.report"
    assert "Held-out performance" in result.stderr


def test_quiet_says_nothing(houses: Path, folder: Path) -> None:
    result = invoke("explain", houses, "-t", "price", *QUICK, "--quiet", "--out", "page.html")
    assert (result.exit_code, result.output) == (0, "")
    assert (folder / "page.html").exists()


def test_the_same_seed_gives_the_same_page(houses: Path, folder: Path) -> None:
    reports = []
    for name, seed in (("one", 5), ("two", 5), ("three", 6)):
        invoke("explain", houses, "-t", "price", *QUICK, "-q", "--seed", seed, "--json", f"{name}.json")
        values = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
        reports.append(values["features"])
    assert reports[0] == reports[1] != reports[2]


def test_classes_are_explained_and_the_task_is_told(houses: Path) -> None:
    result = invoke("explain", houses, "-t", "sold", "--drop", "price", *QUICK[:4], "--json", "out.json")
    assert result.exit_code == 0, result.output
    assert "Task: classification, since 'sold' has 2 levels" in result.stderr
    assert "accuracy" in result.stdout
    assert sg.Report.load("out.json").summary.model.classes == ("no", "yes")


def test_a_model_that_has_learned_nothing_is_marked(folder: Path) -> None:
    frame = rows()
    frame["price"] = np.random.default_rng(3).normal(size=len(frame))
    frame.to_csv("noise.csv", index=False)
    result = invoke("explain", "noise.csv", "-t", "price", *QUICK, "--json", "out.json")
    assert "no better than a constant" in result.stdout
    assert "The model is useless" in result.stdout
    assert sg.Report.load("out.json").summary.model.verdict == "useless"


def test_a_forest_is_trained_on_request(houses: Path) -> None:
    invoke("explain", houses, "-t", "price", *QUICK, "-q", "--forest", "--json", "out.json")
    assert "forest" in sg.Report.load("out.json").summary.model.description


def test_own_test_rows_are_those_that_are_explained(houses: Path) -> None:
    rows(90, seed=2).to_csv("new.csv", index=False)
    result = invoke("explain", houses, "-t", "price", *QUICK, "--test", "new.csv", "--json", "out.json")
    assert result.exit_code == 0, result.output
    data = sg.Report.load("out.json").summary.data
    assert (data.n_train, data.n_test) == (240, 90)


def test_a_class_that_training_has_not_is_refused(houses: Path) -> None:
    frame = rows(90, seed=2)
    frame.loc[:20, "sold"] = "maybe"
    frame.to_csv("new.csv", index=False)
    refused(invoke("explain", houses, "-t", "sold", "--test", "new.csv"), "'maybe'", "new.csv")


def test_rows_without_a_target_are_left_out_and_told(folder: Path) -> None:
    frame = rows()
    frame.loc[:9, "price"] = np.nan
    frame.to_csv("gaps.csv", index=False)
    result = invoke("explain", "gaps.csv", "-t", "price", *QUICK, "--json", "out.json")
    assert "10 rows without a value of 'price' are left out." in result.stderr
    data = sg.Report.load("out.json").summary.data
    assert data.n_train + data.n_test == 230


def test_a_feature_that_is_no_column_is_refused(houses: Path) -> None:
    refused(invoke("explain", houses, "-t", "price", "--features", "kindd"), "--features 'kindd'", "'kind'")


def test_features_and_test_rows_are_checked_before_a_model_is_trained(
    houses: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(explain, "cross_validate", lambda *_, **__: pytest.fail("trained for nothing"))
    refused(invoke("explain", houses, "-t", "price", "--features", "price"), "'price' is the target")
    refused(invoke("explain", houses, "-t", "price", "--test", "no.csv"), "no file no.csv")
    rows(1, seed=2).to_csv("one.csv", index=False)
    refused(invoke("explain", houses, "-t", "price", "--test", "one.csv"), "1 row of one.csv")


def test_text_among_numbers_of_test_rows_is_told_with_both_files(houses: Path) -> None:
    rows(90, seed=2).assign(b="big").to_csv("new.csv", index=False)
    message = refused(invoke("explain", houses, "-t", "price", "--test", "new.csv"), "'big'", f"{houses} has numbers")
    assert "--numeric" not in message


def test_no_jobs_are_refused_by_the_name_of_the_option(houses: Path) -> None:
    refused(invoke("explain", houses, "-t", "price", "--jobs", "0"), "--jobs", "0 processes", "-1 for all")


def test_a_page_on_standard_output_is_nothing_but_the_page(houses: Path, folder: Path) -> None:
    result = invoke("explain", houses, "-t", "price", *QUICK, "--out", "-")
    assert result.stdout.startswith("<!doctype html>")
    assert result.stdout.rstrip().endswith("</html>")
    assert [path.name for path in folder.iterdir()] == ["houses.csv"]
    refused(invoke("explain", houses, "-t", "price", "--out", "-", "--json", "-"), "--out - and --json -")


def test_rows_that_could_not_be_judged_are_not_called_unreal(houses: Path) -> None:
    result = invoke("explain", houses, "-t", "price", *QUICK, "--json", "out.json")
    marks = {
        one.feature: one.certificate.verdict
        for one in sg.Report.load("out.json").summary.features
        if one.certificate is not None
    }
    assert "unknown" in marks.values()
    for name, verdict in marks.items():
        line = next(line for line in result.stdout.splitlines() if line.startswith(f"{name} ") and "look real" in line)
        assert ("do not look real" in line) == (verdict == "failed")


def test_a_loss_that_is_none_is_refused_and_nothing_is_written(houses: Path, folder: Path) -> None:
    refused(invoke("explain", houses, "-t", "price", *QUICK, "--loss", "anger"), "anger")
    assert [path.name for path in folder.iterdir()] == ["houses.csv"]


def test_cross_validation_judges_each_row_by_a_model_without_it(houses: Path) -> None:
    """Noise cannot be foretold: had a row been learned from, boosting would save much of its loss."""
    frame = rows(400)
    frame["price"] = np.random.default_rng(3).normal(size=len(frame))
    frame.to_csv(houses, index=False)
    (skill,) = cross_validate(problem(houses, "price", "sold"), forest=False, seed=1)
    assert skill.value < 2 * skill.std_error


def test_cross_validated_performance_is_that_of_scikit_learn(houses: Path) -> None:
    from sklearn.metrics import r2_score
    from sklearn.model_selection import KFold

    asked = problem(houses, "price", "sold")
    foretold = np.empty(len(asked.y))
    for learned, judged in KFold(5, shuffle=True, random_state=1).split(asked.X):
        model = DefaultModel("regression").fit(asked.X.iloc[learned], asked.y.iloc[learned])
        foretold[judged] = model.predict(asked.X.iloc[judged])
    (skill,) = cross_validate(asked, forest=False, seed=1)
    assert skill.value == pytest.approx(r2_score(asked.y, foretold), abs=0.01)  # constants are those of the folds


@pytest.mark.parametrize("forest", [False, True])
def test_the_default_model_takes_levels_gaps_dates_and_new_levels(forest: bool) -> None:
    import pandas as pd

    X = rows()[["a", "kind"]].assign(day=pd.date_range("2024-01-01", periods=240))
    X["kind"] = X["kind"].astype("category")
    y = rows()["price"]
    model = DefaultModel("regression", forest=forest).fit(X, y)
    strange = X.assign(kind=pd.Categorical(["castle"] * 240))
    assert np.corrcoef(model.predict(X), y)[0, 1] > 0.9
    assert np.isfinite(model.predict(strange)).all()
    assert not hasattr(model, "predict_proba")


def test_a_split_shares_classes_out_and_uses_each_row_once(houses: Path) -> None:
    asked = problem(houses, "sold", "price")
    learned, held_out = split_rows(asked, seed=1)
    assert len(learned.y) + len(held_out.y) == len(asked.y)
    assert abs((learned.y == "yes").mean() - (held_out.y == "yes").mean()) < 0.02
    assert train(learned, forest=False, seed=1).classes_.tolist() == ["no", "yes"]


def test_whole_numbers_are_classes_where_they_are_few_and_amounts_otherwise(folder: Path) -> None:
    frame = rows()
    frame["stars"] = np.arange(len(frame)) % 5
    frame["visits"] = np.arange(len(frame)) % 37
    frame.to_csv("houses.csv", index=False)
    data = read_data(Request(Path("houses.csv")))
    assert pose(data, "stars", None).task == "classification"
    assert pose(data, "visits", None).task == "regression"
    assert pose(data, "stars", "regression").task == "regression"


def test_rare_classes_are_left_out_and_told(folder: Path) -> None:
    frame = rows()
    frame.loc[:4, "sold"] = "perhaps"
    frame.to_csv("houses.csv", index=False)
    posed = pose(read_data(Request(Path("houses.csv"))), "sold", None)
    assert set(posed.y) == {"no", "yes"}
    assert any("'perhaps'" in note for note in posed.notes)
