"""The changelog of a release has every sentence of changelog.d."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_changelog_collects_every_fragment(tmp_path: Path) -> None:
    pytest.importorskip("scriv", reason="needs the group: pip install --group dev")
    for name in ("pyproject.toml", "CHANGELOG.md", "src/subgrove/_version.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    shutil.copytree(ROOT / "changelog.d", tmp_path / "changelog.d")
    fragments = [path for path in (ROOT / "changelog.d").glob("*.md") if path.name != "README.md"]
    if not fragments:
        pytest.skip("everything is released")
    sentences = [path.read_text(encoding="utf-8").strip() for path in fragments]
    collect = [sys.executable, "-m", "scriv", "collect", "--version", "999.0"]
    subprocess.run(collect, cwd=tmp_path, check=True, capture_output=True)
    collected = (tmp_path / "CHANGELOG.md").read_text(encoding="utf-8")
    assert "## 999.0" in collected
    assert [sentence for sentence in sentences if sentence not in collected] == []
    assert [path.name for path in (tmp_path / "changelog.d").glob("*.md")] == ["README.md"]
