"""The split that makes curves agree most, and whether chance could have found one as good.

A column is cut in two so that the curves on each side disagree least (REPID, Herbinger and others 2022, has this
criterion). The best of many columns and cuts always explains something, also where no column has to do with the curves.
So the curves are dealt to the rows at random, and the best split is searched for again, many times: a split counts if
hardly any of these explains as much. That test is exact for rows drawn independently, whatever columns and curves are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from subgrove._core.kinds import MISSING, ColumnInfo, Floats, Rows
from subgrove.trees.nodes import Side, Split, assign_unseen_values, goes_left

MOST_DEALT = 999  # times that curves are dealt anew, at most
_AT_ONCE = 1 << 19  # numbers of dealt curves that are worked on together
_KEPT = 1e-6  # share of the disagreement that may be left out to have fewer numbers for a curve


Column = tuple[ColumnInfo, npt.NDArray[Any]]


@dataclass(frozen=True, eq=False)
class BestSplit:
    """The best split of some rows: what it explains, and which rows go left."""

    split: Split
    gain: float
    left: npt.NDArray[np.bool_]


def best_split(shapes: Floats, weights: Floats, columns: Sequence[Column], min_samples_leaf: float) -> BestSplit | None:
    """The split that explains most of the disagreement of centred curves around their mean; None if none is allowed.

    Parameters
    ----------
    shapes : float array (rows, numbers)
        Centred curves around their mean.
    weights : float array
        How often each row counts.
    columns : sequence of (ColumnInfo, values)
        What may be asked: numbers, or codes of levels.
    min_samples_leaf : float
        Least weight on each side.
    """
    best, most = None, 0.0
    for column in columns:
        scan = _scan_of(*column)
        if scan is None:
            continue
        gain, which = scan.best(shapes[None], weights[None], min_samples_leaf)
        if gain[0] > most:
            best, most = (column, scan.split(column, shapes, weights, int(which[0]))), float(gain[0])
    if best is None:
        return None
    (info, values), split = best
    left = goes_left(split, info, values)
    larger = weights[left].sum() >= weights[~left].sum()
    return BestSplit(assign_unseen_values(split, info, values, "left" if larger else "right"), most, left)


def permutation_p_value(
    found: BestSplit,
    shapes: Floats,
    weights: Floats,
    columns: Sequence[Column],
    min_samples_leaf: float,
    level: float,
    rng: np.random.Generator,
) -> float:
    """How often curves dealt at random have a split that explains as much; it stops when that is more than `level`.

    They are dealt about 4 / `level` times, so that the split of the true curves must be among the first four.
    """
    scans = [scan for column in columns if (scan := _scan_of(*column)) is not None]
    numbers = _fewer(shapes, weights)
    n_dealt = min(max(int(np.ceil(4 / level)) - 1, 19), MOST_DEALT)
    at_once = int(np.clip(_AT_ONCE // numbers.size, 1, 64))
    hits, dealt = 0, 0
    while dealt < n_dealt and (hits + 1) / (n_dealt + 1) <= level:
        orders = np.stack([rng.permutation(len(numbers)) for _ in range(min(at_once, n_dealt - dealt))])
        own, counted = numbers[orders], weights[orders]
        as_much = np.zeros(len(orders), dtype=np.bool_)
        for scan in scans:
            as_much |= scan.best(own, counted, min_samples_leaf)[0] >= found.gain * (1 - _KEPT)
        hits, dealt = hits + int(as_much.sum()), dealt + len(orders)
    return (hits + 1) / (dealt + 1)


def _fewer(shapes: Floats, weights: Floats) -> Floats:
    """The same curves in as few numbers as hold nearly all of their sum of squares."""
    spread, axes = np.linalg.eigh((shapes * weights[:, None]).T @ shapes)
    left_out = np.cumsum(np.maximum(spread, 0)) <= _KEPT * np.maximum(spread, 0).sum()
    return np.ascontiguousarray(shapes @ axes[:, ~left_out])


def _scan_of(info: ColumnInfo, values: npt.NDArray[Any]) -> _NumericSplits | _LevelSplits | None:
    """How a column is searched; None if it cannot be split here, or holds values that training did not have."""
    if info.is_nominal:
        codes, place = np.unique(values, return_inverse=True)
        return None if len(codes) < 2 or codes[0] < MISSING else _LevelSplits(np.eye(len(codes))[place], codes)
    if np.isinf(values).any():
        return None
    order = np.argsort(values, kind="stable")  # missing values last
    ordered = values[order]
    n = int((~np.isnan(ordered)).sum())
    ends = np.flatnonzero(ordered[: n - 1] < ordered[1:n]) if n > 1 else np.empty(0, dtype=np.intp)
    if not len(ends) and n in (0, len(values)):
        return None
    return _NumericSplits(order, ends, n)


@dataclass(frozen=True, eq=False)
class _NumericSplits:
    """Rows in the order of a column; `ends` are the places after which it may be cut, `n` rows are not missing."""

    order: Rows
    ends: Rows
    n: int

    def best(self, shapes: Floats, weights: Floats, min_samples_leaf: float) -> tuple[Floats, Rows]:
        """For each deal (deals, rows, numbers) the most that a cut explains, and its number.

        Cuts with missing values above come first, then cuts with these below, then missing values against all others.
        """
        w = weights[:, self.order]
        sums, mass = np.cumsum(shapes[:, self.order] * w[:, :, None], axis=1), np.cumsum(w, axis=1)
        low, low_mass = sums[:, self.ends], mass[:, self.ends]
        if self.n < len(self.order):
            last = self.n - 1
            missing, missing_mass = sums[:, -1:] - sums[:, last, None], mass[:, -1:] - mass[:, last, None]
            low = np.concatenate([low, low + missing, sums[:, last, None]], axis=1)
            low_mass = np.concatenate([low_mass, low_mass + missing_mass, mass[:, last, None]], axis=1)
        return _most(low, low_mass, sums[:, -1], mass[:, -1], min_samples_leaf)

    def split(self, column: Column, shapes: Floats, weights: Floats, which: int) -> Split:
        """The split with this number."""
        info, values = column
        if which == 2 * len(self.ends):
            return Split(info.name, info.kind, None, missing="right")
        place = self.ends[which % len(self.ends)]
        side: Side = "left" if which >= len(self.ends) else "right"
        return Split(info.name, info.kind, float(values[self.order[place]]), missing=side)


@dataclass(frozen=True, eq=False)
class _LevelSplits:
    """Which of the levels (rows, levels) each row has, as 0 and 1; `codes` are their codes."""

    has: Floats
    codes: npt.NDArray[Any]

    def best(self, shapes: Floats, weights: Floats, min_samples_leaf: float) -> tuple[Floats, Rows]:
        """For each deal the most that a cut of the ordered levels explains, and how many levels lie below.

        Levels are ordered along the direction in which the means of their curves differ most.
        """
        low, low_mass, total, mass, _ = self._ordered(shapes, weights)
        return _most(low, low_mass, total, mass, min_samples_leaf)

    def _ordered(self, shapes: Floats, weights: Floats) -> tuple[Floats, Floats, Floats, Floats, Rows]:
        """Sums below each cut and their mass, those of all rows, and the order of the levels."""
        mass = weights @ self.has
        sums = self.has.T @ (shapes * weights[:, :, None])
        total, all_mass = sums.sum(axis=1), mass.sum(axis=1)
        means = sums / mass[:, :, None]
        around = (means - (total / all_mass[:, None])[:, None]) * np.sqrt(mass)[:, :, None]
        direction = np.linalg.eigh(around.transpose(0, 2, 1) @ around)[1][:, :, -1]
        order = np.argsort((means @ direction[:, :, None])[:, :, 0], axis=1, kind="stable")
        low = np.cumsum(np.take_along_axis(sums, order[:, :, None], axis=1), axis=1)[:, :-1]
        low_mass = np.cumsum(np.take_along_axis(mass, order, axis=1), axis=1)[:, :-1]
        return low, low_mass, total, all_mass, order

    def split(self, column: Column, shapes: Floats, weights: Floats, which: int) -> Split:
        """The split with this number."""
        info, order = column[0], self._ordered(shapes[None], weights[None])[-1][0]
        below, above = (set(self.codes[part].tolist()) for part in (order[: which + 1], order[which + 1 :]))
        if min(above) < min(below):  # the first level is on the left
            below = above
        left = tuple(level for code, level in enumerate(info.levels) if code in below)
        right = tuple(level for code, level in enumerate(info.levels) if code not in below)
        return Split(info.name, info.kind, levels=(left, right), missing="left" if MISSING in below else "right")


def _most(low: Floats, low_mass: Floats, total: Floats, mass: Floats, min_samples_leaf: float) -> tuple[Floats, Rows]:
    """For each deal the largest gain of cuts with these sums below, among those with enough rows on both sides."""
    high_mass = mass[:, None] - low_mass
    allowed = (low_mass >= min_samples_leaf) & (high_mass >= min_samples_leaf)
    below, above = np.where(allowed, low_mass, 1.0), np.where(allowed, high_mass, 1.0)
    gains = (low**2).sum(axis=2) / below + ((total[:, None] - low) ** 2).sum(axis=2) / above
    gains = np.where(allowed, gains - ((total**2).sum(axis=1) / mass)[:, None], -np.inf)
    at = gains.argmax(axis=1)
    return gains[np.arange(len(at)), at], at
