"""Files are written whole or not at all, and nothing else is lost."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import pytest

from subgrove._core.files import write_files, write_text


def test_the_file_behind_a_link_is_written_and_the_link_stays(tmp_path: Path) -> None:
    place, link = tmp_path / "page.html", tmp_path / "link.html"
    place.write_text("old")
    link.symlink_to(place)
    write_text(link, "new")
    assert link.is_symlink()
    assert place.read_text() == "new"


def test_a_pipe_is_written_to_and_not_replaced_by_a_file(tmp_path: Path) -> None:
    pipe, received = tmp_path / "pipe.html", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: received.append(pipe.read_text()))
    reader.start()
    write_text(pipe, "text")
    reader.join(timeout=10)
    assert received == ["text"]
    assert pipe.is_fifo()


def test_a_name_may_be_as_long_as_the_file_system_allows(tmp_path: Path) -> None:
    path = tmp_path / f"{'n' * 250}.html"
    write_text(path, "text")
    assert [one.name for one in tmp_path.iterdir()] == [path.name]


def test_a_full_disk_leaves_no_file_and_names_the_one_that_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = tmp_path / "a.json", tmp_path / "b.html"
    first.write_bytes(b"old")
    opened = Path.open

    def full(self: Path, *mode: Any, **options: Any) -> Any:
        if len(list(tmp_path.iterdir())) == 2:  # the old file and the first temporary one
            raise OSError(28, "No space left on device")
        return opened(self, *mode, **options)

    monkeypatch.setattr(Path, "open", full)
    with pytest.raises(OSError, match=r"No space left on device: .*b\.html"):
        write_files({first: b"new", second: b"new"})
    monkeypatch.undo()
    assert [(one.name, one.read_bytes()) for one in tmp_path.iterdir()] == [("a.json", b"old")]
