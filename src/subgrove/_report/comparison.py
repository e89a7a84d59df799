"""Several models on the same rows: their summaries, and paired differences of importance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from subgrove._core.text import listed, number
from subgrove._importance.result import ImportanceResult
from subgrove._importance.tables import differences
from subgrove._report.model_summary import Part
from subgrove._report.summary import NO_OBJECT, SAVE_AGAIN, Estimate, Summary, read_part
from subgrove._report.wording import tidy, with_range
from subgrove.exceptions import ParameterError

KEY = "comparison"


class Comparison(Part, frozen=True):
    """Other models on the rows of a report.

    `names` are those of all models, the first one being that of the report. `summaries` are those of the others, and
    `differences` have, for each of these and each feature of the report, its importance minus that in the first model.
    """

    names: tuple[str, ...]
    summaries: tuple[Summary, ...]
    differences: tuple[tuple[Estimate, ...], ...]
    sentences: tuple[str, ...]

    def __post_init__(self) -> None:
        if not len(self.names) - 1 == len(self.summaries) == len(self.differences) > 0:
            raise ValueError("names must have one more than summaries and differences")


def named_models(model: Mapping[Any, Any] | Sequence[Any]) -> dict[str, Any]:
    """Return the models to report on by name: those of a dict, or of a list, named after their classes."""
    if isinstance(model, Mapping):
        named = {str(name): each for name, each in model.items()}
    else:
        kinds, named = [type(each).__name__ for each in model], {}
        for at, (kind, each) in enumerate(zip(kinds, model, strict=True)):
            named[kind if kinds.count(kind) == 1 else f"{kind} {kinds[: at + 1].count(kind)}"] = each
    if len(named) < 2:
        what = f"model has {len(named)} models, but a comparison needs two."
        raise ParameterError(f"{what} Pass the model itself to report on one.")
    return named


def compared(names: Sequence[str], summaries: Sequence[Summary], results: Sequence[ImportanceResult]) -> Comparison:
    """Compare the models with the first one; all have been evaluated on the same rows, with the same draws."""
    first, *others = summaries
    if any(other.loss != first.loss for other in others):
        found = f"The models have different default losses ({listed([one.loss for one in summaries])})"
        raise ParameterError(f"{found}, so importance cannot be compared. Pass one of them as loss=.")
    order = [one.feature for one in first.features]
    by_model = [{line["feature"]: _difference(line) for line in differences(one, results[0])} for one in results[1:]]
    rows = tuple(tuple(own[feature] for feature in order) for own in by_model)
    score = first.model.scores[0].name
    values = [f"{name} {number(one.model.scores[0].value)}" for name, one in zip(names, summaries, strict=True)]
    sentences = [f"The {score} is, by model: {listed(values, len(values))}."]
    failed = {one.feature for one in first.features if one.fidelity is not None and one.fidelity.verdict == "failed"}
    for name, own in zip(names[1:], by_model, strict=True):
        reliable = {each: own[each] for each in order if each not in failed}
        sentences.append(_sentence(name, names[0], reliable, first.level))
    return Comparison(tuple(names), tuple(others), rows, tuple(map(tidy, sentences)))


def _difference(line: Mapping[str, Any]) -> Estimate:
    names = ("std_error", "conf_low", "conf_high", "p_value")
    known: dict[str, Any] = {name: None if line[name] != line[name] else line[name] for name in names}
    return Estimate(line["estimate"], **known, mc_error=None, noise=line["noise"], finding="unknown")


def _sentence(name: str, first: str, own: Mapping[str, Estimate], level: float) -> str:
    """Name the features on which a model relies significantly more or less, adjusted for their number."""
    found = [each for each in own if (p := own[each].p_value) is not None and p * len(own) <= 1 - level + 1e-12]
    largest = sorted(found, key=lambda each: -abs(own[each].estimate))
    parts = []
    for word, sign in (("more", 1), ("less", -1)):
        if some := [f"{each} by {_size(own[each])}" for each in largest if sign * own[each].estimate > 0]:
            parts.append(f"{word} on {listed(some)}")
    if not parts:
        return f"No conditional importance differs significantly between {name} and {first}."
    return f"Compared with {first}, {name} relies significantly {' and '.join(parts)}."


def _size(one: Estimate) -> str:
    """Return how large a difference is, with its interval."""
    if one.estimate >= 0 or one.conf_low is None or one.conf_high is None:
        return with_range(one)
    return with_range(replace(one, estimate=-one.estimate, conf_low=-one.conf_high, conf_high=-one.conf_low))


def read_comparison(text: bytes) -> tuple[bytes, Comparison | None]:
    """Return the JSON of a report without its comparison, and the comparison."""
    values = read_part(dict[str, msgspec.Raw], text, *NO_OBJECT)
    if KEY not in values:
        return text, None
    comparison = read_part(Comparison, values.pop(KEY), "The comparison does not fit its schema", SAVE_AGAIN)
    return msgspec.json.encode(values), comparison
