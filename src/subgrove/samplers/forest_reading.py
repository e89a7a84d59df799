"""Splits of a user's scikit-learn forest, and the cells into which the splits of one tree divide rows.

A tree was grown to predict the target. To resample a feature given the columns that it is associated with, only splits
on these columns count; they define cells in one of two ways:

- grid (Strobl et al. 2008): a column is cut at all its thresholds in the tree, and cells are the combinations of the
  resulting intervals;
- nodes: a split counts only for rows that reach it. A node that splits on any other column sends its rows both ways,
  and rows share a cell if no split that they reach separates them. These cells are larger.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from subgrove._core.kinds import Floats
from subgrove._core.text import quote
from subgrove._data.columns import ColumnInfo
from subgrove._data.from_containers import BOOLEANS
from subgrove._data.replace_columns import Rows
from subgrove._data.table import Table
from subgrove.exceptions import ParameterError


@dataclass(frozen=True, eq=False)
class TreeSplits:
    """A binary tree of numeric splits; arrays with an entry for each node, the root first.

    Attributes
    ----------
    left, right : int array
        Children; -1 at a leaf.
    column : int array
        Split column; negative at a leaf.
    cut : float array
        Threshold: values up to it go left.
    missing_left : bool array
        Whether missing values go left.
    """

    left: Rows
    right: Rows
    column: Rows
    cut: Floats
    missing_left: npt.NDArray[np.bool_]

    @cached_property
    def cuts(self) -> dict[int, Floats]:
        """Sorted distinct thresholds of each split column."""
        columns = np.unique(self.column[self.left >= 0]).tolist()
        return {column: np.unique(self.cut[(self.column == column) & (self.left >= 0)]) for column in columns}

    def intervals(self, column: int, values: Floats) -> Rows:
        """Return the interval between thresholds that each row lies in; missing values are an interval of their own."""
        cuts = self.cuts.get(column, np.empty(0))
        own = values[:, column]
        return np.where(np.isnan(own), len(cuts) + 1, np.searchsorted(cuts, own))


@dataclass(frozen=True, eq=False)
class UserForest:
    """Trees, and how rows are encoded for them.

    Attributes
    ----------
    trees : tuple of TreeSplits
        One for each tree.
    names : tuple of str
        Names of the forest's columns, in its order.
    inputs : tuple of str
        Columns that `steps` takes.
    steps : object or None
        Fitted steps of a pipeline before the forest.
    """

    trees: tuple[TreeSplits, ...]
    names: tuple[str, ...]
    inputs: tuple[str, ...]
    steps: Any = None

    def encode(self, table: Table) -> Floats:
        """Return rows as numbers, a column for each of `names`."""
        if self.steps is None:
            values = np.column_stack([_numbers(table, name) for name in self.names])
        else:
            values = self._transformed(table)
        # Trees compare values in single precision with their thresholds.
        return values.astype(np.float32).astype(np.float64)

    def _transformed(self, table: Table) -> npt.NDArray[Any]:
        import pandas as pd

        frame: Any = pd.DataFrame({name: _originals(table, name) for name in self.inputs})
        if not hasattr(self.steps, "feature_names_in_"):
            frame = frame.to_numpy()
        try:
            encoded = self.steps.transform(frame)
            return np.asarray(encoded.toarray() if hasattr(encoded, "toarray") else encoded, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ParameterError(
                f"The steps of the pipeline before its forest cannot transform the rows: {error}"
            ) from error


def read_forest(forest: Any, columns: Sequence[ColumnInfo]) -> UserForest:
    """Read the splits of a fitted forest, or of a pipeline that ends in one, for a table with some columns."""
    from sklearn.pipeline import Pipeline

    steps = None
    if isinstance(forest, Pipeline):
        steps, forest = (forest[:-1] if len(forest) > 1 else None), forest[-1]
    _reject_other_than_forests(forest)
    table = tuple(column.name for column in columns)
    inputs = _input_names(forest if steps is None else steps, table)
    names = inputs if steps is None else _output_names(steps, inputs, forest)
    if steps is None:
        _reject_labels([column for column in columns if column.name in names])
    return UserForest(tuple(_splits(tree.tree_) for tree in forest.estimators_), names, inputs, steps)


def _reject_other_than_forests(forest: Any) -> None:
    from sklearn import ensemble

    known = ("RandomForestClassifier", "RandomForestRegressor", "ExtraTreesClassifier", "ExtraTreesRegressor")
    if not isinstance(forest, tuple(getattr(ensemble, name) for name in known)):
        raise ParameterError(
            f"forest must be a random forest or extra-trees model of scikit-learn, or a Pipeline that ends in one; got "
            f"{type(forest).__name__}. For other models use 'subgroups'."
        )
    if not hasattr(forest, "estimators_"):
        raise ParameterError(f"forest, a {type(forest).__name__}, has not been fitted. Fit it first.")


def _input_names(model: Any, table: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names of the columns that a model was fitted on."""
    if hasattr(model, "feature_names_in_"):
        names = tuple(map(str, model.feature_names_in_))
        absent = [name for name in names if name not in table]
        if absent:
            raise ParameterError(
                f"forest was fitted on {quote(absent)}, which train lacks. Pass the columns that it was fitted on."
            )
        return names
    if model.n_features_in_ != len(table):
        raise ParameterError(
            f"forest was fitted on {model.n_features_in_} columns without names, but train has {len(table)}. "
            f"Pass the columns that it was fitted on, in the same order."
        )
    return table


