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
from subgrove._core.text import number as formatted
from subgrove._importance.explanation import overall_findings
from subgrove.exceptions import ParameterError
from subgrove.samplers.auto.choice import DESCRIPTIONS

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
    return number(formatted(value))


NUMBER = r"-?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:e[+-]\d+)?"
COST = re.compile(
    rf"(?P<verb>increases|decreases|worsens|improves) the [\w ]+? by (?P<size>{NUMBER})"
    rf"(?:, from (?P<before>{NUMBER}) to (?P<after>{NUMBER}))?"
    rf"(?: \((?P<level>[\d.]+) % interval (?P<low>{NUMBER}) to (?P<high>{NUMBER});"
    r" noise: (?P<noise>[^()]+(?:\(calibrated\)[^()]*)?)\))?"
)


def lines_of(imp: sg.ImportanceResult, feature: str) -> list[Lines]:
    return [line for line in rows(imp.overall) if line["feature"] == feature]


def check_costs(imp: sg.ImportanceResult, feature: str, sentences: tuple[str, ...]) -> None:
    """Costs, intervals and verdicts are those of the table, one for each loss."""
    found = [match for sentence in sentences if (match := COST.search(sentence))]
    lines = lines_of(imp, feature)
    assert len(found) == len(lines)
    for at, (match, line) in enumerate(zip(found, lines, strict=True)):
        estimate = line["estimate"]
        assert (match["verb"] in {"increases", "worsens"}) == (estimate >= 0)
        assert number(match["size"]) == rounded(abs(estimate))
        assert bool(match["before"]) == imp.per_row_losses[at]
        if match["before"]:
            assert number(match["before"]) == rounded(imp.baseline[at])
            assert number(match["after"]) == rounded(imp.baseline[at] + estimate)
        assert bool(match["low"]) == (not np.isnan(line["std_error"]) and not line["reliable"])
        if match["low"]:
            assert number(match["low"]) == rounded(line["conf_low"])
            assert number(match["high"]) == rounded(line["conf_high"])
            assert float(match["level"]) == 100 * imp.level
            assert match["noise"] == line["noise"]


def check_verdicts(imp: sg.ImportanceResult, feature: str, sentences: tuple[str, ...]) -> None:
    text = " ".join(sentences)
    lines = [line for line in lines_of(imp, feature) if not np.isnan(line["std_error"])]
    findings = [overall_findings(imp, at)[feature][1] for at in range(len(imp.losses))]
    marked = sum(
        one == "unknown" and not np.isnan(line["std_error"])
        for one, line in zip(findings, lines_of(imp, feature), strict=True)
    )
    findings = [one for one in findings if one != "unknown"]  # without an interval nothing is concluded
    assert text.count("The model relies on") == findings.count("important")
    assert text.count("makes no difference here") == findings.count("none")
    assert text.count("does significantly better") == findings.count("negative")
    assert text.count("is significant but small") == findings.count("small")
    assert text.count("the evidence is not sufficient") == findings.count("suggestive")
    assert text.count("Not significantly different from 0") == findings.count("negligible") + findings.count(
        "uncertain"
    )
    assert text.count("No conclusion on") == findings.count("unreliable") + marked
    for p in re.findall(r"(?:one-sided|Holm-adjusted) p (= [\d.e-]+|below 0.001)", text):
        values = [line["p_holm"] for line in lines]
        assert any((p == "below 0.001" and v < 0.001) or p == f"= {v:.2g}" for v in values)


def check_choices(imp: sg.ImportanceResult, feature: str, sentences: tuple[str, ...]) -> None:
    """What is said to have been chosen is what the table of choices has."""
    for line in rows(imp.choices):
        if line["selected"] and line["feature"] == feature:
            described = {DESCRIPTIONS[line["sampler"]], "predicted probabilities of its levels"}
            assert any(f"resampled from {text}" in sentence for sentence in sentences for text in described)


