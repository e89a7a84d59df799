"""What the templates need of each feature beside its summary: its name in addresses, its dependence, its pictures."""

from __future__ import annotations

from dataclasses import dataclass

from subgrove._report.charts.effect import Panel, panels
from subgrove._report.charts.lines import outputs_of
from subgrove._report.decimals import rough
from subgrove._report.summary import DependenceSummary, FeatureSummary, Summary
from subgrove._report.typography import half_width

_FEW, _MANY = 12, 25  # rows of the table of dependence: all are shown, and at most shown
_LITTLE = 0.01


@dataclass(frozen=True)
class FeatureView:
    """A feature as it stands on the page. `effects` has the pictures of each output."""

    feature: FeatureSummary
    id: str
    dependence: DependenceSummary | None
    effects: tuple[tuple[str | None, tuple[Panel, ...]], ...]

    @property
    def gap(self) -> float:
        """Marginal less conditional importance."""
        return self.feature.marginal.estimate - self.feature.conditional.estimate

    def gap_text(self, most: int | None) -> str:
        """The gap with the digits that the noisier of both importances allows."""
        noise = max(half_width(one) or 0.0 for one in (self.feature.conditional, self.feature.marginal))
        return rough(self.gap, noise, most)

    @property
    def explained(self) -> float | None:
        """How much of the feature the others foretell."""
        return self.dependence.explained if self.dependence else None

    @property
    def rules(self) -> dict[int, str]:
        """The rule of each subgroup, by its number."""
        return {one.subgroup: one.rule for one in self.feature.subgroups}

    @property
    def misleads(self) -> bool:
        """Whether ordinary importance makes impossible rows of it."""
        return self.dependence.misleads if self.dependence else False


def split_dependence(summary: Summary) -> tuple[list[DependenceSummary], list[DependenceSummary]]:
    """Features by how much the others foretell of them: those to show, and the rest, to fold away."""
    by_share = sorted(summary.dependence, key=lambda one: -(one.explained or 0.0))
    if len(by_share) <= _FEW:
        return by_share, []
    shown = [one for one in by_share if one.misleads or (one.explained or 0.0) >= _LITTLE][:_MANY]
    return shown, [one for one in by_share if one not in shown]


def feature_views(summary: Summary) -> list[FeatureView]:
    """All features in their order."""
    known = {one.feature: one for one in summary.dependence}
    return [_view(one, f"feature-{at}", known.get(one.feature)) for at, one in enumerate(summary.features, 1)]


def _view(feature: FeatureSummary, place: str, dependence: DependenceSummary | None) -> FeatureView:
    effects = tuple(
        (output, tuple(panels(feature, output, f"{place}-{at}"))) for at, output in enumerate(outputs_of(feature))
    )
    return FeatureView(feature, place, dependence, effects)
