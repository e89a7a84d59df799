"""Effects as lines to draw, with their labels, values and the distribution of the feature."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from subgrove._core.kinds import Floats
from subgrove._core.text import quote
from subgrove._effects import Effect
from subgrove._effects.curves import Curve
from subgrove._effects.result import INTERACTION
from subgrove._effects.subgroup_rows import EffectGroup, FeatureSupport
from subgrove.exceptions import ParameterError
from subgrove.plots._figure import check_type, one_line, short_rule, unique_label
from subgrove.plots._palette import COLORS, STYLES
from subgrove.trees.tree import format_count

KINDS = {"pdp": "PDP", "ice": "ICE", "ale": "ALE", "mplot": "M-plot"}
MOST_LINES = len(COLORS) * len(STYLES)
ALE = "ale"


@dataclass(frozen=True, eq=False)
class EffectLine:
    """One curve: of one effect, one output and one subgroup.

    Attributes
    ----------
    label : str
        Label in the legend.
    kind : str
        Kind of the effect.
    output : object
        Output of the model.
    group : Group
        The subgroup.
    curve : Curve
        Its points, box statistics and ICE curves.
    at : int
        Place of the output among those of the curve.
    low, high : float array
        The interval at each point.
    shift : float
        Shift of a centred curve among others.
    """

    label: str
    kind: str
    output: Any
    group: EffectGroup
    curve: Curve
    at: int
    low: Floats
    high: Floats
    shift: float = 0.0

    @property
    def x(self) -> Floats:
        """Points, as the curve has them."""
        return self.curve.axes[0].points

    @property
    def y(self) -> Floats:
        """Values."""
        return np.asarray(self.curve.estimate[:, self.at] + self.shift)

    @property
    def ice(self) -> Floats | None:
        """A curve for each row: (points, rows)."""
        return None if self.curve.ice is None else np.asarray(self.curve.ice.values[:, self.at, :])

    @property
    def spread(self) -> Floats | None:
        """Box statistics of the predictions at each level: (points, 7)."""
        return None if self.curve.spread is None else np.asarray(self.curve.spread[:, :, self.at])

    @property
    def support(self) -> FeatureSupport:
        """Distribution of the feature."""
        return self.group.supports[0]


def read_effects(first: Any, others: Sequence[Any]) -> dict[str, Effect]:
    """Label -> effect; without labels they are called after their kind."""
    if isinstance(first, Mapping):
        if others or not first:
            raise ParameterError("effect is a mapping from label to effect: put all effects into it, at least one.")
        found: dict[str, Any] = {str(label): one for label, one in first.items()}
    else:
        found = {}
        for one in (first, *others):
            found[unique_label(KINDS.get(getattr(one, "kind", ""), ""), found)] = one
    for one in found.values():
        check_type("effect", one, Effect, "an Effect, which effect returns")
    _reject_other_features(list(found.values()))
    return found


def _reject_other_features(effects: Sequence[Effect]) -> None:
    names = list(dict.fromkeys(" and ".join(info.name for info in one.infos) for one in effects))
    kinds = {tuple(info.kind for info in one.infos) for one in effects}
    if len(names) > 1:
        what = f"Effects of different features ({', '.join(names)}) have no axis in common."
        raise ParameterError(f"{what} Draw them in panels of their own: plots.effects(...).")
    if len(kinds) > 1 or len({one.infos for one in effects if one.infos[0].kind != "numeric"}) > 1:
        what = f"The effects of {names[0]} have different kinds or levels."
        raise ParameterError(f"{what} Draw them in panels of their own.")


def lines_of(effects: Mapping[str, Effect], output: Any) -> list[EffectLine]:
    """A line for each effect, output and subgroup that has a curve."""
    lines: list[EffectLine] = []
    for name, one in effects.items():
        # Labels begin with the name of the effect if there are several, or the user gave it.
        named = len(effects) > 1 or name != KINDS[one.kind]
        lines += _lines_of(one, name if named else "", output)
    if len(lines) > MOST_LINES:
        what = f"{len(lines)} curves cannot be distinguished in one picture; at most {MOST_LINES} can."
        remedy = "Use fewer subgroups, as in subgroups.at_depth(2), or choose one output with output=."
        raise ParameterError(f"{what} {remedy}")
    return [_shifted(line, lines) for line in lines]


def _lines_of(one: Effect, name: str, output: Any) -> Iterator[EffectLine]:
    outputs, margins = outputs_of(one, output), _margins(one)
    if len(outputs) > 1 and len(one.lines) > 1:
        what = f"{len(outputs)} outputs of {len(one.lines)} subgroups have no room in one axes."
        raise ParameterError(f"{what} Choose one with output=, or draw a panel for each with plots.effects(...).")
    for at in outputs:
        for curve, margin in zip(one.lines, margins, strict=True):
            group, estimate = one.groups[curve.subgroup], curve.estimate[:, at]
            output_name = str(one.outputs[at]) if len(outputs) > 1 else ""
            rule = _rule(group) if one.subgroups is not None else ""
            label = ": ".join(part for part in (name, output_name, rule) if part) or KINDS[one.kind]
            low, high = estimate - margin[:, at], estimate + margin[:, at]
            yield EffectLine(label, one.kind, one.outputs[at], group, curve, at, low, high)


def _rule(group: EffectGroup) -> str:
    reason = f"{group.reason}, " if group.reason == INTERACTION else ""
    return f"{short_rule(one_line(group.rule))} ({reason}n = {format_count(group.n)})"


def without_curve(effects: Mapping[str, Effect]) -> list[str]:
    """Return the legend entries of subgroups without a curve, which have too few rows."""
    return [
        f"{short_rule(one_line(group.rule))} (n = {format_count(group.n)}, no curve)"
        for one in effects.values()
        for place, group in enumerate(one.groups)
        if one.subgroups is not None and place not in {curve.subgroup for curve in one.lines}
    ]


def outputs_of(one: Effect, output: Any) -> Sequence[int]:
    """Return the positions of the drawn outputs: the one with this label, or else with this number."""
    if output is None:
        return range(len(one.outputs))
    for at, label in enumerate(one.outputs):
        if label == output and isinstance(label, bool) == isinstance(output, bool):
            return [at]
    whole = isinstance(output, int | np.integer) and not isinstance(output, bool)
    if whole and 0 <= output < len(one.outputs):
        return [int(output)]
    known, last = quote(one.outputs), len(one.outputs) - 1
    what = f"output={output!r} is not among the outputs of this effect: {known}"
    raise ParameterError(f"{what}; give one of these, or its number from 0 to {last}.")


def _margins(one: Effect) -> list[Floats]:
    """Half the width of the intervals of each curve: (points, outputs)."""
    if not one.lines:
        return []
    table = replace(one, backend="pandas").curves
    half = (table["conf_high"] - table["conf_low"]).to_numpy(float) / 2
    ends = np.cumsum([len(curve.estimate) for curve in one.lines])
    return np.split(half.reshape(len(one.outputs), -1).T, ends[:-1])


def _shifted(line: EffectLine, lines: Sequence[EffectLine]) -> EffectLine:
    """A curve of mean 0 among means of predictions is moved to the height of these, and says so."""
    others = [each for each in lines if each.kind != ALE and each.output == line.output]
    if line.kind != ALE or not others:
        return line
    reference = next((each for each in others if each.group.rule == line.group.rule), others[0])
    shift = _mean_at(reference, line) - float(np.nanmean(line.y))
    size = 10.0 ** (np.floor(np.log10(abs(shift))) - 3) if shift else 1.0
    rounded = float(np.round(shift / size) * size)
    return replace(line, shift=rounded, label=f"{line.label} {'+' if rounded >= 0 else '-'} {abs(rounded):.4g}")


def _mean_at(reference: EffectLine, line: EffectLine) -> float:
    """Mean of one curve at the points of another."""
    if reference.curve.axes[0].info.kind != "numeric":
        known = dict(zip(reference.x.tolist(), reference.y.tolist(), strict=True))
        return float(np.mean([known[x] for x in line.x.tolist() if x in known] or [0.0]))
    finite = np.isfinite(reference.y)
    return float(np.interp(line.x, reference.x[finite], reference.y[finite]).mean())
