"""`report`: call the other verbs, put their results into words, and return a `Report` to read and archive.

Requirements: the time is bounded (rows, trees and repeats are fewer where there is much to do, and the methods section
says so); warnings of subgrove become part of the report; the same seed gives the same summary for any number of jobs;
all rows that the model predicts are counted.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from subgrove._core.execution import RandomStateLike, progress_bar, read_seed
from subgrove._core.files import check_file_path, write_text
from subgrove._core.html_views import html_of
from subgrove._core.text import count_of
from subgrove._core.validate import names_arguments
from subgrove._data.table import read_once
from subgrove._importance.importance import importance
from subgrove._importance.result import ImportanceResult
from subgrove._report import methods, render
from subgrove._report.comparison import KEY, Comparison, compared, named_models, read_comparison
from subgrove._report.curves import interactions_of
from subgrove._report.features import ReportResults, feature_gaps, feature_summaries, fidelity_of, group_summaries
from subgrove._report.findings import cautions, highlights
from subgrove._report.inputs import ReportInputs, ReportLabels, read_inputs, read_labels
from subgrove._report.model_summary import ModelSummary
from subgrove._report.performance import Performance, performance
from subgrove._report.summary import Summary
from subgrove._report.suspicious_columns import dependence_warnings, leaking_columns
from subgrove._report.wording import tidy
from subgrove._scoring.context import without_repeats
from subgrove.exceptions import ModelError, ParameterError, SubgroveWarning


def summarize(inputs: ReportInputs, labels: ReportLabels, messages: list[str]) -> tuple[Summary, ImportanceResult]:
    """Return the summary of a report, and the conditional importance; warnings are added to `messages`."""
    data = methods.data_summary(inputs, labels.columns)
    n = len(inputs.features)
    with progress_bar(7 * n, "Explaining the model") as advance, _collected(messages):
        quality = performance(inputs)
        common: dict[str, Any] = {
            "features": [*inputs.features, *inputs.feature_groups],
            "loss": inputs.loss,
            "n_repeats": inputs.n_repeats,
            "random_state": inputs.seed,
            "n_jobs": inputs.n_jobs,
            "groups": inputs.used.table.clusters,
        }
        X, y = inputs.used.X, inputs.used.y
        conditional = importance(inputs.model, X, y, sampler=inputs.sampler, train=inputs.fitted_on, **common)
        if inputs.test.table.clusters is None:
            messages += dependence_warnings(inputs.train, inputs.used, conditional.residuals)
        advance(2 * n)
        marginal = importance(inputs.model, X, y, sampler="marginal", **common)
        _reject_random_predictions(conditional, marginal)
        advance(n)
        by_marginal = sorted(marginal.scores, key=lambda score: -float(score.overall[0].mean()))
        forests = methods.grow_forests(inputs, [score.title for score in by_marginal])
        advance(n)
        gaps = feature_gaps(conditional, marginal, len(inputs.test.table.names) - 1)
        advance(2 * n)
        has_gain = quality.judgement.verdict != "useless"
        results = ReportResults(inputs, conditional, marginal, gaps, quality.spread, has_gain)
        groups = group_summaries(results)
        with without_repeats():
            features, n_curve_rows = feature_summaries(results, advance)
        names = [score.title for score in by_marginal if score.title in inputs.features]
        interactions, on_interactions, n_interaction_rows = interactions_of(inputs, names)
    rows = {
        "performance": quality.rows_predicted,
        "conditional importance": int(conditional.settings["n_rows_predicted"]),
        "marginal importance": int(marginal.settings["n_rows_predicted"]),
        "gaps": gaps.rows_predicted,
        "curves": n_curve_rows,
        **({"interactions": n_interaction_rows} if n_interaction_rows else {}),
    }
    shuffled = {score.title: fidelity_of(score, "shuffled") for score in marginal.scores}
    dependence = tuple(methods.dependence_summaries(forests, inputs.features, shuffled))
    level = conditional.level
    summary = Summary(
        title=labels.title if labels.title is not None else f"What the model of {inputs.target} uses",
        created=labels.created,
        level=level,
        loss=inputs.loss.name,
        loss_unit=methods.loss_unit(inputs),
        baseline=results.baseline,
        important=results.important,
        model=_model_summary(inputs, labels, quality),
        data=data,
        highlights=(),
        groups=groups,
        interactions=interactions,
        interaction_sentences=on_interactions,
        dependence=dependence,
        dependence_sentences=methods.dependence_sentences(dependence),
        features=tuple(features),
        methods=methods.method_summary(inputs, level, forests, rows, len(gaps.by_feature)),
        cautions=(),
        warnings=tuple(dict.fromkeys(messages)),
    )
    words = {"highlights": highlights(summary), "cautions": cautions(summary)}
    return msgspec.structs.replace(summary, **words), conditional


def _reject_random_predictions(one: ImportanceResult, other: ImportanceResult) -> None:
    """Raise an error if the losses of the same rows differ: a report compares results of several calls of the model."""
    if not np.allclose(one.baseline, other.baseline, rtol=1e-9, atol=0):
        losses = f"{one.losses[0]} was {one.baseline[0]:.6g}, then {other.baseline[0]:.6g}"
        raise ModelError(
            f"The model predicts other values for the same rows at each call: its {losses}. Switch randomness off "
            f"when it predicts (dropout, sampling)."
        )


def _model_summary(inputs: ReportInputs, labels: ReportLabels, quality: Performance) -> ModelSummary:
    return ModelSummary(
        description=labels.description if labels.description is not None else methods.model_description(inputs.model),
        task=inputs.task,
        target=inputs.target,
        classes=tuple(str(label) for label in inputs.classes),
        origin=labels.origin or "",
        scores=quality.scores,
        verdict=quality.judgement.verdict,
        verdict_sentence=quality.judgement.sentence,
        judged_by=quality.judgement.score.name,
        sentences=tuple(tidy(sentence) for sentence in quality.sentences),
        per_class=quality.classes.per_class,
        confusion=quality.classes.confusion,
        confusions=quality.classes.confusions,
        leakage=leaking_columns(inputs),
    )


@contextmanager
def _collected(messages: list[str]) -> Iterator[None]:
    """Collect warnings of subgrove in `messages`; pass others on, each once."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    messages += [tidy(str(one.message)) for one in caught if issubclass(one.category, SubgroveWarning)]
    others = {(one.category, str(one.message)): one for one in caught if not issubclass(one.category, SubgroveWarning)}
    for one in others.values():
        warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)


