"""Sums over the rows of chunks: how they are accumulated, merged, and turned into results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from subgrove._core.kinds import Floats, Rows
from subgrove._core.moments import Moments
from subgrove._core.weights import kish_scale
from subgrove._scale.engines import ChunkArrays
from subgrove._scoring.accumulate import LossAccumulator
from subgrove._scoring.feature_result import FeatureResult, result_from_sums
from subgrove.samplers.base import Feature
from subgrove.samplers.resampled_feature import ResampledFeature


class BincountSums:
    """Sums of values (L, n) by subgroup in the order of the rows, which needs no sorting."""

    def __init__(self, code: Rows, n_groups: int) -> None:
        self.code, self.n_groups = code, n_groups

    def __call__(self, values: Floats) -> Floats:
        """Return the sums of values in the order of the rows."""
        if self.n_groups == 1:
            return np.asarray(values.sum(axis=1, keepdims=True))
        return np.array([np.bincount(self.code, weights=line, minlength=self.n_groups) for line in values])


class RunningAccumulator(LossAccumulator):
    """The same for a chunk of large data: running means of rows (Welford), whose rounding errors stay small.

    Chunks have donors among training rows only, so that rows have one role.
    """

    def __init__(self, arrays: Any, resampled: ResampledFeature, n_losses: int, n_repeats: int) -> None:
        super().__init__(arrays, resampled, n_losses, n_repeats)
        self.rows: Rows | None = None
        self.deviations: Any = None  # squared deviations of single increases from the mean of their row
        self.mean: Any = None

    def _add_rows(self, repeat: int, increase: Any, weighted: Any, rows: Rows | None) -> None:
        self.rows = rows
        if self.n_repeats == 1:
            self.mean = increase
            return
        if self.mean is None:
            self.mean, self.deviations = np.zeros(increase.shape), np.zeros(increase.shape)
        away = increase - self.mean
        self.mean += away / (repeat + 1)
        self.deviations += away * (increase - self.mean)

    def finish(self) -> tuple[Floats, Floats]:
        """Return the mean increases of rows, and the squared deviations from them, summed by subgroup."""
        means: Floats = self.total
        if self.mean is not None:
            means[:, slice(None) if self.rows is None else self.rows] = self.mean
        if self.resampled.exact is not None:
            self._add_exact_to_repeats(means, np.flatnonzero(self.resampled.exact.rows))
        spread = np.zeros((self.n_losses, len(self.sizes)))
        if self.deviations is not None:
            weighted = self._weighted(self.deviations, self.rows)
            spread += self._group_sums(self._weighted(weighted, self.rows) if self.relative else weighted, self.rows)
        return means, spread


@dataclass(eq=False)
class FeatureSums:
    """Sums of one feature over rows of a batch, a chunk or several chunks; they can be merged.

    Attributes
    ----------
    moments : Moments (L, K)
        Of the mean increases of rows, by subgroup.
    squared : Moments (L, K) or None
        The same with squared weights, if weights are relative.
    sums : float array (L, M, K)
        Of increases, by repeat and subgroup.
    spread : float array (L, K)
        Of squared deviations from the mean of each row.
    n_sampled : float array (K,)
        Number of sampled rows.
    n_exact : int or array
        Number of rows with an exact expectation.
    """

    moments: Moments
    sums: Floats
    spread: Floats
    n_sampled: Floats
    n_exact: Any
    squared: Moments | None = None

    @classmethod
    def of(cls, accumulator: RunningAccumulator) -> FeatureSums:
        """Return the sums of an accumulator."""
        means, spread = accumulator.finish()
        resampled, groups = accumulator.resampled, len(accumulator.sizes)
        code = resampled.groups.code
        sampled = code if resampled.sampled is None else code[resampled.sampled]
        n_sampled = np.zeros(groups) + np.bincount(sampled, minlength=groups)
        weights = accumulator.arrays.weights
        moments = Moments.of(means, code, groups, weights)
        squared = Moments.of(means, code, groups, weights**2) if accumulator.relative else None
        return cls(moments, accumulator.sums, spread, n_sampled, len(code) - len(sampled), squared)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the sums as plain arrays."""
        squared = {} if self.squared is None else {"squared": self.squared.array}
        added = {name: np.asarray(getattr(self, name)) for name in _ADDED}
        return {"moments": self.moments.array, **added, **squared}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> FeatureSums:
        """Undo `arrays`."""
        squared = Moments.from_array(arrays["squared"]) if "squared" in arrays else None
        return cls(Moments.from_array(arrays["moments"]), **{name: arrays[name] for name in _ADDED}, squared=squared)

    def merged(self, other: FeatureSums) -> FeatureSums:
        """Return the sums over the rows of both."""
        added = {name: getattr(self, name) + getattr(other, name) for name in _ADDED}
        squared = None if self.squared is None or other.squared is None else self.squared.merged(other.squared)
        return FeatureSums(self.moments.merged(other.moments), **added, squared=squared)

    def with_scale(self) -> FeatureSums:
        """Return the sums with relative weights on the scale of Kish's effective number of rows."""
        if self.squared is None:
            return self
        scale = kish_scale(self.moments.n[0].sum(), self.squared.n[0].sum())
        return replace(
            self,
            moments=self.moments.scaled(scale),
            squared=self.squared.scaled(scale**2),
            sums=self.sums * scale,
            spread=self.spread * scale**2,
        )


