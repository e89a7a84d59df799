"""Performance of the model on held-out rows, compared with the best constant prediction, and the verdict on it.

The constant is fitted on the training rows: their median, mean or quantile, or the shares of their classes. The verdict
follows from the skill (the share of the constant's loss that the model removes) and its 95 % interval:

- "good": the interval lies above 0, and the skill is at least a tenth;
- "weak": the interval lies above 0;
- "uncertain": the interval includes 0 and a tenth, so the rows do not decide;
- "useless": the interval includes 0 or lies below it, and ends below a tenth.

The loss for which a model was trained is not known in general. A model of means is worse than the median in absolute
error where the target is skewed, and one row can dominate the squared error. So the verdict is the best one over the
reported loss, absolute and squared error, and the absolute error without outliers if these have most of it; for classes
over the reported loss, log loss and Brier score. A model whose predictions are no closer to the target than a constant
but have its order (rank correlation, area under the ROC curve), or whose labels alone are better (accuracy), is "weak".
The page and the command use this verdict and no other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from subgrove._core.kinds import Floats, Rows
from subgrove._core.text import common_decimals, count_of, number, percent
from subgrove._models.predictor import Predictions, read_target
from subgrove._report.classification import ClassResults, class_results
from subgrove._report.inputs import ReportInputs
from subgrove._report.model_summary import Score
from subgrove._scoring.estimate_variance import mean_variance
from subgrove._scoring.row_losses import ALL, RowLosses, constant_predictions, describe_baseline_row
from subgrove.losses import Loss, get

WEAK = 0.1
"""Skill below which a model is called weak."""
LEVEL = 0.95
"""Level of the interval of the skill."""
_BATCH = 100_000
_NAMES = {
    "absolute_error": "mean absolute error",
    "squared_error": "mean squared error",
    "zero_one": "share of rows misclassified",
    "brier": "Brier score",
    "poisson": "mean Poisson deviance",
    "gamma": "mean gamma deviance",
}
_VERDICTS = {
    "good": "The model is better than a constant prediction",
    "weak": "The model is weak, but better than a constant prediction",
    "uncertain": "It is uncertain whether the model is better than a constant prediction",
    "useless": "The model is not significantly better than a constant prediction",
}
_CONSEQUENCES = {
    "weak": "The model leaves most of the target unexplained.",
    "uncertain": "More test rows are needed to decide whether the model predicts the target.",
    "useless": "The rest of this report explains a model that does not predict these rows.",
}
R2, RANKS, AUC, ACCURACY = "R squared", "rank correlation", "area under the ROC curve", "accuracy"
USUAL = "mean absolute error without outliers"
_EXTREME, _DOMINATED = 0.01, 0.5  # share of the rows, and of the error of the constant that makes them outliers
_ORDER = (RANKS, AUC)  # scores of the order of the predictions alone


@dataclass(frozen=True, eq=False)
class Performance:
    """Scores on held-out rows.

    Attributes
    ----------
    scores : tuple of Score
        The first is that of the loss in which importance is measured.
    judgement : Judgement
    sentences : tuple of str
    classes : ClassResults
        Predictions by class; empty for a regression.
    spread : float
        Standard deviation of the predictions (the largest one, for probabilities): the scale on which a curve is flat.
    rows_predicted : int
    """

    scores: tuple[Score, ...]
    judgement: Judgement
    sentences: tuple[str, ...]
    classes: ClassResults
    spread: float
    rows_predicted: int


@dataclass(frozen=True, eq=False)
class PairedLosses:
    """Losses of each row, of the model and of the constant prediction."""

    own: Floats
    constant: Floats | None
    clusters: Rows | None = None

    def measure(self, name: str) -> Measure:
        """Return the mean loss and its skill, whose standard error is that of a ratio of means."""
        value, error = float(self.own.mean()), _error(self.own, self.clusters)
        constant = None if self.constant is None else float(self.constant.mean())
        if self.constant is None or constant is None or not constant > 0:
            return Measure(Score(name, value, error, constant, None))
        skill = 1 - value / constant
        skill_error = _error((self.own - (1 - skill) * self.constant) / constant, self.clusters)
        return Measure(Score(name, value, error, constant, skill), skill_error)


@dataclass(frozen=True)
class Measure:
    """A score, and the standard error of its skill; None if it is unknown or does not count for the verdict."""

    score: Score
    skill_error: float | None = None


@dataclass(frozen=True)
class Judgement:
    """The verdict, the score it is based on, and the interval of its skill."""

    verdict: str
    score: Score
    low: float | None = None
    high: float | None = None

    @property
    def sentence(self) -> str:
        """The verdict in words."""
        words, score = _VERDICTS[self.verdict], self.score
        if self.low is None or self.high is None or score.skill is None:
            return f"{words}: there is no standard error, or no constant to compare with."
        if self.high < 0:
            words = "The model is worse than a constant prediction"
        scale = 0.5 if score.name == AUC else 1.0
        ends = [score.value + scale * (end - score.skill) for end in (self.low, self.high)]
        value, *bounds = common_decimals([score.value, *ends], (self.high - self.low) / 2)
        interval = f"({percent(LEVEL)} interval {' to '.join(bounds)})"
        if score.name == R2:
            return f"{words}: its R squared is {value} {interval}."
        if score.name in _ORDER:
            chance = "The model is weak: it orders the rows better than chance"
            return f"{chance if self.verdict == 'weak' else words}, with a {score.name} of {value} {interval}."
        sign, verb = (1, "reduces") if score.skill >= 0 else (-1, "increases")
        by, low, high = (percent(sign * one) for one in (score.skill, *(self.low, self.high)[::sign]))
        loss = _NAMES["zero_one"] if score.name == ACCURACY else score.name
        interval = "" if by == low == high else f" ({percent(LEVEL)} interval {low} to {high})"
        return f"{words}: it {verb} the {loss} by {by}{interval}."


def judge(measures: Sequence[Measure], n: int) -> Judgement:
    """Return the best verdict over the scores; at equal verdicts that of the first score."""
    found = [Judgement("uncertain", measures[0].score)]
    judged = {one.score.name for one in measures if one.skill_error is not None}
    limited = {*_ORDER, ACCURACY} if judged - {*_ORDER, ACCURACY} else set(_ORDER)  # accuracy may be all there is
    for one in measures:
        if one.score.skill is None or one.skill_error is None:
            continue
        from scipy.stats import t

        half = float(t.ppf((1 + LEVEL) / 2, n - 1)) * one.skill_error
        low, high = one.score.skill - half, one.score.skill + half
        at_most_weak = one.score.name in limited
        if low > 0:
            verdict = "weak" if at_most_weak or one.score.skill < WEAK else "good"
        else:
            verdict = "useless" if at_most_weak or high < WEAK else "uncertain"
        found.append(Judgement(verdict, one.score, low, high))
    ranks = list(_VERDICTS)
    return min(found[1:] or found, key=lambda one: ranks.index(one.verdict))


def performance(inputs: ReportInputs) -> Performance:
    """Predict every test row once, and score the predictions."""
    model, X = inputs.reader(), inputs.test
    batches = np.split(np.arange(X.n), range(_BATCH, X.n, _BATCH))
    parts = [model.predict(X.some(rows).X, len(rows), describe_baseline_row) for rows in batches]
    predictions = np.concatenate(parts)
    first = _row_losses(inputs, inputs.loss, predictions).measure(title_of(inputs.loss))
    classes = class_results(inputs, predictions) if inputs.task == "classification" else ClassResults()
    by_class = (Measure(score) for score in classes.scores)
    measures = [first, *_others(inputs, predictions), *by_class, *_auc(inputs, predictions)]
    judgement = judge(measures, X.n)
    sentences = [*_sentences(inputs, first.score, judgement), *classes.sentences]
    scores = tuple(one.score for one in measures)
    return Performance(scores, judgement, tuple(sentences), classes, _spread(predictions), model.n_rows)


def title_of(loss: Loss) -> str:
    """Return the name of a loss as a measure of performance."""
    name = _NAMES.get(loss.name, loss.name.replace("_", " "))
    return name if name.endswith(("loss", "error", "deviance", "misclassified", "score")) else f"{name} loss"


def _row_losses(inputs: ReportInputs, loss: Loss, predictions: Predictions) -> PairedLosses:
    classes, probabilities = inputs.targets[1].classes, inputs.probabilities
    pairs = (inputs.train, inputs.test)
    trained, tested = (read_target(one.y, one.n, classes, (loss,), probabilities=probabilities) for one in pairs)
    scoring = RowLosses((loss,), tested, probabilities)
    settled = scoring.settled(predictions) if loss.response_method == "label" else scoring
    constant = constant_predictions(loss, trained, inputs.test.n, probabilities=probabilities)
    own = settled.rows(predictions, ALL, describe_baseline_row)[0]
    losses = None if constant is None else scoring.rows(constant, ALL, describe_baseline_row)[0]
    return PairedLosses(own, losses, inputs.test.table.clusters)


def _others(inputs: ReportInputs, predictions: Predictions) -> list[Measure]:
    """Return the other usual scores."""
    if inputs.task == "regression":
        y = inputs.targets[1]
        kinds = {predictions.dtype.kind, y.raw.dtype.kind}  # a loss of the user's own may compare anything
        numbers = y.numbers is not None or (kinds <= set("iufb") and predictions.ndim == y.raw.ndim)
        return _of_numbers(inputs, predictions) if numbers else []
    names = [name for name in ("log_loss", "brier") if name != inputs.loss.name and inputs.probabilities]
    measures = [_row_losses(inputs, get(name), predictions).measure(title_of(get(name))) for name in names]
    wrong = _row_losses(inputs, get("zero_one"), predictions).measure("")
    score, constant = wrong.score, wrong.score.constant
    right = Score(ACCURACY, 1 - score.value, score.std_error, None if constant is None else 1 - constant, score.skill)
    return [*measures, Measure(right, wrong.skill_error)]


def _of_numbers(inputs: ReportInputs, predictions: Predictions) -> list[Measure]:
    absolute = _row_losses(inputs, get("absolute_error"), predictions)
    measures = [absolute.measure(_NAMES["absolute_error"])] if inputs.loss.name != "absolute_error" else []
    measures += _without_outliers(absolute)
    found = _row_losses(inputs, get("squared_error"), predictions).measure("")
    squares, error = found.score, found.skill_error
    assert squares.constant is not None
    root, constant = float(np.sqrt(squares.value)), float(np.sqrt(squares.constant))
    of_root = None if squares.std_error is None or root == 0 else squares.std_error / (2 * root)
    skill = None if constant == 0 else 1 - root / constant
    measures.append(Measure(Score("root mean squared error", root, of_root, constant, skill)))
    if squares.skill is not None:
        measures.append(Measure(Score(R2, squares.skill, error, 0.0, squares.skill), error))
    y, predicted = (np.asarray(one, dtype=np.float64) for one in (inputs.targets[1].raw, predictions))
    return [*measures, *_rank_correlation(y, predicted)]


def _without_outliers(absolute: PairedLosses) -> list[Measure]:
    """Return the mean absolute error without the rows with the most extreme target, if these have most of the error."""
    assert absolute.constant is not None
    n = len(absolute.own)
    usual = np.argsort(absolute.constant, kind="stable")[: n - int(np.ceil(_EXTREME * n))]
    if n < 1 / _EXTREME or absolute.constant[usual].sum() >= (1 - _DOMINATED) * absolute.constant.sum():
        return []
    return [PairedLosses(absolute.own[usual], absolute.constant[usual]).measure(USUAL)]


def _rank_correlation(y: Floats, predictions: Floats) -> list[Measure]:
    """Return Spearman's correlation, with the standard error of Bonett and Wright (2000); none if it is undefined."""
    from scipy.stats import rankdata

    if len(y) < 4 or np.ptp(y) == 0 or np.ptp(predictions) == 0:
        return []
    value = float(np.corrcoef(rankdata(y), rankdata(predictions))[0, 1])
    error = float((1 - value**2) * np.sqrt((1 + value**2 / 2) / (len(y) - 3)))
    return [Measure(Score(RANKS, value, error, 0.0, value), error)]