@dataclass(frozen=True, repr=False)
class Report:
    """A report on a model, as returned by `subgrove.report`.

    Attributes
    ----------
    summary : Summary
        The content of the report as frozen structs; `docs/report.md` describes each field.
    comparison : Comparison or None
        If there are several models: their names, the summaries of all but the first, which is in `summary`, the
        differences of their importance to the first, with intervals, and sentences on these.

    Examples
    --------
    >>> import subgrove as sg
    >>> train, test = sg.datasets.bike(split=0.7, random_state=1)
    >>> def model(X):
    ...     return 2000 + 100 * X["temp"] + 1000 * (X["yr"] == "2012")
    >>> found = sg.report(model, train, test, features=["temp", "yr"], n_repeats=5, random_state=1)
    >>> found
    <Report 'What the model of cnt uses': 2 features, 219 test rows, absolute_error>
    >>> found.summary.features[0].feature
    'yr'
    """

    summary: Summary
    comparison: Comparison | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain values for JSON; their schema is `docs/report.schema.json`."""
        others = {} if self.comparison is None else {KEY: msgspec.to_builtins(self.comparison)}
        return {**self.summary.to_dict(), **others}

    def to_html(self) -> str:
        """Return the report as one self-contained HTML page."""
        return render.page(self.summary, self.comparison)

    def to_markdown(self) -> str:
        """Return the report as Markdown."""
        return render.markdown(self.summary, self.comparison)

    def to_json(self) -> str:
        """Return the report as JSON."""
        return msgspec.json.format(msgspec.json.encode(self.to_dict()), indent=1).decode() + "\n"

    def save(self, path: str | Path) -> None:
        """Write the report; an existing file is replaced once the new one is complete.

        Parameters
        ----------
        path : str or Path
            Its suffix is the format: `.html`, `.json` or `.md`.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> import subgrove as sg
        >>> train, test = sg.datasets.bike(split=0.7, random_state=1)
        >>> model = lambda X: 100 * X["temp"]
        >>> found = sg.report(model, train, test, features=["temp"], n_repeats=5, random_state=1)
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "bike.json"
        >>> found.save(path)
        >>> sg.Report.load(path) == found
        True
        """
        place = Path(path)
        makers = {".html": self.to_html, ".json": self.to_json, ".md": self.to_markdown}
        if place.suffix.lower() not in makers:
            ends = ", ".join(makers)
            raise ParameterError(f"path={str(path)!r} must end in {ends}, which is the format of the report.")
        check_file_path(place)
        write_text(place, makers[place.suffix.lower()]())

    @classmethod
    def load(cls, path: str | Path) -> Report:
        """Read a report that `save` wrote as JSON; neither the model nor the data is needed.

        Parameters
        ----------
        path : str or path
            A JSON file that `save` wrote.
        """
        text, comparison = read_comparison(Path(path).read_bytes())
        return cls(Summary.from_json(text), comparison)

    def __repr__(self) -> str:
        one = self.summary
        features, rows = count_of(len(one.features), "feature"), count_of(one.data.n_test, "test row")
        return f"<Report {one.title!r}: {features}, {rows}, {one.loss}>"

    def _repr_html_(self) -> str:
        return html_of(self)


@names_arguments("Pass rows and target as pairs: report(model, (X_train, y_train), (X_test, y_test)).")
def report(
    model: Any,
    train: Any,
    test: Any,
    *,
    features: Any = None,
    loss: Any = None,
    sampler: Any = "auto",
    min_share: float = 0.01,
    n_repeats: int | None = None,
    labels: Mapping[str, Any] | None = None,
    groups: Any = None,
    random_state: RandomStateLike = None,
    n_jobs: int | None = None,
) -> Report:
    """Explain a model in one report: performance, dependence between features, importance, subgroups and curves.

    Parameters
    ----------
    model : object or callable
        A fitted model with `predict` or `predict_proba`, or a function of a table. A dict of named models, or a list,
        compares them on the same rows, with the same resampled values; the details are those of the first.
    train, test : Dataset or pair (X, y)
        The training rows of the model, and held-out rows on which the report explains it. X may be `LargeData`, a path
        to Parquet or a lazy table, with the name of the target column as y: the report is then on a sample of its rows
        (`LargeData(..., sample_size=)`), and says so.
    features : list or dict, optional
        The features to explain, and groups of them as lists, as in `importance`; all columns by default. The members
        of a group are explained one by one and together. Unless groups are given, those of `find_groups` are.
    loss : str, Loss or callable, optional
        The loss in which importance is measured; it must have a value for each row. The default is that of
        `importance`: absolute error; for classifiers log loss, or the share of rows misclassified if they have no
        `predict_proba`; squared error if y has only 0 and 1 and the model is not a classifier.
    sampler : str or sampler, default "auto"
        How features are resampled given the others, as in `importance`. It must condition on other columns; marginal
        importance is in the report anyway.
    min_share : float, default 0.01
        Share of the model's gain over the best constant prediction from which on an importance counts as important.
    n_repeats : int, optional
        Number of times each feature is resampled. By default 20, and fewer, down to 5, for many rows and features.
    labels : mapping, optional
        Texts for the page: "title", "target" (name of y), "description" and "origin" of the model, "created" (date and
        time; now by default, "" for none), and "columns" (a mapping from columns to notes on them).
    groups : column, array or str, or a pair of them, optional
        Group of each test row, as in `importance`, if rows of a group depend on each other: standard errors are then
        cluster-robust. A pair has the groups of train and of test; where columns are the same within groups, samplers
        are then fitted on one row of each. Without it, the report warns of columns that seem to group or order rows.
    random_state : int, RandomState instance or Generator, optional
        Seed. The same seed gives the same report for any number of jobs.
    n_jobs : int, optional
        Number of jobs, as in joblib.

    Returns
    -------
    Report
        `.save("report.html")` (or `.json`, `.md`), `.summary`, `.to_html()`, `.to_markdown()`, `.to_dict()`.

    Notes
    -----
    Importance is computed on at most 20,000 test rows, curves on at most 1,000 (300 with many features), dependence
    forests on at most 2,000 training rows, with fewer rows and trees for many columns. Gaps are computed column by
    column as long as that predicts at most 800,000 rows. The methods section of the report states the numbers that
    were used, and `summary.methods.rows_predicted` the number of rows that were predicted.

    Warnings of subgrove are not raised: they are in `summary.warnings`, and so in the report.

    Examples
    --------
    >>> import subgrove as sg
    >>> train, test = sg.datasets.bike(split=0.7, random_state=1)
    >>> def model(X):
    ...     return 2000 + 100 * X["temp"] + 1000 * (X["yr"] == "2012")
    >>> found = sg.report(model, train, test, features=["temp", "yr"], n_repeats=5, random_state=1)
    >>> print(found.summary.features[0].headline)
    yr is important: 273 (95 % interval 221 to 322).
    """
    texts, seed = read_labels(labels), read_seed(random_state)
    models = named_models(model) if isinstance(model, Mapping | list | tuple) else {"": model}
    found = []
    for each in models.values():
        messages: list[str] = []
        with _collected(messages):
            inputs = read_inputs(
                each, train, test, features, loss, sampler, min_share, n_repeats, seed, texts.target, n_jobs, groups
            )
        X, rows = inputs.train, inputs.used
        with read_once(X.X, inputs.drawn.X, table=X.table), read_once(rows.X, table=rows.table):
            found.append(summarize(inputs, texts, messages))
    summaries, results = zip(*found, strict=True)
    if len(models) == 1:
        return Report(summaries[0])
    title = texts.title if texts.title is not None else f"What {len(models)} models of {summaries[0].model.target} use"
    return Report(msgspec.structs.replace(summaries[0], title=title), compared(list(models), summaries, results))
