"""A tree for each feature: the verb that finds subgroups."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from functools import partial
from typing import Any, Literal

from subgrove._core.kinds import MAX_LEVELS
from subgrove._core.parallel import effective_jobs, one_blas_thread, parallel_map
from subgrove._core.text import TOGETHER
from subgrove._core.validate import reject_another_index
from subgrove._data.features import Members, allowed_columns, parse_features
from subgrove._data.fingerprint import fingerprint
from subgrove._data.table import ColumnInfo, Floats, Kind, Table, read_table, read_weights
from subgrove._subgroups.depth import DEEPEST
from subgrove._subgroups.grow import TreeSettings, grow_on_shared_columns
from subgrove._subgroups.partition import Partition
from subgrove._subgroups.subgroups import Subgroups
from subgrove.exceptions import ColumnError, ParameterError, SubgroveError, SubgroveWarning
from subgrove.trees.sorted_table import SortedTable
from subgrove.trees.training import select_columns

AUTO = "auto"


def find_subgroups(
    X: Any,
    *,
    features: Any = None,
    tree: Literal["transformation", "cart"] = "transformation",
    max_depth: int | Literal["auto"] = 2,
    min_samples_leaf: int = 30,
    alpha: float = 0.05,
    given: Any = None,
    kinds: Mapping[str, Kind] | None = None,
    sample_weight: Any = None,
    n_jobs: int | None = None,
) -> Subgroups:
    """Subgroups of each feature, in which it hardly depends on the other columns.

    Parameters
    ----------
    X : pandas or polars frame, pyarrow table or 2-d array
        Training rows; columns of an array are called x0, x1, and so on. Missing values are allowed.
    features : str or list, optional
        The features to find subgroups for: a name, or a list of names; every column by default.
        A tuple or list of names among them is a group of features that will be redrawn together: they have one tree,
        on the columns outside the group.
    tree : {"transformation", "cart"}, default "transformation"
        "transformation" tells subgroups apart by the whole distribution of a numeric feature, and by the frequencies
        of a nominal, the mean of an ordered one and the share of one with two values (conditional inference).
        "cart" tells them apart by means and by frequencies; it takes no groups of features.
    max_depth : int or "auto", default 2
        Most conditions in a rule, so at most `2 ** max_depth` subgroups; 0 leaves one. "auto" chooses for each feature
        the smallest depth up to 6 that foretells held-out rows as well as the best depth, within one standard error;
        `choice` of its `Partition` says why. That grows five more trees for each feature.
    min_samples_leaf : int, default 30
        Least number of rows (weight) in a subgroup.
    alpha : float, default 0.05
        Level of the tests, after adjustment for the number of columns; CART has none.
    given : str or list of str, optional
        The columns that rules may ask for; every column by default. A feature is never in its own rules.
    kinds : mapping, optional
        Column name -> "numeric", "ordered" or "nominal", where the dtype says otherwise.
    weights : 1-d array, optional
        How often each row counts.
    n_jobs : int, optional
        Processes to grow trees in, as joblib counts them: -1 for all cores. None is one, or what
        `joblib.parallel_config` says. The result is the same for any number.

    Returns
    -------
    Subgroups
        A mapping from feature to `Partition`.

    Notes
    -----
    How to read it: a feature with one subgroup, "all rows", depends on no other column as far as the tree can tell. The
    only leaf of its tree says why in `stop`: "not significant"; or "constant", "no columns" (to split on) or "few rows"
    where no tree could grow.

    Rows without a value of a feature are left out when its tree grows; `assign` gives them a subgroup all the same.

    Examples
    --------
    >>> import subgrove as sg
    >>> X = sg.datasets.bike().X
    >>> groups = sg.find_subgroups(X)
    >>> groups
    <Subgroups of 9 features: transformation trees, max_depth 2>
      season   4 subgroups by temp
      yr       2 subgroups by hum
      holiday  3 subgroups by work, weekday
      weekday  2 subgroups by work
      temp     4 subgroups by season, hum
      hum      4 subgroups by weather, wind, temp
      work     3 subgroups by weekday
      weather  4 subgroups by hum, temp
      wind     3 subgroups by season, hum
    >>> groups["temp"].rules[2]
    'season in {SUMMER} and hum <= 67.292'

    Features that are to be redrawn together have one tree:

    >>> both = sg.find_subgroups(X, features=[("temp", "hum")], given=["season", "yr"], max_depth=1)
    >>> both["temp", "hum"].rules
    ('season in {WINTER, SPRING, FALL}', 'season in {SUMMER}')

    Each feature with the depth that it needs:

    >>> sg.find_subgroups(X, features=["hum", "wind"], max_depth="auto")
    <Subgroups of 2 features: transformation trees, max_depth auto>
      hum   8 subgroups by weather, wind, temp, season (depth 4)
      wind  3 subgroups by season, hum (depth 2)
    """
    if not isinstance(max_depth, str):
        return _found(X, features, tree, max_depth, min_samples_leaf, alpha, given, kinds, sample_weight, n_jobs)
    if max_depth != AUTO:
        raise ParameterError(f"max_depth must be a whole number >= 0, or {AUTO!r}; got {max_depth!r}.")
    deep = _found(X, features, tree, DEEPEST, min_samples_leaf, alpha, given, kinds, sample_weight, n_jobs, judged=True)
    return deep.at_selected_depth()


def subgroups_by_depth(
    X: Any,
    features: Any,
    tree: Any,
    deepest: Any,
    min_samples_leaf: Any,
    alpha: Any,
    given: Any,
    kinds: Any,
    weights: Any,
    n_jobs: Any,
    tolerance: float,
) -> Subgroups:
    """Subgroups at the greatest depth, each with its scores by depth."""
    return _found(
        X,
        features,
        tree,
        deepest,
        min_samples_leaf,
        alpha,
        given,
        kinds,
        weights,
        n_jobs,
        judged=True,
        tolerance=tolerance,
    )


def _found(
    X: Any,
    features: Any,
    tree: Any,
    max_depth: Any,
    min_samples_leaf: Any,
    alpha: Any,
    given: Any,
    kinds: Any,
    weights: Any,
    n_jobs: Any,
    *,
    judged: bool = False,
    tolerance: float = 0.0,
) -> Subgroups:
    settings = TreeSettings.checked(tree, max_depth, min_samples_leaf, alpha, judged, tolerance)
    effective_jobs(n_jobs)  # refuses what is no number of jobs
    table = read_table(X, kinds=kinds, lenient=True)
    asked, allowed = parse_features(features, table.names), allowed_columns(given, table.names)
    allowed = _without_unusable(table, allowed, given)
    settings.reject_groups(asked)
    reject_another_index(X, sample_weight=weights)
    counted = read_weights(weights, table.n_rows)
    prepared = SortedTable.of(select_columns(table, allowed), shared=tree == "transformation")
    if len(asked) > 1 and effective_jobs(n_jobs) > 1:
        prepared = prepared.filled(tree)  # here, and not in every process
    task = partial(_partition, prepared, table, counted, settings)
    with one_blas_thread():  # around all of them, since threads would set it back for one another
        partitions = tuple(parallel_map(task, asked, n_jobs))
    parameters = {
        "features": None if features is None else [each[0] if len(each) == 1 else [*each] for each in asked],
        "tree": tree,
        "max_depth": settings.rules.max_depth,
        "min_samples_leaf": settings.rules.min_samples_leaf,
        "alpha": settings.rules.alpha,
        "given": None if given is None else [*allowed],
        "kinds": None if kinds is None else dict(kinds),
        "weighted": weights is not None,
    }
    return Subgroups(partitions, table.columns, fingerprint(table), parameters)


def _without_unusable(table: Table, allowed: Members, given: Any) -> Members:
    """The columns that a tree can split on; says which cannot."""
    unusable = {column.name: why for column in table.columns if (why := _unusable(table, column)) is not None}
    named = [name for name in allowed if name in unusable]
    if not named:
        return allowed
    listed = ", ".join(f"{name!r} ({unusable[name]})" for name in named[:5]) + (" ..." if len(named) > 5 else "")
    if given is not None:
        raise ColumnError(f"given names columns that no subgroup can be made of: {listed}. Leave them out of given.")
    warnings.warn(
        f"No subgroup is made of the columns {listed}. Merge rare levels, convert a column that holds numbers or "
        f"dates, or name the columns to use in given.",
        SubgroveWarning,
        stacklevel=4,
    )
    return tuple(name for name in allowed if name not in unusable)


def _unusable(table: Table, column: ColumnInfo) -> str | None:
    """Why no tree can split on a column; None if it can."""
    if len(column.levels) > MAX_LEVELS:
        return f"{len(column.levels)} levels, at most {MAX_LEVELS} can be told apart usefully"
    if column.has_missing and bool(table.series(column.name).missing.all()):
        return "no value at all"
    return None


def _partition(
    prepared: SortedTable, table: Table, weights: Floats | None, settings: TreeSettings, members: Members
) -> Partition:
    """The subgroups of one feature, or of a group."""
    try:
        return grow_on_shared_columns(prepared, table, weights, members, settings)
    except SubgroveError as error:
        raise type(error)(f"Feature {TOGETHER.join(members)!r}: {error}") from error
    except Exception as error:
        error.add_note(f"This happened to the tree of feature {TOGETHER.join(members)!r}.")
        raise
