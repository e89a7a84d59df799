"""How wide words will be, near enough to place them: the page's font is not known here, so widths are generous."""

from __future__ import annotations

_NARROW, _WIDE = frozenset("iljtfrI.,:;|!'()[]{} "), frozenset("mwMW%@")
DOTS = "\u2026"


def width_of(words: str, size: float) -> float:
    """Width of words in a sans serif font of that size."""
    return size * sum(_width(letter) for letter in words)


def _width(letter: str) -> float:
    if letter in _NARROW:
        return 0.33
    if letter in _WIDE:
        return 0.9
    if ord(letter) > 0x2E7F:
        return 1.05  # a full square in most fonts
    return 0.68 if letter.isupper() else 0.57


def shorten(words: str, room: float, size: float) -> str:
    """The words, or as many letters of them as there is room for, and dots."""
    words = " ".join(words.split())
    if width_of(words, size) <= room:
        return words
    while words and width_of(words + DOTS, size) > room:
        words = words[:-1]
    return words.rstrip() + DOTS


def wrap(words: str, room: float, size: float, most: int) -> list[str]:
    """The words in at most so many lines; the last is shortened."""
    lines: list[str] = []
    rest = words.split()
    while rest and len(lines) < most - 1:
        taken = [rest.pop(0)]
        while rest and width_of(" ".join([*taken, rest[0]]), size) <= room:
            taken.append(rest.pop(0))
        lines.append(shorten(" ".join(taken), room, size))
    return [*lines, shorten(" ".join(rest), room, size)] if rest else lines or [""]
