"""`effect`: curves of the prediction against a feature."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any, Literal

from subgrove._core.text import quote
from subgrove._core.validate import names_arguments, warn
from subgrove._data.columns import as_list
from subgrove._data.from_containers import names_and_rows
from subgrove._data.table import fingerprint, read_like, read_once
from subgrove._data.to_containers import backend_of
from subgrove._effects.curves import Curve
from subgrove._effects.interactions import split_further
from subgrove._effects.plan import EffectPlan, EffectSpec, curves_together
from subgrove._effects.result import Effect
from subgrove._effects.subgroup_rows import EffectGroup, SubgroupRows, opacity_of
from subgrove._scale import as_large, is_large
from subgrove._subgroups import Partition, Subgroups
from subgrove.exceptions import ColumnError, ParameterError, SameRowsWarning

Kind = Literal["pdp", "ice", "ale", "mplot"]


@names_arguments()
def effect(
    model: Any,
    X: Any,
    feature: str | Sequence[str],
    *,
    kind: Kind = "pdp",
    subgroups: Subgroups | Partition | Literal["auto"] | None = "auto",
    interactions: bool | int = False,
    grid: Any = None,
    grid_resolution: int = 20,
    output: Any = None,
    response_method: str | None = None,
    sample_weight: Any = None,
    n_jobs: int | None = None,
) -> Effect:
    """Compute curves of the prediction against a feature, in subgroups in which it hardly depends on other columns.

    Parameters
    ----------
    model : object with predict or predict_proba, or function
        A fitted model, or a function from a table like X to one number (or several) for each row.
    X : pandas or polars frame, pyarrow table or 2-d array; or LargeData
        Rows to average over, preferably held-out ones; columns of an array are called x0, x1, and so on. It is not
        modified. `LargeData` need not fit in memory; a bare path to Parquet, a pyarrow Dataset, a polars LazyFrame or a
        Dask DataFrame stands for `LargeData` with its defaults. The model then receives the columns that it was fitted
        on (`feature_names_in_`), else those of `subgroups`, else all.
    feature : str, or pair of str
        The feature; two features give a surface (kind "pdp", or "ale" of numeric features).
    kind : {"pdp", "ice", "ale", "mplot"}, default "pdp"
        - "pdp", partial dependence: the mean prediction with the feature set to each value. In subgroups, the default,
          these are the cs-PDPs of the paper; with `subgroups=None` it is the plain PDP.
        - "ice": the same for each single row, and the mean.
        - "ale", accumulated local effects: differences of predictions over small steps of the feature, for rows near
          the step, accumulated; the middles of the steps have mean 0 over the rows. Levels of a nominal feature are
          ordered by the similarity of their rows in the other columns; ordered levels keep their order. Of two
          features, their interaction alone, without standard errors.
        - "mplot": the mean prediction of rows with about the same value. See the warning below.
    subgroups : "auto", Subgroups, Partition or None, default "auto"
        "auto" finds subgroups of the feature on X, with the defaults of `find_subgroups`, for the kinds "pdp" and "ice"
        of one feature; two features and other kinds use all rows, as does None. Or the result of `find_subgroups`, best
        of training rows, or its partition for this feature. Each subgroup has a curve, over its own rows and the range
        of the feature in it. Subgroups with fewer than two rows have none, and are listed in `support`. A result of
        `find_subgroups` on the rows of X is used with a warning.
    interactions : bool or int, default False
        Whether to split subgroups (or all rows) further where ICE curves differ in shape, because the feature interacts
        with another column: True for at most 2 further conditions in a rule, or their number. For one feature and the
        kinds "pdp" and "ice". The column `reason` of the tables contains the reason of the last split, `heterogeneity`
        the share that each split explains.
    grid : {"quantiles", "uniform"}, list of values, or mapping, optional
        Grid points. By default `grid_resolution` points from the smallest to the largest value, half of them where the
        rows are and half over the range, and all levels of a categorical feature. For integers, all values if there are
        at most `grid_resolution`, otherwise those nearest to the points. "quantiles" uses quantiles of the rows,
        "uniform" equal steps over the range ("pdp" and "ice" only). For "ale" these are borders of intervals
        (`grid_resolution + 1` quantiles by default); for "mplot" the points that rows are assigned to (by default the
        means in `grid_resolution` intervals between quantiles; rows with levels that are not listed are excluded). For
        two features, a mapping from feature to values. Levels must occur in X.
    grid_resolution : int, default 20
        Number of points, or of intervals, of a numeric feature.
    output : label or int, optional
        Output to explain: a class, or the number of an output. By default the second of two classes, and all of several
        classes or outputs.
    response_method : {"predict", "predict_proba", "decision_function"}, optional
        Method of the model; by default "predict_proba" for classifiers that have it, otherwise "predict".
    sample_weight : 1-d array or FrequencyWeights, optional
        Relative weights, or frequencies of rows; rows with weight 0 are excluded. For large data, the name of a column.
    n_jobs : int, optional
        Number of parallel jobs, as in joblib. Results do not depend on it.

    Returns
    -------
    Effect
        Tables `curves`, `support`, `outliers` and `ice`; `predict` evaluates the curves at other values.

    Notes
    -----
    How to read it: outside of the observed range, the model extrapolates, and a marginal "pdp" averages over such
    predictions if features are dependent. Within subgroups there is little dependence. Differences in height between
    subgroups are due to the columns in the rules, the slope within a subgroup is due to the feature.

    Warning: "mplot" mixes the effects of all features that depend on this one. A feature that the model does not use,
    but that is correlated with one that it uses, has a curve that is not flat.

    Predictions are made in batches of at most 100,000 rows, fewer if scikit-learn's `working_memory` requires it. The
    number of predicted rows is n at each point for "pdp" and "ice" (in subgroups, the sum over their own rows and
    points), 2 n for "ale" (4 n for two features; 3 n for a categorical feature, minus the rows with the first and the
    last level), and n for "mplot". Ten rows are predicted once more, with a warning if the model then predicts other
    values (of large data, ten of 20 sampled rows). Reading the result makes no predictions. For tree ensembles that can
    be read, from 5,000 predictions on, they come from the trees: the model predicts 256 rows to check them (256 of each
    chunk of large data), and no others; the curves are the same up to rounding.
    `settings["evaluation"]` states which way was used; the environment variable SUBGROVE_TREE_STEPS=0 prevents it.

    Interaction splits use ICE curves that are predicted anyway. A split has at least 20 rows on each side, explains at
    least 5 % of the heterogeneity of all curves, and is significant in a permutation test (level 0.05 for all subgroups
    together). Intervals do not account for the selection of the groups. The curves of groups use the points of their
    subgroup, and all subgroups use points of one common grid, so that curves can be compared; the number of predictions
    is at most that of `grid_resolution` points in each.

    For large data, grids, box statistics, outliers, ICE curves and interactions come from a sample
    (`LargeData.sample_size`), means and counts from all rows. Box statistics at levels need predictions of the sample
    in addition. Levels that no sampled row has get no points, with a warning.

    Rows with a missing value of the feature are included in "pdp" and "ice", and excluded from "ale", "mplot" and the
    box statistics. In an "ale" interval with a single row, the variance is that of the other intervals. Times with a
    time zone are shown in it; a date in `grid` without time zone is in UTC.

    Examples
    --------
    >>> import subgrove as sg
    >>> train, test = sg.datasets.bike(split=0.7, random_state=1)
    >>> groups = sg.find_subgroups(train.X, features="temp", max_depth=1)
    >>> def model(X):
    ...     return 100 * X["temp"] - 2 * X["hum"]
    >>> eff = sg.effect(model, test.X, "temp", subgroups=groups, grid_resolution=3)
    >>> eff.curves[["rule", "x", "estimate", "n"]].round(1)
                                   rule     x  estimate    n
    0  season in {WINTER, SPRING, FALL}  -0.2    -146.4  167
    1  season in {WINTER, SPRING, FALL}  11.9    1065.4  167
    2  season in {WINTER, SPRING, FALL}  28.8    2753.6  167
    3                season in {SUMMER}  14.1    1280.7   52
    4                season in {SUMMER}  24.9    2361.2   52
    5                season in {SUMMER}  32.5    3120.7   52
    >>> eff.support[["rule", "n", "q1", "median", "q3"]]
                                   rule    n     q1  median     q3
    0  season in {WINTER, SPRING, FALL}  167   6.90    10.6  16.65
    1                season in {SUMMER}   52  22.65    25.4  27.05

    Split subgroups further where the slope of the curves differs:

    >>> def model(X):
    ...     return 100 * X["temp"] * (X["hum"] < 70) - 2 * X["hum"]
    >>> eff = sg.effect(model, test.X, "temp", subgroups=groups, interactions=True, grid_resolution=3)
    >>> eff.support[["rule", "reason", "n"]]
                                                    rule       reason    n
    0  season in {WINTER, SPRING, FALL} and hum <= 69...  interaction  111
    1  season in {WINTER, SPRING, FALL} and hum > 69.708  interaction   56
    2               season in {SUMMER} and hum <= 69.125  interaction   32
    3                season in {SUMMER} and hum > 69.125  interaction   20
    >>> print(eff.heterogeneity.sentence)
    temp: heterogeneity explained by dependence splits 0 %, by 2 interaction splits on hum 99 %; unexplained 1 %.

    By default, subgroups are found on X, if the feature depends on other columns:

    >>> [group.rule for group in sg.effect(model, test.X, "temp").groups]
    ['season in {WINTER, FALL}', 'season in {SPRING}', 'season in {SUMMER}']
    >>> sg.effect(model, test.X, "temp", subgroups=None).support["n"].tolist()
    [219]

    Large data, read in chunks:

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     test.X.to_parquet(f"{folder}/rows.parquet")
    ...     eff = sg.effect(model, sg.LargeData(f"{folder}/rows.parquet", chunk_rows=50), "yr")
    >>> eff.curves["n"].tolist(), eff.sampled
    ([219, 219], (219, 219))
    """
    spec = EffectSpec.of(feature, kind, subgroups, interactions, grid, grid_resolution, output, response_method, n_jobs)
    if not is_large(X):
        with read_once(X) if subgroups is not None else nullcontext():  # otherwise only the feature is read
            return effects_in_memory(model, X, sample_weight, [spec.with_subgroups(X, sample_weight)])[0]
    from subgrove._effects.chunked import LargeRows, effect_of_chunks

    large = LargeRows.of(model, as_large(X), spec, sample_weight)
    spec = spec.with_subgroups(large.table, large.weights)
    if spec.kind == "ice" or spec.interaction_depth:  # curves of single rows, which chunks cannot provide
        return replace(effects_in_memory(model, large.table, large.weights, [spec])[0], sampled=large.sampled)
    return effect_of_chunks(model, large, spec)


def effects_in_memory(model: Any, X: Any, sample_weight: Any, specs: Sequence[EffectSpec]) -> list[Effect]:
    """Compute the effects of features of a table in memory; predictions are made for all of them together."""
    plans = [EffectPlan.of(model, spec.read_data(X, sample_weight), spec) for spec in specs]
    _warn_of_same_rows(X, specs[0].subgroups)
    every = curves_together(plans)
    return [_effect(X, *work) for work in zip(specs, plans, every, strict=True)]


def _effect(X: Any, spec: EffectSpec, plan: EffectPlan, curves: list[Curve]) -> Effect:
    """Return the effect of the curves of a plan, with interaction splits if there are any."""
    data, reasons, heterogeneity = plan.data, ("",) * len(plan.rows), None
    if spec.interaction_depth and plan.partition is not None:
        partition, groups, heterogeneity = split_further(
            plan.partition, X, [each.rows for each in plan.rows], curves, spec.interaction_depth, data.row_weights
        )
        numbered = [(at, each.curve) for at, each in enumerate(groups) if each.curve is not None]
        curves = [replace(curve, subgroup=at, ice=curve.ice if spec.kind == "ice" else None) for at, curve in numbered]
        reasons = tuple(each.reason for each in groups)
        rows = [SubgroupRows(data, k, rule, groups[k].rows) for k, rule in enumerate(partition.rules)]
        no_split = spec.subgroups is None and len(partition) == 1
        plan = replace(plan, partition=None if no_split else partition, rows=rows)
    if spec.kind == "ice" and plan.partition is not None and spec.subgroups is not None:
        tree = plan.partition.tree
        curves = [replace(each, opacity=opacity_of(tree, tree.leaves[each.subgroup], each.axes[0])) for each in curves]
    described = [
        EffectGroup(each.rule, each.n, each.supports(), why) for each, why in zip(plan.rows, reasons, strict=True)
    ]
    return plan.effect(spec, described, curves, backend_of(X), heterogeneity=heterogeneity)


def _warn_of_same_rows(X: Any, subgroups: Any) -> None:
    """Warn if the trees were grown on these rows; a partition alone does not know its training rows."""
    if not isinstance(subgroups, Subgroups) or not {each.name for each in subgroups.columns} <= {*names_and_rows(X)[0]}:
        return
    try:
        same = fingerprint(read_like(X, subgroups.columns)) == subgroups.fingerprint
    except ColumnError:  # a column has another type, so it is another table
        return
    if same:
        warn(
            "The subgroups were grown on the rows that they are applied to. Grow them on training rows: "
            "find_subgroups(train).",
            SameRowsWarning,
        )


class Effects(Mapping[str, Effect]):
    """Effects of several features, by feature, as returned by `Effects.compute`.

    Parameters
    ----------
    effects : mapping
        Feature -> its effect.

    Examples
    --------
    >>> import subgrove as sg
    >>> X = sg.datasets.bike().X
    >>> found = sg.Effects.compute(lambda X: 100 * X["temp"] - 2 * X["hum"], X, features=["temp", "hum"])
    >>> list(found), found["hum"].kind
    (['temp', 'hum'], 'pdp')
    """

    def __init__(self, effects: Mapping[str, Effect]) -> None:
        self._effects = dict(effects)

    @classmethod
    def compute(
        cls,
        model: Any,
        X: Any,
        *,
        features: Sequence[str] | None = None,
        kind: Kind = "pdp",
        subgroups: Subgroups | Literal["auto"] | None = "auto",
        interactions: bool | int = False,
        grid_resolution: int = 20,
        output: Any = None,
        response_method: str | None = None,
        sample_weight: Any = None,
        n_jobs: int | None = None,
    ) -> Effects:
        """Compute the curves of several features, as `effect` does for one.

        For tree ensembles, one pass over the trees serves all features, and 256 rows are predicted for all of them
        together (a few more if 256 is not a multiple of the number of features); they are counted in the first effect.
        So are the ten rows that any other model predicts once more.

        Parameters
        ----------
        model : object with predict or predict_proba, or function
            A fitted model, or a function of a table.
        X : pandas or polars frame, pyarrow table or 2-d array
            Rows to average over.
        features : list of str, optional
            The features; all columns by default.
        kind, subgroups, interactions, grid_resolution, output, response_method, sample_weight, n_jobs
            As in `effect`; `subgroups` is "auto", None or a result of `find_subgroups` with all features.

        Returns
        -------
        Effects
            A mapping from feature to `Effect`.
        """
        if is_large(X):
            raise ParameterError("X must be a table in memory. For large data, call effect for each feature.")
        names, _ = names_and_rows(X)
        wanted = [*names] if features is None else [str(name) for name in as_list("features", features)]
        if isinstance(features, str) or not wanted:
            raise ParameterError(f"features must be a list of columns; got {features!r}.")
        if unknown := [name for name in wanted if name not in names]:
            raise ParameterError(f"features has {quote(unknown)}, but X has the columns {quote(names[:30])}.")
        options = output, response_method, n_jobs
        specs = [EffectSpec.of(each, kind, subgroups, interactions, None, grid_resolution, *options) for each in wanted]
        with read_once(X):
            specs = [spec.with_subgroups(X, sample_weight) for spec in specs]
            effects = effects_in_memory(model, X, sample_weight, specs)
        return cls(dict(zip(wanted, effects, strict=True)))

    def __getitem__(self, feature: str) -> Effect:
        return self._effects[feature]

    def __iter__(self) -> Iterator[str]:
        return iter(self._effects)

    def __len__(self) -> int:
        return len(self._effects)

    def __repr__(self) -> str:
        return f"<Effects of {len(self)} feature{'s' * (len(self) != 1)}>"
