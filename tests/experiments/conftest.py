"""What several tests of experiments need."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments import data


@pytest.fixture
def without_data(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No folder of data sets, as on a machine of a user."""
    monkeypatch.setenv(data.FOLDER_VARIABLE, str(tmp_path / "nowhere"))
