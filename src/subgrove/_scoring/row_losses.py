"""`RowLosses`: losses of predictions, for all losses and rows at once; `PredictionShifts`: how predictions change.

Losses show whether predictions got worse, not how they changed. For the doubly robust test of conditional independence
each row also has the mean shift of its predictions over resamples, and the Monte-Carlo variance of that mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from subgrove._core.kinds import Floats
from subgrove._core.text import quote
from subgrove._core.validate import warn
from subgrove._data.replace_columns import Rows
from subgrove._models.predictor import About, Predictions, Target
from subgrove.exceptions import ModelError, ParameterError
from subgrove.losses import Loss, from_metric


def describe_baseline_row(row: int | None, start: int = 0) -> str:
    """Describe a baseline row in error messages; `start` is the number of the first row of a batch."""
    return "original rows" if row is None else f"original row {start + row}"


RowIndex = slice | npt.NDArray[np.intp]
ALL = slice(None)
_REVERSED = 4.0  # standard errors below which probabilities are taken to be of the other class
_ROUNDING = 1e-6  # how far beyond 0 and 1 a probability may be
_ROUNDED_SUM = 0.05  # how far from 1 the sum of probabilities may be, of which some models give two decimals only


def constant_predictions(
    loss: Loss, trained: Target, n: int | None = None, *, probabilities: bool
) -> npt.NDArray[Any] | None:
    """Return the best constant prediction of rows, n times (once for each row by default); None if it is unknown."""
    n = len(trained) if n is None else n
    if np.ndim(trained.raw) > 1:
        return None
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


@dataclass(frozen=True, eq=False)
class RowLosses:
    """Losses of predictions.

    Attributes
    ----------
    losses : tuple of Loss
        Which losses.
    target : Target
        y.
    probabilities : bool
        Whether the model predicts probabilities.
    predicted_classes : array or None
        Classes of y, if a function gives their probabilities where labels are compared.
    """

    losses: tuple[Loss, ...]
    target: Target
    probabilities: bool
    predicted_classes: npt.NDArray[Any] | None = None

    @cached_property
    def per_row(self) -> tuple[int, ...]:
        """Positions of the losses that have a value for each row."""
        return tuple(at for at, loss in enumerate(self.losses) if loss.per_row)

    def rows(self, predictions: Predictions, rows: RowIndex, about: About) -> Floats:
        """Return losses of some rows: (number of losses, number of rows); NaN for scores."""
        lines = []
        for loss in self.losses:
            if not loss.per_row:
                lines.append(np.full(len(predictions), np.nan))
                continue
            lines.append(self._finite(loss, self._value(loss, predictions, rows, about), len(predictions), about))
        return lines[0][None, :] if len(lines) == 1 else np.array(lines)

    def whole(self, predictions: Predictions, about: About) -> Floats:
        """Return scores of all rows together; NaN for losses that have a value for each row."""
        values = np.full(len(self.losses), np.nan)
        for at, loss in enumerate(self.losses):
            if not loss.per_row:
                values[at] = float(self._value(loss, predictions, ALL, about))
                if not np.isfinite(values[at]):
                    raise ModelError(f"loss {loss.name!r} is {values[at]} for the predictions ({about(None)}).")
        return values

    def of_constants(self, weights: Floats | None) -> dict[str, float]:
        """Return the mean loss of the best constant prediction of these rows, of losses for which it is known."""
        found = {}
        for loss in self.losses:
            constant = constant_predictions(loss, self.target, probabilities=self.probabilities)
            if constant is not None and loss.per_row and len(constant):
                own = replace(self, losses=(loss,), predicted_classes=None).rows(constant, ALL, describe_baseline_row)
                found[loss.name] = float(weighted_mean(own, weights)[0])
        return found

    def settled(self, predictions: Predictions) -> RowLosses:
        """Return the same with user functions that return one number for all rows as scores."""
        losses = []
        for loss in self.losses:
            if loss.per_row and loss.response_method == "any":
                loss = _with_form(loss, self._value(loss, predictions, ALL, describe_baseline_row), len(predictions))
            losses.append(loss)
        if any(loss.response_method == "probability" for loss in losses):
            _warn_of_other_class(predictions, self.target)
        by_label = not self.probabilities and any(loss.response_method == "label" for loss in losses)
        classes = _predicted_classes(predictions, self.target.raw) if by_label else None
        return replace(self, losses=tuple(losses), predicted_classes=classes)

    def _value(self, loss: Loss, predictions: Predictions, rows: RowIndex, about: About) -> Any:
        """Return a loss of some rows; for probabilities of several outputs the mean over outputs."""
        y, prediction = self._pair(loss, predictions, rows, about)
        try:
            if loss.response_method == "probability" and _several(self.target):
                parts = enumerate(_split(prediction, self.target))
                return np.mean([loss.function(y[:, k], part) for k, part in parts], axis=0)
            return loss.function(y, prediction)
        except Exception as error:
            error.add_note(f"This happened in loss {loss.name!r} ({about(None)}).")
            raise

    def _pair(self, loss: Loss, predictions: Predictions, rows: RowIndex, about: About) -> tuple[Any, Any]:
        """Return y of these rows and the predictions in the form that a loss needs."""
        target = self.target
        if loss.response_method == "value":
            assert target.numbers is not None
            y = target.numbers[rows]
            predictions = _numbers(predictions, loss, about)
            if predictions.shape != y.shape:
                probabilities = predictions.ndim > y.ndim
                remedy = " Pass the classifier itself, or loss='log_loss', if they are probabilities." * probabilities
                raise ModelError(
                    f"The model gave predictions of shape {predictions.shape} where y has {y.shape} ({about(None)})."
                    f"{remedy}"
                )
            return y, predictions
        if loss.response_method == "probability":
            assert target.codes is not None
            return target.codes[rows], _summing_to_one(_probabilities(predictions, target, about), target, about)
        if loss.response_method == "label":
            return self.labels(predictions, rows, about)
        return target.raw[rows], predictions

    def labels(self, predictions: Predictions, rows: RowIndex, about: About) -> tuple[Any, Any]:
        """Return y of some rows and the predicted classes; both as codes if the model predicts probabilities."""
        if self.predicted_classes is not None:
            second = predictions > 0.5 if predictions.ndim == 1 else predictions.argmax(axis=1)
            return self.target.raw[rows], self.predicted_classes[np.asarray(second, dtype=np.intp)]
        if not self.probabilities:
            return self.target.raw[rows], predictions
        assert self.target.codes is not None
        parts = _split(_probabilities(predictions, self.target, about), self.target)
        labels = np.column_stack([part.argmax(axis=1) for part in parts])
        return self.target.codes[rows], labels[:, 0] if len(parts) == 1 else labels

    @staticmethod
    def _finite(loss: Loss, values: Any, n_rows: int, about: About) -> Floats:
        try:
            given = np.asarray(np.ma.filled(values, np.nan) if np.ma.is_masked(values) else values, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ParameterError(
                f"loss {loss.name!r} gave values that are not numbers: {error}. It must give one number for each row."
            ) from error
        if given.base is not None or not given.flags.owndata:
            given = given.copy()  # it is written to below, and may be a part of y
        if given.shape != (n_rows,):
            raise ParameterError(
                f"loss {loss.name!r} gave values of shape {given.shape} for {n_rows} rows. It must give one number for "
                f"each row; a metric of all rows together goes through subgrove.losses.from_metric."
            )
        if not np.isfinite(given.sum()) and not np.isfinite(given).all():
            row = int(np.flatnonzero(~np.isfinite(given))[0])
            raise ModelError(
                f"loss {loss.name!r} is {given[row]} ({about(row)}): it is not defined for such a prediction. "
                f"Choose another loss, or look at the model's predictions."
            )
        return given


def _predicted_classes(predictions: Predictions, y: npt.NDArray[Any]) -> npt.NDArray[Any] | None:
    """Return the classes of y if predictions are probabilities, as functions may give; None if they are labels."""
    if y.ndim != 1 or predictions.dtype.kind != "f" or predictions.ndim > 2:
        return None
    classes = np.unique(y)
    is_label = np.isin(predictions, classes.astype(np.float64)) if classes.dtype.kind in "iufb" else np.array([False])
    if is_label.all():
        return None
    one_column = predictions.ndim == 1 and len(classes) <= 2
    in_range = predictions.min() >= -_ROUNDING and predictions.max() <= 1 + _ROUNDING
    if in_range and len(classes) > 1 and (one_column or predictions.shape[1:] == classes.shape):
        return classes
    if not is_label.any():
        raise ModelError(
            f"A loss of labels compares predictions with y, whose labels are {quote(classes[:5].tolist())}, but the "
            f"model gave {predictions.ravel()[0]:.4g}. Pass a model or function that gives labels, or probabilities."
        )
    return None


def _warn_of_other_class(predictions: Predictions, target: Target) -> None:
    """Warn if single probabilities are significantly lower for the class that they are taken to be of."""
    if predictions.ndim != 1 or predictions.dtype.kind not in "iufb" or target.codes is None or target.codes.ndim != 1:
        return
    first, second = (predictions[target.codes == code] for code in (0, 1))
    if min(len(first), len(second)) < 2:
        return
    error = np.sqrt(first.var(ddof=1) / len(first) + second.var(ddof=1) / len(second))
    if second.mean() - first.mean() < -_REVERSED * error - _ROUNDING:
        other, name = (quote([str(label)]) for label in target.classes)
        warn(
            f"The model gives one number a row, which is taken as the probability of {name}, the second class in "
            f"sorted order; it is lower in rows of {name} than in rows of {other}. If it is that of {other}, pass a "
            "function that gives 1 minus it."
        )


def _with_form(loss: Loss, values: Any, n_rows: int) -> Loss:
    """A function that gave a single number is a score; by scikit-learn's naming, `..._score` means more is better."""
    if np.ndim(values) != 0 or n_rows == 1:
        return loss
    more_is_better = loss.name.endswith("_score")
    if not more_is_better and not loss.name.endswith(("_error", "_loss", "_deviance")):
        warn(
            f"loss {loss.name!r} gives one number for all rows and is taken as a loss: less is better. If more is "
            f"better, pass subgrove.losses.from_metric({loss.name}); if less is, with greater_is_better=False."
        )
    return from_metric(loss.function, name=loss.name, greater_is_better=more_is_better)


