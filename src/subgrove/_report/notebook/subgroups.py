"""Notebook views of subgroups, the selection of their depth, and their stability."""

from __future__ import annotations

from subgrove._core.text import count_of, html_of
from subgrove._report.notebook.frame import MOST_ROWS, Cell, bar, card, chart_scale, folded, sentences, table
from subgrove._report.numbers import UNKNOWN
from subgrove._subgroups.depth import DepthChoice
from subgrove._subgroups.partition import Partition
from subgrove._subgroups.stability_result import FeatureStability, Stability
from subgrove._subgroups.subgroups import Subgroups


@html_of.register
def subgroups_html(groups: Subgroups) -> str:
    """Return the number of subgroups of each feature and their columns; the rules are folded away."""
    selected = groups.parameters["max_depth"] == "auto"
    rows: list[list[Cell]] = [
        [each.feature, len(each), ", ".join(each.conditioning) or UNKNOWN, *([each.tree.depth] if selected else [])]
        for each in groups.partitions[:MOST_ROWS]
    ]
    heads = ["feature", "subgroups", "by", *(["depth"] if selected else [])]
    count = sum(len(each) for each in groups.partitions)
    lines: list[list[Cell]] = []
    for each in groups.partitions:
        if len(lines) >= MOST_ROWS:
            break
        lines += [[each.feature, rule, n] for rule, n in zip(each.rules, each.sizes, strict=True)]
    rules = table(["feature", "rule", "training rows"], lines, total=count, source=".table")
    note = f"{groups.parameters['tree'].capitalize()} trees, max_depth {groups.parameters['max_depth']}."
    shown = table(heads, rows, total=len(groups), source="list(...)")
    return card(f"Subgroups of {count_of(len(groups), 'feature')}", note, shown, folded(f"Rules ({count:,})", rules))


@html_of.register
def partition_html(partition: Partition) -> str:
    """Return the rules of a feature, and the number of training rows in each subgroup."""
    largest = chart_scale(map(float, partition.sizes))
    rows: list[list[Cell]] = [
        [at, rule, n, bar(largest, 0.0, float(n))]
        for at, (rule, n) in enumerate(zip(partition.rules[:MOST_ROWS], partition.sizes, strict=False))
    ]
    shown = table(["", "rule", "training rows", ""], rows, total=len(partition), source=".rules")
    reason = "" if partition.choice is None else partition.choice.reason
    return card(f"Subgroups of {partition.feature}: {partition._summary()}", reason, shown)


@html_of.register
def choice_html(choice: DepthChoice) -> str:
    """Return the score at each depth, with the selected one marked."""
    scores = choice.scores or (float("nan"),) * len(choice.n_subgroups)
    errors = choice.std_errors or scores
    scale = chart_scale(scores)
    rows: list[list[Cell]] = [
        [depth, n, score, score - min(scores), error, bar(scale, 0.0, score), "selected" * (depth == choice.depth)]
        for depth, (n, score, error) in enumerate(zip(choice.n_subgroups, scores, errors, strict=True))
    ]
    heads = ["depth", "subgroups", choice.measure, "gap to the best", "std. error", "", ""]
    return card(f"Depth of the subgroups of {choice.feature}", choice.reason, table(heads, rows, source=".table"))


@html_of.register
def stability_html(stability: Stability) -> str:
    """Return how often the first split of each feature is found again, and how similar the subgroups are."""
    rows = [_stability_row(each) for each in stability.features[:MOST_ROWS]]
    heads = ["feature", "subgroups", "first split", "found again in", "stay together", "Rand index", ""]
    note = (
        f"Trees refitted on {stability.n_resamples} random halves of the rows. 'Stay together': share of pairs of rows "
        "of one subgroup; the Rand index is adjusted, 1 for the same subgroups and 0 for chance."
    )
    shown = table(heads, rows, total=len(stability.features), source=".overall")
    texts = [sentence for each in stability.features[:MOST_ROWS] for sentence in each.sentences()]
    title = f"Stability of the subgroups of {count_of(len(stability.features), 'feature')}"
    return card(title, note, shown, folded("In words", sentences(texts, ".sentences")))


def _stability_row(each: FeatureStability) -> list[Cell]:
    n = len(each.regrown)
    first = each.splits[0] if each.splits else None
    if first is None:
        unsplit = sum(regrown.n_subgroups == 1 for regrown in each.regrown)
        column, again = "no split", f"{unsplit} of {n}"
    else:
        column, again = first.split.column, f"{len(first.recurring)} of {n}"
    unit = chart_scale([0.0, 1.0])
    together = f"{each.together:.0%}" if each.together == each.together else UNKNOWN
    return [each.feature, len(each.partition), column, again, together, each.rand, bar(unit, 0.0, each.rand)]