def check_where(imp: sg.ImportanceResult, feature: str, sentences: tuple[str, ...]) -> None:
    where = re.compile(
        rf"most important where (?P<most>.+): (?P<a>{NUMBER}) \+- (?P<b>{NUMBER}) \((?P<n>\d+) rows\); "
        rf"least where (?P<least>.+): (?P<c>{NUMBER}) \+- (?P<d>{NUMBER}) \((?P<m>\d+) rows\)\."
    )
    for sentence in sentences:
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


def check_trust(imp: sg.ImportanceResult, feature: str, sentences: tuple[str, ...]) -> None:
    text = " ".join(sentences)
    (line,) = [each for each in rows(imp.fidelity_checks) if each["feature"] == feature]
    assert ("resampled are realistic" in text) == (line["fidelity"] == "passed")
    assert ("This estimate is unreliable" in text) == (line["fidelity"] == "failed")
    assert ("but not much" in text) == (line["fidelity"] == "small difference")
    if line["fidelity"] == "passed" and not np.isnan(line["auc"]):
        assert f"AUC {line['auc']:.2f}" in text


@each
def test_sentences_have_the_numbers_of_the_tables(name: str) -> None:
    imp = result(name)
    for feature in imp.features:
        sentences = imp.explain(feature).sentences
        check_costs(imp, feature, sentences)
        check_verdicts(imp, feature, sentences)
        check_choices(imp, feature, sentences)
        check_trust(imp, feature, sentences)
        if all(imp.per_row_losses) and len(imp.losses) == 1:
            check_where(imp, feature, sentences)


@each
def test_explanations_are_sentences(name: str) -> None:
    imp = result(name)
    for feature in imp.features:
        explanation = imp.explain(feature)
        assert explanation.feature == feature
        assert str(explanation) == repr(explanation) == "\n".join(explanation.sentences)
        for sentence in explanation.sentences:
            assert sentence.endswith(".")
            assert not re.search(r"nan|None|  |\.\.|inf\b", sentence)
        # But for the opening of the shift, which is a formula.
        assert all(re.match(r"[A-Z]", sentence) or sentence.startswith(feature) for sentence in explanation.sentences)


def test_the_explanation_of_temperature() -> None:
    sentences = str(result("bike").explain("temp"))
    assert "The model relies on temp beyond the other columns (Holm-adjusted p " in sentences
    assert "Rows with temp resampled are realistic (AUC " in sentences


def test_a_feature_that_the_model_does_not_use_makes_no_difference() -> None:
    sentences = str(result("bike").explain("wind"))
    assert "increases the absolute error by 0, from " in sentences
    assert "wind makes no difference here" in sentences
    assert "It is most important" not in sentences


