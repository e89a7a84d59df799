"""`subgrove explain` from a file to a report: what is printed and written is correct."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import subgrove as sg
from subgrove._cli import explain
from subgrove._cli.columns import KnownColumns
from subgrove._cli.default_model import DefaultModel, cross_validate, train
from subgrove._cli.learning_task import learning_task
from subgrove._cli.reading import read_table_file
from subgrove._cli.splitting import split_rows
from subgrove._report.svg import prose

from .commands import error_message, invoke
from .conftest import options, rows

QUICK = ("--n-repeats", 3, "--features", "a", "--drop", "sold")


def task_of(path: Path, target: str, other: str) -> Any:
    return learning_task(read_table_file(options(path, drop=[other]), KnownColumns({target: ""})), target, None)


def test_report_is_written_and_performance_is_printed_first(houses: Path, folder: Path) -> None:
    result = invoke("explain", houses, "-t", "price", *QUICK, "--json", "out.json", "--markdown", "out.md")
    assert result.exit_code == 0, result.output
    assert sorted(path.name for path in folder.iterdir()) == ["houses.csv", "out.json", "out.md", "report.html"]
    printed = result.stdout
    assert printed.index("Held-out performance") < printed.index("Importance:") < printed.index("Report: report.html")
    report = sg.Report.load("out.json")
    assert (folder / "report.html").read_text(encoding="utf-8") == report.to_html()
    assert (folder / "out.md").read_text(encoding="utf-8") == report.to_markdown()


def test_printed_importance_is_that_of_the_report(houses: Path, folder: Path) -> None:
    result = invoke("explain", houses, "-t", "price", "--n-repeats", 3, "--drop", "sold", "--json", "out.json")
    features = sg.Report.load("out.json").summary.features
    table = result.stdout.split("Importance:")[1].split("\n\n")[0].splitlines()[2:]
    lines = {line.split()[0]: line.split() for line in table if "(together)" not in line}
    assert sorted(lines) == sorted(one.feature for one in features)
    for one in features:
        assert lines[one.feature][1] == f"{one.conditional.estimate:.3g}"


def test_standard_output_holds_only_json(houses: Path) -> None:
    result = invoke("explain", houses, "-t", "price", *QUICK, "--json", "-")
    assert json.loads(result.stdout)["schema"] == "subgrove.report"
    assert "Held-out performance" in result.stderr


def test_quiet_prints_nothing(houses: Path, folder: Path) -> None:
    result = invoke("explain", houses, "-t", "price", *QUICK, "--quiet", "--out", "page.html")
    assert (result.exit_code, result.output) == (0, "")
    assert (folder / "page.html").exists()


def test_same_random_state_gives_the_same_report(houses: Path, folder: Path) -> None:
    reports = []
    for name, seed in (("one", 5), ("two", 5), ("three", 6)):
        invoke("explain", houses, "-t", "price", *QUICK, "-q", "--random-state", seed, "--json", f"{name}.json")
        values = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
        reports.append(values["features"])
    assert reports[0] == reports[1] != reports[2]


def test_classification_is_inferred_and_explained(houses: Path) -> None:
    result = invoke("explain", houses, "-t", "sold", "--drop", "price", *QUICK[:4], "--json", "out.json")
    assert result.exit_code == 0, result.output
    assert "Task: classification, because 'sold' has 2 levels" in result.stderr
    assert "accuracy" in result.stdout
    assert sg.Report.load("out.json").summary.model.classes == ("no", "yes")


def test_model_without_skill_is_reported(folder: Path) -> None:
    frame = rows()
    frame["price"] = np.random.default_rng(3).normal(size=len(frame))
    frame.to_csv("noise.csv", index=False)
    result = invoke("explain", "noise.csv", "-t", "price", *QUICK, "--json", "out.json")
    model = sg.Report.load("out.json").summary.model
    assert model.verdict in ("useless", "uncertain")
    assert result.stdout.count("than a constant prediction") == 1
    assert model.verdict_sentence in result.stdout
    assert prose(model.verdict_sentence) in Path("report.html").read_text(encoding="utf-8")


def test_skewed_target_is_not_called_useless(folder: Path) -> None:
    rng = np.random.default_rng(1)
    a = rng.normal(size=3000)
    visits = rng.poisson(0.3 * np.exp(a)) * rng.integers(1, 12, 3000)  # more than ten values, so no classes
    pd.DataFrame({"a": a.round(3), "visits": visits}).to_csv("visits.csv", index=False)
    result = invoke("explain", "visits.csv", "-t", "visits", "--n-repeats", 3, "--json", "out.json")
    model = sg.Report.load("out.json").summary.model
    assert model.verdict in ("good", "weak")
    assert model.verdict_sentence in result.stdout
    assert model.scores[0].skill is not None
    assert model.scores[0].skill < 0  # the median is better in absolute error


def test_rare_classes_and_leakage_are_reported(folder: Path) -> None:
    rng = np.random.default_rng(2)
    a = rng.normal(size=1500).round(3)
    fraud = rng.random(1500) < 1 / (1 + np.exp(4.5 - 1.5 * a))
    frame = pd.DataFrame({"a": a, "fraud": np.where(fraud, "yes", "no")})
    frame.to_csv("fraud.csv", index=False)
    result = invoke("explain", "fraud.csv", "-t", "fraud", "--n-repeats", 3)
    assert "balanced accuracy" in result.stdout
    assert "The class yes is rare (" in result.stdout
    assert "leakage" not in result.stdout
    frame.assign(refund=np.where(fraud, 17.0, np.nan)).to_csv("fraud.csv", index=False)
    result = invoke("explain", "fraud.csv", "-t", "fraud", "--n-repeats", 3, "--features", "a")
    assert "Possible target leakage: refund alone nearly determines fraud: it explains 100 % of it" in result.stdout


def test_forest_option_trains_a_random_forest(houses: Path) -> None:
    invoke("explain", houses, "-t", "price", *QUICK, "-q", "--forest", "--json", "out.json")
    assert "forest" in sg.Report.load("out.json").summary.model.description


def test_model_is_explained_on_given_test_rows(houses: Path) -> None:
    rows(90, seed=2).to_csv("new.csv", index=False)
    result = invoke("explain", houses, "-t", "price", *QUICK, "--test", "new.csv", "--json", "out.json")
    assert result.exit_code == 0, result.output
    data = sg.Report.load("out.json").summary.data
    assert (data.n_train, data.n_test) == (240, 90)


def test_a_class_that_training_has_not_is_error_message(houses: Path) -> None:
    frame = rows(90, seed=2)
    frame.loc[:20, "sold"] = "maybe"
    frame.to_csv("new.csv", index=False)
    error_message(invoke("explain", houses, "-t", "sold", "--test", "new.csv"), "'maybe'", "new.csv")


def test_rows_with_missing_target_are_left_out_with_a_note(folder: Path) -> None:
    frame = rows()
    frame.loc[:9, "price"] = np.nan
    frame.to_csv("gaps.csv", index=False)
    result = invoke("explain", "gaps.csv", "-t", "price", *QUICK, "--json", "out.json")
    assert "10 rows with missing target 'price' left out." in result.stderr
    data = sg.Report.load("out.json").summary.data
    assert data.n_train + data.n_test == 230


def test_a_feature_that_is_no_column_is_error_message(houses: Path) -> None:
    error_message(
        invoke("explain", houses, "-t", "price", "--features", "kindd"),
        "--features: there is no column 'kindd'",
        "'kind'",
    )


def test_features_and_test_rows_are_checked_before_training(houses: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explain, "cross_validate", lambda *_, **__: pytest.fail("trained too early"))
    error_message(invoke("explain", houses, "-t", "price", "--features", "price"), "'price' is the target")
    error_message(invoke("explain", houses, "-t", "price", "--test", "no.csv"), "no file no.csv")
    rows(1, seed=2).to_csv("one.csv", index=False)
    error_message(invoke("explain", houses, "-t", "price", "--test", "one.csv"), "1 usable row in one.csv")


def test_text_in_a_numeric_column_of_test_rows_names_both_files(houses: Path) -> None:
    rows(90, seed=2).assign(b="big").to_csv("new.csv", index=False)
    message = error_message(
        invoke("explain", houses, "-t", "price", "--test", "new.csv"), "'big'", f"{houses} has numeric values"
    )
    assert "--numeric" not in message


def test_zero_jobs_are_rejected(houses: Path) -> None:
    error_message(
        invoke("explain", houses, "-t", "price", "--n-jobs", "0"), "--n-jobs", "n_jobs must be 1 to 1,024", "-1 for all"
    )


def test_standard_output_holds_only_the_page(houses: Path, folder: Path) -> None:
    result = invoke("explain", houses, "-t", "price", *QUICK, "--out", "-")
    assert result.stdout.startswith("<!doctype html>")
    assert result.stdout.rstrip().endswith("</html>")
    assert [path.name for path in folder.iterdir()] == ["houses.csv"]
    error_message(invoke("explain", houses, "-t", "price", "--out", "-", "--json", "-"), "--out - and --json -")


def test_unknown_fidelity_is_not_printed_as_failed(houses: Path) -> None:
    result = invoke("explain", houses, "-t", "price", *QUICK, "--json", "out.json")
    fidelity = {
        one.feature: one.fidelity.verdict
        for one in sg.Report.load("out.json").summary.features
        if one.fidelity is not None
    }
    assert "unknown" in fidelity.values()
    for name, verdict in fidelity.items():
        line = next(
            line for line in result.stdout.splitlines() if line.startswith(f"{name} ") and "resampled rows" in line
        )
        assert ("unrealistic" in line) == (verdict == "failed")


def test_unknown_loss_is_rejected_and_nothing_is_written(houses: Path, folder: Path) -> None:
    error_message(invoke("explain", houses, "-t", "price", *QUICK, "--loss", "anger"), "anger")
    assert [path.name for path in folder.iterdir()] == ["houses.csv"]


def test_cross_validation_scores_held_out_rows_only(houses: Path) -> None:
    """Noise cannot be predicted; rows that were trained on would have a much smaller loss."""
    frame = rows(400)
    frame["price"] = np.random.default_rng(3).normal(size=len(frame))
    frame.to_csv(houses, index=False)
    (score,) = cross_validate(task_of(houses, "price", "sold"), forest=False, random_state=1)
    assert score.value < 2 * score.std_error


def test_cross_validated_r2_agrees_with_scikit_learn(houses: Path) -> None:
    from sklearn.metrics import r2_score
    from sklearn.model_selection import KFold

    task = task_of(houses, "price", "sold")
    predictions = np.empty(len(task.y))
    for training, held_out in KFold(5, shuffle=True, random_state=1).split(task.X):
        model = DefaultModel("regression").fit(task.X.iloc[training], task.y.iloc[training])
        predictions[held_out] = model.predict(task.X.iloc[held_out])
    (score,) = cross_validate(task, forest=False, random_state=1)
    assert score.value == pytest.approx(r2_score(task.y, predictions), abs=0.01)  # constants are those of the folds


@pytest.mark.parametrize("forest", [False, True])
def test_default_model_handles_levels_missing_values_dates_and_new_levels(forest: bool) -> None:
    X = rows()[["a", "kind"]].assign(day=pd.date_range("2024-01-01", periods=240))
    X["kind"] = X["kind"].astype("category")
    y = rows()["price"]
    model = DefaultModel("regression", forest=forest).fit(X, y)
    unknown = X.assign(kind=pd.Categorical(["castle"] * 240))
    assert np.corrcoef(model.predict(X), y)[0, 1] > 0.9
    assert np.isfinite(model.predict(unknown)).all()
    assert not hasattr(model, "predict_proba")


def test_split_is_stratified_and_uses_each_row_once(houses: Path) -> None:
    task = task_of(houses, "sold", "price")
    learned, held_out = split_rows(task, random_state=1)
    assert len(learned.y) + len(held_out.y) == len(task.y)
    assert abs((learned.y == "yes").mean() - (held_out.y == "yes").mean()) < 0.02
    assert train(learned, forest=False, random_state=1).classes_.tolist() == ["no", "yes"]


def test_integer_targets_are_classes_only_if_few_distinct_values(folder: Path) -> None:
    frame = rows()
    frame["stars"] = np.arange(len(frame)) % 5
    frame["visits"] = np.arange(len(frame)) % 37
    frame.to_csv("houses.csv", index=False)
    data = read_table_file(options(Path("houses.csv")))
    assert learning_task(data, "stars", None).kind == "classification"
    assert learning_task(data, "visits", None).kind == "regression"
    assert learning_task(data, "stars", "regression").kind == "regression"


def test_rare_classes_are_left_out_with_a_note(folder: Path) -> None:
    frame = rows()
    frame.loc[:4, "sold"] = "perhaps"
    frame.to_csv("houses.csv", index=False)
    task = learning_task(read_table_file(options(Path("houses.csv"))), "sold", None)
    assert set(task.y) == {"no", "yes"}
    assert any("'perhaps'" in note for note in task.notes)
