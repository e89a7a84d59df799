"""Columns that make results misleading: those that order or group dependent rows, and those that leak the target.

Dates of a time series or identifiers of what was measured repeatedly order or group the rows. A random split then puts
rows of the same person, or of neighbouring days, on both sides, and standard errors of independent rows are too small.
There is a warning only with evidence:

- time: a column of dates, or of numbers named like a year, or evenly spaced and named like a time, in whose order the
  rows are; or any column of dates, or by which rows are sorted, along which the errors of the model are correlated;
- groups: a nominal column, or integers that are named like an identifier or by which the rows are sorted, with many
  levels that recur, whose rows share the values of several other columns, or have similar errors; for identifiers, or
  similar targets.

Target leakage: columns that nearly determine the target, alone or as a sum of two or three. For each column a tree
predicts the target from this column alone, on half of a sample of the training rows, and is evaluated on the other
half, both ways round. A tree of one column finds any function of it: a copy of the target, a monotone or other
transformation, a code of its classes, or a missing value. Numbers are replaced by their ranks, so that outliers and
skewness do not matter. A legitimate predictor rarely explains 98 % of the target alone (`docs/decisions`, 0036); a copy
with a tenth of the target's standard deviation as noise does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from subgrove._core.execution import stream
from subgrove._core.kinds import Floats, Rows
from subgrove._core.text import listed, percent
from subgrove._data.clusters import SAME, column_numbers, intraclass_correlation
from subgrove._data.columns import OTHER
from subgrove._data.table import TypedColumn
from subgrove._report.inputs import LabelledRows, ReportInputs, some_rows
from subgrove._report.model_summary import LeakageSummary

_DATES = frozenset(("date", "datetime", "epoch", "timestamp", "year", "yr"))
_TIMES = frozenset(("period", "time"))  # also names of durations, which are not evenly spaced
_IDENTIFIERS = frozenset(
    ("client", "customer", "household", "id", "ids", "participant", "patient", "person", "pupil", "subject", "user")
)
_MIN_TIMES, _MIN_CHANGES, _RISING, _OCCUPIED = 10, 30, 0.75, 0.6
_MIN_CORRELATION, _Z = 0.1, 4.0
_MIN_GROUPS, _MIN_SIZE = 20, 2.0  # levels, and mean number of rows of each
_MIN_SHARED = 2  # columns that are nearly the same in all rows of a group
_MIN_ROWS, _MOST_ROWS, _MOST_COLUMNS = 50, 5_000, 20  # that are looked at
_TOO_SHORT = "intervals of independent rows are too short"
_SPLIT = f"A random split then overstates the performance of a model, and {_TOO_SHORT}."


def dependence_warnings(train: LabelledRows, test: LabelledRows, residuals: Floats | None) -> list[str]:
    """Return warnings of columns that order or group dependent rows; `residuals` (rows, outputs) are of test rows."""
    if train.n < _MIN_ROWS:
        return []
    found = []
    if time := next(_times(train, test, residuals), None):
        name, reason = time
        blocks = "blocks of time such as months as groups=."
        split = f"--time {name} in the command; in Python, pass later rows as test, and {blocks}"
        remedy = f"{_SPLIT} Split the rows by time: {split}"
        if _is_later(train, test, name):
            remedy = f"Then {_TOO_SHORT}. Pass {blocks}"
        found.append(f"{reason} {remedy}")
    if group := max(_groups(train, test, residuals), default=None):
        _, name, reason = group
        split = f"--group {name} in the command; in Python, pass other groups as test, and groups={name!r}."
        remedy = f"{_SPLIT} Split the rows by {name}: {split}"
        if not set(_labels(train.table.series(name))) & set(_labels(test.table.series(name))):
            remedy = f"Then {_TOO_SHORT}. Pass groups={name!r}."
        found.append(f"{reason} {remedy}")
    return found


def _is_later(train: LabelledRows, test: LabelledRows, name: str) -> bool:
    """Return whether all test rows are later than the training rows: by a column, or by an index of dates."""
    if name not in train.table.names:
        first, last = np.asarray(train.X.index), np.asarray(test.X.index)
    elif train.table.series(name).info.is_nominal:
        return False
    else:
        first, last = train.table.series(name).values, test.table.series(name).values
    return first.dtype == last.dtype and bool(np.max(first) <= np.min(last))


def _labels(series: TypedColumn) -> list[Any]:
    distinct = np.unique(series.values[~series.missing]).tolist()
    return [series.info.levels[at] for at in distinct] if series.info.is_nominal else distinct


def _times(train: LabelledRows, test: LabelledRows, residuals: Floats | None) -> Iterator[tuple[str, str]]:
    """Yield columns that order dependent rows, and the reason; dates and years first."""
    index: Any = getattr(train.X, "index", None)
    if getattr(getattr(index, "dtype", None), "kind", "") == "M":
        yield str(index.name or "date"), "The index of the rows is a time, so that neighbours are probably dependent."
    train = train.some(_file_order(train)[np.linspace(0, train.n - 1, min(train.n, _MOST_ROWS)).astype(np.intp)])
    order = _file_order(train)
    named = sorted(train.table, key=lambda one: (not one.info.is_date, not _words(one) & _DATES))
    for series in named:
        name, words, values = series.info.name, _words(series), series.values[order]
        if series.info.is_nominal and words & _DATES and len(series.info.levels) >= _MIN_TIMES:
            yield name, f"{name} seems to be a time but holds text, so its order is not known."
        distinct = len(np.unique(values))
        if series.info.is_nominal or distinct < _MIN_TIMES:
            continue
        is_time = series.info.is_date or words & _DATES or (words & _TIMES and _evenly_spaced(values))
        is_key = series.info.is_date or (distinct > train.n / 2 and _is_sorted(values))
        if is_time and _in_order(values):
            yield name, f"The rows are in the order of {name}, so that neighbours are probably dependent."
        elif residuals is not None and is_key and not words & _IDENTIFIERS:
            correlation = _along(test.table.series(name), residuals)
            if correlation > max(_MIN_CORRELATION, _Z / np.sqrt(len(residuals))):
                yield name, f"Errors of the model are correlated along {name} ({correlation:.2f} between neighbours)."


def _groups(train: LabelledRows, test: LabelledRows, residuals: Floats | None) -> Iterator[tuple[float, str, str]]:
    """Yield the strength of evidence, the columns that group dependent rows, and the reason."""
    train = train.some(_file_order(train)[:_MOST_ROWS])
    order = _file_order(train)
    for series in train.table:
        words = _words(series)
        identifier = bool(words & _IDENTIFIERS)
        is_code = not series.info.is_nominal and not np.any(series.values % 1)  # NaN are other than 0
        is_code = is_code and (identifier or (not words & (_DATES | _TIMES) and _is_sorted(series.values[order])))
        if series.info.is_date or not (series.info.is_nominal or is_code):
            continue
        name, rows = series.info.name, _known(series)
        n_groups = len(np.unique(series.values[rows]))
        if n_groups < _MIN_GROUPS or len(rows) < _MIN_SIZE * n_groups:
            continue
        others = [one for one in train.table if one.info.name != name and not one.missing.any()]
        looked_at = [(one.info.name, column_numbers(one)) for one in others[:_MOST_COLUMNS]]
        shared = [each for each, values in looked_at if _similarity(series, values, rows)[0] > SAME]
        if len(shared) >= _MIN_SHARED:
            yield len(shared), name, f"Rows of the same {name} have nearly the same {listed(shared[:3])}."
            continue
        tested = test.table.series(name)
        evidence, y = [], np.asarray(train.y)
        if residuals is not None:
            evidence.append(("errors of the model", _similarity(tested, residuals, _known(tested))))
        if identifier and y.dtype.kind in "iufb":
            evidence.append(("values of the target", _similarity(series, y[:, None], rows)))
        for what, (correlation, z) in evidence:
            if correlation > _MIN_CORRELATION and z > _Z:
                yield correlation, name, f"Rows of the same {name} have similar {what} (correlation {correlation:.2f})."


def _file_order(rows: LabelledRows) -> Rows:
    """Return the rows in the order of the file: by a pandas index of integers or dates, which a random split keeps."""
    index: Any = getattr(rows.X, "index", None)
    kind = getattr(getattr(index, "dtype", None), "kind", "")
    if kind and kind in "iuM" and index.is_unique:
        return np.argsort(np.asarray(index), kind="stable")
    return np.arange(rows.n)


def _words(series: TypedColumn) -> set[str]:
    """Return the words of the name of a column, in lower case: patientId, patient_id and "Patient ID" have two."""
    return set(re.findall("[a-z]+", re.sub("([a-z0-9])([A-Z])", r"\1 \2", series.info.name).lower()))


def _known(series: TypedColumn) -> Rows:
    """Return the rows with a known level of their own."""
    known = ~series.missing
    if series.info.is_nominal and OTHER in series.info.levels:
        known &= series.values != series.info.levels.index(OTHER)
    return np.flatnonzero(known)


def _is_sorted(values: Floats) -> bool:
    changes = np.diff(values)
    return bool((changes >= 0).all() or (changes <= 0).all())


def _evenly_spaced(values: Floats) -> bool:
    """Return whether most points of a regular grid occur; some are missing where rows were split at random."""
    steps = np.diff(np.unique(values[~np.isnan(values)]))
    return bool((len(steps) + 1) * steps.min() >= _OCCUPIED * steps.sum())


def _in_order(values: Floats) -> bool:
    """Return whether values rise (or fall) from row to row, or start again, as the years of countries do."""
    changes = np.diff(values[~np.isnan(values)])
    changes = changes[changes != 0]
    rising = float(np.mean(changes > 0)) if len(changes) else 0.5
    return _is_sorted(values) or (len(changes) >= _MIN_CHANGES and max(rising, 1 - rising) >= _RISING)


def _along(series: TypedColumn, residuals: Floats) -> float:
    """Return the correlation of the residuals of neighbours in the order of a column, the largest over outputs."""
    known = np.flatnonzero(~series.missing)
    ordered = residuals[known[np.argsort(series.values[known], kind="stable")]]
    ordered = ordered - ordered.mean(axis=0)
    total = (ordered**2).sum(axis=0)
    products = (ordered[1:] * ordered[:-1]).sum(axis=0)
    return float(np.max(products / np.where(total > 0, total, 1.0), initial=0.0))


def _similarity(series: TypedColumn, values: Floats, rows: Rows) -> tuple[float, float]:
    """Return the correlation of values (rows, parts) of rows of the same level, and its z-score."""
    return intraclass_correlation(series.values[rows], values[rows])


NEARLY = 0.98
"""Share of the target from which on a column is said to determine it nearly."""
_NEARLY_SUM = 0.999  # the same for a sum of columns, which has more ways to fit
_LEAKAGE_ROWS, _SCREENING_ROWS, _FEWEST_ROWS = 2_000, 400, 20
_SCREENED = 0.8  # share on the screening rows from which on a column is evaluated on all
_MOST_CLASSES = 20
_MOST_SUMMED = 3
_LEAVES = (1, 5)  # fewest rows of a leaf, with few and many rows


@np.errstate(all="ignore")
def leaking_columns(inputs: ReportInputs) -> tuple[LeakageSummary, ...]:
    """Return the columns that nearly determine the target, the most determining first."""
    from scipy.stats import rankdata

    train = inputs.train
    if train.n < _FEWEST_ROWS:
        return ()
    rows = some_rows(train.n, _LEAKAGE_ROWS, inputs.seed, "rows for leakage")
    rows = stream(inputs.seed, "order of rows for leakage").permutation(rows)
    raw, few = inputs.targets[0].raw[rows], slice(_SCREENING_ROWS)
    numbers = raw.astype(np.float64) if inputs.task == "regression" else None
    target = _classes(raw.astype(str)) if numbers is None else np.asarray(rankdata(numbers))[:, None]
    if np.ptp(target) == 0:
        return ()
    found, numeric = [], {}
    for name in train.table.names:
        series = train.table.series(name)
        values, missing = np.asarray(series.values, dtype=np.float64)[rows], series.missing[rows]
        if not series.info.is_nominal:
            numeric[name] = np.where(missing, values[~missing].mean() if not missing.all() else 0.0, values)
        # Trees of scikit-learn have single precision, in which different values may be equal; their ranks are not.
        # A missing value has a rank of its own: up to 1.4, they cannot part missing from equal values.
        column = np.where(missing, 0.0, rankdata(np.where(missing, 0.0, values), method="dense"))
        if _explained(column[few], target[few]) >= _SCREENED and (share := _explained(column, target)) >= NEARLY:
            found.append(LeakageSummary((name,), share))
    if not found and numbers is not None:
        found = _sum_of_columns(numeric, numbers)
    return tuple(sorted(found, key=lambda one: -one.explained))


def leakage_sentence(leakage: tuple[LeakageSummary, ...], target: str) -> str:
    """Return the columns that nearly determine the target, and what to check."""
    first, share = leakage[0], percent(leakage[0].explained)
    if len(first.columns) > 1:
        sentence = f"a weighted sum of {listed(first.columns)} determines {target}: it explains {share} of it"
    elif len(leakage) == 1:
        sentence = f"{first.columns[0]} alone nearly determines {target}: it explains {share} of it"
    else:
        names = listed([f"{one.columns[0]} ({percent(one.explained)})" for one in leakage], 10)
        sentence = f"each of {names} nearly determines {target} alone, by the share explained"
    advice = "Check that such a column is known before the target, and drop it if not."
    return f"Possible target leakage: {sentence} on held-out rows. {advice}"


def _classes(labels: npt.NDArray[np.str_]) -> Floats:
    """Return indicators of the most frequent classes, (n, k)."""
    _, codes, counts = np.unique(labels, return_inverse=True, return_counts=True)
    return np.asarray(codes[:, None] == np.argsort(-counts, kind="stable")[:_MOST_CLASSES], dtype=np.float64)


def _explained(values: Floats, target: Floats) -> float:
    """Return the share of the target that a tree of one column explains on held-out rows."""
    from sklearn.tree import DecisionTreeRegressor

    half = len(values) // 2
    halves = slice(None, half), slice(half, None)
    lost = total = 0.0
    for fitted, tested in (halves, halves[::-1]):
        tree = DecisionTreeRegressor(min_samples_leaf=_LEAVES[half >= _SCREENING_ROWS], random_state=0)
        predicted = tree.fit(values[fitted, None], target[fitted]).predict(values[tested, None])
        predicted = predicted.reshape(target[tested].shape)
        lost += float(((target[tested] - predicted) ** 2).sum())
        total += float(((target[tested] - target[fitted].mean(axis=0)) ** 2).sum())
    return 1 - lost / total if total > 0 else 0.0


def _sum_of_columns(columns: dict[str, Floats], y: Floats) -> list[LeakageSummary]:
    """Return two or three columns whose linear combination is the target, by forward selection."""
    half = len(y) // 2
    X = np.array([(one - one.mean()) / one.std() for one in columns.values()]).T.reshape(len(y), -1)
    usable = np.isfinite(X).all(axis=0)
    X, names = X[:, usable], [name for name, use in zip(columns, usable, strict=True) if use]
    if len(names) < 2:
        return []
    selected: list[int] = []
    residual = y[:half] - y[:half].mean()
    for _ in range(_MOST_SUMMED):
        selected.append(int(np.abs(X[:half].T @ residual).argmax()))
        design = np.column_stack([np.ones(len(y)), X[:, selected]])
        weights = np.linalg.lstsq(design[:half], y[:half], rcond=None)[0]
        residual = y[:half] - design[:half] @ weights
        held_out = y[half:]
        total = float(((held_out - y[:half].mean()) ** 2).sum())
        share = 1 - float(((held_out - design[half:] @ weights) ** 2).sum()) / total if total > 0 else 0.0
        if share >= _NEARLY_SUM and len(selected) > 1:
            return [LeakageSummary(tuple(names[at] for at in selected), share)]
    return []
