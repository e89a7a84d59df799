"""The page in a browser: it opens from a file without errors, its controls work, its numbers are right."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator

from subgrove._report.summary import Estimate, FeatureSummary
from tests.browser.conftest import Opener
from tests.report import hand_made

PAGES = ("bike", "many", "classes", "hostile", "odd")
OPEN = "document.querySelectorAll('details').forEach((one, at) => { if (at < 20) one.open = true; })"
STRANGE = "document.body.append(Object.assign(document.createElement('script'), {text: 'window.hit = 1'}))"


def shown_names(rows: Locator) -> list[str]:
    """Names of the rows or sections that are seen, from top to bottom."""
    names: list[str] = rows.evaluate_all("all => all.filter(one => !one.hidden).map(one => one.dataset.name)")
    return names


@pytest.mark.parametrize("name", PAGES)
def test_pages_open_from_a_file_without_errors_and_requests(opener: Opener, name: str) -> None:
    opened = opener(name)
    opened.page.evaluate(OPEN)
    opened.page.mouse.wheel(0, 5000)
    opened.page.wait_for_timeout(100)
    assert opened.complaints == []
    assert opened.requests == [opened.page.url]


def test_other_scripts_are_blocked(opener: Opener) -> None:
    opened = opener("bike")
    opened.page.evaluate(STRANGE)
    assert opened.page.evaluate("window.hit") is None
    assert any("Content Security Policy" in complaint for complaint in opened.complaints)


def test_names_from_the_data_stay_text(opener: Opener) -> None:
    opened = opener("hostile")
    assert opened.page.locator("img").count() == 0
    assert opened.page.locator("h1").inner_text() == hand_made.NASTY_NAME
    assert opened.page.locator("details.feature h3").first.inner_text() == hand_made.NASTY_NAME
    assert opened.page.locator("details.feature .headline").first.inner_text() == hand_made.NASTY_LEVEL
    opened.page.locator("svg.levels").first.focus()
    opened.page.keyboard.press("ArrowDown")
    assert hand_made.NASTY_LEVEL in opened.page.locator("#tip").inner_text()
    assert opened.complaints == []


@pytest.mark.parametrize("name", ["bike", "classes", "some", "many"])
def test_numbers_on_the_page_are_those_of_the_summary(opener: Opener, name: str) -> None:
    opened = opener(name)
    cells = opened.page.locator("#ranking tbody tr").evaluate_all(
        "rows => rows.map(row => [0, 2, 3].map(at => row.cells[at].textContent.trim()))"
    )
    for (name, *numbers), one in zip(cells, opened.summary.features, strict=True):
        assert name == one.feature
        for words, estimate in zip(numbers, (one.conditional, one.marginal), strict=True):
            assert_rounded(words, estimate)
    values = opened.page.locator(".subgroups td[data-value]").evaluate_all("all => all.map(one => +one.dataset.value)")
    assert values == [value for one in opened.summary.features for value in subgroup_values(one)]


def assert_rounded(words: str, estimate: Estimate) -> None:
    """The words are the estimate and the ends of its interval, to the digits that they have."""
    known = [one for one in (estimate.estimate, estimate.conf_low, estimate.conf_high) if one is not None]
    numbers = words.replace("\u2212", "-").replace(",", "").replace(" to ", " ").split()
    for word, value in zip(numbers, known, strict=True):
        decimals = len(word.partition(".")[2])
        assert abs(float(word) - value) <= 0.5001 * 10**-decimals, (words, estimate)


def subgroup_values(feature: FeatureSummary) -> list[float]:
    several = feature.subgroups if len(feature.subgroups) > 1 else ()
    return [one.estimate.estimate for one in several if one.estimate is not None]


def test_the_list_is_sorted_by_the_selected_column(opener: Opener) -> None:
    opened = opener("bike")
    rows, features = opened.page.locator("#ranking tbody tr"), opened.summary.features
    by_marginal = sorted(features, key=lambda one: -one.marginal.estimate)
    opened.page.select_option("#sort", "name")
    assert shown_names(rows) == sorted(one.feature for one in features)
    opened.page.get_by_role("button", name="Marginal").click()
    assert shown_names(rows) == [one.feature for one in by_marginal]
    assert opened.page.locator("th[aria-sort]").get_attribute("data-sort") == "marginal"
    assert opened.page.locator("#sort").input_value() == "marginal"
    opened.page.get_by_role("button", name="Marginal").click()
    assert shown_names(rows) == [one.feature for one in reversed(by_marginal)]
    assert opened.page.locator("th[aria-sort]").get_attribute("aria-sort") == "ascending"


def test_search_finds_features_in_all_lists(opener: Opener) -> None:
    opened = opener("many")
    wanted = [one.feature for one in opened.summary.features if "_9" in one.feature]
    opened.page.locator(".find").first.fill("_9")
    assert shown_names(opened.page.locator("#ranking tbody tr")) == wanted
    assert shown_names(opened.page.locator("details.feature")) == wanted
    assert shown_names(opened.page.locator(".contents li[data-name]")) == wanted
    assert opened.page.locator(".matches").first.inner_text() == f"{len(wanted)} of 100"
    opened.page.locator(".find").last.fill("no such thing")
    assert opened.page.locator(".none").is_visible()


def test_a_link_to_a_feature_opens_it(opener: Opener) -> None:
    opened = opener("some")
    last = opened.page.locator("details.feature").last
    assert last.get_attribute("open") is None
    opened.page.locator("#ranking tbody a").last.click()
    assert last.get_attribute("open") is not None
    assert last.locator(".tree, .levels, .curves").first.is_visible()


def test_a_subgroup_is_hidden_in_all_pictures_of_its_feature_and_comes_back(opener: Opener) -> None:
    opened = opener("classes")
    body = opened.page.locator("#feature-1")
    button, curves = body.locator("[data-toggle='2']").first, body.locator(".curve[data-subgroup='2']")
    others = opened.page.locator("#feature-2 [data-subgroup='1']")
    assert curves.count() == len(opened.summary.model.classes)
    button.click()
    assert button.get_attribute("aria-pressed") == "false"
    assert curves.evaluate_all("all => all.every(one => getComputedStyle(one).visibility === 'hidden')")
    assert others.evaluate_all("all => all.every(one => getComputedStyle(one).visibility === 'visible')")
    button.click()
    assert curves.evaluate_all("all => all.every(one => getComputedStyle(one).visibility === 'visible')")


def test_values_are_shown_by_pointer_and_by_keys(opener: Opener) -> None:
    opened = opener("bike")
    chart, tip = opened.page.locator("svg.curves").first, opened.page.locator("#tip")
    chart.evaluate("one => one.scrollIntoView({behavior: 'instant', block: 'center'})")
    opened.page.wait_for_timeout(100)
    chart.hover()
    assert tip.inner_text().startswith("temp = ")
    assert [line.split(":")[0] for line in tip.inner_text().splitlines()[1:]] == ["A", "B", "C", "D"]
    opened.page.mouse.move(5, 5)
    assert tip.is_hidden()
    opened.page.locator(".panel .toggle").nth(3).focus()
    opened.page.keyboard.press("Tab")
    earlier = tip.inner_text()
    opened.page.keyboard.press("ArrowRight")
    assert earlier.startswith("temp = ")
    assert tip.inner_text() != earlier
    opened.page.keyboard.press("Escape")
    assert tip.is_hidden()


@pytest.mark.parametrize("dark", [False, True])
def test_the_switch_turns_light_to_dark_and_back(opener: Opener, dark: bool) -> None:
    page = opener("bike", dark=dark).page
    ground = "getComputedStyle(document.body).backgroundColor"
    earlier = page.evaluate(ground)
    page.locator("#theme").click()
    assert page.locator("#theme").get_attribute("aria-pressed") == str(not dark).lower()
    assert page.evaluate(ground) != earlier
    page.locator("#theme").click()
    assert page.evaluate(ground) == earlier


@pytest.mark.parametrize("name", PAGES)
def test_no_width_makes_the_page_scroll_sideways(opener: Opener, name: str) -> None:
    page = opener(name, width=360).page
    page.evaluate(OPEN)
    for width in (360, 800, 1366):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_the_page_is_read_without_its_script(opener: Opener) -> None:
    opened = opener("bike", script=False)
    assert opened.page.locator("#ranking tbody tr").count() == len(opened.summary.features)
    assert opened.page.locator("svg.curves").first.is_visible()
    assert opened.page.locator(".toolbar").first.is_hidden()
    assert opened.page.locator("#theme").is_hidden()
    assert opened.complaints == []


def test_on_paper_everything_is_open_and_controls_are_gone(opener: Opener) -> None:
    opened = opener("some", dark=True)
    opened.page.emulate_media(media="print")
    assert opened.page.locator(".contents").is_hidden()
    assert opened.page.locator(".toolbar").first.is_hidden()
    assert opened.page.locator("#feature-14 .tree").is_visible()
    assert opened.page.evaluate("getComputedStyle(document.body).color") == "rgb(27, 31, 36)"
    assert len(opener("bike").page.pdf(format="A4")) > 50_000


def test_the_page_is_walked_by_keyboard(opener: Opener) -> None:
    page = opener("bike").page
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the report"
    assert page.evaluate("document.activeElement.getBoundingClientRect().left") >= 0
    page.keyboard.press("Enter")
    assert page.evaluate("location.hash") == "#main"
    nameless = page.locator("button, select, input, svg[tabindex], [role=region]").evaluate_all(
        "all => all.filter(one => !(one.textContent.trim() || one.ariaLabel || one.labels?.length)).length"
    )
    assert nameless == 0
