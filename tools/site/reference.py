"""The API reference: a page for each part, with every public name, from the docstrings.

Names are those of `__all__`, so that no public name can be missing. What stands at the top of the package is divided by
the part it comes from: `sg.importance` is on the page of importance.
"""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

import subgrove

ROOT = Path(__file__).resolve().parents[2]
PARTS = {
    "_subgroups": "Subgroups",
    "_importance": "Importance",
    "_effects": "Effects",
    "_dependence": "Dependence",
    "_fidelity": "Data fidelity",
    "_model_fidelity": "Model fidelity",
    "_report": "Report",
}
NAME = re.compile(r"^(?P<before>\| |#+ )`sg\.(?P<name>[\w.]+)`", re.MULTILINE)


def modules() -> list[str]:
    """Names of the public modules."""
    return [name for name in subgrove.__all__ if isinstance(getattr(subgrove, name), ModuleType)]


def names_of_parts() -> dict[str, list[str]]:
    """Part -> the names at the top of the package that come from it."""
    found: dict[str, list[str]] = {part: [] for part in PARTS}
    for name in subgrove.__all__:
        value = getattr(subgrove, name)
        if not isinstance(value, ModuleType | str):
            found.setdefault(value.__module__.split(".")[1], []).append(f"subgrove.{name}")
    return {part: in_order(names) for part, names in found.items() if names}


def in_order(names: list[str]) -> list[str]:
    """In the order of docs/api.md, most important first; names missing there come last, sorted."""
    listed = re.findall(r"`sg\.([\w.]+)`", (ROOT / "docs" / "api.md").read_text(encoding="utf-8"))
    place = {f"subgrove.{name}": at for at, name in reversed(list(enumerate(listed)))}
    return sorted(names, key=lambda name: (place.get(name, len(listed)), name))


def pages() -> dict[str, tuple[str, list[str]]]:
    """Page -> its title and the public names on it."""
    found = {
        f"reference/{part.strip('_')}.md": (PARTS.get(part, part.strip("_").replace("_", " ").capitalize()), names)
        for part, names in names_of_parts().items()
    }
    for module in modules():
        names = [f"subgrove.{module}.{name}" for name in import_module(f"subgrove.{module}").__all__]
        found[f"reference/sg.{module}.md"] = (f"sg.{module}", in_order(names))
    return found


def markdown(title: str, names: list[str]) -> str:
    """The text of a page: a heading, and a directive for each name."""
    module = "" if not title.startswith("sg.") else f"{import_module(title.replace('sg', 'subgrove', 1)).__doc__}\n\n"
    return f"# {title}\n\n{module}" + "\n".join(map(directive, names))


def directive(name: str) -> str:
    """The plugin's input: the object where it is defined, under the name that users write.

    A function and its file may have the same name, and the public path would lead to the file.
    """
    module, _, last = name.rpartition(".")
    value = getattr(import_module(module), last)
    home = getattr(value, "__module__", module) if callable(value) else module
    shown = name.replace("subgrove", "sg", 1)
    return f"[](){{#{name}}}\n\n::: {home}.{last}\n    options:\n      heading: {shown}\n      toc_label: {last}\n"


def filled(nav: Any) -> Any:
    """The table of contents with the pages of the reference."""
    if isinstance(nav, list):
        return [filled(entry) for entry in nav]
    if isinstance(nav, dict):
        return {title: filled(entry) for title, entry in nav.items()}
    return [{title: page} for page, (title, _) in pages().items()] if nav == "reference/" else nav


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put the pages into the table of contents."""
    config.nav = filled(config.nav)
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Make the pages."""
    for page, (title, names) in pages().items():
        files.append(File.generated(config, page, content=markdown(title, names)))
    return files


def on_page_markdown(markdown: str, page: Any, config: MkDocsConfig, files: Files) -> str:
    """On the page of public names, each leads to its entry."""
    if page.file.src_uri != "api.md":
        return markdown
    known = {name for _, names in pages().values() for name in names}

    def linked(match: re.Match[str]) -> str:
        name = f"subgrove.{match['name']}"
        shown = f"`sg.{match['name']}`"
        return f"{match['before']}[{shown}][{name}]" if name in known and match["before"] == "| " else match[0]

    return NAME.sub(linked, markdown)
