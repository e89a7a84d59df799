"""Colours of the page: text and marks have the contrast of WCAG 2 AA, subgroups are distinguishable."""

from __future__ import annotations

import itertools
import re

import numpy as np
import numpy.typing as npt
import pytest

from subgrove._core.text import letter
from subgrove._report.svg import subgroup_class, template_text
from subgrove.plots._palette import LIGHT, N_COLORS

Floats = npt.NDArray[np.float64]
WORDS = ("ink", "soft", "link", "good", "warn", "bad")
MARKS = ("conditional", "marginal", *(f"s{at}" for at in range(1, N_COLORS + 1)))
THEMES = {"light": LIGHT, "dark": dict(re.findall(r"--(\w+):(#\w+);", template_text("dark.css")))}
each = pytest.mark.parametrize("theme", THEMES)

# How people without long-, middle- or short-wave cones see linear colours: Machado, Oliveira and Fernandes (2009),
# severity 1.
VISIONS = {
    "protan": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deutan": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritan": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
    "usual": np.eye(3).tolist(),
}


def linear(color: str) -> Floats:
    parts = np.array([int(color[at : at + 2], 16) for at in (1, 3, 5)]) / 255
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def contrast(one: str, other: str) -> float:
    light, dark = sorted((float(linear(color) @ [0.2126, 0.7152, 0.0722]) for color in (one, other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def lab(color: Floats) -> Floats:
    """CIE L*a*b* of a linear colour under D65."""
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    xyz = to_xyz @ np.clip(color, 0, 1) / [0.9505, 1.0, 1.089]
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@each
@pytest.mark.parametrize("ground", ["paper", "panel"])
def test_text_has_contrast(theme: str, ground: str) -> None:
    colors = THEMES[theme]
    assert {
        name: contrast(colors[name], colors[ground]) for name in WORDS if contrast(colors[name], colors[ground]) < 4.5
    } == {}


@each
def test_marks_have_contrast(theme: str) -> None:
    colors = THEMES[theme]
    assert {
        name: contrast(colors[name], colors["paper"]) for name in MARKS if contrast(colors[name], colors["paper"]) < 3
    } == {}


@each
@pytest.mark.parametrize("vision", VISIONS)
def test_the_four_subgroups_of_the_default_depth_are_distinguishable(theme: str, vision: str) -> None:
    """A distance of 10 in CIE 1976 is several times what is just noticed (2.3)."""
    seen = [lab(np.array(VISIONS[vision]) @ linear(THEMES[theme][f"s{at}"])) for at in range(1, 5)]
    assert min(float(np.linalg.norm(a - b)) for a, b in itertools.combinations(seen, 2)) > 10


def test_both_themes_have_the_same_colours() -> None:
    assert list(THEMES["light"]) == list(THEMES["dark"])


def test_more_subgroups_than_colours_have_other_line_styles() -> None:
    looks = [subgroup_class(place) for place in range(2 * N_COLORS)]
    assert len(set(looks)) == len(looks)


def test_letters_go_on_after_z() -> None:
    assert [letter(place) for place in (0, 25, 26, 701, 702)] == ["A", "Z", "AA", "ZZ", "AAA"]
