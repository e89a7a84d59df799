"""The outputs of a model with a curve: the second of two classes, all of several, or the user's choice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from subgrove._core.kinds import Floats
from subgrove._core.text import quote
from subgrove._models.predictor import Predictions, Predictor, is_classifier, read_model, response_for
from subgrove.exceptions import ModelError, ParameterError


def model_for_effect(model: Any, response_method: str | None) -> Predictor:
    """Return a predictor of probabilities if the model has them, otherwise of `predict`."""
    if response_method is not None:
        return read_model(model, response_for((), response_method))
    probabilities = is_classifier(model) and hasattr(model, "predict_proba")
    return read_model(model, "probability" if probabilities else "value")


@dataclass(frozen=True)
class ModelOutputs:
    """Selection of the columns of predictions.

    Attributes
    ----------
    classes : tuple
        Labels of the classes; one tuple for each output if there are several.
    method : str
        Method of the model.
    wanted : object
        Label or number of the selected output; None for all with a curve.
    """

    classes: tuple[Any, ...]
    method: str
    wanted: Any = None

    @classmethod
    def of(cls, model: Predictor, wanted: Any) -> ModelOutputs:
        """Return the outputs of a model; raises for an unknown class."""
        outputs = cls(model.classes, model.method, wanted)
        if wanted is not None and model.method == "predict_proba" and model.classes:
            outputs._place(outputs.labels(outputs._n_classes()))
        return outputs

    def labels(self, n_outputs: int) -> tuple[Any, ...]:
        """Return the label of each column of predictions: its class if known, otherwise its number."""
        if self.method in ("predict_proba", "decision_function") and self._n_classes() == n_outputs:
            if self._is_nested():
                return tuple(f"{at}: {label}" for at, some in enumerate(self.classes) for label in some)
            return self.classes
        return tuple(range(n_outputs))

    def selected(self, n_outputs: int) -> tuple[tuple[Any, ...], list[int]]:
        """Return labels and columns of the outputs with a curve."""
        labels = self.labels(n_outputs)
        if self.wanted is not None:
            columns = [self._place(labels)]
        elif self.method == "predict_proba" and n_outputs == 2 and not self._is_nested():
            columns = [1]
        else:
            columns = list(range(n_outputs))
        return tuple(labels[column] for column in columns), columns

    def labels_of_selected(self, n_selected: int) -> tuple[Any, ...]:
        """Return labels of the outputs with a curve, from their number alone."""
        by_class = self.method == "predict_proba" or self._n_classes() > 2
        n_outputs = self._n_classes() if by_class and self.method != "predict" else 0
        if self.wanted is not None and not n_outputs:
            return (self.wanted,)
        labels, _ = self.selected(n_outputs or n_selected)
        return labels if len(labels) == n_selected else self.selected(n_selected)[0]

    def numbers(self, predictions: Predictions, about: Callable[[], str]) -> Floats:
        """Return predictions of the outputs with a curve: (rows, outputs)."""
        if predictions.dtype.kind not in "iufb":
            try:
                predictions = predictions.astype(np.float64)
            except (TypeError, ValueError):
                raise ModelError(
                    f"{self.method} returned {predictions.dtype} ({about()}), such as {predictions.ravel()[0]!r}, but "
                    f"effects need numbers. Pass response_method='predict_proba' or 'decision_function', or a function."
                ) from None
        table = predictions.reshape(len(predictions), -1)
        _, columns = self.selected(table.shape[1])
        picked = table if len(columns) == table.shape[1] else table[:, columns]
        return np.asarray(picked, dtype=np.float64)

    def _is_nested(self) -> bool:
        return bool(self.classes) and isinstance(self.classes[0], tuple)

    def _n_classes(self) -> int:
        return sum(map(len, self.classes)) if self._is_nested() else len(self.classes)

    def _place(self, labels: tuple[Any, ...]) -> int:
        """Return the column of the selected output, by its label or else by its number."""
        for at, label in enumerate(labels):
            if label == self.wanted and isinstance(label, bool) == isinstance(self.wanted, bool):
                return at
        whole = isinstance(self.wanted, int | np.integer) and not isinstance(self.wanted, bool)
        if whole and 0 <= self.wanted < len(labels):
            return int(self.wanted)
        raise ParameterError(
            f"output={self.wanted!r} is not an output of the model. Its outputs: {quote(labels[:20])}; "
            f"pass one of these, or its number from 0 to {len(labels) - 1}."
        )
