"""`importance`: how much the loss grows when a feature is redrawn."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from subgrove._core.parallel import effective_jobs, working_memory
from subgrove._core.random import read_seed
from subgrove._core.validate import reject_another_index, whole_number
from subgrove._data.features import parse_features
from subgrove._data.fingerprint import fingerprint
from subgrove._data.replace_columns import Frames
from subgrove._data.table import read_once, read_table
from subgrove._importance.build_result import make_result, read_counts, reject_weighted_scores
from subgrove._importance.checks import trained_on, warn_of_same_rows, warn_of_singletons
from subgrove._importance.chunked import importance_of_chunks, reject_with_partitions
from subgrove._importance.recompute import ScoringSource, fit_sampler
from subgrove._importance.result import ImportanceResult
from subgrove._models.device import DeviceModel, as_model, on_host
from subgrove._models.predictor import (
    Predictions,
    Predictor,
    default_loss,
    gives_probabilities,
    read_model,
    read_target,
    response_for,
)
from subgrove._scale import as_large, is_large
from subgrove._scoring.adaptive_repeats import AdaptiveRepeats, reject_budget, repeats_used, warn_of_the_bound
from subgrove._scoring.fidelity_check.check import FidelityChecker
from subgrove._scoring.prediction_shifts import predictions_and_residuals
from subgrove._scoring.row_losses import ALL, RowLosses, describe_baseline_row
from subgrove._scoring.score import ScoringContext, score_all
from subgrove.exceptions import ParameterError
from subgrove.losses.get import get_all
from subgrove.samplers.base import title
from subgrove.samplers.chosen import choices_of
from subgrove.samplers.conditioning import read_given
from subgrove.samplers.fit import features_of, sampler_name, training_rows, with_columns

_BATCH_ROWS = 100_000  # rows the model is asked for at once, memory allowing
_LEAST_ROWS = 1_000
_COPIES = 6  # how many times the size of a batch it takes to build and predict it
_KEPT_BYTES = 21  # what a result keeps of each row and feature


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
    response_method: str | None = None,
    check_fidelity: bool = True,
    random_state: int | None = None,
    n_jobs: int | None = None,
    progress: bool | None = None,
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
    train : table or LargeData, optional
        Rows that the sampler is fitted on. Without it the sampler is cross-fitted: the rows of X are halved, and each
        half is resampled by a sampler fitted on the other half. For `LargeData` it is fitted on `sample_size` rows,
        which are left out of the evaluation.
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
        of (y, prediction) that returns one number per row. By default squared error, or log loss for a classifier.
        Several losses share the same predictions.
    n_repeats : int or AdaptiveRepeats, default 10
        Number of resamples of each feature. Repeats of "subgroups" and "marginal" use each donor once for a row before
        any is used again. Where a subgroup has at most `n_repeats` other values, each is predicted once and weighted by
        its probability, which is exact. `AdaptiveRepeats` adds repeats until their Monte-Carlo error is small.
    sample_weight : array or str, optional
        Weight of each row; weight 2 is the same as two equal rows. For `LargeData` the name of a column.
    response_method : str, optional
        Method of the model to call ("predict", "predict_proba", "decision_function"), where the loss does not imply it.
    check_fidelity : bool, default True
        Whether to check for each feature that resampled rows are realistic: columns `auc`, `mmd` and `fidelity` of the
        result. It needs no predictions, and some hundredths of a second per feature.
    random_state : int, RandomState instance or Generator, optional
        Makes results reproducible, independently of `n_jobs` and the order of features.
    n_jobs : int, optional
        Number of processes; None follows `joblib.parallel_config`.
    progress : bool, optional
        Whether to show a progress bar; None shows it in a terminal.

    Returns
    -------
    ImportanceResult
        `.overall`, `.by_subgroup`, `.per_row`, `.repeats`, `.fidelity_checks`, `.choices`, `.explain(feature)`,
        `.compare(other)`, `.explain_gap(marginal, feature)`, `.with_sampler_variance()`, `.save(path)`.

    Notes
    -----
    The model predicts the n baseline rows and, for each feature, at most `n_repeats` times the rows that are sampled,
    plus, for each row with an exact expectation, the number of other values in its subgroup.
    `settings["repeats_used"]` has the number of repeats of each feature with `AdaptiveRepeats`.

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
    check_flag("check_fidelity", check_fidelity)
    if is_large(X):
        adaptive = n_repeats if isinstance(n_repeats, AdaptiveRepeats) else None
        reject_with_partitions(n_repeats=adaptive)
        return importance_of_chunks(
            model,
            as_large(X),
            y,
            sampler=sampler,
            train=train,
            features=features,
            given=given,
            loss=loss,
            n_repeats=n_repeats,
            weights=sample_weight,
            response=response_method,
            check_fidelity=check_fidelity,
            seed=random_state,
            n_jobs=n_jobs,
            progress=progress,
        )
    enough = n_repeats if isinstance(n_repeats, AdaptiveRepeats) else None
    repeats = enough.start if enough is not None else whole_number("n_repeats", n_repeats, least=1)
    memory = working_memory()
    effective_jobs(n_jobs)  # raises if n_jobs is invalid
    start = read_seed(random_state)
    model = as_model(model)
    losses = get_all(default_loss(model) if loss is None else loss)
    if isinstance(model, DeviceModel):
        from subgrove._importance.on_device import ImportanceSpec, goes_on_device, importance_on_device

        if goes_on_device(model, losses, response_method, enough):
            wanted = ImportanceSpec(
                sampler, train, features, given, losses, repeats, sample_weight, check_fidelity, start, progress
            )
            return importance_on_device(model, X, y, wanted)
        X, train, y, sample_weight = *model._host_tables(X, train), on_host(y), on_host(sample_weight)
    needed = response_for(losses, response_method)
    asked = read_model(model, needed)
    table = read_table(X, lenient=True)
    sampler = with_columns(sampler)
    chosen = parse_features(features_of(sampler) if features is None else features, table.names)
    reject_another_index(X, y=y, sample_weight=sample_weight)
    target = read_target(y, table.n_rows, asked.classes, losses, probabilities=gives_probabilities(needed))
    counted = read_counts(sample_weight, table.n_rows)
    scoring = RowLosses(losses, target, gives_probabilities(needed))
    rows, kept = X, None
    if counted is not None and not (counted > 0).all():
        kept = np.flatnonzero(counted > 0)
        rows = Frames(X, table.columns).changed(kept, {})
        table, counted = read_table(rows, lenient=True), counted[kept]
        scoring = replace(scoring, target=target.taken(kept))
    sets = None if given is None else read_given(given, chosen, table.names, named=features is not None)

    with read_once(rows, training_rows(train), table=table):
        fitted, redrawn = fit_sampler(sampler, sets, rows, table, train, chosen, model, start)
        mark = fingerprint(table)
        warn_of_same_rows(fitted, mark, redrawn, train)
    frames = Frames(rows, redrawn.columns, fitted.train)
    batch = _batch_rows(frames, len(chosen), len(losses), memory)
    before = _original(asked, frames, batch)
    scoring = scoring.settled(before)
    reject_weighted_scores(scoring, counted)
    reject_budget(enough, scoring.per_row)
    answers, rest = predictions_and_residuals(before, scoring.target, probabilities=scoring.probabilities)
    question = ScoringContext(
        asked,
        frames,
        redrawn,
        fitted,
        scoring,
        scoring.rows(before, ALL, describe_baseline_row),
        scoring.whole(before, describe_baseline_row),
        counted,
        repeats,
        start,
        batch,
        FidelityChecker.of(frames, table, counted, start) if check_fidelity else None,
        answers,
        enough,
        before,
        _holds_copy(frames, batch, len(chosen), len(losses), memory),
    )
    scores = score_all(question, chosen, n_jobs, progress)
    warn_of_singletons(scores)
    warn_of_the_bound(enough, scores, counted)
    settings = {
        "method": "importance",
        "sampler": sampler_name(sampler),
        "n_repeats": repeats,
        **({} if enough is None else {"adaptive_share": enough.share, "repeats_used": repeats_used(scores)}),
        "random_state": start,
        "trained_on": trained_on(fitted, train),
        "choices": {name: [one.to_dict() for one in made] for name, made in choices_of(fitted).items()},
        "given": None if sets is None else {title(feature): _listed(names) for feature, names in sets.items()},
        "n_rows_predicted": asked.n_rows,
        "n_calls": asked.n_calls,
        "fingerprint": mark,
    }
    result = make_result(
        scores, scoring, (question.baseline, question.whole), counted, settings, X, kept, (answers, rest)
    )
    return result._computed_from(ScoringSource.of(question, chosen, sampler, sets, train, model))


def check_flag(name: str, value: Any) -> None:
    """Raise unless a value is a boolean."""
    if not isinstance(value, bool):
        raise ParameterError(f"{name} must be True or False; got {value!r}.")


def _batch_rows(frames: Frames, n_features: int, n_losses: int, memory: float) -> int:
    """Rows in a batch, so that what is built and what is kept stay within the budget."""
    kept = n_features * n_losses * frames.n_rows * _KEPT_BYTES
    left = max(memory * 2**20 - kept, memory * 2**20 / 8)
    return int(np.clip(left / (_COPIES * 8 * len(frames.names)), _LEAST_ROWS, _BATCH_ROWS))


def _holds_copy(frames: Frames, batch: int, n_features: int, n_losses: int, memory: float) -> bool:
    """Whether a copy of a table that is larger than a batch fits into the budget, beside all else."""
    if not frames.is_matrix or frames.n_rows <= batch:
        return False
    kept = n_features * n_losses * frames.n_rows * _KEPT_BYTES
    needed = 8 * len(frames.names) * (frames.n_rows + _COPIES * batch)
    return memory * 2**20 >= kept + needed


def _original(model: Predictor, frames: Frames, batch: int) -> Predictions:
    """Predictions of the rows as they are; on the way, it is seen whether the model writes to what it is given."""
    parts = []
    for at in range(0, frames.n_rows, batch):
        piece = slice(at, min(at + batch, frames.n_rows))
        table = frames.changed(piece, {})
        parts.append(model.predict(table, piece.stop - piece.start, partial(describe_baseline_row, start=at)))
        model.writes = model.writes or not frames.holds(table, piece)
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _listed(names: tuple[str, ...] | None) -> list[str] | None:
    return None if names is None else list(names)
