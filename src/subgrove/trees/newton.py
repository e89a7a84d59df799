"""Exact maximum of a concave log-likelihood under theta_0 <= theta_1 <= ..., for many nodes at once.

Requirements this design meets:

- the optimum is exact, including active constraints: each Newton step minimises its quadratic model under the
  constraints, so that the active set is found exactly;
- many small nodes cost little more than one: arrays have a leading axis of nodes, and only nodes whose active
  constraints changed are processed one by one;
- coordinates in flat directions (data that fill a small part of the support) do not change: the model has a ridge
  penalty towards the current point, tiny relative to its diagonal.

Coordinates of a point: the first is free (the mean of h), the others are the steps theta_k - theta_{k-1} >= 0.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

from subgrove._data.table import Floats

Mask = npt.NDArray[np.bool_]

_RIDGE = 1e-12  # in units of each diagonal entry, or of the largest where one is 0
_DECREMENT = 1e-10  # squared Newton decrement after which the step just taken was the last one needed
_MAX_STEPS = 200
_NEGATIVE = 1e-10


class Likelihood(Protocol):
    """Log-likelihood of many nodes as a function of points (nodes, order + 1)."""

    def derivatives(self, point: Floats) -> tuple[Floats, Floats]:
        """Return gradient and Hessian of the *negative* log-likelihood."""

    def step_length(self, point: Floats, direction: Floats) -> Floats:
        """Return the step length of each node, at most 1, at which its likelihood increases."""


def maximise(likelihood: Likelihood, start: Floats) -> tuple[Floats, Mask]:
    """Return the maximizer of each node, and which nodes converged.

    Parameters
    ----------
    likelihood : Likelihood
    start : float array (nodes, order + 1)
        Points with a positive likelihood.
    """
    point = start.copy()
    fixed = point <= 0
    fixed[:, 0] = False
    done = np.zeros(len(point), dtype=np.bool_)
    for _ in range(_MAX_STEPS):
        gradient, hessian = likelihood.derivatives(point)
        direction, decrement = _bounded_newton_step(gradient, hessian, point, fixed)
        if not np.isfinite(direction).all():
            # A node without a finite step stops and is returned as not converged.
            direction = np.nan_to_num(direction, nan=0.0, posinf=0.0, neginf=0.0)
            decrement = np.where(np.isfinite(decrement), decrement, np.inf)
        length = likelihood.step_length(point, direction)
        # A converged node does not move, so that its result does not depend on other nodes.
        direction *= np.where(done, 0.0, length)[:, None]
        point += direction
        done |= (decrement <= _DECREMENT) & (length >= 1.0)
        if done.all():
            break
    return point, done


def _bounded_newton_step(gradient: Floats, hessian: Floats, point: Floats, fixed: Mask) -> tuple[Floats, Floats]:
    """Return the step d to the minimum of the quadratic model over point + d with steps >= 0, and d'Hd.

    The active set of the last minimum is tried first, for all nodes at once; if it is not optimal, the minimum is
    found node by node. `fixed` is updated in place.
    """
    nodes, size = point.shape
    diagonal = hessian.reshape(nodes, size * size)[:, :: size + 1]
    diagonal *= 1.0 + _RIDGE
    flat = ~(diagonal > 0)
    if flat.any():
        diagonal[flat] = np.broadcast_to(_RIDGE * diagonal.max(axis=1, keepdims=True) + 1e-300, diagonal.shape)[flat]
    direction = _reduced_solve(gradient, hessian, point, fixed)
    slope = np.matmul(hessian, direction[:, :, None])[:, :, 0]
    # Compared independently of the scale of the coefficients.
    room = np.where(fixed, slope + gradient, (point + direction) * diagonal)
    wrong = ~(room >= -_NEGATIVE * np.sqrt(diagonal))[:, 1:].all(axis=1)
    if wrong.any():
        for node in np.flatnonzero(wrong):
            direction[node], fixed[node] = _active_set(hessian[node], gradient[node], point[node])
        slope = np.matmul(hessian, direction[:, :, None])[:, :, 0]
    np.maximum(direction[:, 1:], -point[:, 1:], out=direction[:, 1:])
    return direction, (direction * slope).sum(axis=1)


def _reduced_solve(gradient: Floats, hessian: Floats, point: Floats, fixed: Mask) -> Floats:
    """Return the step that sets fixed coordinates to 0 and minimises over the free ones."""
    if not fixed.any():
        return _solve(hessian, -gradient)
    size = point.shape[1]
    move = point * fixed
    pull = np.matmul(hessian, move[:, :, None])[:, :, 0]
    pull -= gradient
    either = fixed[:, :, None] | fixed[:, None, :]
    system = hessian.copy()
    system[either] = 0.0
    system.reshape(len(point), size * size)[:, :: size + 1] += fixed
    pull[fixed] = -move[fixed]
    return _solve(system, pull)


def _solve(system: Floats, right: Floats) -> Floats:
    """Solve many small systems; NaN, hence no convergence, if one is singular."""
    try:
        return np.asarray(np.linalg.solve(system, right[:, :, None])[:, :, 0], dtype=np.float64)
    except np.linalg.LinAlgError:
        if len(system) == 1:
            return np.full_like(right, np.nan)
        return np.concatenate([_solve(system[k : k + 1], right[k : k + 1]) for k in range(len(system))])


def _active_set(hessian: Floats, gradient: Floats, point: Floats) -> tuple[Floats, Mask]:
    """Minimise the quadratic model of one node; return the step, and which coordinates are 0 after it.

    It starts at the current point and decreases the model in every iteration, so that in exact arithmetic it cannot
    cycle (Lawson and Hanson 1974).
    """
    size = len(point)
    root = np.sqrt(np.diag(hessian))
    fixed = point <= 0
    fixed[0] = False
    step = np.zeros(size)
    for _ in range(60 * size):
        target = _reduced_solve(gradient[None], hessian[None], point[None], fixed[None])[0]
        below = ~fixed & (point + target <= 0)
        below[0] = False
        if below.any():
            # Up to the first coordinate that reaches 0, which is then fixed.
            places = np.flatnonzero(below)
            shares = (point + step)[places] / (step - target)[places]
            first = places[np.argmin(shares)]
            step += max(0.0, float(shares.min())) * (target - step)
            step[first] = -point[first]
            fixed[first] = True
            continue
        step = target
        rise = np.where(fixed, -(hessian @ step + gradient) / root, 0.0)
        if not rise.max() > _NEGATIVE:
            break
        fixed[np.argmax(rise)] = False
    return step, fixed
