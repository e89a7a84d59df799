"""What a row adds to an importance, foretold from the row alone: a few terms, chosen on rows other than those foretold.

Terms are taken one after the other, each time the one that goes best with what the others leave, as long as it goes
better with it than the best of as many terms of pure chance would (Donoho and Johnstone's bound). Where no term is
chosen by most folds, nothing is foretold.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from subgrove._core.kinds import Floats, Rows
from subgrove._core.random import stream
from subgrove._importance.inference.row_features import RowTerms

_FOLDS = 5
_MOST_TERMS = 6
LEAST_ROWS = 50  # with fewer there is too little to learn from
_MOST_ROWS = 20_000
_MOST_NUMBERS = 4_000_000  # in the matrix that is learned on


@dataclass(frozen=True, eq=False)
class Foretold:
    """What rows add, foretold.

    Attributes
    ----------
    test : float array (n,)
        Of the rows that are judged, each by what was learned without it.
    further : float array (m,)
        Of the further rows, the mean of what the folds say.
    columns : tuple of str
        The columns that most folds ask for.
    """

    test: Floats
    further: Floats
    columns: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class RowLearner:
    """Learns to foretell numbers of the rows that are judged; made once for all features."""

    terms: RowTerms
    rows: Rows  # those that are learned on
    matrix: Floats  # their terms
    fold: Rows

    @classmethod
    def of(cls, terms: RowTerms, seed: int) -> RowLearner:
        """The learner of the rows; which of them are used, and their folds, come from the seed."""
        n, rng = terms.test.n_rows, stream(seed, "calibration")
        most = min(_MOST_ROWS, max(LEAST_ROWS, _MOST_NUMBERS // max(len(terms.terms), 1)))
        order = rng.permutation(n)[:most]
        fold = np.arange(len(order)) % _FOLDS
        return cls(terms, order, terms.matrix(order), fold)

    @cached_property
    def _standard(self) -> tuple[Floats, Floats]:
        """Mean and spread of each term."""
        return self.matrix.mean(axis=0), self.matrix.std(axis=0)

    def promise(self, values: Floats, without: Collection[str]) -> float:
        """The share of the variance of values that terms would tell if each told something else: a quick look."""
        target = values[self.rows]
        largest = float(np.abs(target).max(initial=0.0))
        means, spreads = self._standard
        usable = self.terms.allowed(without) & (spreads > 0)
        if len(self.rows) < LEAST_ROWS or not usable.any() or not 0 < largest < np.inf:
            return 0.0
        target = target / largest
        target -= target.mean()
        size = np.sqrt(target @ target) or np.inf
        told = (target @ self.matrix - target.sum() * means)[usable] / spreads[usable] / size
        clear = np.abs(told) >= _bar(int(usable.sum()))
        return float(np.sort(told[clear] ** 2)[-_MOST_TERMS:].sum() / len(target))

    def foretold(self, values: Floats, without: Collection[str]) -> Foretold | None:
        """Values of the rows, foretold from other columns than these; None where nothing is found to tell by."""
        usable = self.terms.allowed(without)
        largest = float(np.abs(values).max(initial=0.0))
        if len(self.rows) < LEAST_ROWS or not usable.any() or not 0 < largest < np.inf:
            return None
        target = values[self.rows] / largest
        slopes = np.zeros((_FOLDS, len(usable)))
        start = np.zeros(_FOLDS)
        for number in range(_FOLDS):
            learned = self.fold != number
            chosen, own = _chosen(self.matrix, target, learned, usable)
            slopes[number, chosen] = own
            start[number] = target[learned].mean() - self.matrix[learned][:, chosen].mean(axis=0) @ own
        return self._said(slopes * largest, start * largest)

    def _said(self, slopes: Floats, start: Floats) -> Foretold | None:
        used = np.flatnonzero(slopes.any(axis=0))
        often = np.flatnonzero(2 * (slopes != 0).sum(axis=0) > _FOLDS)
        if not len(often):
            return None
        test = np.full(self.terms.test.n_rows, start.mean())
        further = np.full(self.terms.further.n_rows, start.mean())
        for at in used:
            here, there = self.terms.both(self.terms.terms[at])
            test += slopes[:, at].mean() * here
            further += slopes[:, at].mean() * there
        own = slopes[:, used][self.fold]
        test[self.rows] = start[self.fold] + (self.matrix[:, used] * own).sum(axis=1)
        return Foretold(test, further, tuple(dict.fromkeys(self.terms.terms[at].column for at in often)))


def _bar(terms: int) -> float:
    """What the best of as many terms of pure chance would have."""
    return float(np.sqrt(2.0 * np.log(max(terms, 2))))


def _chosen(
    matrix: Floats, target: Floats, learned: npt.NDArray[np.bool_], usable: npt.NDArray[np.bool_]
) -> tuple[Rows, Floats]:
    """Places of the terms that tell of the target on the rows that are learned on, and their slopes."""
    n = int(learned.sum())
    share = learned / n
    means = share @ matrix
    spread = np.sqrt(np.maximum(share @ matrix**2 - means**2, 0.0))
    open_ = usable & (spread > 0)
    bar = _bar(int(open_.sum()))
    middle = target[learned].mean()
    left = np.where(learned, target - middle, 0.0)
    chosen: list[int] = []
    slopes = np.zeros(0)
    while len(chosen) < _MOST_TERMS and open_.any():
        with np.errstate(divide="ignore", invalid="ignore"):
            strength = np.where(open_, np.abs(left @ matrix) / spread / np.sqrt((left @ left) or np.inf), 0.0)
        best = int(np.argmax(strength))
        if strength[best] < bar:
            break
        chosen.append(best)
        open_[best] = False
        part = matrix[learned][:, chosen] - means[chosen]
        slopes = np.linalg.lstsq(part, target[learned] - middle, rcond=None)[0]
        left[learned] = target[learned] - middle - part @ slopes
    return np.array(chosen, dtype=np.intp), slopes
