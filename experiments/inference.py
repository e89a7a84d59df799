"""Do intervals cover, and do tests keep their level? Coverage, size and power, beside hidimstat on the same rows.

Coverage: the true model, whose conditional importance of x1 is known exactly. Is it in the 95 % interval (noise of the
test rows and of the draws) with the true sampler, and with fitted ones, of which the interval does not cover the error?

Tests: x1 has correlation 0.9 with x2 and is of no use beside the others (size), or of some (power); a linear model, a
forest or boosted trees are fitted on half of the rows and evaluated on the other half.
"""

from __future__ import annotations

import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import subgrove as sg
from experiments.inference_models import encoded_predict, fitted_model
from experiments.inference_report import draw, section
from experiments.units import Size, Unit
from subgrove._core.kinds import Floats
from subgrove.exceptions import SubgroveWarning

BEYOND = "coverage of intervals, size and power of tests, beside hidimstat where it is installed"

FEATURE = "x1"
SAMPLERS = ("subgroups", "auto")  # besides the true one; --sampler adds others
COVERAGE = ("linear", "nonlinear")
TEST_ROWS = (200, 1000)
MODELS = ("linear", "forest", "boosting")
STRENGTHS = (0.0, 0.3)
REDRAWS = 20  # of ours
THEIR_REDRAWS = (10, 50, 200)  # of hidimstat, whose test depends on their number
_ROWS = 500  # training rows, and as many test rows, of a test
_TRAIN_ROWS = 1000  # of a sampler whose coverage is measured
_AT_ONCE = 10  # simulations of a unit of coverage
_REPETITIONS = {"coverage": 1000, "test": 200}


