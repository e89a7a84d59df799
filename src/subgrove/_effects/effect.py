"""The verb: the effect of a feature on the prediction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from subgrove._effects.in_memory import EffectSpec, effect_in_memory
from subgrove._effects.result import Effect
from subgrove._scale import as_large, is_large
from subgrove._subgroups import Partition, Subgroups

Kind = Literal["pdp", "ice", "ale", "mplot"]


def effect(
    model: Any,
    X: Any,
    feature: str | Sequence[str],
    *,
    kind: Kind = "pdp",
    subgroups: Subgroups | Partition | None = None,
    interactions: bool | int = False,
    grid: Any = None,
    grid_resolution: int = 20,
    output: Any = None,
    response_method: str | None = None,
    sample_weight: Any = None,
    n_jobs: int | None = None,
    memory: float = 512,
) -> Effect:
    """Curves of the prediction against a feature: one for all rows, or one in each subgroup.

    Parameters
    ----------
    model : object with predict or predict_proba, or function
        A fitted model, or a function from a table like X to one number (or one line of numbers) for each row.
    X : pandas or polars frame, pyarrow table or 2-d array; or LargeData
        Rows to take means over, best those that the model was not trained on; columns of an array are called x0, x1,
        and so on. It is not changed. `LargeData` need not fit in memory; a bare path to Parquet, a pyarrow Dataset, a
        polars LazyFrame or a Dask DataFrame stands for `LargeData` with its defaults. The model is then given the
        columns that it was fitted on (`feature_names_in_`), else those of `subgroups`, else all.
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
        Where curves have points. By default `grid_resolution` equal steps from the least to the greatest value, and
        every
        level of a feature that has levels. Points of whole numbers are whole: each of the values, if there are no more
        than `grid_resolution`, else those next to the steps. "quantiles" takes quantiles instead of equal steps. Of
        "ale"
        these are the borders of intervals (`grid_resolution + 1` quantiles by default), of "mplot" the points that
        rows are
        counted to (by default the means in `grid_resolution` intervals between quantiles; rows of levels that are not
        listed are left out). For two features a mapping from feature to its values. A level must be one that some row
        of X has.
    grid_resolution : int, default 20
        Number of points, or of intervals, of a numeric feature.
    output : label or int, optional
        The output to explain: a class, or the number of an output. By default the second of two classes, and every
        class or output if there are more.
    response_method : {"predict", "predict_proba", "decision_function"}, optional
        What the model is asked for: by default probabilities if it gives them, else what `predict` gives.
    weights : 1-d array, optional
        How often each row counts. Rows of weight 0 are left out. Of data in partitions the name of a column.
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
    subgroups lie on one lattice then, so that curves can be compared; that asks for no more rows than
    `grid_resolution` points
    in each would.

    Data in partitions are asked for as often, and for the predictions at levels of the sampled rows, from which their
    box statistics come. Levels that no sampled row has get no points, with a warning.

    Rows in which the feature is missing are given values like all others by "pdp" and "ice"; "ale", "mplot" and the
    box statistics leave them out. Where an "ale" interval has a single row, its spread is taken to be that of the
    others. Moments with a time zone are shown in it; a date in `grid` that has none is read as UTC.

    Examples
    --------
    >>> import subgrove as sg
    >>> train, test = sg.datasets.bike(split=0.7, random_state=1)
    >>> groups = sg.find_subgroups(train.X, features="temp", max_depth=1)
    >>> def model(X):
    ...     return 100 * X["temp"] - 2 * X["hum"]
    >>> found = sg.effect(model, test.X, "temp", subgroups=groups, grid_resolution=3)
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
    >>> found = sg.effect(model, test.X, "temp", subgroups=groups, interactions=True, grid_resolution=3)
    >>> found.support[["rule", "reason", "n"]]
                                                    rule       reason    n
    0  season in {WINTER, SPRING, FALL} and hum <= 69...  interaction  111
    1  season in {WINTER, SPRING, FALL} and hum > 69.708  interaction   56
    2               season in {SUMMER} and hum <= 69.125  interaction   32
    3                season in {SUMMER} and hum > 69.125  interaction   20
    >>> print(found.heterogeneity.sentence)
    temp: of the disagreement of curves, 0% by splits of dependence, 99% by 2 of interaction on hum; 1% is left.

    From a file, piece by piece:

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     test.X.to_parquet(f"{folder}/rows.parquet")
    ...     found = sg.effect(model, sg.LargeData(f"{folder}/rows.parquet", chunk_rows=50), "temp", grid_resolution=3)
    >>> found.curves["n"].tolist(), found.sampled
    ([219, 219, 219], (219, 219))
    """
    asked = EffectSpec(
        feature, kind, subgroups, interactions, grid, grid_resolution, output, response_method, n_jobs, memory
    )
    if not is_large(X):
        return effect_in_memory(model, X, sample_weight, asked)
    from subgrove._effects.chunked import effect_of_partitions

    return effect_of_partitions(model, as_large(X), sample_weight, asked)
