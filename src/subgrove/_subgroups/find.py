"""`find_subgroups`: one tree per feature."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Literal

from subgrove._core.execution import effective_jobs, one_blas_thread, parallel_map
from subgrove._core.kinds import MAX_LEVELS
from subgrove._core.text import TOGETHER
from subgrove._core.validate import names_arguments, reject_another_index, warn
from subgrove._core.weights import read_weights
from subgrove._data.columns import Members, allowed_columns, parse_features
from subgrove._data.table import ColumnInfo, Floats, Kind, Table, fingerprint, read_table
from subgrove._subgroups.depth import AUTO_MAX_DEPTH
from subgrove._subgroups.partition import Partition, TreeSettings, grow_on_shared_columns
from subgrove._subgroups.subgroups import Subgroups
from subgrove.exceptions import ColumnError, ParameterError, SubgroveError
from subgrove.trees.training import SortedTable, select_columns

AUTO = "auto"


@names_arguments()
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
    """Find subgroups of each feature in which it hardly depends on the other columns.

    Parameters
    ----------
    X : pandas or polars frame, pyarrow table or 2-d array
        Training rows; columns of an array are called x0, x1, and so on. Missing values are allowed.
    features : str or list, optional
        Features to find subgroups for: a name or a list of names; every column by default. A tuple or list of names
        inside the list is a group of features that will be resampled jointly: it has one tree, on the columns outside
        the group.
    tree : {"transformation", "cart"}, default "transformation"
        "transformation" splits by the whole distribution of a numeric feature, the frequencies of a nominal feature,
        the mean of an ordered feature and the share of a binary one (conditional inference). "cart" splits by means
        and frequencies; it does not support groups of features.
    max_depth : int or "auto", default 2
        Maximum number of splits from the root to a leaf, so that there are at most `2 ** max_depth` subgroups; 0
        gives one. "auto" selects for each feature the smallest depth up to 6 whose held-out score is within one
        standard error of the best (`Partition.choice` gives the scores), at the cost of five more trees per feature.
    min_samples_leaf : int, default 30
        Minimum number of rows in a subgroup; with relative weights, of effective rows.
    alpha : float, default 0.05
        Significance level of the tests, after adjustment for the number of columns; not used by CART.
    given : str or list of str, optional
        Columns that rules may use; every column by default. A feature is never used in its own rules.
    kinds : mapping, optional
        Column name -> "numeric", "ordered" or "nominal", to override the kind that the dtype implies.
    sample_weight : 1-d array or FrequencyWeights, optional
        Relative weights, or frequencies of rows.
    n_jobs : int, optional
        Number of processes, as in joblib: -1 for all cores; None is one, unless `joblib.parallel_config` sets another
        number. The result does not depend on it.

    Returns
    -------
    Subgroups
        Mapping from feature to `Partition`.

    Notes
    -----
    How to read it: a feature with one subgroup, "all rows", shows no dependence on other columns that the tree can
    detect. `stop` of its only leaf gives the reason: "not significant"; or "constant", "no columns" (to split on) or
    "few rows" if no tree could grow.

    Rows with a missing value of a feature are left out when its tree grows; `assign` assigns them to a subgroup
    nevertheless.

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

    Features that are resampled jointly have one tree:

    >>> both = sg.find_subgroups(X, features=[("temp", "hum")], given=["season", "yr"], max_depth=1)
    >>> both["temp", "hum"].rules
    ('season in {WINTER, SPRING, FALL}', 'season in {SUMMER}')

    Select the depth of each feature by cross-validation:

    >>> sg.find_subgroups(X, features=["hum", "wind"], max_depth="auto")
    <Subgroups of 2 features: transformation trees, max_depth auto>
      hum   8 subgroups by weather, wind, temp, season (depth 4)
      wind  3 subgroups by season, hum (depth 2)
    """
    selects_depth = isinstance(max_depth, str)
    if selects_depth and max_depth != AUTO:
        raise ParameterError(f"max_depth must be a whole number >= 0, or {AUTO!r}; got {max_depth!r}.")
    depth = AUTO_MAX_DEPTH if selects_depth else max_depth
    settings = TreeSettings.checked(tree, depth, min_samples_leaf, alpha, select_depth=selects_depth)
    subgroups = grow_all_trees(X, settings, features, given, kinds, sample_weight, n_jobs)
    return subgroups.at_selected_depth() if selects_depth else subgroups


def grow_all_trees(
    X: Any, settings: TreeSettings, features: Any, given: Any, kinds: Any, sample_weight: Any, n_jobs: int | None
) -> Subgroups:
    """Grow a tree for each feature; with the selection of the depth, trees have the maximum depth and its scores."""
    effective_jobs(n_jobs)  # raises if n_jobs is invalid
    table = read_table(X, kinds=kinds, lenient=True)
    groups, allowed = parse_features(features, table.names), allowed_columns(given, table.names)
    allowed = _without_unusable(table, allowed, given)
    settings.reject_groups(groups)
    reject_another_index(X, sample_weight=sample_weight)
    weights = read_weights(sample_weight, table.n_rows)
    columns = SortedTable.of(select_columns(table, allowed), shared=True)
    if len(groups) > 1 and effective_jobs(n_jobs) > 1:
        columns = columns.filled()  # once here instead of in every process
    task = partial(_partition, columns, table, weights, settings)
    with one_blas_thread():  # around all trees, since threads would reset it for one another
        partitions = tuple(parallel_map(task, groups, n_jobs))
    parameters = {
        "features": None if features is None else [each[0] if len(each) == 1 else [*each] for each in groups],
        "tree": settings.tree,
        "max_depth": settings.rules.max_depth,
        "min_samples_leaf": settings.rules.min_samples_leaf,
        "alpha": settings.rules.alpha,
        "given": None if given is None else [*allowed],
        "kinds": None if kinds is None else dict(kinds),
        "weighted": sample_weight is not None,
    }
    return Subgroups(partitions, table.columns, fingerprint(table), parameters)


def _without_unusable(table: Table, allowed: Members, given: Any) -> Members:
    """Return the columns that a tree can split on; warn about the others."""
    unusable = {column.name: why for column in table.columns if (why := _unusable(table, column)) is not None}
    named = [name for name in allowed if name in unusable]
    if not named:
        return allowed
    listed = ", ".join(f"{name!r} ({unusable[name]})" for name in named[:5]) + (" ..." if len(named) > 5 else "")
    if given is not None:
        raise ColumnError(f"given has columns that cannot define subgroups: {listed}. Remove them from given.")
    warn(
        f"Rules do not use the columns {listed}. Merge rare levels, convert columns that hold numbers or dates, or "
        f"pass the columns to use as given."
    )
    return tuple(name for name in allowed if name not in unusable)


def _unusable(table: Table, column: ColumnInfo) -> str | None:
    """Return why no tree can split on a column; None if it can."""
    if len(column.levels) > MAX_LEVELS:
        return f"{len(column.levels)} levels, more than the maximum of {MAX_LEVELS}"
    if column.has_missing and bool(table.series(column.name).missing.all()):
        return "all values missing"
    return None


def _partition(
    columns: SortedTable, table: Table, weights: Floats | None, settings: TreeSettings, members: Members
) -> Partition:
    """Grow the tree of a feature or group; errors name it."""
    try:
        return grow_on_shared_columns(columns, table, weights, members, settings)
    except SubgroveError as error:
        raise type(error)(f"Feature {TOGETHER.join(members)!r}: {error}") from error
    except Exception as error:
        error.add_note(f"Raised while growing the tree of feature {TOGETHER.join(members)!r}.")
        raise
