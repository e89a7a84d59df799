"""Sizes and imports of the package, read from its source: `python -m tools.structure` prints them.

`tests/test_sizes.py` and `tests/test_imports.py` hold the limits; CONTRIBUTING.md shows the map that this file writes.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "subgrove"
PAGE = ROOT / "CONTRIBUTING.md"
ORDER = (
    ("_cli",),
    ("_report",),
    ("sklearn",),
    ("plots",),
    ("_importance", "_effects", "_fidelity", "_dependence"),
    ("simulate",),
    ("datasets",),
    ("_scoring",),
    ("_models",),
    ("_scale",),
    ("samplers",),
    ("_regress",),
    ("_subgroups",),
    ("trees",),
    ("_data",),
    ("_native",),
    ("_core",),
    ("losses",),
    ("exceptions",),
)
"""Parts of the package from the user's side down: a part may import the parts of later lines, and itself."""

_NOT_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def python_files(source: Path = SOURCE) -> list[Path]:
    """Return the Python files below a folder, sorted."""
    return sorted(source.rglob("*.py"))


@cache
def parsed(path: Path) -> ast.Module:
    """Return the syntax tree of a file."""
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def code_lines(path: Path) -> frozenset[int]:
    """Return the numbers of the lines that hold code: no docstrings, comments or blank lines."""
    text = path.read_text(encoding="utf-8")
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _NOT_CODE:
            lines |= set(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(parsed(path)):
        if isinstance(node, _DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            lines -= set(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    return frozenset(lines)


def functions(path: Path) -> Iterator[tuple[str, int]]:
    """Yield the name and the number of code lines of each function of a file."""
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            span = range(node.lineno, (node.end_lineno or 0) + 1)
            yield node.name, len(code_lines(path).intersection(span))


def classes(source: Path = SOURCE) -> dict[str, list[str]]:
    """Return the modules that define a class of each name."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in python_files(source):
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.ClassDef):
                found[node.name].append(module_name(path, source))
    return dict(found)


def module_name(path: Path, source: Path = SOURCE) -> str:
    """Return the dotted name of a file's module."""
    name = ".".join(path.relative_to(source.parent).with_suffix("").parts)
    return name.removesuffix(".__init__")


def imports_of(path: Path, known: Mapping[str, Path] | None = None) -> set[str]:
    """Return the modules of this package that a file imports: at the top, under TYPE_CHECKING or in a function.

    With `known`, the modules by name, `from package import module` counts as the module, not as its package.
    """
    found: set[str] = set()
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                raise ValueError(f"{path}: relative imports hide where a name comes from")
            for alias in node.names:
                module = f"{node.module}.{alias.name}"
                is_module = module in known if known is not None else node.module == SOURCE.name
                found.add(module if is_module else node.module or "")
    return {name for name in found if name.startswith(f"{SOURCE.name}.")}


def import_cycles(source: Path = SOURCE) -> list[list[str]]:
    """Return the groups of modules that import each other in a circle, by Tarjan's algorithm."""
    known = {module_name(path, source): path for path in python_files(source)}
    graph = {name: sorted(imports_of(path, known) & known.keys() - {name}) for name, path in known.items()}
    index: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    cycles: list[list[str]] = []

    def visit(name: str) -> None:
        index[name] = lowest[name] = len(index)
        stack.append(name)
        for other in graph[name]:
            if other not in index:
                visit(other)
                lowest[name] = min(lowest[name], lowest[other])
            elif other in stack:
                lowest[name] = min(lowest[name], index[other])
        if lowest[name] == index[name]:
            component = [stack.pop()]
            while component[-1] != name:
                component.append(stack.pop())
            if len(component) > 1:
                cycles.append(sorted(component))

    for name in graph:
        if name not in index:
            visit(name)
    return cycles


def summary_line(folder: Path) -> str:
    """Return the first sentence of the docstring of a module or package."""
    path = folder / "__init__.py" if folder.is_dir() else folder
    return (ast.get_docstring(parsed(path)) or "").split("\n\n")[0].replace("\n", " ")


def drawn_map() -> str:
    """Return the map of CONTRIBUTING.md: each part and what it does, then the order of imports."""
    rows = []
    for part in [name for names in ORDER for name in names]:
        folder = SOURCE / part
        place = folder if folder.is_dir() else folder.with_suffix(".py")
        rows.append(f"| `{place.name}{'/' if folder.is_dir() else ''}` | {summary_line(place)} |")
    arrows = " -> ".join(names[0] if len(names) == 1 else "{" + " | ".join(names) + "}" for names in ORDER)
    table = "\n".join(["| part | what it does |", "|---|---|", *rows])
    return f"{table}\n\n```\n{_wrapped(arrows)}\n```"


def _wrapped(arrows: str, width: int = 110) -> str:
    lines = [""]
    for step in re.split(r"(?<=->) ", arrows):
        if len(lines[-1]) + len(step) > width:
            lines.append("    ")
        lines[-1] += step if not lines[-1].strip() else f" {step}"
    return "\n".join(lines)


def write_section(name: str, text: str, page: Path = PAGE) -> None:
    """Replace what stands between the marks of a section of a page."""
    start, end = f"<!-- {name}: start -->", f"<!-- {name}: end -->"
    pattern = re.compile(re.escape(start) + ".*?" + re.escape(end), re.DOTALL)
    current = page.read_text(encoding="utf-8")
    if not pattern.search(current):
        raise ValueError(f"{page.name} has no section {name!r}")
    page.write_text(pattern.sub(lambda _: f"{start}\n{text}\n{end}", current), encoding="utf-8")


def main() -> None:
    """Print the sizes per folder and the import cycles; with --write, write the map into CONTRIBUTING.md."""
    if "--write" in sys.argv[1:]:
        write_section("map", drawn_map())
    total = 0
    for part in sorted({path.relative_to(SOURCE).parts[0] for path in python_files()}):
        place = SOURCE / part
        files = python_files(place) if place.is_dir() else [place]
        lines = sum(len(code_lines(path)) for path in files)
        total += lines
        print(f"{part:16s} {len(files):4d} files {lines:6d} code lines")
    print(f"{'all':16s} {len(python_files()):4d} files {total:6d} code lines")
    print("cycles:", import_cycles() or "none")


if __name__ == "__main__":
    main()
