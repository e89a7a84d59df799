"""Growing a tree by tests: fit, test, choose a column, cut, and again in the children.

Requirements this design meets:

- decisions are those of the reference (partykit's `ctree` and trtf's `trafotree`) in every detail that
  `docs/trees.md` lists;
- all nodes waiting at one depth are worked on together, in blocks of similar size, so that a tree of many
  small nodes costs little more than a few large ones;
- memory beyond the table is a few numbers a row, whatever the number of columns.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from subgrove._core.kinds import Rows
from subgrove._core.parallel import one_blas_thread
from subgrove._core.validate import number_in, whole_number
from subgrove._data.table import ColumnInfo, Floats
from subgrove.trees.association import BlockTests, WhitenedScores, best_columns, test_columns, whiten
from subgrove.trees.candidates import Block, Candidates
from subgrove.trees.cuts import SplitPoint, cut_levels, cut_numbers, cut_partial
from subgrove.trees.histogram import Histogram
from subgrove.trees.nodes import ColumnTests, Node, Side, Split, assign_unseen_values, goes_left
from subgrove.trees.structure import Tree
from subgrove.trees.training import Training

MIN_SPLIT = 20  # a node with fewer rows is neither fitted nor tested
MIN_SHARE = 0.01  # least share of a node's rows on each side of a cut
_PADDING = 4096  # rows of padding that cost less than another block would
_BLOCK_ROWS = 1 << 15  # rows in a block of several nodes


@dataclass(frozen=True, eq=False)
class NodeScores:
    """Scores of a block's rows (nodes, q, m); of each node's model the steps of its coefficients and its likelihood.

    A node in which x does not vary, or whose model could not be fitted, is a leaf. Steps without a likelihood are
    those of several models: children start from them, but they are no coefficients of the node.
    """

    scores: Floats
    varies: npt.NDArray[np.bool_]
    fitted: npt.NDArray[np.bool_]
    steps: Floats | None = None
    log_likelihood: Floats | None = None


class TargetScores(Protocol):
    """What x contributes: scores of its rows in a block."""

    def score(self, block: Block, starts: list[Any]) -> NodeScores:
        """Fit the block's nodes, starting from what their parents had, and score their rows."""


@dataclass(frozen=True)
class StoppingRules:
    """When to split."""

    max_depth: int
    min_samples_leaf: int
    alpha: float

    @classmethod
    def checked(cls, max_depth: Any, min_samples_leaf: Any, alpha: Any) -> StoppingRules:
        """The rules, if they are what they may be."""
        return cls(
            whole_number("max_depth", max_depth, least=0),
            whole_number("min_samples_leaf", min_samples_leaf, least=1),
            number_in("alpha", alpha, low=0.0, high=1.0),
        )


@dataclass(eq=False)
class _Draft:
    """A node while the tree grows."""

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


