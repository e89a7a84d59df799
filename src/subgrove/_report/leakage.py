"""Target leakage: columns that nearly determine the target, alone or as a sum of two or three.

For each column a tree predicts the target from this column alone, on half of a sample of the training rows, and is
evaluated on the other half, both ways round. A tree of one column finds any function of it: a copy of the target, a
monotone or other transformation, a code of its classes, or a missing value. Numbers are replaced by their ranks, so
that outliers and skewness do not matter. A legitimate predictor rarely explains 98 % of the target alone
(`docs/decisions`, 0036); a copy with a tenth of the target's standard deviation as noise does.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from subgrove._core.execution import stream
from subgrove._core.kinds import Floats
from subgrove._core.text import listed, percent
from subgrove._report.inputs import ReportInputs, some_rows
from subgrove._report.model_summary import LeakageSummary

NEARLY = 0.98
"""Share of the target from which on a column is said to determine it nearly."""
_NEARLY_SUM = 0.999  # the same for a sum of columns, which has more ways to fit
_MOST_ROWS, _SCREENING_ROWS, _FEWEST_ROWS = 2_000, 400, 20
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
    rows = stream(inputs.seed, "order of rows for leakage").permutation(
        some_rows(train.n, _MOST_ROWS, inputs.seed, "rows for leakage")
    )
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
        # trees of scikit-learn have single precision, in which different values may be equal; their ranks are not
        column = np.where(missing, np.nan, rankdata(np.where(missing, 0.0, values), method="dense"))
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
    first, second = slice(None, half), slice(half, None)
    lost = total = 0.0
    for fitted, tested in ((first, second), (second, first)):
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
