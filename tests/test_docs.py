"""The documentation holds: its examples run, its lists are complete, its links lead somewhere."""

from __future__ import annotations

import doctest
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pytest
from threadpoolctl import threadpool_limits

import subgrove as sg

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("changelog.d/*.md")])
MODULES = ["", "datasets", "exceptions", "losses", "plots", "samplers", "simulate", "trees"]

# A fence may be indented, as in a list; its end has the same indent.
FENCE = re.compile(r"^(?P<indent> *)```(?P<language>\w*)\n(?P<code>.*?)^(?P=indent)```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\((?P<target>[^)\s]+)\)")
HEADING = re.compile(r"^#+ (?P<text>.+)$", re.MULTILINE)
MACHINE = re.compile(r"/work\b|/root\b|/home/|/tmp/|\.\./shared", re.IGNORECASE)

GALLERY = ROOT / "docs" / "gallery"  # written by `tools.gallery`; its scripts are run in tests/test_examples.py
PAGES_WITH_EXAMPLES = [
    page for page in PAGES if "```python" in page.read_text(encoding="utf-8") and page.parent != GALLERY
]


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def page_text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A working directory to write to and pictures without a screen; both are tidied up.

    Workers share the cores, so models have one thread each: many threads on few cores wait for each other.
    """
    import_module("sklearn.ensemble")  # only what is loaded can be limited
    monkeypatch.chdir(tmp_path)
    mpl.use("agg")
    from matplotlib import pyplot as plt

    with threadpool_limits(1):
        yield
    plt.close("all")


def python_blocks(text: str) -> Iterator[tuple[int, str]]:
    """Line number and code of each Python block of a page."""
    for fence in FENCE.finditer(text):
        if fence["language"] == "python":
            indent = len(fence["indent"])
            code = "".join(line[indent:] for line in fence["code"].splitlines(keepends=True))
            yield text.count("\n", 0, fence.start("code")) + 1, code


def run_block(code: str, namespace: dict[str, Any], page: str, line: int) -> None:
    """Run a block in a namespace and leave what it defines there; in the form of a session, compare what it prints."""
    if ">>>" not in code:
        exec(compile("\n" * (line - 1) + code, page, "exec"), namespace)
        return
    test = doctest.DocTestParser().get_doctest(code, namespace, page, page, line - 1)
    printed: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.REPORT_NDIFF)
    if runner.run(test, out=printed.append, clear_globs=False).failed:
        pytest.fail("".join(printed), pytrace=False)
    namespace.update(test.globs)


@pytest.mark.compiled
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("page", PAGES_WITH_EXAMPLES, ids=name_of)
@pytest.mark.usefixtures("elsewhere")
def test_every_example_runs_and_prints_what_is_shown(page: Path) -> None:
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for line, code in python_blocks(page.read_text(encoding="utf-8")):
        run_block(code, namespace, name_of(page), line)


@pytest.mark.parametrize("page", PAGES_WITH_EXAMPLES, ids=name_of)
def test_no_python_block_is_overlooked(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert len(list(python_blocks(text))) == text.count("```python")


def test_the_pages_a_reader_needs_exist() -> None:
    in_docs = {"index", "installation", "quickstart", "guide", "command", "report", "faq", "glossary", "why", "api"}
    in_docs |= {"how_it_works", "gallery/index"}
    needed = {"README.md", "CONTRIBUTING.md", *(f"docs/{name}.md" for name in in_docs)}
    assert needed <= {name_of(page) for page in PAGES}


def public_names(module: str) -> set[str]:
    names: list[str] = import_module(f"subgrove.{module}" if module else "subgrove").__all__
    return {f"sg.{module}.{name}" if module else f"sg.{name}" for name in names}


@pytest.mark.parametrize("module", MODULES, ids=lambda module: f"sg.{module}" if module else "sg")
def test_every_public_name_is_on_the_api_page(module: str) -> None:
    listed = set(re.findall(r"`(sg\.[\w.]+)`", page_text("docs/api.md")))
    assert public_names(module) <= listed


def test_every_name_on_the_api_page_is_public() -> None:
    listed = set(re.findall(r"`(sg\.[\w.]+)`", page_text("docs/api.md")))
    assert listed <= set().union(*(public_names(module) for module in MODULES))


def test_every_member_on_the_api_page_exists() -> None:
    sections = re.split(r"^### `sg\.(\w+)\.(\w+)`$", page_text("docs/api.md"), flags=re.MULTILINE)[1:]
    for module, name, section in zip(sections[::3], sections[1::3], sections[2::3], strict=True):
        kind = getattr(import_module(f"subgrove.{module}"), name)
        members = {*dir(kind), *getattr(kind, "__dataclass_fields__", ())}
        rows = re.findall(r"^\| `(\w+)", section.split("\n## ")[0], flags=re.MULTILINE)
        assert rows
        assert set(rows) <= members, name


def test_every_exception_has_an_entry_that_says_what_to_do() -> None:
    entries = re.findall(r"^### `(\w+)`$(.*?)(?=^##|\Z)", page_text("docs/errors.md"), re.MULTILINE | re.DOTALL)
    assert {name for name, _ in entries} == set(sg.exceptions.__all__)
    assert [name for name, entry in entries if "What to do:" not in entry] == []


def anchors(text: str) -> set[str]:
    """Anchors of the headings of a page, as GitHub makes them."""
    headings = (heading["text"].lower() for heading in HEADING.finditer(FENCE.sub("", text)))
    return {re.sub(r"[^\w\- ]", "", heading).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_relative_link_leads_to_a_file_and_heading(page: Path) -> None:
    broken = []
    for link in LINK.finditer(FENCE.sub("", page.read_text(encoding="utf-8"))):
        if re.match(r"[a-z]+:", link["target"]):
            continue
        path, _, anchor = link["target"].partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors(target.read_text(encoding="utf-8"))):
            broken.append(link["target"])
    assert broken == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_no_page_names_a_place_on_one_machine(page: Path) -> None:
    assert MACHINE.findall(page.read_text(encoding="utf-8")) == []


def test_every_page_is_linked_from_the_table_of_pages() -> None:
    index = page_text("docs/index.md")
    for folder in ("decisions", "gallery"):
        index += page_text(f"docs/{folder}/index.md").replace("](", f"]({folder}/")
    pages = {page.relative_to(ROOT / "docs").as_posix() for page in PAGES if page.is_relative_to(ROOT / "docs")}
    assert [page for page in sorted(pages - {"index.md"}) if f"]({page})" not in index] == []


SOURCE_FILE = re.compile(r"`((?:_?[a-z]\w*/)+(?:\w+\.(?:py|c|h))?)`")


@pytest.mark.parametrize("name", ["CONTRIBUTING.md", "docs/how_it_works.md", "docs/life_of_a_call.md"])
def test_every_file_of_the_source_that_a_page_names_exists(name: str) -> None:
    places = SOURCE_FILE.findall(page_text(name))
    assert places
    roots = (ROOT, ROOT / "src" / "subgrove", ROOT / "src", ROOT / "tests")
    assert [place for place in places if not any((root / place).exists() for root in roots)] == []


SEARCHED = [
    *["XGBoost", "CatBoost", "Keras", "statsmodels", "accuracy", "multiclass", "time series", "explain one prediction"],
    *["save a figure", "export", "glossary", "cite", "SHAP", "Parquet", "Excel", "cluster", "GPU"],
]


@pytest.mark.parametrize("words", SEARCHED)
def test_words_that_readers_search_for_are_on_a_page_for_users(words: str) -> None:
    pages = [page for page in (ROOT / "docs").glob("*.md") if page.stem not in ("index", "benchmarks", "reproduction")]
    assert any(words.lower() in page.read_text(encoding="utf-8").lower() for page in pages)
