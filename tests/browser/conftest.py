"""A real browser without a screen. Where there is none, these tests are skipped and say so."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Dialog, Page, sync_playwright

from subgrove._report.comparison import Comparison
from subgrove._report.render import page
from subgrove._report.summary import Summary
from tests.report import hand_made

NAMES = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.skip(f"no browser: none of {', '.join(NAMES)} is installed; tools/browser.sh installs one")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=ARGUMENTS)
        yield browser
        browser.close()


@dataclass
class Opened:
    """A page in the browser, the summary it was made from, and the errors and requests of the browser."""

    page: Page
    summary: Summary
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def listen(self) -> None:
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", self.dismiss)
        self.page.on("request", lambda request: self.requests.append(request.url))

    def dismiss(self, dialog: Dialog) -> None:
        self.complaints.append(f"dialog: {dialog.message}")
        dialog.dismiss()


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, Summary]]:
    """Pages as files, with the summaries they were made from."""
    folder = tmp_path_factory.mktemp("pages")
    summaries = {
        "bike": hand_made.bike_like(),
        "many": hand_made.many_features(100),
        "some": hand_made.many_features(14),
        "classes": hand_made.with_classes(),
        "hostile": hand_made.hostile(),
        "odd": hand_made.odd(),
    }
    made = {}
    for name, summary in summaries.items():
        path = folder / f"{name}.html"
        path.write_text(page(summary), encoding="utf-8")
        made[name] = (path, summary)
    bike = summaries["bike"]
    differences = tuple(one.conditional for one in bike.features)
    comparison = Comparison(("forest", "a linear model"), (bike,), (differences,), ("They differ.",))
    path = folder / "compared.html"
    path.write_text(page(bike, comparison), encoding="utf-8")
    return {**made, "compared": (path, bike)}


@dataclass
class Opener:
    """Opens pages from their files; every page is closed at the end of the test."""

    browser: Browser
    files: dict[str, tuple[Path, Summary]]
    opened: list[Page] = field(default_factory=list)

    def __call__(self, name: str, *, width: int = 1366, script: bool = True, dark: bool = False) -> Opened:
        path, summary = self.files[name]
        context = self.browser.new_context(
            viewport={"width": width, "height": 900},
            java_script_enabled=script,
            color_scheme="dark" if dark else "light",
        )
        self.opened.append(context.new_page())
        found = Opened(self.opened[-1], summary)
        found.listen()
        found.page.goto(path.as_uri())
        return found

    def close(self) -> None:
        for one in self.opened:
            one.context.close()


@pytest.fixture
def opener(browser: Browser, files: dict[str, tuple[Path, Summary]]) -> Iterator[Opener]:
    made = Opener(browser, files)
    yield made
    made.close()
