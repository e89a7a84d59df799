"""The default model on rows as a Parquet file stores them: what was inferred of a sample is applied to every row.

Only types of the file count, so that a part of it is read as the whole is: numbers are numbers, text and true or false
are levels, dates are dates.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from subgrove._cli.training import DefaultModel


@dataclass(frozen=True, eq=False)
class StoredModel:
    """A trained default model that takes stored rows.

    Parameters
    ----------
    model : DefaultModel
    kinds : mapping
        Of each column of the model: "numeric", "nominal" or "date".
    labels : array
        What the file calls the classes of the model, in its order; empty for numbers.
    """

    model: DefaultModel
    kinds: dict[str, str]
    labels: npt.NDArray[Any]

    @property
    def feature_names_in_(self) -> npt.NDArray[Any]:
        """Which columns it takes."""
        return np.array(list(self.kinds), dtype=object)

    @property
    def _estimator_type(self) -> str:
        return "classifier" if self.model.task == "classification" else "regressor"

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Numbers, or classes as the file calls them."""
        found = self.model.predict(self.as_trained(X))
        return found if not len(self.labels) else self.labels[np.searchsorted(self.model.classes_, found)]

    def __getattr__(self, name: str) -> Any:
        own = self.__dict__.get("model")
        if name == "classes_" and own is not None and own.task == "classification":
            return self.labels
        if name == "predict_proba" and own is not None and own.task == "classification":
            return self._probabilities
        raise AttributeError(f"{type(self).__name__} has no {name}")

    def _probabilities(self, X: Any) -> Any:
        return self.model.predict_proba(self.as_trained(X))

    def as_trained(self, X: Any) -> Any:
        """Stored rows as the frame that the model was trained on would have them."""
        import pandas as pd

        return pd.DataFrame({name: self._typed(X[name], name, kind) for name, kind in self.kinds.items()})

    def _typed(self, values: Any, name: str, kind: str) -> Any:
        import pandas as pd

        if kind == "date":
            return pd.to_datetime(values, utc=True).dt.tz_localize(None)
        if kind == "numeric":
            numbers = values.to_numpy(dtype=np.float64, na_value=np.nan)
            return np.where(np.isinf(numbers), np.nan, numbers)
        codes, distinct = pd.factorize(values)
        known = {level: place for place, level in enumerate(self.model.levels_[name])}
        place = np.array([*(known.get(str(level), -1) for level in distinct), -1])
        return pd.Categorical.from_codes(place[codes], pd.Index(self.model.levels_[name], dtype=object))
