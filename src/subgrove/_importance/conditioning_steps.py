"""Importance of a feature for sets of conditioning columns, from none (marginal) to all (conditional).

`RelativeImportance` has the importance given more and more columns, with the sampler fitted again for each set.

The steps of a gap are between two results. Where the feature has a tree, a set stands for its splits on these columns:
the pruned tree. Otherwise the sampler is fitted again with `given`. A step is a sum of such importances with
coefficients +1 and -1 (one order), or with Shapley weights (mean over orders); either way the steps sum to the
difference of the two results.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, combinations, pairwise
from math import factorial
from typing import Any

import numpy as np

from subgrove._core.execution import stream
from subgrove._core.html_views import ResultView
from subgrove._core.text import lines_of, quote, with_errors
from subgrove._data.to_containers import table_of_lines
from subgrove._importance.gap_result import OTHER_DRAWS, Gap, GapStep
from subgrove._importance.intervals import adjusted_p_values, combined_variance
from subgrove._importance.recompute import Block, ScoringSource, block_title, conditioning_blocks, stored_inputs
from subgrove._importance.tables import ImportanceData, differences, overall_line, same_rows, score_of
from subgrove._scoring.estimate_variance import monte_carlo_variance
from subgrove._scoring.feature_result import FeatureResult, with_rows
from subgrove.exceptions import ParameterError
from subgrove.samplers.base import Feature, title
from subgrove.samplers.fit import samplers_by_name

MAX_EXACT = 6  # up to so many columns the mean is over all orders
N_ORDERS = 32  # with more columns, over so many random ones
_ROUNDING = 1e-9
Set = frozenset[str]
Coefficients = dict[Set, float]  # of the importance given each set, in a step


@dataclass(frozen=True, eq=False, repr=False)
class RelativeImportance(ResultView):
    """Importance of a feature for growing sets of conditioning columns, as returned by `ImportanceResult.relative`.

    Attributes
    ----------
    feature : str
        Its name.
    added : tuple of str
        The columns that each step adds; "" in the first.
    given : tuple of tuples of str
        The conditioning columns of each step.
    results : tuple of ImportanceResult
        One for each step.
    backend : str
        Library of the tables.

    Notes
    -----
    How to read it: the first row is the marginal importance, the last one the conditional importance. Where `estimate`
    falls, the feature shares importance with the added column, given the columns before it. `change` is the difference
    to the row above, with the standard error of the paired difference.

    Examples
    --------
    >>> import subgrove as sg
    >>> train, test = sg.datasets.bike(split=0.7, random_state=1)
    >>> def model(X):
    ...     return 2000 + 100 * X["temp"] + 1000 * (X["yr"] == "2012")
    >>> options = {"features": ["temp"], "loss": "absolute_error", "random_state": 1}
    >>> within = sg.importance(model, test.X, test.y, sampler="subgroups", train=train.X, **options)
    >>> within.relative("temp", order=["season", "hum"]).table["added"].tolist()[:2]
    ['', 'season']
    """

    feature: str
    added: tuple[str, ...]
    given: tuple[tuple[str, ...], ...]
    results: tuple[ImportanceData, ...]
    backend: str = "pandas"

    @property
    def table(self) -> Any:
        """One row for each step (and loss): the columns, the importance, and the change from the step before."""
        lines = [line for loss in self.results[0].losses for line in self._lines(loss)]
        return table_of_lines(self.backend, lines)

    def with_level(self, level: float) -> RelativeImportance:
        """Return the same with intervals of another confidence level.

        Parameters
        ----------
        level : float
            Coverage of the intervals, between 0 and 1.
        """
        return replace(self, results=tuple(result.with_level(level) for result in self.results))

    def _lines(self, loss: str) -> list[dict[str, Any]]:
        several = {"loss": loss} if len(self.results[0].losses) > 1 else {}
        steps = [result.for_loss(loss) for result in self.results]
        lines: list[dict[str, Any]] = []
        for at, result in enumerate(steps):
            (line,) = adjusted_p_values([overall_line(result, result.scores[0], 0)])
            del line["feature"]
            noise = line.pop("noise")
            change, error = 0.0, 0.0
            if at:
                (paired,) = differences(result, steps[at - 1])
                change, error = paired["estimate"], paired["std_error"]
            if not result.per_row_losses[0]:
                error = np.nan
            step = {"step": at, "added": self.added[at], "given": ", ".join(self.given[at]), **several}
            lines.append({**step, **line, "change": change, "change_std_error": error, "noise": noise})
        return lines

    def __repr__(self) -> str:
        losses, names = self.results[0].losses, ["given nothing", *(f"+ {name}" for name in self.added[1:])]
        rows = self._lines(losses[0])
        numbers = with_errors([row["estimate"] for row in rows], [row["std_error"] for row in rows])
        lines = list(zip(names, numbers, strict=True))
        return lines_of(f"<RelativeImportance of {self.feature!r}: {', '.join(losses)}>", lines, most=len(lines))


def relative_steps(result: ImportanceData, source: ScoringSource, feature: Feature, order: Any) -> RelativeImportance:
    """Return the importance of a feature with the sampler fitted again for each set of columns."""
    others = tuple(name for name in source.names if name not in feature)
    if order is None:
        blocks, named = conditioning_blocks(source, feature, others), 0
    else:
        blocks, named = _blocks_in_order(order, feature, others)
    source.check_unchanged(result.settings["fingerprint"])
    given, steps = tuple(accumulate(blocks, initial=())), []
    for columns in given:
        score, n_rows = source.refitted(feature, columns, check=True)
        settings = {**result.settings, "given": {title(feature): list(columns)}, "n_rows_predicted": n_rows}
        scores = (source.of_losses(score, result.losses),)
        steps.append(replace(result, scores=scores, settings=settings, _source=None))
    added = ("", *(block_title(block, others=place >= named) for place, block in enumerate(blocks)))
    return RelativeImportance(title(feature), added, given, tuple(steps), result.backend)


def _blocks_in_order(order: Any, feature: Feature, others: Sequence[str]) -> tuple[tuple[Block, ...], int]:
    """Return the columns that each step adds, and how many of the steps the user named."""
    if isinstance(order, str) or not isinstance(order, Iterable):
        order = [order]
    # Labels of pandas columns may be numbers; as names they are text.
    blocks = tuple(
        (str(each),) if isinstance(each, str) or not isinstance(each, Iterable) else tuple(map(str, each))
        for each in order
    )
    names = [name for block in blocks for name in block]
    if own := [name for name in names if name in feature]:
        raise ParameterError(
            f"order names {quote(own)}, which is resampled itself: a feature cannot be conditional on itself."
        )
    if unknown := [name for name in names if name not in others]:
        raise ParameterError(f"order names {quote(unknown)}, but the other columns are {quote(others)}.")
    if repeated := [name for name in dict.fromkeys(names) if names.count(name) > 1]:
        raise ParameterError(f"order names {quote(repeated)} more than once. Each column is added once.")
    unnamed = tuple(name for name in others if name not in names)
    return (*blocks, unnamed) if unnamed else blocks, len(blocks)


def gap_between(imp: ImportanceData, marginal: ImportanceData, feature: Any, loss: str | None, *, average: bool) -> Gap:
    """Return the steps from the marginal to the conditional result of a feature."""
    _reject_other_results(imp, marginal)
    name = imp.losses[0] if loss is None else loss
    one = imp.for_loss(name)
    if name not in marginal.losses:
        raise ParameterError(
            f"marginal has no loss {name!r}; it has {', '.join(marginal.losses)}. Compute it with both."
        )
    base = marginal.for_loss(name)
    if not np.isclose(one.baseline[0], base.baseline[0], rtol=_ROUNDING, atol=0):
        raise ParameterError(
            f"The two results are of different models: the baseline {name} is {one.baseline[0]:.6g} here and "
            f"{base.baseline[0]:.6g} in marginal. Compute both for the same model, rows and loss."
        )
    score = score_of(with_rows(one.scores, "explain_gap"), feature)
    conditional, start = score.uncalibrated(), _marginal_score(base, score).uncalibrated()
    walk = _Walk(one, score.feature, name, conditional, start)
    coefficients, orders = _steps(walk.names, walk.seed, average=average)
    steps = [walk.step(block, weights) for block, weights in zip(walk.names, coefficients, strict=True)]
    noise = walk.noise([(1.0, start), (-1.0, conditional)])
    first, last = _estimate(start), _estimate(conditional)
    if not steps and first != last:
        steps = [GapStep(OTHER_DRAWS, 0.0, 0.0, first - last, *noise)]
    return Gap(
        feature=score.title,
        loss=name,
        marginal=first,
        conditional=last,
        parts=_chained(steps, first, last),
        noise=noise,
        marginal_noise=walk.noise([(1.0, start)]),
        conditional_noise=walk.noise([(1.0, conditional)]),
        orders=orders,
        kind=walk.kind,
        n_rows_predicted=walk.n_rows_predicted,
        per_row=one.per_row_losses[0],
        backend=imp.backend,
    )


def _reject_other_results(imp: ImportanceData, marginal: Any) -> None:
    if not isinstance(marginal, ImportanceData):
        raise ParameterError(
            f"marginal must be an ImportanceResult, of importance(..., sampler='marginal'); "
            f"got {type(marginal).__name__}."
        )
    for what, result in (("this result", imp), ("marginal", marginal)):
        if result.settings.get("method") != "importance":
            raise ParameterError(
                f"{what} is of {result.settings.get('method')}, but a gap is between two results of importance."
            )
    sampler, known = imp.settings.get("sampler"), samplers_by_name()
    if sampler in known and not known[sampler]().conditional:
        raise ParameterError(
            f"This result is of sampler {sampler!r}, which does not condition on other columns, so there is no gap to "
            f"explain. Call the method of a conditional result, as in conditional.explain_gap(marginal, feature)."
        )
    for result in (imp, marginal):
        with_rows(result.scores, "explain_gap")
    if not same_rows(imp, marginal):
        raise ParameterError("The two results are of different rows or weights. Compute both on the same ones.")


def _marginal_score(marginal: ImportanceData, like: FeatureResult) -> FeatureResult:
    theirs = with_rows(marginal.scores, "explain_gap")
    score = next((score for score in theirs if frozenset(score.feature) == frozenset(like.feature)), None)
    if score is None:
        raise ParameterError(f"marginal has no feature {like.title!r}; it has {', '.join(marginal.features)}.")
    given = (marginal.settings.get("given") or {}).get(score.title)
    if marginal.settings.get("sampler") != "marginal" and given != []:
        raise ParameterError(
            f"marginal was computed with sampler {marginal.settings.get('sampler')!r}. Pass a result of "
            f"sampler='marginal' (or given=[])."
        )
    return score


@dataclass(eq=False)
class _Walk:
    """Importance of a feature for sets of conditioning columns, each computed when it is needed, and once."""

    imp: ImportanceData
    feature: Feature
    loss: str
    conditional: FeatureResult
    marginal: FeatureResult
    n_rows_predicted: int = 0
    known: dict[Set, FeatureResult] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.seed = int(self.imp.settings["random_state"])
        blocks, self.kind = self._blocks()
        last = len(blocks) - 1 if self.kind == "sampler" else None
        self.names = tuple(block_title(block, others=place == last) for place, block in enumerate(blocks))
        self.columns = dict(zip(self.names, blocks, strict=True))
        self.known[self._key(frozenset(self.names))] = self.conditional
        self.known[frozenset()] = self.marginal

    @property
    def source(self) -> ScoringSource:
        """The inputs of the result."""
        return stored_inputs(self.imp._source, "explain_gap")

    def _blocks(self) -> tuple[tuple[Block, ...], str]:
        conditioning = self.conditional.conditioning
        if self.imp._source is None and len(conditioning) == 1:
            return (conditioning,), "trees"
        columns = self.source.split_columns(self.feature)
        if columns is not None:
            return tuple((name,) for name in columns), "trees" if columns else "no split"
        blocks = conditioning_blocks(self.source, self.feature, self.source.given_for(self.feature))
        return blocks, "sampler" if blocks else "no columns"

    def _key(self, names: Set) -> Set:
        """Return the columns that make a difference: of a tree, those that it still splits on."""
        if self.kind != "trees" or self.imp._source is None or not names:
            return names
        columns = [name for block in names for name in self.columns[block]]
        pruned = self.source.trees[self.feature].restricted(self.feature, columns)
        return frozenset(pruned.split_columns(self.feature) or ())

    def score(self, names: Set) -> FeatureResult:
        """Return the scores of the feature given some of the columns."""
        key = self._key(names)
        if key not in self.known:
            source = self.source
            if not self.n_rows_predicted:
                self.n_rows_predicted += source.check_unchanged(self.imp.settings["fingerprint"])
            columns = tuple(name for block in self.names if block in key for name in self.columns[block])
            if self.kind == "trees":
                score, n_rows = source.restricted(self.feature, frozenset(columns))
            else:
                score, n_rows = source.refitted(self.feature, columns)
            self.n_rows_predicted += n_rows
            self.known[key] = source.of_losses(score, (self.loss,))
        return self.known[key]

    def step(self, name: str, coefficients: Coefficients) -> GapStep:
        """Return one step: a sum of importances with coefficients."""
        factors: dict[int, float] = {}
        scores: dict[int, FeatureResult] = {}
        for names, factor in coefficients.items():
            score = self.score(names)
            scores[id(score)] = score
            factors[id(score)] = factors.get(id(score), 0.0) + factor
        terms = [(factor, scores[key]) for key, factor in factors.items() if abs(factor) > _ROUNDING]
        value = sum(factor * _estimate(score) for factor, score in terms)
        return GapStep(name, 0.0, 0.0, float(value), *self.noise(terms))

    def noise(self, terms: Sequence[tuple[float, FeatureResult]]) -> tuple[float, float]:
        """Return the standard error of a sum of estimates over test rows, and over draws."""
        per_row = self.imp.per_row_losses[0]
        if not terms:
            return 0.0, 0.0
        rows = combined_variance(terms, self.imp.weights) if per_row else np.nan
        draws = sum(factor**2 * monte_carlo_variance(score, 0, per_row=per_row) for factor, score in terms)
        return float(np.sqrt(rows)), float(np.sqrt(draws))


def _estimate(score: FeatureResult) -> float:
    return float(score.overall[0].mean())


def _steps(names: Sequence[str], seed: int, *, average: bool) -> tuple[list[Coefficients], str]:
    """Return the coefficients of each column's step, and the orders that they are averaged over."""
    if not average or len(names) < 2:
        return _along(names), ""
    if len(names) <= MAX_EXACT:
        return [_shapley(name, names) for name in names], "all orders"
    rng = stream(seed, "orders of columns")
    orders: list[list[str]] = []
    while len(orders) < N_ORDERS:
        order = [names[at] for at in rng.permutation(len(names))]
        orders += [order, order[::-1]]  # a column that is early in one is late in the other
    total: Mapping[str, Coefficients] = {name: {} for name in names}
    for order in orders:
        for name, coefficients in zip(order, _along(order), strict=True):
            for known, factor in coefficients.items():
                total[name][known] = total[name].get(known, 0.0) + factor / len(orders)
    return [total[name] for name in names], f"{len(orders)} orders"


def _along(order: Sequence[str]) -> list[Coefficients]:
    return [{frozenset(order[:at]): 1.0, frozenset(order[: at + 1]): -1.0} for at in range(len(order))]


def _shapley(name: str, names: Sequence[str]) -> Coefficients:
    others = [other for other in names if other != name]
    n = len(names)
    coefficients: Coefficients = {}
    for size in range(n):
        share = factorial(size) * factorial(n - size - 1) / factorial(n)
        for known in combinations(others, size):
            coefficients[frozenset(known)] = share
            coefficients[frozenset([*known, name])] = -share
    return coefficients


def _chained(steps: Sequence[GapStep], first: float, last: float) -> tuple[GapStep, ...]:
    """Return the steps with the importance before and after each; the last ends at the conditional importance."""
    ends = [*accumulate((-step.step for step in steps[:-1]), initial=first), last]
    pairs = zip(steps, pairwise(ends), strict=False)  # without a step there is still a first and a last importance
    return tuple(replace(step, start=start, end=end) for step, (start, end) in pairs)
