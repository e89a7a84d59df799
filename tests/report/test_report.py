"""A report has the results of the verbs, and is written atomically."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import subgrove as sg
from subgrove._report.summary import Summary

from .reports import CREATED, ODD, SCRIPT, TEST, TRAIN, bike_report, closed_form, odd_report

PAIR = ["a", "b"]
SMALL: dict[str, Any] = {"n_repeats": 3, "random_state": 1, "labels": {"created": CREATED}}


def some(columns: list[str], n: int | None = None) -> tuple[Any, Any]:
    train, test = TRAIN[0][columns], TEST[0][columns]
    return (train, TRAIN[1]), (test[:n], TEST[1][:n])


def sentences(value: Any) -> Iterator[str]:
    """Every text in a summary."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for one in value.values():
            yield from sentences(one)
    elif isinstance(value, list):
        for one in value:
            yield from sentences(one)


def test_importances_are_those_of_the_verb_with_the_same_seed() -> None:
    summary = bike_report().summary
    train, test = sg.datasets.bike(split=0.7, random_state=1)
    model = lambda X: 1900 + 140 * X["temp"].clip(upper=24) + 1900 * (X["yr"] == "2012") - 12 * X["hum"]  # noqa: E731  # short
    common: dict[str, Any] = {
        "features": ["temp", "hum", "yr"],
        "loss": "absolute_error",
        "n_repeats": 5,
        "random_state": 1,
    }
    imp = sg.importance(model, test.X, test.y, train=train.X, **common)
    marginal = sg.importance(model, test.X, test.y, sampler="marginal", **common)
    for result, name in ((imp, "conditional"), (marginal, "marginal")):
        table = result.overall.set_index("feature")
        for one in summary.features:
            estimate = getattr(one, name)
            line = table.loc[one.feature]
            for column in ("estimate", "std_error", "conf_low", "conf_high", "p_value", "mc_error"):
                assert getattr(estimate, column) == line[column]
    by_subgroup = imp.by_subgroup
    for one in summary.features:
        own = by_subgroup[by_subgroup["feature"] == one.feature]
        assert [part.rule for part in one.subgroups] == own["rule"].tolist()
        assert [part.estimate.estimate for part in one.subgroups if part.estimate] == own["estimate"].tolist()
        assert sum(part.n for part in one.subgroups) == len(test.X)
    assert summary.baseline == imp.baseline[0]


def test_tree_curves_distribution_and_subgroups_are_of_the_same_subgroups() -> None:
    temp = next(one for one in bike_report().summary.features if one.feature == "temp")
    leaves = [node for node in temp.tree if node.subgroup is not None]
    assert [node.subgroup for node in leaves] == [part.subgroup for part in temp.subgroups] == [0, 1, 2, 3]
    assert [node.n_train for node in leaves] == [part.n_train for part in temp.subgroups]
    assert temp.tree[0].parent is None
    assert all(node.parent is not None and temp.tree[node.parent].subgroup is None for node in temp.tree[1:])
    curves = {line.subgroup: line.n for line in temp.lines if line.kind == "pdp" and line.subgroup is not None}
    assert curves == {part.subgroup: part.n for part in temp.subgroups}
    assert [sum(counts) for counts in temp.distribution.by_subgroup] == [part.n for part in temp.subgroups]
    assert {(line.kind, line.subgroup) for line in temp.lines} >= {("pdp", None), ("ale", None)}


def test_gap_steps_lead_from_marginal_to_conditional() -> None:
    for report in (bike_report(), odd_report()):
        for one in report.summary.features:
            if one.gap:
                assert one.gap[0].start == pytest.approx(one.marginal.estimate)
                assert one.gap[-1].end == pytest.approx(one.conditional.estimate)
                total = one.marginal.estimate - one.conditional.estimate
                assert sum(part.step for part in one.gap) == pytest.approx(total, abs=1e-9)


