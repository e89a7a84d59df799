"""Leave one covariate out: the increase of the loss when the model is refitted without a feature."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from subgrove._core.execution import parallel_map, progress_bar
from subgrove._core.kinds import Floats
from subgrove._core.validate import names_arguments, reject_another_index
from subgrove._data.columns import parse_features
from subgrove._data.replace_columns import Frames
from subgrove._data.table import fingerprint, read_table
from subgrove._data.to_containers import copied, without_columns
from subgrove._importance.importance import make_result
from subgrove._importance.result import ImportanceResult
from subgrove._importance.spec import read_pair, read_row_weights, reject_weighted_scores, warn_of_few_rows
from subgrove._models.predictor import default_loss, gives_probabilities, read_model, read_target, response_for
from subgrove._scoring.context import check_repeatable
from subgrove._scoring.feature_result import FeatureResult
from subgrove._scoring.row_losses import ALL, RowLosses, describe_baseline_row, weighted_mean
from subgrove.exceptions import InputError, ModelError, ParameterError, SubgroveError, SubgroveWarning
from subgrove.losses.named import get_all
from subgrove.samplers.base import Feature, title
from subgrove.samplers.resampled_feature import ALL_ROWS

Refit = Callable[[Any, Any], Any]


@names_arguments()
def loco(
    model: Any,
    X: Any,
    y: Any,
    *,
    train: Any,
    features: Any = None,
    loss: Any = None,
    refit: Refit | None = None,
    sample_weight: Any = None,
    response_method: str | None = None,
    n_jobs: int | None = None,
) -> ImportanceResult:
    """Compute the increase of the loss on test rows when the model is refitted without a feature.

    The estimand differs from that of `importance`: what a model of this kind loses without the feature, not what this
    model uses. Dependent features that can replace each other all have a small value.

    Parameters
    ----------
    model : object
        Fitted on all columns.
    X : table
        Test rows.
    y : column
        Target of the test rows.
    train : pair (X, y), or an object with `.X` and `.y`
        Training rows and their target.
    features : list, optional
        Names of columns; a list of names among them is left out together. All columns if not given.
    loss : str, Loss, callable or a list of them, optional
        As in `importance`.
    refit : callable, optional
        Takes training table and target and returns a fitted model. By default an unfitted copy of `model` is fitted; a
        model that names its columns (a pipeline with a ColumnTransformer, say) needs this argument.
    sample_weight : array or FrequencyWeights, optional
        Relative weights of the test rows, or their frequencies.
    response_method : str, optional
        Method of the model to call, where the loss does not determine it.
    n_jobs : int, optional
        Number of models fitted in parallel.

    Returns
    -------
    ImportanceResult
        With one repeat and without subgroups. The interval covers the noise of the test rows, not that of refitting.

    Examples
    --------
    >>> import subgrove as sg
    >>> from sklearn.linear_model import LinearRegression
    >>> train, test = sg.datasets.bike(split=0.7, random_state=1)
    >>> columns = ["temp", "hum", "wind"]
    >>> model = LinearRegression().fit(train.X[columns], train.y)
    >>> result = sg.loco(model, test.X[columns], test.y, train=(train.X[columns], train.y), loss="absolute_error")
    >>> result.overall.set_index("feature")["estimate"].round().to_dict()
    {'temp': 341.0, 'hum': 54.0, 'wind': 72.0}
    """
    train_X, train_y = _training(train)
    losses = get_all(default_loss(model, y) if loss is None else loss)
    needed = response_for(losses, response_method)
    predictor = read_model(model, needed)
    table = read_table(X, lenient=True)
    warn_of_few_rows(table.n_rows)
    reject_another_index(X, y=y, sample_weight=sample_weight)
    reject_another_index(train_X, y=train_y)
    groups = parse_features(features, table.names)
    if len(table.names) == max(len(feature) for feature in groups):
        raise ParameterError("Leaving out these features leaves no column to fit a model on. Name fewer of them.")
    weights = read_row_weights(sample_weight, table.n_rows)
    target = read_target(y, table.n_rows, predictor.classes, losses, probabilities=gives_probabilities(needed))
    predictions = predictor.predict(copied(X), table.n_rows, describe_baseline_row)
    n_rows_again = check_repeatable(predictor, Frames(X, ()), predictions)
    scoring = RowLosses(losses, target, gives_probabilities(needed)).settled(predictions)
    reject_weighted_scores(scoring, weights)
    baseline = scoring.rows(predictions, ALL, describe_baseline_row)
    whole = scoring.whole(predictions, describe_baseline_row)
    work = _Refitting(model, X, (train_X, train_y), refit, scoring, needed, table.n_rows)
    scores = []
    with progress_bar(len(groups), "Refitting") as done:
        for feature, (rows, score) in zip(groups, parallel_map(work, groups, n_jobs), strict=True):
            scores.append(_scores(feature, rows - baseline, score - whole, weights))
            done(1)
    settings = {
        "method": "loco",
        "sampler": "left out",
        "n_repeats": 1,
        "random_state": None,
        "trained_on": "train",
        "n_rows_predicted": predictor.n_rows + table.n_rows * len(groups),
        "n_calls": predictor.n_calls + len(groups),
        "n_rows_again": n_rows_again,
        "fingerprint": fingerprint(table),
    }
    return make_result(scores, scoring, (baseline, whole), weights, settings, X)


@dataclass(frozen=True, eq=False)
class _Refitting:
    """Refits the model without a feature and returns its losses."""

    model: Any
    X: Any
    train: tuple[Any, Any]
    refit: Refit | None
    scoring: RowLosses
    response: str
    n_rows: int

    def __call__(self, feature: Feature) -> tuple[Floats, Floats]:
        def about(row: int | None) -> str:
            return f"model without {title(feature)!r}" + ("" if row is None else f", row {row}")

        remedy = "" if self.refit is not None else ". If the model names its columns, pass refit=function(X, y)."
        rows, about_fit = without_columns(self.train[0], feature), f"Refitting without {title(feature)!r}"
        fitted = fit_again(self.model, self.refit, rows, self.train[1], about_fit, remedy)
        predictions = read_model(fitted, self.response).predict(without_columns(self.X, feature), self.n_rows, about)
        return self.scoring.rows(predictions, ALL, about), self.scoring.whole(predictions, about)


def fit_again(model: Any, refit: Refit | None, X: Any, y: Any, about: str, remedy: str = "") -> Any:
    """Return what `refit` returns, or an unfitted copy of the model after fitting it; errors start with `about`."""
    try:
        return _unfitted(model).fit(X, y) if refit is None else refit(X, y)
    except (SubgroveError, SubgroveWarning):
        raise
    except Exception as error:
        raise ModelError(f"{about} raised {type(error).__name__}: {error}{remedy}") from error


def _unfitted(model: Any) -> Any:
    """Return an unfitted copy of a model; a plain copy if it has no parameters that scikit-learn can read."""
    from sklearn.base import clone

    if not hasattr(model, "fit"):
        raise ParameterError(
            f"model ({type(model).__name__}) has no fit, so it cannot be refitted. Pass refit=function(X, y)."
        )
    return clone(model, safe=hasattr(model, "get_params"))


def _training(train: Any) -> tuple[Any, Any]:
    rows, y = read_pair("train", train, " Models are refitted on it.")
    n_rows = read_table(rows, argument="train", lenient=True).n_rows
    if len(y) != n_rows:
        raise InputError(f"train has {n_rows} rows and {len(y)} values of y. Their numbers must agree.")
    return rows, y


def _scores(feature: Feature, rows: Floats, whole: Floats, weights: Floats | None) -> FeatureResult:
    n = rows.shape[1]
    mean = np.where(np.isnan(whole), weighted_mean(rows, weights), whole)
    sizes = np.array([float(n) if weights is None else float(weights.sum())])
    unknown = np.full((len(rows), 1), np.nan)
    return FeatureResult(
        feature=feature,
        rules=(ALL_ROWS,),
        conditioning=(),
        folds=(),
        n_rows=n,
        sizes=sizes,
        repeats=weighted_mean(rows, weights)[:, None, None],
        overall=mean[:, None],
        excess=np.zeros((len(rows), 1)),
        mc_variance=unknown,
        code=np.zeros(n, dtype=np.uint8),
        rows=rows,
        influence=rows,
    )
