"""Trees of the model for chunks of large data: read once in each process, and used for every batch of rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from subgrove._data.replace_columns import Frames
from subgrove._models.predictor import Predictor
from subgrove._models.tree_ensemble.ensemble import NotReadable
from subgrove._scoring.tree_steps import TreeSteps, check_steps, unchecked_steps
from subgrove.samplers.base import Feature, FittedSampler

Steps = list[tuple[list[Feature], FittedSampler, TreeSteps]]  # of the features that share training rows


@dataclass(eq=False)
class ChunkTrees:
    """Step functions of a model, to be used for batches of rows.

    Attributes
    ----------
    predictor : Predictor
        The model; other processes read its trees anew.
    rows : table
        A few rows. Training rows are encoded in their dtypes.
    samplers : mapping
        Feature -> its sampler.
    sizes : (int, int)
        Numbers of rows, of all chunks together, and of repeats.
    """

    predictor: Predictor
    rows: Any
    samplers: Mapping[Feature, FittedSampler]
    sizes: tuple[int, int]
    _steps: Steps | None = field(init=False, default=None)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "predictor": self.predictor.fresh(), "_steps": None}

    def check(self, seed: int) -> None:
        """Raise `NotReadable` unless the trees reproduce predictions of changed rows."""
        for features, _, steps in self.steps():
            check_steps(self.predictor, steps, features, seed)

    def steps(self) -> Steps:
        """Return the step functions of `rows`, for all features that share columns and training rows."""
        if self._steps is None:
            shared: list[tuple[list[Feature], FittedSampler]] = []
            for feature, fitted in self.samplers.items():
                like = (one for one, first in shared if first.train is fitted.train and first.columns == fitted.columns)
                if (features := next(like, None)) is None:
                    shared.append(([feature], fitted))
                else:
                    features.append(feature)
            every = [*self.samplers]
            self._steps = [
                (some, fitted, unchecked_steps(self.predictor, self._frames(self.rows, fitted), every, self.sizes))
                for some, fitted in shared
            ]
        return self._steps

    def of_batch(self, table: Any) -> Steps | None:
        """Return the step functions of other rows; None if the model itself has to predict them."""
        try:
            steps = self.steps()
            return [(some, fitted, one.with_rows(self._frames(table, fitted))) for some, fitted, one in steps]
        except NotReadable:
            return None

    def _frames(self, table: Any, fitted: FittedSampler) -> Frames:
        return Frames(table, fitted.columns, fitted.train)
