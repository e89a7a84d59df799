"""The documentation site, opened from a file: search finds pages, and nothing is requested from elsewhere.

The site here has two pages, with the theme, plugins and assets of the real one.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import Browser

ROOT = Path(__file__).parents[2]
SETTINGS = """
site_name: small
use_directory_urls: false
theme: {{name: material, custom_dir: {theme}, font: false, logo: assets/logo.svg, favicon: assets/favicon.svg}}
extra_css: [assets/subgrove.css]
extra: {{polyfills: [assets/iframe-worker.js]}}
plugins: [search, offline]
"""


@pytest.fixture(scope="module")
def small_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    (folder / "docs").mkdir()
    (folder / "docs" / "index.md").write_text("# Start\n\nNothing of note.\n", encoding="utf-8")
    (folder / "docs" / "other.md").write_text("# Badgers\n\nA page about quokkas.\n", encoding="utf-8")
    settings = folder / "mkdocs.yml"
    settings.write_text(SETTINGS.format(theme=ROOT / "tools" / "site" / "theme"), encoding="utf-8")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-f", str(settings)]
    subprocess.run(command, check=True, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"})
    return folder / "site" / "index.html"


def test_search_works_from_a_file_without_external_requests(browser: Browser, small_site: Path) -> None:
    context = browser.new_context(viewport={"width": 1366, "height": 900})
    page = context.new_page()
    requested: list[str] = []
    complaints: list[str] = []
    page.on("request", lambda request: requested.append(request.url))
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(small_site.as_uri())
    page.locator(".md-search__input").click()
    page.keyboard.type("quokkas")
    found = page.locator(".md-search-result__item").first
    found.wait_for(timeout=10_000)
    assert "Badgers" in found.inner_text()
    assert [url for url in requested if not url.startswith(("file:", "data:", "blob:"))] == []
    assert complaints == []
    context.close()