def units(size: Size) -> list[Unit]:
    """Simulations of all cells, the first of each before the second of any."""
    samplers = tuple(dict.fromkeys((*SAMPLERS, *size.samplers)))
    listed: list[tuple[int, Unit]] = []
    for scenario in COVERAGE:
        for n_test in TEST_ROWS[:1] if size.quick else TEST_ROWS:
            cell = f"coverage-{scenario}-{n_test}"
            options = {"part": "coverage", "scenario": scenario, "n_test": n_test, "samplers": samplers}
            own = {**options, "n": 2 if size.quick else _AT_ONCE}
            numbers = range(-(-_repetitions(size, "coverage") // _AT_ONCE))
            listed += [(at, Unit(f"{cell}/s{size.seed}-{at:04d}", cell, own)) for at in numbers]
    for scenario in sg.simulate.null_scenarios()[: 1 if size.quick else None]:
        for model in MODELS[: 1 if size.quick else None]:
            cell = f"test-{scenario}-{model}"
            options = {"part": "test", "scenario": scenario, "model": model, "samplers": samplers}
            keys = ((at, f"{cell}/s{size.seed}-{at:04d}") for at in range(_repetitions(size, "test")))
            listed += [(at, Unit(key, cell, options)) for at, key in keys]
    return [unit for _, unit in sorted(listed, key=lambda one: one[0])]


def _repetitions(size: Size, part: str) -> int:
    if size.quick:
        return 2
    return _REPETITIONS[part] if size.reps is None else size.reps


def run(unit: Unit, seed: int) -> list[dict[str, Any]]:
    """Rows of some simulations of coverage, or of one data set with all its tests."""
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", SubgroveWarning
        )  # singleton subgroups, and samplers' warnings on small subgroups
        if unit.params["part"] == "coverage":
            seeds = np.random.default_rng(seed).integers(2**62, size=unit.params["n"]).tolist()
            return [row for own in seeds for row in _coverage(unit.params, own)]
        return _tests(unit.params, seed)


def _coverage(options: dict[str, Any], seed: int) -> list[dict[str, Any]]:
    scenario = sg.simulate.scenario(options["scenario"])
    one, two, three = np.random.default_rng(seed).integers(2**62, size=3).tolist()
    train, test = scenario.sample(_TRAIN_ROWS, random_state=one), scenario.sample(options["n_test"], random_state=two)
    rows = []
    for name in ("true", *options["samplers"]):
        sampler = scenario.sampler if name == "true" else name
        imp = sg.importance(
            scenario.model,
            test.X,
            test.y,
            sampler=sampler,
            train=train.X,
            features=[FEATURE],
            n_repeats=20,
            random_state=three,
            loss="squared_error",
        )
        line = imp.overall.iloc[0]
        rows.append(
            {
                **_labels(options, "scenario", "n_test"),
                "method": name,
                "estimate": float(line["estimate"]),
                "std_error": float(line["std_error"]),
                "truth": scenario.importance,
                "covered": bool(line["conf_low"] <= scenario.importance <= line["conf_high"]),
            }
        )
    return rows


def _tests(options: dict[str, Any], seed: int) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    one, two, three = np.random.default_rng(seed).integers(2**31, size=3).tolist()
    for strength in STRENGTHS:
        scenario = sg.simulate.null_scenario(options["scenario"], strength=strength)
        train, test = scenario.sample(_ROWS, random_state=one), scenario.sample(_ROWS, random_state=two)
        model = fitted_model(options["model"], train.X, train.y, three)
        for name in ("true", *options["samplers"]):
            sampler = scenario.sampler if name == "true" else name
            imp = sg.importance(
                model,
                test.X,
                test.y,
                sampler=sampler,
                train=train.X,
                features=[FEATURE],
                n_repeats=REDRAWS,
                random_state=three,
                loss="squared_error",
            )
            labels = {**_labels(options, "scenario", "model"), "strength": strength, "sampler": name, "m": REDRAWS}
            for test_name, table in (("rows", imp.overall), ("doubting", imp.independence_test(test.X))):
                line = table.iloc[0]
                rows.append(
                    {**labels, "test": test_name, "estimate": float(line["estimate"]), "p": float(line["p_value"])}
                )
        rows += [
            {**_labels(options, "scenario", "model"), "strength": strength, "sampler": "hidimstat", **row}
            for row in hidimstat_rows(model, train, test, three)
        ]
    return rows


def hidimstat_rows(model: Any, train: Any, test: Any, seed: int) -> list[dict[str, Any]]:
    """Its conditional importance of x1 and the p-value it gives by default; nothing where it is not installed."""
    if find_spec("hidimstat") is None:
        return []
    from hidimstat import CFI

    predict, numbers = encoded_predict(model, train.X)
    rows = []
    for n_repeats in THEIR_REDRAWS:
        found = CFI(predict, n_permutations=n_repeats, features_groups={FEATURE: [0]}, random_state=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # x1 alone is evaluated
            found.fit(numbers(train.X), train.y.to_numpy())
            found.importance(numbers(test.X), test.y.to_numpy())
        p: Floats = np.asarray(found.pvalues_, dtype=np.float64)
        rows.append({"m": n_repeats, "test": "its own", "estimate": float(found.importances_[0]), "p": float(p[0])})
    return rows


def _labels(options: dict[str, Any], *names: str) -> dict[str, Any]:
    return {"part": options["part"], **{name: options[name] for name in names}}


def tables(results: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """`coverage`: by scenario, rows and sampler; `tests`: share of rejections at 5 %, by all that was varied."""
    found = {}
    covered = results[results["part"] == "coverage"]
    if len(covered):
        found["coverage"] = _coverage_table(covered)
    tested = results[results["part"] == "test"]
    if len(tested):
        found["tests"] = _tests_table(tested)
    return found


def _coverage_table(results: pd.DataFrame) -> pd.DataFrame:
    lines = []
    for (scenario, n_test, method), part in results.groupby(["scenario", "n_test", "method"], sort=False):
        covered, estimate = part["covered"].astype(float), part["estimate"].astype(float)
        lines.append(
            {
                "scenario": scenario,
                "n_test": n_test,
                "method": method,
                "runs": len(part),
                "coverage": covered.mean(),
                "coverage_se": np.sqrt(max(covered.mean() * (1 - covered.mean()), 0.0) / len(part)),
                "bias": estimate.mean() - float(part["truth"].iloc[0]),
                "sd": estimate.std(),
                "std_error": np.sqrt((part["std_error"].astype(float) ** 2).mean()),
            }
        )
    return pd.DataFrame(lines)


def _tests_table(results: pd.DataFrame) -> pd.DataFrame:
    by = ["scenario", "model", "strength", "sampler", "test", "m"]
    lines = []
    for key, part in results.groupby(by, sort=False):
        rejected = (part["p"].astype(float) < 0.05).mean()
        labels = dict(zip(by, key if isinstance(key, tuple) else (key,), strict=True))
        error = np.sqrt(rejected * (1 - rejected) / len(part))
        mean = part["estimate"].astype(float).mean()
        lines.append({**labels, "runs": len(part), "rejected": rejected, "rejected_se": error, "estimate": mean})
    return pd.DataFrame(lines).astype({"m": int})


def figures(results: pd.DataFrame, folder: Path) -> list[Path]:
    """Size and power of the tests."""
    found = tables(results)
    return [draw(found["tests"], folder)] if "tests" in found else []


def report(tables: dict[str, pd.DataFrame]) -> str:
    """The section of the page beyond the paper."""
    return section(tables)
