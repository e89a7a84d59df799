"""How much the importance depends on the training rows of the sampler, without further predictions.

The sampler is selected and fitted again on each quarter of its training rows. If the importance hardly changes, the
sampler of all of them has learned what there is to learn; if it changes by a good part of its standard error, the error
of the sampler may be a good part of that. Quarters show this better than halves: they differ more, and cost less.

An error that has the variance v, and falls with the number of rows as usual, makes the sampler of a quarter differ from
that of all rows with a variance of 3 v. That of the donors is known and is covered by the interval. So twice the change
that is due to donors is subtracted: what four quarters differ by exceeds the double of its mean in one case of ten.

The model is not called. Each row has been evaluated at its own value and at some draws; between these, the increase of
its loss is interpolated, beyond them it is constant. Draws of the quarters are compared with further draws of the
sampler itself, so that the error of the interpolation cancels.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from subgrove._core.execution import stream
from subgrove._core.kinds import Floats, Rows
from subgrove._data.replace_columns import Changes, Frames, changes_of
from subgrove._data.table import Table
from subgrove._scoring.two_sample import Points
from subgrove.samplers.base import Feature, FittedSampler, title

N_DRAWS = 20
"""Draws of each sampler that are compared: enough that their Monte-Carlo noise is small beside a standard error."""
_N_QUARTERS = 4
_DONORS_OF_QUARTERS = _N_QUARTERS - 1  # mean squared change that is due to donors, over the variance that they cause


@dataclass(frozen=True, eq=False)
class EvaluatedRows:
    """Rows that the model was evaluated on.

    Attributes
    ----------
    rows : int array
        Their positions among the rows of the fidelity check.
    changes : mapping
        The resampled column, in these rows.
    increases : float array
        Increases of the first loss.
    """

    rows: Rows
    changes: Changes
    increases: Floats

    @classmethod
    def of(cls, selected: Rows, rows: Rows | None, changes: Changes, increases: Floats) -> EvaluatedRows:
        """Return those of the selected rows that were among the predicted ones; all were if `rows` is None."""
        if rows is None:
            return cls(np.arange(len(selected)), changes_of(changes, selected), increases[selected])
        _, at, own = np.intersect1d(selected, rows, assume_unique=True, return_indices=True)
        return cls(at, changes_of(changes, own), increases[own])


def quarter_samplers(sampler: FittedSampler, sampled: Table, feature: Feature, seed: int) -> list[FittedSampler]:
    """Return the samplers of a feature that are fitted on quarters of the training rows; none if these are too few."""
    fitted = sampler.of_feature(sampled, feature)[0]
    frames = Frames(fitted.train, fitted.columns)
    order = stream(seed, f"quarters for {title(feature)}").permutation(frames.n_rows)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            quarters = [frames.changed(np.sort(rows), {}) for rows in np.array_split(order, _N_QUARTERS)]
            return [fitted.unfitted.fit(rows, list(feature)) for rows in quarters if fitted.unfitted is not None]
    except Exception:  # a check must not interrupt: what fails with few rows is no fault of the sampler of all
        return []


def relative_change(
    known: tuple[Rows, Points, Floats],
    own: Sequence[Points],
    others: Sequence[Sequence[Points]],
    n: int,
    donor_variance: float = 0.0,
) -> float:
    """Return the root mean square change of the importance in its standard errors.

    Without the part that is due to the Monte-Carlo noise of the draws, and to other donors.

    Parameters
    ----------
    known : tuple
        Row, value and increase of the loss of all that was evaluated.
    own : list of Points
        Further draws of the sampler.
    others : list
        Draws of each of the samplers that it is compared with.
    n : int
        Number of rows that the importance is the mean of.
    donor_variance : float
        Variance of the importance over other training donors.
    """
    increases_of = partial(_interpolated, *known, len(own[0]))
    reference = np.stack([increases_of(draw) for draw in own])
    variance = float(reference.mean(axis=0).var(ddof=1)) / n + donor_variance
    if not variance > 0:
        return 0.0
    draws = [np.stack([increases_of(draw) for draw in other]) for other in others]
    squares = [(each.mean() - reference.mean()) ** 2 - _noise(each) - _noise(reference) for each in draws]
    change = float(np.mean(squares)) - 2 * _DONORS_OF_QUARTERS * donor_variance
    return float(np.sqrt(max(0.0, change) / variance))


def _noise(increases: Floats) -> float:
    """Return the Monte-Carlo variance of the mean over draws (draws, rows)."""
    return float(increases.mean(axis=1).var(ddof=1)) / len(increases)


def _interpolated(rows: Rows, values: Points, increases: Floats, n: int, wanted: Points) -> Floats:
    """Return the increase of each row at a value: interpolated between numbers, the mean of an equal label.

    A label at which a row was not evaluated has the mean of the row.
    """
    mean = np.bincount(rows, increases, n) / np.maximum(np.bincount(rows, minlength=n), 1)
    if not values.numbers.shape[1]:
        kinds, wanted_kinds = values.labels[:, 0], wanted.labels[:, 0]
        return _of_equal(rows, kinds, increases, wanted_kinds, mean)
    if values.numbers.shape[1] == 1:
        return _between(rows, values.numbers[:, 0], increases, wanted.numbers[:, 0], mean)
    missing, wanted_missing = values.numbers[:, 1], wanted.numbers[:, 1]
    at = missing == 0
    found = _between(rows[at], values.numbers[at, 0], increases[at], wanted.numbers[:, 0], mean)
    return np.where(wanted_missing == 1, _of_equal(rows, missing, increases, wanted_missing, mean), found)


def _of_equal(rows: Rows, kinds: Floats, increases: Floats, wanted: Floats, otherwise: Floats) -> Floats:
    """Return the mean increase of each row at a kind."""
    distinct, codes = np.unique(np.concatenate([kinds, wanted]), return_inverse=True)
    n, size = len(wanted), len(distinct)
    cells = rows * size + codes[: len(rows)]
    counts = np.bincount(cells, minlength=n * size)
    means = np.bincount(cells, increases, n * size) / np.maximum(counts, 1)
    at = np.arange(n) * size + codes[len(rows) :]
    return np.where(counts[at] > 0, means[at], otherwise)


def _between(rows: Rows, values: Floats, increases: Floats, wanted: Floats, otherwise: Floats) -> Floats:
    """Return the increase of each row at a number, by linear interpolation."""
    n = len(wanted)
    order = np.lexsort((values, rows))
    rows, values, increases = rows[order], values[order], increases[order]
    first = np.concatenate([[True], (np.diff(rows) > 0) | (np.diff(values) > 0)])
    cells = np.cumsum(first) - 1
    rows, values = rows[first], values[first]
    increases = np.bincount(cells, increases) / np.bincount(cells)
    start, end = np.searchsorted(rows, np.arange(n)), np.searchsorted(rows, np.arange(n), side="right")
    known = end > start
    low, high = values[np.minimum(start, len(values) - 1)], values[np.maximum(end - 1, 0)]
    width = np.where(high > low, high - low, 1.0)
    # Each row has an interval of its own on one axis, so that one call interpolates all rows.
    places = rows + 0.5 * (values - low[rows]) / width[rows]
    at = np.arange(n) + 0.5 * np.clip((wanted - low) / width, 0.0, np.where(high > low, 1.0, 0.0))
    return np.where(known, np.interp(at, places, increases), otherwise)
