"""The words of the field: no private vocabulary in names, docstrings, messages, templates, docs and tests.

Each pattern has the words to use instead. `docs/glossary.md` defines the few terms of our own.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

WORDS = {
    r"(un)?foret(ell|ells|elling|ellings|old)": "predict, predicted by",
    r"(un)?ask(s|ed|er|ing)?": "evaluate, query, call the model; request",
    r"answers?|answered": "predictions",
    r"tell|tells|telling|told": "report, describe, show, state; distinguish",
    r"refus(e|es|ed|ing|al)": "validate, check, reject, raise",
    r"leaning|leans": "skewness",
    r"alike": "same distribution, equally, similar",
    r"tall(y|ies)": "accumulate, sum",
    r"rivals?": "candidate",
    r"certif(y|ies|ied|ier|iers|ying|icate|icates)": "fidelity check",
    r"lone": "singleton",
    r"pieces?|piecework": "chunk",
}
"""Banned anywhere a person reads."""

PHRASES = {
    r"pass(es|ed)? for real": "realistic; fidelity check passed",
    r"clear of noise": "significant, clearly different from 0",
    r"speaks? against": "covariate shift detected",
    r"rows as they are": "baseline rows",
    r"(has|have|had) not seen": "held-out",
    r"what is left": "residual",
    r"what the others (know|say)": "explained by the other features",
    r"add(s|ed|ing)? up": "sum, accumulate",
    r"how often (a|each|the)? ?rows? counts?": "weights",
    r"(who|what) is no": "invalid",
    r"(data|rows|tables?) in (partitions|parts)": "large data, chunks",
    r"repeated rows": "duplicated rows",
    r"cannot be \w+ from nothing": "not significantly different from 0",
}
"""Banned anywhere a person reads."""

NAMES = {
    r"before": "baseline",
    r"rest": "residual",
    r"behind": "score_gap",
    r"chosen": "selected",
    r"rings?": "cyclic_shift",
    r"counted": "weights, count",
    r"questions?": "spec, context, task",
}
"""Banned as the name of a class, function, parameter, attribute or variable, on its own."""

ALLOWED = {
    "tests/test_vocabulary.py": r".*",  # this list
    "src/subgrove/_scoring/fidelity_check.py": r"certificate",  # the key of a random stream: another key, other numbers
    "docs/decisions/0033-one-flow-plain-words.md": r"certificate",  # the same key, explained
    "tests/golden/golden.json": r".*",  # recorded before the names changed
    "tests/golden/renamed.py": r".*",  # new names to recorded ones
}
"""Files, and the words in them, that may stay."""

FOLDERS = ("src", "docs", "examples", "benchmarks", "experiments", "tools", "tests")
SUFFIXES = {".py", ".md", ".html", ".js", ".css", ".c", ".h", ".toml", ".yml"}
PAGES = ("README.md", "CONTRIBUTING.md", "pyproject.toml", "mkdocs.yml", "setup.py", "conftest.py", "Makefile")


def readable_files() -> list[Path]:
    found = [path for folder in (*FOLDERS, "changelog.d") for path in (ROOT / folder).rglob("*")]
    found += [ROOT / name for name in PAGES]
    return sorted(path for path in found if path.suffix in SUFFIXES and path.is_file())


def as_words(text: str) -> str:
    """Names taken apart: `n_rows_told` and `ToldBy` read "n rows told" and "Told By"."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", text.replace("_", " "))


def compiled(patterns: dict[str, str]) -> re.Pattern[str]:
    return re.compile(r"\b(" + "|".join(patterns) + r")\b", re.IGNORECASE)


BANNED = compiled({**WORDS, **PHRASES})
BANNED_NAMES = re.compile(r"_*(" + "|".join(NAMES) + r")_*", re.IGNORECASE)


def names_in(text: str) -> Iterator[tuple[int, str]]:
    """Names of a Python file, with their lines."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.NAME:
            yield token.start[0], token.string


def violations(path: Path) -> list[str]:
    relative = path.relative_to(ROOT).as_posix()
    text = path.read_text(encoding="utf-8")
    allowed = re.compile(ALLOWED.get(relative, r"(?!)"), re.IGNORECASE)
    found = [
        f"{relative}:{number}: {match.group()!r}"
        for number, line in enumerate([path.stem, *text.splitlines()])
        for match in BANNED.finditer(as_words(line))
        if not allowed.fullmatch(match.group())
    ]
    if path.suffix == ".py" and relative.startswith("src"):
        found += [
            f"{relative}:{number}: name {name!r}" for number, name in names_in(text) if BANNED_NAMES.fullmatch(name)
        ]
    return found


@pytest.mark.parametrize("path", readable_files(), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_files_use_the_words_of_the_field(path: Path) -> None:
    assert violations(path) == []


@pytest.mark.parametrize(
    "word", ["baseline", "residual", "held-out", "skewness", "covariate shift", "cyclic shift", "Gram matri"]
)
def test_terms_of_the_field_can_be_found(word: str) -> None:
    pages = [path for path in readable_files() if "src" in path.parts]
    assert any(word.lower() in path.read_text(encoding="utf-8").lower() for path in pages)


def test_a_banned_word_is_seen_in_names_and_in_text() -> None:
    assert BANNED.search(as_words("n_rows_asked"))
    assert BANNED.search(as_words("class DeviceTally"))
    assert BANNED.search(as_words("what the columns foretell"))
    assert not BANNED.search(as_words("task, masked, untold, basket"))
    assert BANNED_NAMES.fullmatch("before")
    assert not BANNED_NAMES.fullmatch("before_fit")
    assert ast.parse("before = 1") is not None
