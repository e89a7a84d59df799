"""The model that is trained where none is given, and how good it is on rows that it has not seen.

Boosted trees with native categories by default: they take missing values and levels as they are, and a part of the
training rows tells them when to stop. A forest on request. Both see one matrix of numbers, so predictions cost little.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from subgrove._cli.target import Problem, Task
from subgrove._core.parallel import parallel_map, progress_bar

FOLDS = 5
TRAIN_SHARE = 0.7
_LEAST_PROBABILITY = 1e-6
# Small trees that stop early: of six settings the one that does well on most of nine data sets, and takes the least
# time. scikit-learn's own (31 leaves, 100 rounds) are so sure of themselves on small data that they save no log loss.
_LEAVES = 8
_TREES = 1500  # at most; each round has one for each class
_HELD_BACK = 0.15


class DefaultModel:
    """Boosted trees or a forest on a frame of numbers, dates and levels.

    Parameters
    ----------
    task : {"regression", "classification"}
    forest : bool
        A random forest in place of boosted trees.
    seed : int
    """

    def __init__(self, task: Task, *, forest: bool = False, seed: int = 1) -> None:
        self.task, self.forest, self.seed = task, forest, seed

    def fit(self, X: Any, y: Any) -> DefaultModel:
        """Train on rows of a frame."""
        self.columns_ = [str(name) for name in X.columns]
        self.levels_ = {str(name): _levels(X[name]) for name in X.columns if X[name].dtype.name == "category"}
        model = self._fresh(len(set(y)) if self.task == "classification" else 1)
        with _one_thread():
            self.model_ = model.fit(self._matrix(X), np.asarray(y))
        if self.task == "classification":
            self.classes_ = self.model_.classes_
        return self

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Numbers, or labels."""
        with _one_thread():
            return np.asarray(self.model_.predict(self._matrix(X)))

    def __getattr__(self, name: str) -> Any:
        # Only a classifier has probabilities; whoever asks `hasattr` is told so.
        if name == "predict_proba" and self.__dict__.get("task") == "classification":
            return self._probabilities
        raise AttributeError(f"{type(self).__name__} has no {name}")

    def _probabilities(self, X: Any) -> npt.NDArray[np.float64]:
        with _one_thread():
            return np.asarray(self.model_.predict_proba(self._matrix(X)))

    def _matrix(self, X: Any) -> npt.NDArray[np.float64]:
        blocks = [self._numbers(X[name], name) for name in self.columns_]
        return np.column_stack(blocks)

    def _numbers(self, values: Any, name: str) -> npt.NDArray[np.float64]:
        """One column as numbers; levels of a forest are columns of their own."""
        if name in self.levels_:
            known = self.levels_[name]
            codes = _codes(values, known)
            return (codes[:, None] == np.arange(len(known))).astype(float) if self.forest else codes
        if values.dtype.kind == "M":
            days: npt.NDArray[np.float64] = (values - np.datetime64("1970-01-01")).to_numpy() / np.timedelta64(1, "D")
            return days
        return np.asarray(values, dtype=np.float64)

    def _fresh(self, n_classes: int) -> Any:
        from sklearn import ensemble

        kind = "Classifier" if self.task == "classification" else "Regressor"
        if self.forest:
            leaf = 1 if self.task == "classification" else 5
            settings: dict[str, Any] = {"min_samples_leaf": leaf, "max_features": "sqrt" if leaf == 1 else 1 / 3}
            return getattr(ensemble, f"RandomForest{kind}")(300, random_state=self.seed, n_jobs=1, **settings)
        nominal = [name in self.levels_ for name in self.columns_]
        return getattr(ensemble, f"HistGradientBoosting{kind}")(
            categorical_features=nominal,
            random_state=self.seed,
            max_leaf_nodes=_LEAVES,
            max_iter=_TREES // max(n_classes, 5),
            early_stopping=True,
            validation_fraction=_HELD_BACK,
        )

    def describe(self) -> str:
        """The model in a few words; it must have been trained."""
        if self.forest:
            return f"random forest (scikit-learn, {self.model_.n_estimators} trees, one column for each level)"
        return (
            f"gradient boosting (scikit-learn's histogram trees with native categories: {_LEAVES} leaves, "
            f"{self.model_.n_iter_} rounds, stopped by {_HELD_BACK:.0%} of its training rows)"
        )


@dataclass(frozen=True)
class Skill:
    """How good a way of training is on rows not seen: the share of the constant's loss that it saves."""

    name: str
    value: float
    std_error: float

    def __str__(self) -> str:
        return f"{self.name} {self.value:.3f} ± {self.std_error:.3f}"


