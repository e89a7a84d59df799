"""What subgroups, the choice of their depth and their stability show of themselves in a notebook."""

from __future__ import annotations

from subgrove._core.html_views import html_of
from subgrove._report.notebook.frame import (
    MOST_ROWS,
    UNKNOWN,
    Cell,
    Scale,
    bar,
    card,
    counted,
    folded,
    sentences,
    table,
)
from subgrove._subgroups.depth_choice import DepthChoice
from subgrove._subgroups.partition import Partition
from subgrove._subgroups.stability_result import FeatureStability, Stability
from subgrove._subgroups.subgroups import Subgroups


@html_of.register
def subgroups_html(groups: Subgroups) -> str:
    """How many subgroups each feature has, and by which columns; the rules are folded away."""
    chosen = groups.parameters["max_depth"] == "auto"
    rows: list[list[Cell]] = [
        [each.feature, len(each), ", ".join(each.conditioning) or UNKNOWN, *([each.tree.depth] if chosen else [])]
        for each in groups.partitions[:MOST_ROWS]
    ]
    heads = ["feature", "subgroups", "by", *(["depth"] if chosen else [])]
    count = sum(len(each) for each in groups.partitions)
    lines: list[list[Cell]] = []
    for each in groups.partitions:
        if len(lines) >= MOST_ROWS:
            break
        lines += [[each.feature, rule, n] for rule, n in zip(each.rules, each.sizes, strict=True)]
    rules = table(["feature", "rule", "training rows"], lines, total=count, rest=".table")
    note = f"{groups.parameters['tree'].capitalize()} trees, max_depth {groups.parameters['max_depth']}."
    shown = table(heads, rows, total=len(groups), rest="list(...)")
    return card(f"Subgroups of {counted(len(groups), 'feature')}", note, shown, folded(f"Rules ({count:,})", rules))


@html_of.register
def partition_html(partition: Partition) -> str:
    """The rules of a feature, and how many training rows are in each subgroup."""
    largest = Scale(0.0, float(max(partition.sizes)))
    rows: list[list[Cell]] = [
        [at, rule, n, bar(largest, 0.0, float(n))]
        for at, (rule, n) in enumerate(zip(partition.rules[:MOST_ROWS], partition.sizes, strict=False))
    ]
    shown = table(["", "rule", "training rows", ""], rows, total=len(partition), rest=".rules")
    reason = "" if partition.choice is None else partition.choice.reason
    return card(f"Subgroups of {partition.feature}: {partition._summary()}", reason, shown)


@html_of.register
def choice_html(choice: DepthChoice) -> str:
    """The score at each depth, with the chosen one marked."""
    scores = choice.scores or (float("nan"),) * len(choice.n_subgroups)
    errors = choice.std_errors or scores
    scale = Scale.of(scores)
    rows: list[list[Cell]] = [
        [depth, n, score, score - min(scores), error, bar(scale, 0.0, score), "selected" * (depth == choice.depth)]
        for depth, (n, score, error) in enumerate(zip(choice.n_subgroups, scores, errors, strict=True))
    ]
    heads = ["depth", "subgroups", choice.measure, "behind the best", "std. error", "", ""]
    return card(f"Depth of the subgroups of {choice.feature}", choice.reason, table(heads, rows, rest=".table"))


@html_of.register
def stability_html(stability: Stability) -> str:
    """How often the first split of each feature comes back, and how alike subgroups are."""
    rows = [_stability_row(each) for each in stability.features[:MOST_ROWS]]
    heads = ["feature", "subgroups", "first split", "comes back in", "stay together", "Rand index", ""]
    note = (
        f"Trees grown again on {stability.n_resamples} random halves of the rows. 'Stay together' is of two rows of "
        "one subgroup; the Rand index is adjusted, 1 for the same subgroups and 0 for those of chance."
    )
    shown = table(heads, rows, total=len(stability.features), rest=".overall")
    said = [sentence for each in stability.features[:MOST_ROWS] for sentence in each.sentences()]
    title = f"Stability of the subgroups of {counted(len(stability.features), 'feature')}"
    return card(title, note, shown, folded("In words", sentences(said, ".sentences")))


def _stability_row(each: FeatureStability) -> list[Cell]:
    n = len(each.regrown)
    first = each.splits[0] if each.splits else None
    if first is None:
        alone = sum(regrown.n_subgroups == 1 for regrown in each.regrown)
        column, back = "no split", f"{alone} of {n}"
    else:
        column, back = first.split.column, f"{len(first.found)} of {n}"
    unit = Scale(0.0, 1.0)
    together = f"{each.together:.0%}" if each.together == each.together else UNKNOWN
    return [each.feature, len(each.partition), column, back, together, each.rand, bar(unit, 0.0, each.rand)]
