"""How good the model is on rows it has not seen, beside the best constant answer: what a reader asks first.

The constant answer is learned from the training rows: their median, mean or quantile, or the shares of their classes.
A model is called "useless" if it does not beat that answer by more than noise (two standard errors of the paired
differences), "weak" if it saves less than a tenth of its loss, else "good".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from subgrove._core.kinds import Floats
from subgrove._models.predictor import Predictions, read_target
from subgrove._report.inputs import Asked
from subgrove._report.numbers import number, percent
from subgrove._report.summary import Score
from subgrove._scoring.row_losses import ALL, RowLosses, describe_baseline_row
from subgrove.losses import Loss, get

WEAK = 0.1
"""Skill below which a model is called weak."""
CLEAR = 2.0
"""Standard errors by which a model must beat the constant answer, or it is called useless."""
_BATCH = 100_000
_NAMES = {
    "absolute_error": "mean absolute error",
    "squared_error": "mean squared error",
    "zero_one": "share of rows misclassified",
    "brier": "Brier score",
}


@dataclass(frozen=True, eq=False)
class Performance:
    """Scores on held-out rows.

    Attributes
    ----------
    scores : tuple of Score
        The first is of the loss that importance is measured in.
    verdict : {"good", "weak", "useless"}
    sentences : tuple of str
    spread : float
        Standard deviation of the predictions (of the largest one, of probabilities): what a curve is flat beside.
    rows_predicted : int
    """

    scores: tuple[Score, ...]
    verdict: str
    sentences: tuple[str, ...]
    spread: float
    rows_predicted: int


@dataclass(frozen=True, eq=False)
class _Judged:
    """Losses of each row, of the model and of the constant answer."""

    own: Floats
    constant: Floats | None

    @property
    def value(self) -> float:
        return float(self.own.mean())

    @property
    def skill(self) -> float | None:
        if self.constant is None or not self.constant.mean() > 0:
            return None
        return float(1 - self.own.mean() / self.constant.mean())

    def verdict(self) -> str:
        if self.constant is None or self.skill is None:
            return "good"
        saved = self.constant - self.own
        if saved.mean() <= CLEAR * (_error(saved) or 0.0):
            return "useless"
        return "weak" if self.skill < WEAK else "good"

    def score(self, name: str) -> Score:
        constant = None if self.constant is None else float(self.constant.mean())
        return Score(name, self.value, _error(self.own), constant, self.skill)


def performance(asked: Asked) -> Performance:
    """Ask the model once for every test row, and judge its answers."""
    model, X = asked.reader(), asked.test
    parts = []
    for at in range(0, X.n, _BATCH):
        rows = np.arange(at, min(at + _BATCH, X.n))
        parts.append(model.predict(X.some(rows).X, len(rows), describe_baseline_row))
    answers = np.concatenate(parts) if len(parts) > 1 else parts[0]
    first = _judged(asked, asked.loss, answers)
    scores = (first.score(title_of(asked.loss)), *_others(asked, answers))
    verdict = first.verdict()
    told = _sentences(asked, scores[0], verdict, first)
    return Performance(scores, verdict, told, _spread(answers), model.n_rows)


def title_of(loss: Loss) -> str:
    """A loss as a measure of how good a model is."""
    return _NAMES.get(loss.name, loss.name.replace("_", " "))


def _judged(asked: Asked, loss: Loss, answers: Predictions) -> _Judged:
    classes = asked.targets[1].classes
    probabilities = asked.probabilities
    trained, tested = (
        read_target(pair.y, pair.n, classes, (loss,), probabilities=probabilities) for pair in (asked.train, asked.test)
    )
    scoring = RowLosses((loss,), tested, probabilities)
    constant = _constant(loss, trained, asked.test.n, probabilities=probabilities)
    own = scoring.rows(answers, ALL, describe_baseline_row)[0]
    return _Judged(own, None if constant is None else scoring.rows(constant, ALL, describe_baseline_row)[0])


def _constant(loss: Loss, trained: Any, n: int, *, probabilities: bool) -> npt.NDArray[Any] | None:
    """The best constant answer of the training rows, for each of n rows; None where it is not known."""
    if loss.response_method in ("probability", "label"):
        if trained.codes is not None and probabilities:
            shares = np.bincount(trained.codes, minlength=len(trained.classes)) / len(trained)
            return np.tile(shares, (n, 1))
        labels, counts = np.unique(trained.raw, return_counts=True)
        return np.repeat(labels[[int(counts.argmax())]], n)
    if loss.response_method != "value" or trained.numbers is None:
        return None
    level = getattr(loss.function, "level", None)  # of a quantile
    if level is not None:
        return np.full(n, float(np.quantile(trained.numbers, level)))
    middle = np.median if loss.name == "absolute_error" else np.mean
    return np.full(n, float(middle(trained.numbers)))


def _others(asked: Asked, answers: Predictions) -> list[Score]:
    """What people also look at, as far as it is not the loss itself."""
    if asked.task == "regression":
        numbers = asked.loss.response_method == "value"
        return _of_numbers(asked, answers) if numbers else []
    names = [name for name in ("log_loss", "brier", "zero_one") if name != asked.loss.name]
    if not asked.probabilities:
        names = [name for name in names if name == "zero_one"]
    scores = [_judged(asked, get(name), answers).score(title_of(get(name))) for name in names]
    return [*scores, *_auc(asked, answers)]


def _of_numbers(asked: Asked, answers: Predictions) -> list[Score]:
    scores = []
    if asked.loss.name != "absolute_error":
        scores.append(_judged(asked, get("absolute_error"), answers).score(_NAMES["absolute_error"]))
    squares = _judged(asked, get("squared_error"), answers)
    assert squares.constant is not None
    root, constant = float(np.sqrt(squares.value)), float(np.sqrt(squares.constant.mean()))
    error = _error(squares.own)
    of_root = None if error is None or root == 0 else error / (2 * root)
    skill = None if constant == 0 else 1 - root / constant
    scores.append(Score("root mean squared error", root, of_root, constant, skill))
    if squares.constant.mean() > 0:
        ratio = squares.value / float(squares.constant.mean())
        moves = (squares.own - ratio * squares.constant) / squares.constant.mean()
        scores.append(Score("R squared", 1 - ratio, _error(moves), 0.0, 1 - ratio))
    return scores


def _auc(asked: Asked, answers: Predictions) -> list[Score]:
    """Area under the ROC curve of two classes, with DeLong's standard error; none where a class has no row."""
    codes = asked.targets[1].codes
    if not asked.probabilities or codes is None or len(asked.classes) != 2 or len(np.unique(codes)) < 2:
        return []
    from scipy.stats import rankdata

    of_second = answers if answers.ndim == 1 else answers[:, 1]
    yes, no = of_second[codes == 1], of_second[codes == 0]
    above = (rankdata(np.concatenate([yes, no]))[: len(yes)] - rankdata(yes)) / len(no)
    below = 1 - (rankdata(np.concatenate([yes, no]))[len(yes) :] - rankdata(no)) / len(yes)
    value = float(above.mean())
    errors = [_error(above), _error(below)]
    error = None if None in errors else float(np.hypot(errors[0] or 0.0, errors[1] or 0.0))
    return [Score("area under the ROC curve", value, error, 0.5, 2 * value - 1)]


