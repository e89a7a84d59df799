"""Levels drawn with probabilities that differ from row to row, whoever foretells them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from subgrove._core.kinds import Floats, Rows
from subgrove._core.random import Streams
from subgrove._data.replace_columns import Changes, Donors
from subgrove.samplers.redraw import ExactExpectation, ExpectationTerm, ResampledFeature, RowGroups

_NOTHING = 1e-12  # a share below it is rounding, and its level need not be asked for


def draw_levels(
    shares: Floats,
    levels: npt.NDArray[np.generic],
    representatives: Rows,
    values: npt.NDArray[np.generic],
    name: str,
    rngs: Streams,
    exact: bool,
    groups: RowGroups,
) -> ResampledFeature:
    """Levels drawn with their probabilities, or all of them given once if that costs no more than the repeats."""
    shares = np.where(shares < _NOTHING, 0.0, shares)
    ends = np.cumsum(shares, axis=1)

    def draws() -> Iterator[Changes]:
        for rng in rngs:
            # Below the last end whatever rounding does to the sum of the shares.
            points = rng.random(len(values)) * ends[:, -1]
            drawn = np.minimum((points[:, None] >= ends).sum(axis=1), len(levels) - 1)
            yield {name: Donors(representatives[drawn], train=True, representatives=True)}

    def steps() -> Iterator[ExpectationTerm]:
        for k, level in enumerate(levels):
            rows = np.flatnonzero((shares[:, k] > 0) & (values != level))
            donors = Donors(np.full(len(rows), representatives[k]), train=True, representatives=True)
            yield ExpectationTerm(rows, {name: donors}, shares[rows, k])

    found = None
    if exact and len(levels) - 1 <= len(rngs):
        found = ExactExpectation(np.ones(len(values), dtype=np.bool_), steps)
    return ResampledFeature(groups, draws, found)