def _output_names(steps: Any, inputs: tuple[str, ...], forest: Any) -> tuple[str, ...]:
    """Return the names of the output columns of the steps; raise unless each is an input column."""
    try:
        outputs = steps.get_feature_names_out(np.array(inputs, dtype=object))
    except (AttributeError, ValueError) as error:
        raise ParameterError(
            f"The steps of the pipeline before its forest do not report their output columns: {error}. "
            f"Pass the forest alone, with the rows as it takes them."
        ) from error
    # A ColumnTransformer prefixes names with that of the transformer.
    names = tuple(name if name in inputs else name.partition("__")[2] for name in map(str, outputs))
    new = [str(one) for one, name in zip(outputs, names, strict=True) if name not in inputs]
    if new or len(set(names)) < len(names) or len(names) != forest.n_features_in_:
        what = f"columns of their own making ({quote(new[:3])})" if new else "some columns several times"
        raise ParameterError(
            f"The forest of a pipeline can be used only if the steps before it keep the columns; these give {what}. "
            f"Pass the forest alone, with the rows as it takes them, or use 'subgroups'."
        )
    return names


def _splits(tree: Any) -> TreeSplits:
    return TreeSplits(
        np.asarray(tree.children_left, dtype=np.intp),
        np.asarray(tree.children_right, dtype=np.intp),
        np.asarray(tree.feature, dtype=np.intp),
        np.asarray(tree.threshold, dtype=np.float64),
        np.asarray(tree.missing_go_to_left, dtype=np.bool_),
    )


def _reject_labels(columns: Sequence[ColumnInfo]) -> None:
    for column in columns:
        try:
            _level_numbers(column)
        except ValueError:
            raise ParameterError(
                f"Column {column.name!r} is {column.kind}, but the forest takes numbers. Pass the whole Pipeline that "
                f"turns it into one number, or use 'subgroups'."
            ) from None


def _level_numbers(column: ColumnInfo) -> Floats:
    """Return levels as scikit-learn reads them: numbers, or 0 and 1 for False and True."""
    if column.levels == BOOLEANS:
        return np.array([0.0, 1.0])
    return np.array([float(level) for level in column.levels])


def _numbers(table: Table, name: str) -> Floats:
    values, column = table.values(name), table.series(name).info
    if column.kind == "numeric":
        return np.asarray(values, dtype=np.float64)
    # Missing values and levels that are absent from training have index -1, the NaN at the end.
    return np.append(_level_numbers(column), np.nan)[_level_places(values, column)]


