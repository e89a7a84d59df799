"""The model that is trained if the user has none, and its cross-validated performance.

Gradient boosting with native categories by default: it handles missing values and levels, and stops early according to
held-out training rows. A random forest on request. Both are fitted on one numeric matrix, so predictions are cheap.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from subgrove._cli.learning_task import LearningTask, TaskKind
from subgrove._cli.splitting import cross_validation_folds, dependent_groups
from subgrove._core.execution import one_thread, parallel_map, progress_bar
from subgrove._core.kinds import Floats, Rows
from subgrove._core.text import percent
from subgrove._models.tree_ensemble.ensemble import TreeEnsemble
from subgrove._models.tree_ensemble.inputs import TreeInputs
from subgrove._scoring.estimate_variance import mean_variance

_MIN_PROBABILITY = 1e-6
# Small trees and early stopping: of six settings the one that is good on most of nine data sets, and the fastest.
# scikit-learn's defaults (31 leaves, 100 iterations) overfit small data so much that they do not reduce the log loss.
_LEAVES = 8
_MAX_TREES = 1500  # each iteration has one per class
_VALIDATION_SHARE = 0.15


class DefaultModel:
    """Gradient boosting or a random forest on a frame of numbers, dates and levels.

    Parameters
    ----------
    kind : {"regression", "classification"}
    forest : bool, default False
        Use a random forest instead of gradient boosting.
    random_state : int, default 1
    """

    def __init__(self, kind: TaskKind, *, forest: bool = False, random_state: int = 1) -> None:
        self.kind, self.forest, self.random_state = kind, forest, random_state
        if kind == "classification":
            self.predict_proba = self._probabilities  # so that callers can detect a classifier with `hasattr`

    def fit(self, X: Any, y: Any) -> DefaultModel:
        """Train on the rows of a frame."""
        self.names_ = list(X.columns)
        self.columns_ = [name for name in X.columns if X[name].notna().any()]  # scikit-learn needs a value in each
        self.levels_ = {name: X[name].cat.categories for name in X.columns if X[name].dtype.name == "category"}
        counts = np.unique(y, return_counts=True)[1] if self.kind == "classification" else np.array([len(y)])
        model = self._unfitted(len(counts))
        if counts.min() < 2 or _VALIDATION_SHARE * len(y) < len(counts):  # no row of each class for validation
            model.set_params(**({} if self.forest else {"early_stopping": False}))
        with one_thread("openmp"):
            self.model_ = model.fit(self._matrix(X), np.asarray(y))
        if self.kind == "classification":
            self.classes_ = self.model_.classes_
        return self

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Predict numbers or labels."""
        with one_thread("openmp"):
            return np.asarray(self.model_.predict(self._matrix(X)))

    def _probabilities(self, X: Any) -> npt.NDArray[np.float64]:
        with one_thread("openmp"):
            return np.asarray(self.model_.predict_proba(self._matrix(X)))

    def read_trees(self, read: Callable[[Any], tuple[TreeEnsemble, TreeInputs]]) -> tuple[TreeEnsemble, TreeInputs]:
        """Return the trees of the model, and how a frame becomes their inputs.

        Parameters
        ----------
        read : callable
            Reads a model of scikit-learn.
        """
        ensemble, inner = read(self.model_)
        inputs: dict[str, tuple[int, ...]] = dict.fromkeys(self.names_, ())
        at = 0
        for name in self.columns_:
            width = len(self.levels_[name]) if self.forest and name in self.levels_ else 1
            inputs[name] = tuple(chain.from_iterable(inner.columns[at : at + width]))
            at += width
        return ensemble, TreeInputs(tuple(inputs.values()), lambda X: inner.to_matrix(self._matrix(X)))

    def _matrix(self, X: Any) -> npt.NDArray[np.float64]:
        return np.column_stack([self._numbers(X[name], name) for name in self.columns_])

    def _numbers(self, values: Any, name: str) -> npt.NDArray[np.float64]:
        """Return a column as numbers; levels are one-hot encoded for a forest."""
        if name in self.levels_:
            levels = self.levels_[name]
            if values.dtype.name != "category":
                values = values.astype("category")
            if values.cat.categories is not levels and not values.cat.categories.equals(levels):
                values = values.cat.set_categories(levels)
            codes = values.cat.codes.to_numpy()  # -1 if missing or new
            if self.forest:
                return np.asarray(codes[:, None] == np.arange(len(levels)), dtype=np.float64)
            return np.asarray(np.where(codes < 0, np.nan, codes))
        if values.dtype.kind == "M":
            days: npt.NDArray[np.float64] = (values - np.datetime64("1970-01-01")).to_numpy() / np.timedelta64(1, "D")
            return days
        return np.asarray(values, dtype=np.float64)

    def _unfitted(self, n_classes: int) -> Any:
        from sklearn import ensemble

        suffix = "Classifier" if self.kind == "classification" else "Regressor"
        if self.forest:
            leaf = 1 if self.kind == "classification" else 5
            settings: dict[str, Any] = {"min_samples_leaf": leaf, "max_features": "sqrt" if leaf == 1 else 1 / 3}
            return getattr(ensemble, f"RandomForest{suffix}")(300, random_state=self.random_state, n_jobs=1, **settings)
        return getattr(ensemble, f"HistGradientBoosting{suffix}")(
            categorical_features=[name in self.levels_ for name in self.columns_],
            random_state=self.random_state,
            max_leaf_nodes=_LEAVES,
            max_iter=_MAX_TREES // max(n_classes, 5),
            early_stopping=True,
            validation_fraction=_VALIDATION_SHARE,
        )

    def describe(self) -> str:
        """Describe the fitted model in a few words."""
        if self.forest:
            return f"random forest (scikit-learn, {self.model_.n_estimators} trees, one-hot encoded levels)"
        return (
            f"gradient boosting (scikit-learn's histogram trees with native categories: {_LEAVES} leaves, "
            f"{self.model_.n_iter_} iterations, early stopping on {percent(_VALIDATION_SHARE)} of the training rows)"
        )


