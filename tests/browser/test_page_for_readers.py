"""The page for its readers: what is seen first, on a phone, on paper, and by those who do not see it."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path
from typing import Any
from unicodedata import normalize

import pytest

from tests.browser.conftest import Opened, Opener

CLIPPED = """() => {
  const wide = [];
  for (const one of document.querySelectorAll("main table, main svg, main dl, main p, main li, main select")) {
    if (!one.checkVisibility() || one.closest(".scroll")) continue;
    const box = one.getBoundingClientRect();
    const cut = one.scrollWidth > one.clientWidth + 1 && getComputedStyle(one).overflowX === "hidden";
    if (box.width && (box.right > innerWidth + 1 || box.left < -1 || cut)) wide.push(one.outerHTML.slice(0, 120));
  }
  return wide;
}"""
OPEN_ALL = "document.querySelectorAll('details').forEach(one => (one.open = true))"


@pytest.mark.parametrize("name", ["bike", "some", "classes", "odd"])
def test_importance_begins_on_the_first_screen(opener: Opener, name: str) -> None:
    page = opener(name, width=1280).page
    top = "one => one.getBoundingClientRect().top"
    assert page.locator("#importance").evaluate(top) <= 900
    findings, limits = (page.locator(one).evaluate(top) for one in (".highlights", ".limits"))
    assert findings == pytest.approx(limits, abs=2), "limits stand beside the findings"


@pytest.mark.parametrize("name", ["bike", "some", "classes", "odd", "hostile", "compared"])
def test_no_table_is_cut_on_a_phone(opener: Opener, name: str) -> None:
    opened = opener(name, width=390)
    opened.page.evaluate(OPEN_ALL)
    assert opened.page.evaluate(CLIPPED) == []
    for region in opened.page.locator(".scroll").all():
        assert region.get_attribute("tabindex") == "0", "what scrolls can be reached by keys"


def test_one_class_is_shown_at_a_time_and_all_without_the_script(opener: Opener) -> None:
    opened = opener("classes")
    outputs = opened.summary.features[0].outputs
    assert len(outputs) == 3
    shown = "all => all.filter(one => one.dataset.output && one.checkVisibility()).map(one => one.dataset.output)"
    for wanted in reversed(outputs):
        opened.page.locator("select.output").first.select_option(wanted)
        assert set(opened.page.locator("div.output").evaluate_all(shown)) == {wanted}
    assert opened.complaints == []
    assert set(opener("classes", script=False).page.locator("div.output").evaluate_all(shown)) == set(outputs)


def saved(opened: Opened, button: Any, folder: Path) -> tuple[str, bytes]:
    with opened.page.expect_download() as download:
        button.click()
    path = folder / "saved"
    download.value.save_as(path)
    return download.value.suggested_filename, path.read_bytes()


def test_the_table_of_importance_is_saved_with_all_digits(opener: Opener, tmp_path: Path) -> None:
    opened = opener("bike")
    name, content = saved(opened, opened.page.locator("#ranking + .exports button"), tmp_path)
    lines = list(csv.DictReader(io.StringIO(content.decode("utf-8-sig"))))
    assert name == "importance.csv"
    assert [line["Feature"] for line in lines] == [one.feature for one in opened.summary.features]
    for line, one in zip(lines, opened.summary.features, strict=True):
        assert float(line["Conditional"]) == one.conditional.estimate
        assert line["Marginal high"] == str("" if one.marginal.conf_high is None else one.marginal.conf_high)


@pytest.mark.parametrize("name", ["bike", "classes", "hostile"])
def test_a_chart_is_saved_as_a_picture_and_as_numbers(opener: Opener, tmp_path: Path, name: str) -> None:
    from xml.etree import ElementTree

    opened = opener(name)
    opened.page.evaluate(OPEN_ALL)
    for kind in ("svg.curves", "svg.levels"):
        if not (chart := opened.page.locator(f"{kind}:visible")).count():
            continue
        bar = chart.first.locator("xpath=following-sibling::div[1]")
        file, content = saved(opened, bar.get_by_text("SVG"), tmp_path)
        assert file.endswith(".svg")
        root = ElementTree.fromstring(content)
        assert root.tag.endswith("}svg")
        assert not re.search(rb"var\(|class=|style=|<script", content), "the file needs no style of the page"
        file, content = saved(opened, bar.get_by_text("PNG"), tmp_path)
        assert content.startswith(b"\x89PNG")
        assert len(content) > 3000
        file, content = saved(opened, bar.get_by_text("CSV"), tmp_path)
        rows = list(csv.reader(io.StringIO(content.decode("utf-8-sig"))))
        assert rows[0][0] == "curve"
        assert all(float(row[2]) == float(row[2]) for row in rows[1:])
    assert opened.complaints == []
    assert opened.requests[1:] == [one for one in opened.requests[1:] if one.startswith(("blob:", "data:"))]


def test_a_cell_of_a_file_is_no_formula(opener: Opener, tmp_path: Path) -> None:
    opened = opener("bike")
    opened.page.evaluate("document.querySelector('#ranking tbody th').textContent = '=HYPERLINK(1)'")
    _, content = saved(opened, opened.page.locator("#ranking + .exports button"), tmp_path)
    assert "'=HYPERLINK(1)" in content.decode("utf-8-sig")
    assert "\n=HYPERLINK" not in content.decode("utf-8-sig")


@pytest.mark.parametrize("name", ["bike", "some", "classes", "many"])
def test_the_summary_is_printed_on_two_pages_before_the_appendix(opener: Opener, tmp_path: Path, name: str) -> None:
    pypdf = pytest.importorskip("pypdf", reason="pypdf reads the pages of a PDF")
    path = tmp_path / "page.pdf"
    opener(name).page.pdf(path=path, format="A4")
    texts = [one.extract_text() for one in pypdf.PdfReader(path).pages]
    (appendix,) = (at for at, text in enumerate(texts) if re.search(r"^\W*Appendix\W*$", text, re.MULTILINE))
    assert 1 <= appendix <= 2
    summary = " ".join(normalize("NFKC", " ".join(texts[:appendix])).split())
    for heading in ("Key findings", "What not to conclude", "Conditional and marginal importance", "Model performance"):
        assert heading in summary


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("name", ["bike", "some", "classes", "odd", "compared"])
def test_axe_finds_nothing_serious(opener: Opener, name: str, dark: bool) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe checks accessibility")
    opened = opener(name, dark=dark)
    opened.page.evaluate(OPEN_ALL)
    found = axe.Axe().run(opened.page).response["violations"]
    serious = {
        one["id"]: [one["help"], *(node["html"][:200] for node in one["nodes"][:3])]
        for one in found
        if one["impact"] in ("serious", "critical")
    }
    assert serious == {}


def test_a_term_is_explained_where_it_stands(opener: Opener) -> None:
    opened = opener("bike")
    term = opened.page.locator("#importance a.term", has_text="fidelity check").first
    term.hover()
    assert "classifier can distinguish" in opened.page.locator("#tip").inner_text()
    place = term.get_attribute("href")
    assert "classifier can distinguish" in opener("bike", script=False).page.locator(place or "").inner_text()
