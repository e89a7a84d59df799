"""Weights of rows: relative weights, as of surveys and inverse probabilities, and frequencies of rows.

Relative weights are scaled so that their sum is Kish's effective number of rows, (sum w)^2 / sum w^2. Any common factor
of them cancels, and whatever needs a number of rows (degrees of freedom, tests of splits, minimum sizes) may take their
sum. A mean has the sandwich variance sum w^2 (v - mean)^2 / (sum w)^2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from subgrove._core.kinds import Floats, Rows
from subgrove.exceptions import InputError, LengthError


@dataclass(frozen=True, eq=False)
class FrequencyWeights:
    """Frequencies of rows, for `sample_weight`: a row of frequency 2 is the same as two equal rows.

    Parameters
    ----------
    counts : array of whole numbers, or str
        Number of rows that each row stands for; 0 leaves it out. For `LargeData` the name of a column.

    Examples
    --------
    >>> import numpy as np
    >>> import subgrove as sg
    >>> X, y = np.arange(6.0)[:, None], np.arange(6.0)
    >>> options = {"sampler": "marginal", "random_state": 1, "check_fidelity": False}
    >>> imp = sg.importance(lambda X: X[:, 0], X, y, sample_weight=sg.FrequencyWeights([1, 2, 2, 2, 2, 1]), **options)
    >>> int(imp.overall["n"][0])
    10
    """

    counts: Any


class RelativeWeights(np.ndarray[Any, np.dtype[np.float64]]):
    """Relative weights of rows, scaled to Kish's effective number of rows; subsets are relative weights too."""


def unwrapped(sample_weight: Any) -> Any:
    """Return the weights of `sample_weight` without their kind."""
    return sample_weight.counts if isinstance(sample_weight, FrequencyWeights) else sample_weight


def as_relative(weights: Floats) -> Floats:
    """Return relative weights with the scale of Kish's effective number of rows."""
    weights = weights / weights.max()  # so that squares do not overflow
    return (weights * kish_scale(weights.sum(), (weights**2).sum())).view(RelativeWeights)


def kish_scale(total: float, squares: float) -> float:
    """Return the factor of weights whose sum is then their effective number."""
    return float(total / squares) if squares > 0 else 1.0


def square_weights(weights: Any) -> Any:
    """Return the weights of squared deviations in the variance of a mean: w^2 of relative weights, else w."""
    return np.asarray(weights) ** 2 if isinstance(weights, RelativeWeights) else weights


def own_weights(weights: Floats) -> Floats:
    """Return the part of each row's weight that cannot be its own donor: all of it, or one of several equal rows."""
    return np.asarray(weights) if isinstance(weights, RelativeWeights) else np.minimum(weights, 1.0)


def independent_units(sizes: Floats, code: npt.NDArray[Any], clusters: Rows) -> Floats:
    """Return the number of clusters of dependent rows in each subgroup."""
    n = int(clusters.max(initial=0)) + 1
    pairs = np.unique(code.astype(np.intp) * n + clusters)
    return np.bincount(pairs // n, minlength=len(sizes)).astype(np.float64)


def read_weights(sample_weight: Any, n_rows: int, of: str = "X") -> Floats | None:
    """Read weights: one finite number >= 0 per row, not all of them 0; relative weights unless they are frequencies."""
    if sample_weight is None:
        return None
    values = read_raw_weights(sample_weight, n_rows, of)
    return values if isinstance(sample_weight, FrequencyWeights) else as_relative(values)


def read_raw_weights(sample_weight: Any, n_rows: int, of: str = "X") -> Floats:
    """Read weights without scaling them."""
    weights = unwrapped(sample_weight)
    try:
        values = np.asarray(np.ma.filled(weights, np.nan) if np.ma.is_masked(weights) else weights, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"sample_weight must be numbers, one for each row; got {type(weights).__name__}.") from error
    if values.shape != (n_rows,):
        raise LengthError(
            f"sample_weight has shape {values.shape}, but {of} has {n_rows} rows. Pass one weight for each row."
        )
    if not np.isfinite(values).all() or (values < 0).any():
        at = int(np.flatnonzero(~np.isfinite(values) | (values < 0))[0])
        raise InputError(
            f"sample_weight must be finite and >= 0; row {at} has {values[at]}. A weight of 0 excludes the row."
        )
    with np.errstate(over="ignore"):
        total = values.sum()
    if not np.isfinite(total):
        raise InputError("The sum of sample_weight exceeds what a float holds. Divide the weights by a common factor.")
    if not values.any():
        raise InputError("sample_weight is 0 for every row. Give some rows a weight above 0.")
    if isinstance(sample_weight, FrequencyWeights) and (values % 1).any():
        at = int(np.flatnonzero(values % 1)[0])
        raise InputError(
            f"FrequencyWeights must be whole numbers; row {at} has {values[at]}. Pass relative weights without it."
        )
    return values