def _numbers(predictions: Predictions, loss: Loss, about: About) -> Predictions:
    if predictions.dtype.kind in "iufb":
        return predictions
    try:
        if predictions.dtype == object:
            return predictions.astype(np.float64)
    except (TypeError, ValueError):
        pass
    raise ModelError(
        f"loss {loss.name!r} compares numbers, but the model predicts {predictions.ravel().tolist()[0]!r} "
        f"({about(None)}). "
        f"For classes use loss='log_loss' or 'zero_one'."
    )


def _probabilities(predictions: Predictions, target: Target, about: About) -> Floats:
    if predictions.dtype.kind not in "iufb":
        raise ModelError(
            f"The model predicts {predictions.ravel().tolist()[0]!r} where probabilities are needed ({about(None)}). "
            f"Pass the classifier itself, or loss='zero_one' for labels."
        )
    if predictions.ndim == 1:
        predictions = np.column_stack([1.0 - predictions, predictions])
    expected = sum(len(part) for part in target.classes) if _several(target) else len(target.classes)
    if predictions.shape[1] != expected:
        raise ModelError(
            f"The model gave {predictions.shape[1]} probabilities a row for {expected} classes ({about(None)}). "
            f"There must be one for each class."
        )
    if predictions.size and (predictions.min() < -_ROUNDING or predictions.max() > 1 + _ROUNDING):
        raise ModelError(
            f"The model gave values from {predictions.min():.4g} to {predictions.max():.4g} where probabilities are "
            f"needed ({about(None)}). Pass a model or function that gives probabilities, or choose another loss."
        )
    return predictions


