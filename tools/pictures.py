"""Draw the pictures of `docs/images`: `python -m tools.pictures [NAME ...]`, all of them without names.

`report` is a screenshot of the page that `subgrove demo` writes, and needs a Chromium (`tools/browser.sh`).
`bike_dependence` and `fidelity` are those of the examples in docs/dependence.md and docs/fidelity.md. All others are
drawn by the bike application, `examples/bike.py`.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from PIL import Image

ROOT = Path(__file__).resolve().parents[1]
IMAGES = ROOT / "docs" / "images"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
WIDTH, HEIGHT = 1200, 1290  # the part of the page that the screenshot shows, in pixels of the page
COLOURS = 192
FROM_DEMO = {
    "bike_importance": "importance",
    "importance_by_depth": "importance_by_depth",
    "temperature_effect": "temperature_effect",
    "temperature_tree": "temperature_tree",
}
Picture = Callable[[Path], Any]


@cache
def _demo(folder: Path) -> Path:
    """The folder with the pictures of the bike application."""
    command = [sys.executable, str(ROOT / "examples" / "bike.py"), "--out", str(folder / "demo")]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return folder / "demo"


def _from_demo(name: str) -> Picture:
    return lambda folder: Image.open(_demo(folder) / f"{FROM_DEMO[name]}.png")


def _image(axes: Any) -> Any:
    drawn = io.BytesIO()
    axes.figure.savefig(drawn, dpi=110)
    return Image.open(drawn)


def dependence(folder: Path) -> Any:
    """Dependence of all features, as in docs/dependence.md."""
    import subgrove as sg

    train, _ = sg.datasets.bike(split=0.7, random_state=1)
    return _image(sg.plots.dependence(sg.dependence(train.X, random_state=1)))


def fidelity(folder: Path) -> Any:
    """Data fidelity of four features, as in docs/fidelity.md."""
    import subgrove as sg

    train, test = sg.datasets.bike(split=0.7, random_state=1)
    names = ["temp", "hum", "season", "wind"]
    samplers = ["subgroups", "knockoffs"]
    found = sg.fidelity(train.X, test.X, samplers=samplers, features=names, classifier=False, random_state=1)
    return _image(sg.plots.fidelity(found))


def demo_page(folder: Path) -> Path:
    """The page of `subgrove demo`, without the date, so that the same version gives the same picture."""
    import subgrove as sg

    results, page = folder / "demo.json", folder / "demo.html"
    command = [sys.executable, "-m", "subgrove._cli", "demo", "--quiet", "--out", str(page), "--json", str(results)]
    subprocess.run(command, check=True)
    values = json.loads(results.read_text(encoding="utf-8"))
    results.write_text(json.dumps(values | {"created": ""}), encoding="utf-8")
    sg.Report.load(results).save(page)
    return page


@contextmanager
def _browser_page(address: str) -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        raise SystemExit(f"None of {', '.join(BROWSERS)} is installed; tools/browser.sh installs one.")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        page.goto(address)
        yield page
        browser.close()


def report(folder: Path) -> Any:
    """The first screen of the page that `subgrove demo` writes."""
    with _browser_page(demo_page(folder).as_uri()) as page:
        return Image.open(io.BytesIO(page.screenshot()))


PICTURES: dict[str, Picture] = {name: _from_demo(name) for name in FROM_DEMO} | {
    "bike_dependence": dependence,
    "fidelity": fidelity,
    "report": report,
}


def save(picture: Any, path: Path) -> None:
    """Write a picture as PNG of few colours; the file is replaced once the new one is complete."""
    unfinished = path.with_suffix(".unfinished")
    picture.convert("RGB").quantize(COLOURS).save(unfinished, format="PNG", optimize=True)
    unfinished.replace(path)


def main() -> None:
    """Draw the pictures that are named, or all."""
    import matplotlib as mpl

    mpl.use("Agg")
    os.environ["SUBGROVE_PROGRESS"] = "0"
    names = sys.argv[1:] or list(PICTURES)
    if unknown := sorted(set(names) - set(PICTURES)):
        raise SystemExit(f"There is no picture {', '.join(unknown)}. Known: {', '.join(PICTURES)}.")
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            path = IMAGES / f"{name}.png"
            save(PICTURES[name](Path(folder)), path)
            print(f"{path.relative_to(ROOT)}: {path.stat().st_size // 1000} kB")


if __name__ == "__main__":
    main()
