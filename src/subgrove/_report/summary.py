"""The content of a report as frozen structs, from which page, Markdown and JSON are made.

Requirements: a page can be rebuilt from a `Summary` without the model or the data; sentences are written once, from
the numbers, and stored here, so that no renderer words anything; an unknown number is None.

The structs are those of `msgspec`, which encodes them, decodes them strictly (unknown or missing fields, wrong types
and numbers out of range are errors that name the place) and derives `docs/report.schema.json`. `__post_init__` checks
that the parts of a struct fit together, for files may have been edited by hand. `VERSION` changes when a field changes
its meaning or is removed.
"""

from __future__ import annotations

import json
from typing import Annotated, Any, TypeVar

import msgspec

from subgrove._importance.explanation import Finding
from subgrove._report.model_summary import Count, ImportantSize, InteractionSummary, ModelSummary, Number, Part
from subgrove.exceptions import FormatError

SCHEMA = "subgrove.report"
VERSION = 1

SAVE_AGAIN = "Save the report again."
_HEAD = ("schema", "version")
NO_OBJECT = ("The file is not a JSON object", "Pass a file that Report.save wrote.")

PartType = TypeVar("PartType")
Cell = float | int | str | bool | None


class ColumnSummary(Part, frozen=True):
    """A column of the data: its range or levels in a few words, and a note such as how its type was inferred."""

    name: str
    kind: str
    n_missing: Count
    values: str
    note: str


class DataSummary(Part, frozen=True):
    """The numbers of training and test rows, and the columns."""

    n_train: Count
    n_test: Count
    columns: tuple[ColumnSummary, ...]
    sentences: tuple[str, ...]


class PredictorShare(Part, frozen=True):
    """The share of a feature's variance or loss (0 to 1) that is attributed to one column."""

    column: str
    share: Number


class DependenceSummary(Part, frozen=True):
    """How well the other columns predict a feature. `misleads`: whether shuffling it creates unrealistic rows."""

    feature: str
    explained: Number | None
    predictors: tuple[PredictorShare, ...]
    misleads: bool
    sentence: str


class Estimate(Part, frozen=True):
    """An estimate and its interval.

    `noise` names the sources of variance that the interval covers; `finding` is what may be concluded, such as
    "important" or "uncertain" (`_importance/explanation.py` has the rule). `unreliable` is the reason why a bound is
    left out.
    """

    estimate: Number
    std_error: Number | None
    conf_low: Number | None
    conf_high: Number | None
    p_value: Number | None
    mc_error: Number | None
    noise: str
    finding: Finding
    unreliable: str = ""

    def __post_init__(self) -> None:
        if self.conf_low is not None and self.conf_high is not None and self.conf_low > self.conf_high:
            raise ValueError("conf_low is above conf_high")
        if self.std_error is not None and self.std_error < 0:
            raise ValueError("std_error is negative")


class FidelitySummary(Part, frozen=True):
    """The fidelity check: whether resampled rows are realistic. An `auc` of 0.5 and an `mmd` of 0 are best.

    `verdict` is "passed", "uncertain sampler", "small difference", "failed" or "unknown" (for example with too few
    rows).
    """

    verdict: str
    auc: Number | None
    mmd: Number | None
    sentence: str


class GapStepSummary(Part, frozen=True):
    """One step from marginal to conditional importance: the part of it that is shared with a column.

    Importance falls by `step` from `start` to `end`; `noise` is the standard error of the step.
    """

    column: str
    start: Number
    end: Number
    step: Number
    noise: Number | None


class CandidateSummary(Part, frozen=True):
    """A sampler that was compared for the feature: its held-out score, the gap to the best, and its complexity."""

    name: str
    score: Number | None
    score_gap: Number | None
    std_error: Number | None
    complexity: Count
    selected: bool


class SubgroupSummary(Part, frozen=True):
    """A subgroup of the feature: its rule, its numbers of rows, and the feature's importance in it.

    `n` is the number of test rows; `estimate` is None where there are none.
    """

    subgroup: int
    rule: str
    n_train: Count | None
    n: Count
    estimate: Estimate | None
    sentence: str


class TreeNode(Part, frozen=True):
    """A node of the feature's tree, in depth-first order; the first is the root.

    `column` and `rule` are "" at the root; `rule` is the condition of the last split alone ("hum <= 66.75").
    `subgroup` is the number of the subgroup if the node is a leaf, else None. `parent` is a position in the tuple.
    """

    parent: int | None
    column: str
    rule: str
    n_train: Count
    p_value: Number | None
    subgroup: int | None