def _summing_to_one(probabilities: Floats, target: Target, about: About) -> Floats:
    for part in _split(probabilities, target):
        sums = part.sum(axis=1)
        if sums.size and np.abs(sums - 1).max() > _ROUNDED_SUM:
            raise ModelError(
                f"The model gave probabilities that sum to {sums[np.abs(sums - 1).argmax()]:.4g} in a row "
                f"({about(None)}). They must sum to 1: divide them by their sum, or use loss='zero_one'."
            )
    return probabilities


def _several(target: Target) -> bool:
    return target.raw.ndim == 2


def _split(probabilities: Floats, target: Target) -> list[Floats]:
    """Probabilities of each output."""
    if not _several(target):
        return [probabilities]
    ends = np.cumsum([len(part) for part in target.classes])[:-1]
    return np.split(probabilities, ends, axis=1)


def weighted_mean(values: Floats, weights: Floats | None) -> Floats:
    """Mean over the last axis."""
    mean: Floats = values.mean(axis=-1) if weights is None else (values @ weights) / weights.sum()
    return mean


def names_of(losses: Sequence[Loss]) -> tuple[str, ...]:
    """Names of losses."""
    return tuple(loss.name for loss in losses)


def predictions_and_residuals(
    predictions: Predictions, target: Target, *, probabilities: bool
) -> tuple[Floats | None, Floats | None]:
    """Return baseline predictions and residuals, both (n, K); None if predictions are not numbers.

    For two classes the probability of the second is sufficient.
    """
    if predictions.dtype.kind not in "iufb":
        return None, None
    baseline = np.array(predictions.reshape(len(predictions), -1), dtype=np.float64)
    if probabilities and baseline.shape[1] == 2:
        baseline = baseline[:, 1:].copy()
    observed = _indicators(target, baseline) if probabilities else _target_numbers(target)
    if observed is None or observed.shape != baseline.shape:
        return None, None
    return baseline, observed - baseline


