"""The verb: the effect of a feature on the prediction."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from subgrove._containers import names_and_rows, plain_columns, quote
from subgrove._effects.ale import accumulated
from subgrove._effects.asking import Asker, batch_rows
from subgrove._effects.curves import Curve, Plan, conditional_mean, ice_curves, partial_dependence
from subgrove._effects.grid import Wanted, read_grid, read_values
from subgrove._effects.highlight import opacity_of
from subgrove._effects.interactions import DEPTH, one_subgroup, sort_further
from subgrove._effects.lattice import shared_points
from subgrove._effects.outputs import Outputs, model_for_effect
from subgrove._effects.parts import Part, Source
from subgrove._effects.result import Effect
from subgrove._effects.support import support_of
from subgrove._effects.tables import Group
from subgrove._fingerprint import fingerprint
from subgrove._kinds import ColumnInfo
from subgrove._result_tables import backend_of
from subgrove._subgroups import Partition, Subgroups
from subgrove._table import read_like, read_weights
from subgrove.exceptions import ColumnError, InputError, ParameterError, SameRowsWarning
from subgrove.trees.conditions import ALL_ROWS
from subgrove.trees.parameters import whole_number
from subgrove.trees.training import refuse_another_index

Kind = Literal["pdp", "ice", "ale", "mplot"]
KINDS: dict[str, Callable[[Part, Sequence[Wanted], int], Plan | None]] = {
    "pdp": partial_dependence,
    "ice": ice_curves,
    "ale": accumulated,
    "mplot": conditional_mean,
}


def effect(
    model: Any,
    X: Any,
    feature: str | Sequence[str],
    *,
    kind: Kind = "pdp",
    subgroups: Subgroups | Partition | None = None,
    interactions: bool | int = False,
    grid: Any = None,
    n_points: int = 20,
    output: Any = None,
    response: str | None = None,
    weights: Any = None,
    n_jobs: int | None = None,
    memory: float = 512,
) -> Effect:
    """Curves of the prediction against a feature: one for all rows, or one in each subgroup.

    Parameters
    ----------
    model : object with predict or predict_proba, or function
        A fitted model, or a function from a table like X to one number (or one line of numbers) for each row.
    X : pandas or polars frame, pyarrow table or 2-d array
        Rows to take means over, best those that the model was not trained on; columns of an array are called x0, x1,
        and so on. It is not changed.
    feature : str, or pair of str
        The feature; two of them give a surface (kind "pdp").
    kind : {"pdp", "ice", "ale", "mplot"}, default "pdp"
        - "pdp", partial dependence: the mean prediction if all rows had this value. With subgroups these are the
          cs-PDPs of the paper.
        - "ice": the same for each row on its own, and the mean.
        - "ale", accumulated local effects: differences of predictions over small steps of the feature, for rows that
          are near, added up; the curve has mean 0. Levels of a nominal feature are ordered so that those stand side
          by side whose rows are alike in the other columns; an ordered one keeps its order.
        - "mplot": the mean prediction of the rows that have about this value. See the warning below.
    subgroups : Subgroups or Partition, optional
        What `find_subgroups` returned, or its part for this feature. Each subgroup has a curve, over its own rows and
        their own range of the feature. A subgroup with fewer than two rows has none, and is listed in `support`.
        Those that were grown on the rows of X are used with a warning.
    interactions : bool or int, default False
        Whether subgroups, or all rows if there are none, are split further where the curves of single rows still
        disagree in shape, since the feature interacts with another column: True for at most 2 further conditions in a
        rule, or how many. For one feature and the kinds "pdp" and "ice". `reason` in the tables says why a group was
        made, `heterogeneity` what each split explains.
    grid : "quantiles", list of values, or mapping, optional
        Where curves have points. By default `n_points` equal steps from the least to the greatest value, and every
        level of a feature that has levels. Points of whole numbers are whole: each of the values, if there are no more
        than `n_points`, else those next to the steps. "quantiles" takes quantiles instead of equal steps. Of "ale"
        these are the borders of intervals (`n_points + 1` quantiles by default), of "mplot" the points that rows are
        counted to (by default the means in `n_points` intervals between quantiles; rows of levels that are not
        listed are left out). For two features a mapping from feature to its values. A level must be one that some row
        of X has.
    n_points : int, default 20
        Number of points, or of intervals, of a numeric feature.
    output : label or int, optional
        The output to explain: a class, or the number of an output. By default the second of two classes, and every
        class or output if there are more.
    response : {"predict", "predict_proba", "decision_function"}, optional
        What the model is asked for: by default probabilities if it gives them, else what `predict` gives.
    weights : 1-d array, optional
        How often each row counts. Rows of weight 0 are left out.
    n_jobs : int, optional
        Number of jobs that ask at once, as joblib counts them. The numbers are the same for any.
    memory : float, default 512
        MiB that the tables given to the model may take.

    Returns
    -------
    Effect
        Tables `curves`, `support`, `outliers` and `ice`; `predict` reads the curves at other values.

    Notes
    -----
    How to read it: outside the range in which rows are found, the model extrapolates, and a marginal "pdp" averages
    that in when features depend on each other. Within subgroups they hardly do. The change of height from one
    subgroup to the next is due to the columns in the rules, the slope within a subgroup to the feature.

    Warning: "mplot" mixes the effects of all features that depend on this one. A feature that the model does not use
    at all, but that is correlated with one that it uses, has a curve that is not flat.

    The model is asked, in batches of at most 100,000 rows, for n rows at each point ("pdp" and "ice": n times the
    number of points, in subgroups added up over their own rows and points), for 2 n rows ("ale"; of a
    feature with levels 3 n, less the rows of the first and of the last level), or for n rows ("mplot"). Reading the
    result asks for none.

    Interaction splits use curves that were asked for anyway, so they ask for no more. A split leaves at least 20 rows
    on each side, explains at least 5 % of how far all curves disagree, and more than the best split explains when
    curves are dealt to rows at random (level 0.05 for all subgroups together). Groups were chosen by these rows'
    curves, which intervals do not cover. Their curves have the points of the subgroup that was split. Points of all
    subgroups lie on one lattice then, so that curves can be compared; that asks for no more rows than `n_points` points
    in each would.

    Rows in which the feature is missing are given values like all others by "pdp" and "ice"; "ale", "mplot" and the
    box statistics leave them out. Where an "ale" interval has a single row, its spread is taken to be that of the
    others. Moments with a time zone are shown in it; a date in `grid` that has none is read as UTC.

    Examples
    --------
    >>> import subgrove as sg
    >>> train, test = sg.datasets.bike(split=0.7, seed=1)
    >>> groups = sg.find_subgroups(train.X, features="temp", max_depth=1)
    >>> def model(X):
    ...     return 100 * X["temp"] - 2 * X["hum"]
    >>> found = sg.effect(model, test.X, "temp", subgroups=groups, n_points=3)
    >>> found.curves[["rule", "x", "estimate", "n"]].round(1)
                                   rule     x  estimate    n
    0  season in {WINTER, SPRING, FALL}  -0.2    -146.4  167
    1  season in {WINTER, SPRING, FALL}  14.3    1303.6  167
    2  season in {WINTER, SPRING, FALL}  28.8    2753.6  167
    3                season in {SUMMER}  14.1    1280.7   52
    4                season in {SUMMER}  23.3    2200.7   52
    5                season in {SUMMER}  32.5    3120.7   52
    >>> found.support[["rule", "n", "q1", "median", "q3"]]
                                   rule    n     q1  median     q3
    0  season in {WINTER, SPRING, FALL}  167   6.90    10.6  16.65
    1                season in {SUMMER}   52  22.65    25.4  27.05

    In which rows is the slope another one?

    >>> def model(X):
    ...     return 100 * X["temp"] * (X["hum"] < 70) - 2 * X["hum"]
    >>> found = sg.effect(model, test.X, "temp", subgroups=groups, interactions=True, n_points=3)
    >>> found.support[["rule", "reason", "n"]]
                                                    rule       reason    n
    0  season in {WINTER, SPRING, FALL} and hum <= 69...  interaction  111
    1  season in {WINTER, SPRING, FALL} and hum > 69.708  interaction   56
    2               season in {SUMMER} and hum <= 69.125  interaction   32
    3                season in {SUMMER} and hum > 69.125  interaction   20
    >>> print(found.heterogeneity.sentence)
    temp: of the disagreement of curves, 0% by splits of dependence, 99% by 2 of interaction on hum; 1% is left.
    """
    source = _read(X, feature, kind, subgroups, weights)
    depth = _checked_interactions(interactions, kind, source)
    wanted = _read_grids(grid, source)
    steps = _checked_points(n_points)
    asked = model_for_effect(model, response)
    asker = Asker(asked, Outputs.of(asked, output), batch_rows(memory, len(source.frames.names)), n_jobs)
    partition = _partition(subgroups, source.infos)
    _warn_of_same_rows(X, subgroups)
    if depth and partition is None:
        partition = one_subgroup(source.X, source.infos[0])
    parts = _parts(source, partition)
    enough, way = [part for part in parts if _enough(part, partition)], ice_curves if depth else KINDS[kind]
    points = [[own] for own in shared_points(enough, wanted[0], steps)] if depth else [wanted] * len(enough)
    plans = [plan for part, own in zip(enough, points, strict=True) if (plan := way(part, own, steps))]
    if not plans and subgroups is None:
        raise InputError(f"No row of X has a value of {source.infos[0].name!r} within grid. Choose other values.")
    curves = _carried_out(asker, plans)
    told, reasons = None, ("",) * len(parts)
    if depth and partition is not None:
        found = sort_further(partition, source.X, [part.rows for part in parts], curves, depth, source.counted)
        partition, told, reasons = found.partition, found.heterogeneity, found.reasons
        curves = found.curves if kind == "ice" else [replace(curve, ice=None) for curve in found.curves]
        parts = [Part(source, k, rule, found.rows[k]) for k, rule in enumerate(partition.rules)]
        if subgroups is None and len(partition) == 1:
            partition = None  # nothing was split
    if kind == "ice" and partition is not None and subgroups is not None:
        curves = [_highlighted(curve, partition) for curve in curves]
    names = tuple(info.name for info in source.infos)
    title = names[0] if len(names) == 1 else (names[0], names[1])
    groups = tuple(_group(part, reason) for part, reason in zip(parts, reasons, strict=True))
    counts, lines = (asked.n_rows, asked.n_calls), tuple(curves)
    return Effect(title, kind, asker.labels, *counts, partition, source.infos, groups, lines, backend_of(X), told)


def _read(X: Any, feature: Any, kind: Any, subgroups: Any, weights: Any) -> Source:
    """The table and the feature in it, checked."""
    if kind not in KINDS:
        raise ParameterError(f"kind must be one of {quote(KINDS)}; got {kind!r}.")
    names = _names(feature)
    if len(names) > 1 and kind != "pdp":
        raise ParameterError(f"Only kind='pdp' takes two features; kind is {kind!r}. Name one feature.")
    columns = plain_columns(X, "X", only=names)
    present, n_rows = names_and_rows(X)
    unknown = [name for name in names if name not in columns]
    if unknown:
        listed = quote(present[:30]) + (" ..." if len(present) > 30 else "")
        raise ParameterError(f"feature names {quote(unknown)}, which X does not have. Its columns: {listed}.")
    if not n_rows:
        raise InputError("X has no rows; an effect is a mean over rows. Pass at least one.")
    known = subgroups.columns if isinstance(subgroups, Subgroups) else ()
    if isinstance(subgroups, Partition):
        known = (subgroups.tree.target,)
    kinds = {column.name: column.kind for column in known}
    read = [read_values(columns[name], name, kinds.get(name)) for name in names]
    refuse_another_index(X, weights=weights)
    infos, x = zip(*read, strict=True)
    return Source(X, infos, x, read_weights(weights, n_rows))


def _checked_interactions(interactions: Any, kind: str, source: Source) -> int:
    """How many interaction splits there may be above a group."""
    if isinstance(interactions, bool | np.bool_):
        depth = DEPTH if interactions else 0
    else:
        depth = whole_number("interactions", interactions, least=0)
    if depth and (kind not in ("pdp", "ice") or len(source.infos) > 1):
        what = f"kind is {kind!r}" if len(source.infos) == 1 else "there are two"
        raise ParameterError(
            f"interactions needs curves of single rows for one feature; {what}. Use kind='pdp' or 'ice', and name one."
        )
    return depth


def _names(feature: Any) -> tuple[str, ...]:
    if isinstance(feature, str | int | np.integer) and not isinstance(feature, bool):
        return (str(feature),)
    if isinstance(feature, list | tuple) and 1 <= len(feature) <= 2 and len(set(map(str, feature))) == len(feature):
        return tuple(map(str, feature))
    raise ParameterError(f"feature must be a column name, or a pair of different ones; got {feature!r}.")


def _read_grids(grid: Any, source: Source) -> list[Wanted]:
    names = [info.name for info in source.infos]
    if len(names) > 1 and grid is not None and not isinstance(grid, str | Mapping):
        raise ParameterError("grid must be a mapping from feature to values where there are two features.")
    by_name = grid if isinstance(grid, Mapping) else dict.fromkeys(names, grid)
    unknown = [str(name) for name in by_name if name not in names]
    if unknown:
        raise ParameterError(f"grid names {quote(unknown)}, which is not the feature.")
    return [read_grid(by_name.get(info.name), info, x) for info, x in zip(source.infos, source.x, strict=True)]


def _checked_points(n_points: Any) -> int:
    if isinstance(n_points, bool) or not isinstance(n_points, int | np.integer) or n_points < 2:
        raise ParameterError(f"n_points must be a whole number >= 2; got {n_points!r}.")
    return int(n_points)


def _partition(subgroups: Any, infos: Sequence[ColumnInfo]) -> Partition | None:
    """The subgroups of the feature."""
    names = {info.name for info in infos}
    if subgroups is None:
        return None
    if isinstance(subgroups, Partition):
        found = subgroups if set(subgroups.members) == names else None
        there: Sequence[str] = (subgroups.feature,)
    elif isinstance(subgroups, Subgroups):
        found = next((each for each in subgroups.values() if set(each.members) == names), None)
        there = list(subgroups)
    else:
        raise ParameterError(
            f"subgroups must be what find_subgroups returned, or its part for the feature; "
            f"got {type(subgroups).__name__}."
        )
    if found is None:
        title = " + ".join(info.name for info in infos)
        raise ParameterError(
            f"subgroups has none of {title!r}; it has those of {quote(there)}. "
            f"Name it in find_subgroups(..., features=[...])."
        )
    return found


def _warn_of_same_rows(X: Any, subgroups: Any) -> None:
    """Say that trees have seen these rows. A partition on its own does not know its training rows."""
    if not isinstance(subgroups, Subgroups) or not {each.name for each in subgroups.columns} <= {*names_and_rows(X)[0]}:
        return
    try:
        mark = fingerprint(read_like(X, subgroups.columns))
    except ColumnError:  # a column that is of another kind now, which is not the same table
        return
    if mark == subgroups.fingerprint:
        warnings.warn(
            "The subgroups were grown on the same rows as they are now used on. Grow them on training rows: "
            "find_subgroups(train).",
            SameRowsWarning,
            stacklevel=3,
        )


def _parts(source: Source, partition: Partition | None) -> list[Part]:
    """Rows of each subgroup."""
    counted = np.ones(source.frames.n_rows, dtype=np.bool_) if source.weights is None else source.weights > 0
    if partition is None:
        return [Part(source, 0, ALL_ROWS, np.flatnonzero(counted))]
    code = partition.assign(source.X)
    return [Part(source, k, rule, np.flatnonzero(counted & (code == k))) for k, rule in enumerate(partition.rules)]


def _enough(part: Part, partition: Partition | None) -> bool:
    """Whether a curve is drawn: a subgroup of one row has none, and neither have rows without any value."""
    if not len(part.rows) or any(np.isnan(x).all() for x in part.x):
        return False
    return partition is None or len(part.rows) > 1 or part.n >= 2


def _carried_out(asker: Asker, plans: Sequence[Plan]) -> list[Curve]:
    kept = iter(asker.run([work for plan in plans for work in plan.works]))
    return [plan.finish([next(kept) for _ in plan.works]) for plan in plans]


def _highlighted(curve: Curve, partition: Partition) -> Curve:
    leaf = partition.tree.leaves[curve.subgroup]
    return replace(curve, opacity=opacity_of(partition.tree, leaf, curve.axes[0]))


def _group(part: Part, reason: str) -> Group:
    supports = zip(part.source.infos, part.x, strict=True)
    return Group(part.rule, part.n, tuple(support_of(info, x, part.weights) for info, x in supports), reason)
