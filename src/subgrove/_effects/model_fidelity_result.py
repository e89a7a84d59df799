"""The result of `model_fidelity`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from subgrove._core.html_views import html_of
from subgrove._data.to_containers import Backend, as_count, make_table


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
class ModelFidelity:
    """Differences between effect curves and the model, as returned by `subgrove.model_fidelity`.

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
    >>> fid = sg.model_fidelity(model, test.X, {"pdp": curve})
    >>> fid.overall["method"].tolist(), fid.n_rows_predicted
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