def test_features_are_ranked_by_conditional_importance() -> None:
    found = bike_report().summary.features
    assert [one.rank for one in found] == [1, 2, 3]
    estimates = [one.conditional.estimate for one in found]
    assert estimates == sorted(estimates, reverse=True)


def test_no_sentence_has_nan_none_or_minus_zero() -> None:
    for report in (bike_report(), odd_report()):
        for text in sentences(report.to_dict()):
            assert not re.search(r"\bnan\b|\bNone\b|-0(?![.\d])|\binf\b", text), text


def test_highlights_name_the_important_features() -> None:
    summary = bike_report().summary
    important = [one for one in summary.features if one.conditional.finding == "important"]
    assert len(summary.highlights) <= 5
    assert summary.highlights[1].startswith(f"Of 3 features, {len(important)} are important")
    assert all(one.feature in summary.highlights[1] for one in important)


def test_a_report_comes_back_from_json_and_makes_the_same_page(tmp_path: Path) -> None:
    report = odd_report()
    for name in ("r.json", "r.md", "r.HTML"):
        report.save(tmp_path / name)
    back = sg.Report.load(tmp_path / "r.json")
    assert back == report
    assert back.to_html() == (tmp_path / "r.HTML").read_text(encoding="utf-8")
    assert back.to_markdown() == (tmp_path / "r.md").read_text(encoding="utf-8")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["r.HTML", "r.json", "r.md"]


def test_an_existing_file_stays_if_writing_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "r.md"
    path.write_text("old")

    def full(*_: Any, **__: Any) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="no space"):
        odd_report().save(path)
    assert path.read_text() == "old"
    assert [one.name for one in tmp_path.iterdir()] == ["r.md"]


@pytest.mark.parametrize(
    ("name", "says"), [("r.pdf", "must end in"), ("r", "must end in"), ("no/r.md", "does not exist")]
)
def test_unknown_suffixes_and_missing_folders_are_rejected(tmp_path: Path, name: str, says: str) -> None:
    with pytest.raises(sg.exceptions.ParameterError, match=says):
        odd_report().save(tmp_path / name)


def test_a_folder_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "r.html").mkdir()
    with pytest.raises(sg.exceptions.ParameterError, match=r"r\.html' is a folder"):
        odd_report().save(tmp_path / "r.html")
    assert [one.name for one in tmp_path.iterdir()] == ["r.html"]


def test_one_row_does_not_make_a_model_nearly_perfect() -> None:
    train, (X, y) = some(PAIR, 1)
    summary = sg.report(lambda X: 0 * X["a"] + y.iloc[0], train, (X, y), **SMALL).summary
    assert (summary.model.verdict, "no standard error" in summary.model.verdict_sentence) == ("uncertain", True)
    assert not any("perfect" in sentence for sentence in (*summary.highlights, *summary.cautions))


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"schema": "other"}', "[" * 100_000, '"\ud7ff'])
def test_files_without_a_report_are_rejected(tmp_path: Path, text: str) -> None:
    path = tmp_path / "r.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(sg.exceptions.FormatError):
        sg.Report.load(path)


@pytest.mark.parametrize(
    ("change", "place"),
    [
        (
            lambda one: one["conditional"].update(conf_low=1e9),
            r"conf_low is above conf_high - at `\$.features\[0\].conditional`",
        ),
        (
            lambda one: one["lines"][0]["y"].pop(),
            r"x, y, low, high and support have different lengths - at `\$.features\[0\].lines\[0\]`",
        ),
        (lambda one: one["lines"][0]["x"].__setitem__(0, 1.5), r"x mixes .*lines\[0\]"),
        (lambda one: one["lines"][0]["support"].__setitem__(0, -7), r"support has .*lines\[0\]"),
        (lambda one: one["lines"][0].update(subgroup=99), r"lines has a subgroup"),
        (lambda one: one["distribution"]["counts"].append(1), "counts must have .*distribution"),
        (lambda one: one["distribution"].update(by_subgroup=[[]]), "by_subgroup must have .*distribution"),
        (lambda one: one["distribution"]["counts"].__setitem__(0, -1), r"`int` >= 0 .*counts"),
        (lambda one: one["tree"][0].update(parent=3), r"tree\[0\].parent must be"),
        (lambda one: one["marginal"].update(std_error=-1.0), "std_error is negative .*marginal"),
    ],
)
def test_a_report_whose_parts_do_not_fit_together_is_rejected(tmp_path: Path, change: Any, place: str) -> None:
    values = bike_report().to_dict()
    change(values["features"][0])
    (tmp_path / "r.json").write_text(json.dumps(values), encoding="utf-8")
    with pytest.raises(sg.exceptions.FormatError, match=place):
        sg.Report.load(tmp_path / "r.json")