def _auc(inputs: ReportInputs, predictions: Predictions) -> list[Measure]:
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
    return [Measure(Score(AUC, value, error, 0.5, 2 * value - 1), None if error is None else 2 * error)]


def _error(values: Floats, clusters: Rows | None = None) -> float | None:
    if clusters is not None and clusters.max() > 1:
        return float(np.sqrt(mean_variance(values[None], None, np.zeros(1), clusters)[0]))
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else None


def _spread(predictions: Predictions) -> float:
    if predictions.dtype.kind not in "iufb":
        return 1.0  # labels: curves are shares
    spread = np.asarray(predictions, dtype=np.float64).reshape(len(predictions), -1).std(axis=0)
    return float(spread.max(initial=0.0))


def _sentences(inputs: ReportInputs, score: Score, judgement: Judgement) -> Iterator[str]:
    noise = "" if score.std_error is None else f" (standard error {number(score.std_error)})"
    sentence = f"On {count_of(inputs.test.n, 'test row')}, the {score.name} is {number(score.value)}{noise}"
    if score.constant is None:
        yield f"{sentence}."
        yield "The best constant prediction for this loss is unknown."
    else:
        yield f"{sentence}; the best constant prediction of the training rows has {number(score.constant)}."
        better = judgement.verdict in ("good", "weak") and judgement.score is not score
        if better and (score.skill or 0.0) < WEAK:
            yield _by_another_score(inputs.loss, score, judgement.score)
    if judgement.verdict != "good":
        yield _CONSEQUENCES[judgement.verdict]


def _by_another_score(loss: Loss, score: Score, judged_by: Score) -> str:
    """Return why a model that is hardly better than a constant in its loss is better by another score."""
    than = "worse than" if (score.skill or 0.0) < 0 else "hardly better than"
    if loss.name == "absolute_error" and judged_by.name == R2:
        why = "a model that was trained for squared error predicts means, which are far from most values"
        skewed = f"{why} if the target is skewed or mostly zero"
        return f"It is better in squared error, but {than} the median, the best constant, in absolute error: {skewed}."
    if judged_by.name == USUAL:
        error, constant = number(judged_by.value), number(judged_by.constant or 0.0)
        without = f"Without them the mean absolute error is {error}, and that of the best constant {constant}."
        extreme = f"The {percent(_EXTREME)} of the test rows with the most extreme target"
        return f"{extreme} have more than half of the error. {without}"
    if judged_by.name in _ORDER:
        why = "their scale may be wrong, or the test rows are too few"
        order = "The predictions have the order of the target"
        return f"{order}, but are not shown to be closer to it than a constant: {why}."
    return f"It is {than} a constant by the {score.name}, but better by the {judged_by.name}."
