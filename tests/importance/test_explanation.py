"""Stories: every number in a sentence is a table's, and no sentence contradicts the numbers."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

import subgrove as sg
from subgrove.exceptions import ParameterError

Lines = dict[str, Any]
TRAIN, TEST = sg.datasets.bike(split=0.7, random_state=1)


def bike_model(X: Any) -> Any:
    temp, hum = (np.asarray(X[name], dtype=float) for name in ("temp", "hum"))
    return 1900 + 140 * np.minimum(temp, 24) + 1900 * (np.asarray(X["yr"]) == "2012") - 12 * hum


def bike(**options: Any) -> sg.ImportanceResult:
    return sg.importance(
        bike_model, TEST.X, TEST.y, **{"train": TRAIN.X, "loss": "absolute_error", "random_state": 1, **options}
    )


def simulated(name: str, **options: Any) -> sg.ImportanceResult:
    scenario = sg.simulate.scenario(name)
    train, test = scenario.sample(300, random_state=1), scenario.sample(200, random_state=2)
    return sg.importance(scenario.model, test.X, test.y, **{"train": train.X, "random_state": 1, **options})


RESULTS: dict[str, Any] = {
    "bike": bike,
    "linear": lambda: simulated("linear"),
    "nonlinear": lambda: simulated("nonlinear"),
    "mixed": lambda: simulated("mixed"),
    "cross-fitted": lambda: bike(train=None, features=["temp", "hum"]),
    "groups": lambda: bike(features=["temp", ["temp", "hum"], ["yr", "work"]]),
    "several losses": lambda: bike(features=["temp", "yr"], loss=["absolute_error", "squared_error"]),
    "a score": lambda: bike(features=["temp", "yr"], loss="root_mean_squared_error"),
    "subgroups": lambda: bike(features=["temp", "yr"], sampler="subgroups"),
    "knockoffs": lambda: bike(features=["temp", "hum"], sampler="knockoffs"),
    "marginal": lambda: bike(features=["temp", "yr"], sampler="marginal", train=None),
    "one redraw": lambda: bike(features=["temp", "hum"], n_repeats=1),
    "weights": lambda: bike(features=["temp", "yr"], sample_weight=1 + np.arange(len(TEST.y)) % 3),
    "given": lambda: bike(features=["temp"], given=["season"]),
}
_known: dict[str, sg.ImportanceResult] = {}


def result(name: str) -> sg.ImportanceResult:
    if name not in _known:
        _known[name] = RESULTS[name]()
    return _known[name]


each = pytest.mark.parametrize("name", RESULTS)


def rows(table: Any) -> list[Lines]:
    lines: list[Lines] = table.to_dict("records")
    return lines


def number(text: str) -> float:
    return float(text.replace(",", ""))


def rounded(value: float) -> float:
    """As sentences show it."""
    return number(f"{value:,.3g}" if abs(value) < 1000 else f"{value:,.0f}")


NUMBER = r"-?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:e[+-]\d+)?"
COST = re.compile(
    rf"(?P<verb>grow|fall|worse|better) by (?P<size>{NUMBER})(?:, from (?P<before>{NUMBER}) to (?P<after>{NUMBER}))?"
    rf"(?: \((?P<level>[\d.]+) % interval (?P<low>{NUMBER}) to (?P<high>{NUMBER});"
    r" noise: (?P<noise>[^()]+(?:\(calibrated\)[^()]*)?)\))?"
)


def lines_of(imp: sg.ImportanceResult, feature: str) -> list[Lines]:
    return [line for line in rows(imp.overall) if line["feature"] == feature]


def check_costs(imp: sg.ImportanceResult, feature: str, told: tuple[str, ...]) -> None:
    """Costs, intervals and verdicts are those of the table, one for each loss."""
    found = [match for sentence in told if (match := COST.search(sentence)) and "makes the" in sentence]
    lines = lines_of(imp, feature)
    assert len(found) == len(lines)
    for at, (match, line) in enumerate(zip(found, lines, strict=True)):
        estimate = line["estimate"]
        assert (match["verb"] in {"grow", "worse"}) == (estimate >= 0)
        assert number(match["size"]) == rounded(abs(estimate))
        assert bool(match["before"]) == imp.per_row_losses[at]
        if match["before"]:
            assert number(match["before"]) == rounded(imp.baseline[at])
            assert number(match["after"]) == rounded(imp.baseline[at] + estimate)
        assert bool(match["low"]) == (not np.isnan(line["std_error"]))
        if match["low"]:
            assert number(match["low"]) == rounded(line["conf_low"])
            assert number(match["high"]) == rounded(line["conf_high"])
            assert float(match["level"]) == 100 * imp.level
            assert match["noise"] == line["noise"]


def check_verdicts(imp: sg.ImportanceResult, feature: str, told: tuple[str, ...]) -> None:
    text = " ".join(told)
    lines = [line for line in lines_of(imp, feature) if not np.isnan(line["std_error"])]
    sure = [line for line in lines if line["p_value"] < 0.05]
    nothing = [line for line in lines if line["estimate"] == 0 and line["std_error"] == 0]
    assert text.count("So the model needs") + text.count("So the model uses") == len(sure)
    assert text.count("makes no difference here") == len(nothing)
    below = [line for line in lines if line["conf_high"] < 0]
    assert text.count("does better") == len(below)
    assert text.count("cannot be told from nothing") == len(lines) - len(sure) - len(nothing) - len(below)
    for p in re.findall(r"one-sided p (= [\d.e-]+|below 0.001)", text):
        values = [line["p_value"] for line in lines]
        assert any((p == "below 0.001" and v < 0.001) or p == f"= {v:.2g}" for v in values)


def check_choices(imp: sg.ImportanceResult, feature: str, told: tuple[str, ...]) -> None:
    """What is said to have been chosen is what the table of choices has."""
    candidates = [line for line in rows(imp.choices) if line["feature"] == feature]
    for line in candidates:
        if line["chosen"] and sum(one.get("fold", 0) == line.get("fold", 0) for one in candidates) > 1:
            assert any(f"is {line['score']:.3g}" in sentence or line["sampler"] == "marginal" for sentence in told)


def check_where(imp: sg.ImportanceResult, feature: str, told: tuple[str, ...]) -> None:
    where = re.compile(
        rf"most where (?P<most>.+): (?P<a>{NUMBER}) \+- (?P<b>{NUMBER}) \((?P<n>\d+) rows\); "
        rf"least where (?P<least>.+): (?P<c>{NUMBER}) \+- (?P<d>{NUMBER}) \((?P<m>\d+) rows\)\."
    )
    for sentence in told:
        match = where.search(sentence)
        if match is None:
            continue
        lines = [line for line in rows(imp.by_subgroup) if line["feature"] == feature]
        by_rule = {line["rule"]: line for line in lines}
        most, least = by_rule[match["most"]], by_rule[match["least"]]
        assert number(match["a"]) == rounded(most["estimate"])
        assert number(match["b"]) == rounded(most["std_error"])
        assert int(match["n"]) == round(most["n"])
        assert number(match["c"]) == rounded(least["estimate"])
        assert number(match["d"]) == rounded(least["std_error"])
        assert int(match["m"]) == round(least["n"])
        assert most["estimate"] == max(line["estimate"] for line in lines)
        assert least["estimate"] == min(line["estimate"] for line in lines)


def check_trust(imp: sg.ImportanceResult, feature: str, told: tuple[str, ...]) -> None:
    text = " ".join(told)
    (line,) = [each for each in rows(imp.fidelity_checks) if each["feature"] == feature]
    assert ("pass for real ones (" in text or text.endswith("pass for real ones.")) == (line["fidelity"] == "passed")
    assert ("Do not trust this number" in text) == (line["fidelity"] == "failed")
    if line["fidelity"] == "passed" and not np.isnan(line["auc"]):
        assert f"AUC {line['auc']:.2f}" in text


@each
def test_stories_tell_the_numbers_of_the_tables(name: str) -> None:
    imp = result(name)
    for feature in imp.features:
        told = imp.explain(feature).sentences
        check_costs(imp, feature, told)
        check_verdicts(imp, feature, told)
        check_choices(imp, feature, told)
        check_trust(imp, feature, told)
        if all(imp.per_row_losses) and len(imp.losses) == 1:
            check_where(imp, feature, told)


@each
def test_stories_are_sentences(name: str) -> None:
    imp = result(name)
    for feature in imp.features:
        story = imp.explain(feature)
        assert story.feature == feature
        assert str(story) == repr(story) == "\n".join(story.sentences)
        for sentence in story.sentences:
            assert sentence.endswith(".")
            assert not re.search(r"nan|None|  |\.\.|inf\b", sentence)
        # But for the opening of the shift, which is a formula.
        assert all(re.match(r"[A-Z]", sentence) or sentence.startswith(feature) for sentence in story.sentences)


def test_the_story_of_temperature() -> None:
    told = str(result("bike").explain("temp"))
    assert told.startswith("temp is redrawn from ")
    assert "So the model needs temp beyond what the other columns tell" in told
    assert "Rows with temp redrawn pass for real ones" in told


def test_a_feature_that_the_model_does_not_use_makes_no_difference() -> None:
    told = str(result("bike").explain("wind"))
    assert "grow by 0, from " in told
    assert "wind makes no difference here" in told
    assert "It matters" not in told


def test_a_feature_whose_values_do_harm_is_said_to() -> None:
    """The model adds what it should take away."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(400, 2)), columns=["a", "b"])
    y = -X["a"] + 0.1 * rng.normal(size=400)
    imp = sg.importance(lambda X: X["a"], X[:200], y[:200], train=X[200:], features=["a"], n_repeats=20, random_state=1)
    told = imp.explain("a").sentences
    assert imp.overall["conf_high"][0] < 0
    assert any("fall by" in sentence for sentence in told)
    assert "So the model does better with other values of a on these rows, by more than noise." in told
    assert "needs" not in str(imp.explain("a"))