def test_every_kind_of_column_has_its_place() -> None:
    summary = odd_report().summary
    assert json.loads(json.dumps(summary.to_dict(), allow_nan=False))["title"] == "What the model of y | z uses"
    found = {one.feature: one for one in summary.features}
    assert set(found) == set(TEST[0].columns)
    assert {SCRIPT, ODD} <= set(found)
    when = found["when"]
    assert [label[:2] for _, label in when.x_labels] == ["20"] * len(when.x_labels)
    assert len(when.x_labels) == 5
    assert found["nothing"].lines == ()
    assert "No row of X has a value of 'nothing'" in found["nothing"].effect_sentences[0]
    assert found["gaps"].distribution.n_missing == int(TEST[0]["gaps"].isna().sum())
    assert sum(found["gaps"].distribution.counts) == int(TEST[0]["gaps"].notna().sum())
    assert found["flag"].distribution.levels == ("False", "True")
    assert found["still"].conditional.estimate == 0
    columns = {one.name: one for one in summary.data.columns}
    assert (columns["when"].kind, columns["when"].note) == ("date", "read as dates")
    assert any("constant in the training rows" in sentence for sentence in summary.data.sentences)
    assert summary.created == CREATED


def test_a_classifier_is_explained_in_log_loss_with_curves_of_the_second_class() -> None:
    from sklearn.linear_model import LogisticRegression

    (X, _), (tested, _) = some(PAIR)
    y, y_test = np.where(X["a"] > 0, "yes", "no"), np.where(tested["a"] + 0.5 * tested["b"] > 0, "yes", "no")
    model = LogisticRegression().fit(X, y)
    summary = sg.report(model, (X, y), (tested, y_test), **SMALL).summary
    assert (summary.loss, summary.model.task, summary.model.classes) == ("log_loss", "classification", ("no", "yes"))
    assert {line.output for one in summary.features for line in one.lines} == {"yes"}
    names = [score.name for score in summary.model.scores]
    assert names == ["log loss", "Brier score", "accuracy", "balanced accuracy", "area under the ROC curve"]
    assert summary.model.verdict == "good"


def test_of_many_classes_the_most_frequent_three_have_curves() -> None:
    from sklearn.tree import DecisionTreeClassifier

    (X, _), (tested, _) = some(PAIR)
    cuts = [-1.0, -0.3, 0.3, 1.0]
    y, y_test = (np.array(list("vwxyz"))[np.digitize(table["a"], cuts)] for table in (X, tested))
    model = DecisionTreeClassifier(max_depth=4, random_state=1).fit(X, y)
    summary = sg.report(model, (X, y), (tested, y_test), features=["a"], **SMALL).summary
    counts = pd.Series(y).value_counts()
    assert {line.output for line in summary.features[0].lines} == set(counts.index[:3])
    assert any("3 most frequent of 5 classes" in sentence for sentence in summary.methods.sentences)
    one_class = y_test == "x"
    single = sg.report(model, (X, y), (tested[one_class], y_test[one_class]), features=["a"], **SMALL).summary
    assert single.model.classes == tuple("vwxyz")


