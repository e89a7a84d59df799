"""What the text says about the bike data, each as a number of one split, computed from its stored rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from experiments.parts.bike_unit import SUBGROUPS
from experiments.parts.rows import Check, Row, claim

_TOP = 25.0  # degrees at which the curves turn, as the text says


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper, the number that decides it, and what it must be."""

    text: str
    value: Callable[[pd.DataFrame], float]
    check: Check
    bound: float
    published: float | None = None
    tolerance: float = 0.0


def claim_rows(results: pd.DataFrame, claims: tuple[Claim, ...]) -> list[Row]:
    """The claims with mean and standard error over splits; a split without the subgroup in question is left out."""
    splits = [rows for _, rows in results.groupby("key")]
    found = []
    for each in claims:
        values = [value for rows in splits if np.isfinite(value := each.value(rows))]
        if values:
            row = claim(each.text, values, each.check, each.bound, published=each.published, tolerance=each.tolerance)
            found.append(row)
    return found


def _importance(rows: pd.DataFrame, depth: int) -> pd.Series[float]:
    """Feature -> mean importance over repeats."""
    table = rows[(rows["part"] == "importance") & (rows["depth"] == depth)]
    return table.set_index("feature")["mean"]


def _local(rows: pd.DataFrame, name: str) -> float:
    """Importance of temperature in a subgroup, as a share of its marginal importance."""
    table = rows[(rows["part"] == "subgroup") & (rows["group"] == name)]
    return float(table["mean"].iloc[0] / _importance(rows, 0)["temp"]) if len(table) == 1 else np.nan


def _curve(rows: pd.DataFrame, part: str) -> pd.Series[float]:
    """Temperature -> height of the PDP or the ALE curve."""
    return rows[(rows["part"] == part) & (rows["feature"] == "temp")].set_index("x")["value"]


def _subgroup_curve(rows: pd.DataFrame, name: str) -> pd.Series[float]:
    """The same of a cs-PDP, between the whiskers."""
    table = rows[(rows["part"] == "cs-PDP") & (rows["feature"] == "temp") & (rows["group"] == name)]
    return table[table["in_whiskers"] == 1].set_index("x")["value"]


def _slope(rows: pd.DataFrame, name: str) -> float:
    """Bikes a degree in a subgroup."""
    curve = _subgroup_curve(rows, name)
    return float(np.polyfit(curve.index, curve, 1)[0]) if len(curve) > 1 else np.nan


def _lower_than(rows: pd.DataFrame, other: str) -> float:
    """Humid summer days less those of another subgroup at the same temperature, in bikes."""
    humid, theirs = _subgroup_curve(rows, "humid summer"), _subgroup_curve(rows, other)
    if humid.empty or theirs.empty:
        return np.nan
    low, high = max(humid.index.min(), theirs.index.min()), min(humid.index.max(), theirs.index.max())
    at = np.linspace(low, high, 20)
    return float(np.mean(np.interp(at, humid.index, humid) - np.interp(at, theirs.index, theirs)))


def _largest_fall(rows: pd.DataFrame, part: str) -> float:
    """The largest fall of a curve on its way up, as a share of its range."""
    curve = _curve(rows, part)
    rising = curve[curve.index <= _TOP].to_numpy()
    return float((np.maximum.accumulate(rising) - rising).max() / (curve.max() - curve.min()))


def _top(rows: pd.DataFrame, part: str) -> float:
    """The temperature at which a curve is highest."""
    curve = _curve(rows, part)
    return float(curve.index.to_numpy()[curve.to_numpy().argmax()])


def _beyond(rows: pd.DataFrame, part: str) -> float:
    curve = _curve(rows, part)
    return float(curve.iloc[-1] - curve[_TOP])


def _season(rows: pd.DataFrame, part: str = "PDP", group: str | None = None) -> pd.Series[float]:
    table = rows[(rows["part"] == part) & (rows["feature"] == "season")]
    return (table if group is None else table[table["group"] == group]).set_index("level")["value"]


def _season_range(rows: pd.DataFrame, place: str) -> float:
    """Range over the seasons that occur in the coldest or the warmest subgroup, as a share of the range of the PDP."""
    groups = sorted(set(rows.loc[(rows["part"] == "cs-PDP") & (rows["feature"] == "season"), "group"]))
    mine, everywhere = _season(rows, "cs-PDP", groups[0 if place == "coldest" else -1]), _season(rows)
    return float((mine.max() - mine.min()) / (everywhere.max() - everywhere.min()))


def _warm_seasons(rows: pd.DataFrame) -> pd.Series[float]:
    return _season(rows)[["SPRING", "SUMMER", "FALL"]]


def _splits(rows: pd.DataFrame, feature: str) -> pd.DataFrame:
    return rows[(rows["part"] == "split") & (rows["feature"] == feature)]


def _nearest_cut(rows: pd.DataFrame, feature: str, column: str, published: float) -> float:
    splits = _splits(rows, feature)
    cuts = splits.loc[splits["text"] == column, "value"].to_numpy(dtype=np.float64)
    return float(cuts[np.abs(cuts - published).argmin()]) if len(cuts) else np.nan


def _same_subgroups(rows: pd.DataFrame) -> float:
    return float(set(rows.loc[rows["part"] == "subgroup", "group"]) == set(SUBGROUPS))


