"""The part of a report that is on the model and on what counts as important, as frozen structs; see `summary.py`."""

from __future__ import annotations

from typing import Annotated

import msgspec

from subgrove._core.text import percent

Number = Annotated[float, msgspec.Meta(ge=-1e305, le=1e305)]
"""A finite number that stays finite when written in percent."""
Count = Annotated[int, msgspec.Meta(ge=0, le=2**62)]


class Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Base of all parts of a summary."""


class Score(Part, frozen=True):
    """A measure of performance on held-out rows.

    `constant` is the score of the best constant prediction, `skill` the share of the way from it to a perfect score (1
    is perfect, 0 no better than the constant).
    """

    name: str
    value: Number
    std_error: Number | None
    constant: Number | None
    skill: Number | None


class ClassSummary(Part, frozen=True):
    """Predictions of one class: its test rows, precision, recall and average precision.

    `rare` marks a class with few rows. It has a `curve`: pairs of recall and precision for decreasing thresholds on the
    predicted probability. Precision is None if the class is never predicted, recall if it has no rows.
    """

    label: str
    n: Count
    n_predicted: Count
    precision: Number | None
    recall: Number | None
    average_precision: Number | None
    rare: bool
    curve: tuple[tuple[Number, Number], ...]


class ConfusionSummary(Part, frozen=True):
    """Test rows of the class `label` that are predicted to be of another class."""

    label: str
    predicted: str
    n: Count


class LeakageSummary(Part, frozen=True):
    """Columns that nearly determine the target, and the share of it that they explain on held-out rows."""

    columns: tuple[str, ...]
    explained: Number


class ModelSummary(Part, frozen=True):
    """The model and its performance.

    `verdict` is "good", "weak", "uncertain" or "useless"; `verdict_sentence` states it, and `judged_by` names the score
    it is based on. `confusion` has a row for each class and a column for each predicted class, in the order of
    `per_class`; it is empty for many classes. `confusions` are the most frequent errors.
    """

    description: str
    task: str
    target: str
    classes: tuple[str, ...]
    origin: str
    scores: tuple[Score, ...]
    verdict: str
    verdict_sentence: str
    judged_by: str
    sentences: tuple[str, ...]
    per_class: tuple[ClassSummary, ...]
    confusion: tuple[tuple[Count, ...], ...]
    confusions: tuple[ConfusionSummary, ...]
    leakage: tuple[LeakageSummary, ...]

    def __post_init__(self) -> None:
        n = len(self.per_class)
        if self.confusion and (len(self.confusion) != n or any(len(row) != n for row in self.confusion)):
            raise ValueError("confusion must have a row and a column for each class of per_class")


class ImportantSize(Part, frozen=True):
    """The size from which on an importance counts as important: a `share` of the number that `of` names."""

    size: Number
    share: Number
    of: str

    @property
    def words(self) -> str:
        """The size as a share, such as "1 % of the baseline loss"."""
        return f"{percent(self.share)} of {self.of}"


class InteractionSummary(Part, frozen=True):
    """The interaction of two features, according to the trees of the model.

    `strength` is its standard deviation over rows, `h_squared` its share of the variance of the joint partial
    dependence. `output` names the class for a model with one margin for each class; the others have None.
    """

    feature: str
    other: str
    output: str | None
    strength: Number
    h_squared: Number
