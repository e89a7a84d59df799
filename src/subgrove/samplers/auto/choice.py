"""A choice between samplers, with its scores and its reason in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from subgrove._core.text import first_of

_LEAST_KEPT = 0.01  # shares below it are not worth a sentence
UNREADABLE = 10_000  # complexity of a forest, which nobody reads

TOLD = {
    "marginal": "all training rows",
    "subgroups": "subgroups of a tree",
    "shifted_subgroups": "a shift by other columns and what it leaves",
    "gaussian": "a normal distribution about a sum of all columns",
    "imputation": "what a forest foretells",
}
_LEVELS = "probabilities that shift with other columns"


@dataclass(frozen=True)
class CandidateScore:
    """How well one candidate foretells a feature.

    Attributes
    ----------
    name : str
        Of the sampler.
    score : float
        Mean over training rows that it has not seen; the less the better. NaN where there is no other candidate.
    score_gap : float
        By how much it is worse than the best candidate.
    std_error : float
        Of that difference, row by row.
    complexity : int
        Terms and splits there are to read.

    Examples
    --------
    >>> import subgrove as sg
    >>> X = sg.datasets.bike().X
    >>> choice = sg.samplers.Auto().fit(X, ["hum"]).choices["hum"]
    >>> [(score.name, round(score.score, 1)) for score in choice.scores]
    [('marginal', 8.1), ('shifted_subgroups', 5.8), ('subgroups', 6.3)]
    """

    name: str
    score: float
    score_gap: float
    std_error: float
    complexity: int

    @property
    def is_good(self) -> bool:
        """Whether it is within one standard error of the best."""
        return self.score_gap <= self.std_error


@dataclass(frozen=True)
class SamplerChoice:
    """What was chosen for a feature, and why.

    Attributes
    ----------
    feature : str
    chosen : str
        Name of the sampler.
    measure : str
        What the scores are: "CRPS" (numbers) or "log score" (levels).
    scores : tuple of CandidateScore
        Of every candidate; empty where there was nothing to compare.
    reason : str
        In a sentence.
    n_rows : int
        Training rows that were looked at.
    shift : str or None
        The shift in one line, if there is one.
    kept : float
        Share of its own residual that a row keeps.
    n_subgroups : int
        Subgroups that values are redrawn in.
    conditioning : tuple of str
        The columns that a redrawn value depends on, as far as they can be named.

    Examples
    --------
    >>> import subgrove as sg
    >>> X = sg.datasets.bike().X
    >>> choice = sg.samplers.Auto().fit(X, ["weather"]).choices["weather"]
    >>> choice.chosen, choice.measure, choice.n_subgroups, choice.conditioning
    ('subgroups', 'log score', 7, ('hum', 'temp', 'wind'))
    """

    feature: str
    chosen: str
    measure: str
    scores: tuple[CandidateScore, ...]
    reason: str
    n_rows: int = 0
    shift: str | None = None
    kept: float = 0.0
    n_subgroups: int = 1
    conditioning: tuple[str, ...] = ()

    @classmethod
    def between(cls, feature: str, measure: str, scores: tuple[CandidateScore, ...], n_rows: int) -> SamplerChoice:
        """The simplest of the candidates within one standard error of the best.

        Parameters
        ----------
        feature : str
            The feature.
        measure : str
            What scores are: "CRPS" or "log score".
        scores : list of CandidateScore
            The candidates.
        n_rows : int
            Rows that they were judged on.
        """
        good = [one for one in scores if one.is_good or len(scores) == 1]
        chosen = min(good, key=lambda one: (one.complexity, one.score))
        return cls(feature, chosen.name, measure, scores, _reason(feature, measure, scores, chosen), n_rows)

    @classmethod
    def only(cls, feature: str, chosen: str, why: str) -> SamplerChoice:
        """Without a comparison.

        Parameters
        ----------
        feature : str
            The feature.
        chosen : str
            Name of the way to redraw it.
        why : str
            The reason, in a sentence.
        """
        return cls(feature, chosen, "", (), f"{feature} is redrawn from {TOLD[chosen]}: {why}.")

    @classmethod
    def of_group(cls, feature: str, n_subgroups: int) -> SamplerChoice:
        """Several features together.

        Parameters
        ----------
        feature : str
            Names of the features, joined by " + ".
        n_subgroups : int
            Leaves of their tree.
        """
        if n_subgroups == 1:
            return cls.only(feature, "marginal", "no column tells their values apart")
        return cls.only(
            feature, "subgroups", f"features that are redrawn together have one tree, here {n_subgroups} subgroups"
        )

    @property
    def table(self) -> Any:
        """The scores as a pandas frame, best first."""
        import pandas as pd

        return pd.DataFrame(self.lines())

    def lines(self) -> list[dict[str, Any]]:
        """One line of a table for each candidate, best first."""
        return [
            {
                "sampler": one.name,
                "score": one.score,
                "score_gap": one.score_gap,
                "std_error": one.std_error,
                "complexity": one.complexity,
                "chosen": one.name == self.chosen,
            }
            for one in sorted(self.scores, key=lambda one: one.score)
        ]

    def details(self) -> list[str]:
        """What the sampler that was chosen does, in sentences."""
        told = []
        if self.shift is not None:
            told.append(f"The shift: {self.shift}.")
        if self.n_subgroups > 1:
            what, by = "What it leaves", ""
            if self.shift is None:
                what, by = "It", f" by {first_of(self.conditioning)}" if self.conditioning else ""
            told.append(f"{what} is redrawn within {self.n_subgroups} subgroups{by}.")
        if self.kept >= _LEAST_KEPT:
            told.append(
                f"A row keeps {100 * self.kept:.0f} % of what its own value is above or below the shift: so much of it "
                f"the columns would explain if there were more training rows."
            )
        return told

    def to_dict(self) -> dict[str, Any]:
        """A dictionary of plain values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> SamplerChoice:
        """What `to_dict` wrote.

        Parameters
        ----------
        values : dict
            What `to_dict` of a choice gave, also after a way through JSON.
        """
        scores = tuple(CandidateScore(**one) for one in values["scores"])
        return cls(**{**values, "scores": scores, "conditioning": tuple(values["conditioning"])})


