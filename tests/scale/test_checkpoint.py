"""A checkpoint keeps what is done: whole, for the same run only, and read without pickle."""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from subgrove._scale.engines import run_chunks
from subgrove._scale.engines.checkpoint import OF
from subgrove.exceptions import ChunkError, FormatError, ParameterError, SubgroveWarning
from tests.scale.chunks import Add, chunks


def run(tmp_path: Path, **options: Any) -> list[tuple[int, Any]]:
    options = {"mark": "seed 1\nmodel abc", "checkpoint": tmp_path / "kept", **options}
    work = options.pop("work", Add(tmp_path / "log"))
    return list(run_chunks(work, options.pop("chunks", chunks()), **options))


def test_run_that_failed_goes_on_where_it_was(tmp_path: Path) -> None:
    bad = Add(tmp_path / "log", "raise", at=15)
    with pytest.raises(ChunkError, match=r"5 of 10 chunks are kept in '.*kept'"):
        run(tmp_path, work=bad, retries=0)
    good = Add(tmp_path / "log2")
    again = run(tmp_path, work=good)
    assert [row for _, row in good.lines()] == [15, 18, 21, 24, 27]
    assert [float(sums["sum"][1]) for _, sums in again] == [
        float(sums["sum"][1]) for _, sums in run_chunks(Add(tmp_path / "log3"), chunks())
    ]


def test_finished_run_requests_for_nothing(tmp_path: Path) -> None:
    run(tmp_path)
    untouched = Add(tmp_path / "log2")
    run(tmp_path, work=untouched)
    assert untouched.lines() == []


def test_other_run_is_rejected_with_what_differs(tmp_path: Path) -> None:
    run(tmp_path)
    before = {path: path.read_bytes() for path in (tmp_path / "kept").iterdir()}
    with pytest.raises(ParameterError, match=r"holds another run: seed 1, now seed 2\. Name another folder"):
        run(tmp_path, mark="seed 2\nmodel abc")
    with pytest.raises(ParameterError, match="10 chunks, now 9"):
        run(tmp_path, chunks=chunks(9))
    assert {path: path.read_bytes() for path in (tmp_path / "kept").iterdir()} == before


FORGED: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "other numbers": lambda sums: {**sums, "sum": sums["sum"] + 1},
    "other types": lambda sums: {**sums, "sum": sums["sum"].astype(np.complex128)},
    "other shapes": lambda sums: {**sums, "sum": sums["sum"][None]},
    "fewer arrays": lambda sums: {OF: sums[OF]},
    "more arrays": lambda sums: {**sums, "more": np.zeros(2)},
    "texts": lambda sums: {**sums, "sum": sums["sum"].astype(str)},
}


@pytest.mark.parametrize("damage", [*FORGED, "cut", "other run", "other chunk", "empty", "pickle", "huge"])
def test_damaged_chunk_is_done_again_with_a_warning(damage: str, tmp_path: Path) -> None:
    expected = run(tmp_path)
    file = tmp_path / "kept" / "chunk-000003.npz"
    if damage == "cut":
        file.write_bytes(file.read_bytes()[:-30])
    elif damage == "empty":
        file.write_bytes(b"")
    elif damage == "other chunk":
        file.write_bytes((tmp_path / "kept" / "chunk-000004.npz").read_bytes())
    elif damage == "huge":
        header = io.BytesIO()
        np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (1 << 58,)})
        with zipfile.ZipFile(file, "w") as packed:
            packed.writestr("sum.npy", header.getvalue())
    elif damage in FORGED:
        with np.load(file) as saved:
            forged = FORGED[damage]({name: saved[name] for name in saved.files})
        np.savez(file, **forged)
    elif damage == "pickle":
        np.savez(file, n=np.array([object()]), allow_pickle=True)
    else:
        np.savez(file, n=np.array(3), of_run=np.array("another"))
    work = Add(tmp_path / "log2")
    with pytest.warns(SubgroveWarning, match=r"chunk-000003.npz cannot be used .*; its chunk is done again"):
        again = run(tmp_path, work=work)
    assert [row for _, row in work.lines()] == [9]
    assert all(np.array_equal(a["sum"], b["sum"]) for (_, a), (_, b) in zip(expected, again, strict=True))
    run(tmp_path)  # repaired: no warning


def test_folder_with_other_files_is_rejected_and_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(ParameterError, match=r"no checkpoint and is not empty: it holds 'thesis.txt'"):
        run(tmp_path, checkpoint=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_file_in_place_of_the_folder_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("")
    with pytest.raises(ParameterError, match="cannot be made a folder"):
        run(tmp_path)


@pytest.mark.parametrize("chunks_of_run", [5, None, {}, "x"])
def test_a_forged_list_of_chunks_is_another_run(chunks_of_run: Any, tmp_path: Path) -> None:
    run(tmp_path)
    file = tmp_path / "kept" / "run.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "chunks": chunks_of_run}))
    with pytest.raises(ParameterError, match="holds another run: no chunks, now 10"):
        run(tmp_path)


@pytest.mark.parametrize("text", ["{", '{"format": 99}', "[]"])
def test_folder_of_another_format_is_rejected(text: str, tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "run.json").write_text(text)
    with pytest.raises(FormatError, match="Name another checkpoint folder"):
        run(tmp_path)


def test_two_runs_in_one_folder_do_no_harm(tmp_path: Path) -> None:
    one, two = (
        run_chunks(Add(tmp_path / f"log{k}"), chunks(), checkpoint=tmp_path / "kept", mark="seed 1") for k in (1, 2)
    )
    both = list(zip(one, two, strict=True))
    assert all(np.array_equal(a["sum"], b["sum"]) for (_, a), (_, b) in both)
    assert len(list((tmp_path / "kept").iterdir())) == 11


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_folder_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    run(tmp_path, chunks=chunks(1))
    (tmp_path / "kept" / "chunk-000000.npz").unlink()
    (tmp_path / "kept").chmod(0o500)
    try:
        with pytest.raises(ParameterError, match="cannot be written"):
            run(tmp_path, chunks=chunks(1))
    finally:
        (tmp_path / "kept").chmod(0o700)


def test_run_file_says_what_the_run_is(tmp_path: Path) -> None:
    run(tmp_path, what="Importance")
    saved = json.loads((tmp_path / "kept" / "run.json").read_text())
    assert saved["what"] == "Importance"
    assert saved["mark"].splitlines() == ["seed 1", "model abc"]
    assert saved["chunks"][1] == ["rows 3 to 5", 3, 3]
