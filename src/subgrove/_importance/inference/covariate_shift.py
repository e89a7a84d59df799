"""Whether test rows and training rows may be draws from one source, as far as their columns show.

A random split leaves no column with another mean than chance gives it; a split by time, by group or by anything that
columns know mostly does. Values, squares, levels and gaps are compared, each against the largest difference that as
many of them would have by chance. Levels and gaps of which fewer than five rows are expected in the smaller table say
nothing.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from subgrove._core.kinds import MISSING, Floats
from subgrove._core.random import Keys, hash64, mix64
from subgrove._data.table import Table, TypedColumn
from subgrove._importance.inference.row_features import RowTerms

_CHANCE = 0.05  # of a random split to be taken for another
_LEAST_EXPECTED = 5
_MOSTLY = 0.5  # share of the test rows among the training rows that is no accident
_DIFFERENT = 0.9  # share of the test rows that must differ from each other for that


def look_alike(terms: RowTerms, theirs: Table) -> bool:
    """Whether nothing differs between the two tables by more than chance explains.

    `theirs` are the further rows of the terms, with levels of their own.
    """
    from scipy.special import ndtri

    found = [distance(*terms.both(term)) for term in terms.terms if term.power]
    for name in terms.further.names:
        found += _shares_apart(terms.test.series(name), theirs.series(name))
    return not found or bool(max(found) <= -ndtri(_CHANCE / 2 / len(found)))


def distance(one: Floats, two: Floats) -> float:
    """Difference of two means in standard errors, if both are of one source."""
    error = np.concatenate([one, two]).std() * np.sqrt(1 / len(one) + 1 / len(two))
    return float(abs(one.mean() - two.mean()) / error) if error > 0 else 0.0


def hold_test_rows(test: Table, further: Table) -> bool:
    """Whether most test rows are among the further rows, and not because many rows are alike."""
    keys = np.unique(_keys(test))
    return bool(len(keys) >= _DIFFERENT * test.n_rows and np.isin(keys, _keys(further)).mean() >= _MOSTLY)


def _shares_apart(one: TypedColumn, two: TypedColumn) -> list[float]:
    """Differences of the shares of missing values and of levels, in standard errors."""
    pairs = [(_gaps(one), _gaps(two))]
    if one.info.is_nominal and two.info.is_nominal:
        counts, others = _counts(one), _counts(two)
        pairs += [(counts.get(level, 0), others.get(level, 0)) for level in counts.keys() | others.keys()]
    n, m = len(one.values), len(two.values)
    found = []
    for here, there in pairs:
        share = (here + there) / (n + m)
        if min(n, m) * min(share, 1 - share) >= _LEAST_EXPECTED:
            found.append(abs(here / n - there / m) / float(np.sqrt(share * (1 - share) * (1 / n + 1 / m))))
    return found


def _gaps(series: TypedColumn) -> int:
    return int((series.values == MISSING).sum() if series.info.is_nominal else series.missing.sum())


def _counts(series: TypedColumn) -> dict[str, int]:
    counts = np.bincount(series.values[series.values >= 0], minlength=len(series.info.levels))
    return dict(zip(series.info.levels, counts.tolist(), strict=True))


def _keys(table: Table) -> Keys:
    """A number for each row that depends on all of its values."""
    keys: npt.NDArray[np.uint64] = np.zeros(table.n_rows, dtype=np.uint64)
    for name in table.names:
        values = table.series(name).values.astype(np.float64) + 0.0  # -0 becomes 0
        values[np.isnan(values)] = np.nan  # there are many kinds of NaN
        keys = mix64(keys ^ values.view(np.uint64), hash64("rows", name))
    return keys
