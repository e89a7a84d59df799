"""Files: the same values written in another way give the same numbers; damaged ones give numbers or a clear error."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.cli.commands import invoke

from .outcome import bounded

RNG = np.random.default_rng(3)
FRAME = pd.DataFrame({"a": RNG.normal(size=50).round(3), "b": RNG.integers(0, 5, 50), "k": RNG.choice(["u", "v"], 50)})
FRAME["a"] += FRAME["b"]
TEXT = FRAME.to_csv(index=False)


def described(path: Path) -> Any:
    """Return the subgroups of a file, as the command writes them; None if it says what is wrong with the file."""
    out = path.with_name("out.json")
    with bounded():
        result = invoke("subgroups", path, "--json", out)
    assert result.exit_code in (0, 2), result.output
    assert "Traceback" not in result.output
    written = {one.name for one in path.parent.iterdir()} - {path.name}
    assert written == ({out.name} if result.exit_code == 0 else set())
    if result.exit_code:
        assert "Error: " in result.stderr
        return None
    return json.loads(out.read_text(encoding="utf-8"))


def rules(values: Any) -> str:
    """Return what was found, without the name of the file."""
    return json.dumps(
        {name: value for name, value in values.items() if name not in ("source", "data", "file", "versions")}
    )


SAME: dict[str, Callable[[], bytes]] = {
    "line ends of Windows": lambda: TEXT.replace("\n", "\r\n").encode(),
    "byte order mark": lambda: b"\xef\xbb\xbf" + TEXT.encode(),
    "no last line end": lambda: TEXT.rstrip("\n").encode(),
    "quoted": lambda: FRAME.to_csv(index=False, quoting=1).encode(),
    "semicolons": lambda: FRAME.to_csv(index=False, sep=";").encode(),
    "tabs": lambda: FRAME.to_csv(index=False, sep="\t").encode(),
    "UTF-16": lambda: TEXT.encode("utf-16"),
}


@pytest.mark.parametrize("form", SAME)
def test_the_same_values_written_in_another_way_give_the_same_subgroups(form: str, tmp_path: Path) -> None:
    for name, content in (("one", TEXT.encode()), ("two", SAME[form]())):
        (tmp_path / name).mkdir()
        (tmp_path / name / "rows.csv").write_bytes(content)
    one, two = (described(tmp_path / name / "rows.csv") for name in ("one", "two"))
    assert rules(two) == rules(one)


def damaged(content: bytes, seed: int) -> bytes:
    """Return the bytes with one kind of damage: cut, overwritten, repeated, or moved."""
    rng = np.random.default_rng(seed)
    at, other = sorted(rng.integers(1, len(content), 2).tolist())
    noise = rng.bytes(int(rng.integers(1, 40)))
    return (
        content[:at],
        content[:at] + noise + content[at:],
        content[:at] + noise + content[at + len(noise) :],
        content[:at] + content[other:],
        content[:other] + content[at:],
        content[:at] + b"\x00" * 9 + content[at:],
        content[:at] + b'"' + content[at:],
        content[:at] + b"\r" * 3 + content[at:],
        content[other:] + content[:other],
        content[:at] + b"," * 60 + content[at:],
    )[seed % 10]


@pytest.mark.parametrize("seed", range(40))
def test_damaged_text_gives_numbers_or_a_clear_error(seed: int, tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_bytes(damaged(TEXT.encode(), seed))
    described(path)


@pytest.mark.parametrize("seed", range(20))
def test_damaged_gzip_gives_a_clear_error(seed: int, tmp_path: Path) -> None:
    path = tmp_path / "rows.csv.gz"
    path.write_bytes(damaged(gzip.compress(TEXT.encode(), mtime=0), seed))
    described(path)


@pytest.mark.parametrize("seed", range(30))
def test_damaged_parquet_gives_numbers_or_a_clear_error(seed: int, tmp_path: Path) -> None:
    whole, path = tmp_path / "whole.parquet", tmp_path / "rows.parquet"
    FRAME.to_parquet(whole)
    content = whole.read_bytes()
    whole.unlink()
    path.write_bytes(damaged(content, seed))
    described(path)