def _error(values: Floats) -> float | None:
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else None


def _spread(answers: Predictions) -> float:
    if answers.dtype.kind not in "iufb":
        return 1.0  # labels: curves are shares
    spread = np.asarray(answers, dtype=np.float64).reshape(len(answers), -1).std(axis=0)
    return float(spread.max(initial=0.0))


def _sentences(asked: Asked, score: Score, verdict: str, judged: _Judged) -> tuple[str, ...]:
    rows = f"{asked.test.n:,} test row{'s' * (asked.test.n != 1)}"
    noise = "" if score.std_error is None else f" (standard error {number(score.std_error)})"
    unsure = ["How sure that is cannot be said from one row."] if score.std_error is None else []
    told = [f"On {rows}, the {score.name} is {number(score.value)}{noise}."]
    if score.constant is None or score.skill is None:
        return (*told, "How well a constant answer would do by this loss is not known.", *unsure)
    constant = f"The best constant answer of the training rows has {number(score.constant)}"
    if verdict == "useless":
        return (
            *told,
            f"{constant}: the model is not shown to be better than that.",
            "So what follows explains a model that does not foretell these rows.",
        )
    told.append(f"{constant}; the model saves {percent(score.skill)} of it.")
    if verdict == "weak":
        told.append("That is little: what follows explains a model that leaves most of the target unexplained.")
    return (*told, *unsure)
