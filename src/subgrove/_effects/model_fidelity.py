"""Model fidelity: how well an effect curve alone approximates the model (Equation 9 of the paper), and its result."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from subgrove import losses as known_losses
from subgrove._core.html_views import ResultView
from subgrove._core.kinds import Floats, Rows
from subgrove._core.text import TOGETHER, quote
from subgrove._core.validate import reject_another_index
from subgrove._core.weights import read_weights
from subgrove._data.from_containers import names_and_rows
from subgrove._data.replace_columns import Frames
from subgrove._data.to_containers import Backend, as_count, backend_of, make_table
from subgrove._effects import predict
from subgrove._effects.result import Effect
from subgrove._models.predictor import Predictions, Predictor, Target, read_target
from subgrove.exceptions import InputError, ParameterError


@dataclass(frozen=True)
class CurveLoss:
    """Mean squared difference of one curve from the model or the target.

    Attributes
    ----------
    feature : str
        The feature of the curve; two are joined by " + ".
    method : str
        Name of the method.
    subgroups : int
        Number of subgroups; 1 without subgroups.
    output : object
        Class or number of the model's output.
    against : {"prediction", "target"}
        Reference of the comparison.
    n : float
        Number of rows (sum of weights).
    estimate, std_error : float
        Mean squared difference, and its standard error over rows.
    off_curve : float
        Number of rows without a value on the curve, which get the mean prediction.
    """

    feature: str
    method: str
    subgroups: int
    output: Any
    against: str
    n: float
    estimate: float
    std_error: float
    off_curve: float


@dataclass(frozen=True, repr=False)
class ModelFidelity(ResultView):
    """Differences between effect curves and the model, as returned by `ModelFidelity.compute`.

    Tables are frames of the same library as X, pandas for arrays. Reading them makes no predictions.

    Attributes
    ----------
    losses : tuple of CurveLoss
        Data of the tables.
    n_rows_predicted, n_calls : int
        Number of predicted rows, and of calls of the model.
    backend : str
        Library of the tables.
    table : table
        A row for each curve, output and reference: `feature`, `method`, `subgroups`, `output` (if there
        are several), `against`, `n`, `estimate`, `std_error`, `off_curve`.
    overall : table
        A row for each method: `estimate` is the mean over its features, `median` the median, as in the paper.

    Examples
    --------
    >>> import subgrove as sg
    >>> train, test = sg.datasets.bike(split=0.7, random_state=1)
    >>> model = lambda X: 100 * X["temp"]
    >>> curve = sg.effect(model, train.X, "temp")
    >>> fid = sg.ModelFidelity.compute(model, test.X, {"pdp": curve})
    >>> fid.overall["method"].tolist(), fid.n_rows_predicted
    (['pdp'], 219)
    """

    _tables = ("table", "overall")

    losses: tuple[CurveLoss, ...]
    n_rows_predicted: int
    n_calls: int
    backend: Backend

    @classmethod
    def compute(
        cls,
        model: Any,
        X: Any,
        effects: Effect | Sequence[Effect] | Mapping[str, Effect | Sequence[Effect]],
        *,
        y: Any = None,
        response_method: str | None = None,
        sample_weight: Any = None,
    ) -> ModelFidelity:
        """Measure how well effect curves alone approximate the model: the mean squared difference of the two.

        For each row, the curve is evaluated at the row's value of the feature, i.e. it is the prediction from the curve
        alone. Smaller is better.

        Parameters
        ----------
        model : object with predict or predict_proba, or function
            The model of the curves.
        X : pandas or polars frame, pyarrow table or 2-d array
            Rows to compare at, preferably other rows than those of the curves. Each is predicted once, for any number
            of curves.
        effects : Effect, list of Effect, or mapping
            Results of `effect`. A mapping from names to effects, or to lists of effects, names the methods in the
            tables.
        y : column, optional
            The target. If passed, curves are compared with it as well, as in the table of the paper. For a class, it is
            the indicator of the class.
        response_method : {"predict", "predict_proba", "decision_function"}, optional
            Method of the model; the same as for the effects.
        sample_weight : 1-d array, optional
            Sample weights.

        Returns
        -------
        ModelFidelity
            `table` has a row for each curve, `overall` one for each method.

        Notes
        -----
        How to read it: one feature seldom explains much of a prediction, so values are far from 0. Compare methods, and
        compare with the variance of the predictions, the value of a constant curve. Against the target, the noise of
        the target is added to all methods. A method with several curves per feature, such as PDPs in subgroups, is
        expected to be closer than one with a single curve, since it also uses the subgroup.

        Curves are linear between their points and constant beyond the ends; levels have their own values. With
        subgroups, each row uses the curve of its subgroup. Curves of kind "ale" have mean 0, so the mean prediction of
        the rows of X (within the subgroup) is added. A row without a value on a curve, because the feature is missing,
        has a level without a value, or the subgroup has no curve, gets the mean prediction of X, so that all methods
        are compared on the same rows; the column `off_curve` counts these rows.

        `std_error` is that of a mean over independent rows.

        Examples
        --------
        >>> import subgrove as sg
        >>> train, test = sg.datasets.bike(split=0.7, random_state=1)
        >>> groups = sg.find_subgroups(train.X, features="temp")
        >>> def model(X):
        ...     return 100 * X["temp"] - 2 * X["hum"] + 900 * (X["season"] == "SUMMER")
        >>> effects = {
        ...     "PDP": sg.effect(model, train.X, "temp", subgroups=None),
        ...     "ALE": sg.effect(model, train.X, "temp", kind="ale"),
        ...     "cs-PDP": sg.effect(model, train.X, "temp", subgroups=groups["temp"]),
        ... }
        >>> fid = sg.ModelFidelity.compute(model, test.X, effects)
        >>> fid.table[["feature", "method", "subgroups", "n", "estimate"]].round(1)
          feature  method  subgroups    n  estimate
        0    temp     PDP          1  219  147621.2
        1    temp     ALE          1  219  151285.5
        2    temp  cs-PDP          4  219    1669.0
        """
        curves = list(_named_effects(effects))
        names, n_rows = names_and_rows(X)
        if not n_rows:
            raise InputError("X has no rows. Pass at least one.")
        reject_another_index(X, sample_weight=sample_weight)
        weights = read_weights(sample_weight, n_rows)
        predictor = predict.model_for_effect(model, response_method)
        frames, size = Frames(X, ()), predict.batch_rows(len(names))
        predictions = predict.predict_in_batches(predictor, frames, {}, "unchanged rows", size)
        outputs = predict.ModelOutputs.of(predictor, None)
        labels = outputs.labels(1 if predictions.ndim == 1 else predictions.shape[1])
        numbers = _numbers(predictions, predictor.method)
        targets = None if y is None else _read_targets(y, X, predictor, labels)
        losses: list[CurveLoss] = []
        for method, effect in curves:
            columns = [_column_of(label, labels, effect) for label in effect.outputs]
            against = {"prediction": numbers[:, columns]}
            if targets is not None:
                against["target"] = targets[:, columns]
            losses += _losses_of(effect, method, X, against, weights)
        # Losses against the prediction come first, so that methods can be compared line by line.
        ordered = tuple(sorted(losses, key=lambda loss: loss.against))
        return cls(ordered, predictor.n_rows, predictor.n_calls, backend_of(X))

    @property
    def table(self) -> Any:
        """Mean squared difference of each curve, with its standard error."""
        columns = {each.name: [getattr(loss, each.name) for loss in self.losses] for each in fields(CurveLoss)}
        if not self._several_outputs:
            del columns["output"]
        columns |= {name: [*map(as_count, columns[name])] for name in ("n", "off_curve")}
        return make_table(self.backend, columns)

    @property
    def overall(self) -> Any:
        """Mean and median over the features of each method."""
        by_method: dict[tuple[str, str], list[float]] = {}
        for loss in self.losses:
            by_method.setdefault((loss.against, loss.method), []).append(loss.estimate)
        columns = {
            "method": [method for _, method in by_method],
            "against": [against for against, _ in by_method],
            "curves": [len(values) for values in by_method.values()],
            "estimate": [float(np.mean(values)) for values in by_method.values()],
            "median": [float(np.median(values)) for values in by_method.values()],
        }
        return make_table(self.backend, columns)

    def __repr__(self) -> str:
        against = " and ".join(dict.fromkeys(loss.against for loss in self.losses))
        return f"<ModelFidelity of {self._n_curves} curve{'s' * (self._n_curves != 1)}: against {against}>"

    @property
    def _several_outputs(self) -> bool:
        return len({repr(loss.output) for loss in self.losses}) > 1

    @property
    def _n_curves(self) -> int:
        return len({(loss.feature, loss.method, repr(loss.output)) for loss in self.losses})


def _named_effects(effects: Any) -> Iterator[tuple[str, Effect]]:
    """Yield each effect with the name of its method."""
    pairs = effects.items() if isinstance(effects, Mapping) else [(None, effects)]
    named = [(name, one) for name, some in pairs for one in (some if isinstance(some, list | tuple) else [some])]
    if not named:
        raise ParameterError("effects is empty. Pass at least one result of effect.")
    for name, effect in named:
        if not isinstance(effect, Effect):
            raise ParameterError(
                f"effects must be a result of effect, a list of these or a mapping from names to them; "
                f"got {type(effect).__name__}."
            )
        if any(curve.ice is not None and curve.ice.centred for curve in effect.lines):
            raise ParameterError(
                f"The effect of {effect.feature!r} is centred, so its height is not that of predictions. "
                f"Pass it without centring."
            )
        yield (_method_name(effect) if name is None else str(name)), effect


def _method_name(effect: Effect) -> str:
    """Return the default name of a method."""
    if effect.subgroups is None:
        return effect.kind
    tree = effect.subgroups.tree
    return f"{effect.kind}, {tree.method} tree of depth {tree.parameters['max_depth']}"


def _numbers(predictions: Predictions, method: str) -> Floats:
    """Return predictions of all outputs as numbers: (rows, outputs)."""
    try:
        return np.asarray(predictions, dtype=np.float64).reshape(len(predictions), -1)
    except (TypeError, ValueError):
        raise ParameterError(
            f"{method} returned {predictions.dtype}, such as {predictions.ravel()[0]!r}, which cannot be compared with "
            f"a curve. Pass the response_method of the effects."
        ) from None


def _column_of(label: Any, labels: Sequence[Any], effect: Effect) -> int:
    if (place := predict.place_of(label, labels)) is not None:
        return place
    raise ParameterError(
        f"The effect of {effect.feature!r} is that of output {label!r}, but the model has the outputs "
        f"{quote(labels[:20])}. Pass the model and the response_method of the effects."
    )


def _losses_of(
    effect: Effect, method: str, X: Any, against: Mapping[str, Floats], weights: Floats | None
) -> Iterator[CurveLoss]:
    """Yield the loss of each output against the prediction, and against the target if there is one."""
    predicted = against["prediction"]
    w = np.ones(len(predicted)) if weights is None else weights
    curve, off = _evaluate(effect, X, predicted, w)
    n = float(w.sum())
    for name, values in against.items():
        for at, output in enumerate(effect.outputs):
            squares = (values[:, at] - curve[:, at]) ** 2
            mean = float(squares @ w / n)
            error = float(np.sqrt((squares - mean) ** 2 @ w / (n - 1) / n)) if n > 1 else float("nan")
            yield CurveLoss(
                feature=effect.feature if isinstance(effect.feature, str) else TOGETHER.join(effect.feature),
                method=method,
                subgroups=1 if effect.subgroups is None else len(effect.subgroups),
                output=output,
                against=name,
                n=n,
                estimate=mean,
                std_error=error,
                off_curve=float(w[off].sum()),
            )


def _evaluate(effect: Effect, X: Any, predicted: Floats, weights: Floats) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """Return the curve at the value of each row, (rows, outputs), and a mask of the rows without a value on it."""
    single_column = isinstance(X, np.ndarray) and X.shape[1] == 1
    curve = effect.predict(X[:, 0] if single_column else X).reshape(len(predicted), -1)
    if effect.kind == "ale":
        group = np.zeros(len(predicted), dtype=np.intp) if effect.subgroups is None else effect.subgroups.assign(X)
        curve = curve + _group_means(predicted, weights, group)[group]
    off = np.asarray(np.isnan(curve).any(axis=1))
    return np.where(off[:, None], predicted.T @ weights / weights.sum(), curve), off


def _group_means(values: Floats, weights: Floats, group: Rows) -> Floats:
    """Return the mean of each output in each subgroup; 0 in empty ones."""
    mass = np.bincount(group, weights=weights)
    sums = np.stack([np.bincount(group, weights=weights * column) for column in values.T], axis=1)
    return np.asarray(sums / np.where(mass > 0, mass, 1.0)[:, None])


def _read_targets(y: Any, X: Any, model: Predictor, labels: Sequence[Any]) -> Floats:
    """Return y for each output of the model, (rows, outputs); for classes, one-hot."""
    reject_another_index(X, y=y)
    n_rows = names_and_rows(X)[1]
    if model.method == "decision_function":
        raise ParameterError(
            "y cannot be compared with decision_function, which has another scale. "
            "Omit y, or use response_method='predict_proba'."
        )
    if model.method == "predict_proba":
        return _indicators(read_target(y, n_rows, model.classes, [known_losses.get("log_loss")]), labels)
    numbers = read_target(y, n_rows, (), [known_losses.get("squared_error")]).numbers
    assert numbers is not None
    table = numbers.reshape(n_rows, -1)
    if table.shape[1] != len(labels):
        count = f"{table.shape[1]} column{'s' * (table.shape[1] != 1)}"
        raise InputError(f"y has {count}, but the model has {len(labels)} outputs. Pass a column for each output.")
    return table


def _indicators(target: Target, labels: Sequence[Any]) -> Floats:
    assert target.codes is not None
    if target.codes.ndim > 1:
        raise InputError("y has several columns of classes. Omit y, or pass a function with one output.")
    if len(target.classes) != len(labels):
        raise InputError(
            f"y has {len(target.classes)} classes, but the model returns {len(labels)} probabilities and has no "
            f"attribute classes_. Omit y, or pass a model with classes_."
        )
    return np.asarray(target.codes[:, None] == np.arange(len(labels)), dtype=np.float64)
