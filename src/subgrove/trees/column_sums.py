"""Sums over the rows of many nodes: compiled where it could be, in NumPy everywhere."""

from __future__ import annotations

import numpy as np

from subgrove._data.table import Floats
from subgrove._native import loader
from subgrove.trees.candidates import Block, Candidates


def column_sums(candidates: Candidates, block: Block, stacked: Floats) -> tuple[Floats, Floats]:
    """Sums of each line times each complete column, and of the columns' squares times the weights.

    Parameters
    ----------
    candidates : Candidates
    block : Block
    stacked : float array (nodes, lines, m)
        Whitened scores and, last, weights; 0 where padded.

    Returns
    -------
    sums : float array (nodes, lines, columns)
    squares : float array (nodes, columns)
    """
    nodes, lines, m = stacked.shape
    width = len(candidates.places)
    if loader.tree_sums is None or lines > loader.MAX_COEFFICIENTS + 1:
        return _in_numpy(candidates, block, stacked)
    sums, squares = np.empty((nodes, lines, width)), np.empty((nodes, width))
    scale, shift = candidates.scale, candidates.shift
    if scale is not None or shift is not None:
        scale = np.ones(width) if scale is None else scale
        shift = np.zeros(width) if shift is None else shift
    loader.tree_sums.sums(
        candidates.prepared.table.numbers,
        np.ascontiguousarray(block.rows, dtype=np.int64),
        np.ascontiguousarray(stacked),
        block.sizes.astype(np.float64),
        candidates.places,
        scale,
        shift,
        nodes,
        lines,
        m,
        width,
        sums,
        squares,
    )
    return sums, squares


def _in_numpy(candidates: Candidates, block: Block, stacked: Floats) -> tuple[Floats, Floats]:
    nodes, lines, _ = stacked.shape
    width = len(candidates.places)
    sums, squares = np.zeros((nodes, lines, width)), np.zeros((nodes, width))
    for part, numbers in candidates.number_chunks(block):
        own = stacked[:, :, part]
        sums += np.matmul(own, numbers)
        numbers *= numbers
        squares += np.matmul(own[:, -1:], numbers)[:, 0]
    return sums, squares
