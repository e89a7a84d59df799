"""The sections of a report on its data, on dependence between features, and on methods.

Dependence is that of random forests on a sample of training rows, with smaller forests for many columns.
"""

from __future__ import annotations

import platform
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass
from typing import Any

import numpy as np
from msgspec.structs import replace

from subgrove._core.text import count_of, listed, percent, quote
from subgrove._data.columns import number_text
from subgrove._data.table import TypedColumn, shared_rows
from subgrove._dependence import Dependence, dependence
from subgrove._dependence.dependence import LEAST_ROWS
from subgrove._native.loader import NOT_INSTALLED, version_of
from subgrove._report import summary as structs
from subgrove._report.curves import SHOWN_CLASSES, level_codes
from subgrove._report.inputs import ReportInputs, some_rows
from subgrove._report.performance import LEVEL, WEAK
from subgrove._report.render import text_of
from subgrove._report.summary import DependenceSummary, FidelitySummary, Setting
from subgrove._report.suspicious_columns import NEARLY
from subgrove._report.wording import dependence_sentence, tidy
from subgrove._version import __version__
from subgrove.exceptions import ParameterError
from subgrove.samplers.fit import sampler_name

_LEVELS = 6  # that are named


def data_summary(inputs: ReportInputs, notes: Mapping[str, str]) -> structs.DataSummary:
    """Return the rows and their columns; `notes` maps names of columns to notes on them."""
    if unknown := [name for name in notes if name not in inputs.test.table.names]:
        known = f"but the columns are {quote(inputs.test.table.names)}"
        raise ParameterError(f"labels['columns'] has {quote(unknown)}, {known}. Its keys must be names of columns.")
    columns = tuple(_column(inputs.test.table.series(name), notes.get(name, "")) for name in inputs.test.table.names)
    return structs.DataSummary(inputs.train.n, inputs.test.n, columns, tuple(_data_sentences(inputs, columns)))


def _column(series: TypedColumn, note: str) -> structs.ColumnSummary:
    missing = int(series.missing.sum())
    kind = "date" if series.info.is_date else "duration" if series.info.is_duration else series.info.kind
    return structs.ColumnSummary(series.info.name, kind, missing, _values(series), note)


def _values(series: TypedColumn) -> str:
    """Return the range of numbers, or the levels."""
    if series.missing.all():
        return "no value"
    if series.info.kind == "numeric":
        known, timed = series.values[~series.missing], series.info.is_date or series.info.is_duration
        ends = [float(known.min()), float(known.max())]
        low, high = (number_text(one, series.info) if timed or one.is_integer() else f"{one:.5g}" for one in ends)
        return low if low == high else f"{low} to {high}"
    names = [series.info.levels[at] for at in np.unique(level_codes(series)).tolist() if at >= 0]
    few, shown = len(names) <= _LEVELS, ", ".join(names[:_LEVELS])
    return tidy(shown if few else f"{len(names)} levels: {shown}, ...")


def _data_sentences(inputs: ReportInputs, columns: tuple[structs.ColumnSummary, ...]) -> Iterator[str]:
    share, tested = shared_rows(inputs.test.table, inputs.train.table), count_of(inputs.test.n, "other row")
    if share:
        what = "the same rows" if share == 1 else f"{inputs.test.n:,} rows, of which {percent(share)} are the same"
        tested = f"{what}, so its performance is overstated"
    yield f"The model was trained on {count_of(inputs.train.n, 'row')} and is explained on {tested}."
    for name, pair in (("training", inputs.train), ("test", inputs.test)):
        if pair.n_total is not None and pair.n < pair.n_total:
            yield f"The {name} rows are a random sample of {pair.n_total:,} rows."
    counts = Counter(one.kind for one in columns)
    kinds = [f"{counts[kind]} {kind}" for kind in ("numeric", "ordered", "nominal", "date") if counts[kind]]
    yield f"There {_verb(columns, 'is', 'are')} {count_of(len(columns), 'column')}: {listed(kinds)}."
    if missing := [one.name for one in columns if one.n_missing]:
        verb = _verb(missing, "has", "have")
        yield tidy(f"{listed(missing)} {verb} missing values in test rows; they are resampled like values.")
    trained = [inputs.train.table.series(name) for name in inputs.test.table.names]
    if constant := [one.info.name for one in trained if len(np.unique(one.values[~one.missing])) < 2]:
        yield tidy(f"{listed(constant)} {_verb(constant, 'is', 'are')} constant in the training rows.")


def _verb(names: Sized, one: str, several: str) -> str:
    return one if len(names) == 1 else several


_PACKAGES = ("numpy", "scipy", "scikit-learn", "narwhals", "pandas", "polars", "pyarrow", "lightgbm", "xgboost")
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
) -> structs.MethodSummary:
    """Return the methods section."""
    clusters = inputs.test.table.clusters
    settings = [
        Setting("loss", inputs.loss.name),
        Setting("sampler", sampler_name(inputs.sampler)),
        Setting("max_depth", inputs.max_depth),
        Setting("n_repeats", inputs.n_repeats),
        Setting("random_state", inputs.seed),
        Setting("level", level),
        Setting("features", len(inputs.features)),
        Setting("rows for importance", inputs.used.n),
        *([] if clusters is None else [Setting("groups of rows", int(clusters.max()) + 1)]),
        Setting("rows for curves", inputs.drawn.n),
        Setting("training rows of dependence forests", forests.n_rows),
        Setting("trees of dependence forests", forests.n_trees),
        Setting("features with a gap by column", gaps),
    ]
    predicted = [*(Setting(name, n) for name, n in rows.items()), Setting("total", sum(rows.values()))]
    return structs.MethodSummary(_sentences(inputs, forests), tuple(settings), _versions(), tuple(predicted))


