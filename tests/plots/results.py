"""Results made by hand, so that plots are tested without a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from subgrove import ImportanceResult
from subgrove._scoring.feature_result import FeatureResult

RULES = ("season in {WINTER}", "season in {SPRING, FALL}", "season in {SUMMER} and hum <= 66.75", "hum > 66.75")


def make_result(
    estimates: Mapping[str, float],
    *,
    given: Mapping[str, Sequence[str]] | None = None,
    rules: Sequence[str] = ("all rows",),
    sampler: str = "subgroups",
    losses: tuple[str, ...] = ("absolute_error",),
    seed: int = 0,
    **other: Any,
) -> ImportanceResult:
    """A result with these estimates of the first loss, twice as much of the second, and so on."""
    rng = np.random.default_rng(seed)
    scores = tuple(
        _score(name, value, tuple((given or {}).get(name, ())), tuple(rules), len(losses), rng)
        for name, value in estimates.items()
    )
    settings = {"sampler": sampler, "method": "importance"}
    values = {"per_row_losses": (True,) * len(losses), **other}
    return ImportanceResult(scores, losses, (1.0,) * len(losses), settings, **values)


def _score(
    name: str, value: float, given: tuple[str, ...], rules: tuple[str, ...], n_losses: int, rng: np.random.Generator
) -> FeatureResult:
    n, n_repeats, n_rules = 40, 3, len(rules)
    code = np.arange(n, dtype=np.uint8) % n_rules
    factor = np.arange(1.0, n_losses + 1)[:, None]
    rows = factor * (value + rng.normal(0, 3, n)[None, :])
    repeats = np.full((n_losses, n_repeats, n_rules), value) * factor[:, :, None]
    return FeatureResult(
        feature=(name,),
        rules=rules,
        conditioning=given,
        folds=(),
        n_rows=n,
        code=code,
        sizes=np.bincount(code, minlength=n_rules).astype(np.float64),
        rows=rows,
        influence=rows,
        repeats=repeats + np.arange(n_rules),
        overall=np.full((n_losses, n_repeats), value) * factor,
        excess=np.zeros((n_losses, n_rules)),
        mc_variance=np.zeros((n_losses, n_rules)),
    )
