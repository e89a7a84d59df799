"""What `ImportanceResult.gap` returns: the way from marginal to conditional importance, as a table and in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from subgrove._core.html_views import html_of
from subgrove._data.result_tables import make_table
from subgrove._importance.gap.words import sentences_of, together

OTHER_DRAWS = "other draws"
"""The only step where no column makes a difference, but values were drawn from other rows."""


@dataclass(frozen=True)
class GapStep:
    """One column (or several that are added together): what the feature costs before it is known, and after.

    Attributes
    ----------
    column : str
        Its name, or "the other N columns"; "other draws" where no column is known but the draws were others.
    before, after : float
        Importance of the feature before and after.
    step : float
        How much of it goes away: what the column already tells of the feature.
    std_error, mc_error : float
        Noise of the step: of the test rows, and of the draws.

    Examples
    --------
    >>> import subgrove as sg
    >>> train, test = sg.datasets.bike(split=0.7, random_state=1)
    >>> model = lambda X: 100 * X["temp"]
    >>> asked = {"features": ["temp"], "random_state": 1}
    >>> imp = sg.importance(model, test.X, test.y, sampler="subgroups", train=train.X, **asked)
    >>> marginal = sg.importance(model, test.X, test.y, sampler="marginal", **asked)
    >>> step = imp.explain_gap(marginal, "temp").parts[0]
    >>> step.column, step.before > step.after, abs(step.before - step.after - step.step) < 1e-6
    ('season', True, True)
    """

    column: str
    before: float
    after: float
    step: float
    std_error: float
    mc_error: float

    @property
    def noise(self) -> float:
        """Both kinds of noise together, as far as they are known."""
        return together((self.std_error, self.mc_error))


@dataclass(frozen=True, repr=False)
class Gap:
    """Why marginal and conditional importance of a feature differ: what `ImportanceResult.gap` returns.

    Attributes
    ----------
    feature, loss : str
        Of what.
    marginal, conditional : float
        The two importances: estimates of the two results.
    parts : tuple of GapStep
        One for each conditioning column.
    noise, marginal_noise, conditional_noise : pairs of float
        Standard errors of the gap and of its ends: over test rows, and over draws.
    orders : str
        "" for the order of the tree; or which orders steps are the mean over.
    kind : {"trees", "sampler", "no split", "no columns"}
        Whether columns are those of the feature's tree, or the sampler was fitted again for each set of them; or why
        there are none.
    n_rows_predicted : int
        Rows that the model was asked for.
    per_row : bool
        Whether the loss has a value for each row; else noise of the test rows is not known.
    backend : str
        Whose tables are given.

    Notes
    -----
    How to read it: `step` is what the column already tells of the feature, given the columns before it; `share` is its
    part of the marginal importance. What is left at the end is the conditional importance. Steps add up to
    `marginal - conditional`. A column that is not among the steps was not split on.

    With another seed, another number of repeats or other donors in the two results, the first step also holds what
    these change; its noise covers that. Compute both with the same seed.

    Examples
    --------
    >>> import subgrove as sg
    >>> train, test = sg.datasets.bike(split=0.7, random_state=1)
    >>> def model(X):
    ...     return 2000 + 100 * X["temp"]
    >>> asked = {"features": ["temp"], "loss": "absolute_error", "random_state": 1}
    >>> imp = sg.importance(model, test.X, test.y, sampler="subgroups", train=train.X, **asked)
    >>> gap = imp.explain_gap(sg.importance(model, test.X, test.y, sampler="marginal", **asked), "temp")
    >>> gap.steps[["column", "importance_before", "importance_after", "step", "share"]].round(2)
       column  importance_before  importance_after    step  share
    0  season             439.93            164.42  275.51   0.63
    1     hum             164.42            157.44    6.99   0.02
    """

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
        """Marginal less conditional importance."""
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
        """One row for each column: what the feature costs before and after it is known; shares of the marginal."""
        columns = {
            "column": list(self.columns),
            "importance_before": [part.before for part in self.parts],
            "importance_after": [part.after for part in self.parts],
            "step": [part.step for part in self.parts],
            "share": [part.step / self.marginal if self.marginal > 0 else np.nan for part in self.parts],
            "std_error": [part.std_error for part in self.parts],
            "mc_error": [part.mc_error for part in self.parts],
        }
        return make_table(self.backend, columns)

    @property
    def sentences(self) -> tuple[str, ...]:
        """The same in words."""
        return sentences_of(self)

    def __str__(self) -> str:
        return " ".join(self.sentences)

    def _repr_html_(self) -> str:
        return html_of(self)

    def __repr__(self) -> str:
        lines = [f"<Gap of {self.feature!r}: {self.loss}{', mean over ' + self.orders if self.orders else ''}>"]
        rows = [("marginal", self.marginal, together(self.marginal_noise))]
        rows += [(f"- {part.column}", 0.0 - part.step, part.noise) for part in self.parts]
        rows += [("conditional", self.conditional, together(self.conditional_noise))]
        width = max(len(name) for name, _, _ in rows)
        return "\n".join(lines + [f"  {name:<{width}}  {value:>12.6g}  +- {noise:.3g}" for name, value, noise in rows])
