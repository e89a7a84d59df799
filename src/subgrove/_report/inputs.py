"""The inputs of a report, validated once: model, rows, task, loss, sampler and labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from subgrove._core.execution import effective_jobs, read_seed, stream
from subgrove._core.files import utf8
from subgrove._core.kinds import Rows
from subgrove._core.text import quote
from subgrove._core.validate import number_in, reject_another_index, whole_number
from subgrove._data.clusters import independent_rows
from subgrove._data.columns import parse_features
from subgrove._data.replace_columns import Frames
from subgrove._data.table import Table, read_table
from subgrove._dependence.groups import groups_of, named_group
from subgrove._importance.explanation import IMPORTANT
from subgrove._importance.spec import read_clusters, read_pair
from subgrove._models import predictor
from subgrove._models.predictor import Target, gives_probabilities, response_for
from subgrove._scale.large_data import LargeData, as_large, check_column_name, is_large, model_columns
from subgrove._scale.readers.sample import sample_rows
from subgrove._subgroups import Partition, Subgroups
from subgrove.exceptions import InputError, ParameterError
from subgrove.losses import Loss
from subgrove.losses.named import get_all
from subgrove.samplers.base import FittedSampler, Sampler
from subgrove.samplers.fit import read_sampler

MOST_ROWS = 20_000
"""Test rows on which importance is computed, a random sample if there are more."""
EFFECT_ROWS = 1_000
"""Test rows over which curves are means, a random sample if there are more; fewer where features are many."""
_CURVE_ROWS, _FEWEST_ROWS = 25_000, 300  # of all features together, and of one
_RESAMPLED_ROWS = 1_000_000  # rows of each importance, from which the number of repeats follows
_FEWEST, _MOST = 5, 20  # repeats
_SMALLEST, _LARGEST = 1e-70, 1e70  # sizes of y whose fourth powers, from which standard errors follow, are floats
SURE_TASKS = {"probability": "classification", "label": "classification", "value": "regression"}


@dataclass(frozen=True, eq=False)
class LabelledRows:
    """Rows and their target as passed by the user, and the table that was read from them.

    `n_total` is the number of rows of large data, of which these are a sample.
    """

    X: Any
    y: Any
    table: Table
    n_total: int | None = None

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.table.n_rows

    def some(self, rows: Rows) -> LabelledRows:
        """Return some of the rows; the same object if these are all."""
        if len(rows) == self.n:
            return self
        part = Frames(self.X, self.table.columns).changed(rows, {})
        clusters = None if self.table.clusters is None else self.table.clusters[rows]
        return LabelledRows(part, np.asarray(self.y)[rows], read_table(part, lenient=True).with_clusters(clusters))


@dataclass(frozen=True)
class ReportLabels:
    """Texts for the page; None for the default."""

    title: str | None = None
    target: str | None = None
    description: str | None = None
    origin: str | None = None
    created: str = ""
    columns: Mapping[str, str] = field(default_factory=dict)


def read_labels(labels: Any) -> ReportLabels:
    """Return the labels of a report; the creation time is now unless it is given."""
    values = {} if labels is None else labels
    names = [one.name for one in fields(ReportLabels)]
    if not isinstance(values, Mapping) or not set(values) <= set(names):
        shown = quote(values) if isinstance(values, Mapping) else type(values).__name__
        raise ParameterError(f"labels must be a mapping with keys among {quote(names)}; got {shown}.")
    given: dict[str, Any] = {name: value for name, value in values.items() if value is not None}
    for name, value in given.items():
        kind, words = (Mapping, "a mapping") if name == "columns" else (str, "a str")
        if not isinstance(value, kind):
            raise ParameterError(f"labels[{name!r}] must be {words}; got {type(value).__name__}.")
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return ReportLabels(**{"created": now, **{name: _valid_text(value) for name, value in given.items()}})


def _valid_text(label: Any) -> Any:
    """Return text, or a mapping to texts, in which halves of surrogate pairs are escaped: no file can hold them."""
    if isinstance(label, Mapping):
        return {name: _valid_text(str(text)) for name, text in label.items()}
    return utf8(label).decode()


@dataclass(frozen=True, eq=False)
class ReportInputs:
    """Validated inputs.

    Attributes
    ----------
    model : object
        The user's model.
    train, test : LabelledRows
        Training rows and test rows.
    used, drawn : LabelledRows
        Test rows on which importance, and curves, are computed.
    features : tuple of str
    feature_groups : tuple of tuple of str
        Groups of redundant features, whose members are resampled together, too.
    task : {"regression", "classification"}
    target : str
        Name of y.
    classes : tuple
        Labels of the classes, in the order of probabilities.
    common : tuple of int
        Positions of the classes, the most frequent first.
    loss : Loss
    targets : pair of Target
        y of training and of test rows, as losses compare it.
    sampler : object
        As `importance` takes it, with the given depth.
    n_repeats, seed : int
    n_jobs : int or None
    min_share : float
        Share of the model's gain from which on an importance counts as important.
    """

    model: Any
    train: LabelledRows
    test: LabelledRows
    used: LabelledRows
    drawn: LabelledRows
    features: tuple[str, ...]
    feature_groups: tuple[tuple[str, ...], ...]
    task: str
    target: str
    classes: tuple[Any, ...]
    common: tuple[int, ...]
    loss: Loss
    targets: tuple[Target, Target]
    sampler: Any
    n_repeats: int
    seed: int
    n_jobs: int | None
    min_share: float = IMPORTANT

    @property
    def probabilities(self) -> bool:
        """Whether the model predicts probabilities of classes."""
        return gives_probabilities(response_for((self.loss,), None))

    @property
    def fitted_on(self) -> Any:
        """Training rows for the sampler; None where it is already fitted."""
        groups = getattr(self.sampler, "groups", None)
        fitted = isinstance(self.sampler, FittedSampler | Subgroups | Partition)
        return None if fitted or (groups is not None and self.sampler.donors != "train") else self.independent.X

    @cached_property
    def independent(self) -> LabelledRows:
        """Training rows without those that repeat others of their group."""
        return self.train.some(independent_rows(self.train.table, stream(self.seed, "independent rows")))

    @property
    def max_depth(self) -> int | None:
        """Maximum depth of the reported subgroups; None if it is unknown."""
        depth = getattr(self.sampler, "report_depth", getattr(self.sampler, "max_depth", None))
        return depth if isinstance(depth, int) else None

    def reader(self) -> predictor.Predictor:
        """Return the model, with the response method of the loss."""
        return predictor.read_model(self.model, response_for((self.loss,), None))


def read_inputs(
    model: Any,
    train: Any,
    test: Any,
    features: Any,
    loss: Any,
    sampler: Any,
    min_share: Any,
    n_repeats: Any,
    random_state: Any,
    target: str | None,
    n_jobs: int | None,
    groups: Any = None,
) -> ReportInputs:
    """Return the validated arguments of `report`."""
    seed = read_seed(random_state)
    given = ((train, "train"), (test, "test"))
    pair = [read_labelled(rows, argument, model, seed) for rows, argument in given]
    _reject_other_columns(*(rows.table.names for rows in pair))
    trained, tested = map(_with_groups, pair, _pair_of_groups(groups))
    effective_jobs(n_jobs)  # raises if n_jobs is invalid
    method = _sampler(sampler)
    names, together = _features(features, trained.table, method)
    row_loss = _loss(loss, model, tested.y)
    usual = "classification" if predictor.is_classifier(model) else "regression"
    task = SURE_TASKS.get(row_loss.response_method, usual)
    targets = _targets(model, row_loss, trained, tested)
    used = tested.some(some_rows(tested.n, MOST_ROWS, seed, "rows of the report"))
    n_curve_rows = int(np.clip(_CURVE_ROWS // len(names), _FEWEST_ROWS, EFFECT_ROWS))
    return ReportInputs(
        model=model,
        train=trained,
        test=tested,
        used=used,
        drawn=used.some(some_rows(used.n, n_curve_rows, seed, "rows of curves")),
        features=names,
        feature_groups=together,
        task=task,
        target=target if target is not None else str(getattr(tested.y, "name", None) or "y"),
        classes=targets[1].classes if task == "classification" else (),
        common=_by_frequency(targets[0]) if task == "classification" else (),
        loss=row_loss,
        targets=targets,
        sampler=method,
        n_repeats=_repeats(n_repeats, used.n, len(names)),
        seed=seed,
        n_jobs=n_jobs,
        min_share=number_in("min_share", min_share, low=0, high=1),
    )


def read_labelled(rows: Any, argument: str, model: Any, seed: int) -> LabelledRows:
    """Return the rows and target of a data set or of a pair; a sample of the rows of large data."""
    X, y = read_pair(argument, rows, f" Pass {argument}=(X, y): the performance of the model is compared on both.")
    n_total = None
    if is_large(X):
        X, y, n_total = _sampled(as_large(X), y, argument, model, seed)
    if y is None or (np.ndim(y) == 2 and np.shape(y)[1] != 1):
        what = "no target" if y is None else f"a target of shape {np.shape(y)}"
        raise InputError(f"{argument} has {what}; a report has one target. Pass one value of y for each row.")
    table = read_table(X, argument=f"{argument}.X", lenient=True)
    for at, name in enumerate(table.names):
        if not name.strip():
            raise InputError(f"{argument}.X has a column without a name ({name!r}, at position {at}). Give it a name.")
    return LabelledRows(X, y, table, n_total)


def _pair_of_groups(groups: Any) -> tuple[Any, Any]:
    """Return the groups of training rows, if they are known, and of test rows."""
    if isinstance(groups, tuple) and len(groups) == 2 and not any(np.ndim(one) == 0 for one in groups):
        return groups
    return (groups if isinstance(groups, str) else None), groups


def _with_groups(rows: LabelledRows, groups: Any) -> LabelledRows:
    reject_another_index(rows.X, groups=groups)
    clusters = read_clusters(groups, rows.table, np.arange(rows.n))
    return replace(rows, table=rows.table.with_clusters(clusters))


def _sampled(large: LargeData, y: Any, argument: str, model: Any, seed: int) -> tuple[Any, Any, int]:
    """Return a random sample of the rows of large data, their target, and the number of all rows."""
    import narwhals.stable.v2 as nw

    data = large.read(argument)
    if y is None:
        raise ParameterError(f"{argument} must have the name of the target column as y, for it is large data.")
    target = check_column_name(y, data, f"y of {argument}", "the target")
    assert target is not None
    names = model_columns(data, model, (), (target, large.row_key))
    sample = sample_rows(data, [*names, target], large.sample_size, seed, large.row_key)
    table = nw.from_native(sample.table, eager_only=True)
    return table.select(names).to_native(), table[target].to_native(), data.n_rows


def _reject_other_columns(train: tuple[str, ...], test: tuple[str, ...]) -> None:
    for lacks, there, argument in ((train, test, "train"), (test, train, "test")):
        if absent := [name for name in there if name not in lacks]:
            lacking = f"{argument} lacks {quote(absent[:5])}, which the other table has."
            raise InputError(f"{lacking} Pass the same columns in both.")


def _features(features: Any, train: Table, sampler: Any) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """Return the features, each once, and the groups of them: as the user named them, or those that are redundant."""
    parsed = parse_features(features, train.names)
    names = tuple(dict.fromkeys(name for members in parsed for name in members))
    groups = tuple(members for members in parsed if len(members) > 1)
    if groups or not (isinstance(sampler, Sampler) and sampler.accepts_groups):
        return names, groups
    return names, tuple(map(named_group, groups_of(train, names).redundant))


def _loss(loss: Any, model: Any, y: Any) -> Loss:
    """Return the loss, or the default of the task: a report has one, with a value for each row."""
    losses = get_all(predictor.default_loss(model, y) if loss is None else loss)
    if len(losses) > 1:
        raise ParameterError(f"loss has {len(losses)} losses; a report has one. Name one of them.")
    if not losses[0].per_row:
        score = (
            f"loss={losses[0].name!r} is a score of all rows together, which has no value in a subgroup and no interval"
        )
        example = "such as 'absolute_error', 'log_loss' or 'brier'"
        raise ParameterError(f"{score}. Name a loss that has a value for each row, {example}.")
    return losses[0]


def _targets(model: Any, loss: Loss, train: LabelledRows, test: LabelledRows) -> tuple[Target, Target]:
    """Return y of training and test rows; the classes are those of the model, or else those of both."""
    response = response_for((loss,), None)
    classes, probabilities = predictor.read_model(model, response).classes, gives_probabilities(response)
    if not classes and loss.response_method in ("probability", "label"):
        classes = tuple(np.unique(np.concatenate([np.asarray(test.y), np.asarray(train.y)])).tolist())
    read = []
    for pair, argument in ((train, "train"), (test, "test")):
        try:
            read.append(predictor.read_target(pair.y, pair.n, classes, (loss,), probabilities=probabilities))
        except InputError as error:
            raise type(error)(f"In {argument}: {error}") from error
        if read[-1].numbers is not None:
            reject_extreme(read[-1].numbers, f"In {argument}: y")
    return read[0], read[1]


def reject_extreme(values: Any, what: str) -> None:
    """Raise if the scores of a target would overflow or underflow."""
    largest = float(np.abs(values).max(initial=0.0))
    if largest and not _SMALLEST < largest < _LARGEST:
        why = "fourth powers of such numbers are beyond the range of floats"
        remedy = f"{'Divide' if largest > 1 else 'Multiply'} it by a constant, and train on that."
        raise InputError(f"{what} has values up to {largest:g} in size; {why}. {remedy}")


def _by_frequency(target: Target) -> tuple[int, ...]:
    counts = [int((np.asarray(target.raw) == label).sum()) for label in target.classes]
    return tuple(np.argsort(-np.array(counts), kind="stable").tolist())


def _sampler(sampler: Any) -> Any:
    """Return the sampler, which must condition on other columns."""
    method = read_sampler(sampler) if isinstance(sampler, str) else sampler
    if isinstance(method, Sampler) and not method.conditional:
        why = "but a report compares conditional with marginal importance"
        remedy = "Use 'auto', 'subgroups' or another conditional sampler."
        raise ParameterError(f"sampler={method.name!r} does not condition on other columns, {why}. {remedy}")
    return method


def _repeats(n_repeats: Any, n_rows: int, n_features: int) -> int:
    if n_repeats is not None:
        return whole_number("n_repeats", n_repeats, least=1)
    return int(np.clip(_RESAMPLED_ROWS // max(n_rows * n_features, 1), _FEWEST, _MOST))


def some_rows(n: int, most: int, seed: int, what: str) -> npt.NDArray[np.intp]:
    """Return all rows, or a random sample of them if there are more than `most`."""
    if n <= most:
        return np.arange(n)
    return np.sort(stream(seed, what).choice(n, most, replace=False))
