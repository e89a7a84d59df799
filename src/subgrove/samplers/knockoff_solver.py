"""How far knockoffs may be from their originals: the s of second-order Gaussian knockoffs, for a correlation matrix G.

Knockoffs have the correlations of the originals, except with their own original, where it is 1 - s. They exist if
2G - diag(s) is positive semidefinite. The larger s, the less a knockoff is correlated with its original:

    maximise  sum(s)   subject to   0 <= s <= 1,   2G - diag(s) >= 0                               (Candes et al. 2018)

This is a semidefinite program in as many unknowns as columns. It is solved by a primal-dual interior-point method with
Mehrotra's predictor and corrector, in the direction of Helmberg, Kojima and Monteiro. With A = 2G - diag(s) and
multipliers Z (of A >= 0), u (of s <= 1) and v (of s >= 0), all feasible from the first step on, the distance from the
optimum is at most <A, Z> + u'(1 - s) + v's. This duality gap is the stopping criterion.

NumPy alone, not SciPy, whose BLAS `one_blas_thread` may not reach: with two threads it takes three times as long, and
far longer on a busy machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from subgrove._core.execution import one_blas_thread
from subgrove._core.kinds import Floats

_TOLERANCE = 1e-8  # gap for each column at which the solver stops
_MOST_STEPS = 100
_NEAR = 0.98  # part of the way to the border that a step may go
_LEAST_EIGENVALUE = 1e-8  # of 2G - diag(s), so that noise with the knockoffs' covariance can be drawn


@dataclass(frozen=True, eq=False)
class Solution:
    """An s, how far its sum may be from the optimum, and the number of steps taken."""

    s: Floats
    gap: float
    n_steps: int


def largest_s(correlation: Floats, tolerance: float = _TOLERANCE) -> Solution:
    """The s of largest sum (`method="sdp"`); the correlation matrix must be positive definite."""
    limit = tolerance * len(correlation)
    step = 0
    with one_blas_thread():
        at = best = _Point.start(correlation)
        while best.gap > limit and step < _MOST_STEPS:
            try:
                at = _improved(correlation, at)
            except np.linalg.LinAlgError:
                break  # rounding has the last word: the best point so far is feasible, and its gap is known
            best = min(best, at, key=lambda point: point.gap)
            step += 1
    return Solution(best.s, best.gap, step)


def equal_s(correlation: Floats) -> Floats:
    """The largest s that is the same for all columns (`method="equi"`)."""
    least = float(np.linalg.eigvalsh(correlation)[0])
    return np.full(len(correlation), min(1.0, 2.0 * least))


def drawn_in(s: Floats, correlation: Floats) -> Floats:
    """s made smaller by a factor 1 - 1e-8, or 1 - 1e-7, ..., until 2G - diag(s) is safely positive definite."""
    for exponent in range(-8, 1):
        smaller = s * (1.0 - 10.0**exponent)
        if np.linalg.eigvalsh(2.0 * correlation - np.diag(smaller))[0] > _LEAST_EIGENVALUE:
            break
    return smaller


@dataclass(frozen=True, eq=False)
class _Point:
    """s with its slack A = 2G - diag(s) and the multipliers."""

    s: Floats
    A: Floats
    Z: Floats
    u: Floats
    v: Floats

    @classmethod
    def start(cls, correlation: Floats) -> _Point:
        """A feasible point: diag(Z) + u - v = 1, and s well within its limits.

        s is in proportion to what the other columns leave unexplained: where two columns are nearly the same, theirs
        must be tiny, but that of the others need not.
        """
        p = len(correlation)
        inverse = np.linalg.inv(correlation)
        unexplained = 1.0 / np.diag(inverse)
        root = np.sqrt(unexplained)
        most = 2.0 / float(np.linalg.eigvalsh(root[:, None] * inverse * root)[-1])
        s = 0.5 * min(1.0, most) * unexplained
        return cls(s, 2.0 * correlation - np.diag(s), np.eye(p), np.ones(p), np.ones(p))

    @property
    def gap(self) -> float:
        """How far sum(s) is from the optimum at most."""
        return float((self.A * self.Z).sum() + self.u @ (1.0 - self.s) + self.v @ self.s)


class _Direction(NamedTuple):
    s: Floats
    Z: Floats
    u: Floats
    v: Floats


def _improved(correlation: Floats, at: _Point) -> _Point:
    """One step: a first direction to the optimum shows how far one comes, a second one is centred and corrected."""
    system = _System.at(at)
    zero = np.zeros_like(at.s)
    first = system.solve(at, 0.0, _Direction(zero, np.zeros_like(at.Z), zero, zero))
    after = _moved(correlation, at, first, *system.lengths(at, first)).gap
    centre = (after / at.gap) ** 3 * at.gap / (3 * len(at.s))
    second = system.solve(at, centre, first)
    return _moved(correlation, at, second, *system.lengths(at, second))


def _moved(correlation: Floats, at: _Point, by: _Direction, primal: float, dual: float) -> _Point:
    s = at.s + primal * by.s
    # A from s itself, not from the last A: rounding errors do not accumulate over steps.
    A = 2.0 * correlation - np.diag(s)
    return _Point(s, A, at.Z + dual * by.Z, at.u + dual * by.u, at.v + dual * by.v)


@dataclass(frozen=True, eq=False)
class _System:
    """The equations of Newton's method at a point."""

    inverse: Floats  # of A
    root_of_a: Floats  # L^-1 where A = L L'
    root_of_z: Floats  # likewise
    matrix: Floats  # what remains when all unknowns but s are eliminated

    @classmethod
    def at(cls, point: _Point) -> _System:
        root_of_a, root_of_z = _inverse_root(point.A), _inverse_root(point.Z)
        inverse = root_of_a.T @ root_of_a
        matrix = inverse * point.Z + np.diag(point.u / (1.0 - point.s) + point.v / point.s)
        return cls(inverse, root_of_a, root_of_z, matrix)

    def solve(self, at: _Point, centre: float, last: _Direction) -> _Direction:
        """The direction in which A Z, u (1 - s) and v s all become `centre`; `last` gives their second-order terms."""
        above, below = 1.0 - at.s, at.s
        second = _symmetric((self.inverse * last.s) @ last.Z)
        pull = centre * (np.diag(self.inverse) + 1.0 / above - 1.0 / below)
        push = np.diag(second) + last.s * last.u / above + last.s * last.v / below
        s: Floats = np.linalg.solve(self.matrix, 1.0 - pull - push).astype(np.float64, copy=False)
        Z = centre * self.inverse - at.Z + _symmetric((self.inverse * s) @ at.Z) + second
        u = (centre + at.u * s + last.s * last.u) / above - at.u
        v = (centre - at.v * s - last.s * last.v) / below - at.v
        return _Direction(s, Z, u, v)

    def lengths(self, at: _Point, by: _Direction) -> tuple[float, float]:
        """How far one may go: in s, and in the multipliers."""
        inside = (self.root_of_a * -by.s) @ self.root_of_a.T
        primal = min(_room(inside), _reach(at.s, by.s), _reach(1.0 - at.s, -by.s))
        inside = self.root_of_z @ by.Z @ self.root_of_z.T
        dual = min(_room(inside), _reach(at.u, by.u), _reach(at.v, by.v))
        return min(1.0, _NEAR * primal), min(1.0, _NEAR * dual)


def _inverse_root(matrix: Floats) -> Floats:
    """L^-1 where the matrix is L L'; raises LinAlgError if it is not positive definite."""
    return np.linalg.inv(np.linalg.cholesky(matrix))


def _room(by: Floats) -> float:
    """The largest t for which I + t by is positive semidefinite."""
    least = float(np.linalg.eigvalsh(_symmetric(by))[0])
    return -1.0 / least if least < 0 else np.inf


def _reach(values: Floats, by: Floats) -> float:
    """The largest t for which values + t by are not negative."""
    falling = by < 0
    return float((-values[falling] / by[falling]).min()) if falling.any() else np.inf


def _symmetric(matrix: Floats) -> Floats:
    symmetric: Floats = (matrix + matrix.T) / 2.0
    return symmetric
