"""Sentences and tables in Markdown, made from numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd


def markdown(header: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A table in Markdown; columns of numbers are set to the right."""
    body = [list(line) for line in lines]
    numeric = [bool(body) and all(_is_number(line[at]) for line in body) for at in range(len(header))]
    rule = [" ---: " if right else " --- " for right in numeric]
    text = [f"| {' | '.join(line)} |" for line in [list(header), *body]]
    return "\n".join([text[0], f"|{'|'.join(rule)}|", *text[1:]])


def _is_number(text: str) -> bool:
    return text.strip("+-±%<> 0123456789.,e()") == ""


def number(value: float, digits: int = 3) -> str:
    """A number with that many significant digits, all digits before the point; nothing if it is missing."""
    if not np.isfinite(value):
        return ""
    if value == 0:
        return "0"
    decimals = max(0, digits - 1 - int(np.floor(np.log10(abs(value)))))
    text = f"{value:.{min(decimals, 6)}f}"
    return "0" if float(text) == 0 and decimals > 6 else text.replace("-0.000000", "0")


def with_error(value: float, error: float, digits: int = 3) -> str:
    """A number and its standard error, both to the second digit of the error."""
    if not np.isfinite(value):
        return ""
    if not np.isfinite(error) or error <= 1e-12 * max(1.0, abs(value)):
        return number(value, digits)
    decimals = min(max(0, 1 - int(np.floor(np.log10(error)))), 6)
    return f"{value + 0.0:.{decimals}f} ± {error:.{decimals}f}"


def expected(check: str, bound: float) -> str:
    """What a number is compared with, in words."""
    return {"near": "", "above": "above ", "below": "below "}[check] + number(bound)


def claims_section(claims: pd.DataFrame) -> str:
    """The claims as a table: what, published, expected, ours with standard error, whether it holds."""
    lines: list[tuple[str, ...]] = [
        (
            str(line["claim"]),
            number(line["published"]),
            expected(line["check"], line["bound"]),
            with_error(line["ours"], line["std_error"]),
            "yes" if line["holds"] else "**no**",
        )
        for line in claims.to_dict("records")
    ]
    header: tuple[str, ...] = ("claim", "published", "expected", "ours ± standard error", "holds")
    if not claims["published"].notna().any():
        header, lines = (header[0], *header[2:]), [(line[0], *line[2:]) for line in lines]
    return markdown(header, lines)


def holding(claims: pd.DataFrame) -> str:
    """How many of the claims hold, and which do not."""
    failed = claims.loc[~claims["holds"], "claim"].tolist()
    text = f"{len(claims) - len(failed)} of {len(claims)} hold."
    return text if not failed else f"{text} Not so: {'; '.join(failed)}."
