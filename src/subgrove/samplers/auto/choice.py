"""Selected sampler of a feature, with the scores of all candidates and the reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from subgrove._core.text import first_of

_NEGLIGIBLE = 0.01  # relative difference of scores that is not worth a more complex sampler
_MIN_RETENTION = 0.01  # smaller shares are not mentioned
SMOOTH_TERMS = 100  # complexity of a smooth function
UNREADABLE = 10_000  # complexity of a forest

DESCRIPTIONS = {
    "chained_members": "the conditional distributions of its members, one after the other",
    "marginal": "all training rows",
    "training_subgroups": "training rows of the same subgroup",
    "shifted_subgroups": "its linear prediction plus a resampled residual",
    "gaussian": "a normal distribution around its linear prediction from all columns",
    "smooth_subgroups": "its prediction by a smooth function plus a resampled residual",
    "scaled_subgroups": "its prediction plus a resampled residual, in units of a predicted spread",
    "transformed_subgroups": "its prediction on a transformed scale plus a resampled residual",
    "ordered_levels": "probabilities of its ordered levels that a prediction of their rank gives",
    "smooth_levels": "probabilities of its levels that are smooth functions of other columns",
    "separate_modes": "one of its modes, around which its values are predicted apart",
    "reweighted_residuals": "training values whose probabilities are smooth functions of other columns",
    "forest_donors": "training rows in the same leaves of a random forest",
    "forest_levels": "probabilities of its levels that a random forest predicts",
}
_LEVELS = "predicted probabilities of its levels"


@dataclass(frozen=True)
class CandidateScore:
    """Held-out score of one candidate sampler.

    Attributes
    ----------
    name : str
        Name of the sampler.
    score : float
        Mean score over held-out training rows; lower is better. NaN if there is only one candidate.
    score_gap : float
        Difference to the score of the best candidate.
    std_error : float
        Standard error of this difference, from row-wise differences.
    complexity : int
        Number of terms and splits.

    Examples
    --------
    >>> import subgrove as sg
    >>> X = sg.datasets.bike().X
    >>> choice = sg.samplers.Auto().fit(X, ["hum"]).choices["hum"]
    >>> [(score.name, round(score.score, 1)) for score in choice.scores]
    [('marginal', 8.1), ('shifted_subgroups', 5.8), ('transformed_subgroups', 5.8), ('training_subgroups', 5.9)]
    """

    name: str
    score: float
    score_gap: float
    std_error: float
    complexity: int

    @property
    def is_simple(self) -> bool:
        """Whether it consists of terms and splits that can be read."""
        return self.complexity < SMOOTH_TERMS

    def is_as_good_as(self, best: CandidateScore) -> bool:
        """Whether it is within one standard error, or one percent, of the best candidate.

        Two standard errors if it can be read and the best cannot.

        Parameters
        ----------
        best : CandidateScore
            The candidate with the lowest score.
        """
        errors = 2.0 if self.is_simple and not best.is_simple else 1.0
        return self.score_gap <= max(errors * self.std_error, _NEGLIGIBLE * best.score)


@dataclass(frozen=True)
class SamplerChoice:
    """Selected sampler of a feature, and the reason.

    Attributes
    ----------
    feature : str
        Name of the feature.
    selected : str
        Name of the selected sampler.
    measure : str
        Proper score: "CRPS" (numbers) or "log score" (levels).
    scores : tuple of CandidateScore
        Scores of all candidates; empty if there was no comparison.
    reason : str
        Reason in one sentence.
    n_rows : int
        Number of training rows.
    shift : str or None
        Formula of the linear prediction, if there is one.
    residual_retention : float
        Share of its own residual that a row retains.
    n_subgroups : int
        Number of subgroups within which values are resampled.
    conditioning : tuple of str
        Columns that new values depend on, if they can be listed.

    Examples
    --------
    >>> import subgrove as sg
    >>> X = sg.datasets.bike().X
    >>> choice = sg.samplers.Auto().fit(X, ["weather"]).choices["weather"]
    >>> choice.selected, choice.measure, choice.n_subgroups, choice.conditioning
    ('training_subgroups', 'log score', 7, ('hum', 'temp', 'wind'))
    """

    feature: str
    selected: str
    measure: str
    scores: tuple[CandidateScore, ...]
    reason: str
    n_rows: int = 0
    shift: str | None = None
    residual_retention: float = 0.0
    n_subgroups: int = 1
    conditioning: tuple[str, ...] = ()

    @classmethod
    def between(cls, feature: str, measure: str, scores: tuple[CandidateScore, ...], n_rows: int) -> SamplerChoice:
        """Select the simplest candidate that is as good as the best.

        Parameters
        ----------
        feature : str
            Name of the feature.
        measure : str
            Proper score: "CRPS" or "log score".
        scores : list of CandidateScore
            Scores of the candidates.
        n_rows : int
            Number of training rows.
        """
        best = min(scores, key=lambda one: one.score)
        good = [one for one in scores if len(scores) == 1 or one.is_as_good_as(best)]
        selected = min(good, key=lambda one: (one.complexity, one.score))
        return cls(feature, selected.name, measure, scores, _reason(feature, measure, scores, selected), n_rows)

    @classmethod
    def only(cls, feature: str, selected: str, why: str) -> SamplerChoice:
        """Select the only candidate.

        Parameters
        ----------
        feature : str
            Name of the feature.
        selected : str
            Name of the sampler.
        why : str
            Reason, as a clause.
        """
        return cls(feature, selected, "", (), f"{feature} is resampled from {DESCRIPTIONS[selected]}: {why}.")

    @property
    def table(self) -> Any:
        """Scores of the candidates as a pandas frame, best first."""
        import pandas as pd

        return pd.DataFrame(self.lines())

    def lines(self) -> list[dict[str, Any]]:
        """Return a table row for each candidate, best first."""
        return [
            {
                "sampler": one.name,
                "score": one.score,
                "score_gap": one.score_gap,
                "std_error": one.std_error,
                "complexity": one.complexity,
                "selected": one.name == self.selected,
            }
            for one in sorted(self.scores, key=lambda one: one.score)
        ]

    def details(self) -> list[str]:
        """Return sentences that describe the selected sampler."""
        sentences = []
        if self.shift is not None:
            sentences.append(f"Prediction: {self.shift}.")
        if self.n_subgroups > 1:
            what, by = "The residual", ""
            if self.shift is None:
                what, by = "It", f" by {first_of(self.conditioning)}" if self.conditioning else ""
            sentences.append(f"{what} is resampled within {self.n_subgroups} subgroups{by}.")
        if self.residual_retention >= _MIN_RETENTION:
            sentences.append(
                f"A row retains {100 * self.residual_retention:.0f} % of its own residual: the share that the columns "
                f"would explain with more training rows."
            )
        return sentences

    def to_dict(self) -> dict[str, Any]:
        """Return a dictionary of plain values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> SamplerChoice:
        """Rebuild a choice from a dictionary.

        Parameters
        ----------
        values : dict
            Return value of `to_dict`, possibly decoded from JSON.
        """
        scores = tuple(CandidateScore(**one) for one in values["scores"])
        return cls(**{**values, "scores": scores, "conditioning": tuple(values["conditioning"])})


def _reason(feature: str, measure: str, scores: tuple[CandidateScore, ...], selected: CandidateScore) -> str:
    """Return the reason for the selection in one sentence."""
    best = min(scores, key=lambda one: one.score)
    start = f"{feature} is resampled from {_description(selected.name, measure)}"
    if len(scores) == 1:
        return f"{start}: no other column predicts it."
    if selected.name == "marginal":
        return f"{start}: no candidate predicts held-out values significantly better."
    if selected is best:
        return f"{start}, which predicts held-out values best."
    return (
        f"{start}: {_description(best.name, measure)} would not predict held-out values noticeably better, and is more "
        f"complex."
    )


def _description(name: str, measure: str) -> str:
    return _LEVELS if name == "shifted_subgroups" and measure == "log score" else DESCRIPTIONS[name]
