"""The steps from marginal to conditional importance of a feature, as a table and in sentences.

Shares of the marginal importance are stated where that and the gap are significant and no share is below 0 or above 1;
otherwise amounts are. Significant means more than two standard errors, of test rows and draws together.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np

from subgrove._core.html_views import ResultView
from subgrove._core.text import lines_of, listed, number, percent, with_errors
from subgrove._data.to_containers import make_table

OTHER_DRAWS = "other draws"
"""The only step where no column makes a difference, but donors were other rows."""
_SIGNIFICANT = 2.0  # standard errors
_ALL = 0.995
_OTHERS = re.compile(r"the other \d+ columns")


@dataclass(frozen=True)
class GapStep:
    """The change of a feature's importance when one column (or several together) is held fixed as well.

    Attributes
    ----------
    column : str
        Its name, or "the other N columns"; "other draws" where no column is held fixed but the draws differ.
    start, end : float
        Importance of the feature before and after.
    step : float
        The difference: importance that the feature shares with the column.
    std_error, mc_error : float
        Standard error of the step over test rows, and over Monte Carlo draws.

    Examples
    --------
    >>> import subgrove as sg
    >>> train, test = sg.datasets.bike(split=0.7, random_state=1)
    >>> def model(X):
    ...     return 2000 + 100 * X["temp"] + 1000 * (X["yr"] == "2012")
    >>> options = {"features": ["temp"], "loss": "absolute_error", "random_state": 1}
    >>> within = sg.importance(model, test.X, test.y, sampler="subgroups", train=train.X, **options)
    >>> marginal = sg.importance(model, test.X, test.y, sampler="marginal", **options)
    >>> within.explain_gap(marginal, "temp").parts[0].column
    'season'
    """

    column: str
    start: float
    end: float
    step: float
    std_error: float
    mc_error: float

    @property
    def noise(self) -> float:
        """Standard error of the step, of test rows and draws together."""
        return total_error((self.std_error, self.mc_error))

    @property
    def is_significant(self) -> bool:
        """Whether the step is more than two standard errors from 0."""
        return abs(self.step) > _SIGNIFICANT * self.noise


@dataclass(frozen=True, repr=False)
class Gap(ResultView):
    """Why marginal and conditional importance of a feature differ, as returned by `ImportanceResult.explain_gap`.

    Attributes
    ----------
    feature, loss : str
        The feature and the loss.
    marginal, conditional : float
        Estimates of the two results.
    parts : tuple of GapStep
        One for each conditioning column.
    noise, marginal_noise, conditional_noise : pairs of float
        Standard errors of the gap and of its ends: over test rows, and over Monte Carlo draws.
    orders : str
        "" for the order of the tree, else the orders that steps are averaged over.
    kind : {"trees", "sampler", "no split", "no columns"}
        Whether columns are those of the feature's tree, or the sampler was fitted again for each set of columns; or why
        there are none.
    n_rows_predicted : int
        Rows that the model predicted.
    per_row : bool
        Whether the loss has a value for each row; otherwise the noise of the test rows is not known.
    backend : str
        Library of the tables.

    Notes
    -----
    How to read it: `step` is the importance that the feature shares with the column, given the columns before it;
    `share` is its proportion of the marginal importance. The conditional importance remains at the end. Steps sum to
    `marginal - conditional`. A column that is not among the steps was not split on.

    With another random state, another number of repeats or other donors in the two results, the first step includes
    what these change, and so does its standard error. Compute both with the same random state.

    Examples
    --------
    >>> import subgrove as sg
    >>> train, test = sg.datasets.bike(split=0.7, random_state=1)
    >>> def model(X):
    ...     return 2000 + 100 * X["temp"]
    >>> options = {"features": ["temp"], "loss": "absolute_error", "random_state": 1}
    >>> imp = sg.importance(model, test.X, test.y, sampler="subgroups", train=train.X, **options)
    >>> gap = imp.explain_gap(sg.importance(model, test.X, test.y, sampler="marginal", **options), "temp")
    >>> gap.steps[["column", "importance_before", "importance_after", "step", "share"]].round(2)
       column  importance_before  importance_after    step  share
    0  season             439.93            164.42  275.51   0.63
    1     hum             164.42            157.44    6.99   0.02
    """

    _tables = ("steps",)

    feature: str
    loss: str
    marginal: float
    conditional: float
    parts: tuple[GapStep, ...]
    noise: tuple[float, float]
    marginal_noise: tuple[float, float]
    conditional_noise: tuple[float, float]
    orders: str = ""
    kind: str = "trees"
    n_rows_predicted: int = 0
    per_row: bool = True
    backend: str = "pandas"

    @property
    def gap(self) -> float:
        """Marginal minus conditional importance."""
        return self.marginal - self.conditional

    @property
    def std_error(self) -> float:
        """Standard error of the gap over test rows, which both importances share."""
        return self.noise[0]

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the steps."""
        return tuple(part.column for part in self.parts)

    @property
    def steps(self) -> Any:
        """One row for each column: importance before and after it is held fixed, and the share of the marginal."""
        columns = {
            "column": list(self.columns),
            "importance_before": [part.start for part in self.parts],
            "importance_after": [part.end for part in self.parts],
            "step": [part.step for part in self.parts],
            "share": [part.step / self.marginal if self.marginal > 0 else np.nan for part in self.parts],
            "std_error": [part.std_error for part in self.parts],
            "mc_error": [part.mc_error for part in self.parts],
        }
        return make_table(self.backend, columns)

    @property
    def sentences(self) -> tuple[str, ...]:
        """The gap in words."""
        sentences = [_marginal_sentence(self), *_gap_sentences(self)]
        if not self.per_row:
            sentences.append(
                f"{_loss(self).capitalize()} is a score of all rows together: only its Monte Carlo error is known."
            )
        return tuple(sentences)

    def __str__(self) -> str:
        return " ".join(self.sentences)

    def __repr__(self) -> str:
        rows = [("marginal", self.marginal, total_error(self.marginal_noise))]
        rows += [(f"- {part.column}", 0.0 - part.step, part.noise) for part in self.parts]
        rows += [("conditional", self.conditional, total_error(self.conditional_noise))]
        head = f"<Gap of {self.feature!r}: {self.loss}{', mean over ' + self.orders if self.orders else ''}>"
        names, values, errors = zip(*rows, strict=True)
        lines = list(zip(names, with_errors(values, errors), strict=True))
        return lines_of(head, lines, most=len(lines))


