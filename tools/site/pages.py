"""Pages of the site that are no file of docs/: the README as home, the table of pages, contributing, changes.

docs/*.md link to each other and to files above them as a forge shows them. Here the same links lead to pages of the
site; a link to a file that the site does not have is an error.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[2]
# file of the repository -> page of the site
MOVED = {
    "README.md": "index.md",
    "docs/index.md": "pages.md",
    "CONTRIBUTING.md": "contributing.md",
    "LICENSE": "licence.md",
    "changelog.d/README.md": "changes.md",
    "experiments/README.md": "experiments.md",
}
FOLDERS = ("decisions", "gallery")  # whose pages come into the table of contents by themselves
UNSEARCHED = ("decisions/", "changes.md")  # pages about the project would rank above the guides
WIDE = "---\nhide:\n  - navigation\n---\n\n"  # a page that stands alone needs no list of its neighbours
LINK = re.compile(r"(?P<before>\]\()(?P<target>[^)\s#]*)(?P<anchor>#[^)\s]*)?(?P<after>\))")
FENCE = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
TITLE = re.compile(r"^# (?P<title>.+)$", re.MULTILINE)


def page_of(path: str) -> str:
    """The page of the site that shows a file of the repository."""
    if path in MOVED:
        return MOVED[path]
    if not path.startswith("docs/"):
        raise PluginError(f"A page links to {path}, which the site does not have. Add it to MOVED in {__file__}.")
    return path.removeprefix("docs/")


def moved_links(text: str, source: str) -> str:
    """The text of a file with links that lead to pages of the site.

    Parameters
    ----------
    text : str
        Markdown.
    source : str
        Its path in the repository, such as "docs/why.md".
    """
    here = posixpath.dirname(page_of(source))

    def moved(link: re.Match[str]) -> str:
        target = link["target"]
        if not target or re.match(r"[a-z]+:", target):
            return link[0]
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
        page = posixpath.relpath(page_of(path), here or ".")
        return f"{link['before']}{page}{link['anchor'] or ''}{link['after']}"

    kept = [fence.span() for fence in FENCE.finditer(text)]
    return LINK.sub(lambda link: link[0] if any(a <= link.start() < b for a, b in kept) else moved(link), text)


def changes() -> str:
    """The fragments of changelog.d as one list, then the released versions."""
    fragments = sorted(path for path in (ROOT / "changelog.d").glob("*.md") if path.name != "README.md")
    lines = [f"- {' '.join(path.read_text(encoding='utf-8').split())}" for path in fragments]
    released = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").partition("<!-- scriv-insert-here -->")[2]
    return "# Changes\n\nWhat is new since the last release.\n\n" + "\n".join(lines) + "\n" + released


def text_of(source: str) -> str:
    """Markdown of a page that is no file of docs/."""
    if source == "changelog.d/README.md":
        return moved_links(changes(), source)
    text = (ROOT / source).read_text(encoding="utf-8")
    if source == "README.md":
        return WIDE + moved_links(text, source)
    return f"# Licence\n\n```text\n{text}```\n" if source == "LICENSE" else moved_links(text, source)


def title_of(path: Path) -> str:
    """The first heading of a page."""
    found = TITLE.search(path.read_text(encoding="utf-8"))
    return found["title"] if found else path.stem


def filled(nav: Any, docs: Path) -> Any:
    """The table of contents with the pages of each folder that it names."""
    if isinstance(nav, list):
        return [filled(entry, docs) for entry in nav]
    if isinstance(nav, dict):
        return {title: filled(entry, docs) for title, entry in nav.items()}
    if isinstance(nav, str) and nav.strip("/") in FOLDERS:
        pages = sorted((docs / nav).glob("*.md"), key=lambda page: (page.name != "index.md", page.name))
        return [{title_of(page): page.relative_to(docs).as_posix()} for page in pages]
    return nav


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Fill folders of the table of contents."""
    config.nav = filled(config.nav, Path(config.docs_dir))
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are no file of docs/; docs/index.md becomes the table of pages."""
    old = files.get_file_from_path("index.md")
    if old is not None:
        files.remove(old)
    for source, page in MOVED.items():
        files.append(File.generated(config, page, content=text_of(source)))
    return files


def on_page_markdown(markdown: str, page: Any, config: MkDocsConfig, files: Files) -> str:
    """Links of docs/*.md to pages of the site; pages that are not for users stay out of the search."""
    path = page.file.src_uri
    if path.startswith(UNSEARCHED):
        page.meta["search"] = {"exclude": True}
    if path in MOVED.values() or path.startswith("reference/"):
        return markdown
    return moved_links(markdown, f"docs/{path}")
