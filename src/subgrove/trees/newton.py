"""Exact maximum of a concave log-likelihood under theta_0 <= theta_1 <= ..., for many nodes at once.

Requirements this design meets:

- the optimum is exact, active constraints included: Newton's method, whose quadratic model is minimised
  under the constraints themselves in each step (so the active set is found, not approached);
- many small nodes cost little more than one: every array has a leading axis of nodes;
- flat directions (data that fill a small part of the support) stay where they are: the model has a ridge
  of 1e-12 of its diagonal that pulls towards the current point.

Coefficients are steps: gamma_0 = theta_0, gamma_k = theta_k - theta_{k-1} >= 0.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

from subgrove._table import Floats

Mask = npt.NDArray[np.bool_]

_RIDGE = 1e-12
_DECREMENT = 1e-10  # squared Newton decrement after which the step just taken was the last one needed
_MAX_STEPS = 200
_NEGATIVE = 1e-10


class Likelihood(Protocol):
    """Log-likelihood of many nodes as a function of their steps gamma (nodes, order + 1)."""

    def derivatives(self, gamma: Floats) -> tuple[Floats, Floats]:
        """Gradient and Hessian of the *negative* log-likelihood."""

    def step_length(self, gamma: Floats, direction: Floats) -> Floats:
        """How far along the direction each node may go, at most 1, so that its likelihood rises."""


def maximise(likelihood: Likelihood, start: Floats) -> tuple[Floats, Mask]:
    """Steps gamma of the maximum, and which nodes reached it.

    Parameters
    ----------
    likelihood : Likelihood
    start : float array (nodes, order + 1)
        Steps with a positive likelihood.
    """
    gamma = start.copy()
    fixed = gamma <= 0
    fixed[:, 0] = False
    done = np.zeros(len(gamma), dtype=np.bool_)
    for _ in range(_MAX_STEPS):
        gradient, hessian = likelihood.derivatives(gamma)
        direction, decrement = _bounded_newton_step(gradient, hessian, gamma, fixed)
        length = likelihood.step_length(gamma, direction)
        # A node that has arrived stays, so that its result does not depend on the others.
        direction *= np.where(done, 0.0, length)[:, None]
        gamma += direction
        done |= (decrement <= _DECREMENT) & (length >= 1.0)
        if done.all():
            break
    return gamma, done


def _bounded_newton_step(gradient: Floats, hessian: Floats, gamma: Floats, fixed: Mask) -> tuple[Floats, Floats]:
    """Step d to the minimum of the quadratic model over gamma + d with its steps >= 0, and d'Hd.

    The coordinates that were 0 at the last minimum are tried first; where they will not do, they are found by
    pivoting. `fixed` is brought up to date.
    """
    nodes, size = gamma.shape
    diagonal = hessian.reshape(nodes, size * size)[:, :: size + 1]
    diagonal *= 1.0 + _RIDGE
    direction = _reduced_solve(gradient, hessian, gamma, fixed)
    slope = np.matmul(hessian, direction[:, :, None])[:, :, 0]
    # Compared free of the scale of the coefficients.
    room = np.where(fixed, slope + gradient, (gamma + direction) * diagonal)
    wrong = (room < -_NEGATIVE * np.sqrt(diagonal))[:, 1:].any(axis=1)
    if wrong.any():
        again = np.flatnonzero(wrong)
        fixed[again, 1:] = _fixed_steps(hessian[again], gradient[again], gamma[again])
        direction[again] = _reduced_solve(gradient[again], hessian[again], gamma[again], fixed[again])
        slope = np.matmul(hessian, direction[:, :, None])[:, :, 0]
    np.maximum(direction[:, 1:], -gamma[:, 1:], out=direction[:, 1:])
    return direction, np.einsum("ki,ki->k", direction, slope)


def _reduced_solve(gradient: Floats, hessian: Floats, gamma: Floats, fixed: Mask) -> Floats:
    """The step that brings fixed coordinates to 0 and minimises over the free ones."""
    if not fixed.any():
        return np.asarray(np.linalg.solve(hessian, -gradient[:, :, None])[:, :, 0], dtype=np.float64)
    size = gamma.shape[1]
    move = gamma * fixed
    pull = np.matmul(hessian, move[:, :, None])[:, :, 0]
    pull -= gradient
    either = fixed[:, :, None] | fixed[:, None, :]
    system = hessian.copy()
    system[either] = 0.0
    system.reshape(len(gamma), size * size)[:, :: size + 1] += fixed
    pull[fixed] = -move[fixed]
    return np.asarray(np.linalg.solve(system, pull[:, :, None])[:, :, 0], dtype=np.float64)


def _fixed_steps(hessian: Floats, gradient: Floats, gamma: Floats) -> Mask:
    """Which steps are 0 at the minimum of the quadratic model with all steps >= 0.

    With multipliers y, steps are w = q + M y, M from the inverse Hessian: w >= 0, y >= 0, w'y = 0 is a linear
    complementarity problem with a positive definite M, solved by principal pivots on the tableau [M | q].
    """
    inverse = np.linalg.inv(hessian)
    unconstrained = gamma - np.matmul(inverse, gradient[:, :, None])[:, :, 0]
    size = gamma.shape[1] - 1
    scale = 1.0 / np.sqrt(np.einsum("kii->ki", inverse)[:, 1:])
    tableau = np.empty((len(gamma), size, size + 1))
    tableau[:, :, :size] = inverse[:, 1:, 1:] * (scale[:, :, None] * scale[:, None, :])
    tableau[:, :, size] = unconstrained[:, 1:] * scale
    fixed = np.zeros((len(gamma), size), dtype=np.bool_)
    waiting = each = np.arange(len(gamma))
    for turn in range(200):
        constants = tableau[:, :, size]
        # The worst first; later the first, which cannot cycle (Murty's rule).
        at = constants.argmin(axis=1) if turn < 20 else (constants < -_NEGATIVE).argmax(axis=1)
        open_ = constants[each, at] < -_NEGATIVE
        if not open_.all():
            tableau, waiting, at = tableau[open_], waiting[open_], at[open_]
            each = each[: len(at)]
            if not len(at):
                break
        fixed[waiting, at] ^= True
        column = tableau[each, :, at]
        pivot = 1.0 / column[each, at]
        row = tableau[each, at]
        row *= -pivot[:, None]
        row[each, at] = pivot
        tableau[each, :, at] = 0.0
        tableau += column[:, :, None] * row[:, None, :]
        tableau[each, at] = row
    return fixed
