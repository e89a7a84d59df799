"""Trees made by hand, so that pictures are tested without growing any."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from subgrove._data.table import ColumnInfo
from subgrove.trees import Node, Split, Tree

TreeMaker = Callable[..., Tree]
LONG = tuple(f"Department of administrative affairs no. {number}" for number in range(12))
COLUMNS = (
    ColumnInfo("temp", "numeric", has_missing=True),
    ColumnInfo("season", "nominal", ("WINTER", "SPRING", "SUMMER", "FALL")),
    ColumnInfo("department_of_the_employee_at_entry", "nominal", LONG, has_missing=True),
    ColumnInfo("education", "ordered", ("none", "primary school", "secondary school", "university degree or higher")),
    ColumnInfo("a very long name of a numeric column", "numeric"),
    ColumnInfo("entry", "numeric", is_date=True),
)
PLAIN = (COLUMNS[0], COLUMNS[1], ColumnInfo("hum", "numeric"))


def hand_made_tree(
    depth: int = 2,
    *,
    levels: tuple[str, ...] = (),
    columns: tuple[ColumnInfo, ...] = COLUMNS,
    method: str = "transformation",
    target: ColumnInfo | None = None,
    edges: tuple[float, ...] | None = None,
    seed: int = 0,
) -> Tree:
    """A full tree of that depth; x is numeric without `levels`; columns take turns, one for each depth and side."""
    if target is None:
        target = ColumnInfo("x", "nominal", levels) if levels else ColumnInfo("x", "numeric")
    maker = _Maker(depth, columns, method, len(target.levels) or 48, np.random.default_rng(seed))
    maker.add(None, 0, 731, 0.0, {})
    if edges is None:
        edges = () if target.levels else tuple(np.linspace(-5.0, 35.0, 49).tolist())
    return Tree(method, target, columns, tuple(maker.nodes), edges, {"max_depth": depth, "cp": 0.0})


class _Maker:
    """Adds nodes in pre-order; the counts of a node are those of its children together."""

    def __init__(
        self, depth: int, columns: tuple[ColumnInfo, ...], method: str, n_cells: int, rng: np.random.Generator
    ) -> None:
        self.depth, self.columns, self.method, self.n_cells, self.rng = depth, columns, method, n_cells, rng
        self.nodes: list[Any] = []

    def add(
        self, parent: int | None, depth: int, n: int, shift: float, left_over: Mapping[str, Any]
    ) -> npt.NDArray[np.float64]:
        id_ = len(self.nodes) + 1
        self.nodes.append(None)
        column = self._column(id_, left_over)
        if depth == self.depth or column is None:
            counts = self._counts(n, shift)
            self.nodes[id_ - 1] = Node(id_, parent, depth, float(n), counts, stop="depth")
            return counts
        split, below, above = self._split(column, left_over)
        n_left = int(n * self.rng.uniform(0.35, 0.65))
        step = 0.55 / (depth + 1)
        left = self.add(id_, depth + 1, n_left, shift - step, below)
        right_id = len(self.nodes) + 1
        counts = left + self.add(id_, depth + 1, n - n_left, shift + step, above)
        p_value = None if self.method == "cart" else (1e-12, 0.0123, 0.3)[depth % 3]
        children = (id_ + 1, right_id)
        self.nodes[id_ - 1] = Node(id_, parent, depth, float(n), counts, children, split, p_value=p_value)
        return counts

    def _counts(self, n: int, shift: float) -> npt.NDArray[np.float64]:
        values = self.rng.normal(0.5 + 0.3 * shift, 0.11, n).clip(0, 0.999)
        return np.bincount((values * self.n_cells).astype(int), minlength=self.n_cells).astype(float)

    def _column(self, id_: int, left_over: Mapping[str, Any]) -> ColumnInfo | None:
        """The column whose turn it is, or the next that still has something to split."""
        turn = [self.columns[(id_ - 1 + place) % len(self.columns)] for place in range(len(self.columns))]
        return next((each for each in turn if each.kind == "numeric" or len(_rest(each, left_over)) > 1), None)

    def _split(self, column: ColumnInfo, left_over: Mapping[str, Any]) -> tuple[Split, dict[str, Any], dict[str, Any]]:
        """A split, and what it leaves over on both sides."""
        name, rest = column.name, _rest(column, left_over)
        if column.kind == "numeric":
            low, high = rest
            cut = low + (high - low) * float(self.rng.uniform(0.3, 0.7))
            split = Split(name, "numeric", cut, strict=self.method == "cart", missing="right")
            return split, {**left_over, name: (low, cut)}, {**left_over, name: (cut, high)}
        half = max(1, len(rest) // 3)
        below, above = {**left_over, name: rest[:half]}, {**left_over, name: rest[half:]}
        if column.kind == "ordered":
            return Split(name, "ordered", float(column.levels.index(rest[half - 1]) + 1)), below, above
        others = tuple(level for level in column.levels if level not in rest[:half])
        return Split(name, "nominal", levels=(rest[:half], others), missing="right", larger="right"), below, above


def _rest(column: ColumnInfo, left_over: Mapping[str, Any]) -> Any:
    whole = (1293840000e6, 1356998400e6) if column.is_date else (0.0, 40.0)
    return left_over.get(column.name, column.levels or whole)
