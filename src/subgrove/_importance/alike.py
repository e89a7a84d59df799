"""Whether test rows and training rows may be draws from one source, as far as their columns show.

A random split leaves no column with another mean than chance gives it; a split by time, by group or by anything that
columns know mostly does. Each term of a row (value, square, level, missing) is compared, against the largest difference
that as many terms would have by chance.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from subgrove._importance.row_terms import RowTerms

if TYPE_CHECKING:
    from subgrove._kinds import Floats

_CHANCE = 0.05  # of a random split to be taken for another


def look_alike(terms: RowTerms) -> bool:
    """Whether no term differs between the two tables by more than chance explains."""
    from scipy.special import ndtri

    bound = -ndtri(_CHANCE / 2 / max(len(terms.terms), 1))
    return all(distance(*terms.both(term)) <= bound for term in terms.terms)


def distance(one: Floats, two: Floats) -> float:
    """Difference of two means in standard errors."""
    error = np.sqrt(one.var() / len(one) + two.var() / len(two))
    return float(abs(one.mean() - two.mean()) / error) if error > 0 else 0.0
