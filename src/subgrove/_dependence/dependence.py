"""The verb: how well each feature can be foretold from the other columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from subgrove._core.kinds import Kind
from subgrove._core.parallel import effective_jobs, progress_bar
from subgrove._core.random import Streams, read_seed
from subgrove._core.text import quote
from subgrove._core.validate import number_in, whole_number
from subgrove._data.features import parse_features
from subgrove._data.table import read_table
from subgrove._data.to_containers import backend_of
from subgrove._dependence.predict_column import LEAST_ROWS, DependenceForests, feature_dependence
from subgrove._dependence.result import Dependence
from subgrove.exceptions import InputError, ParameterError


def dependence(
    X: Any,
    *,
    features: Any = None,
    n_trees: int = 500,
    n_repeats: int = 1,
    threshold: float = 0.2,
    kinds: Mapping[str, Kind] | None = None,
    random_state: int | None = None,
    n_jobs: int | None = None,
    progress: bool | None = None,
) -> Dependence:
    """How well each feature can be foretold from the other columns, and from which.

    A forest learns each feature from all other columns in one half of the rows and foretells it in the other half,
    and the other way round, as in the section "Analyzing Feature Dependence" of the paper. A feature that is foretold
    well cannot be redrawn on its own without making rows that do not occur.

    Parameters
    ----------
    X : pandas or polars frame, pyarrow table or 2-d array
        Features, without the target; best the training rows. Missing values are allowed.
    features : str or list of str, optional
        The features to foretell; every column by default. The others are foretold from all columns in any case.
    n_trees : int, default 500
        Trees of each forest.
    n_repeats : int, default 1
        How often rows are halved anew. More of them take the chance out of which rows came in which half, which
        matters where a level is rare.
    threshold : float, default 0.2
        Share of the loss from which on a feature is held for dependent.
    kinds : mapping, optional
        Column name -> "numeric", "ordered" or "nominal", where the dtype says otherwise.
    random_state : int, RandomState instance or Generator, optional
        Same seed, same numbers, for any `n_jobs`, and for any order or subset of features.
    n_jobs : int, optional
        Threads that grow trees at once, as joblib counts them.
    progress : bool, optional
        Whether a bar shows how far it is; by default in a terminal.

    Returns
    -------
    Dependence
        `table` with a row for each feature, `matrix` with what each column tells of each feature, and `advice`.

    Notes
    -----
    How to read it: `explained` is the share of loss that a forest of the other columns explains in rows that it has
    not seen, mean of both halves. For numeric features this is R squared; for others it is 1 less the share of rows
    in which the forest is wrong, over that in which the most frequent level of its training half is. 0 is
    independence, as far as a forest can see; below 0 it is worse than no forest. 1 is a feature that is wholly told by
    the others. Since each forest has half of the rows only, all of the rows would show somewhat more.

    `matrix` divides that share among the columns, in proportion to how much of it is lost when a column is shuffled
    among the held-out rows (a thousand of them, if there are more). Of two columns that tell the same, each has a part,
    and neither is needed.

    `sampler` in `table` follows the paper: below `threshold`, marginal methods do. Above it, subgroups, or imputation
    if a feature depends on many columns at once: if more than three are needed to make up 90 % of its row of `matrix`.
    Three is what a tree of depth 2 can ask for.

    `std_error` is of the mean over halves, as if these were independent of each other. It covers which rows came in
    which half, not what other rows would give.

    Forests try the root of the number of columns at each split; nodes of at most five rows (numeric features) or of
    one are not split. A nominal column is one column for the forest, its levels in the order of what they go with in
    the training half; levels that the training half lacks count as missing. Missing values go to the side of a split
    where they do best. Rows without a value of a feature are left out where it is foretold. A feature with one value,
    with values in fewer than 10 rows, or with more than 100 levels has no `explained` (NaN); `note` says why.

    Examples
    --------
    >>> import subgrove as sg
    >>> train, test = sg.datasets.bike(split=0.7, random_state=1)
    >>> found = sg.dependence(train.X, features=["temp", "work", "wind"], n_trees=100, random_state=1)
    >>> found.table[["feature", "explained", "predictors", "sampler"]].round(2)
      feature  explained                             predictors    sampler
    0    temp       0.66                           season (0.62)  subgroups
    1    work       1.00          weekday (0.88), holiday (0.12)  subgroups
    2    wind       0.08  hum (0.04), season (0.02), temp (0.01)   marginal
    >>> for sentence in found.advice:
    ...     print(sentence)
    work: 100% foretold by weekday, holiday. Given these it can hardly vary: expect a conditional importance near 0.
    temp: 66% foretold by season. Use subgroups.
    """
    start = read_seed(random_state)
    settings = DependenceForests(
        whole_number("n_trees", n_trees, least=1), whole_number("n_repeats", n_repeats, least=1), n_jobs
    )
    effective_jobs(n_jobs)  # refuses what is no number of jobs
    least = number_in("threshold", threshold, low=0.0, high=1.0)
    table = read_table(X, kinds=kinds, lenient=True)
    names = _names(features, table.names)
    if table.n_rows < LEAST_ROWS:
        raise InputError(
            f"X has {table.n_rows} rows; each half must have rows to learn from and rows to judge by. "
            f"Pass at least {LEAST_ROWS}."
        )
    found = []
    with progress_bar(progress, len(names), "Growing forests") as done:
        for name in names:
            found.append(feature_dependence(table, name, settings, Streams(start, name, settings.n_repeats)))
            done(1)
    told = {"n_trees": settings.n_trees, "n_repeats": settings.n_repeats, "random_state": start}
    return Dependence(tuple(found), table.names, least, told, backend_of(X))


def _names(features: Any, columns: tuple[str, ...]) -> list[str]:
    if len(columns) < 2:
        raise InputError(f"X has one column, {quote(columns)}, and nothing to foretell it from. Pass at least two.")
    asked = parse_features(features, columns)
    groups = [members for members in asked if len(members) > 1]
    if groups:
        raise ParameterError(
            f"features has the group {quote(groups[0])}; a forest foretells one column. Name columns one by one."
        )
    return [name for (name,) in asked]