def total_error(errors: tuple[float, float]) -> float:
    """Return the standard error over test rows and draws together, as far as both are known."""
    return float(np.sqrt(np.nansum(np.square(errors))))


def _loss(gap: Gap) -> str:
    return gap.loss.replace("_", " ")


def _is_significant(value: float, noise: tuple[float, float]) -> bool:
    return abs(value) > _SIGNIFICANT * total_error(noise)


def _held_fixed(gap: Gap) -> str:
    verb = "are" if _is_plural(gap.parts) else "is"
    return f"once {listed(gap.columns, most=len(gap.columns))} {verb} held fixed"


def _is_plural(parts: Sequence[GapStep]) -> bool:
    return len(parts) > 1 or bool(_OTHERS.fullmatch(parts[0].column))


def _marginal_sentence(gap: Gap) -> str:
    significant = _is_significant(gap.marginal, gap.marginal_noise)
    if gap.marginal > 0 and gap.conditional >= 0 and significant and gap.parts and _marginal_is_larger(gap):
        return (
            f"Shuffling {gap.feature} increases the {_loss(gap)} by {number(gap.marginal)}, and by "
            f"{number(gap.conditional)} {_held_fixed(gap)}."
        )
    error = "" if significant else f", which is within noise (standard error {number(total_error(gap.marginal_noise))})"
    if gap.marginal == 0:
        return f"Shuffling {gap.feature} does not change the {_loss(gap)}."
    verb = "increases" if gap.marginal > 0 else "decreases"
    return f"Shuffling {gap.feature} {verb} the {_loss(gap)} by {number(abs(gap.marginal))}{error}."


def _marginal_is_larger(gap: Gap) -> bool:
    return gap.kind in ("trees", "sampler") and gap.gap > 0 and _is_significant(gap.gap, gap.noise)


