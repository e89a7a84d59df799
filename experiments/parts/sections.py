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


def fixed(value: float, decimals: int) -> str:
    """A number with that many decimals; zero has no sign."""
    text = f"{value:.{decimals}f}"
    return text if float(text) else text.removeprefix("-")


def number(value: float, digits: int = 3) -> str:
    """A number with that many significant digits, all digits before the point; nothing if it is missing."""
    if not np.isfinite(value):
        return ""
    if value == 0:
        return "0"
    return fixed(value, min(max(0, digits - 1 - int(np.floor(np.log10(abs(value))))), 6))


def plain(value: float) -> str:
    """A number as someone wrote it, if it is short; else with three digits."""
    text = f"{value:.6g}"
    return text if np.isfinite(value) and len(text.lstrip("-")) <= 5 else number(value)


def with_error(value: float, error: float, digits: int = 3) -> str:
    """A number and its standard error, both to the second digit of the error."""
    if not np.isfinite(value):
        return ""
    if not np.isfinite(error) or error <= 1e-12 * max(1.0, abs(value)):
        return number(value, digits)
    decimals = min(max(0, 1 - int(np.floor(np.log10(error)))), 6)
    return f"{fixed(value, decimals)} ± {error:.{decimals}f}"


def expected(check: str, bound: float) -> str:
    """What a number is compared with, in words."""
    words = {"near": "{}", "draw": "{} in one split", "above": "above {}", "below": "below {}"}
    return words[check].format(plain(bound))


def claims_section(claims: pd.DataFrame) -> str:
    """The claims as a table: what, published, expected, ours with standard error, whether it holds."""
    lines: list[tuple[str, ...]] = [
        (
            str(line["claim"]),
            plain(line["published"]),
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
