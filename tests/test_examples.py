"""Examples run at small size, each has a title and a summary and draws, and gallery pages show the code that runs."""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from tools import gallery

ROOT = Path(__file__).resolve().parents[1]
SCRIPTS = sorted(path for path in (ROOT / "examples").glob("*.py") if path.stem != gallery.DEMO)
PAGES = ROOT / "docs" / "gallery"


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_script_runs_at_small_size_and_draws_a_figure(path: Path) -> None:
    """Statements of the script are assertions; warnings are errors."""
    try:
        done = gallery.run_script(path, small=True)
    except SystemExit as reason:
        pytest.skip(str(reason))
    assert sum(len(block.pictures) for block in done.blocks) >= 1
    assert any(block.printed for block in done.blocks)
    assert list(Path().iterdir()) == []


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_script_has_a_question_and_a_summary(path: Path) -> None:
    script = gallery.read_script(path)
    assert script.question.endswith("?")
    assert script.summary.endswith(".")
    assert [block.line for block in script.blocks[1:] if not block.prose and "class " not in block.code] == []
    assert 'SMALL = "--small" in sys.argv  # the size that CI runs' in path.read_text(encoding="utf-8")
    assert path.read_text(encoding="utf-8").endswith("plt.show()\n")


def test_every_script_is_in_the_gallery() -> None:
    named = [name for names in gallery.ORDER.values() for name in names]
    assert sorted(named) == [path.stem for path in SCRIPTS]


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_gallery_page_shows_the_current_script(path: Path) -> None:
    """Regenerate the pages with `make gallery` if this fails."""
    script = gallery.read_script(path)
    page = (PAGES / f"{path.stem}.md").read_text(encoding="utf-8")
    at = 0
    for part in [
        script.question,
        script.summary,
        *(text for block in script.blocks for text in (block.prose, block.code)),
    ]:
        at = page.find(part, at)
        assert at >= 0, part
    for name in gallery.IMAGE.findall(page):
        assert (PAGES / name).exists()
    assert "```text" in page
    assert f"]({path.stem}.md)" in (PAGES / "index.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_the_notebook_of_a_script_is_valid_and_holds_its_code(path: Path) -> None:
    """Write the notebooks again with `make gallery` if this fails."""
    script = gallery.read_script(path)
    text = (PAGES / "notebooks" / f"{path.stem}.ipynb").read_text(encoding="utf-8")
    assert text == gallery.notebook(script)
    cells = json.loads(text)["cells"]
    code = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    compile(code, path.name, "exec")
    assert [block.code for block in script.blocks if block.code and block.code not in code] == []
    assert len({cell["id"] for cell in cells}) == len(cells)
    assert all(len(cell["id"]) <= 64 for cell in cells)


def test_output_and_figures_of_a_block_follow_it(tmp_path: Path) -> None:
    path = tmp_path / "two.py"
    path.write_text(
        '"""Why?\n\nBecause.\n"""\n\nimport sys\n\n# %%\n# First [words](x.md). More.\n'
        "print(len(sys.argv))\n\n# %%\n# Then:\nimport matplotlib.pyplot as plt\nplt.subplots()\nplt.show()\n",
        encoding="utf-8",
    )
    done = gallery.run_script(path, small=True)
    assert gallery.page(done).split("\n\n") == [
        "# Why?",
        "Because.",
        "```python\nimport sys\n```",
        "First [words](x.md). More.",
        "```python\nprint(len(sys.argv))\n```",
        "```text\n2\n```",
        "Then:",
        "```python\nimport matplotlib.pyplot as plt\nplt.subplots()\nplt.show()\n```",
        "![Then:](images/two_1.png)",
        gallery.last_line("two") + "\n",
    ]
    gallery.write(done, tmp_path / "pages")
    gallery.write(gallery.run_script(path), tmp_path / "again")
    first, second = (tmp_path / name / "images" / "two_1.png" for name in ("pages", "again"))
    assert first.read_bytes() == second.read_bytes()
    assert (tmp_path / "pages" / "images" / "two_small.png").exists()


def test_error_in_a_block_has_the_line_of_the_script(tmp_path: Path) -> None:
    path = tmp_path / "wrong.py"
    path.write_text('"""Why?\n\nBecause.\n"""\n\n# %%\n# Words.\n\nx = 1\nassert x == 2\n', encoding="utf-8")
    with pytest.raises(AssertionError) as caught:
        gallery.run_script(path)
    assert caught.traceback[-1].lineno == 9  # counted from 0


def test_own_sampler_example_runs_as_a_program() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "own_sampler.py"), "--small"],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        env={**os.environ, "MPLBACKEND": "agg"},
    )
    assert "temp" in done.stdout


def test_demo_runs_at_small_size(tmp_path: Path) -> None:
    subprocess.run(
        [
            *(sys.executable, str(ROOT / "examples" / "bike.py"), "--out", str(tmp_path / "demo")),
            *("--trees", "10", "--repeats", "2", "--max-depth", "2"),
        ],
        capture_output=True,
        check=True,
        cwd=ROOT,
    )
    assert (tmp_path / "demo" / "application.html").stat().st_size > 10_000
    assert "rented bikes a day" in (tmp_path / "demo" / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["Nearest", "FittedNearest"])
def test_page_on_samplers_shows_the_code_of_the_example(name: str) -> None:
    source = (ROOT / "examples" / "own_sampler.py").read_text(encoding="utf-8")
    page = (ROOT / "docs" / "add_a_sampler.md").read_text(encoding="utf-8")
    start = source.index(f"class {name}")
    end = min(at for at in (source.find("\n\n\n", start), len(source)) if at > 0)
    assert source[start:end].strip() in page


def test_own_sampler_conditions_on_its_column(monkeypatch: pytest.MonkeyPatch) -> None:
    """Resampled values come from days with similar humidity."""
    import matplotlib as mpl
    import numpy as np
    from matplotlib import pyplot as plt

    import subgrove as sg

    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.setattr(sys, "argv", ["own_sampler.py", "--small"])
    mpl.use("agg")
    Nearest = runpy.run_path(str(ROOT / "examples" / "own_sampler.py"))["Nearest"]
    plt.close("all")
    X = sg.datasets.bike().X
    fitted = Nearest(by="hum").fit(X, ["hum"])
    (resampled,) = fitted.sample(X, "hum", [np.random.default_rng(1)])
    assert np.corrcoef(resampled, X["hum"])[0, 1] > 0.95