def test_folds_are_told_apart() -> None:
    imp = result("cross-fitted")
    told = str(imp.explain("temp"))
    assert "In the rows of fold 0, temp is redrawn" in told
    assert "In the rows of fold 1, temp is redrawn" in told
    assert set(rows(imp.choices)[0]) >= {"fold", "sampler", "chosen"}


def test_groups_are_asked_for_by_name_or_by_their_features() -> None:
    imp = result("groups")
    assert str(imp.explain(["temp", "hum"])) == str(imp.explain("temp + hum"))
    assert "redrawn together" in str(imp.explain("temp + hum"))


def test_scores_get_worse_and_have_no_way_from_to() -> None:
    told = str(result("a score").explain("temp"))
    assert "makes the root mean squared error of the model worse by" in told
    assert "there is no interval for it" in told
    assert ", from" not in told


def test_other_samplers_are_named() -> None:
    assert "temp is redrawn by the sampler 'subgroups', within" in str(result("subgroups").explain("temp"))
    assert "temp is redrawn by the sampler 'marginal'." in str(result("marginal").explain("temp"))
    assert "So the model uses temp" in str(result("marginal").explain("temp"))


def test_a_story_of_loco_does_not_speak_of_redrawing() -> None:
    columns = ["temp", "hum", "wind"]
    model = LinearRegression().fit(TRAIN.X[columns], TRAIN.y)
    imp = sg.loco(model, TEST.X[columns], TEST.y, train=(TRAIN.X[columns], TRAIN.y), loss="absolute_error")
    for feature in columns:
        told = imp.explain(feature).sentences
        assert told[0].startswith(f"Fitting again without {feature} makes the absolute error of the model ")
        assert "edrawn" not in " ".join(told)
        check_costs(imp, feature, told)
    assert "So models of this kind need temp beyond what the other columns tell" in str(imp.explain("temp"))