class ReportCurve(Part, frozen=True):
    """A curve: mean prediction against the feature.

    `subgroup` is None for a curve over all rows. `x` has numbers or names of levels; dates are numbers too (see
    `FeatureSummary.x_labels`). `support` is, point by point, 2 within the quartiles of the subgroup's rows (or at a
    level that occurs in it), 1 within the whiskers, 0 beyond. `mean` is the mean of a curve over all rows, which have
    to be equal where two kinds of curves are drawn together.
    """

    kind: str
    output: str | None
    subgroup: int | None
    x: tuple[Number | str, ...]
    y: tuple[Number, ...]
    low: tuple[Number | None, ...]
    high: tuple[Number | None, ...]
    support: tuple[int, ...]
    n: Count
    mean: Number | None = None

    def __post_init__(self) -> None:
        if len({len(values) for values in (self.x, self.y, self.low, self.high, self.support)}) > 1:
            raise ValueError("x, y, low, high and support have different lengths")
        if len({isinstance(x, str) for x in self.x}) > 1:
            raise ValueError("x mixes numbers and names of levels")
        if any(support not in (0, 1, 2) for support in self.support):
            raise ValueError("support has a value other than 0, 1 and 2")


class Distribution(Part, frozen=True):
    """The distribution of a feature in the test rows: `counts` between `edges` (one more) or at `levels`.

    `by_subgroup` has the same counts for each subgroup.
    """

    edges: tuple[Number, ...]
    levels: tuple[str, ...]
    counts: tuple[Count, ...]
    by_subgroup: tuple[tuple[Count, ...], ...]
    n_missing: Count

    def __post_init__(self) -> None:
        n = len(self.counts)
        if n and n not in (len(self.levels), len(self.edges) - 1):
            raise ValueError("counts must have one value for each level, or one less than edges")
        if any(len(counts) != n for counts in self.by_subgroup):
            raise ValueError("by_subgroup must have as many counts as counts has")


class FeatureSummary(Part, frozen=True):
    """The results for one feature.

    `kind` is "numeric", "ordered" or "nominal"; `rank` is 1 for the greatest conditional importance; `conditional` is
    the importance by the selected `sampler` (`candidates` are those that were compared), `marginal` that of shuffling,
    and `gap` has the steps between them. `headline` is the finding in one sentence, `story` the explanation. `fidelity`
    and `marginal_fidelity` state whether resampled rows, and shuffled rows, are realistic. The leaves of `tree` are the
    `subgroups`; it has one node where there is no split. `lines` are curves: "pdp" and "ale" over all rows, "pdp" in
    each subgroup; `effect_sentences` state what they show, and `direction` in a few words what predictions do as the
    feature increases. `x_labels` are positions and labels of ticks where numbers stand for dates.
    """

    feature: str
    kind: str
    rank: int
    conditional: Estimate
    marginal: Estimate
    headline: str
    sampler: str
    candidates: tuple[CandidateSummary, ...]
    fidelity: FidelitySummary | None
    marginal_fidelity: FidelitySummary | None
    gap: tuple[GapStepSummary, ...]
    story: tuple[str, ...]
    tree: tuple[TreeNode, ...]
    subgroups: tuple[SubgroupSummary, ...]
    lines: tuple[ReportCurve, ...]
    distribution: Distribution
    x_labels: tuple[tuple[Number, str], ...]
    effect_sentences: tuple[str, ...]
    direction: str

    def __post_init__(self) -> None:
        for at, node in enumerate(self.tree):
            if (node.parent is None) != (at == 0) or not -1 < (node.parent or 0) < max(at, 1):
                raise ValueError(f"tree[{at}].parent must be the position of an earlier node, and null at the root")
        if any(line.subgroup is not None and not 0 <= line.subgroup < len(self.subgroups) for line in self.lines):
            raise ValueError("a curve in lines has a subgroup that the feature does not have")

    @property
    def outputs(self) -> list[str | None]:
        """The outputs that have curves, in their order; [None] for a model with one output."""
        return list(dict.fromkeys(line.output for line in self.lines))

    @property
    def depths(self) -> list[int]:
        """The depth of each node of the tree."""
        depths: list[int] = []
        for node in self.tree:
            depths.append(0 if node.parent is None else depths[node.parent] + 1)
        return depths

    @property
    def places(self) -> dict[int, int]:
        """The position of each subgroup, which is that of its colour and letter."""
        return {one.subgroup: place for place, one in enumerate(self.subgroups)}