def _moved_first(rows: pd.DataFrame) -> float:
    """Features that change more from depth 0 to 2 than from 2 to the deepest, as a share of those that change."""
    deepest = int(rows.loc[rows["part"] == "importance", "depth"].max())
    first = (_importance(rows, 0) - _importance(rows, 2)).abs()
    later = (_importance(rows, 2) - _importance(rows, deepest)).abs()
    moving = first + later > 1  # bike a day
    return float((first[moving] > later[moving]).mean())


IMPORTANCE = (
    Claim(
        "temperature and year have the largest PFI (share of splits)",
        lambda rows: float(set(_importance(rows, 0).nlargest(2).index) == {"temp", "yr"}),
        "above",
        0.9,
    ),
    Claim(
        "year: cs-PFI as a share of PFI ('the same')",
        lambda rows: float(_importance(rows, 2)["yr"] / _importance(rows, 0)["yr"]),
        "near",
        1.0,
        tolerance=0.02,
    ),
    Claim(
        "temperature: cs-PFI as a share of PFI ('less important')",
        lambda rows: float(_importance(rows, 2)["temp"] / _importance(rows, 0)["temp"]),
        "below",
        1.0,
    ),
    Claim("features that change most from depth 0 to 2, as a share ('most')", _moved_first, "above", 0.5),
    Claim(
        "humid summer days: cs-PFI of temperature as a share of its PFI ('zero')",
        lambda rows: _local(rows, "humid summer"),
        "near",
        0.0,
        published=0.0,
        tolerance=0.05,
    ),
    Claim(
        "dry summer days: cs-PFI of temperature as a share of its PFI ('neglectable')",
        lambda rows: _local(rows, "dry summer"),
        "below",
        0.2,
    ),
    Claim(
        "spring and fall: cs-PFI of temperature as a share of its PFI ('important')",
        lambda rows: _local(rows, "spring and fall"),
        "above",
        0.25,
    ),
    Claim(
        "winter: cs-PFI of temperature as a share of its PFI ('important')",
        lambda rows: _local(rows, "winter"),
        "above",
        0.25,
    ),
)
"""On importance."""

CURVES = (
    Claim("degrees at which the PDP is highest", lambda rows: _top(rows, "PDP"), "draw", 25, 25),
    Claim("degrees at which ALE is highest", lambda rows: _top(rows, "ALE"), "draw", 25, 25),
    Claim(
        "PDP: largest fall up to 25 degrees ('monotone'), of its range",
        lambda rows: _largest_fall(rows, "PDP"),
        "below",
        0.05,
    ),
    Claim(
        "ALE: largest fall up to 25 degrees ('monotone'), of its range",
        lambda rows: _largest_fall(rows, "ALE"),
        "below",
        0.05,
    ),
    Claim("PDP: change from 25 to 31 degrees ('a decrease'), in bikes", lambda rows: _beyond(rows, "PDP"), "below", 0),
    Claim(
        "ALE falls more than the PDP beyond 25 degrees, in bikes",
        lambda rows: _beyond(rows, "PDP") - _beyond(rows, "ALE"),
        "above",
        0,
    ),
    Claim(
        "humid summer days: slope of the cs-PDP ('no effect'), as a share of that in spring and fall",
        lambda rows: _slope(rows, "humid summer") / _slope(rows, "spring and fall"),
        "near",
        0,
        tolerance=0.1,
    ),
    Claim(
        "humid summer days less dry ones at the same temperature, in bikes",
        lambda rows: _lower_than(rows, "dry summer"),
        "below",
        0,
    ),
    Claim(
        "humid summer days less spring and fall at the same temperature, in bikes",
        lambda rows: _lower_than(rows, "spring and fall"),
        "below",
        0,
    ),
    Claim(
        "dry summer days: slope ('slightly negative'), in bikes a degree",
        lambda rows: _slope(rows, "dry summer"),
        "below",
        0,
    ),
    Claim(
        "season: PDP in spring, summer and fall, in bikes",
        lambda rows: float(_warm_seasons(rows).mean()),
        "draw",
        4500,
        4500,
    ),
    Claim(
        "season: how much less the PDP has in winter, in bikes",
        lambda rows: float(_warm_seasons(rows).mean() - _season(rows)["WINTER"]),
        "draw",
        1000,
        1000,
    ),
    Claim(
        "season: difference among spring, summer and fall ('none'), as a share of that to winter",
        lambda rows: float(np.ptp(_warm_seasons(rows)) / (_warm_seasons(rows).mean() - _season(rows)["WINTER"])),
        "below",
        0.25,
    ),
    Claim(
        "season: range in the coldest subgroup ('much greater'), as a share of the range of the PDP",
        lambda rows: _season_range(rows, "coldest"),
        "above",
        1.5,
    ),
    Claim(
        "season: range in the warmest subgroup ('similar'), as a share of the range of the PDP",
        lambda rows: _season_range(rows, "warmest"),
        "below",
        0.25,
    ),
)
"""On effects."""

TREES = (
    Claim("temperature has the paper's four subgroups (share of splits)", _same_subgroups, "above", 0.5),
    Claim(
        "temperature: the cut of humidity nearest to 70.75",
        lambda rows: _nearest_cut(rows, "temp", "hum", 70.75),
        "draw",
        70.75,
        70.75,
    ),
    Claim(
        "season: the cut of temperature nearest to 21.5",
        lambda rows: _nearest_cut(rows, "season", "temp", 21.5),
        "draw",
        21.5,
        21.5,
    ),
    Claim(
        "season: the cut of temperature nearest to 9.5",
        lambda rows: _nearest_cut(rows, "season", "temp", 9.5),
        "draw",
        9.5,
        9.5,
    ),
)
"""On the trees."""