def _gap_sentences(gap: Gap) -> list[str]:
    if gap.kind in ("no split", "no columns"):
        return _no_columns(gap)
    if gap.marginal == gap.conditional == 0:
        return [f"Nor does it {_held_fixed(gap)}."]
    if not _is_significant(gap.gap, gap.noise):
        return [
            f"The importance is {_conditional(gap)} {_held_fixed(gap)}: the difference of {number(abs(gap.gap))} is "
            f"within noise (standard error {number(total_error(gap.noise))}), so there is no evidence that "
            f"{gap.feature} shares importance with other columns."
        ]
    if gap.gap < 0:
        more = f"The importance is {_conditional(gap)} {_held_fixed(gap)}, {number(-gap.gap)} more"
        why = f": shuffling understates {gap.feature}" if gap.conditional > 0 else ""
        return [f"{more}{why}.", *_amounts(gap)]
    if _shares_make_sense(gap):
        return [_shares(gap), _remaining_share(gap)]
    return [*_amounts(gap), _remaining_amount(gap)]


def _conditional(gap: Gap) -> str:
    return number(gap.conditional) if gap.conditional >= 0 else f"below 0 ({number(gap.conditional)})"


def _no_columns(gap: Gap) -> list[str]:
    reason = f"The tree of {gap.feature} has no split: no column is significantly associated with it."
    if gap.kind == "no columns":
        reason = "There is no other column to condition on."
    differ = "The two results differ by {} only because donors were other rows."
    return [reason, *(differ.format(number(abs(part.step))) for part in gap.parts)]


def _shares_make_sense(gap: Gap) -> bool:
    if gap.marginal <= 0 or not _is_significant(gap.marginal, gap.marginal_noise):
        return False
    if gap.conditional < 0 and _is_significant(gap.conditional, gap.conditional_noise):
        return False
    significant = [part for part in gap.parts if part.is_significant]
    return all(part.step > 0 for part in significant) and all(part.step <= 1.05 * gap.marginal for part in gap.parts)


def _shares(gap: Gap) -> str:
    """Return what the feature shares with each column, as shares of the marginal importance."""
    clauses: list[str] = []
    of_which = f" of the {number(gap.marginal)} is shared"  # said once
    for significant, group in groupby(gap.parts, key=lambda part: part.is_significant):
        parts = list(group)
        if significant:
            shares = [f"{_share(part.step / gap.marginal)} with {part.column}" for part in parts]
            clauses += [shares[0].replace(" with", f"{of_which} with", 1), *shares[1:]]
            of_which = ""
        else:
            share = percent(sum(part.step for part in parts) / gap.marginal) + " together" * (len(parts) > 1)
            names = listed([part.column for part in parts], most=len(parts))
            clauses.append(f"{names} {'share' if _is_plural(parts) else 'shares'} nothing significant ({share})")
    if gap.orders:
        return f"Averaged over {gap.orders} of the columns, {'; '.join(clauses)}."
    return _sentence(clauses)


def _share(share: float) -> str:
    return "all" if share >= _ALL else percent(share)


def _sentence(clauses: Sequence[str]) -> str:
    """Return clauses as a sentence; names of columns keep their letters."""
    text = "; ".join(clauses)
    first = next((word for word in ("all", "less", "the other", "with") if text.startswith(f"{word} ")), None)
    return f"{text if first is None else text[0].upper() + text[1:]}."


def _remaining_share(gap: Gap) -> str:
    if not _is_significant(gap.conditional, gap.conditional_noise):
        return f"No significant importance remains for {gap.feature} alone."
    given = "its subgroups" if gap.kind == "trees" else "the columns that the sampler conditions on"
    return f"{percent(gap.conditional / gap.marginal)} remains for {gap.feature} alone, given {given}."


def _amounts(gap: Gap) -> list[str]:
    """Return what each column changes, in units of the loss."""
    clauses = []
    for place, part in enumerate(gap.parts):
        change = "unchanged"
        if part.step:
            change = f"{number(abs(part.step))} {'less' if part.step > 0 else 'more'}"
        noise = "" if part.is_significant or part.step == 0 else " (within noise)"
        also = " as well" if place and not gap.orders else ""
        clauses.append(f"with {part.column} held fixed{also}, it is {change}{noise}")
    if gap.orders:
        return [f"Averaged over {gap.orders} of the columns: {'; '.join(clauses)}."]
    return [_sentence(clauses)]


def _remaining_amount(gap: Gap) -> str:
    noise = "" if _is_significant(gap.conditional, gap.conditional_noise) else ", which is within noise of 0"
    if gap.conditional > 0:
        return f"{number(gap.conditional)} remains{noise}."
    decrease = f"the {_loss(gap)} decreases by {number(-gap.conditional)}{noise}"
    return f"Nothing remains: with all of them held fixed, {decrease}."
