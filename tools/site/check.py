"""Checks a built site: `python tools/site/check.py site`.

Every link within it leads to a file and to an anchor on it, nothing is fetched from elsewhere when a page opens, and
every public name has an entry in the reference. It prints what is wrong, a line each, and then ends with 1.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, field
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path
from types import ModuleType
from urllib.parse import unquote, urlsplit

FETCHED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href", "object": "data"}
STYLE_ADDRESS = re.compile(r"(?:url\(\s*['\"]?|@import\s+['\"])(https?:|//)")


@dataclass
class Page(HTMLParser):
    """What a page links to, what it fetches, and its anchors."""

    links: list[str] = field(default_factory=list)
    fetched: list[str] = field(default_factory=list)
    anchors: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep what matters of a tag."""
        values = {name: value for name, value in attrs if value}
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        if tag in FETCHED and FETCHED[tag] in values:
            self.fetched.append(values[FETCHED[tag]])


def read(path: Path) -> Page:
    """A page, parsed."""
    page = Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page


def outside(address: str) -> bool:
    """Whether an address leads away from the site."""
    return bool(urlsplit(address).scheme or urlsplit(address).netloc) and not address.startswith("data:")


def broken_links(pages: dict[Path, Page]) -> list[str]:
    """Links and fetched files within the site that lead nowhere."""
    found = []
    for path, page in pages.items():
        for address in [*page.links, *page.fetched]:
            if outside(address) or address.startswith("data:") or (path.name == "404.html" and address.startswith("/")):
                continue
            target, _, anchor = unquote(address).partition("#")
            aim = (path.parent / target.partition("?")[0]).resolve() if target else path
            there = aim.is_file() and (not anchor or aim not in pages or anchor in pages[aim].anchors)
            if not there:
                found.append(f"{path.name}: {address} leads nowhere")
    return found


def fetched_from_elsewhere(pages: dict[Path, Page], styles: list[Path]) -> list[str]:
    """What would need a network when a page is opened."""
    found = [
        f"{path.name}: fetches {address}"
        for path, page in pages.items()
        for address in page.fetched
        if outside(address)
    ]
    return found + [
        f"{style.name}: fetches from elsewhere" for style in styles if STYLE_ADDRESS.search(style.read_text("utf-8"))
    ]


def public_names() -> set[str]:
    """Every public name, written out."""
    top = import_module("subgrove")
    found = {f"subgrove.{name}" for name in top.__all__ if not isinstance(getattr(top, name), ModuleType | str)}
    for name in top.__all__:
        module = getattr(top, name)
        if isinstance(module, ModuleType):
            found |= {f"{module.__name__}.{member}" for member in module.__all__}
    return found


def problems(site: Path) -> list[str]:
    """All that is wrong with a built site."""
    pages = {path.resolve(): read(path) for path in sorted(site.rglob("*.html"))}
    anchors = {anchor for path, page in pages.items() if path.parent.name == "reference" for anchor in page.anchors}
    return [
        *broken_links(pages),
        *fetched_from_elsewhere(pages, sorted(site.rglob("*.css"))),
        *(f"reference: {name} has no entry" for name in sorted(public_names() - anchors)),
    ]


def main(site: str) -> int:
    """Print what is wrong; the exit status."""
    pages = list(Path(site).rglob("*.html"))
    wrong = problems(Path(site)) if pages else [f"{site} has no page; build it first: make docs"]
    print(
        "\n".join(wrong) if wrong else f"{len(pages)} pages: links, anchors and public names hold, nothing is fetched."
    )
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
