"""A choice between samplers, with its scores and its reason in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

_FOREST_PARTS = 1000  # from so many parts on nobody reads them

TOLD = {
    "marginal": "all training rows",
    "subgroups": "subgroups of a tree",
    "shifted_subgroups": "a shift by other columns, and subgroups of what it leaves",
    "gaussian": "a normal distribution about a sum of all columns",
    "imputation": "what a forest foretells",
}


@dataclass(frozen=True)
class CandidateScore:
    """How well one candidate foretells a feature.

    Attributes
    ----------
    name : str
        Of the sampler.
    score : float
        Mean over training rows that it has not seen; the less the better.
    behind : float
        By how much it is worse than the best candidate.
    std_error : float
        Of that difference, row by row.
    parts : int
        Terms and splits there are to read.
    """

    name: str
    score: float
    behind: float
    std_error: float
    parts: int

    @property
    def is_good(self) -> bool:
        """Whether it is within one standard error of the best."""
        return self.behind <= self.std_error


@dataclass(frozen=True)
class Choice:
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
    """

    feature: str
    chosen: str
    measure: str
    scores: tuple[CandidateScore, ...]
    reason: str
    n_rows: int = 0

    @classmethod
    def between(cls, feature: str, measure: str, scores: tuple[CandidateScore, ...], n_rows: int) -> Choice:
        """The simplest of the candidates within one standard error of the best."""
        good = [one for one in scores if one.is_good]
        chosen = min(good, key=lambda one: (one.parts, one.score))
        return cls(feature, chosen.name, measure, scores, _reason(feature, measure, scores, chosen), n_rows)

    @classmethod
    def only(cls, feature: str, chosen: str, why: str) -> Choice:
        """Without a comparison."""
        return cls(feature, chosen, "", (), f"{feature} is redrawn from {TOLD[chosen]}: {why}.")

    @classmethod
    def of_group(cls, feature: str, n_subgroups: int) -> Choice:
        """Several features together."""
        if n_subgroups == 1:
            return cls.only(feature, "marginal", "no column tells their values apart")
        return cls.only(
            feature, "subgroups", f"features that are redrawn together have one tree, here {n_subgroups} subgroups"
        )

    @property
    def table(self) -> Any:
        """The scores as a pandas frame, best first."""
        import pandas as pd

        lines = [{"feature": self.feature, **asdict(one), "chosen": one.name == self.chosen} for one in self.scores]
        frame = pd.DataFrame(lines, columns=["feature", "name", "score", "behind", "std_error", "parts", "chosen"])
        return frame.rename(columns={"name": "sampler"}).sort_values("score", ignore_index=True)

    def to_dict(self) -> dict[str, Any]:
        """A dictionary of plain values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Choice:
        """What `to_dict` wrote."""
        return cls(**{**values, "scores": tuple(CandidateScore(**one) for one in values["scores"])})


def _reason(feature: str, measure: str, scores: tuple[CandidateScore, ...], chosen: CandidateScore) -> str:
    """Why this one, from the scores."""
    best = min(scores, key=lambda one: one.score)
    start = f"{feature} is redrawn from {TOLD[chosen.name]}"
    marginal = next((one for one in scores if one.name == "marginal"), None)
    if len(scores) == 1:
        return f"{start}: no other column tells anything about it."
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
    if best.parts >= _FOREST_PARTS:
        return "cannot be read"
    if best.parts == chosen.parts:
        return f"has as many parts ({best.parts})"
    return f"has {best.parts} terms and splits in place of {chosen.parts}"
