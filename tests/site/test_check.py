"""The check of the built site sees what it is for."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tools.site.check import broken_links, fetched_from_elsewhere, main, problems, read
from tools.site.pages import changes, moved_links, on_page_markdown


def site_of(folder: Path, body: str) -> Path:
    (folder / "there.html").write_text('<h2 id="known">here</h2>', encoding="utf-8")
    (folder / "index.html").write_text(f'<p id="top">{body}</p>', encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("body", "wrong"),
    [
        ('<a href="there.html#known">a</a><a href="#top">b</a><a href="https://example.org/x">c</a>', 0),
        ('<a href="missing.html">a</a>', 1),
        ('<a href="there.html#unknown">a</a>', 1),
        ('<a href="#unknown">a</a>', 1),
        ('<img src="images/none.png">', 1),
    ],
)
def test_a_link_that_leads_nowhere_is_seen(tmp_path: Path, body: str, wrong: int) -> None:
    pages = {path.resolve(): read(path) for path in site_of(tmp_path, body).glob("*.html")}
    assert len(broken_links(pages)) == wrong


@pytest.mark.parametrize(
    "body", ['<script src="https://example.org/a.js"></script>', '<img src="//example.org/a.png">']
)
def test_a_page_that_needs_a_network_is_seen(tmp_path: Path, body: str) -> None:
    pages = {path.resolve(): read(path) for path in site_of(tmp_path, body).glob("*.html")}
    assert len(fetched_from_elsewhere(pages, [])) == 1


def test_a_style_that_needs_a_network_is_seen(tmp_path: Path) -> None:
    style = tmp_path / "a.css"
    style.write_text("body { background: url('https://example.org/a.png') }", encoding="utf-8")
    assert len(fetched_from_elsewhere({}, [style])) == 1


def test_a_public_name_without_an_entry_is_seen(tmp_path: Path) -> None:
    assert "reference: subgrove.importance has no entry" in problems(site_of(tmp_path, ""))


def test_an_empty_folder_is_no_site(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(str(tmp_path)) == 1
    assert "make docs" in capsys.readouterr().out


def test_links_of_a_forge_become_links_of_the_site() -> None:
    text = "[a](docs/why.md#the-problem) [b](LICENSE) [c](https://example.org) [d](#citation)"
    moved = moved_links(f"{text}\n```\n[e](docs/why.md)\n```\n", "README.md")
    assert "[a](why.md#the-problem) [b](licence.md) [c](https://example.org) [d](#citation)" in moved
    assert "[e](docs/why.md)" in moved
    assert moved_links("[a](../../README.md) [b](../index.md)", "docs/decisions/0001-exact-optimum.md") == (
        "[a](../index.md) [b](../pages.md)"
    )


def test_every_fragment_is_among_the_changes() -> None:
    fragments = {path for path in Path(__file__).parents[2].glob("changelog.d/*.md") if path.name != "README.md"}
    assert changes().count("\n- ") == len(fragments)


@pytest.mark.parametrize(
    ("path", "searched"), [("decisions/0001-exact-optimum.md", False), ("changes.md", False), ("faq.md", True)]
)
def test_pages_about_the_project_are_left_out_of_the_search(path: str, searched: bool) -> None:
    page: Any = SimpleNamespace(file=SimpleNamespace(src_uri=path), meta={})
    nothing: Any = None
    on_page_markdown("# Title", page, nothing, nothing)
    assert page.meta.get("search", {}).get("exclude", False) is not searched