@dataclass(eq=False)
class _Grower:
    training: Training
    candidates: Candidates
    response: TargetScores
    rules: StoppingRules
    names: tuple[str, ...]
    positions: tuple[int, ...]
    drafts: list[_Draft] = field(default_factory=list)

    def grow(self) -> None:
        rows = np.arange(self.training.n_rows)
        weights = self.training.weights
        n = float(len(rows)) if weights is None else float(weights.sum())
        self.drafts.append(_Draft(rows, 0, None, n))
        waiting = [0]
        # Nodes too small to split are tested all the same; no one waits for them, so they come last.
        last: list[int] = []
        while waiting:
            tested = [node for node in waiting if self._is_tested(self.drafts[node])]
            large = [node for node in tested if self.drafts[node].n >= 2 * self.rules.min_samples_leaf]
            last += [node for node in tested if self.drafts[node].n < 2 * self.rules.min_samples_leaf]
            for block in self._blocks(large):
                self._work_on(block)
            waiting = [child for node in waiting for child in self.drafts[node].children or ()]
        for width, block in self._blocks_of_fixed_width(last):
            self._work_on(block, width)

    def _is_tested(self, draft: _Draft) -> bool:
        """Whether a node is fitted and tested; if not, it says why."""
        if draft.depth >= self.rules.max_depth:
            draft.stop = "depth"
        elif draft.n < MIN_SPLIT or len(draft.rows) < 2:
            draft.stop = "few rows"
        return draft.stop is None

    def _blocks(self, nodes: list[int]) -> list[list[int]]:
        """Nodes in groups of similar size."""
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
        """Nodes by the power of two that holds them.

        Which small nodes there are depends on the depth of the tree. In a width of its own a node's sums are formed in
        the same order whatever stands beside it, so that pruning gives what growing less gives, to the last digit.
        """
        by_width: dict[int, list[int]] = {}
        for node in nodes:
            by_width.setdefault(1 << (len(self.drafts[node].rows) - 1).bit_length(), []).append(node)
        blocks = []
        for width, members in by_width.items():
            step = max(1, _BLOCK_ROWS // width)
            blocks += [(width, members[at : at + step]) for at in range(0, len(members), step)]
        return blocks

    def _work_on(self, nodes: list[int], width: int | None = None) -> None:
        drafts = [self.drafts[node] for node in nodes]
        block = Block.of([draft.rows for draft in drafts], self.training.weights, self.training.n_rows, width)
        scored = self.response.score(block, [draft.start for draft in drafts])
        usable = scored.varies & scored.fitted
        scored.scores[~usable] = 0.0  # whatever a failed fit has left there
        white = whiten(scored.scores, block)
        tests = test_columns(self.candidates, block, white)
        for k, draft in enumerate(drafts):
            if scored.steps is not None and usable[k]:
                draft.start = scored.steps[k]
                if scored.log_likelihood is not None:
                    draft.theta = tuple(np.cumsum(scored.steps[k]).tolist())
                    draft.log_likelihood = float(scored.log_likelihood[k])
            if usable[k]:
                draft.tests = ColumnTests(
                    self.names, tests.statistic[k], tests.df[k], tests.log_p[k], tests.criterion[k]
                )
            else:
                draft.stop = "not fitted" if scored.varies[k] else "constant"
        self._choose(nodes, block, white, tests, usable)

    def _choose(
        self, nodes: list[int], block: Block, white: WhitenedScores, tests: BlockTests, usable: npt.NDArray[np.bool_]
    ) -> None:
        """Split each node in its best column, or in the next best if that allows no cut."""
        least = np.maximum(float(self.rules.min_samples_leaf), np.ceil(MIN_SHARE * block.n))
        needed = np.log1p(-self.rules.alpha) if self.rules.alpha < 1 else -np.inf
        criterion = np.where(usable[:, None], tests.criterion, -np.inf)
        best = best_columns(criterion, tests.statistic).tolist()
        chosen: dict[int, int] = {}
        for k, node in enumerate(nodes):
            draft, column = self.drafts[node], best[k]
            if column < 0:
                draft.stop = draft.stop or "constant"
                continue
            top = float(criterion[k, column])
            draft.p_value = -math.expm1(top)
            if not top > needed:
                draft.stop = "not significant"
            elif block.n[k] < 2 * least[k]:
                draft.stop = "few rows"
            else:
                chosen[k] = column
        left = self._cut_and_split(nodes, chosen, block, white, tests, least)
        if left:
            # No admissible cut in the best column: the next best is tried, if it is significant too.
            for k, column in left.items():
                criterion[k, column] = -np.inf
            again = best_columns(criterion, tests.statistic).tolist()
            chosen = {k: again[k] for k in left if again[k] >= 0 and criterion[k, again[k]] > needed}
            self._cut_and_split(nodes, chosen, block, white, tests, least)
            for k in left:
                if self.drafts[nodes[k]].split is None:
                    self.drafts[nodes[k]].stop = "no admissible cut"

    def _cut_and_split(
        self,
        nodes: list[int],
        chosen: dict[int, int],
        block: Block,
        white: WhitenedScores,
        tests: BlockTests,
        least: Floats,
    ) -> dict[int, int]:
        """Split nodes in their chosen columns; those without an admissible cut are given back."""
        cuts = self._cuts(chosen, block, white, tests, least)
        for k, cut in cuts.items():
            if cut is not None:
                self._split(nodes[k], chosen[k], cut, float(tests.criterion[k, chosen[k]]))
        return {k: chosen[k] for k, cut in cuts.items() if cut is None}

    def _cuts(
        self, chosen: dict[int, int], block: Block, white: WhitenedScores, tests: BlockTests, least: Floats
    ) -> dict[int, SplitPoint | None]:
        cuts: dict[int, SplitPoint | None] = {}
        together = []
        partial = {index for index, _ in self.candidates.partial}
        for k, column in chosen.items():
            n, enough = float(block.n[k]), float(least[k])
            if column in tests.sums:
                cuts[k] = cut_levels(tests.sums[column][k], tests.counts[column][k], n, enough)
            elif column in partial:
                size = int(block.sizes[k])
                values = self.candidates.numeric_values(column)[block.rows[k, :size]]
                weights = None if block.weights is None else block.weights[k, :size]
                cuts[k] = cut_partial(values, white.z[k, :, :size], weights, n, enough)
            else:
                together.append(k)
        if together:
            cuts.update(self._cuts_in_numbers(together, chosen, block, white, least))
        return cuts

    def _cuts_in_numbers(
        self, together: list[int], chosen: dict[int, int], block: Block, white: WhitenedScores, least: Floats
    ) -> dict[int, SplitPoint | None]:
        m = block.rows.shape[1]
        values = np.empty((len(together), m))
        for line, k in zip(values, together, strict=True):
            line[:] = self.candidates.numeric_values(chosen[k])[block.rows[k]]
            line[int(block.sizes[k]) :] = np.inf
        everyone = len(together) == len(block.n)
        stacked = white.stacked if everyone else white.stacked[together]
        order = self.candidates.order_of_nodes([chosen[k] for k in together], block, together, values)
        found = cut_numbers(values, order, stacked, block.sizes[together], block.n[together], least[together])
        return dict(zip(together, found, strict=True))

    def _split(self, node: int, column: int, cut: SplitPoint, criterion: float) -> None:
        draft, table = self.drafts[node], self.training.table
        info, at = table.columns[column], self.positions[column]
        values = (table.codes if info.is_nominal else table.numbers)[:, at][draft.rows]
        split = _as_split(cut, info)
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


def _as_split(cut: SplitPoint, column: ColumnInfo) -> Split:
    """A cut as a split of the rows that it was found in."""
    if not column.is_nominal:
        return Split(column.name, column.kind, cut.threshold, missing="left" if cut.missing_left else "right")
    chosen = set(cut.left)
    sides = tuple(
        tuple(level for code, level in enumerate(column.levels) if (code in chosen) == goes_left)
        for goes_left in (True, False)
    )
    # The code after the last level stands for missing values.
    missing: Side = "left" if len(column.levels) in chosen else "right"
    return Split(column.name, column.kind, levels=(sides[0], sides[1]), missing=missing)


def grow(
    training: Training, response: TargetScores, rules: StoppingRules, method: str, parameters: Mapping[str, Any]
) -> Tree:
    """Grow a tree of x by tests of its scores."""
    names = training.table.names
    candidates = Candidates.of(training.table, training.prepared)
    grower = _Grower(training, candidates, response, rules, names, training.table.positions())
    with one_blas_thread():
        grower.grow()
    cells = Histogram.of(training.target, training.values)
    nodes = _finished(grower.drafts, cells, training)
    return Tree(method, training.target, training.table.columns, nodes, cells.edges, dict(parameters))


def _finished(drafts: list[_Draft], cells: Histogram, training: Training) -> tuple[Node, ...]:
    """Drafts as nodes, numbered in pre-order."""
    counts = _counts(drafts, cells, training)
    counts.flags.writeable = False
    order: list[int] = []
    stack = [0]
    while stack:
        index = stack.pop()
        order.append(index)
        stack.extend(reversed(drafts[index].children or ()))
    number = {index: id_ for id_, index in enumerate(order, start=1)}
    nodes = []
    for index in order:
        draft = drafts[index]
        children = None if draft.children is None else (number[draft.children[0]], number[draft.children[1]])
        nodes.append(
            Node(
                id=number[index],
                parent=None if draft.parent is None else number[draft.parent],
                depth=draft.depth,
                n=draft.n,
                counts=counts[index],
                children=children,
                split=draft.split,
                stop=draft.stop,
                tests=draft.tests,
                p_value=draft.p_value,
                theta=draft.theta,
                log_likelihood=draft.log_likelihood,
            )
        )
    return tuple(nodes)


def _counts(drafts: list[_Draft], cells: Histogram, training: Training) -> Floats:
    """Weight of each node's rows in the cells of x: counted in leaves, added up to the root."""
    leaf = np.empty(training.n_rows, dtype=np.intp)
    for index, draft in enumerate(drafts):
        if draft.children is None:
            leaf[draft.rows] = index
    counts = cells.counts(leaf, len(drafts), training.weights)
    for index in range(len(drafts) - 1, -1, -1):
        children = drafts[index].children
        if children is not None:
            counts[index] = counts[children[0]] + counts[children[1]]
    return counts
