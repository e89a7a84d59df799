"""Performance of the model on held-out rows, compared with the best constant prediction.

The constant is fitted on the training rows: their median, mean or quantile, or the shares of their classes. A model is
called "useless" if it is not significantly better (by two standard errors of the paired differences), "weak" if it
removes less than a tenth of the constant's loss, else "good".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from subgrove._core.kinds import Floats, Rows
from subgrove._core.text import count_of, number, percent
from subgrove._models.predictor import Predictions, read_target
from subgrove._report.inputs import ReportInputs
from subgrove._report.summary import Score
from subgrove._scoring.estimate_variance import mean_variance
from subgrove._scoring.row_losses import ALL, RowLosses, describe_baseline_row
from subgrove.losses import Loss, get

WEAK = 0.1
"""Skill below which a model is called weak."""
SIGNIFICANT = 2.0
"""Standard errors by which a model must be better than a constant, or it is called useless."""
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
        The first is that of the loss in which importance is measured.
    verdict : {"good", "weak", "useless"}
    sentences : tuple of str
    spread : float
        Standard deviation of the predictions (the largest one, for probabilities): the scale on which a curve is flat.
    rows_predicted : int
    """

    scores: tuple[Score, ...]
    verdict: str
    sentences: tuple[str, ...]
    spread: float
    rows_predicted: int


@dataclass(frozen=True, eq=False)
class PairedLosses:
    """Losses of each row, of the model and of the constant prediction."""

    own: Floats
    constant: Floats | None
    clusters: Rows | None = None

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
        if saved.mean() <= SIGNIFICANT * (_error(saved, self.clusters) or 0.0):
            return "useless"
        return "weak" if self.skill < WEAK else "good"

    def score(self, name: str) -> Score:
        constant = None if self.constant is None else float(self.constant.mean())
        return Score(name, self.value, _error(self.own, self.clusters), constant, self.skill)


def performance(inputs: ReportInputs) -> Performance:
    """Predict every test row once, and score the predictions."""
    model, X = inputs.reader(), inputs.test
    parts = []
    for at in range(0, X.n, _BATCH):
        rows = np.arange(at, min(at + _BATCH, X.n))
        parts.append(model.predict(X.some(rows).X, len(rows), describe_baseline_row))
    predictions = np.concatenate(parts) if len(parts) > 1 else parts[0]
    first = _row_losses(inputs, inputs.loss, predictions)
    scores = (first.score(title_of(inputs.loss)), *_others(inputs, predictions))
    verdict = first.verdict()
    sentences = _sentences(inputs, scores[0], verdict)
    return Performance(scores, verdict, sentences, _spread(predictions), model.n_rows)


def title_of(loss: Loss) -> str:
    """Return the name of a loss as a measure of performance."""
    return _NAMES.get(loss.name, loss.name.replace("_", " "))


def _row_losses(inputs: ReportInputs, loss: Loss, predictions: Predictions) -> PairedLosses:
    classes = inputs.targets[1].classes
    probabilities = inputs.probabilities
    trained, tested = (
        read_target(pair.y, pair.n, classes, (loss,), probabilities=probabilities)
        for pair in (inputs.train, inputs.test)
    )
    scoring = RowLosses((loss,), tested, probabilities)
    constant = _constant(loss, trained, inputs.test.n, probabilities=probabilities)
    own = scoring.rows(predictions, ALL, describe_baseline_row)[0]
    losses = None if constant is None else scoring.rows(constant, ALL, describe_baseline_row)[0]
    return PairedLosses(own, losses, inputs.test.table.clusters)


def _constant(loss: Loss, trained: Any, n: int, *, probabilities: bool) -> npt.NDArray[Any] | None:
    """Return the best constant prediction of the training rows, n times; None where it is unknown."""
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


