"""Whether the parts of a report that was read fit together: a file may have been changed by hand."""

from __future__ import annotations

from subgrove._report.summary import Distribution, Estimate, FeatureSummary, Line, Summary, TreeNode
from subgrove.exceptions import FormatError


def reject_misfits(summary: Summary) -> None:
    """Refuse a report that cannot be drawn, with the place that is wrong."""
    for at, one in enumerate(summary.features):
        _feature(one, f"report.features[{at}]")
    if not 0 < summary.level < 1:
        raise _misfit("report.level", "must lie between 0 and 1")


def _misfit(place: str, what: str) -> FormatError:
    return FormatError(f"{place} {what}. The file was changed since subgrove wrote it; save the report again.")


def _feature(one: FeatureSummary, place: str) -> None:
    _estimate(one.conditional, f"{place}.conditional")
    _estimate(one.marginal, f"{place}.marginal")
    for at, subgroup in enumerate(one.subgroups):
        if subgroup.estimate is not None:
            _estimate(subgroup.estimate, f"{place}.subgroups[{at}].estimate")
    for at, line in enumerate(one.lines):
        _line(line, len(one.subgroups), f"{place}.lines[{at}]")
    _distribution(one.distribution, f"{place}.distribution")
    _tree(one.tree, f"{place}.tree")


def _estimate(one: Estimate, place: str) -> None:
    if one.conf_low is not None and one.conf_high is not None and one.conf_low > one.conf_high:
        raise _misfit(place, "has a conf_low above its conf_high")
    if one.std_error is not None and one.std_error < 0:
        raise _misfit(f"{place}.std_error", "is negative")


def _line(line: Line, n_subgroups: int, place: str) -> None:
    if len({len(part) for part in (line.x, line.y, line.low, line.high, line.support)}) > 1:
        raise _misfit(place, "has x, y, low, high and support of different lengths")
    if len({isinstance(x, str) for x in line.x}) > 1:
        raise _misfit(f"{place}.x", "mixes numbers and names of levels")
    if any(support not in (0, 1, 2) for support in line.support):
        raise _misfit(f"{place}.support", "holds something else than 0, 1 and 2")
    if line.subgroup is not None and not 0 <= line.subgroup < n_subgroups:
        raise _misfit(f"{place}.subgroup", "is no subgroup of the feature")


def _distribution(one: Distribution, place: str) -> None:
    n = len(one.counts)
    if n and n not in (len(one.levels), len(one.edges) - 1):
        raise _misfit(f"{place}.counts", "must have one value for each level, or one less than edges")
    if any(len(counts) != n for counts in one.by_subgroup):
        raise _misfit(f"{place}.by_subgroup", "must have as many counts as all rows have")
    if any(count < 0 for counts in (one.counts, *one.by_subgroup) for count in counts):
        raise _misfit(place, "has a negative count")


def _tree(nodes: tuple[TreeNode, ...], place: str) -> None:
    for at, node in enumerate(nodes):
        if (node.parent is None) != (at == 0) or not -1 < (node.parent or 0) < max(at, 1):
            raise _misfit(f"{place}[{at}].parent", "must be the place of a node before it, and null at the root")
