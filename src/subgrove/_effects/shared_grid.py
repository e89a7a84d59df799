"""Points that subgroups have in common, so that their curves can be compared without reading between points.

Equal steps over the range of each subgroup would be other points in each, and a bent curve, read between two of its
points, seems to disagree with the same curve read elsewhere. So all subgroups have points of one lattice, within their
own ranges, and the ends of these. Its step is such that no more predictions are asked for than with `grid_resolution`
points
in each.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from subgrove._core.kinds import Floats
from subgrove._core.quantiles import quantile_values
from subgrove._effects.grid import GridSpec, has_levels, rounded_points
from subgrove._effects.subgroup_rows import SubgroupRows

_ENDS = 3  # points beyond the steps that fit into a range: one more on the lattice, and its ends


def shared_points(parts: Sequence[SubgroupRows], wanted: GridSpec, grid_resolution: int) -> list[GridSpec]:
    """For each subgroup its points, or what was wanted, where that is the same in all of them."""
    info = parts[0].source.infos[0] if parts else None
    if info is None or len(parts) == 1 or has_levels(info) or not isinstance(wanted, str):
        return [wanted] * len(parts)
    values = [part.x[0][~np.isnan(part.x[0])] for part in parts]
    everything = np.concatenate(values)
    if wanted == "quantiles":
        points = quantile_values(everything, None, np.linspace(0, 1, grid_resolution))
        room = [grid_resolution] * len(parts)
    else:
        points = _lattice(values, [len(part.rows) for part in parts], grid_resolution)
        room = [len(points) + _ENDS] * len(parts) if grid_resolution > _ENDS else [grid_resolution] * len(parts)
    points = rounded_points(info, everything, points)
    few = [info.is_integer and len(np.unique(x)) <= grid_resolution for x in values]
    return [np.unique(x) if own else _inside(points, x, most) for x, own, most in zip(values, few, room, strict=True)]


def _lattice(values: Sequence[Floats], sizes: Sequence[int], grid_resolution: int) -> Floats:
    """Equal steps over all ranges, as many as the predictions for `grid_resolution` points in each subgroup allow."""
    low, high = min(float(x.min()) for x in values), max(float(x.max()) for x in values)
    widths = np.array([x.max() / 2 - x.min() / 2 for x in values])  # halved: a range may be wider than a float holds
    widest, n = float(widths.max()), np.array(sizes, dtype=np.float64)
    if grid_resolution <= _ENDS or not widest > 0:
        return np.asarray(2 * np.linspace(low / 2, high / 2, grid_resolution), dtype=np.float64)
    share = float(n @ (widths / widest) / n.sum())  # of the widest range that rows have on average
    steps = (high / 2 - low / 2) / widest * (grid_resolution - _ENDS) / share
    step = 2 * widest * share / (grid_resolution - _ENDS)
    return np.asarray(low + step * np.arange(int(np.floor(steps)) + 1), dtype=np.float64)


def _inside(points: Floats, x: Floats, most: int) -> Floats:
    """The points within the range of x, and its ends if there is room."""
    low, high = float(x.min()), float(x.max())
    own = points[(points >= low) & (points <= high)]
    with_ends = np.unique([*own, low, high])
    return with_ends if len(with_ends) <= most or len(own) < 2 else own
