"""Predictions by class: confusion matrix, balanced accuracy, and precision and recall of rare classes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from subgrove._core.kinds import Floats
from subgrove._core.text import count_of, listed, number, percent
from subgrove._models.predictor import Predictions, read_target
from subgrove._report.inputs import ReportInputs
from subgrove._report.model_summary import ClassSummary, ConfusionSummary, Score
from subgrove._scoring.row_losses import ALL, RowLosses, describe_baseline_row
from subgrove.losses import get

RARE = 0.2
"""Share of the test rows below which a class is rare, if it also has less than half of an equal share."""
_MOST_CLASSES, _MOST_CONFUSIONS, _MOST_NAMED = 50, 10, 3
_CURVE_POINTS = 60
Codes = npt.NDArray[np.intp]


@dataclass(frozen=True)
class ClassResults:
    """What a report has on classes, besides the scores of each row."""

    scores: tuple[Score, ...] = ()
    sentences: tuple[str, ...] = ()
    per_class: tuple[ClassSummary, ...] = ()
    confusion: tuple[tuple[int, ...], ...] = ()
    confusions: tuple[ConfusionSummary, ...] = ()


def class_results(inputs: ReportInputs, predictions: Predictions) -> ClassResults:
    """Return the results by class; all classes are counted, the most frequent are listed."""
    # a loss of the user's own does not need classes, and a model may have none
    classes = inputs.classes or tuple(np.unique(np.concatenate([one.raw for one in inputs.targets])).tolist())
    true, predicted = _codes(inputs, predictions, classes)
    labels, n = [str(label) for label in classes], len(classes)
    pairs = true * (n + 1) + predicted
    kinds = (true[true == predicted], true, predicted)
    right, of_true, of_predicted = (np.bincount(codes, minlength=n)[:n] for codes in kinds)
    of_class = predictions
    if inputs.probabilities and predictions.ndim == 1:
        of_class = np.column_stack([1 - predictions, predictions])
    summaries = []
    for at in np.sort(np.argsort(-of_true, kind="stable")[:_MOST_CLASSES]).tolist():
        rare = bool(0 < of_true[at] < min(RARE, 0.5 / n) * len(true))
        curve, average = _precision_recall(true == at, of_class[:, at]) if inputs.probabilities else ((), None)
        precision, recall = (float(right[at] / of[at]) if of[at] else None for of in (of_predicted, of_true))
        counts = int(of_true[at]), int(of_predicted[at])
        summaries.append(ClassSummary(labels[at], *counts, precision, recall, average, rare, curve if rare else ()))
    wrong = Counter(np.sort(pairs[(true != predicted) & (predicted < n)]).tolist()).most_common(_MOST_CONFUSIONS)
    confusions = tuple(ConfusionSummary(labels[at // (n + 1)], labels[at % (n + 1)], times) for at, times in wrong)
    matrix: list[list[int]] = []
    if n <= _MOST_CLASSES:
        matrix = np.bincount(pairs, minlength=n * (n + 1)).reshape(n, n + 1)[:, :n].tolist()
    balanced = _balanced_accuracy(right[of_true > 0], of_true[of_true > 0])
    sentences = tuple(_sentences(float(right.sum() / len(true)), balanced, summaries, len(true), n))
    return ClassResults((balanced,), sentences, tuple(summaries), tuple(map(tuple, matrix)), confusions)


def _codes(inputs: ReportInputs, predictions: Predictions, classes: tuple[Any, ...]) -> tuple[Codes, Codes]:
    """Return the positions of true and predicted classes; a label that is no class is after the last."""
    loss = (get("zero_one"),)
    target = read_target(inputs.test.y, inputs.test.n, classes, loss, probabilities=inputs.probabilities)
    scoring = RowLosses(loss, target, inputs.probabilities).settled(predictions)
    true, predicted = scoring.labels(predictions, ALL, describe_baseline_row)
    if inputs.probabilities:
        return np.asarray(true, dtype=np.intp), np.asarray(predicted, dtype=np.intp)
    place = {label: at for at, label in enumerate(classes)}
    first, second = ([place.get(label, len(place)) for label in one.tolist()] for one in (true, np.asarray(predicted)))
    return np.array(first, dtype=np.intp), np.array(second, dtype=np.intp)


def _balanced_accuracy(right: Codes, n: Codes) -> Score:
    """Return the mean recall of classes that have rows; its standard error is that of independent classes."""
    recalls, chance = right / n, 1 / len(n)
    error = np.sqrt((recalls * (1 - recalls) / np.maximum(n - 1, 1)).sum()) / len(n) if (n > 1).all() else None
    value = float(recalls.mean())
    skill = None if chance == 1 else (value - chance) / (1 - chance)
    return Score("balanced accuracy", value, None if error is None else float(error), chance, skill)


def _precision_recall(
    of_class: npt.NDArray[np.bool_], probability: Floats
) -> tuple[tuple[tuple[float, float], ...], float | None]:
    """Return points of recall and precision, and the average precision; nothing if one value occurs."""
    if of_class.all() or not of_class.any():
        return (), None
    from sklearn.metrics import precision_recall_curve

    precision, recall, _ = precision_recall_curve(of_class, probability)
    precision, recall = precision[:-1][::-1], recall[:-1][::-1]  # without the point that no threshold has
    average = float((np.diff(recall, prepend=0.0) * precision).sum())
    some = np.unique(np.linspace(0, len(recall) - 1, _CURVE_POINTS).round().astype(int))
    return tuple((float(recall[at]), float(precision[at])) for at in some), average


def _sentences(accuracy: float, balanced: Score, classes: list[ClassSummary], n: int, n_classes: int) -> Iterator[str]:
    found = f"{number(balanced.value)} ({number(balanced.constant or 0.0)} for a constant prediction)"
    yield f"Accuracy is {number(accuracy)}; balanced accuracy, the mean recall of the classes, is {found}."
    rare = sorted((one for one in classes if one.rare), key=lambda one: one.n)
    for one in rare[:_MOST_NAMED]:
        parts = [f"recall {percent(one.recall or 0.0)}"]
        parts.append("never predicted" if one.precision is None else f"precision {percent(one.precision)}")
        if one.average_precision is not None:
            parts.append(f"average precision {number(one.average_precision)}, by chance {number(one.n / n)}")
        share = f"{count_of(one.n, 'test row')}, {percent(one.n / n)}"
        yield f"The class {one.label} is rare ({share}): {'; '.join(parts)}."
    if len(rare) > _MOST_NAMED:
        yield f"{len(rare)} classes are rare: {listed([one.label for one in rare])}."
    if n_classes > _MOST_CLASSES:
        yield f"Of {n_classes} classes, the {_MOST_CLASSES} most frequent are listed."
