"""Reports that compare models: on the same rows, with paired differences, on one page."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import subgrove as sg
from subgrove.exceptions import FormatError, ParameterError

TRAIN, TEST = sg.datasets.bike(split=0.7, random_state=1)


def by_year(X: Any) -> Any:
    return 2000 + 100 * X["temp"] + 2000 * (X["yr"] == "2012")


def without_year(X: Any) -> Any:
    return 3000 + 100 * X["temp"]


@cache
def both() -> sg.Report:
    options: dict[str, Any] = {"features": ["temp", "yr"], "n_repeats": 5, "random_state": 1, "labels": {"created": ""}}
    return sg.report({"full <b>": by_year, "small": without_year}, TRAIN, TEST, **options)


def test_each_model_has_the_summary_of_its_own_report() -> None:
    options: dict[str, Any] = {"features": ["temp", "yr"], "n_repeats": 5, "random_state": 1, "labels": {"created": ""}}
    comparison = both().comparison
    assert comparison is not None
    assert comparison.names == ("full <b>", "small")
    (other,) = comparison.summaries
    assert other == sg.report(without_year, TRAIN, TEST, **options).summary
    assert both().summary.features == sg.report(by_year, TRAIN, TEST, **options).summary.features


def test_differences_are_paired_and_those_of_compare() -> None:
    comparison = both().comparison
    assert comparison is not None
    results = [
        sg.importance(
            model,
            TEST.X,
            TEST.y,
            train=TRAIN.X,
            features=["temp", "yr"],
            loss="absolute_error",
            n_repeats=5,
            random_state=1,
        )
        for model in (without_year, by_year)
    ]
    table = results[0].compare(results[1]).set_index("feature")
    for feature, one in zip(both().summary.features, comparison.differences[0], strict=True):
        line = table.loc[feature.feature]
        assert one.conf_low is not None
        np.testing.assert_allclose([one.estimate, one.conf_low], line[["estimate", "conf_low"]].astype(float))


def test_a_sentence_names_what_a_model_relies_on_less() -> None:
    comparison = both().comparison
    assert comparison is not None
    assert comparison.sentences[0].startswith("The mean absolute error is, by model: full <b> ")
    assert "small relies significantly less on yr by " in comparison.sentences[1]


def test_a_comparison_is_saved_and_read_again(tmp_path: Path) -> None:
    both().save(tmp_path / "both.json")
    again = sg.Report.load(tmp_path / "both.json")
    assert again == both()
    assert again.to_html() == both().to_html()
    text = (tmp_path / "both.json").read_text().replace('"differences"', '"others"')
    (tmp_path / "bad.json").write_text(text)
    with pytest.raises(FormatError, match="comparison does not fit"):
        sg.Report.load(tmp_path / "bad.json")


def test_page_and_markdown_have_both_models_and_escape_their_names() -> None:
    comparison, page, text = both().comparison, both().to_html(), both().to_markdown()
    assert comparison is not None
    assert "<b>" not in page.partition('id="comparison"')[2].partition("</section>")[0]
    assert "Findings for small" in page
    assert "### Findings for small" in text
    assert "small minus full \\<b\\>" in text


def test_a_list_of_models_is_named_after_their_classes() -> None:
    from sklearn.linear_model import LinearRegression, Ridge

    X, y = TRAIN.X[["temp", "hum"]], TRAIN.y
    models = [LinearRegression().fit(X, y), Ridge().fit(X, y), Ridge(1e6).fit(X, y)]
    test = (TEST.X[["temp", "hum"]], TEST.y)
    found = sg.report(models, (X, y), test, n_repeats=2, random_state=1).comparison
    assert found is not None
    assert found.names == ("LinearRegression", "Ridge 1", "Ridge 2")


def test_one_model_in_a_list_is_an_error() -> None:
    with pytest.raises(ParameterError, match="a comparison needs two"):
        sg.report([by_year], TRAIN, TEST)


def test_models_with_different_losses_are_not_compared() -> None:
    from sklearn.linear_model import LogisticRegression
    from sklearn.svm import LinearSVC

    X, y = TRAIN.X[["temp", "hum"]], TRAIN.y > 4000
    models = [LogisticRegression().fit(X, y), LinearSVC().fit(X, y)]
    with pytest.raises(ParameterError, match="different default losses"):
        sg.report(models, (X, y), (TEST.X[["temp", "hum"]], TEST.y > 4000), n_repeats=2, random_state=1)
