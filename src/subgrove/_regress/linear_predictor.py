"""A shift: what is foretold of a feature by a sum of terms that a person can read."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from subgrove._core.kinds import Floats
from subgrove._data.table import Table
from subgrove._regress.design import Design, DesignColumn


@dataclass(frozen=True)
class LinearTerm:
    """A coefficient times a column, an indicator of a level, or the product of two of them.

    Attributes
    ----------
    parts : tuple of Part
        One factor, or two; the factors of a product are taken about their means.
    coefficient : float
        In units of the feature for one unit of the factor (of each factor).
    size : float
        How much the feature moves when the term grows by its standard deviation: what terms are ranked by.
    mean : float
        Of the product in training; 0 for a single factor.
    """

    parts: tuple[DesignColumn, ...]
    coefficient: float
    size: float
    mean: float = 0.0

    @property
    def label(self) -> str:
        """The factors in words."""
        if len(self.parts) == 1:
            return self.parts[0].label
        return " x ".join(part.label for part in self.parts)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it asks for."""
        return tuple(dict.fromkeys(part.column for part in self.parts))

    def text(self) -> str:
        """The term as it is added, without its sign."""
        number = _short(abs(self.coefficient))
        if len(self.parts) == 1:
            return f"{number} * {self.parts[0].label}"
        return " * ".join([number, *(_centred(part) for part in self.parts)])


def _centred(part: DesignColumn) -> str:
    if not part.is_value:
        return f"({part.label} - {_short(part.mean)})"
    return f"({part.label} {'-' if part.mean >= 0 else '+'} {_short(abs(part.mean))})"


@dataclass(frozen=True, eq=False)
class LinearPredictor:
    """The sum of terms.

    Attributes
    ----------
    feature : str
        What is foretold.
    intercept : float
        Where every term is 0.
    terms : tuple of Term
        Largest first.
    design : Design
        How columns become numbers.
    """

    feature: str
    intercept: float
    terms: tuple[LinearTerm, ...]
    design: Design

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the terms ask for, those that matter most first."""
        return tuple(dict.fromkeys(name for term in self.terms for name in term.columns))

    def predict(self, table: Table) -> Floats:
        """What is foretold for each row."""
        total = np.full(table.n_rows, self.intercept)
        for term in self.terms:
            if len(term.parts) == 1:
                (part,) = term.parts
                total += term.coefficient * (part.scale * self.design.numbers(table, part) + part.mean)
                continue
            factor = np.ones(table.n_rows)
            for part in term.parts:
                factor *= part.scale * self.design.numbers(table, part)
            total += term.coefficient * factor
        return total

    def text(self, most: int = 6) -> str:
        """In one line: "temp ~ 15.3 + 4.2 * [season = SUMMER] - 0.1 * hum"."""
        pieces = [f"{self.feature} ~ {_short(self.intercept)}"]
        pieces += [f"{'+' if term.coefficient >= 0 else '-'} {term.text()}" for term in self.terms[:most]]
        left = len(self.terms) - most
        if left > 0:
            pieces.append(f"+ {left} smaller term{'s' if left > 1 else ''}")
        return " ".join(pieces)


def _short(number: float) -> str:
    return f"{number:.3g}"
