"""Margins of many rows of which one column takes several places, from the steps of blocks of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from subgrove._core.kinds import Floats, Rows
from subgrove._models.tree_ensemble.places import Places
from subgrove._models.tree_ensemble.steps import StepBlock, StepFunctions
from subgrove._native.loader import tree_steps

_BUFFER_ROWS = 64  # rows that are transposed at once, unless blocks are larger


@dataclass(frozen=True, eq=False)
class ChangedColumn:
    """Some rows with one column at other places.

    Attributes
    ----------
    column : int
        The column.
    rows : int array (m,)
        The rows, increasing.
    places : int array (B,) or (B, m)
        Places that all rows take, or those of each row.
    """

    column: int
    rows: Rows
    places: Places


def changed_margins(steps: StepFunctions, wanted: Sequence[ChangedColumn]) -> list[Floats]:
    """Return the margins of each request, (B, K, m), from one pass over the rows."""
    outputs = steps.ensemble.n_outputs
    found: dict[int, Floats] = {}
    common: list[int] = []
    if steps.is_dense:  # all rows at the same places: one selection of slots for all columns
        common = [at for at, each in enumerate(wanted) if each.places.ndim == 1 and len(each.rows) == steps.n_rows]
    if common:
        slots = np.concatenate([steps.starts[wanted[at].column] + wanted[at].places for at in common])
        together = np.empty((len(slots), outputs, steps.n_rows))
        most = max(_BUFFER_ROWS, steps.block_rows())
        buffer, start, filled = np.empty((most, len(slots), outputs)), 0, 0
        ends = np.cumsum([len(wanted[at].places) for at in common])
        found = dict(zip(common, np.split(together, ends[:-1]), strict=True))
    others = [at for at in range(len(wanted)) if at not in found]
    for at in others:
        found[at] = np.empty((len(wanted[at].places), outputs, len(wanted[at].rows)))
    for block in steps.blocks(slice(0, steps.n_rows)):
        if common:
            n = len(block.margins)
            selected = buffer[filled : filled + n]
            block.steps.reshape(n, steps.slots, outputs).take(slots, axis=1, out=selected, mode="clip")
            selected += block.margins[:, None, :]
            filled += n
            if filled > most - n or block.rows.stop == steps.n_rows:
                together[:, :, start : start + filled] = buffer[:filled].transpose(1, 2, 0)
                start, filled = start + filled, 0
        for at in others:
            each = wanted[at]
            first, last = each.rows.searchsorted((block.rows.start, block.rows.stop))
            if first < last:
                local = each.rows[first:last] - block.rows.start
                own = each.places[:, first:last] if each.places.ndim == 2 else each.places[:, None]
                values = _steps_at(steps, block, each.column, local, np.broadcast_to(own, (len(own), len(local))))
                values += block.margins[local][:, None, :]
                found[at][:, :, first:last] = values.transpose(1, 2, 0)
    return [found[at] for at in range(len(wanted))]


def _steps_at(steps: StepFunctions, block: StepBlock, column: int, local: Rows, places: Places) -> Floats:
    """Return the steps of rows of a block at places (B, m) of a column: (m, B, K)."""
    n, outputs = len(block.margins), block.steps.shape[1]
    if block.pointers is None:
        at = local[:, None] * steps.slots + steps.starts[column] + places.T
        return np.asarray(block.steps.take(at, axis=0))
    own = np.zeros((n, len(places)), dtype=np.int32)
    own[local] = places.T
    found = np.empty((n, len(places), outputs))
    assert tree_steps is not None
    tree_steps.look_up(
        steps.kernel, n, outputs, block.pointers, block.starts, len(block.steps), block.steps, block.missing,
        np.array([column]), 1, own, len(places), found,
    )  # fmt: skip
    return found[local]