def test_a_harmful_feature_is_stated() -> None:
    """The model adds what it should take away."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(400, 2)), columns=["a", "b"])
    y = -X["a"] + 0.1 * rng.normal(size=400)
    imp = sg.importance(lambda X: X["a"], X[:200], y[:200], train=X[200:], features=["a"], n_repeats=20, random_state=1)
    sentences = imp.explain("a").sentences
    assert imp.overall["conf_high"][0] < 0
    assert any("decreases the" in sentence for sentence in sentences)
    assert "The model does significantly better with other values of a on these rows." in sentences
    assert "relies" not in str(imp.explain("a"))


def test_folds_are_explained_separately() -> None:
    imp = result("cross-fitted")
    sentences = str(imp.explain("temp"))
    assert "In fold 0, temp is " in sentences
    assert "In fold 1, temp is " in sentences
    assert set(rows(imp.choices)[0]) >= {"fold", "sampler", "selected"}


def test_groups_are_named_by_title_or_by_their_features() -> None:
    imp = result("groups")
    assert str(imp.explain(["temp", "hum"])) == str(imp.explain("temp + hum"))
    assert "conditional distributions of its members, one after the other" in str(imp.explain("temp + hum"))


def test_scores_worsen_and_have_no_baseline() -> None:
    sentences = str(result("a score").explain("temp"))
    assert "worsens the root mean squared error by" in sentences
    assert "there is no interval." in sentences
    assert ", from" not in sentences


def test_other_samplers_are_named() -> None:
    assert "temp is resampled by the sampler 'subgroups', within" in str(result("subgroups").explain("temp"))
    assert "temp is resampled by the sampler 'marginal'." in str(result("marginal").explain("temp"))
    assert "No conclusion on temp" in str(result("marginal").explain("temp"))


def test_the_explanation_of_loco_does_not_mention_resampling() -> None:
    columns = ["temp", "hum", "wind"]
    model = LinearRegression().fit(TRAIN.X[columns], TRAIN.y)
    imp = sg.loco(model, TEST.X[columns], TEST.y, train=(TRAIN.X[columns], TRAIN.y), loss="absolute_error")
    for feature in columns:
        sentences = imp.explain(feature).sentences
        assert sentences[0].startswith(f"Refitting without {feature} ")
        assert "esampl" not in " ".join(sentences)
        check_costs(imp, feature, sentences)
    assert "Models of this kind rely on temp beyond the other columns" in str(imp.explain("temp"))


@pytest.mark.parametrize("name", ["bike", "cross-fitted", "groups", "several losses", "subgroups"])
def test_a_loaded_result_has_the_same_sentences(name: str, tmp_path: Path) -> None:
    imp = result(name)
    imp.save(tmp_path / "importance.json")
    loaded = sg.ImportanceResult.load(tmp_path / "importance.json")
    for feature in imp.features:
        assert loaded.explain(feature).sentences == imp.explain(feature).sentences
    pd.testing.assert_frame_equal(loaded.choices, imp.choices)


def test_a_failed_fidelity_check_is_stated() -> None:
    rng = np.random.default_rng(0)
    a = rng.normal(size=800)
    X = pd.DataFrame({"a": a, "b": a + 0.05 * rng.normal(size=800)})
    imp = sg.importance(lambda X: X["a"], X[:400], X["a"][:400], sampler="marginal", features=["a"], random_state=1)
    assert imp.fidelity_checks["fidelity"][0] == "failed"
    assert imp.explain("a").sentences[-1] == f"This estimate is unreliable: {imp.fidelity_checks['reason'][0]}."


def test_without_fidelity_checks_nothing_is_said_of_them() -> None:
    sentences = str(bike(features=["temp"], check_fidelity=False).explain("temp"))
    assert "realistic" not in sentences
    assert "unreliable" not in sentences


def test_the_gap_is_added_if_the_marginal_importance_is_given() -> None:
    imp, marginal = bike(features=["temp"]), bike(features=["temp"], sampler="marginal", train=None)
    plain, longer = imp.explain("temp").sentences, imp.explain("temp", marginal=marginal).sentences
    assert longer[: len(plain)] == plain
    assert longer[len(plain) :] == imp.explain_gap(marginal, "temp").sentences


def test_other_levels_and_sources_of_noise_are_those_of_the_tables() -> None:
    imp = result("bike").with_level(0.9).with_noise("test rows")
    sentences = imp.explain("temp").sentences
    assert any("(90 % interval " in sentence and "noise: test rows)" in sentence for sentence in sentences)
    check_costs(imp, "temp", sentences)


def test_a_large_monte_carlo_error_is_stated() -> None:
    imp = result("bike")
    noisy = replace(imp, scores=tuple(replace(one, mc_variance=100 * one.mc_variance) for one in imp.scores))
    assert any(
        "With 10 repeats the Monte Carlo error is large" in sentence for sentence in noisy.explain("temp").sentences
    )
    assert not any("Monte Carlo error is large" in sentence for sentence in imp.explain("temp").sentences)


def test_unknown_features_are_rejected() -> None:
    with pytest.raises(ParameterError, match="feature='sun' is not among the features of this result"):
        result("bike").explain("sun")


def test_explanations_are_frozen() -> None:
    explanation = result("bike").explain("temp")
    assert isinstance(explanation, sg.Explanation)
    with pytest.raises(AttributeError):
        explanation.feature = "hum"  # type: ignore[misc]


def test_choices_of_other_samplers_are_empty_tables() -> None:
    choices = result("subgroups").choices
    assert len(choices) == 0
    assert list(choices.columns) == ["feature", "sampler", "score", "score_gap", "std_error", "complexity", "selected"]
