"""What is written in the boxes and on the edges of the picture of a tree."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace

from subgrove.plots._text import Ruler
from subgrove.trees.conditions import Condition, merge, split_condition
from subgrove.trees.nodes import SIDES
from subgrove.trees.structure import Tree

OR_MISSING = "or missing"
IS_MISSING = "is missing"
# A number with decimals beside a sign of comparison.
_NUMBER = r"-?\d+\.\d+(?:e[+-]?\d+)?"
_THRESHOLD = rf"(?<=[<>] ){_NUMBER}(?![\w.])|(?<=[<>]= ){_NUMBER}(?![\w.])|(?<![\w.-]){_NUMBER}(?= <)"


@dataclass(frozen=True, slots=True)
class Wording:
    """A condition to be broken into lines: levels, or one comparison; and whether missing values belong to it."""

    items: tuple[str, ...]
    ending: str = ""

    def lines(self, ruler: Ruler, room: float, n_lines: int) -> tuple[str, ...]:
        """The condition in at most `n_lines` lines."""
        return ruler.wrap_list(self.items, self.ending, room, n_lines)


def edge_wordings(tree: Tree, digits: int) -> dict[int, Wording]:
    """Id of a node that is not the root -> the condition that leads to it from its parent.

    Levels that an earlier split already excluded are left out.
    """
    info = {column.name: column for column in tree.columns}
    paths: dict[int, tuple[Condition, ...]] = {1: ()}
    wordings = {}
    for node in tree.nodes:
        if node.split is None or node.children is None:
            continue
        for side, child in zip(SIDES, node.children, strict=True):
            own = split_condition(node.split, side, info[node.split.column])
            paths[child] = merge(paths[node.id], own)
            (so_far,) = (each for each in paths[child] if each.column.name == own.column.name)
            levels = so_far.levels if so_far.levels or so_far.missing else own.levels
            wordings[child] = _wording(replace(own, levels=levels, missing=so_far.missing), digits)
    return wordings


def p_value_text(p_value: float | None) -> str | None:
    """A p-value as it is printed in tables."""
    if p_value is None:
        return None
    return "p < 0.001" if p_value < 0.001 else f"p = {p_value:.2g}"


def round_to(value: float, digits: int) -> float:
    """The number with that many significant digits, but never less than its whole part."""
    if value == 0 or not math.isfinite(value):
        return value
    return round(value, max(0, digits - 1 - math.floor(math.log10(abs(value)))))


def short_rule(rule: str, digits: int = 4) -> str:
    """A rule with rounded thresholds, as pictures show it."""

    def rounded(found: re.Match[str]) -> str:
        return f"{round_to(float(found[0]), digits):.15g}"

    return re.sub(_THRESHOLD, rounded, rule)


def _wording(condition: Condition, digits: int) -> Wording:
    column = condition.column
    said_missing = condition.missing and column.has_missing
    if condition.levels is not None and 0 < len(condition.levels) < len(column.levels):
        listed = tuple(level for level in column.levels if level in condition.levels)
        return Wording(listed, OR_MISSING if said_missing else "")
    if condition.levels is not None and not condition.levels:
        return Wording((IS_MISSING,))
    if column.kind == "numeric" and not column.is_date:
        condition = replace(condition, low=round_to(condition.low, digits), high=round_to(condition.high, digits))
    # The text of the rule itself, without the name, which stands in the box.
    text = str(condition).removeprefix(f"{column.name} ")
    if column.is_date:
        text = re.sub(r"T(\d\d:\d\d)(?::00)?(:\d\d)?(?:\.\d+)?", r" \1\2", text)
    if said_missing and text.endswith(f" {OR_MISSING}"):
        return Wording((text.removesuffix(f" {OR_MISSING}"),), OR_MISSING)
    return Wording((text,))