def test_a_classifier_without_probabilities_is_explained_by_its_labels() -> None:
    from sklearn.linear_model import RidgeClassifier

    (X, _), (tested, _) = some(PAIR)
    y, y_test = np.where(X["a"] > 0, "yes", "no"), np.where(tested["a"] > 0, "yes", "no")
    summary = sg.report(RidgeClassifier().fit(X, y), (X, y), (tested, y_test), **SMALL).summary
    assert summary.loss == "zero_one"
    names = [score.name for score in summary.model.scores]
    assert names == ["share of rows misclassified", "accuracy", "balanced accuracy"]
    assert sum(map(sum, summary.model.confusion)) == len(tested)
    shares = [y for one in summary.features for line in one.lines if line.kind == "pdp" for y in line.y]
    assert 0 <= min(shares) < max(shares) <= 1


def test_three_test_rows_give_a_report_with_unknown_fidelity() -> None:
    summary = sg.report(closed_form, *some(["a", "b", "level"], 3), **SMALL).summary
    assert summary.data.n_test == 3
    assert all(one.fidelity is None or one.fidelity.verdict == "unknown" for one in summary.features)
    assert any("could not be checked" in sentence for sentence in summary.cautions)


def test_one_column_has_no_dependence() -> None:
    summary = sg.report(lambda X: 2 * X["a"], *some(["a"]), **SMALL).summary
    assert summary.dependence[0].explained is None
    assert "was not computed" in summary.dependence_sentences[0]


def test_a_useless_model_is_marked_everywhere() -> None:
    summary = sg.report(lambda X: 5 * X["b"] * -1, *some(PAIR), **SMALL).summary
    assert summary.model.verdict == "useless"
    assert "worse than a constant prediction" in summary.highlights[0]
    assert "does not predict the target" in summary.cautions[0]


def test_training_rows_as_test_rows_are_reported() -> None:
    train, _ = some(PAIR)
    summary = sg.report(lambda X: 2 * X["a"], train, train, **SMALL).summary
    assert "the same rows" in summary.data.sentences[0]
    assert any("have the same rows" in warning for warning in summary.warnings)


@pytest.mark.parametrize("sampler", ["subgroups", "imputation", "knockoffs"])
def test_other_samplers_and_subgroups_have_reports(sampler: str) -> None:
    found = sg.report(lambda X: 2 * X["a"], *some(PAIR), sampler=sampler, **SMALL).summary
    assert all(len(one.subgroups) <= 4 for one in found.features)
    groups = sg.find_subgroups(TRAIN[0][PAIR], max_depth=1)
    with_groups = sg.report(lambda X: 2 * X["a"], *some(PAIR), sampler=groups, **SMALL).summary
    first = with_groups.features[0]
    assert [part.rule for part in first.subgroups] == list(groups[first.feature].rules)


