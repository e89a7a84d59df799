"""`relative_importance`: what a feature costs as the columns that it is conditional on become more."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from subgrove._core.random import read_seed
from subgrove._core.text import quote
from subgrove._data.features import parse_features
from subgrove._data.result_tables import backend_of
from subgrove._data.table import read_table
from subgrove._importance.gap.order import Block, block_title, by_dependence, in_blocks
from subgrove._importance.importance import importance
from subgrove._importance.relative_result import RelativeImportance
from subgrove.exceptions import ParameterError
from subgrove.samplers.base import Feature, title
from subgrove.samplers.conditioning import takes_given
from subgrove.samplers.fit import training_rows


def relative_importance(
    model: Any,
    X: Any,
    y: Any,
    feature: Any,
    *,
    order: Any = None,
    sampler: Any = "auto",
    train: Any = None,
    loss: Any = None,
    n_repeats: int = 10,
    sample_weight: Any = None,
    response_method: str | None = None,
    random_state: int | None = None,
) -> RelativeImportance:
    """Importance of a feature, conditional on more and more columns: from none (marginal) to all (conditional).

    Parameters
    ----------
    model, X, y : object, table, column
        As for `importance`.
    feature : str or list of str
        A feature, or a group of features that is redrawn together.
    order : list, optional
        Which columns are added, one after the other; a list among them is added at once. Columns that are not named
        come together at the end. If not given, the five that the feature depends on most, the strongest first, then
        the others together.
    sampler, train, loss, n_repeats, weights, response, seed : optional
        As for `importance`. The sampler is fitted for each step anew; one that cannot be told which columns to
        condition on has two steps, none and all.

    Returns
    -------
    RelativeImportance
        `.table` with a row for each step.

    Notes
    -----
    The model is asked for what one call of `importance` for each step asks. Steps are of the same rows and the same
    seed, and the noise of a change from step to step is that of the paired differences.

    How much a feature depends on a column is what the root of its transformation tree tests, on the training rows
    (without `train` on X; it only decides the order).

    Examples
    --------
    >>> import subgrove as sg
    >>> train, test = sg.datasets.bike(split=0.7, random_state=1)
    >>> def model(X):
    ...     return 2000 + 100 * X["temp"]
    >>> found = sg.relative_importance(
    ...     model, test.X, test.y, "temp", order=["season", "hum"], train=train.X,
    ...     sampler="subgroups", loss="absolute_error", random_state=1,
    ... )
    >>> found.table[["step", "added", "estimate", "change"]].round(1)
       step                added  estimate  change
    0     0                          439.9     0.0
    1     1               season     164.4  -275.5
    2     2                  hum     157.4    -7.0
    3     3  the other 6 columns     157.4     0.0
    """
    start = read_seed(random_state)
    table = read_table(X, lenient=True)
    members = _one_feature(feature, table.names)
    others = tuple(name for name in table.names if name not in members)
    if order is not None:
        blocks, named = _in_order(order, members, others)
    elif takes_given(sampler):
        rows = X if train is None else training_rows(train)
        blocks, named = in_blocks(by_dependence(rows, members, others)), 0
    else:
        blocks, named = ((others,) if others else ()), 0
    asked = members[0] if len(members) == 1 else list(members)
    sets: list[tuple[str, ...]] = [()]
    for block in blocks:
        sets.append((*sets[-1], *block))
    results = tuple(
        importance(
            model,
            X,
            y,
            sampler=sampler,
            train=train,
            features=[asked],
            given=list(given),
            loss=loss,
            n_repeats=n_repeats,
            sample_weight=sample_weight,
            response_method=response_method,
            random_state=start,
            progress=False,
        )._computed_from(None)
        for given in sets
    )
    added = ("", *(block_title(block, others=place >= named) for place, block in enumerate(blocks)))
    return RelativeImportance(title(members), added, tuple(sets), results, backend_of(X))


def _one_feature(feature: Any, columns: Sequence[str]) -> Feature:
    if feature is None:
        raise ParameterError("feature must be the name of a column, or a list of names for a group; got None.")
    asked = parse_features([feature], columns)
    return asked[0]


def _in_order(order: Any, feature: Feature, others: Sequence[str]) -> tuple[tuple[Block, ...], int]:
    """What each step adds, and how many of the steps were named."""
    if isinstance(order, str) or not isinstance(order, Iterable):
        order = [order]
    # Labels of pandas columns may be numbers; as names they are text.
    plain = [each for each in order if isinstance(each, str) or not isinstance(each, Iterable)]
    blocks = tuple((str(each),) if each in plain else tuple(map(str, each)) for each in order)
    names = [name for block in blocks for name in block]
    own = [name for name in names if name in feature]
    if own:
        raise ParameterError(
            f"order names {quote(own)}, which is redrawn itself: a feature cannot be conditional on itself."
        )
    unknown = [name for name in names if name not in others]
    if unknown:
        raise ParameterError(f"order names {quote(unknown)}, but the other columns are {quote(others)}.")
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if twice:
        raise ParameterError(f"order names {quote(twice)} more than once. Each column is added once.")
    rest = tuple(name for name in others if name not in names)
    return (*blocks, rest) if rest else blocks, len(blocks)
