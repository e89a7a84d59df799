"""What `model_fidelity` returns: how far curves are from the model. It is frozen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from subgrove._core.html_views import html_of
from subgrove._data.result_tables import Backend, as_count, make_table


@dataclass(frozen=True)
class CurveLoss:
    """What one curve leaves unexplained.

    Attributes
    ----------
    feature : str
        The feature of the curve; two are joined by " + ".
    method : str
        What made the curve.
    subgroups : int
        Number of subgroups that have a curve each; 1 without subgroups.
    output : object
        Class or number of the model's output.
    against : {"prediction", "target"}
        What the curve is compared with.
    n : float
        Rows (weight) that the mean is over.
    estimate, std_error : float
        Mean squared difference, and its standard error over rows.
    off_curve : float
        Rows (weight) that have no value on the curve and were given the mean prediction.
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
class ModelFidelity:
    """How far effect curves are from the model: what `subgrove.model_fidelity` returns.

    Tables are in the container of X, pandas for arrays. Reading them asks the model for nothing.

    Attributes
    ----------
    losses : tuple of CurveLoss
        What the tables are made of.
    n_rows_predicted, n_calls : int
        Rows that the model was asked for, and in how many calls.
    backend : str
        Whose tables are given.
    table : table
        A row for each curve, output and what it is compared with: `feature`, `method`, `subgroups`, `output` (if there
        are several), `against`, `n`, `estimate`, `std_error`, `off_curve`.
    overall : table
        A row for each method: `estimate` is the mean over its features, `median` the median, as in the paper.

    Examples
    --------
    >>> import subgrove as sg
    >>> train, test = sg.datasets.bike(split=0.7, random_state=1)
    >>> model = lambda X: 100 * X["temp"]
    >>> curve = sg.effect(model, train.X, "temp")
    >>> found = sg.model_fidelity(model, test.X, {"pdp": curve})
    >>> found.overall["method"].tolist(), found.n_rows_predicted
    (['pdp'], 219)
    """

    losses: tuple[CurveLoss, ...]
    n_rows_predicted: int
    n_calls: int
    backend: Backend

    @property
    def table(self) -> Any:
        """Mean squared difference of each curve, with its standard error."""
        columns: dict[str, Any] = {
            name: [getattr(loss, name) for loss in self.losses]
            for name in ("feature", "method", "subgroups", "output", "against")
            if name != "output" or self._several_outputs
        }
        columns["n"] = [as_count(loss.n) for loss in self.losses]
        columns |= {name: [getattr(loss, name) for loss in self.losses] for name in ("estimate", "std_error")}
        return make_table(self.backend, columns | {"off_curve": [as_count(loss.off_curve) for loss in self.losses]})

    @property
    def overall(self) -> Any:
        """Mean and median over the features of each method."""
        found: dict[tuple[str, str], list[float]] = {}
        for loss in self.losses:
            found.setdefault((loss.against, loss.method), []).append(loss.estimate)
        columns = {
            "method": [method for _, method in found],
            "against": [against for against, _ in found],
            "curves": [len(values) for values in found.values()],
            "estimate": [float(np.mean(values)) for values in found.values()],
            "median": [float(np.median(values)) for values in found.values()],
        }
        return make_table(self.backend, columns)

    @property
    def _several_outputs(self) -> bool:
        return len({repr(loss.output) for loss in self.losses}) > 1

    def __repr__(self) -> str:
        against = " and ".join(dict.fromkeys(loss.against for loss in self.losses))
        return f"<ModelFidelity of {self._n_curves} curve{'s' * (self._n_curves != 1)}: against {against}>"

    def _repr_html_(self) -> str:
        return html_of(self)

    @property
    def _n_curves(self) -> int:
        return len({(loss.feature, loss.method, repr(loss.output)) for loss in self.losses})