@pytest.mark.parametrize(
    ("change", "error", "says"),
    [
        ({"features": ["zz"]}, "ParameterError", "features names 'zz'"),
        ({"features": [["a", "a"]]}, "ParameterError", "names a column twice"),
        ({"loss": "auc"}, "ParameterError", "score of all rows"),
        ({"loss": ["squared_error", "absolute_error"]}, "ParameterError", "has 2 losses"),
        ({"sampler": "marginal"}, "ParameterError", "does not condition on other columns"),
        ({"labels": {"columns": {"zz": "x"}}}, "ParameterError", "'columns'.* has 'zz'"),
        ({"labels": {"title": 3}}, "ParameterError", "'title'.* must be a str"),
        ({"labels": {"heading": "x"}}, "ParameterError", "keys among .*got 'heading'"),
        ({"max_depth": -1}, "ParameterError", "max_depth"),
        ({"train": TRAIN[0]}, "ParameterError", "train must be a pair"),
        ({"train": (TRAIN[0][["a"]], TRAIN[1])}, "InputError", "train lacks 'b'"),
        ({"test": (TEST[0][PAIR], TEST[1][:4])}, "InputError", "In test: y has 4 values"),
        ({"test": (TEST[0][PAIR], None)}, "InputError", "test has no target"),
        (
            {"test": (TEST[0][PAIR], TEST[1] * 1e200)},
            "InputError",
            "In test: y has values up to .*e.200.*Divide",
        ),
        ({"train": (TRAIN[0][PAIR], TRAIN[1] * 1e-200)}, "InputError", "In train: .*e-200.*Multiply"),
        (
            {"train": (TRAIN[0][PAIR].set_axis(["a", " "], axis=1), TRAIN[1])},
            "InputError",
            "without a name .* position 1",
        ),
        ({"train": (TRAIN[0][PAIR], TRAIN[1].where(TRAIN[1] > 0))}, "InputError", "In train: y has"),
    ],
)
def test_invalid_input_is_rejected_with_the_argument_and_a_remedy(
    change: dict[str, Any], error: str, says: str
) -> None:
    train, test = some(PAIR)
    arguments = {"train": train, "test": test, **SMALL, **change}
    with pytest.raises(getattr(sg.exceptions, error), match=says):
        sg.report(lambda X: 2 * X["a"], **arguments)


def test_a_model_that_raises_is_a_model_error() -> None:
    def broken(X: Any) -> Any:
        raise ZeroDivisionError("no")

    with pytest.raises(sg.exceptions.ModelError, match="ZeroDivisionError"):
        sg.report(broken, *some(PAIR), **SMALL)


def test_a_summary_survives_json() -> None:
    assert Summary.from_json(bike_report().to_json()) == bike_report().summary


def test_in_a_notebook_names_are_escaped() -> None:
    shown = odd_report()._repr_html_()
    assert "<script" not in shown
    assert "&lt;script&gt;" in shown


def leaking(pair: sg.datasets.Dataset) -> tuple[pd.DataFrame, Any]:
    return pair.X[["temp", "hum"]].assign(leak=np.asarray(pair.y) / 1000), pair.y


def test_a_column_that_determines_the_target_is_named_in_findings_and_cautions() -> None:
    train, test = sg.datasets.bike(split=0.7, random_state=1)
    summary = sg.report(lambda X: 90 * X["temp"], leaking(train), leaking(test), n_repeats=2, random_state=1).summary
    for sentence in (summary.highlights[1], summary.cautions[1]):
        assert sentence.startswith(
            "Possible target leakage: leak alone nearly determines cnt: it explains more than 99 %"
        )
    assert [one.columns for one in summary.model.leakage] == [("leak",)]
    usual = bike_report().summary
    assert usual.model.leakage == ()
    assert not any("leakage" in sentence for sentence in (*usual.highlights, *usual.cautions))


def test_a_nearly_perfect_model_without_such_a_column_gets_a_leakage_warning() -> None:
    rng = np.random.default_rng(1)
    X = pd.DataFrame(rng.normal(size=(300, 3)), columns=["a", "b", "c"])
    pair = X, (X["a"] * X["b"] * X["c"]).rename("volume")
    summary = sg.report(lambda X: X["a"] * X["b"] * X["c"], pair, pair, n_repeats=2, random_state=1).summary
    assert summary.highlights[2].startswith("The model is nearly perfect.")
    assert "the feature with the largest importance" in summary.highlights[2]
    assert "contains the target" in summary.cautions[0]


def test_large_data_is_explained_on_a_sample_of_its_rows(tmp_path: Path) -> None:
    train, test = sg.datasets.bike(split=0.7, random_state=1)
    path = tmp_path / "bike.parquet"
    test.X.assign(cnt=np.asarray(test.y)).to_parquet(path)

    def model(X: pd.DataFrame) -> Any:
        return 100 * X["temp"]

    rows = sg.LargeData(path, sample_size=100)
    summary = sg.report(model, train, (rows, "cnt"), features=["temp"], **SMALL).summary
    assert summary.data.n_test == 100
    assert "The test rows are a random sample of 219 rows." in summary.data.sentences
    assert [one.name for one in summary.data.columns] == list(test.X.columns)
    with pytest.raises(sg.exceptions.ParameterError, match="name of the target column"):
        sg.report(model, train, (rows, None), features=["temp"], **SMALL)