class GroupSummary(Part, frozen=True):
    """A group of features that are redundant with each other, or were named as a group, and their joint importance.

    `conditional` is the importance if all `features` are resampled together given all other columns, `marginal` if
    they are shuffled together.
    """

    name: str
    features: tuple[str, ...]
    conditional: Estimate
    marginal: Estimate
    fidelity: FidelitySummary | None
    headline: str


class Setting(Part, frozen=True):
    """A setting, version or count, by name."""

    name: str
    value: Cell


class MethodSummary(Part, frozen=True):
    """How the numbers were computed."""

    sentences: tuple[str, ...]
    settings: tuple[Setting, ...]
    versions: tuple[Setting, ...]
    rows_predicted: tuple[Setting, ...]


class Summary(Part, frozen=True):
    """A whole report.

    Attributes
    ----------
    title : str
    created : str
        Date and time as ISO 8601; may be "".
    level : float
        Level of the intervals.
    loss : str
        The loss in which importance is measured.
    loss_unit : str
        The unit of importance, in words ("units of cnt", "share of rows misclassified").
    baseline : float
        Loss of the baseline predictions on the test rows.
    important : ImportantSize
        From which size on an importance counts as important.
    model, data, methods
        The sections with these names.
    highlights : tuple of str
        The key findings, in at most five sentences.
    dependence : tuple of DependenceSummary
        Of each feature.
    dependence_sentences : tuple of str
        The findings of the dependence table.
    features : tuple of FeatureSummary
        By rank.
    groups : tuple of GroupSummary
        Groups of features, the most important first.
    interactions : tuple of InteractionSummary
        The strongest interactions of pairs of features; none if the trees of the model cannot be read.
    interaction_sentences : tuple of str
        The finding on them, and the scale of their strength.
    cautions : tuple of str
        What not to conclude.
    warnings : tuple of str
        Warnings that were raised during the computation.
    """

    title: str
    created: str
    level: Annotated[float, msgspec.Meta(gt=0, lt=1)]
    loss: str
    loss_unit: str
    baseline: Number
    important: ImportantSize
    model: ModelSummary
    data: DataSummary
    highlights: tuple[str, ...]
    dependence: tuple[DependenceSummary, ...]
    dependence_sentences: tuple[str, ...]
    features: tuple[FeatureSummary, ...]
    groups: tuple[GroupSummary, ...]
    interactions: tuple[InteractionSummary, ...]
    interaction_sentences: tuple[str, ...]
    methods: MethodSummary
    cautions: tuple[str, ...]
    warnings: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the summary as plain values, with its schema and version; numbers that are not finite become None."""
        return {"schema": SCHEMA, "version": VERSION, **json.loads(msgspec.json.encode(self))}

    @classmethod
    def from_json(cls, text: str | bytes) -> Summary:
        """Return the summary that `Report.to_json` wrote; raise a `FormatError` that names what is wrong."""
        head = read_part(dict[str, msgspec.Raw], text, *NO_OBJECT)
        first: list[Any] = [read_part(Any, head.pop(key, msgspec.Raw(b"null")), *NO_OBJECT) for key in _HEAD]
        schema, version = first
        if schema != SCHEMA:
            raise FormatError(f"The file is not a report of subgrove: expected schema={SCHEMA!r}, got {schema!r:.60}.")
        if version != VERSION:
            found = f"The report has version {version!r:.60}; this subgrove reads version {VERSION}."
            raise FormatError(f"{found} Compute it again, or use the subgrove that wrote it.")
        return read_part(cls, msgspec.json.encode(head), "The report does not fit its schema", SAVE_AGAIN)


def read_part(kind: type[PartType], text: str | bytes, wrong: str, remedy: str) -> PartType:
    """Return decoded JSON; raise a `FormatError` that says what is wrong and what to do."""
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise FormatError(f"{wrong}: {error}. {remedy}") from error


def schema() -> dict[str, Any]:
    """Return the JSON schema of a report (2020-12), which is `docs/report.schema.json`."""
    found = msgspec.json.schema(Summary)
    whole = found["$defs"].pop("Summary")
    fixed = {"schema": {"const": SCHEMA}, "version": {"const": VERSION}}
    parts = dict(sorted(found["$defs"].items()))
    for one in (whole, *parts.values()):
        one["description"] = " ".join(one["description"].split("\n\n")[0].split())
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **whole,
        "title": SCHEMA,
        "properties": {**fixed, **whole["properties"]},
        "required": [*fixed, *whole["required"]],
        "$defs": parts,
    }
