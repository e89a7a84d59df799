"""Write what examples print into documentation pages and docstrings: `python -m tools.update_examples [FILE ...]`.

Without files, all Markdown pages and all modules of the package. Only outputs that differ are replaced; read the diff.
"""

from __future__ import annotations

import doctest
import io
import os
import re
import sys
import tempfile
import warnings
from contextlib import redirect_stderr
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
FENCE = re.compile(r"^(?P<indent> *)```python\n(?P<code>.*?)^(?P=indent)```$", re.MULTILINE | re.DOTALL)


class _Recorder(doctest.DocTestRunner):
    """Runs all examples and keeps what those print whose output differs."""

    def __init__(self) -> None:
        super().__init__(optionflags=doctest.ELLIPSIS)
        self.found: dict[int, str] = {}

    def report_failure(self, out: Any, test: doctest.DocTest, example: doctest.Example, got: str) -> None:
        self.found[example.lineno] = got

    def report_unexpected_exception(self, out: Any, test: Any, example: Any, exc_info: Any) -> None:
        print(f"{test.name}, line {example.lineno}: {exc_info[1]!r}", file=sys.stderr)


def updated(code: str, namespace: dict[str, Any], name: str) -> str:
    """Return a session with the outputs that it has now."""
    test = doctest.DocTestParser().get_doctest(code, namespace, name, name, 0)
    runner = _Recorder()
    with redirect_stderr(io.StringIO()):
        runner.run(test, out=lambda text: None, clear_globs=False)
    namespace.update(test.globs)
    lines = code.splitlines(keepends=True)
    for example in reversed(test.examples):
        if example.lineno not in runner.found:
            continue
        start = example.lineno + example.source.count("\n")
        indent = " " * example.indent
        got = [f"{indent}{line}\n" if line else "<BLANKLINE>\n" for line in runner.found[example.lineno].splitlines()]
        lines[start : start + example.want.count("\n")] = got
    return "".join(lines)


def update_page(path: Path) -> None:
    """Update the sessions of a Markdown page, which share one namespace."""
    text, namespace = path.read_text(encoding="utf-8"), {"__name__": "__main__"}

    def replaced(fence: re.Match[str]) -> str:
        indent, code = fence["indent"], fence["code"]
        plain = "".join(line[len(indent) :] for line in code.splitlines(keepends=True))
        if ">>>" not in plain:
            exec(compile(plain, str(path), "exec"), namespace)
            return fence[0]
        lines = updated(plain, namespace, path.name).splitlines(keepends=True)
        return f"{indent}```python\n" + "".join(indent + line for line in lines) + f"{indent}```"

    path.write_text(FENCE.sub(replaced, text), encoding="utf-8")


def update_module(path: Path) -> None:
    """Update the sessions in the docstrings of a module, each in a namespace of its own."""
    text = path.read_text(encoding="utf-8")

    def replaced(docstring: re.Match[str]) -> str:
        if ">>>" not in docstring[1]:
            return docstring[0]
        return f'"""{updated(docstring[1], {"__name__": "__main__"}, path.name)}"""'

    path.write_text(re.sub(r'"""((?:[^"]|"(?!""))*)"""', replaced, text), encoding="utf-8")


def main() -> None:
    """Update the files that are named, or all."""
    import matplotlib as mpl
    from threadpoolctl import threadpool_limits

    mpl.use("agg")
    warnings.simplefilter("ignore")
    paths = [Path(name).resolve() for name in sys.argv[1:]]
    if not paths:
        gallery = ROOT / "docs" / "gallery"
        paths = [ROOT / "README.md", *(page for page in sorted(ROOT.glob("docs/**/*.md")) if page.parent != gallery)]
        paths += sorted((ROOT / "src").rglob("*.py"))
    with tempfile.TemporaryDirectory() as folder, threadpool_limits(1):
        os.chdir(folder)
        for path in paths:
            (update_page if path.suffix == ".md" else update_module)(path)


if __name__ == "__main__":
    main()
