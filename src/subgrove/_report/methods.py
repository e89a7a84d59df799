"""How each number of a report was computed: in sentences, settings, versions, and rows that the model was asked for."""

from __future__ import annotations

import platform
import sys
from typing import Any

from subgrove._report.curves import SHOWN_CLASSES
from subgrove._report.dependence import Foretold
from subgrove._report.inputs import Asked
from subgrove._report.numbers import counted, percent
from subgrove._report.performance import CLEAR, WEAK
from subgrove._report.summary import MethodSummary, Setting
from subgrove._version import __version__
from subgrove.samplers.fit import sampler_name

_PACKAGES = ("numpy", "scipy", "scikit-learn", "narwhals", "pandas", "polars", "pyarrow", "lightgbm", "xgboost")
_SOURCE = (
    "The method of conditional subgroups is that of Molnar, König, Bischl and Casalicchio (2023), Model-agnostic "
    "feature importance and effects with dependent features, Data Mining and Knowledge Discovery. How subgrove does "
    "it, and how to read this page, is in its documentation: Report, Why, How it works."
)
_UNITS = {
    "absolute_error": "units of {}",
    "squared_error": "squared units of {}",
    "log_loss": "nats of log loss",
    "brier": "squared error of the probability",
    "zero_one": "share of rows misclassified",
}


def loss_unit(asked: Asked) -> str:
    """What an importance of 1 means."""
    return _UNITS.get(asked.loss.name, f"{asked.loss.name.replace('_', ' ')} of {{}}").format(asked.target)


def model_description(model: Any) -> str:
    """What the model is, in a few words."""
    steps = getattr(model, "steps", None)
    if isinstance(steps, list) and steps:
        return f"{type(model).__name__} of {', '.join(type(step).__name__ for _, step in steps)}"
    if hasattr(model, "predict") or hasattr(model, "predict_proba"):
        return type(model).__name__
    return f"function {getattr(model, '__name__', type(model).__name__)}"


def method_summary(asked: Asked, level: float, told: Foretold, rows: dict[str, int], gaps: int) -> MethodSummary:
    """The methods part."""
    settings = [
        Setting("loss", asked.loss.name),
        Setting("sampler", sampler_name(asked.sampler)),
        Setting("max_depth", asked.max_depth),
        Setting("n_repeats", asked.n_repeats),
        Setting("random_state", asked.seed),
        Setting("level", level),
        Setting("features", len(asked.features)),
        Setting("rows of importance", asked.used.n),
        Setting("rows of curves", asked.drawn.n),
        Setting("training rows of forests of dependence", told.n_rows),
        Setting("trees of forests of dependence", told.n_trees),
        Setting("features whose gap is told column by column", gaps),
    ]
    asked_for = [*(Setting(name, n) for name, n in rows.items()), Setting("all together", sum(rows.values()))]
    return MethodSummary(tuple(_sentences(asked, told)), tuple(settings), _versions(), tuple(asked_for))


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


def _sentences(asked: Asked, told: Foretold) -> list[str]:
    loss = asked.loss.name.replace("_", " ")
    said = [
        f"Importance is how much the mean {loss} of the test rows grows when a feature is redrawn, mean of "
        f"{counted(asked.n_repeats, 'redraw')}.",
        "Marginal importance shuffles the feature among all test rows (permutation importance). Conditional importance "
        "redraws it given the other columns, by what was learned on training rows.",
    ]
    if sampler_name(asked.sampler) == "auto":
        said.append(
            "How a feature is redrawn was chosen on training rows: the simplest candidate within one standard error of "
            "the one that foretells the feature best in rows it has not seen."
        )
    said += [
        f"Subgroups are those of the feature's tree, at most {counted(asked.max_depth, 'split')} deep; redrawing may "
        "use deeper ones. A feature that is redrawn from all rows, by a sum of columns or by a forest has one.",
        "A certificate asks whether a classifier can tell redrawn rows from real ones, on at most 400 test rows, and "
        "how far they are from them (MMD; 0 as real rows, 1 as shuffled ones).",
        "The gap adds the columns that tell of the feature one by one. Features whose gap was not among the clearest, "
        "where that would ask the model too often, have one step for all columns.",
        _forests(asked, told),
        "Curves: PDP is the mean prediction with the feature set to one value in all rows (of the subgroup); ALE adds "
        "up differences between neighbouring rows. Bands cover which rows the mean is over.",
        f'The model is called "useless" if it is not better than the best constant answer of the training rows by '
        f'{CLEAR:g} standard errors of the paired difference, and "weak" if it saves less than {percent(WEAK)} of its '
        "loss.",
    ]
    if asked.used.n < asked.test.n:
        said.append(f"Importance was computed on {asked.used.n:,} of {asked.test.n:,} test rows, drawn at random.")
    if asked.drawn.n < asked.test.n:
        said.append(f"Curves are means over {asked.drawn.n:,} of {asked.test.n:,} test rows, drawn at random.")
    if len(asked.classes) > SHOWN_CLASSES:
        said.append(f"Curves are of the {SHOWN_CLASSES} most frequent of {len(asked.classes)} classes.")
    return [*said, _SOURCE]


def _forests(asked: Asked, told: Foretold) -> str:
    if told.found is None:
        return "Dependence was not looked at: there are too few columns or training rows."
    some = f"{told.n_rows:,} of {asked.train.n:,}" if told.n_rows < asked.train.n else f"all {asked.train.n:,}"
    return (
        f"Dependence: a forest of {counted(told.n_trees, 'tree')} foretells a feature from the other columns in one "
        f"half of {some} training rows and is judged on the other half."
    )
