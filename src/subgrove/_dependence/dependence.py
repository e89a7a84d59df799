"""`dependence`: held-out R2 of random forests that predict each feature from the other columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from subgrove._core.execution import RandomStateLike, Streams, effective_jobs, progress_bar, read_seed, stream
from subgrove._core.kinds import Floats, Kind, Rows
from subgrove._core.text import quote
from subgrove._core.validate import names_arguments, number_in, whole_number
from subgrove._data.columns import parse_features
from subgrove._data.encode import rank_encoded
from subgrove._data.table import Table, read_table
from subgrove._data.to_containers import backend_of
from subgrove._dependence.result import Dependence, FeatureDependence
from subgrove._regress.forest import grow_forest
from subgrove.exceptions import InputError, ParameterError

LEAST_ROWS = 10
MOST_LEVELS = 100
MOST_PREDICTORS = 30  # of more, those that reduce the error of a first forest most
_SHUFFLED = 1000  # held-out rows for permutation importance; more would only cost time
_LEAST_VARIANCE = (
    1e-6  # of held-out rows beside all rows; below it R2 is a ratio to rounding errors or to nearly nothing
)
_NUMERIC_NODE, _LEVELS_NODE = 5, 1  # nodes of at most this many rows are not split, as in R's forests


@dataclass(frozen=True, eq=False)
class RegressionTask:
    """Regression of one feature on the other columns.

    Attributes
    ----------
    table : Table
        Rows with a value of the feature.
    columns : tuple of str
        Predictors.
    outputs : float array
        The feature if it is numeric, else an indicator of each level: its mean is the level's share, and the decrease
        of squared error that of the Gini impurity.
    numeric : bool
        Whether the feature is numeric.
    """

    table: Table
    columns: tuple[str, ...]
    outputs: Floats
    numeric: bool


def feature_dependence(
    table: Table, name: str, n_trees: int, n_jobs: int | None, streams: Streams
) -> FeatureDependence:
    """Return how well a feature is predicted by the other columns, for each half."""
    info = table.columns[table.names.index(name)]
    columns = tuple(each for each in table.names if each != name)
    series = table.series(name)
    rows = np.flatnonzero(~series.missing)
    values = series.values[rows]
    note = _reason_undefined(values, info.kind == "numeric")
    if note:
        undefined = np.full((2 * len(streams), len(columns) + 1), np.nan)
        return FeatureDependence(name, info.kind, len(rows), columns, undefined, note)
    numeric = info.kind == "numeric"
    outputs = _standardized(values) if numeric else _indicators(values, info.levels)
    task = RegressionTask(table.rows(rows), columns, outputs, numeric)
    folds = np.array([fold for rng in streams for fold in _both_halves(task, n_trees, n_jobs, rng)])
    return FeatureDependence(name, info.kind, len(rows), columns, folds, _notes(folds, len(rows), table.n_rows))


def _reason_undefined(values: Any, numeric: bool) -> str:
    """Return why the R2 of a feature is undefined; empty if it is defined."""
    if len(values) < LEAST_ROWS:
        return f"only {len(values)} rows have a value; at least {LEAST_ROWS} are needed"
    distinct = len(np.unique(values))
    if distinct == 1:
        return "has one value only"
    if not numeric and distinct > MOST_LEVELS:
        return f"has {distinct} levels; more than {MOST_LEVELS} are not supported"
    return ""


def _notes(folds: Floats, n: int, n_rows: int) -> str:
    notes = []
    if n < n_rows:
        notes.append(f"{n_rows - n} rows with missing values excluded")
    undefined = int(np.isnan(folds[:, 0]).sum())
    if undefined:
        notes.append(f"{undefined} of {len(folds)} halves have one value only, or nearly so")
    return "; ".join(notes)


def _standardized(values: Floats) -> Floats:
    """Return values centred and scaled to at most 1, so that squares of dates and extreme numbers keep their digits."""
    scaled = values / np.abs(values).max()
    centred = scaled - scaled.mean()
    return np.asarray(centred / np.abs(centred).max())[:, None]


def _indicators(values: Any, levels: Sequence[str]) -> Floats:
    """Return an indicator for each level that occurs, sorted by name: containers differ in the order of levels."""
    present, code = np.unique(values.astype(np.intp), return_inverse=True)
    first = 1 if values.dtype.kind == "f" else 0  # numbers of ordered levels start at 1
    names = [levels[level - first] for level in present]
    place = np.argsort(np.argsort(names, kind="stable"), kind="stable")
    return np.asarray(place[code][:, None] == np.arange(len(present)), dtype=np.float64)


def _both_halves(task: RegressionTask, n_trees: int, n_jobs: int | None, rng: np.random.Generator) -> Iterator[Floats]:
    order = rng.permutation(len(task.outputs))
    halves = np.array_split(order, 2)
    for train, test in (halves, halves[::-1]):
        yield _fit_and_score(task, np.sort(train), np.sort(test), n_trees, n_jobs, rng)


def _fit_and_score(
    task: RegressionTask, train: Rows, test: Rows, n_trees: int, n_jobs: int | None, rng: np.random.Generator
) -> Floats:
    """Return the share of loss explained in the rows `test`, then its decrease when each column is permuted there."""
    predictors = rank_encoded(task.table, task.columns, task.outputs, train)

    def grow(columns: Floats) -> Any:
        least = _NUMERIC_NODE if task.numeric else _LEVELS_NODE
        codes = None if task.numeric else task.outputs[train].argmax(axis=1)
        settings: dict[str, Any] = {"n_trees": n_trees, "min_node_size": least, "codes": codes, "n_jobs": n_jobs}
        return grow_forest(columns[train], task.outputs[train], seed=int(rng.integers(2**31)), **settings)

    used = np.arange(len(task.columns))
    if len(used) > MOST_PREDICTORS:
        used = np.sort(np.argsort(-grow(predictors).decreases(), kind="stable")[:MOST_PREDICTORS])
        predictors = predictors[:, used]
    forest = grow(predictors)
    some = slice(None) if len(test) <= _SHUFFLED else np.sort(rng.choice(len(test), _SHUFFLED, replace=False))
    held_out = predictors[test]
    predicted = _read(forest.predict(held_out))
    shuffled = np.stack([rng.permutation(column) for column in held_out[some].T], axis=1)
    full = _explained(task, train, test[some], predicted[some])
    scores = np.zeros(1 + len(task.columns))
    scores[0] = _explained(task, train, test, predicted)
    permuted = forest.predict_replaced(held_out[some], shuffled, _read)
    scores[1 + used] = full - _explained(task, train, test[some], permuted)
    return scores


def _read(predicted: Floats) -> npt.NDArray[Any]:
    """Return the predicted number, or level."""
    return predicted[..., 0] if predicted.shape[-1] == 1 else predicted.argmax(axis=-1)


def _explained(task: RegressionTask, train: Rows, test: Rows, predicted: npt.NDArray[Any]) -> Floats:
    """Return the explained share of loss in the rows `test`, the last axis of `predicted`; NaN without loss."""
    wanted = task.outputs[test]
    if task.numeric:
        values = wanted[:, 0]
        loss, spread = ((values - predicted) ** 2).sum(axis=-1), ((values - values.mean()) ** 2).sum()
        varies = values.var() > _LEAST_VARIANCE * task.outputs.var()
    else:
        level, most_frequent = wanted.argmax(axis=1), task.outputs[train].sum(axis=0).argmax()
        loss, spread = (predicted != level).sum(axis=-1), (level != most_frequent).sum()
        varies = spread > 0
    return 1 - loss / spread if varies else np.full(np.shape(loss), np.nan)


@names_arguments()
def dependence(
    X: Any,
    *,
    features: Any = None,
    n_trees: int = 100,
    max_rows: int = 10_000,
    n_repeats: int = 1,
    threshold: float = 0.2,
    kinds: Mapping[str, Kind] | None = None,
    random_state: RandomStateLike = None,
    n_jobs: int | None = None,
) -> Dependence:
    """Measure how well each feature is predicted by the other columns, and by which.

    A random forest is fitted to each feature on one half of the rows, with all other columns as predictors, and scored
    on the other half, and vice versa, as in the section "Analyzing Feature Dependence" of the paper. Resampling a
    feature with a high R2 on its own creates unrealistic rows.

    Parameters
    ----------
    X : pandas or polars frame, pyarrow table or 2-d array
        Features, without the target; best the training rows. Missing values are allowed.
    features : str or list of str, optional
        The features to predict; every column by default. All other columns are predictors in any case.
    n_trees : int, default 100
        Trees of each forest.
    max_rows : int, default 10,000
        Largest number of rows; of larger data, a random subset is used.
    n_repeats : int, default 1
        Number of random splits into halves. More splits reduce the randomness of the split, which matters if a level
        is rare.
    threshold : float, default 0.2
        A feature counts as dependent from this R2 on.
    kinds : mapping, optional
        Column name -> "numeric", "ordered" or "nominal", where the dtype says otherwise.
    random_state : int, RandomState instance or Generator, optional
        Same seed, same numbers, for any `n_jobs`, and for any order or subset of features.
    n_jobs : int, optional
        Threads that grow trees at once, as joblib counts them.

    Returns
    -------
    Dependence
        `table` with a row for each feature, `matrix` with the share of each column in each prediction, and `advice`.

    Notes
    -----
    How to read it: `explained` is the share of loss that a forest of the other columns explains in held-out rows, mean
    of both halves. For numeric features this is R squared; for others it is 1 minus the error rate of the forest over
    that of the most frequent level of the training half. 0 means that the forest finds no dependence; negative values
    are worse than no forest. 1 means that the feature is determined by the others. Since each forest is fitted on half
    of the rows, all rows would give somewhat larger values.

    `matrix` divides that share among the columns, in proportion to its decrease when a column is permuted among the
    held-out rows (at most a thousand of them). Two redundant columns share the decrease, although neither is needed.

    `sampler` in `table`: below `threshold`, marginal methods are sufficient; above it, "auto", the default of
    `importance`, is conditional. `advice` also names the sampler that the paper recommends: subgroups, or imputation if
    a feature depends on many columns, if more than three are needed for 90 % of its row of `matrix`. A tree of depth 2
    can split on three.

    `std_error` is the standard error of the mean over halves, treated as independent. It covers the random split into
    halves, not the sampling of rows.

    With more than 30 predictors, a first forest of all selects the 30 whose splits reduce its error most, and a second
    forest of these is scored: among many columns that carry nothing, a forest finds less than there is.

    Forests try the root of the number of columns at each split; nodes of at most five rows (numeric features) or of
    one are not split. A nominal column is one column for the forest, its levels ranked by their mean outputs in
    the training half; levels that are absent from the training half count as missing. Missing values go to the side of
    a split with the lower loss. Rows with a missing value of a feature are excluded from its prediction. A feature
    with one value, with values in fewer than 10 rows, or with more than 100 levels has no `explained` (NaN); `note`
    gives the reason.

    Examples
    --------
    >>> import subgrove as sg
    >>> train, test = sg.datasets.bike(split=0.7, random_state=1)
    >>> found = sg.dependence(train.X, features=["temp", "work", "wind"], n_trees=100, random_state=1)
    >>> found.table[["feature", "explained", "sampler"]].round(1)
      feature  explained   sampler
    0    temp        0.7      auto
    1    work        1.0      auto
    2    wind        0.1  marginal
    >>> print(found.advice[0])
    work: 100 % explained by weekday, holiday. Given these it hardly varies: expect a conditional importance near 0.
    """
    start = read_seed(random_state)
    n_trees = whole_number("n_trees", n_trees, least=1)
    n_repeats = whole_number("n_repeats", n_repeats, least=1)
    effective_jobs(n_jobs)  # raises if n_jobs is invalid
    least = number_in("threshold", threshold, low=0.0, high=1.0)
    table = read_table(X, kinds=kinds, lenient=True)
    names = _names(features, table.names)
    if table.n_rows > whole_number("max_rows", max_rows, least=LEAST_ROWS):
        table = table.rows(np.sort(stream(start, "rows").permutation(table.n_rows)[:max_rows]))
    if table.n_rows < LEAST_ROWS:
        raise InputError(
            f"X has {table.n_rows} rows; each half needs rows to fit on and rows to score on. "
            f"Pass at least {LEAST_ROWS}."
        )
    found = []
    with progress_bar(len(names), "Growing forests") as done:
        for name in names:
            found.append(feature_dependence(table, name, n_trees, n_jobs, Streams(start, name, n_repeats)))
            done(1)
    used = {"n_trees": n_trees, "n_rows": table.n_rows, "n_repeats": n_repeats, "random_state": start}
    return Dependence(tuple(found), table.names, least, used, backend_of(X))


def _names(features: Any, columns: tuple[str, ...]) -> list[str]:
    if len(columns) < 2:
        raise InputError(f"X has one column, {quote(columns)}, and nothing to predict it from. Pass at least two.")
    parsed = parse_features(features, columns)
    groups = [members for members in parsed if len(members) > 1]
    if groups:
        raise ParameterError(
            f"features has the group {quote(groups[0])}; a forest predicts one column. Name columns one by one."
        )
    return [name for (name,) in parsed]
