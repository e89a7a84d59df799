"""`importance`: how much the loss of a model increases when a feature is resampled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from subgrove._core.execution import RandomStateLike, working_memory
from subgrove._core.kinds import Floats
from subgrove._core.validate import names_arguments
from subgrove._data.replace_columns import Frames
from subgrove._data.to_containers import backend_of
from subgrove._importance.recompute import ScoringSource
from subgrove._importance.result import ImportanceResult
from subgrove._importance.spec import (
    EvaluationRows,
    FittedRows,
    ImportanceSpec,
    fit,
    read_rows,
    reject_weighted_scores,
    validate,
    versions,
    warn_of_singletons,
)
from subgrove._models.device_model import DeviceModel
from subgrove._models.device_table import on_host
from subgrove._models.predictor import gives_probabilities, read_model, response_for
from subgrove._scale import is_large
from subgrove._scoring import row_losses
from subgrove._scoring.adaptive_repeats import AdaptiveRepeats, reject_scores, repeats_used, warn_of_max_repeats
from subgrove._scoring.context import ScoringContext, batch_size, check_repeatable, predict_baseline
from subgrove._scoring.feature_result import FeatureResult
from subgrove._scoring.fidelity_check import FidelityChecker
from subgrove._scoring.score import score_features
from subgrove.samplers.fit import training_rows


@names_arguments()
def importance(
    model: Any,
    X: Any,
    y: Any,
    *,
    train: Any = None,
    features: Any = None,
    given: Any = None,
    sampler: Any = "auto",
    loss: Any = None,
    n_repeats: int | AdaptiveRepeats = 10,
    sample_weight: Any = None,
    groups: Any = None,
    response_method: str | None = None,
    check_fidelity: bool = True,
    random_state: RandomStateLike = None,
    n_jobs: int | None = None,
) -> ImportanceResult:
    """Increase of a model's loss when a feature is resampled (Algorithm 1 of the paper).

    Parameters
    ----------
    model : object or callable
        Fitted model with `predict` or `predict_proba`, or a function of a table. A `torch.nn.Module` or a `DeviceModel`
        is evaluated on its device; X and y may then be tensors, and the result holds no values of single rows.
    X : pandas or polars frame, pyarrow table or 2-d array; or LargeData
        Test rows, as the model takes them. They are not modified. `LargeData` need not fit in memory; a bare path to
        Parquet, a pyarrow Dataset, a polars LazyFrame or a Dask DataFrame stands for `LargeData` with its defaults.
    y : column or array; str
        Target of the test rows; two-dimensional if the model has several outputs. For `LargeData` the name of the
        target column.
    train : table, pair (X, y), Dataset or LargeData, optional
        Rows that the sampler is fitted on, best the training rows of the model; a target is ignored. Without it the
        sampler is cross-fitted: the rows of X are halved, and each half is resampled by a sampler fitted on the other
        half. For `LargeData` it is fitted on `sample_size` rows, which are left out of the evaluation.
    features : list or dict, optional
        Names or positions of columns; a list among them is a group that is resampled together, and a dict has named
        groups. By default the features that `sampler` has subgroups for, else all columns.
    given : list of str or dict, optional
        Columns that features are resampled conditional on, for samplers that support it ("auto", "subgroups", "cart",
        "imputation", your own with an attribute `given`): from none, `[]`, which is the marginal importance, to all
        other columns, which is the default. A dict has the columns of each feature (of a group, by the tuple of its
        names). A feature listed in `features` may not be among its own columns; without `features`, each feature is
        left out of its own columns.
    sampler : str, sampler or Subgroups, default "auto"
        How features are resampled: "auto" (conditional on the other columns, with the sampler that has the best
        held-out score for the feature; see `choices`), "subgroups" (within the subgroups of a transformation tree of
        depth 2), "shifted_subgroups", "cart" (subgroups of CART), "marginal" (permutation importance), "knockoffs",
        "imputation", "intervals", "forest_nodes", "unchanged"; an object of `subgrove.samplers` or your own; or the
        result of `find_subgroups`.
    loss : str, Loss, scorer, callable or a list of them, optional
        A name (see `subgrove.losses.names()`), a scikit-learn scorer or its name ("r2", "roc_auc", ...), or a function
        of (y, prediction) that returns one number per row. By default absolute error; for a classifier log loss, or
        the share of rows misclassified if it has no `predict_proba`; if y has only 0 and 1 and the model is not a
        classifier, squared error. Several losses share the same predictions.
    n_repeats : int or AdaptiveRepeats, default 10
        Number of resamples of each feature. Repeats of "subgroups" and "marginal" use each donor once for a row before
        any is used again. Where a subgroup has at most `n_repeats` other values, each is predicted once and weighted by
        its probability, which is exact. `AdaptiveRepeats` adds repeats until their Monte-Carlo error is small.
    sample_weight : array, str or FrequencyWeights, optional
        Relative weight of each row, as of a survey; their scale does not matter. `FrequencyWeights` are numbers of
        equal rows. For `LargeData` the name of a column.
    groups : column, array or str, optional
        Group of each test row (a person, a school, a month), or the name of a column of X, if rows of a group depend on
        each other. Standard errors and intervals are then cluster-robust, no row receives the value of another row of
        its group, and cross-fitting does not divide groups. Fewer than 10 groups are marked in the column `reliable`.
    response_method : str, optional
        Method of the model to call ("predict", "predict_proba", "decision_function"), where the loss does not imply it.
    check_fidelity : bool, default True
        Whether to check for each feature that resampled rows are realistic: columns `auc`, `mmd` and `fidelity` of the
        result. It needs no predictions, and some hundredths of a second per feature.
    random_state : int, RandomState instance or Generator, optional
        Makes results reproducible, independently of `n_jobs` and the order of features.
    n_jobs : int, optional
        Number of processes; None follows `joblib.parallel_config`.

    Returns
    -------
    ImportanceResult
        `.overall`, `.by_subgroup`, `.per_row`, `.repeats`, `.fidelity_checks`, `.choices`, `.explain(feature)`,
        `.compare(other)`, `.explain_gap(marginal, feature)`, `.with_sampler_variance()`, `.save(path)`.

    Notes
    -----
    The model predicts the n baseline rows and, for each feature, at most `n_repeats` times the rows that are sampled,
    plus, for each row with an exact expectation, the number of other values in its subgroup. Ten of the baseline rows
    are predicted once more, on their own: a model that predicts other values for them then is warned of.
    `settings["repeats_used"]` has the number of repeats of each feature with `AdaptiveRepeats`.

    Of tree models (boosting and forests of scikit-learn, LightGBM, XGBoost and CatBoost) only the baseline rows and 256
    changed rows are predicted: expected losses over all donors are computed from the trees, without Monte-Carlo error,
    and draws are looked up (`docs/tree_models.md`). `settings["evaluation"]` states whether that was possible.

    Duplicates among resampled rows are predicted once: in tables of at least 20,000 / `n_repeats` rows, for a feature
    with few distinct values, or if at most half of the rows are distinct. This assumes that equal rows have equal
    predictions; `settings["n_rows_predicted"]` is the number of rows that were predicted.

    Temporary tables use at most `sklearn.get_config()["working_memory"]` MiB; results do not depend on it.

    `LargeData` is read chunk by chunk by the active engine (`docs/large_data.md`). The sampler takes values from
    training rows, so results do not depend on chunks, engine and number of jobs. The model is given the columns it was
    fitted on (`feature_names_in_`), or else all but y, weights and `row_key`. Sums are stored instead of rows: methods
    that need values of single rows are not available. The model predicts 400 additional rows.

    Examples
    --------
    >>> import subgrove as sg
    >>> train, test = sg.datasets.bike(split=0.7, random_state=1)
    >>> def model(X):
    ...     return 2000 + 100 * X["temp"] + 1000 * (X["yr"] == "2012")
    >>> groups = sg.find_subgroups(train.X, max_depth=2)
    >>> imp = sg.importance(model, test.X, test.y, sampler=groups, loss="absolute_error", n_repeats=20, random_state=1)
    >>> imp.overall.set_index("feature")["estimate"].round()[["temp", "yr", "wind"]].to_dict()
    {'temp': 178.0, 'yr': 274.0, 'wind': 0.0}

    A file that need not fit in memory is passed by its path:

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "bike.parquet"
    >>> sg.datasets.bike().X.assign(cnt=sg.datasets.bike().y).to_parquet(path)
    >>> large = sg.importance(model, path, "cnt", features=["temp", "yr"], loss="absolute_error", random_state=1)
    >>> large.n_rows, large.settings["trained_on"], large.settings["left_out"]
    (366, 'sample', 365)
    """
    spec = validate(
        model=model,
        X=X,
        y=y,
        train=training_rows(train),
        features=features,
        given=given,
        sampler=sampler,
        loss=loss,
        n_repeats=n_repeats,
        sample_weight=sample_weight,
        groups=groups,
        response_method=response_method,
        check_fidelity=check_fidelity,
        random_state=random_state,
        n_jobs=n_jobs,
    )
    if is_large(X):
        from subgrove._importance.chunked import importance_of_chunks

        return importance_of_chunks(spec)
    if isinstance(spec.model, DeviceModel):
        from subgrove._importance.on_device import importance_on_device, runs_on_device

        if runs_on_device(spec):
            return importance_on_device(spec)
        X, host_train = spec.model._host_tables(X, spec.train)
        spec = replace(spec, train=host_train)
        y, sample_weight = on_host(y), on_host(sample_weight)
    response = response_for(spec.losses, response_method)
    predictor = read_model(spec.model, response)
    probabilities = gives_probabilities(response)
    data = read_rows(spec, X, y, sample_weight, predictor.classes, probabilities=probabilities)
    fitted = fit(spec, data)
    context, residuals = _context(spec, data, fitted, predictor, probabilities)
    results = score_features(context, data.features, n_jobs, progress=True)
    if context.tree is None and context.baseline_predictions is not None:
        context.cache["n_rows_again"] = check_repeatable(predictor, context.frames, context.baseline_predictions)
    return _result(spec, data, fitted, context, results, residuals)


def _context(
    spec: ImportanceSpec, data: EvaluationRows, fitted: FittedRows, predictor: Any, probabilities: bool
) -> tuple[ScoringContext, Any]:
    """Predict the baseline rows and compute their losses and residuals."""
    frames = Frames(data.rows, fitted.table.columns, fitted.sampler.train)
    sizes, memory = (len(data.features), len(spec.losses)), working_memory()
    batch_rows = batch_size(frames, *sizes, memory)
    predictions = predict_baseline(predictor, frames, batch_rows)
    losses = row_losses.RowLosses(spec.losses, data.target, probabilities).settled(predictions)
    reject_weighted_scores(losses, data.weights)
    if spec.adaptive is not None:
        reject_scores(losses.per_row)
    sampled = (fitted.sampler, fitted.table, data.weights, spec.seed)
    checker = FidelityChecker.of(frames, data.table, *sampled) if spec.check_fidelity else None
    values, residuals = row_losses.predictions_and_residuals(predictions, data.target, probabilities=probabilities)
    context = ScoringContext(
        predictor=predictor,
        frames=frames,
        table=fitted.table,
        sampler=fitted.sampler,
        losses=losses,
        baseline_losses=losses.rows(predictions, row_losses.ALL, row_losses.describe_baseline_row),
        baseline_scores=losses.whole(predictions, row_losses.describe_baseline_row),
        weights=data.weights,
        n_repeats=spec.n_repeats,
        seed=spec.seed,
        batch_rows=batch_rows,
        fidelity_checker=checker,
        prediction_values=values,
        adaptive=spec.adaptive,
        baseline_predictions=predictions,
    )
    return context, residuals


def _result(
    spec: ImportanceSpec,
    data: EvaluationRows,
    fitted: FittedRows,
    context: ScoringContext,
    results: Any,
    residuals: Any,
) -> ImportanceResult:
    warn_of_singletons(results)
    adaptive = {}
    if spec.adaptive is not None:
        warn_of_max_repeats(spec.adaptive, results, data.weights)
        adaptive = {"adaptive_share": spec.adaptive.share, "repeats_used": repeats_used(results)}
    donors = {"training_donors": True} if any(score.donor_variance is not None for score in results) else {}
    clusters = data.table.clusters
    grouped = {} if clusters is None else {"n_groups": int(clusters.max()) + 1}
    settings = spec.settings(
        {**adaptive, **fitted.settings, **donors, **grouped},
        data.given,
        n_rows_predicted=context.predictor.n_rows,
        n_calls=context.predictor.n_calls,
        n_rows_again=context.cache.get("n_rows_again", 0),
        fingerprint=fitted.fingerprint,
        evaluation=context.cache["evaluation"],
    )
    row_mask = None
    if data.row_numbers is not None:
        row_mask = np.zeros(len(data.X), dtype=np.bool_)
        row_mask[data.row_numbers] = True
    return make_result(
        results,
        context.losses,
        (context.baseline_losses, context.baseline_scores),
        data.weights,
        settings,
        data.X,
        row_mask=row_mask,
        predictions=context.prediction_values,
        residuals=residuals,
        _source=ScoringSource.of(context, spec, data),
    )


def make_result(
    results: Sequence[FeatureResult],
    losses: row_losses.RowLosses,
    baseline: tuple[Floats, Floats],
    weights: Floats | None,
    settings: dict[str, Any],
    X: Any,
    **optional: Any,
) -> ImportanceResult:
    """Return the result of features, of `importance` and of `loco`.

    `baseline` are the losses of the baseline rows, and the scores of all of them together; `optional` are further
    fields of the result.
    """
    rows, scores = baseline
    means = np.where(np.isnan(scores), row_losses.weighted_mean(rows, weights), scores)
    return ImportanceResult(
        tuple(results),
        row_losses.names_of(losses.losses),
        tuple(means.tolist()),
        {**settings, "constant_loss": losses.of_constants(weights), "versions": versions()},
        weights,
        backend_of(X),
        getattr(X, "index", None),
        per_row_losses=tuple(loss.per_row for loss in losses.losses),
        **optional,
    )