def _versions() -> tuple[Setting, ...]:
    imported = [name for name in _PACKAGES if {"scikit-learn": "sklearn"}.get(name, name) in sys.modules]
    found = {"subgrove": __version__, "Python": platform.python_version()} | {one: version_of(one) for one in imported}
    return tuple(Setting(*one) for one in found.items() if one[1] != NOT_INSTALLED)  # but imported from a folder


def _sentences(inputs: ReportInputs, forests: ReportForests) -> tuple[str, ...]:
    """Return the paragraphs of the template on methods that apply to this report."""
    limits = {"level": LEVEL, "weak": WEAK, "nearly": NEARLY, "shown_classes": SHOWN_CLASSES}
    names = {"loss": inputs.loss.name.replace("_", " "), "sampler": sampler_name(inputs.sampler)}
    return tuple(text_of("methods.txt.jinja", inputs=inputs, forests=forests, **limits, **names).splitlines())


DEPENDENT = 0.2
"""Explained share from which on a feature is called dependent."""
_WORK = 4e7  # predictions of trees in all: forests of many columns have fewer trees
_MOST_ROWS, _FEW_ROWS, _MANY_COLUMNS = 2_000, 600, 30
_TREES = (10, 50)  # fewest and most
_MOST_PAIRS = 20_000  # features times columns
_SHOWN = 10  # predictors of a feature
_LEAST_SHARE = 0.005


@dataclass(frozen=True, eq=False)
class ReportForests:
    """The dependence of the features (None if it could not be computed), and the size of the forests."""

    result: Dependence | None
    n_rows: int
    n_trees: int


def grow_forests(inputs: ReportInputs, first: Sequence[str]) -> ReportForests:
    """Grow the forests; of the features in `first`, in their order, as many as the budget allows."""
    columns = inputs.train.table.names
    if len(columns) < 2 or inputs.train.n < LEAST_ROWS:
        return ReportForests(None, 0, 0)
    most = _FEW_ROWS if len(columns) > _MANY_COLUMNS else _MOST_ROWS
    rows = some_rows(inputs.train.n, most, inputs.seed, "rows of forests")
    names = list(first)[: max(_TREES[0], _MOST_PAIRS // len(columns))]
    n_trees = int(np.clip(_WORK / (len(names) * len(columns) * len(rows)), *_TREES))
    X, features = inputs.train.some(rows).X, [name for name in columns if name in names]
    seed, n_jobs = inputs.seed, inputs.n_jobs
    result = dependence(X, features=features, n_trees=n_trees, threshold=DEPENDENT, random_state=seed, n_jobs=n_jobs)
    return ReportForests(result, len(rows), n_trees)


def dependence_summaries(
    forests: ReportForests, features: Sequence[str], shuffled: Mapping[str, FidelitySummary | None]
) -> Iterator[DependenceSummary]:
    """Yield how well the others predict each feature, and whether `shuffled` rows are realistic."""
    by_name = {} if forests.result is None else {one.feature: one for one in forests.result.found}
    for name in features:
        one = by_name.get(name)
        explained = None if one is None or np.isnan(one.explained) else float(one.explained)
        shares = {} if one is None else {c: s for c, s in one.shares.items() if s >= _LEAST_SHARE}
        strongest = sorted(shares, key=lambda column: -shares[column])[:_SHOWN]
        predictors = tuple(structs.PredictorShare(column, float(shares[column])) for column in strongest)
        fidelity = shuffled.get(name)
        verdict = "unknown" if fidelity is None else fidelity.verdict
        misleads = verdict == "failed" or (verdict == "unknown" and explained is not None and explained >= DEPENDENT)
        found = DependenceSummary(name, explained, predictors, misleads, "")
        sentence = dependence_sentence(found, fidelity, "it was not computed" if one is None else one.note)
        yield replace(found, sentence=sentence)


def dependence_sentences(summaries: Sequence[DependenceSummary]) -> tuple[str, ...]:
    """Return the findings of the dependence table."""
    known = [one for one in summaries if one.explained is not None]
    if not known:
        return ("Dependence between features was not computed: there are too few rows or columns.",)
    strong = sorted((one for one in known if (one.explained or 0) >= DEPENDENT), key=lambda one: -(one.explained or 0))
    sentences = [f"No feature has an R2 of {percent(DEPENDENT)} or more given the others (random forest)."]
    if strong:
        names = listed([f"{one.feature} ({percent(min(one.explained or 0, 1.0))})" for one in strong])
        some = f"{len(strong)} of {count_of(len(known), 'feature')} {_verb(strong, 'is', 'are')}"
        sentences = [f"{some} predicted by the others with an R2 of {percent(DEPENDENT)} or more: {names}."]
    if wrong := [one.feature for one in summaries if one.misleads]:
        where = f"Permutation importance of {listed(wrong)} evaluates the model on unrealistic rows"
        sentences.append(f"{where}; use the conditional importance there.")
    else:
        sentences.append("Rows with one shuffled feature are realistic here, so permutation importance is reliable.")
    return tuple(tidy(sentence) for sentence in sentences)
