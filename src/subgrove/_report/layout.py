"""What the templates need of each feature beside its summary: its name in addresses, its dependence, its pictures."""

from __future__ import annotations

from dataclasses import dataclass

from subgrove._report.charts.effect import Panel, panels
from subgrove._report.charts.lines import outputs_of
from subgrove._report.summary import DependenceSummary, FeatureSummary, Summary
from subgrove._report.typeset import alike, half_width


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

    @property
    def gap_text(self) -> str:
        """The gap with the digits that the noisier of both importances allows."""
        noise = max(half_width(one) or 0.0 for one in (self.feature.conditional, self.feature.marginal))
        return alike([self.gap], noise)[0]

    @property
    def explained(self) -> float | None:
        """How much of the feature the others foretell."""
        return self.dependence.explained if self.dependence else None

    @property
    def misleads(self) -> bool:
        """Whether ordinary importance makes impossible rows of it."""
        return self.dependence.misleads if self.dependence else False


def feature_views(summary: Summary) -> list[FeatureView]:
    """All features in their order."""
    known = {one.feature: one for one in summary.dependence}
    return [_view(one, f"feature-{at}", known.get(one.feature)) for at, one in enumerate(summary.features, 1)]


def _view(feature: FeatureSummary, place: str, dependence: DependenceSummary | None) -> FeatureView:
    effects = tuple(
        (output, tuple(panels(feature, output, f"{place}-{at}"))) for at, output in enumerate(outputs_of(feature))
    )
    return FeatureView(feature, place, dependence, effects)