@dataclass(frozen=True)
class SkillScore:
    """A held-out score with its standard error."""

    name: str
    value: float
    std_error: float

    def __str__(self) -> str:
        return f"{self.name} {self.value:.3f} ± {self.std_error:.3f}"


def train(task: LearningTask, *, forest: bool, random_state: int) -> DefaultModel:
    """Train the default model on all rows of a task."""
    return DefaultModel(task.kind, forest=forest, random_state=random_state).fit(task.X, task.y)


def cross_validate(
    task: LearningTask, *, forest: bool, random_state: int, n_jobs: int | None = None
) -> tuple[SkillScore, ...]:
    """Return the performance of the default model in 5-fold cross-validation over all rows."""
    classes = task.kind == "classification"
    splits = cross_validation_folds(task, random_state)
    losses = []
    with progress_bar(len(splits), "Cross-validation") as done:
        for fold_losses in parallel_map(partial(_fold_losses, task, forest, random_state), splits, n_jobs):
            losses.append(fold_losses)
            done(1)
    model, constant, *others = np.concatenate(losses, axis=1)
    groups = dependent_groups(task.rows(np.concatenate([held_out for _, held_out in splits])))
    if not classes:
        return (_fraction_explained("R²", model, constant, groups),)
    correct, codes = others
    recalls = [correct[codes == code] for code in np.unique(codes)]
    errors = [recall.std(ddof=1) / np.sqrt(len(recall)) if len(recall) > 1 else np.nan for recall in recalls]
    balanced = float(np.mean([recall.mean() for recall in recalls])), float(np.linalg.norm(errors) / len(recalls))
    return (
        _fraction_explained("D² (fraction of log loss explained)", model, constant, groups),
        SkillScore("accuracy", float(correct.mean()), _error_of_mean(correct, groups)),
        SkillScore("balanced accuracy", *balanced),
    )


def _fold_losses(task: LearningTask, forest: bool, random_state: int, fold: tuple[Any, Any]) -> npt.NDArray[np.float64]:
    """Return the losses of the held-out rows of a fold.

    The rows of the array are the loss of the model, the loss of the best constant of the training rows, and for classes
    whether the prediction is correct and the position of the class.
    """
    training, held_out = (task.rows(rows) for rows in fold)
    model = train(training, forest=forest, random_state=random_state)
    y = np.asarray(held_out.y)
    if task.kind == "regression":
        return np.array([(y - model.predict(held_out.X)) ** 2, (y - float(training.y.mean())) ** 2])
    place = np.minimum(np.searchsorted(model.classes_, y), len(model.classes_) - 1)
    known = model.classes_[place] == y  # by time or by group, training rows may lack a class
    predicted = model.predict_proba(held_out.X)
    probabilities = np.where(known, predicted[np.arange(len(y)), place], 0.0)
    shares = np.array([(np.asarray(training.y) == label).mean() for label in model.classes_])
    correct = (model.classes_[predicted.argmax(axis=1)] == y).astype(float)
    losses = (
        -np.log(np.clip(one, _MIN_PROBABILITY, 1)) for one in (probabilities, np.where(known, shares[place], 0.0))
    )
    return np.array([*losses, correct, np.where(known, place, -1)])


def _fraction_explained(name: str, model: Floats, constant: Floats, groups: Rows | None) -> SkillScore:
    """Return one minus the ratio of mean losses, with the standard error of a ratio."""
    ratio = model.mean() / constant.mean()
    std_error = _error_of_mean((model - ratio * constant) / constant.mean(), groups)
    return SkillScore(name, float(1 - ratio), std_error)


def _error_of_mean(values: Floats, groups: Rows | None) -> float:
    """Return the standard error of a mean, cluster-robust for groups of dependent rows."""
    return float(np.sqrt(mean_variance(values[None], None, np.zeros(1), groups)[0]))
