"""`importance`: how much the loss grows when a feature is redrawn."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from subgrove._core.parallel import effective_jobs, parallel_map, progress_bar
from subgrove._core.random import read_seed
from subgrove._core.validate import reject_another_index, whole_number
from subgrove._data.features import parse_features
from subgrove._data.fingerprint import fingerprint
from subgrove._data.replace_columns import Frames
from subgrove._data.table import Table, read_once, read_table
from subgrove._importance.build_result import make_result, read_counts, reject_weighted_scores
from subgrove._importance.checks import trained_on, warn_of_same_rows, warn_of_singletons
from subgrove._importance.chunked import importance_of_chunks, reject_with_partitions
from subgrove._importance.inference.sampler_variance import read_resamples, with_partition_noise
from subgrove._importance.recompute import ScoringSource
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
from subgrove._scale.readers import is_large
from subgrove._scale.readers.options import SAMPLE_SIZE, reject_large_data_options
from subgrove._scoring.adaptive_repeats import read_budget, reject_budget, repeats_used, warn_of_the_bound
from subgrove._scoring.feature_result import FeatureResult
from subgrove._scoring.fidelity_check.check import FidelityChecker
from subgrove._scoring.prediction_shifts import predictions_and_residuals
from subgrove._scoring.row_losses import ALL, RowLosses, describe_baseline_row
from subgrove._scoring.score import ScoringContext, score_features
from subgrove.exceptions import ParameterError
from subgrove.losses import get_all
from subgrove.samplers.base import Feature, FittedSampler, title
from subgrove.samplers.chosen import choices_of
from subgrove.samplers.conditioning import fitted_given, read_given
from subgrove.samplers.fit import features_of, fitted_sampler, sampler_name, training_rows, with_columns

_BATCH_ROWS = 100_000  # rows the model is asked for at once, memory allowing
_LEAST_ROWS = 1_000
_COPIES = 6  # how many times the size of a batch it takes to build and predict it
_KEPT_BYTES = 21  # what a result keeps of each row and feature


def importance(
    model: Any,
    X: Any,
    y: Any,
    *,
    sampler: Any = "auto",
    train: Any = None,
    features: Any = None,
    given: Any = None,
    loss: Any = None,
    n_repeats: int = 10,
    sample_weight: Any = None,
    response_method: str | None = None,
    check_fidelity: bool = True,
    random_state: int | None = None,
    budget: float | None = None,
    max_repeats: int = 1000,
    partition_resamples: int | None = None,
    n_jobs: int | None = None,
    memory: float = 512,
    progress: bool | None = None,
    sample: int = SAMPLE_SIZE,
    row_key: str | None = None,
    checkpoint: str | Path | None = None,
    partition_rows: int | None = None,
) -> ImportanceResult:
    """How much the loss of a model grows when a feature is redrawn (Algorithm 1 of the paper).

    Parameters
    ----------
    model : object or callable
        Anything fitted that has `predict` or `predict_proba`, or a function of a table. A `torch.nn.Module`, or what
        `on_device` returns, is computed on its device; X and y may then be tensors, and results hold no rows.
    X : pandas or polars frame, pyarrow table or 2-d array; or data in partitions
        Test rows, as the model takes them. They are not changed. Data in partitions need not fit in memory: a Parquet
        file, a folder or pattern of them, a pyarrow Dataset, a polars LazyFrame or a Dask DataFrame.
    y : column or array; str
        Target of the test rows; two-dimensional if the model has several outputs. Of data in partitions the name of its
        column.
    sampler : str, sampler or Subgroups, default "auto"
        How features are redrawn: "auto" (conditional on the other columns, by the way that foretells each feature best
        on training rows; `choices` tells which), "subgroups" (within the subgroups of a transformation tree of depth
        2), "shifted_subgroups", "cart" (subgroups of CART), "marginal" (permutation importance), "knockoffs",
        "imputation", "intervals", "forest_nodes", "unchanged"; an object of `subgrove.samplers` or of your own; or what
        `find_subgroups` returned.
    train : table or data in partitions, optional
        Rows that the sampler is fitted on. Without it the sampler is cross-fitted: the rows of X are halved, and each
        half is redrawn by a sampler that was fitted on the other one. Of data in partitions it is fitted on `sample`
        rows, which are then left out.
    features : list, optional
        Names of columns; a list of names among them is a group that is redrawn together. If not given, those that
        `sampler` has subgroups for, or else all columns.
    given : list of str or dict, optional
        The columns that features are redrawn conditional on, for samplers that can be told ("auto", "subgroups",
        "cart", "imputation", yours with an attribute `given`): from none, `[]`, which is the marginal importance, to
        all others, which is the default. A dict has the columns of each feature (or group, by a tuple of its names).
        A feature that you name may not be among its own columns; without `features`, each is left out of its own.
    loss : str, Loss, callable or a list of them, optional
        A name (see `subgrove.losses.names()`), or a function of (y, prediction) that gives one number for each row.
        Squared error if not given, or log loss for a classifier. Several losses cost one pass over the predictions.
    n_repeats : int, default 10
        Number of redraws. Repeats of "subgroups" and "marginal" never use the same donor twice for a row before all
        have been used. Where a subgroup has no more than `n_repeats` other values, each is predicted once with its
        probability, which is exact.
    sample_weight : array or str, optional
        How often each row counts; a row of weight 2 is the same as two equal rows. Of data in partitions the name of
        a column.
    response_method : str, optional
        Which method of the model to call ("predict", "predict_proba", "decision_function"), where the loss leaves it
        open.
    check_fidelity : bool, default True
        Whether to check, feature by feature, that resampled rows are realistic: columns `auc`, `mmd` and `fidelity` of
        the result. The model predicts nothing for it; it takes some hundredths of a second for each feature.
    random_state : int, RandomState instance or Generator, optional
        Makes the numbers the same each time, whatever the number of jobs and the order of features.
    budget : float, optional
        Adds redraws to `n_repeats`, in doublings, until the Monte-Carlo error of a feature is at most this share of its
        error of the test rows. Features that are there are not asked again.
    max_repeats : int, default 1000
        Most redraws of a feature that `budget` may lead to.
    partition_resamples : int, optional
        How often the sampler is fitted again on random halves of `train`, for the noise of the partition:
        `.with_noise("test rows", "Monte Carlo", "sampler")`; 20 is a good number.
    n_jobs : int, optional
        Number of processes; None follows `joblib.parallel_config`.
    memory : float, default 512
        Budget in MiB for what is needed beyond the inputs, apart from the model's own needs.
    progress : bool, optional
        Whether to show a progress bar; None shows it in a terminal.
    sample : int, default 100000
        Of data in partitions: how many rows, drawn at random, the sampler is fitted on; at most half of them.
    row_key : str, optional
        Of data in partitions: a column whose value tells a row from all others. Draws then depend on it, and not on
        the order of rows. It is not given to the model.
    checkpoint : path, optional
        Of data in partitions: a folder that keeps what is done, so that the same call goes on after a failure.
    partition_rows : int, optional
        Of data in partitions: most rows that are held at once; 250,000 by default.

    Returns
    -------
    ImportanceResult
        `.overall`, `.by_subgroup`, `.per_row`, `.repeats`, `.fidelity_checks`, `.choices`, `.explain(feature)`,
        `.compare(other)`, `.explain_gap(marginal, feature)`, `.save(path)`.

    Notes
    -----
    The model is asked for n rows (the rows as they are) and, for each feature, for at most `n_repeats` times the rows
    that are drawn, plus, for each row whose expectation is exact, the number of other values in its subgroup. With
    `budget`, `settings["repeats_used"]` says how many repeats each feature had. Each of the `partition_resamples` asks
    for the same again with `n_repeats` redraws, at most 10.

    It is asked for fewer where redrawn rows repeat each other: in tables of at least 20,000 / `n_repeats` rows, for
    a feature whose values many rows share, or where at most half of the rows are different. Predictions of equal rows
    are taken to be equal then; `settings["n_rows_predicted"]` says how many were asked for.

    Data in partitions are read, a part at a time, by whichever engine is active (`docs/large_data.md`). The sampler
    takes values from training rows, and numbers are the same for any partitions, engine and number of jobs. The model
    is given the columns that it was trained on (`feature_names_in_`), or else all but y, weights and `row_key`. Sums
    are kept, not rows: `.per_row`, `.test`, `.compare` and `.gap` are not there. The model is asked for 400 rows more.

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

    Data that need not fit in memory are named, not read beforehand:

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "bike.parquet"
    >>> sg.datasets.bike().X.assign(cnt=sg.datasets.bike().y).to_parquet(path)
    >>> large = sg.importance(model, path, "cnt", features=["temp", "yr"], loss="absolute_error", random_state=1)
    >>> large.n_rows, large.settings["trained_on"], large.settings["left_out"]
    (366, 'sample', 365)
    """
    if is_large(X):
        reject_with_partitions(budget=budget, partition_resamples=partition_resamples)
        _reject_no_memory(memory)
        _reject_strange_certify(check_fidelity)
        return importance_of_chunks(
            model,
            X,
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
            memory=memory,
            progress=progress,
            sample=sample,
            row_key=row_key,
            checkpoint=checkpoint,
            partition_rows=partition_rows,
        )
    reject_large_data_options(sample=sample, row_key=row_key, checkpoint=checkpoint, partition_rows=partition_rows)
    repeats = whole_number("n_repeats", n_repeats, least=1)
    enough = read_budget(budget, max_repeats, repeats)
    _reject_no_memory(memory)
    _reject_strange_certify(check_fidelity)
    effective_jobs(n_jobs)  # refuses what is no number of jobs
    start = read_seed(random_state)
    model = as_model(model)
    losses = get_all(default_loss(model) if loss is None else loss)
    if isinstance(model, DeviceModel):
        from subgrove._importance.on_device import ImportanceSpec, goes_on_device, importance_on_device

        if goes_on_device(model, losses, response_method, enough, partition_resamples):
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

    def fitted_on(training: Any) -> tuple[FittedSampler, Table]:
        if sets is None:
            return fitted_sampler(sampler, rows, table, training, chosen, model, start)
        return fitted_given(sampler, sets, rows, table, training, model, start)

    with read_once(rows, training_rows(train), table=table):
        fitted, redrawn = fitted_on(train)
        resamples = read_resamples(partition_resamples, trained_on(fitted, train))
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
    scores = _score_all(question, chosen, n_jobs, progress)
    warn_of_singletons(scores)
    warn_of_the_bound(enough, scores, counted)
    if resamples:
        scores = with_partition_noise(
            question,
            scores,
            None if trained_on(fitted, train) == "nothing" else train,
            resamples,
            fitted_on,
            lambda again: _score_all(again, chosen, n_jobs, progress),
        )
    settings = {
        "method": "importance",
        "sampler": sampler_name(sampler),
        "n_repeats": repeats,
        **({} if enough is None else {"budget": enough.share, "repeats_used": repeats_used(scores)}),
        **({"partition_resamples": resamples} if resamples else {}),
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


def _reject_no_memory(memory: Any) -> None:
    if isinstance(memory, bool) or not isinstance(memory, int | float | np.number) or not memory > 0:
        raise ParameterError(f"memory must be a number of MB above 0; got {memory!r}.")


def _reject_strange_certify(check_fidelity: Any) -> None:
    if not isinstance(check_fidelity, bool):
        raise ParameterError(f"check_fidelity must be True or False; got {check_fidelity!r}.")


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


def _score_all(
    question: ScoringContext, features: tuple[Feature, ...], n_jobs: int | None, progress: bool | None
) -> list[FeatureResult]:
    total = question.frames.n_rows * question.n_repeats * len(features)
    workers = min(effective_jobs(n_jobs), len(features))
    with progress_bar(progress, total, "Asking the model") as done:
        if workers == 1:
            return score_features(question, features, done)
        shares = [features[at::workers] for at in range(workers)]
        found: dict[Feature, FeatureResult] = {}
        for share, (scores, n_rows, n_calls) in zip(shares, parallel_map(_Work(question), shares, n_jobs), strict=True):
            found |= dict(zip(share, scores, strict=True))
            question.model.n_rows += n_rows
            question.model.n_calls += n_calls
            done(n_rows)
        return [found[feature] for feature in features]


class _Work:
    """The share of one worker."""

    def __init__(self, question: ScoringContext) -> None:
        self.question = question

    def __call__(self, features: tuple[Feature, ...]) -> tuple[list[FeatureResult], int, int]:
        question = replace(self.question, model=self.question.model.fresh())
        return score_features(question, features, _no_progress), question.model.n_rows, question.model.n_calls


def _no_progress(done: int) -> None:
    """Workers in other processes show no bar."""


def _listed(names: tuple[str, ...] | None) -> list[str] | None:
    return None if names is None else list(names)