@pytest.mark.parametrize("name", ["bike", "cross-fitted", "groups", "several losses", "subgroups"])
def test_a_loaded_result_tells_the_same(name: str, tmp_path: Path) -> None:
    imp = result(name)
    imp.save(tmp_path / "importance.json")
    loaded = sg.ImportanceResult.load(tmp_path / "importance.json")
    for feature in imp.features:
        assert loaded.explain(feature).sentences == imp.explain(feature).sentences
    pd.testing.assert_frame_equal(loaded.choices, imp.choices)


def test_a_failing_certificate_is_told() -> None:
    rng = np.random.default_rng(0)
    a = rng.normal(size=800)
    X = pd.DataFrame({"a": a, "b": a + 0.05 * rng.normal(size=800)})
    imp = sg.importance(lambda X: X["a"], X[:400], X["a"][:400], sampler="marginal", features=["a"], random_state=1)
    assert imp.fidelity_checks["fidelity"][0] == "failed"
    assert imp.explain("a").sentences[-1] == f"Do not trust this number: {imp.fidelity_checks['reason'][0]}."


def test_without_certificates_nothing_is_said_of_trust() -> None:
    told = str(bike(features=["temp"], check_fidelity=False).explain("temp"))
    assert "pass for real" not in told
    assert "trust" not in told


def test_the_gap_is_added_if_the_marginal_importance_is_given() -> None:
    imp, marginal = bike(features=["temp"]), bike(features=["temp"], sampler="marginal", train=None)
    plain, longer = imp.explain("temp").sentences, imp.explain("temp", marginal=marginal).sentences
    assert longer[: len(plain)] == plain
    assert longer[len(plain) :] == imp.explain_gap(marginal, "temp").sentences


def test_other_levels_and_sources_of_noise_are_those_of_the_tables() -> None:
    imp = result("bike").with_level(0.9).with_noise("test rows")
    told = imp.explain("temp").sentences
    assert any("(90 % interval " in sentence and "noise: test rows)" in sentence for sentence in told)
    check_costs(imp, "temp", told)


def test_few_redraws_are_told() -> None:
    imp = result("bike")
    noisy = replace(imp, scores=tuple(replace(one, mc_variance=100 * one.mc_variance) for one in imp.scores))
    assert any("The number of redraws (10) is small" in sentence for sentence in noisy.explain("temp").sentences)
    assert not any("is small" in sentence for sentence in imp.explain("temp").sentences)


def test_features_that_are_not_there_are_refused() -> None:
    with pytest.raises(ParameterError, match="feature='sun' is not among the features of this result"):
        result("bike").explain("sun")


def test_explanations_are_frozen() -> None:
    story = result("bike").explain("temp")
    assert isinstance(story, sg.Explanation)
    with pytest.raises(AttributeError):
        story.feature = "hum"  # type: ignore[misc]


def test_choices_are_empty_but_have_their_columns_without_the_sampler_that_chooses() -> None:
    choices = result("subgroups").choices
    assert len(choices) == 0
    assert list(choices.columns) == ["feature", "sampler", "score", "score_gap", "std_error", "complexity", "chosen"]
