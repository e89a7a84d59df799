"""The methods section of a report: how each number was computed, settings, versions, numbers of rows predicted."""

from __future__ import annotations

import platform
import sys
from typing import Any

from subgrove._core.text import count_of, percent
from subgrove._report.curves import SHOWN_CLASSES
from subgrove._report.dependence import ReportForests
from subgrove._report.inputs import ReportInputs
from subgrove._report.performance import SIGNIFICANT, WEAK
from subgrove._report.summary import MethodSummary, Setting
from subgrove._report.wording import IMPORTANT
from subgrove._version import __version__
from subgrove.samplers.fit import sampler_name

_PACKAGES = ("numpy", "scipy", "scikit-learn", "narwhals", "pandas", "polars", "pyarrow", "lightgbm", "xgboost")
_SOURCE = (
    "The method of conditional subgroups is that of Molnar, König, Bischl and Casalicchio (2023), Model-agnostic "
    "feature importance and effects with dependent features, Data Mining and Knowledge Discovery. The documentation of "
    "subgrove describes the implementation and this page."
)
_UNITS = {
    "absolute_error": "units of {}",
    "squared_error": "squared units of {}",
    "log_loss": "nats of log loss",
    "brier": "squared error of the probability",
    "zero_one": "share of rows misclassified",
}


def loss_unit(inputs: ReportInputs) -> str:
    """Return the unit of importance, in words."""
    return _UNITS.get(inputs.loss.name, f"{inputs.loss.name.replace('_', ' ')} of {{}}").format(inputs.target)


def model_description(model: Any) -> str:
    """Return the type of the model, in a few words."""
    steps = getattr(model, "steps", None)
    if isinstance(steps, list) and steps:
        return f"{type(model).__name__} of {', '.join(type(step).__name__ for _, step in steps)}"
    if hasattr(model, "predict") or hasattr(model, "predict_proba"):
        return type(model).__name__
    return f"function {getattr(model, '__name__', type(model).__name__)}"


def method_summary(
    inputs: ReportInputs, level: float, forests: ReportForests, rows: dict[str, int], gaps: int
) -> MethodSummary:
    """Return the methods section."""
    settings = [
        Setting("loss", inputs.loss.name),
        Setting("sampler", sampler_name(inputs.sampler)),
        Setting("max_depth", inputs.max_depth),
        Setting("n_repeats", inputs.n_repeats),
        Setting("random_state", inputs.seed),
        Setting("level", level),
        Setting("features", len(inputs.features)),
        Setting("rows for importance", inputs.used.n),
        Setting("rows for curves", inputs.drawn.n),
        Setting("training rows of dependence forests", forests.n_rows),
        Setting("trees of dependence forests", forests.n_trees),
        Setting("features with a gap by column", gaps),
    ]
    predicted = [*(Setting(name, n) for name, n in rows.items()), Setting("total", sum(rows.values()))]
    return MethodSummary(tuple(_sentences(inputs, forests)), tuple(settings), _versions(), tuple(predicted))


def _versions() -> tuple[Setting, ...]:
    from importlib.metadata import PackageNotFoundError, version

    found = [Setting("subgrove", __version__), Setting("Python", platform.python_version())]
    for name in _PACKAGES:
        if {"scikit-learn": "sklearn"}.get(name, name) in sys.modules:
            try:
                found.append(Setting(name, version(name)))
            except PackageNotFoundError:  # imported from a folder
                continue
    return tuple(found)


def _sentences(inputs: ReportInputs, forests: ReportForests) -> list[str]:
    loss = inputs.loss.name.replace("_", " ")
    sentences = [
        f"Importance is the increase of the mean {loss} on the test rows when a feature is resampled, averaged over "
        f"{count_of(inputs.n_repeats, 'repeat')}. A feature is called important if its interval lies above 0 and the "
        f"increase is at least {percent(IMPORTANT)} of the baseline loss.",
        "Marginal importance shuffles the feature among all test rows (permutation importance). Conditional importance "
        "resamples it given the other columns, with a sampler that is fitted on training rows.",
    ]
    if sampler_name(inputs.sampler) == "auto":
        sentences.append(
            "The sampler of a feature was selected on training rows: the simplest candidate within one standard error "
            "of the best held-out score."
        )
    sentences += [
        f"Subgroups are the leaves of the feature's tree, at most {count_of(inputs.max_depth, 'split')} deep; samplers "
        "may use deeper trees. Features that are resampled from all rows, by a linear model or by a forest have one "
        "subgroup.",
        "The fidelity check compares resampled with real rows on at most 400 test rows: the AUC of a classifier, and "
        "the maximum mean discrepancy (MMD; 0 as real rows, 1 as shuffled rows).",
        "The gap conditions on the columns that predict the feature one by one. Features with a less significant gap "
        "have one step for all columns, to limit the number of predictions.",
        _forests(inputs, forests),
        "Curves: partial dependence (PDP) is the mean prediction with the feature set to one value in all rows (of the "
        "subgroup); ALE accumulates differences between neighbouring values. Bands cover the choice of rows.",
        f'The model is called "useless" if it is not better than the best constant prediction of the training rows by '
        f'{SIGNIFICANT:g} standard errors of the paired difference, and "weak" if it removes less than {percent(WEAK)} '
        "of its loss.",
    ]
    if inputs.used.n < inputs.test.n:
        sentences.append(
            f"Importance was computed on a random sample of {inputs.used.n:,} of {inputs.test.n:,} test rows."
        )
    if inputs.drawn.n < inputs.test.n:
        sentences.append(f"Curves are means over a random sample of {inputs.drawn.n:,} of {inputs.test.n:,} test rows.")
    if len(inputs.classes) > SHOWN_CLASSES:
        sentences.append(f"Curves are of the {SHOWN_CLASSES} most frequent of {len(inputs.classes)} classes.")
    return [*sentences, _SOURCE]


def _forests(inputs: ReportInputs, forests: ReportForests) -> str:
    if forests.result is None:
        return "Dependence was not computed: there are too few columns or training rows."
    some = f"{forests.n_rows:,} of {inputs.train.n:,}" if forests.n_rows < inputs.train.n else f"all {inputs.train.n:,}"
    return (
        f"Dependence: a forest of {count_of(forests.n_trees, 'tree')} predicts a feature from the other columns on one "
        f"half of {some} training rows and is evaluated on the other half."
    )
