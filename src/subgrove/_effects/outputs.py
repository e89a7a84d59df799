"""Which of the model's outputs have curves: the second of two classes, each of several, or the one asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from subgrove._core.kinds import Floats
from subgrove._core.text import quote
from subgrove._models.predictor import Predictions, Predictor, is_classifier, read_model, response_for
from subgrove.exceptions import ModelError, ParameterError


def model_for_effect(model: Any, response: str | None) -> Predictor:
    """The model, asked for probabilities if it can give them, else for what `predict` gives."""
    if response is not None:
        return read_model(model, response_for((), response))
    probabilities = is_classifier(model) and hasattr(model, "predict_proba")
    return read_model(model, "probability" if probabilities else "value")


@dataclass(frozen=True)
class ModelOutputs:
    """What is taken from an answer of the model.

    Attributes
    ----------
    classes : tuple
        Labels of the classes; one tuple for each output if there are several.
    method : str
        What the model is asked for.
    wanted : object
        Label or number of the output that the user asked for; None for all that have a curve.
    """

    classes: tuple[Any, ...]
    method: str
    wanted: Any = None

    @classmethod
    def of(cls, model: Predictor, wanted: Any) -> ModelOutputs:
        """The outputs of a model; refuses an output that it certainly does not have."""
        outputs = cls(model.classes, model.method, wanted)
        if wanted is not None and model.method == "predict_proba" and model.classes:
            outputs._place(outputs.labels(outputs._n_classes()))
        return outputs

    def labels(self, n_outputs: int) -> tuple[Any, ...]:
        """What each column of an answer is called: by class if it has one, else by number."""
        if self.method in ("predict_proba", "decision_function") and self._n_classes() == n_outputs:
            if self._is_nested():
                return tuple(f"{at}: {label}" for at, some in enumerate(self.classes) for label in some)
            return self.classes
        return tuple(range(n_outputs))

    def chosen(self, n_outputs: int) -> tuple[tuple[Any, ...], list[int]]:
        """Labels and columns of the outputs that have a curve."""
        labels = self.labels(n_outputs)
        if self.wanted is not None:
            columns = [self._place(labels)]
        elif self.method == "predict_proba" and n_outputs == 2 and not self._is_nested():
            columns = [1]
        else:
            columns = list(range(n_outputs))
        return tuple(labels[column] for column in columns), columns

    def told(self, n_chosen: int) -> tuple[Any, ...]:
        """Labels of the outputs that have a curve, if all that is known of answers is how many these are."""
        by_class = self.method == "predict_proba" or self._n_classes() > 2
        n_outputs = self._n_classes() if by_class and self.method != "predict" else 0
        if self.wanted is not None and not n_outputs:
            return (self.wanted,)
        labels, _ = self.chosen(n_outputs or n_chosen)
        return labels if len(labels) == n_chosen else self.chosen(n_chosen)[0]

    def numbers(self, answer: Predictions, about: Callable[[], str]) -> Floats:
        """An answer as numbers: (rows, outputs that have a curve)."""
        if answer.dtype.kind not in "iufb":
            try:
                answer = answer.astype(np.float64)
            except (TypeError, ValueError):
                raise ModelError(
                    f"{self.method} gave {answer.dtype} ({about()}), such as {answer.ravel()[0]!r}; an effect is a "
                    f"mean of numbers. Pass response_method='predict_proba' or 'decision_function', or a function."
                ) from None
        table = answer.reshape(len(answer), -1)
        _, columns = self.chosen(table.shape[1])
        picked = table if len(columns) == table.shape[1] else table[:, columns]
        return np.asarray(picked, dtype=np.float64)

    def _is_nested(self) -> bool:
        return bool(self.classes) and isinstance(self.classes[0], tuple)

    def _n_classes(self) -> int:
        return sum(map(len, self.classes)) if self._is_nested() else len(self.classes)

    def _place(self, labels: tuple[Any, ...]) -> int:
        """Column of the output asked for: its label first, then its number."""
        for at, label in enumerate(labels):
            if label == self.wanted and isinstance(label, bool) == isinstance(self.wanted, bool):
                return at
        whole = isinstance(self.wanted, int | np.integer) and not isinstance(self.wanted, bool)
        if whole and 0 <= self.wanted < len(labels):
            return int(self.wanted)
        raise ParameterError(
            f"output={self.wanted!r} is not an output of the model. Its outputs: {quote(labels[:20])}; "
            f"give one of these, or its number from 0 to {len(labels) - 1}."
        )
