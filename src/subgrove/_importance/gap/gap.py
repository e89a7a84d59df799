"""From marginal to conditional importance: which columns are known, and what the feature still costs then.

The importance of a feature is asked for sets of conditioning columns between none (marginal) and all (conditional).
Where the feature has a tree, a set stands for its splits on these columns: the tree, pruned. Else the sampler is fitted
again with `given`. A step is a sum of such importances with factors +1 and -1 (one order), or with Shapley's weights
(mean over orders); either way steps add up to the difference of the two ends, which are the results themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from math import factorial
from typing import TYPE_CHECKING, Any

import numpy as np

from subgrove._core.random import stream
from subgrove._importance.gap.order import Block, block_title, by_dependence, in_blocks
from subgrove._importance.gap.result import OTHER_DRAWS, Gap, GapStep
from subgrove._importance.inference.intervals import combined_variance
from subgrove._importance.recompute import ScoringSource
from subgrove._scoring.estimate_variance import monte_carlo_variance
from subgrove._scoring.feature_result import FeatureResult, with_rows
from subgrove._scoring.row_losses import names_of
from subgrove.exceptions import ParameterError
from subgrove.samplers.base import Feature, title
from subgrove.samplers.conditioning import takes_given
from subgrove.samplers.fit import training_rows

if TYPE_CHECKING:
    from subgrove._importance.result import ImportanceResult

MOST_EXACT = 6  # up to so many columns the mean is over all orders
N_ORDERS = 32  # beyond, over so many drawn ones
_ROUNDING = 1e-9
Set = frozenset[str]
Weights = dict[Set, float]  # factor of each set in a step


def gap_between(imp: ImportanceResult, marginal: Any, feature: Any, loss: str | None, *, average: bool) -> Gap:
    """What `ImportanceResult.gap` returns."""
    _reject_other_results(imp, marginal)
    name = imp.losses[0] if loss is None else loss
    one, base = imp.for_loss(name), _for_loss(marginal, name)
    if not np.isclose(one.baseline[0], base.baseline[0], rtol=_ROUNDING, atol=0):
        raise ParameterError(
            f"The two results are of different models: the {name} of the rows as they are is {one.baseline[0]:.6g} "
            f"here and {base.baseline[0]:.6g} in marginal. Compute both for the same model, rows and loss."
        )
    conditional = _score_of(one, feature)
    ends = conditional.uncalibrated(), _marginal_score(base, conditional).uncalibrated()
    sets = _Sets(one, conditional.feature, name, ends)
    steps, orders = _steps(sets.names, sets.seed, average=average)
    made = [sets.step(block, weights) for block, weights in zip(sets.names, steps, strict=True)]
    whole, start, end = (
        sets.noise(terms) for terms in ([(1.0, ends[1]), (-1.0, ends[0])], [(1.0, ends[1])], [(1.0, ends[0])])
    )
    first, last = _estimate(ends[1]), _estimate(ends[0])
    if not made and first != last:
        made = [GapStep(OTHER_DRAWS, 0.0, 0.0, first - last, *whole)]
    return Gap(
        conditional.title,
        name,
        first,
        last,
        _chained(made, first, last),
        whole,
        start,
        end,
        orders,
        sets.kind,
        sets.n_rows_predicted,
        one.per_row_losses[0],
        imp.backend,
    )


def _reject_other_results(imp: ImportanceResult, marginal: Any) -> None:
    if not hasattr(marginal, "for_loss"):
        raise ParameterError(
            f"marginal must be an ImportanceResult, of importance(..., sampler='marginal'); "
            f"got {type(marginal).__name__}."
        )
    for what, result in (("this result", imp), ("marginal", marginal)):
        if result.settings.get("method") != "importance":
            raise ParameterError(f"{what} is of {result.settings.get('method')}, but a gap is between redraws.")
    _reject_unconditional(imp.settings.get("sampler"))
    for result in (imp, marginal):
        with_rows(result.scores, "gap")
    ours, theirs = (np.ones(one.n_rows) if one.weights is None else one.weights for one in (imp, marginal))
    if imp.settings.get("fingerprint") != marginal.settings.get("fingerprint") or not np.array_equal(ours, theirs):
        raise ParameterError("The two results are of different rows or weights. Compute both on the same ones.")


def _reject_unconditional(sampler: Any) -> None:
    from subgrove.samplers.registry import NAMES

    if sampler in NAMES and not NAMES[sampler]().conditional:
        raise ParameterError(
            f"This result is of sampler {sampler!r}, which does not look at other columns, so there is no gap to "
            f"explain. Ask a conditional result, as in conditional.explain_gap(marginal, feature)."
        )


def _for_loss(marginal: ImportanceResult, name: str) -> ImportanceResult:
    if name not in marginal.losses:
        raise ParameterError(
            f"marginal has no loss {name!r}; it has {', '.join(marginal.losses)}. Compute it with both."
        )
    return marginal.for_loss(name)


def _score_of(result: ImportanceResult, feature: Any) -> FeatureResult:
    scores = with_rows(result.scores, "gap")
    if feature is None and len(scores) == 1:
        return scores[0]
    asked = frozenset(map(str, feature)) if isinstance(feature, list | tuple) else None
    for score in scores:
        if score.title == str(feature) or frozenset(score.feature) == asked:
            return score
    raise ParameterError(f"feature={feature!r} is not among the features of this result: {', '.join(result.features)}.")


def _marginal_score(marginal: ImportanceResult, like: FeatureResult) -> FeatureResult:
    theirs = with_rows(marginal.scores, "gap")
    found = next((score for score in theirs if frozenset(score.feature) == frozenset(like.feature)), None)
    if found is None:
        raise ParameterError(f"marginal has no feature {like.title!r}; it has {', '.join(marginal.features)}.")
    given = (marginal.settings.get("given") or {}).get(found.title)
    if marginal.settings.get("sampler") != "marginal" and given != []:
        raise ParameterError(
            f"marginal was computed with sampler {marginal.settings.get('sampler')!r}. Pass a result of "
            f"sampler='marginal' (or given=[])."
        )
    return found


@dataclass(eq=False)
class _Sets:
    """Importance of a feature for sets of conditioning columns, asked for when it is needed, and once."""

    imp: ImportanceResult
    feature: Feature
    loss: str
    ends: tuple[FeatureResult, FeatureResult]
    n_rows_predicted: int = 0
    known: dict[Set, FeatureResult] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.seed = int(self.imp.settings["random_state"])
        self.blocks, self.kind = self._blocks()
        every = self.kind == "sampler"
        last = len(self.blocks) - 1
        self.names = tuple(
            block_title(block, others=every and place == last) for place, block in enumerate(self.blocks)
        )
        self.of = dict(zip(self.names, self.blocks, strict=True))
        conditional, marginal = self.ends
        self.known[self._key(frozenset(self.names))] = conditional
        self.known[frozenset()] = marginal

    @property
    def source(self) -> ScoringSource:
        """What the result was computed from."""
        source = self.imp._source
        if source is None:
            raise ParameterError(
                f"The steps of {title(self.feature)!r} need the model and the rows, which a result that was loaded or "
                f"unpickled does not have. Compute it again with importance, and ask that result for its gap."
            )
        assert isinstance(source, ScoringSource)
        return source

    def _blocks(self) -> tuple[tuple[Block, ...], str]:
        score = self.ends[0]
        if self.imp._source is None and len(score.conditioning) == 1:
            return (score.conditioning,), "trees"
        source = self.source
        columns = source.split_columns(self.feature)
        if columns is not None:
            return tuple((name,) for name in columns), "trees" if columns else "no split"
        others = source.given_for(self.feature)
        if not others:
            return (), "no columns"
        if not takes_given(source.sampler):
            return (others,), "sampler"
        train = source.rows if source.train is None else training_rows(source.train)
        return in_blocks(by_dependence(train, self.feature, others)), "sampler"

    def _key(self, names: Set) -> Set:
        """Names of the columns that make a difference: in a tree, those that it still splits on."""
        if self.kind != "trees" or self.imp._source is None or not names:
            return names
        columns = [name for block in names for name in self.of[block]]
        left = self.source.trees[self.feature].restricted(self.feature, columns).split_columns(self.feature)
        return frozenset(left or ())

    def score(self, names: Set) -> FeatureResult:
        """Scores of the feature, conditional on some of the columns."""
        key = self._key(names)
        if key not in self.known:
            source = self.source
            if not self.n_rows_predicted:
                self.n_rows_predicted += source.look_again(self.imp.settings["fingerprint"])
            columns = [name for block in self.names if block in key for name in self.of[block]]
            if self.kind == "trees":
                found, asked = source.restricted(self.feature, frozenset(columns))
            else:
                found, asked = source.refitted(self.feature, tuple(columns))
            self.n_rows_predicted += asked
            self.known[key] = _of_loss(found, names_of(source.question.scoring.losses).index(self.loss))
        return self.known[key]

    def step(self, name: str, weights: Weights) -> GapStep:
        """One step: a sum of importances with factors."""
        factors: dict[int, float] = {}
        scores: dict[int, FeatureResult] = {}
        for names, factor in weights.items():
            found = self.score(names)
            scores[id(found)] = found
            factors[id(found)] = factors.get(id(found), 0.0) + factor
        terms = [(factor, scores[key]) for key, factor in factors.items() if abs(factor) > _ROUNDING]
        value = sum(factor * _estimate(score) for factor, score in terms)
        return GapStep(name, 0.0, 0.0, float(value), *self.noise(terms))

    def noise(self, terms: Sequence[tuple[float, FeatureResult]]) -> tuple[float, float]:
        """Standard error over test rows and over draws of a sum of estimates."""
        per_row = self.imp.per_row_losses[0]
        if not terms:
            return 0.0, 0.0
        rows = combined_variance(terms, self.imp.weights) if per_row else np.nan
        draws = sum(factor**2 * monte_carlo_variance(score, 0, per_row=per_row) for factor, score in terms)
        return float(np.sqrt(rows)), float(np.sqrt(draws))


def _of_loss(score: FeatureResult, at: int) -> FeatureResult:
    names = ("rows", "influence", "repeats", "overall", "excess", "mc_variance")
    return replace(score, **{name: getattr(score, name)[at : at + 1] for name in names})


def _estimate(score: FeatureResult) -> float:
    return float(score.overall[0].mean())


def _steps(names: Sequence[str], seed: int, *, average: bool) -> tuple[list[Weights], str]:
    """For each column the factor of each set, and which orders that is the mean over."""
    if not average or len(names) < 2:
        return _along(names), ""
    if len(names) <= MOST_EXACT:
        return [_shapley(name, names) for name in names], "all orders"
    rng = stream(seed, "orders of columns")
    drawn: list[list[str]] = []
    while len(drawn) < N_ORDERS:
        order = [names[at] for at in rng.permutation(len(names))]
        drawn += [order, order[::-1]]  # a column that is early in one is late in the other
    total: Mapping[str, Weights] = {name: {} for name in names}
    for order in drawn:
        for name, weights in zip(order, _along(order), strict=True):
            for known, factor in weights.items():
                total[name][known] = total[name].get(known, 0.0) + factor / len(drawn)
    return [total[name] for name in names], f"{len(drawn)} orders"


def _along(order: Sequence[str]) -> list[Weights]:
    return [{frozenset(order[:at]): 1.0, frozenset(order[: at + 1]): -1.0} for at in range(len(order))]


def _shapley(name: str, names: Sequence[str]) -> Weights:
    others = [other for other in names if other != name]
    n = len(names)
    weights: Weights = {}
    for size in range(n):
        share = factorial(size) * factorial(n - size - 1) / factorial(n)
        for known in combinations(others, size):
            weights[frozenset(known)] = share
            weights[frozenset([*known, name])] = -share
    return weights


def _chained(steps: Iterable[GapStep], first: float, last: float) -> tuple[GapStep, ...]:
    """Steps with what the feature costs before and after each; the last ends where the result does."""
    made: list[GapStep] = []
    before = first
    steps = list(steps)
    for place, step in enumerate(steps):
        after = last if place == len(steps) - 1 else before - step.step
        made.append(replace(step, before=before, after=after))
        before = after
    return tuple(made)
