"""The user's own forest of scikit-learn: its splits, and rows as it sees them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from subgrove._core.kinds import Floats
from subgrove._core.text import quote
from subgrove._data.columns import ColumnInfo
from subgrove._data.from_containers import BOOLEANS
from subgrove._data.table import Table
from subgrove.exceptions import ParameterError
from subgrove.samplers.forest_structure import TreeSplits


@dataclass(frozen=True, eq=False)
class UserForest:
    """Trees, and how rows become the numbers that they split.

    Attributes
    ----------
    trees : tuple of Splits
        One for each tree.
    names : tuple of str
        The columns of the table in the order that the trees count them in.
    inputs : tuple of str
        The columns that `steps` takes.
    steps : object or None
        The fitted steps of a pipeline before the forest.
    """

    trees: tuple[TreeSplits, ...]
    names: tuple[str, ...]
    inputs: tuple[str, ...]
    steps: Any = None

    def seen(self, table: Table) -> Floats:
        """Rows as the trees see them, in the order of `names`."""
        if self.steps is None:
            values = np.column_stack([_numbers(table, name) for name in self.names])
        else:
            values = self._transformed(table)
        # Trees compare single precision with their cuts.
        return values.astype(np.float32).astype(np.float64)

    def _transformed(self, table: Table) -> npt.NDArray[Any]:
        import pandas as pd

        frame: Any = pd.DataFrame({name: _originals(table, name) for name in self.inputs})
        if not hasattr(self.steps, "feature_names_in_"):
            frame = frame.to_numpy()
        try:
            given = self.steps.transform(frame)
            return np.asarray(given.toarray() if hasattr(given, "toarray") else given, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ParameterError(
                f"The steps of the pipeline before its forest cannot transform the rows: {error}"
            ) from error


def read_forest(forest: Any, columns: Sequence[ColumnInfo]) -> UserForest:
    """The splits of a fitted forest, or of a pipeline that ends in one, by the columns of a table."""
    from sklearn.pipeline import Pipeline

    steps = None
    if isinstance(forest, Pipeline):
        steps, forest = (forest[:-1] if len(forest) > 1 else None), forest[-1]
    _reject_other_than_forests(forest)
    table = tuple(column.name for column in columns)
    inputs = _named(forest if steps is None else steps, table)
    names = inputs if steps is None else _kept(steps, inputs, forest)
    if steps is None:
        for column in columns:
            if column.name in names:
                _check_numeric(column)
    return UserForest(tuple(_splits(tree.tree_) for tree in forest.estimators_), names, inputs, steps)


def _reject_other_than_forests(forest: Any) -> None:
    from sklearn.ensemble import (
        ExtraTreesClassifier,
        ExtraTreesRegressor,
        RandomForestClassifier,
        RandomForestRegressor,
    )

    known = (RandomForestClassifier, RandomForestRegressor, ExtraTreesClassifier, ExtraTreesRegressor)
    if not isinstance(forest, known):
        raise ParameterError(
            f"forest must be a random forest or extra-trees model of scikit-learn, or a Pipeline that ends in one; got "
            f"{type(forest).__name__}. For other models use 'subgroups'."
        )
    if not hasattr(forest, "estimators_"):
        raise ParameterError(f"forest, a {type(forest).__name__}, has not been fitted. Fit it first.")


def _named(model: Any, table: tuple[str, ...]) -> tuple[str, ...]:
    """Names of the columns that a model was fitted on."""
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


def _kept(steps: Any, inputs: tuple[str, ...], forest: Any) -> tuple[str, ...]:
    """Names of what comes out of the steps, if each is a column that went in."""
    try:
        given = steps.get_feature_names_out(np.array(inputs, dtype=object))
    except (AttributeError, ValueError) as error:
        raise ParameterError(
            f"The steps of the pipeline before its forest do not report their output columns: {error}. "
            f"Pass the forest alone, with the rows as it takes them."
        ) from error
    # A ColumnTransformer writes which part a column has gone through before its name.
    names = tuple(name if name in inputs else name.partition("__")[2] for name in map(str, given))
    made = [str(one) for one, name in zip(given, names, strict=True) if name not in inputs]
    if made or len(set(names)) < len(names) or len(names) != forest.n_features_in_:
        what = f"columns of their own making ({quote(made[:3])})" if made else "some columns several times"
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


def _check_numeric(column: ColumnInfo) -> None:
    try:
        _level_numbers(column)
    except ValueError:
        raise ParameterError(
            f"Column {column.name!r} is {column.kind}, but the forest takes numbers. Pass the whole Pipeline that "
            f"turns it into one number, or use 'subgroups'."
        ) from None


def _level_numbers(column: ColumnInfo) -> Floats:
    """What scikit-learn makes of levels: the numbers that they are, or 0 and 1 for False and True."""
    if column.levels == BOOLEANS:
        return np.array([0.0, 1.0])
    return np.array([float(level) for level in column.levels])


def _numbers(table: Table, name: str) -> Floats:
    values, column = table.values(name), table.series(name).info
    if column.kind == "numeric":
        return np.asarray(values, dtype=np.float64)
    # Missing values and levels that training did not have come last, and are missing.
    return np.append(_level_numbers(column), np.nan)[_level_places(values, column)]


def _originals(table: Table, name: str) -> npt.NDArray[Any]:
    """A column as a pipeline takes it: numbers, or labels."""
    values, column = table.values(name), table.series(name).info
    if column.kind == "numeric":
        return values
    labels = [label == "True" for label in column.levels] if column.levels == BOOLEANS else list(column.levels)
    originals: npt.NDArray[Any] = np.array([*labels, None], dtype=object)[_level_places(values, column)]
    return originals


def _level_places(values: npt.NDArray[Any], column: ColumnInfo) -> npt.NDArray[np.intp]:
    """Places of levels; -1, the last, where there is none."""
    places = np.maximum(values, -1) if column.is_nominal else np.where(np.isfinite(values), values - 1, -1)
    return np.asarray(places, dtype=np.intp)