def _reason(feature: str, measure: str, scores: tuple[CandidateScore, ...], chosen: CandidateScore) -> str:
    """Why this one, from the scores."""
    best = min(scores, key=lambda one: one.score)
    shifted_levels = chosen.name == "shifted_subgroups" and measure == "log score"
    start = f"{feature} is redrawn from {_LEVELS if shifted_levels else TOLD[chosen.name]}"
    marginal = next((one for one in scores if one.name == "marginal"), None)
    if len(scores) == 1:
        return f"{start}: neither a tree nor a sum of columns tells anything about it."
    if chosen.name == "marginal":
        return f"{start}: no candidate foretells rows it has not seen better by more than one standard error."
    gain = ""
    if marginal is not None and marginal.score > 0:
        gain = (
            f", {100 * (1 - chosen.score / marginal.score):.0f} % less than without any column"
            if measure == "CRPS"
            else (f", {marginal.score:.3g} without any column")
        )
    told = f"its {measure} on rows it has not seen is {chosen.score:.3g}{gain}"
    if chosen is best:
        return f"{start}: {told}, the best of {len(scores)} candidates."
    return (
        f"{start}: {told}; {best.name} has {best.score:.3g}, but no more than one standard error less, and "
        f"{_more_parts(best, chosen)}."
    )


def _more_parts(best: CandidateScore, chosen: CandidateScore) -> str:
    if best.complexity >= UNREADABLE:
        return "cannot be read"
    if best.complexity == chosen.complexity:
        return f"has as many complexity ({best.complexity})"
    return f"has {best.complexity} terms and splits in place of {chosen.complexity}"
