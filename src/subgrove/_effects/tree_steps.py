"""Predictions of effects from the step functions of tree ensembles, instead of calls of the model.

With all columns but one fixed, a tree ensemble is a step function: one pass over the trees serves all grid points of
all features. The step functions must first reproduce the model's own predictions of `CHECK_ROWS` rows, with values of
the grids; otherwise, and for few predictions, the model predicts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from subgrove._core.kinds import Floats, Rows
from subgrove._data.columns import ColumnInfo
from subgrove._effects.predict import EffectPredictor, changed_rows
from subgrove._effects.subgroup_rows import FeatureData, GridBlock, PredictionRequest
from subgrove._models.tree_ensemble.places import Places
from subgrove._models.tree_ensemble.reading import CHECK_ROWS, Encode, trusted_steps
from subgrove._models.tree_ensemble.steps import ChangedColumn, StepFunctions

_PASS_NUMBERS = 1 << 24  # margins that one pass over the trees returns at most
_FEW = 8  # predictions of a row that are cheaper than its step functions


Work = tuple[EffectPredictor, Sequence[PredictionRequest]]


def summaries_from_trees(work: Sequence[Work]) -> tuple[list[list[Floats]], str]:
    """Return the summarized predictions of requests from the trees of the model; if they cannot be used, the reason.

    All predictors must be those of one model and of the same outputs, and all requests for rows of one table; one pass
    over the trees then serves all of them. Check rows are counted by the first predictor.
    """
    requests = [request for _, some in work for request in some]
    infos: dict[str, ColumnInfo] = {}
    if any(infos.setdefault(info.name, info) != info for each in requests for info in each.rows.data.infos):
        return [], "a column is read in two ways"
    first, grids = work[0][0], _Grids.of(requests)
    trusted = trusted_steps(first.model, grids.data.X, [grids.points_table], grids.check)
    if trusted.steps is None:
        return [], trusted.reason
    found = iter(_Evaluation(first, trusted.steps, grids).run(requests))
    for predictor, _ in work:
        predictor.n_outputs = first.n_outputs
    return [[next(found) for _ in some] for _, some in work], ""


@dataclass(frozen=True, eq=False)
class _Grids:
    """Grid points of all requests.

    Attributes
    ----------
    data : FeatureData
        The table, and all features.
    points : dict
        Feature -> all its points, sorted.
    points_table : table
        Row k has the k-th point of each feature; shorter grids repeat their first point.
    changed : list of tuples of str
        Features that are replaced together.
    places : dict
        Feature -> places of its points; filled when the trees have been read.
    """

    data: FeatureData
    points: dict[str, Floats]
    points_table: Any
    changed: list[tuple[str, ...]]
    places: dict[str, Places]

    @classmethod
    def of(cls, requests: Sequence[PredictionRequest]) -> _Grids:
        """Collect the points of all blocks."""
        blocks = [block for request in requests for block in request.blocks]
        each: dict[str, list[Floats]] = {}
        for block in blocks:
            for name, values in block.points.items():
                each.setdefault(name, []).append(values)
        points = {name: np.unique(np.concatenate(values)) for name, values in each.items()}
        of_each = [request.rows.data for request in requests]
        features = {name: pair for data in of_each for name, *pair in zip(data.names, data.infos, data.x, strict=True)}
        infos, x = zip(*features.values(), strict=True)
        data = replace(of_each[0], infos=infos, x=x)
        n = max(map(len, points.values()), default=1)
        longer = {name: np.append(own, np.full(n - len(own), own[0])) for name, own in points.items()}
        replaced = {name: data.column(name, own) for name, own in longer.items()}
        table = data.frames.changed(np.zeros(n, dtype=np.intp), replaced)
        return cls(data, points, table, list(dict.fromkeys(tuple(block.points) for block in blocks)), {})

    def check(self, steps: StepFunctions, encode: Encode) -> tuple[Any, Floats]:
        """Return random rows with random points of the features that requests replace, and their margins."""
        encoded, frames = encode(self.points_table), self.data.frames
        for name, points in self.points.items():
            own = steps.columns[frames.names.index(name)]
            self.places[name] = own.of(encoded[: len(points), list(own.inputs)])
        rng, n = np.random.default_rng(0), -(-CHECK_ROWS // len(self.changed))
        rows = rng.integers(frames.n_rows, size=n)
        blocks = []
        for names in self.changed:
            drawn = {name: rng.integers(len(self.points[name]), size=n) for name in names}
            values = {name: self.data.column(name, self.points[name][at]) for name, at in drawn.items()}
            blocks.append({name: (values[name], self.places[name][at]) for name, at in drawn.items()})
        return changed_rows(frames, steps, rows, blocks)

    def places_of(self, name: str, points: Floats) -> Places:
        """Return the places of points of a feature."""
        return self.places[name][self.points[name].searchsorted(points)]


@dataclass(frozen=True, eq=False)
class _Evaluation:
    """Evaluates requests by step functions."""

    predictor: EffectPredictor
    steps: StepFunctions
    grids: _Grids

    def run(self, requests: Sequence[PredictionRequest]) -> list[Floats]:
        """Return the summarized predictions of each request."""
        summaries: list[list[Floats]] = [[] for _ in requests]
        few = sum(each.n_predictions for each in requests) <= _FEW * self.grids.data.frames.n_rows
        one_column = [not few and all(len(block.points) == 1 for block in each.blocks) for each in requests]
        for numbers in self._passes(requests, one_column):
            wanted = [self._changed(part) for _, part in numbers]
            for (number, part), margins in zip(numbers, self.steps.changed_margins(wanted), strict=True):
                summaries[number].append(part.summarize(self._response(margins)))
        for number, request in enumerate(requests):
            if not one_column[number]:
                for block in request.blocks:
                    margins = self._predicted(request.rows.rows, block)
                    summaries[number].append(request.summarize(self._response(margins.T[None])))
        return [np.concatenate(some) for some in summaries]

    def _passes(
        self, requests: Sequence[PredictionRequest], one_column: Sequence[bool]
    ) -> Iterator[list[tuple[int, PredictionRequest]]]:
        """Yield parts of the requests that replace one column, as many as one pass over the trees may serve."""
        parts: list[tuple[int, PredictionRequest]] = []
        room = 0
        for number, request in enumerate(requests):
            if not one_column[number]:
                continue
            size = len(request.rows.rows) * self.steps.ensemble.n_outputs
            most = max(_PASS_NUMBERS // size, 1)
            for start in range(0, len(request.blocks), most):
                part = replace(request, blocks=request.blocks[start : start + most])
                if parts and room < size * len(part.blocks):
                    yield parts
                    parts = []
                room = (room if parts else _PASS_NUMBERS) - size * len(part.blocks)
                parts.append((number, part))
        if parts:
            yield parts

    def _changed(self, request: PredictionRequest) -> ChangedColumn:
        """Return rows and places of a request that replaces one column."""
        ((name,),) = {tuple(block.points) for block in request.blocks}
        points = np.stack([block.points[name] for block in request.blocks])
        places = self.grids.places_of(name, points[:, 0] if points.shape[1] == 1 else points)
        return ChangedColumn(self.grids.data.frames.names.index(name), request.rows.rows, places)

    def _predicted(self, rows: Rows, block: GridBlock) -> Floats:
        """Return the margins of one block, whatever it replaces."""
        places = self.steps.places[rows]
        for name, points in block.points.items():
            places[:, self.grids.data.frames.names.index(name)] = self.grids.places_of(name, points)
        return self.steps.predict(places)

    def _response(self, margins: Floats) -> Floats:
        """Return the predictions of the outputs with a curve for margins: (blocks, outputs, rows)."""
        ensemble = self.steps.ensemble
        if ensemble.link != "identity" or ensemble.n_classes:
            rows = margins.transpose(0, 2, 1).reshape(-1, margins.shape[1])
            shape = (len(margins), margins.shape[2], -1)
            margins = ensemble.response(rows).reshape(shape).transpose(0, 2, 1)
        self.predictor.n_outputs = margins.shape[1]
        columns = self.predictor.outputs.columns(margins.shape[1])
        return np.ascontiguousarray(margins if len(columns) == margins.shape[1] else margins[:, columns])
