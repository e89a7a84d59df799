"""Ridge regression on a kernel that landmarks approximate (Nystroem), for several penalties at once.

Each row is left out in closed form, so residuals are honest, and the penalty can be selected by their squares.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from subgrove._core.kinds import Floats, Rows

PENALTIES = 10.0 ** np.arange(-6, -0.9, 0.5)  # as shares of the number of rows
_PRECISION = 1e-8  # of the kernel; landmarks that are not needed for it are left out
_LEAST_ROOM = 1e-6  # of 1 minus the leverage: a larger one would make the errors of interpolations look small
_BLOCK_ROWS = 1000


def orthonormal(of_landmarks: Floats) -> tuple[Rows, Floats]:
    """Return landmarks that all others are combinations of, and the rows of a matrix that makes them orthonormal."""
    from scipy.linalg.lapack import dpstrf, dtrtri

    factor, pivots, rank, _ = dpstrf(of_landmarks, tol=_PRECISION, lower=1)
    return pivots[:rank] - 1, np.tril(dtrtri(factor[:rank, :rank], lower=1)[0])


@dataclass(frozen=True, eq=False)
class RidgeFit:
    """Slopes (landmarks, outputs), intercepts, leave-one-out residuals, and the noise variance of each output."""

    slopes: Floats
    intercept: Floats
    residuals: Floats
    noise: Floats


@dataclass(frozen=True, eq=False)
class RidgeProblem:
    """Ridge regression of any targets on a kernel, for several penalties; each row is left out in closed form."""

    means: Floats
    along: Floats  # rows along the principal axes
    axes: Floats  # (landmarks, axes)
    lengths: Floats

    @classmethod
    def of(cls, kernel: Floats, basis: Floats) -> RidgeProblem:
        """Return the problem for the kernel of rows with landmarks (Nystroem), which is centred in place."""
        means = kernel.mean(axis=0)
        kernel -= means
        lengths, axes = np.linalg.eigh(basis @ (kernel.T @ kernel) @ basis.T)
        axes = basis.T @ axes
        return cls(means, kernel @ axes, axes, np.maximum(lengths, 0.0))

    def _blocks(self) -> list[slice]:
        """Return parts of the rows that stay near the processor."""
        return [slice(at, at + _BLOCK_ROWS) for at in range(0, len(self.along), _BLOCK_ROWS)]

    def _shrinkage(self) -> Floats:
        """Return the shrinkage of each axis for each penalty."""
        return 1 / (self.lengths + PENALTIES[:, None] * len(self.along))

    def errors(self, targets: Floats) -> Floats:
        """Return the mean squared leave-one-out error for each penalty, summed over targets."""
        values, n, shrinkage = targets - targets.mean(axis=0), len(targets), self._shrinkage()
        projections = self.along.T @ values
        total = np.zeros(len(PENALTIES))
        for some in self._blocks():
            along = self.along[some]
            room = np.maximum(1 - 1 / n - (along**2) @ shrinkage.T, _LEAST_ROOM)
            for own, projection in zip(values[some].T, projections.T, strict=True):
                left_out = own[:, None] - along @ (shrinkage * projection).T
                left_out /= room
                total += np.einsum("ij,ij->j", left_out, left_out)
        return total / n

    def best_penalty(self, targets: Floats) -> int:
        """Return the position of the penalty with the smallest error."""
        return int(self.errors(targets).argmin())

    def fit(self, targets: Floats, penalty: int) -> RidgeFit:
        """Fit all targets with one penalty."""
        level, n, shrinkage = targets.mean(axis=0), len(targets), self._shrinkage()[penalty]
        values = targets - level
        along = shrinkage[:, None] * (self.along.T @ values)
        in_sample = values - self.along @ along
        leverages = np.concatenate([self.along[some] ** 2 @ shrinkage for some in self._blocks()]) + 1 / n
        left_out = in_sample / np.maximum(1 - leverages, _LEAST_ROOM)[:, None]
        shares = self.lengths * shrinkage
        degrees = n - 1 - float((2 * shares - shares**2).sum())
        slopes = self.axes @ along
        noise = (in_sample**2).sum(axis=0) / max(degrees, 1.0)
        return RidgeFit(slopes, level - self.means @ slopes, left_out, noise)