def train(problem: Problem, *, forest: bool, seed: int) -> DefaultModel:
    """The default model, trained on all rows of a problem."""
    return DefaultModel(problem.task, forest=forest, seed=seed).fit(problem.X, problem.y)


def split_rows(problem: Problem, seed: int) -> tuple[Problem, Problem]:
    """Rows to train on and rows to explain on; classes are shared out evenly."""
    from sklearn.model_selection import train_test_split

    by = problem.y if problem.task == "classification" else None
    rows = np.arange(len(problem.y))
    first, second = train_test_split(rows, train_size=TRAIN_SHARE, random_state=seed, stratify=by)
    return rows_of(problem, np.sort(first)), rows_of(problem, np.sort(second))


def rows_of(problem: Problem, rows: Any) -> Problem:
    """Some rows of a problem."""
    X, y = problem.X.iloc[rows].reset_index(drop=True), problem.y.iloc[rows].reset_index(drop=True)
    return Problem(X, y, problem.task, ())


def cross_validate(
    problem: Problem, *, forest: bool, seed: int, n_jobs: int | None = None, progress: bool | None = False
) -> tuple[Skill, ...]:
    """Performance over all rows, each judged by a model that was trained without it (5 folds)."""
    from sklearn.model_selection import KFold, StratifiedKFold

    classes = problem.task == "classification"
    folds = (StratifiedKFold if classes else KFold)(FOLDS, shuffle=True, random_state=seed)
    pairs = list(folds.split(problem.X, problem.y if classes else None))
    losses = []
    with progress_bar(progress, FOLDS, "Training and judging") as done:
        for one in parallel_map(partial(_judged, problem, forest, seed), pairs, n_jobs):
            losses.append(one)
            done(1)
    model, constant, *more = np.concatenate(losses, axis=1)
    if not classes:
        return (_saved("R² (share of squared error saved)", model, constant),)
    right = Skill("accuracy", float(more[0].mean()), float(more[0].std(ddof=1) / np.sqrt(len(model))))
    return (_saved("share of log loss saved", model, constant), right)


def _judged(problem: Problem, forest: bool, seed: int, fold: tuple[Any, Any]) -> npt.NDArray[np.float64]:
    """Losses of the rows of a fold, by a model of the other rows."""
    rest, held_out = (rows_of(problem, rows) for rows in fold)
    return _losses(train(rest, forest=forest, seed=seed), rest, held_out)


def _losses(model: DefaultModel, learned: Problem, judged: Problem) -> npt.NDArray[np.float64]:
    """Rows: loss of the model, loss of the constant that fits the training rows, and for classes whether right."""
    y = np.asarray(judged.y)
    if model.task == "regression":
        return np.array([(y - model.predict(judged.X)) ** 2, (y - float(learned.y.mean())) ** 2])
    place = np.searchsorted(model.classes_, y)
    chances = np.clip(model._probabilities(judged.X)[np.arange(len(y)), place], _LEAST_PROBABILITY, 1)
    shares = np.array([(np.asarray(learned.y) == label).mean() for label in model.classes_])
    right = (model.predict(judged.X) == y).astype(float)
    return np.array([-np.log(chances), -np.log(np.clip(shares[place], _LEAST_PROBABILITY, 1)), right])


def _saved(name: str, model: npt.NDArray[np.float64], constant: npt.NDArray[np.float64]) -> Skill:
    """1 less a ratio of means, with the standard error of a ratio."""
    ratio = model.mean() / constant.mean()
    noise = (model - ratio * constant).std(ddof=1) / (np.sqrt(len(model)) * constant.mean())
    return Skill(name, float(1 - ratio), float(noise))


def _one_thread() -> AbstractContextManager[Any]:
    """A context in which boosting uses one thread.

    It starts threads for each node of each tree. On a busy machine they wait for each other a hundred times longer than
    they work; and with one thread sums have the same order, hence are the same, whatever the number of cores.
    """
    limits: AbstractContextManager[Any] = _controller().limit(limits=1, user_api="openmp")
    return limits


@cache
def _controller() -> Any:
    import sklearn.ensemble  # noqa: F401  (its library of threads must be there to be seen)
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def _levels(values: Any) -> list[str]:
    return [str(level) for level in values.cat.categories]


def _codes(values: Any, known: list[str]) -> npt.NDArray[np.float64]:
    """Places of levels among those of training, NaN where missing or new."""
    if values.dtype.name == "category" and _levels(values) == known:
        codes = np.asarray(values.cat.codes, dtype=np.float64)
    else:
        place = {level: float(at) for at, level in enumerate(known)}
        codes = np.array([place.get(str(value), -1.0) for value in values])
    return np.where(codes < 0, np.nan, codes)
