"""Growth of a tree by hypothesis tests: fit, test, select a column, split, and repeat in the children.

Requirements this design meets:

- decisions are those of the reference (partykit's `ctree` and trtf's `trafotree`) in every detail that
  `docs/trees.md` lists;
- all nodes of one depth are processed together, in blocks of similar size, so that a tree of many small nodes costs
  little more than one of a few large ones;
- memory beyond the table is a few numbers per row, whatever the number of columns.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from subgrove._core.execution import one_blas_thread
from subgrove._core.kinds import Rows
from subgrove._core.validate import number_in, whole_number
from subgrove._data.table import Floats
from subgrove.trees.column_tests import BlockTests, ColumnTests, WhitenedScores, test_columns, whiten
from subgrove.trees.nodes import Node, Split, assign_unseen_values, goes_left, renumber
from subgrove.trees.split_points import SplitPoint, best_column_splits, best_level_split, best_splits
from subgrove.trees.target_scores import Histogram, TargetScores
from subgrove.trees.training import Block, Candidates, Training

MIN_SAMPLES_SPLIT = 20  # a node with fewer rows is neither fitted nor tested
MIN_SHARE = 0.01  # minimum share of a node's rows in each child
_FOUND = ("split", "stop", "tests", "p_value", "theta", "log_likelihood")  # attributes of drafts that nodes have
_TIE = 1e-10
_ROUNDING = 1e-9  # relative rounding of a criterion: a p-value amplifies the rounding of its statistic
_PADDING = 4096  # rows of padding that cost less than another block
_BLOCK_ROWS = 1 << 15  # rows in a block of several nodes


@dataclass(frozen=True)
class StoppingRules:
    """Limits on the depth, the leaf size and the significance of splits."""

    max_depth: int
    min_samples_leaf: int
    alpha: float

    @classmethod
    def checked(cls, max_depth: Any, min_samples_leaf: Any, alpha: Any) -> StoppingRules:
        """Validate the arguments and return the rules."""
        return cls(
            whole_number("max_depth", max_depth, least=0),
            whole_number("min_samples_leaf", min_samples_leaf, least=1),
            number_in("alpha", alpha, low=0.0, high=1.0),
        )


@dataclass(eq=False)
class _Draft:
    """Node of a growing tree."""

    rows: Rows
    depth: int
    parent: int | None
    n: float
    start: Any = None
    children: tuple[int, int] | None = None
    split: Split | None = None
    stop: str | None = None
    tests: ColumnTests | None = None
    p_value: float | None = None
    theta: tuple[float, ...] | None = None
    log_likelihood: float | None = None


@dataclass(frozen=True, eq=False)
class _TestedBlock:
    """Nodes of a block, with the tests of all columns in them and the minimum weight of a child."""

    nodes: list[int]
    block: Block
    white: WhitenedScores
    tests: BlockTests
    min_weight: Floats


@dataclass(eq=False)
class _Grower:
    training: Training
    candidates: Candidates
    target: TargetScores
    rules: StoppingRules
    drafts: list[_Draft] = field(default_factory=list)

    def grow(self) -> None:
        rows = np.arange(self.training.n_rows)
        weights = self.training.weights
        n = float(len(rows)) if weights is None else float(weights.sum())
        self.drafts.append(_Draft(rows, 0, None, n))
        waiting = [0]
        # Nodes too small to split are tested as well, at the end, since they have no children.
        last: list[int] = []
        while waiting:
            tested = [node for node in waiting if self._is_tested(self.drafts[node])]
            large = [node for node in tested if self.drafts[node].n >= 2 * self.rules.min_samples_leaf]
            last += [node for node in tested if self.drafts[node].n < 2 * self.rules.min_samples_leaf]
            for block in self._blocks(large):
                self._process(block)
            waiting = [child for node in waiting for child in self.drafts[node].children or ()]
        for width, block in self._blocks_of_fixed_width(last):
            self._process(block, width)

    def _is_tested(self, draft: _Draft) -> bool:
        """Return whether a node is fitted and tested; if not, record why."""
        if draft.depth >= self.rules.max_depth:
            draft.stop = "depth"
        elif draft.n < MIN_SAMPLES_SPLIT or len(draft.rows) < 2:
            draft.stop = "few rows"
        return draft.stop is None

    def _blocks(self, nodes: list[int]) -> list[list[int]]:
        """Group nodes of similar size."""
        open_nodes = sorted(nodes, key=lambda node: -len(self.drafts[node].rows))
        blocks: list[list[int]] = []
        largest = padding = 0
        for node in open_nodes:
            size = len(self.drafts[node].rows)
            padding += largest - size
            if blocks and padding <= _PADDING and largest * (len(blocks[-1]) + 1) <= _BLOCK_ROWS:
                blocks[-1].append(node)
            else:
                blocks.append([node])
                largest, padding = size, 0
        return blocks

    def _blocks_of_fixed_width(self, nodes: list[int]) -> list[tuple[int, list[int]]]:
        """Group nodes by size, rounded up to a power of two.

        The set of small nodes depends on the depth of the tree. With a fixed width, the sums of a node are formed in
        the same order whatever other nodes are in the block, so that pruning equals growing with less depth to the last
        digit.
        """
        by_width: dict[int, list[int]] = {}
        for node in nodes:
            by_width.setdefault(1 << (len(self.drafts[node].rows) - 1).bit_length(), []).append(node)
        blocks = []
        for width, members in by_width.items():
            step = max(1, _BLOCK_ROWS // width)
            blocks += [(width, members[at : at + step]) for at in range(0, len(members), step)]
        return blocks

    def _process(self, nodes: list[int], width: int | None = None) -> None:
        drafts = [self.drafts[node] for node in nodes]
        block = Block.of([draft.rows for draft in drafts], self.training.weights, self.training.n_rows, width)
        scored = self.target.score(block, [draft.start for draft in drafts])
        usable = scored.varies & scored.fitted
        scored.scores[~usable] = 0.0  # a failed fit may leave any values
        white = whiten(scored.scores, block)
        tests = test_columns(self.candidates, block, white)
        for k, draft in enumerate(drafts):
            if scored.steps is not None and usable[k]:
                draft.start = scored.steps[k]
                if scored.log_likelihood is not None:
                    draft.theta = tuple(np.cumsum(scored.steps[k]).tolist())
                    draft.log_likelihood = float(scored.log_likelihood[k])
            if usable[k]:
                own = (each[k] for each in (tests.statistic, tests.df, tests.log_p, tests.criterion))
                draft.tests = ColumnTests(self.training.table.names, *own)
            else:
                draft.stop = "not fitted" if scored.varies[k] else "constant"
        min_weight = np.maximum(float(self.rules.min_samples_leaf), np.ceil(MIN_SHARE * block.n))
        self._select_columns(_TestedBlock(nodes, block, white, tests, min_weight), usable)

    def _select_columns(self, tested: _TestedBlock, usable: npt.NDArray[np.bool_]) -> None:
        """Split each node on its best column, or on the second best if that has no admissible split."""
        nodes, tests, n = tested.nodes, tested.tests, tested.block.n
        threshold = np.log1p(-self.rules.alpha) if self.rules.alpha < 1 else -np.inf
        criterion = np.where(usable[:, None], tests.criterion, -np.inf)
        best = _best_columns(criterion, tests.statistic).tolist()
        selected: dict[int, int] = {}
        for k, node in enumerate(nodes):
            draft, column = self.drafts[node], best[k]
            if column < 0:
                draft.stop = draft.stop or "constant"
                continue
            top = float(criterion[k, column])
            draft.p_value = -math.expm1(top)
            if not top > threshold:
                draft.stop = "not significant"
            elif n[k] < 2 * tested.min_weight[k]:
                draft.stop = "few rows"
            else:
                selected[k] = column
        without_split = self._split_nodes(tested, selected)
        if without_split:
            # No admissible split of the best column: the second best is tried, if it is significant too.
            for k, column in without_split.items():
                criterion[k, column] = -np.inf
            second = _best_columns(criterion, tests.statistic).tolist()
            selected = {k: second[k] for k in without_split if second[k] >= 0 and criterion[k, second[k]] > threshold}
            self._split_nodes(tested, selected)
            for k in without_split:
                if self.drafts[nodes[k]].split is None:
                    self.drafts[nodes[k]].stop = "no admissible cut"

    def _split_nodes(self, tested: _TestedBlock, selected: dict[int, int]) -> dict[int, int]:
        """Split nodes on their selected columns; return those without an admissible split."""
        without_split = {}
        for k, point in self._split_points(tested, selected).items():
            if point is None:
                without_split[k] = selected[k]
            else:
                self._split(tested.nodes[k], selected[k], point, float(tested.tests.criterion[k, selected[k]]))
        return without_split

    def _split_points(self, tested: _TestedBlock, selected: dict[int, int]) -> dict[int, SplitPoint | None]:
        """Return the best split point of each node in its selected column."""
        block, white, tests = tested.block, tested.white, tested.tests
        points: dict[int, SplitPoint | None] = {}
        complete = []
        for k, column in selected.items():
            n, least = float(block.n[k]), float(tested.min_weight[k])
            if column in tests.sums:
                points[k] = best_level_split(tests.sums[column][k], tests.counts[column][k], n, least)
            elif column in self.candidates.partial:
                size = int(block.sizes[k])
                values = self.candidates.numeric_values(column)[None, block.rows[k, :size]]
                order, stacked = np.argsort(values), white.stacked[k, :, :size]
                (points[k],) = best_column_splits(values, order, stacked, n, least)
            else:
                complete.append(k)
        if complete:
            points.update(self._numeric_split_points(tested, complete, selected))
        return points

    def _numeric_split_points(
        self, tested: _TestedBlock, nodes: list[int], selected: dict[int, int]
    ) -> dict[int, SplitPoint | None]:
        block, stacked = tested.block, tested.white.stacked
        m = block.rows.shape[1]
        values = np.empty((len(nodes), m))
        for line, k in zip(values, nodes, strict=True):
            line[:] = self.candidates.numeric_values(selected[k])[block.rows[k]]
            line[int(block.sizes[k]) :] = np.inf
        stacked = stacked if len(nodes) == len(block.n) else stacked[nodes]
        order = self.candidates.order_of_nodes([selected[k] for k in nodes], block, nodes, values)
        points = best_splits(values, order, stacked, block.sizes[nodes], block.n[nodes], tested.min_weight[nodes])
        return dict(zip(nodes, points, strict=True))

    def _split(self, node: int, column: int, point: SplitPoint, criterion: float) -> None:
        draft, table = self.drafts[node], self.training.table
        info = table.columns[column]
        values = table.values(info.name)[draft.rows]
        split = point.split(info)
        left = goes_left(split, info, values)
        rows = (draft.rows[left], draft.rows[~left])
        weights = self.training.weights
        n = [float(len(own)) if weights is None else float(weights[own].sum()) for own in rows]
        first = len(self.drafts)
        for own, weight in zip(rows, n, strict=True):
            self.drafts.append(_Draft(own, draft.depth + 1, node, weight, draft.start))
        draft.children = (first, first + 1)
        draft.p_value = -math.expm1(criterion)
        draft.split = assign_unseen_values(split, info, values, "left" if n[0] >= n[1] else "right")
        draft.rows = rows[0][:0]


def _best_columns(criterion: Floats, statistic: Floats) -> npt.NDArray[np.intp]:
    """Return the best column of each node; -1 if no column was tested.

    Criteria closer than 1.5e-154 are ties, which are decided by the larger statistic (as in the reference, even if
    degrees of freedom differ); so are criteria that differ by rounding only. Equal statistics go to the first column.
    """
    best = criterion.max(axis=1)
    with np.errstate(invalid="ignore"):
        tied = best[:, None] - criterion < np.maximum(1.5e-154, _ROUNDING * -best)[:, None]
    among = np.where(tied, statistic, -1.0)
    column = np.argmax(among >= among.max(axis=1)[:, None] * (1 - _TIE), axis=1)
    return np.where(best == -np.inf, -1, column)


def grow(training: Training, target: TargetScores, rules: StoppingRules) -> tuple[tuple[Node, ...], Histogram]:
    """Grow a tree by tests of the scores of the target; return its nodes, and the histogram that they count in."""
    grower = _Grower(training, Candidates.of(training.table, training.columns), target, rules)
    with one_blas_thread():
        grower.grow()
    histogram = Histogram.of(training.target, training.values)
    return _freeze(grower.drafts, histogram, training), histogram


def _freeze(drafts: list[_Draft], histogram: Histogram, training: Training) -> tuple[Node, ...]:
    """Return the drafts as frozen nodes, numbered in pre-order."""
    leaf = np.empty(training.n_rows, dtype=np.intp)
    for index, draft in enumerate(drafts):
        if draft.children is None:
            leaf[draft.rows] = index
    counts = histogram.node_counts(leaf, [draft.parent for draft in drafts], training.weights)
    nodes = {}
    for index, draft in enumerate(drafts):
        parent = None if draft.parent is None else draft.parent + 1
        children = None if draft.children is None else (draft.children[0] + 1, draft.children[1] + 1)
        found = {name: getattr(draft, name) for name in _FOUND}
        nodes[index + 1] = Node(index + 1, parent, draft.depth, draft.n, counts[index], children, **found)
    return renumber(nodes)