_ADDED = ("sums", "spread", "n_sampled", "n_exact")


@dataclass(eq=False)
class ChunkSums:
    """Sums of all features over rows of a batch, a chunk or several chunks."""

    n_features: int
    n_losses: int
    features: list[FeatureSums | None] = field(default_factory=list)
    baseline: Moments = field(init=False)
    n_rows: int = 0
    n_left_out: int = 0
    n_predicted: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(2, dtype=np.int64))
    n_batches: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(2, dtype=np.int64))  # all, and by trees

    def __post_init__(self) -> None:
        self.features = self.features or [None] * self.n_features
        self.baseline = Moments.none((self.n_losses, 1))

    def add_baseline(self, losses: Floats, weights: Floats | None) -> None:
        """Add losses of baseline rows."""
        self.baseline = self.baseline.merged(Moments.of(losses, weights=weights))

    def add(self, number: int, sums: FeatureSums) -> None:
        """Add sums of one feature."""
        so_far = self.features[number]
        self.features[number] = sums if so_far is None else so_far.merged(sums)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the sums as plain arrays; a feature without rows has none."""
        arrays: dict[str, npt.NDArray[Any]] = {
            "baseline": self.baseline.array,
            "rows": np.array([self.n_rows, self.n_left_out]),
            "predicted": self.n_predicted,
            "batches": self.n_batches,
        }
        for number, sums in enumerate(self.features):
            if sums is not None:
                arrays |= {f"{number}.{name}": value for name, value in sums.arrays().items()}
        return arrays

    def add_arrays(self, arrays: ChunkArrays) -> None:
        """Add the arrays of another chunk."""
        self.baseline = self.baseline.merged(Moments.from_array(arrays["baseline"]))
        self.n_rows += int(arrays["rows"][0])
        self.n_left_out += int(arrays["rows"][1])
        self.n_predicted = self.n_predicted + arrays["predicted"]
        self.n_batches = self.n_batches + arrays["batches"]
        for number in range(self.n_features):
            names = [name for name in arrays if name.startswith(f"{number}.")]
            if names:
                self.add(number, FeatureSums.from_arrays({name.split(".")[1]: arrays[name] for name in names}))

    def result(self, number: int, feature: Feature, resampled: ResampledFeature, check: Any) -> FeatureResult:
        """Return the result of a feature; `resampled` has its subgroups."""
        sums = self.features[number]
        assert sums is not None
        sums = sums.with_scale()
        return result_from_sums(
            feature,
            resampled,
            sums.moments.n[0],
            sums.sums,
            sums.spread,
            sums.n_sampled,
            independent=True,
            moments=sums.moments,
            squared=sums.squared,
            n_rows=self.n_rows,
            n_exact=int(sums.n_exact),
            singletons=(),
            fidelity_check=check,
        )
