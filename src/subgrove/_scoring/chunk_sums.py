"""Sums over rows of a batch, of a chunk, or of all chunks so far; they merge, and travel as plain arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from subgrove._core.kinds import Codes, Floats, Rows
from subgrove._core.moments import Moments
from subgrove._scale.engines import ChunkArrays


@dataclass(eq=False)
class FeatureSums:
    """Sums of one feature over the rows of a chunk; empty until its subgroups are known."""

    moments: Moments
    sums: Floats
    spread: Floats
    n_drawn: Floats
    n_exact: int = 0

    @classmethod
    def none(cls, n_losses: int, n_repeats: int, n_groups: int) -> FeatureSums:
        """Sums of no rows."""
        shape = (n_losses, n_groups)
        return cls(Moments.none(shape), np.zeros((n_losses, n_repeats, n_groups)), np.zeros(shape), np.zeros(n_groups))

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """As plain arrays."""
        return {
            "moments": self.moments.array,
            "sums": self.sums,
            "spread": self.spread,
            "n_drawn": self.n_drawn,
            "n_exact": np.array(self.n_exact),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> FeatureSums:
        """What `arrays` gave."""
        return cls(
            Moments.from_array(arrays["moments"]),
            arrays["sums"],
            arrays["spread"],
            arrays["n_drawn"],
            int(arrays["n_exact"]),
        )

    def merged(self, other: FeatureSums) -> FeatureSums:
        """Sums of the rows of both."""
        return FeatureSums(
            self.moments.merged(other.moments),
            self.sums + other.sums,
            self.spread + other.spread,
            self.n_drawn + other.n_drawn,
            self.n_exact + other.n_exact,
        )


@dataclass(eq=False)
class ChunkSums:
    """Sums of all features over rows: of a batch, a chunk, or all chunks so far."""

    n_features: int
    n_losses: int
    n_repeats: int
    parts: list[FeatureSums | None] = field(default_factory=list)
    baseline: Moments | None = None
    n_rows: int = 0
    n_left_out: int = 0
    n_predicted: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(2, dtype=np.int64))

    def __post_init__(self) -> None:
        self.parts = self.parts or [None] * self.n_features
        self.baseline = self.baseline or Moments.none((self.n_losses, 1))

    def add_baseline(self, losses: Floats, weights: Floats | None) -> None:
        """Count losses of rows as they are."""
        assert self.baseline is not None
        self.baseline = self.baseline.merged(Moments.of(losses, weights=weights))

    def add(self, number: int, sums: FeatureSums) -> None:
        """Count sums of one feature."""
        before = self.parts[number]
        self.parts[number] = sums if before is None else before.merged(sums)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """As plain arrays; a feature without rows has none."""
        assert self.baseline is not None
        found: dict[str, npt.NDArray[Any]] = {
            "baseline": self.baseline.array,
            "rows": np.array([self.n_rows, self.n_left_out]),
            "asked": self.n_predicted,
        }
        for number, part in enumerate(self.parts):
            if part is not None:
                found |= {f"{number}.{name}": value for name, value in part.arrays().items()}
        return found

    def add_arrays(self, arrays: ChunkArrays) -> None:
        """Count what another one gave as arrays."""
        assert self.baseline is not None
        self.baseline = self.baseline.merged(Moments.from_array(arrays["baseline"]))
        self.n_rows += int(arrays["rows"][0])
        self.n_left_out += int(arrays["rows"][1])
        self.n_predicted = self.n_predicted + arrays["asked"]
        for number in range(len(self.parts)):
            names = [name for name in arrays if name.startswith(f"{number}.")]
            if names:
                self.add(number, FeatureSums.from_arrays({name.split(".")[1]: arrays[name] for name in names}))


def sums_by_group(values: Floats, code: Codes | Rows, n_groups: int, weights: Floats | None) -> Floats:
    """Sums of each line by subgroup: (lines, subgroups)."""
    if weights is not None:
        values = values * weights
    if n_groups == 1:
        return np.asarray(values.sum(axis=1, keepdims=True))
    return np.array([np.bincount(code, weights=line, minlength=n_groups) for line in values])