def _originals(table: Table, name: str) -> npt.NDArray[Any]:
    """Return a column as a pipeline takes it: numbers, or labels."""
    values, column = table.values(name), table.series(name).info
    if column.kind == "numeric":
        return values
    labels = [label == "True" for label in column.levels] if column.levels == BOOLEANS else list(column.levels)
    originals: npt.NDArray[Any] = np.array([*labels, None], dtype=object)[_level_places(values, column)]
    return originals


def _level_places(values: npt.NDArray[Any], column: ColumnInfo) -> npt.NDArray[np.intp]:
    """Return the index of each level; -1 for missing values and unknown levels."""
    places = np.maximum(values, -1) if column.is_nominal else np.where(np.isfinite(values), values - 1, -1)
    return np.asarray(places, dtype=np.intp)


def associated_columns(splits: TreeSplits, values: Floats, column: int, threshold: float) -> tuple[int, ...]:
    """Return the columns that depend on `column`: those with 1 - p above the threshold in a chi-square test.

    A threshold of 0 takes all columns that the tree splits. A column that the tree does not split depends on none.
    """
    others = [other for other in range(values.shape[1]) if other != column and other in splits.cuts]
    if threshold == 0:
        return tuple(others)
    if column not in splits.cuts:
        return ()
    own = splits.intervals(column, values)
    return tuple(other for other in others if 1.0 - _independence_p(own, splits.intervals(other, values)) > threshold)


def grid_cells(splits: TreeSplits, values: Floats, columns: Sequence[int]) -> Rows:
    """Return the cell of each row in the grid of all thresholds of some columns."""
    cells = np.zeros(len(values), dtype=np.intp)
    for column in columns:
        cells = _combined(cells, splits.intervals(column, values))
    return cells


def node_cells(splits: TreeSplits, values: Floats, columns: Sequence[int]) -> Rows:
    """Return the cell of each row if splits count only for rows that reach them."""
    used = frozenset(columns)

    def below(node: int, rows: Rows) -> Rows:
        if splits.left[node] < 0 or len(rows) < 2:
            return np.zeros(len(rows), dtype=np.intp)
        left, right, column = int(splits.left[node]), int(splits.right[node]), int(splits.column[node])
        if column not in used:
            return _combined(below(left, rows), below(right, rows))
        own = values[rows, column]
        goes_left = np.where(np.isnan(own), splits.missing_left[node], own <= splits.cut[node])
        cells = np.empty(len(rows), dtype=np.intp)
        cells[goes_left] = below(left, rows[goes_left])
        start = int(cells[goes_left].max()) + 1 if goes_left.any() else 0
        cells[~goes_left] = below(right, rows[~goes_left]) + start
        return cells

    return below(0, np.arange(len(values)))


def _combined(one: Rows, two: Rows) -> Rows:
    """Return codes, without gaps, of the combinations of two codes."""
    numbers: Rows = np.unique(one * (int(two.max(initial=0)) + 1) + two, return_inverse=True)[1]
    return numbers


def _independence_p(one: Rows, two: Rows) -> float:
    """Return the p-value of Pearson's chi-square test; 1 if either has a single value."""
    from scipy.special import chdtrc

    height, width = int(one.max()) + 1, int(two.max()) + 1
    counts = np.bincount(one * width + two, minlength=height * width).reshape(height, width)
    rows, columns = counts.sum(axis=1), counts.sum(axis=0)
    free = (np.count_nonzero(rows) - 1) * (np.count_nonzero(columns) - 1)
    if not free:
        return 1.0
    if not (rows.all() and columns.all()):
        counts, rows, columns = counts[rows > 0][:, columns > 0], rows[rows > 0], columns[columns > 0]
    expected = np.multiply.outer(rows, columns) / len(one)
    statistic = ((counts - expected) ** 2 / expected).sum()
    return float(chdtrc(free, statistic))
