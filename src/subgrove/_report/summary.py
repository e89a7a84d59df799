"""What a report says, as plain frozen values: the one thing that page, Markdown and JSON are made from.

Requirements that shaped it: a page can be rebuilt from it without the model or the data; nothing in it is drawn or
worded by a renderer (sentences are written once, from the numbers, and stand here); a number that is not known is
None. `to_dict` and `from_dict` are the JSON form; `VERSION` changes when a field changes its meaning or goes away.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

SCHEMA = "subgrove.report"
VERSION = 1

Cell = float | int | str | bool | None


@dataclass(frozen=True)
class Score:
    """One measure of how good the model is on rows it has not seen.

    `constant` is what the best constant answer reaches, `skill` the share of it that the model saves (1 is perfect,
    0 no better than the constant).
    """

    name: str
    value: float
    std_error: float | None
    constant: float | None
    skill: float | None


@dataclass(frozen=True)
class ModelSummary:
    """What the model is, and how good. `verdict` is "good", "weak" or "useless"; a page marks the latter two."""

    description: str
    task: str
    target: str
    classes: tuple[str, ...]
    origin: str
    scores: tuple[Score, ...]
    verdict: str
    sentences: tuple[str, ...]


@dataclass(frozen=True)
class ColumnSummary:
    """A column of the table. `values` tells its range or its levels in a few words, `note` what was inferred."""

    name: str
    kind: str
    n_missing: int
    values: str
    note: str


@dataclass(frozen=True)
class DataSummary:
    """The rows the model was trained on, those it is explained on, and their columns."""

    n_train: int
    n_test: int
    columns: tuple[ColumnSummary, ...]
    sentences: tuple[str, ...]


@dataclass(frozen=True)
class Share:
    """What one column tells of a feature, as a share (0 to 1)."""

    column: str
    share: float


@dataclass(frozen=True)
class DependenceSummary:
    """How much of a feature the others foretell. `misleads`: whether ordinary importance makes impossible rows."""

    feature: str
    explained: float | None
    predictors: tuple[Share, ...]
    misleads: bool
    sentence: str


@dataclass(frozen=True)
class Estimate:
    """A number with its noise. `noise` names the sources that the interval covers."""

    estimate: float
    std_error: float | None
    conf_low: float | None
    conf_high: float | None
    p_value: float | None
    mc_error: float | None
    noise: str


@dataclass(frozen=True)
class Certificate:
    """Whether redrawn rows pass for real ones; `auc` 0.5 and `mmd` 0 are best.

    `verdict` is "passed", "failed" or "unknown" (too few rows to say, for example).
    """

    verdict: str
    auc: float | None
    mmd: float | None
    sentence: str


@dataclass(frozen=True)
class GapPart:
    """One step from marginal to conditional importance: what a column already tells of the feature."""

    column: str
    before: float
    after: float
    step: float
    noise: float | None


@dataclass(frozen=True)
class CandidateSummary:
    """A way of redrawing that was compared for the feature."""

    name: str
    score: float | None
    behind: float | None
    std_error: float | None
    parts: int
    chosen: bool


@dataclass(frozen=True)
class SubgroupSummary:
    """A subgroup of the feature: its rule, its rows, and what the feature is worth in it.

    `n` counts test rows; `estimate` is None where there are none.
    """

    subgroup: int
    rule: str
    n_train: int | None
    n: int
    estimate: Estimate | None
    sentence: str


@dataclass(frozen=True)
class TreeNode:
    """A node of the feature's tree, in the order of depth first; the first is the root.

    `column` and `rule` are "" at the root; `rule` is the condition of the last split alone ("hum <= 66.75").
    `subgroup` is the number of the subgroup if the node is a leaf, else None. `parent` is a position in the tuple.
    """

    parent: int | None
    column: str
    rule: str
    n_train: int
    p_value: float | None
    subgroup: int | None


@dataclass(frozen=True)
class Line:
    """A curve: prediction against the feature.

    `subgroup` is None for a curve of all rows. `x` holds numbers, or names of levels; dates are numbers too
    (see `FeatureSummary.x_labels`). `support` is, point by point, 2 where the middle half of the subgroup's rows
    lies (or a level that occurs in it), 1 within the whiskers, 0 beyond.
    """

    kind: str
    output: str | None
    subgroup: int | None
    x: tuple[float | str, ...]
    y: tuple[float, ...]
    low: tuple[float | None, ...]
    high: tuple[float | None, ...]
    support: tuple[int, ...]
    n: int


@dataclass(frozen=True)
class Distribution:
    """How test rows are spread over a feature: `counts` between `edges` (one more) or at `levels`.

    `by_subgroup` has the same counts for each subgroup.
    """

    edges: tuple[float, ...]
    levels: tuple[str, ...]
    counts: tuple[int, ...]
    by_subgroup: tuple[tuple[int, ...], ...]
    n_missing: int


@dataclass(frozen=True)
class FeatureSummary:
    """Everything about one feature.

    Attributes
    ----------
    feature, kind : str
        Its name; "numeric", "ordered" or "nominal".
    rank : int
        1 for the greatest conditional importance.
    conditional, marginal : Estimate
        Importance within subgroups (or what the sampler chose), and among all rows.
    headline : str
        The one sentence to remember.
    sampler : str
        Name of the way its values were redrawn.
    candidates : tuple of CandidateSummary
        What was compared.
    certificate, marginal_certificate : Certificate or None
        Whether redrawn rows pass for real ones.
    gap : tuple of GapPart
        From marginal to conditional importance.
    story : tuple of str
        Sentences in the order they are told.
    tree : tuple of TreeNode
        The tree whose leaves are the subgroups; one node where there is no split.
    subgroups : tuple of SubgroupSummary
        Its subgroups.
    lines : tuple of Line
        Curves: kinds "pdp" and "ale" of all rows, "pdp" of each subgroup.
    distribution : Distribution
        Of the feature in the test rows.
    x_labels : tuple of pairs (float, str)
        Where to put which label on the axis, if numbers stand for something else (dates); else empty.
    effect_sentences : tuple of str
        What the curves show.
    """

    feature: str
    kind: str
    rank: int
    conditional: Estimate
    marginal: Estimate
    headline: str
    sampler: str
    candidates: tuple[CandidateSummary, ...]
    certificate: Certificate | None
    marginal_certificate: Certificate | None
    gap: tuple[GapPart, ...]
    story: tuple[str, ...]
    tree: tuple[TreeNode, ...]
    subgroups: tuple[SubgroupSummary, ...]
    lines: tuple[Line, ...]
    distribution: Distribution
    x_labels: tuple[tuple[float, str], ...]
    effect_sentences: tuple[str, ...]


@dataclass(frozen=True)
class Setting:
    """A setting, version or count, by its name."""

    name: str
    value: Cell


@dataclass(frozen=True)
class MethodSummary:
    """How each number was computed."""

    sentences: tuple[str, ...]
    settings: tuple[Setting, ...]
    versions: tuple[Setting, ...]
    rows_predicted: tuple[Setting, ...]


@dataclass(frozen=True)
class Summary:
    """A whole report.

    Attributes
    ----------
    title : str
    created : str
        Date and time, as ISO 8601; "" where none is wanted.
    level : float
        Of the intervals.
    loss : str
        What importance is measured in.
    loss_unit : str
        What an importance of 1 means, in words ("bikes", "share of rows misclassified").
    baseline : float
        Loss of the test rows as they are.
    model, data, methods
        The parts with these names.
    highlights : tuple of str
        The findings in at most five sentences.
    dependence : tuple of DependenceSummary
        Of each feature.
    dependence_sentences : tuple of str
        What the table of dependence comes to.
    features : tuple of FeatureSummary
        By rank.
    cautions : tuple of str
        What not to conclude.
    warnings : tuple of str
        What was noticed while computing, for this very data.
    """

    title: str
    created: str
    level: float
    loss: str
    loss_unit: str
    baseline: float
    model: ModelSummary
    data: DataSummary
    highlights: tuple[str, ...]
    dependence: tuple[DependenceSummary, ...]
    dependence_sentences: tuple[str, ...]
    features: tuple[FeatureSummary, ...]
    methods: MethodSummary
    cautions: tuple[str, ...]
    warnings: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """The summary as plain values, with its schema and version."""
        from subgrove._report.json_io import plain

        return {"schema": SCHEMA, "version": VERSION, **plain(self)}

    @classmethod
    def from_dict(cls, values: Any) -> Summary:
        """The summary that `to_dict` wrote; other values are refused with the place that is wrong."""
        from subgrove._report.json_io import read_summary

        return read_summary(values)