def _target_numbers(target: Target) -> Floats | None:
    values: npt.NDArray[Any] | None = target.numbers
    if values is None and target.raw.dtype.kind in "iufb":
        values = target.raw
    return None if values is None else np.asarray(values, dtype=np.float64).reshape(len(values), -1)


def _indicators(target: Target, baseline: Floats) -> Floats | None:
    """Return one-hot classes; for two classes the second column only."""
    if target.codes is None or target.codes.ndim != 1:
        return None
    if baseline.shape[1] == 1:
        return np.asarray(target.codes[:, None] == 1, dtype=np.float64)
    return np.asarray(target.codes[:, None] == np.arange(baseline.shape[1]), dtype=np.float64)


class PredictionShifts:
    """Sums over resamples of the shifts of the predictions of each row, and of their squares.

    Parameters
    ----------
    baseline : float array (n, K)
        Baseline predictions.
    """

    def __init__(self, baseline: Floats) -> None:
        self.baseline = baseline
        self.sums = np.zeros(baseline.shape)
        self.squares = np.zeros(baseline.shape)

    def add(self, predictions: Predictions, rows: Rows | None, weights: Floats | None) -> None:
        """Add predictions of one resample, or with `weights` of one value of an exact expectation."""
        where: Any = slice(None) if rows is None else rows
        moved = predictions.reshape(len(predictions), -1)[:, -self.baseline.shape[1] :] - self.baseline[where]
        if weights is not None:
            self.sums[where] += moved * weights[:, None]
            return
        self.sums[where] += moved
        self.squares[where] += moved * moved

    def means(self, n_repeats: int, drawn: Floats, exact: npt.NDArray[np.bool_] | None) -> tuple[Floats, Floats]:
        """Return the mean shift of each row and its Monte-Carlo variance; `drawn` is a factor of the variance."""
        times: Any = float(n_repeats)
        if exact is not None:
            times = np.where(exact, 1.0, times)[:, None]
        means = self.sums / times
        if n_repeats < 2:
            variance = np.full(means.shape, np.nan)
        else:
            spread = self.squares - n_repeats * means**2
            variance = np.maximum(spread, 0.0) / (n_repeats - 1) / n_repeats * drawn.reshape(-1, 1)
        if exact is not None:
            variance[exact] = 0.0
        return means, variance