def _others(inputs: ReportInputs, predictions: Predictions) -> list[Score]:
    """Return the other usual scores."""
    if inputs.task == "regression":
        numbers = inputs.loss.response_method == "value"
        return _of_numbers(inputs, predictions) if numbers else []
    names = [name for name in ("log_loss", "brier", "zero_one") if name != inputs.loss.name]
    if not inputs.probabilities:
        names = [name for name in names if name == "zero_one"]
    scores = [_row_losses(inputs, get(name), predictions).score(title_of(get(name))) for name in names]
    return [*scores, *_auc(inputs, predictions)]


def _of_numbers(inputs: ReportInputs, predictions: Predictions) -> list[Score]:
    scores = []
    if inputs.loss.name != "absolute_error":
        scores.append(_row_losses(inputs, get("absolute_error"), predictions).score(_NAMES["absolute_error"]))
    squares = _row_losses(inputs, get("squared_error"), predictions)
    assert squares.constant is not None
    root, constant = float(np.sqrt(squares.value)), float(np.sqrt(squares.constant.mean()))
    error = _error(squares.own, squares.clusters)
    of_root = None if error is None or root == 0 else error / (2 * root)
    skill = None if constant == 0 else 1 - root / constant
    scores.append(Score("root mean squared error", root, of_root, constant, skill))
    if squares.constant.mean() > 0:
        ratio = squares.value / float(squares.constant.mean())
        moves = (squares.own - ratio * squares.constant) / squares.constant.mean()
        scores.append(Score("R squared", 1 - ratio, _error(moves, squares.clusters), 0.0, 1 - ratio))
    return scores


def _auc(inputs: ReportInputs, predictions: Predictions) -> list[Score]:
    """Return the area under the ROC curve of two classes, with DeLong's standard error; none if a class has no row."""
    codes = inputs.targets[1].codes
    if not inputs.probabilities or codes is None or len(inputs.classes) != 2 or len(np.unique(codes)) < 2:
        return []
    from scipy.stats import rankdata

    of_second = predictions if predictions.ndim == 1 else predictions[:, 1]
    yes, no = of_second[codes == 1], of_second[codes == 0]
    above = (rankdata(np.concatenate([yes, no]))[: len(yes)] - rankdata(yes)) / len(no)
    below = 1 - (rankdata(np.concatenate([yes, no]))[len(yes) :] - rankdata(no)) / len(yes)
    value = float(above.mean())
    errors = [_error(above), _error(below)]
    error = None if None in errors else float(np.hypot(errors[0] or 0.0, errors[1] or 0.0))
    return [Score("area under the ROC curve", value, error, 0.5, 2 * value - 1)]


def _error(values: Floats, clusters: Rows | None = None) -> float | None:
    if clusters is not None and clusters.max() > 1:
        return float(np.sqrt(mean_variance(values[None], None, np.zeros(1), clusters)[0]))
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else None


def _spread(predictions: Predictions) -> float:
    if predictions.dtype.kind not in "iufb":
        return 1.0  # labels: curves are shares
    spread = np.asarray(predictions, dtype=np.float64).reshape(len(predictions), -1).std(axis=0)
    return float(spread.max(initial=0.0))


def _sentences(inputs: ReportInputs, score: Score, verdict: str) -> tuple[str, ...]:
    noise = "" if score.std_error is None else f" (standard error {number(score.std_error)})"
    unknown = ["One row gives no standard error."] if score.std_error is None else []
    sentences = [f"On {count_of(inputs.test.n, 'test row')}, the {score.name} is {number(score.value)}{noise}."]
    if score.constant is None or score.skill is None:
        return (*sentences, "The best constant prediction for this loss is unknown.", *unknown)
    constant = f"The best constant prediction of the training rows has {number(score.constant)}"
    if verdict == "useless":
        return (
            *sentences,
            f"{constant}: the model is not significantly better.",
            "The rest of this report explains a model that does not predict these rows.",
        )
    sentences.append(f"{constant}; the model removes {percent(score.skill)} of it.")
    if verdict == "weak":
        sentences.append("That is little: the model leaves most of the target unexplained.")
    return (*sentences, *unknown)