def redundant(n: int, seed: int) -> tuple[pd.DataFrame, Any]:
    """`length`, `width` and `weight` are nearly the same; y depends on them and a little on `age`, not on `noise`."""
    rng = np.random.default_rng(seed)
    size = rng.normal(size=n)
    near = {name: size + 0.15 * rng.normal(size=n) for name in ("length", "width", "weight")}
    X = pd.DataFrame({**near, "age": rng.normal(size=n), "noise": rng.normal(size=n)})
    return X, 10 * size + 3 * X["age"] + rng.normal(size=n)


def mean_of_sizes(X: pd.DataFrame) -> Any:
    return 10 * X[["length", "width", "weight"]].mean(axis=1) + 3 * X["age"]


def test_redundant_features_lead_the_findings_as_a_group() -> None:
    summary = sg.report(mean_of_sizes, redundant(500, 3), redundant(300, 4), n_repeats=5, random_state=1).summary
    (group,) = summary.groups
    assert group.features == ("length", "width", "weight")
    assert group.conditional.finding == "important"
    assert group.conditional.estimate > 5 * max(
        one.conditional.estimate for one in summary.features if one.feature in group.features
    )
    assert "length, width and weight together raise the absolute error by" in summary.highlights[1]
    assert summary.highlights[1].startswith("Of 2 features and 1 group of redundant features, 2 are important")
    assert not any("noise" in sentence for sentence in summary.highlights)
    assert any("rise with age" in sentence for sentence in summary.highlights)


def test_joint_importance_is_that_of_the_verb() -> None:
    train, test = redundant(400, 1), redundant(200, 2)
    groups = [["length", "width"], "age"]
    summary = sg.report(mean_of_sizes, train, test, features=groups, n_repeats=5, random_state=1).summary
    (group,) = summary.groups
    imp = sg.importance(
        mean_of_sizes, *test, train=train[0], features=groups, loss="absolute_error", n_repeats=5, random_state=1
    )
    assert group.conditional.estimate == imp.overall["estimate"][0]
    assert sorted(one.feature for one in summary.features) == ["age", "length", "width"]


def test_without_anything_that_adds_to_all_others_marginal_importance_is_named() -> None:
    """The two features of the report are copies of each other, and of a third column that is held fixed."""
    pairs = [
        (X[["length"]].assign(one=X["length"], two=X["length"]), y) for X, y in (redundant(400, 1), redundant(100, 2))
    ]

    def model(X: pd.DataFrame) -> Any:
        return 10 * X.mean(axis=1)

    summary = sg.report(model, *pairs, features=["one", "two"], n_repeats=5, random_state=1).summary
    assert summary.groups[0].name == "one and two"
    assert "No feature is shown to be important given the others" in summary.highlights[1]
    assert "Shuffled among all rows, one and two together raise" in summary.highlights[1]


def test_the_share_that_counts_as_important_is_adjustable_and_stated() -> None:
    train, test = redundant(400, 3), redundant(300, 4)
    found = {
        share: sg.report(mean_of_sizes, train, test, min_share=share, n_repeats=3, random_state=1).summary
        for share in (0.01, 0.5)
    }
    age = {share: next(one for one in summary.features if one.feature == "age") for share, summary in found.items()}
    assert (age[0.01].conditional.finding, age[0.5].conditional.finding) == ("important", "small")
    assert "less than 50 % of the gain over the best constant prediction" in age[0.5].headline
    assert found[0.5].important.size == 50 * found[0.01].important.size
    assert "at least 50 % of the gain" in found[0.5].highlights[1]
