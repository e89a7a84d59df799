"""Validated arguments of `effect`, and the plan of its curves: subgroups, grid points and predictions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from types import FunctionType
from typing import Any

import numpy as np

from subgrove._core.kinds import Floats
from subgrove._core.text import TOGETHER, quote
from subgrove._core.validate import reject_another_index, whole_number
from subgrove._core.weights import read_weights
from subgrove._data.columns import ColumnInfo
from subgrove._data.from_containers import names_and_rows, untyped_columns
from subgrove._data.to_containers import Backend
from subgrove._effects.ale import AccumulatedEffects, AccumulatedInteraction
from subgrove._effects.curves import (
    ConditionalMean,
    Curve,
    CurveKind,
    CurveLayout,
    CurveSummary,
    IndividualCurves,
    PartialDependence,
)
from subgrove._effects.grid import GridSpec, read_grid, read_values, shared_points
from subgrove._effects.interactions import DEPTH, one_subgroup
from subgrove._effects.predict import EffectPredictor, ModelOutputs, batch_rows, model_for_effect
from subgrove._effects.result import Effect
from subgrove._effects.subgroup_rows import EffectGroup, FeatureData, SubgroupRows, rows_by_subgroup
from subgrove._effects.tree_steps import Work, summaries_from_trees
from subgrove._models.tree_ensemble.reading import TREE_STEPS
from subgrove._subgroups import Partition, Subgroups, find_subgroups
from subgrove._subgroups.subgroups import AUTO
from subgrove.exceptions import ColumnError, InputError, ParameterError

MIN_ROWS = 5000  # predictions from which on the trees of a model are read
KINDS: Mapping[str, CurveKind] = {
    "pdp": PartialDependence(),
    "ice": IndividualCurves(),
    "ale": AccumulatedEffects(),
    "mplot": ConditionalMean(),
}


@dataclass(frozen=True)
class EffectSpec:
    """Arguments of `effect`; those that do not depend on the data are validated.

    `interaction_depth` is the largest number of interaction splits above a group, 0 for none.
    """

    names: tuple[str, ...]
    kind: str
    subgroups: Any
    interaction_depth: int
    grid: Any
    grid_resolution: int
    output: Any
    response_method: str | None
    n_jobs: int | None

    @classmethod
    def of(
        cls, feature: Any, kind: Any, subgroups: Any, interactions: Any, grid: Any, grid_resolution: Any, *options: Any
    ) -> EffectSpec:
        """Validate the arguments."""
        if not isinstance(kind, str) or kind not in KINDS:
            raise ParameterError(f"kind must be one of {quote(KINDS)}; got {kind!r}.")
        names = _feature_names(feature)
        if len(names) > 1 and kind not in ("pdp", "ale"):
            raise ParameterError(f"Only 'pdp' and 'ale' support two features; got kind={kind!r}. Pass one feature.")
        depth = _interaction_depth(interactions, kind, len(names))
        resolution = whole_number("grid_resolution", grid_resolution, least=2)
        return cls(names, kind, subgroups, depth, grid, resolution, *options)

    def with_subgroups(self, X: Any, sample_weight: Any) -> EffectSpec:
        """Return these arguments with the subgroups that "auto" stands for, found on these rows."""
        if not (isinstance(self.subgroups, str) and self.subgroups == AUTO):
            return self
        columns = names_and_rows(X)[0]
        if self.kind not in ("pdp", "ice") or len(self.names) > 1 or not {*columns} > {*self.names}:
            return replace(self, subgroups=None)
        try:
            (partition,) = find_subgroups(X, features=self.names[0], sample_weight=sample_weight).partitions
        except ColumnError as error:
            raise ColumnError(f"{error} Or pass subgroups=None, for one curve that needs the feature only.") from error
        return replace(self, subgroups=partition if len(partition) > 1 else None)

    def read_data(self, X: Any, sample_weight: Any) -> FeatureData:
        """Read the features from a table."""
        columns = untyped_columns(X, "X", only=self.names)
        present, n_rows = names_and_rows(X)
        unknown = [name for name in self.names if name not in columns]
        if unknown:
            listed = quote(present[:30]) + (" ..." if len(present) > 30 else "")
            raise ParameterError(f"feature {quote(unknown)} is not a column of X. Its columns: {listed}.")
        if not n_rows:
            raise InputError("X has no rows. Pass at least one.")
        known = self.subgroups.columns if isinstance(self.subgroups, Subgroups) else ()
        if isinstance(self.subgroups, Partition):
            known = (self.subgroups.tree.target,)
        kinds = {column.name: column.kind for column in known}
        read = [read_values(columns[name], name, kinds.get(name)) for name in self.names]
        reject_another_index(X, sample_weight=sample_weight)
        infos, x = zip(*read, strict=True)
        weights = None if sample_weight is None else read_weights(sample_weight, n_rows)
        return FeatureData(X, infos, x, weights)

    def read_grids(self, data: FeatureData) -> list[GridSpec]:
        """Read the grid of each feature."""
        if len(self.names) > 1 and self.grid is not None and not isinstance(self.grid, str | Mapping):
            raise ParameterError("grid must be a mapping from feature to values for two features.")
        by_name = self.grid if isinstance(self.grid, Mapping) else dict.fromkeys(self.names, self.grid)
        unknown = [str(name) for name in by_name if name not in self.names]
        if unknown:
            raise ParameterError(f"grid has {quote(unknown)}, which is not the feature.")
        specs = [read_grid(by_name.get(info.name), info, x) for info, x in zip(data.infos, data.x, strict=True)]
        if self.kind in ("ale", "mplot") and any(isinstance(spec, str) and spec == "uniform" for spec in specs):
            raise ParameterError(
                f"grid='uniform' is for the kinds 'pdp' and 'ice'; kind={self.kind!r} has intervals between quantiles. "
                "Leave grid out, or pass the borders as a list."
            )
        return specs

    def partition(self, infos: Sequence[ColumnInfo]) -> Partition | None:
        """Return the subgroups of the feature."""
        if self.subgroups is None:
            return None
        if not isinstance(self.subgroups, Partition | Subgroups):
            raise ParameterError(
                f"subgroups must be 'auto', None, a result of find_subgroups or its partition for the feature; "
                f"got {self.subgroups if isinstance(self.subgroups, str) else type(self.subgroups).__name__!r}."
            )
        partitions = [self.subgroups] if isinstance(self.subgroups, Partition) else self.subgroups.partitions
        names = [info.name for info in infos]
        for partition in partitions:
            if set(partition.members) == set(names):
                return partition
        features = [partition.feature for partition in partitions]
        raise ParameterError(
            f"subgroups has no partition for {TOGETHER.join(names)!r}, only for {quote(features)}. "
            f"Add it to find_subgroups(..., features=[...])."
        )


def _feature_names(feature: Any) -> tuple[str, ...]:
    if isinstance(feature, str | int | np.integer) and not isinstance(feature, bool):
        return (str(feature),)
    if isinstance(feature, list | tuple) and 1 <= len(feature) <= 2 and len(set(map(str, feature))) == len(feature):
        return tuple(map(str, feature))
    raise ParameterError(f"feature must be a column name or a pair of different column names; got {feature!r}.")


def _interaction_depth(interactions: Any, kind: str, n_features: int) -> int:
    if isinstance(interactions, bool | np.bool_):
        depth = DEPTH if interactions else 0
    else:
        depth = whole_number("interactions", interactions, least=0)
    if depth and (kind not in ("pdp", "ice") or n_features > 1):
        received = f"kind is {kind!r}" if n_features == 1 else "there are two"
        raise ParameterError(
            f"interactions needs ICE curves of one feature, but {received}. Use kind='pdp' or 'ice' and one feature."
        )
    return depth


@dataclass(frozen=True, eq=False)
class EffectPlan:
    """What `effect` computes: subgroups and grid points of each curve.

    Attributes
    ----------
    predictor : EffectPredictor
        The model, and its outputs with a curve.
    kind : CurveKind
        The kind of curve.
    data : FeatureData
        The rows in memory: all rows, or a sample of large data.
    partition : Partition or None
        The subgroups.
    rows : list of SubgroupRows
        The rows of each subgroup.
    layouts : list of CurveLayout
        Grid points of each subgroup with a curve.
    """

    predictor: EffectPredictor
    kind: CurveKind
    data: FeatureData
    partition: Partition | None
    rows: list[SubgroupRows]
    layouts: list[CurveLayout]

    @classmethod
    def of(cls, model: Any, data: FeatureData, spec: EffectSpec) -> EffectPlan:
        """Plan the curves of a model."""
        grids, depth = spec.read_grids(data), spec.interaction_depth
        caller = model_for_effect(model, spec.response_method)
        outputs, n_rows = ModelOutputs.of(caller, spec.output), batch_rows(len(data.frames.names))
        predictor = EffectPredictor(caller, outputs, n_rows, spec.n_jobs)
        partition = spec.partition(data.infos)
        if depth and partition is None:
            partition = one_subgroup(data.X, data.infos[0])
        rows, kind = rows_by_subgroup(data, partition), KINDS["ice" if depth else spec.kind]
        if spec.kind == "ale" and len(data.infos) > 1:
            kind = AccumulatedInteraction()
        usable = [each for each in rows if each.has_curve(partition)]
        by_subgroup: list[list[GridSpec]] = [grids] * len(usable)
        if depth and usable:
            own = shared_points(data.infos[0], [each.x[0] for each in usable], grids[0], spec.grid_resolution)
            by_subgroup = [[points] for points in own]
        planned = [kind.layout(each, own, spec.grid_resolution) for each, own in zip(usable, by_subgroup, strict=True)]
        layouts = [layout for layout in planned if layout is not None]
        return cls(predictor=predictor, kind=kind, data=data, partition=partition, rows=rows, layouts=layouts)

    def effect(
        self, spec: EffectSpec, groups: Iterable[EffectGroup], curves: Sequence[Curve], backend: Backend, **options: Any
    ) -> Effect:
        """Return the result; options are further fields of it."""
        if not curves and spec.subgroups is None:
            raise InputError(f"No row of X has a value of {spec.names[0]!r} on the grid. Pass other values.")
        return Effect(
            feature=spec.names[0] if len(spec.names) == 1 else (spec.names[0], spec.names[1]),
            kind=spec.kind,
            outputs=self.predictor.labels,
            n_rows_predicted=self.predictor.model.n_rows,
            n_calls=self.predictor.model.n_calls,
            subgroups=self.partition,
            infos=self.data.infos,
            groups=tuple(groups),
            lines=tuple(curves),
            backend=backend,
            settings={"evaluation": self.predictor.evaluation, "n_rows_again": self.predictor.n_rows_again},
            **options,
        )


def summaries_together(
    work: Sequence[tuple[EffectPlan, Sequence[SubgroupRows]]], *, check: bool = False
) -> list[dict[int, CurveSummary]]:
    """Predict rows of each subgroup for several features of one table, and return the summaries of each plan.

    `check` warns if the model predicts other values for some of the rows once more.
    """
    used, requests = [], []
    for plan, rows in work:
        own = {number: plan.kind.used_rows(rows[each.subgroup], each) for number, each in enumerate(plan.layouts)}
        used.append({number: some for number, some in own.items() if len(some.rows)})
        requests.append([plan.kind.requests(some, plan.layouts[number]) for number, some in used[-1].items()])
    together = [(plan.predictor, [*chain(*wanted)]) for (plan, _), wanted in zip(work, requests, strict=True)]
    every = zip(work, used, requests, map(iter, _predictions(together, check=check)), strict=True)
    return [
        {
            number: plan.kind.summary(some, plan.layouts[number], [*islice(predictions, len(own))])
            for (number, some), own in zip(rows.items(), wanted, strict=True)
        }
        for (plan, _), rows, wanted, predictions in every
    ]


def _predictions(work: Sequence[Work], *, check: bool) -> list[list[Floats]]:
    """Return the summarized predictions of requests: from the trees of the model if they can be used and it pays."""
    n = sum(each.n_predictions for _, requests in work for each in requests)
    found: list[list[Floats]] = []
    if n < MIN_ROWS:
        reason = f"{n} predictions are few"
    elif isinstance(work[0][0].model.model, FunctionType):
        reason = "the model is a function"
    else:
        found, reason = summaries_from_trees(work)
    for predictor, _ in work:
        predictor.evaluation = f"model predictions: {reason}" if reason else TREE_STEPS
    first = next((at for at, (_, requests) in enumerate(work) if requests), None) if check else None
    every = enumerate(work) if reason else ()
    return [predictor.run(requests, check=at == first) for at, (predictor, requests) in every] or found


def curves_together(plans: Sequence[EffectPlan]) -> list[list[Curve]]:
    """Predict and compute the curves of several features, for all rows in memory."""
    every = summaries_together([(plan, plan.rows) for plan in plans], check=True)
    return [
        [plan.kind.curve(plan.layouts[number], summary) for number, summary in summaries.items()]
        for plan, summaries in zip(plans, every, strict=True)
    ]
