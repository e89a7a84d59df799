"""What a fitted sampler has learned, looked up by feature."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from subgrove.exceptions import ParameterError
from subgrove.samplers.base import Feature, title

Learned = TypeVar("Learned")


def learned_for(learned: Mapping[str, Learned], feature: Feature, sampler: str) -> Learned:
    """What was learned of a feature, or an error that says for which features the sampler was fitted."""
    try:
        return learned[title(feature)]
    except KeyError:
        fitted = ", ".join(map(repr, learned))
        raise ParameterError(
            f"sampler {sampler!r} was not fitted for {title(feature)!r}, only for {fitted}. Name it in features of fit."
        ) from None
