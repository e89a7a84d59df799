"""Reports of real models in the browser: the numbers on the page are those of the result tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from playwright.sync_api import Browser
from sklearn.linear_model import LogisticRegression

import subgrove as sg

FEATURES = ["temp", "hum", "yr"]


def bikes(X: pd.DataFrame) -> pd.Series:
    return 1900 + 140 * X["temp"].clip(upper=24) + 1900 * (X["yr"] == "2012") - 12 * X["hum"]


def on_the_page(browser: Browser, path: Path, name: str) -> dict[str, float]:
    """What a page has of each feature, exactly; nothing is complained of."""
    complaints: list[str] = []
    page = browser.new_page()
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(path.as_uri())
    found = page.locator("#ranking tbody tr").evaluate_all(
        f"rows => rows.map(row => [row.dataset.name, row.dataset.{name}])"
    )
    page.close()
    assert complaints == []
    return {feature: float(value) for feature, value in found}


def test_the_bike_report_has_the_numbers_of_the_result_tables(browser: Browser, tmp_path: Path) -> None:
    train, test = sg.datasets.bike(split=0.7, random_state=1)
    report = sg.report(bikes, train, test, features=FEATURES, n_repeats=2, random_state=3)
    report.save(tmp_path / "bike.html")
    options: dict[str, Any] = {"features": FEATURES, "loss": "absolute_error", "n_repeats": 2, "random_state": 3}
    more: dict[str, Any]
    for name, more in (("conditional", {"train": train.X}), ("marginal", {"sampler": "marginal"})):
        table = sg.importance(bikes, test.X, test.y, **options, **more).overall
        wanted = dict(zip(table["feature"], table["estimate"], strict=True))
        assert on_the_page(browser, tmp_path / "bike.html", name) == pytest.approx(wanted, rel=1e-12)


def test_the_report_of_a_classifier_opens_with_a_curve_for_each_class(browser: Browser, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    X = pd.DataFrame({"a": rng.normal(size=240), "b": rng.normal(size=240)})
    y = pd.Series(np.select([X["a"] < -0.5, X["a"] < 0.5], ["low", "middle"], "high"))
    model = LogisticRegression().fit(X[:120], y[:120])
    report = sg.report(model, (X[:120], y[:120]), (X[120:], y[120:]), n_repeats=2, random_state=3)
    report.save(tmp_path / "classes.html")
    values = on_the_page(browser, tmp_path / "classes.html", "conditional")
    assert values == {one.feature: one.conditional.estimate for one in report.summary.features}
    page = browser.new_page()
    page.goto((tmp_path / "classes.html").as_uri())
    titles = page.locator("#feature-1 h4").all_inner_texts()
    page.close()
    assert sorted(titles) == ["Probability of high", "Probability of low", "Probability of middle"]
