"""What is read is what is in the file: encodings, delimiters, kinds of columns, and parts of large files."""

from __future__ import annotations

import gzip
import tracemalloc
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from subgrove._cli.inference import OTHER
from subgrove._cli.reading import Data, Request, read_data, read_like
from subgrove.exceptions import InputError


def read(tmp_path: Path, content: str | bytes, name: str = "data.csv", **wishes: Any) -> Data:
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_data(Request(path, **wishes))


def column(tmp_path: Path, cells: list[str], **wishes: Any) -> tuple[Any, Any]:
    """How a column of such cells is read, and what is told of it."""
    text = "x,i\n" + "".join(f'"{cell}",{at % 3}\n' for at, cell in enumerate(cells))
    data = read(tmp_path, text, **wishes)
    return data.frame.get("x"), data.columns[0]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "cp1252"])
def test_text_is_the_same_in_any_encoding(tmp_path: Path, encoding: str) -> None:
    text = "stadt,größe\n" + "München,1\nKöln,2\n“Ulm”,3\n" * 10
    data = read(tmp_path, text.encode(encoding))
    assert list(data.frame.columns) == ["stadt", "größe"]
    assert data.frame["stadt"].tolist()[:3] == ["München", "Köln", "“Ulm”"]
    assert bool(data.notes) == (encoding in {"utf-16", "utf-16-le", "utf-16-be", "utf-32", "cp1252"})


@pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
def test_the_delimiter_is_found_beside_others_in_text(tmp_path: Path, mark: str) -> None:
    rows = "".join(f'{i}{mark}"a, b; c | d\t{i % 2}"{mark}{i * 2}\n' for i in range(30))
    data = read(tmp_path, f"n{mark}text{mark}m\n{rows}", only=("n", "text", "m"))
    assert list(data.frame.columns) == ["n", "text", "m"]
    assert data.frame["text"].nunique() == 2


def test_decimal_commas_are_numbers_where_cells_are_separated_otherwise(tmp_path: Path) -> None:
    data = read(tmp_path, "a;b\n" + "1,5;2\n2,25;3\n" * 10)
    assert data.frame["a"].tolist()[:2] == [1.5, 2.25]
    assert data.columns[0].note == "decimal commas"


def test_a_quoted_cell_may_hold_line_ends(tmp_path: Path) -> None:
    data = read(tmp_path, 'a,b\r\n"one\r\ntwo",1\r\nthree,2\r\n' + "three,1\r\n" * 20)
    assert data.frame["a"].iloc[0] == "one\r\ntwo"
    assert len(data.frame) == 22


@pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
def test_line_ends_in_a_later_cell_do_not_keep_the_delimiter_from_being_found(tmp_path: Path, mark: str) -> None:
    rows = "".join(f'{i}{mark}"one\ntwo, {i % 2}"{mark}{i * 2}\n' for i in range(30))
    data = read(tmp_path, f'n{mark}"a\nname"{mark}m\n{rows}', only=("n", "a\nname", "m"))
    assert list(data.frame.columns) == ["n", "a\nname", "m"]
    assert len(data.frame) == 30


def test_bytes_that_windows_has_no_character_for_are_kept_apart_and_can_be_written(tmp_path: Path) -> None:
    data = read(tmp_path, b"a,b\x81\n" + b"1,\xe9\x81\n2,\xe9\x8d\n" * 10)
    assert list(data.frame.columns) == ["a", "b\x81"]
    assert data.frame["b\x81"].tolist()[:2] == ["\xe9\x81", "\xe9\x8d"]
    assert "".join(data.frame["b\x81"]).encode()


def test_a_packed_file_is_read(tmp_path: Path) -> None:
    data = read(tmp_path, gzip.compress(b"a,b\n" + b"1,2\n3,4\n" * 10), "data.csv.gz")
    assert data.frame["a"].tolist()[:2] == [1, 3]


def test_a_path_with_spaces_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "my data, 2024"
    folder.mkdir()
    assert len(read(folder, "a,b\n" + "1,2\n3,4\n" * 10, "the file (1).csv").frame) == 20


@pytest.mark.parametrize(
    ("cells", "first"),
    [
        (["2024-01-31", "2024-02-01"], "2024-01-31"),
        (["2024-01-31T10:00:00Z", "2024-02-01T10:00:00+02:00"], "2024-01-31 10:00"),
        (["2024-01-31 10:00", "2024-02-01 23:59"], "2024-01-31 10:00"),
        (["2024/1/31", "2024/2/1"], "2024-01-31"),
        (["31.1.2024", "1.2.2024"], "2024-01-31"),
        (["31/01/2024", "01/02/2024"], "2024-01-31"),
        (["01/31/2024", "02/01/2024"], "2024-01-31"),
        (["01/31/2024 08:30", "02/01/2024 08:30"], "2024-01-31 08:30"),
        (["31 Jan 2024", "01-Feb-2024"], "2024-01-31"),
    ],
)
def test_dates_are_recognised(tmp_path: Path, cells: list[str], first: str) -> None:
    values, told = column(tmp_path, cells * 10)
    assert told.kind == "date"
    assert values.iloc[0] == pd.Timestamp(first)
    assert values.iloc[1] > values.iloc[0]


def test_dates_that_fit_both_orders_are_read_as_the_user_says(tmp_path: Path) -> None:
    month, told = column(tmp_path, ["3/4/2024", "5/6/2024"] * 10)
    day, _ = column(tmp_path, ["3/4/2024", "5/6/2024"] * 10, day_first=True)
    assert (month.iloc[0], day.iloc[0]) == (pd.Timestamp("2024-03-04"), pd.Timestamp("2024-04-03"))
    assert "--day-first" in told.note


def test_a_text_that_is_nearly_a_date_is_a_level(tmp_path: Path) -> None:
    _, told = column(tmp_path, ["2024-01-31", "2024-02-30"] * 10)
    assert told.kind == "nominal"


def test_whole_numbers_stay_whole_and_missing_ones_are_missing(tmp_path: Path) -> None:
    whole, _ = column(tmp_path, ["1", "2", "7"] * 10)
    gaps, told = column(tmp_path, ["1", "NA", "7"] * 10)
    assert whole.dtype == np.int64
    assert gaps.dtype == np.float64
    assert told.n_missing == 10


def test_own_words_for_missing(tmp_path: Path) -> None:
    values, told = column(tmp_path, ["1", "-", "7", "none"] * 10, missing=("-", "none"))
    assert told.kind == "numeric"
    assert values.isna().sum() == 20


def test_the_word_none_is_a_level(tmp_path: Path) -> None:
    values, told = column(tmp_path, ["none", "bank"] * 10)
    assert told.n_missing == 0
    assert set(values) == {"none", "bank"}


def test_infinite_numbers_are_missing_and_told(tmp_path: Path) -> None:
    values, told = column(tmp_path, ["1.5", "inf", "-inf", "2"] * 10)
    assert values.isna().sum() == 20
    assert "20 infinite values" in told.note


def test_codes_with_leading_zeros_are_levels(tmp_path: Path) -> None:
    values, told = column(tmp_path, ["01067", "80331"] * 10)
    assert told.kind == "nominal"
    assert values.iloc[0] == "01067"


def test_numbers_are_levels_where_the_user_says_so(tmp_path: Path) -> None:
    values, told = column(tmp_path, ["10", "9", "2"] * 10, nominal=("x",))
    assert told.kind == "nominal"
    assert list(values.cat.categories) == ["2", "9", "10"]


def test_names_are_left_out_and_told(tmp_path: Path) -> None:
    text = "name,a,b\n" + "".join(f"person {i},{i % 4},{i % 3}\n" for i in range(40))
    data = read(tmp_path, text)
    assert list(data.frame.columns) == ["a", "b"]
    assert "40 distinct values" in data.columns[0].left_out


def test_row_numbers_are_left_out_unless_they_are_asked_for(tmp_path: Path) -> None:
    text = "id,a,b\n" + "".join(f"{i + 100},{i % 4},{i % 3}\n" for i in range(40))
    assert read(tmp_path, text).columns[0].left_out == "the number of the row"
    assert list(read(tmp_path, text, only=("id", "a")).frame.columns) == ["id", "a"]


def test_rows_drawn_from_a_file_keep_its_row_numbers(tmp_path: Path) -> None:
    text = "id,a,b\n" + "".join(f"{i},{i % 4},{i % 3}\n" for i in range(400))
    assert read(tmp_path, text, most=50).columns[0].left_out == "the number of the row"


def test_constant_and_empty_columns_are_left_out_and_told(tmp_path: Path) -> None:
    data = read(tmp_path, "same,none,a,b\n" + "".join(f"7,,{i % 4},{i % 3}\n" for i in range(40)))
    assert {one.name: one.left_out for one in data.columns if one.left_out} == {
        "same": "the same value in all rows",
        "none": "no value in any row",
    }


def test_rare_levels_become_one_and_others_stay(tmp_path: Path) -> None:
    cells = [f"often {i % 90}" for i in range(900)] + [f"rare {i % 40}" for i in range(80)]
    values, told = column(tmp_path, cells)
    assert len(values.cat.categories) == 100
    assert OTHER in told.note
    assert (values == OTHER).sum() == sum(Counter(cells)[cell] for cell in set(cells) - set(values))


def test_a_model_that_is_given_gets_all_columns_and_levels(tmp_path: Path) -> None:
    text = "name,same\n" + "".join(f"person {i},1\n" for i in range(140))
    data = read(tmp_path, text, known_model=True)
    assert data.frame["name"].nunique() == 140
    assert list(data.frame.columns) == ["name", "same"]


def test_columns_can_be_named_one_by_one_or_with_commas(tmp_path: Path) -> None:
    text = 'a,"b,c",d\n' + "".join(f"{i % 4},{i % 3},{i % 5}\n" for i in range(40))
    assert list(read(tmp_path, text, only=("a", "b,c")).frame.columns) == ["a", "b,c"]
    assert list(read(tmp_path, text, only=("a, d",)).frame.columns) == ["a", "d"]


def numbered(n: int) -> str:
    return "i,x\n" + "".join(f"{i},{(i * 7) % 13}\n" for i in range(n))


def test_the_same_seed_draws_the_same_rows_and_another_seed_others(tmp_path: Path) -> None:
    rows = [
        read(tmp_path, numbered(2000), most=100, random_state=seed, only=("i", "x")).frame["i"].tolist()
        for seed in (1, 1, 2)
    ]
    assert rows[0] == rows[1] != rows[2]
    assert len(set(rows[0])) == 100
    assert rows[0] == sorted(rows[0])


def test_every_row_is_as_likely_to_be_drawn(tmp_path: Path) -> None:
    """20 of 100 rows, 400 times: each row 80 times on average, with standard deviation 8; 4.5 of them are allowed."""
    path = tmp_path / "data.csv"
    path.write_text(numbered(100))
    drawn: Counter[int] = Counter()
    for seed in range(400):
        drawn.update(read_data(Request(path, most=20, seed=seed, only=("i", "x"))).frame["i"].tolist())
    assert len(drawn) == 100
    assert max(abs(times - 80) for times in drawn.values()) < 36


def test_all_rows_are_read_if_there_are_no_more(tmp_path: Path) -> None:
    data = read(tmp_path, numbered(100), most=100, only=("i", "x"))
    assert (len(data.frame), data.total, data.notes) == (100, 100, ())


def test_what_is_drawn_is_told(tmp_path: Path) -> None:
    data = read(tmp_path, numbered(3000), most=1000, only=("i", "x"))
    assert data.total == 3000
    assert "1,000 of 3,000 rows" in data.notes[0]


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    """Of 9 MB of text 100 rows are kept: some blocks of 1 MB are looked at, and no more is ever held."""
    path = tmp_path / "data.csv"
    path.write_text("a,b,c\n" + "some text,1234567890,0.123456789\n" * 270_000)
    request = Request(path, most=100, only=("a", "b", "c"))
    read_data(replace(request, path=_small(tmp_path)))  # imports are not counted
    tracemalloc.start()
    read_data(request)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert path.stat().st_size > 8e6
    assert peak < 4e6


def _small(tmp_path: Path) -> Path:
    small = tmp_path / "small.csv"
    small.write_text("a,b,c\n" + "x,1,2\n" * 10)
    return small


@pytest.fixture
def typed_file(tmp_path: Path) -> Path:
    n = 60
    frame = pl.DataFrame(
        {
            "whole": [i % 7 for i in range(n)],
            "gaps": [None if i % 5 == 0 else i / 2 for i in range(n)],
            "flag": [None if i % 9 == 0 else i % 2 == 0 for i in range(n)],
            "day": pl.Series([f"2024-01-{i % 28 + 1:02}" for i in range(n)]).str.to_date(),
            "moment": pl.Series([f"2024-01-01 {i % 24:02}:30" for i in range(n)]).str.to_datetime(),
            "wait": pl.Series([i * 1_000_000 for i in range(n)]).cast(pl.Duration("us")),
            "level": pl.Series(["b", "a", "c"] * 20, dtype=pl.Categorical),
            "digits": [str(i % 3) for i in range(n)],
            "junk": [b"\0\1"] * n,
        }
    )
    path = tmp_path / "typed.parquet"
    frame.write_parquet(path)
    return path


@pytest.mark.parametrize("engine", ["pyarrow", "polars"])
def test_parquet_keeps_declared_types_whoever_reads_it(
    typed_file: Path, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from subgrove._cli import parquet

    monkeypatch.setattr(parquet, "find_spec", lambda name: name == engine or None)
    data = read_data(Request(typed_file))
    kinds = {one.name: one.kind for one in data.columns}
    assert kinds == {
        "whole": "numeric",
        "gaps": "numeric",
        "flag": "nominal",
        "day": "date",
        "moment": "date",
        "wait": "numeric",
        "level": "nominal",
        "digits": "nominal",
        "junk": "other",
    }
    assert "junk" not in data.frame
    assert data.frame["gaps"].isna().sum() == 12
    assert data.frame["flag"].isna().sum() == 7
    assert data.frame["moment"].iloc[1] == pd.Timestamp("2024-01-01 01:30")
    assert data.frame["wait"].iloc[2] == 2.0


def test_both_readers_of_parquet_draw_the_same_rows(typed_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from subgrove._cli import parquet

    frames = []
    for engine in ("pyarrow", "polars"):
        monkeypatch.setattr(parquet, "find_spec", lambda name, engine=engine: name == engine or None)
        frames.append(read_data(Request(typed_file, most=20, seed=3)).frame)
    pd.testing.assert_frame_equal(*frames)


def test_more_rows_are_read_as_the_first_ones_were(tmp_path: Path) -> None:
    first = read(tmp_path, "a,b,c\n" + "1,x,10\n2,y,20\n3,x,30\n" * 10, nominal=("a",))
    (tmp_path / "more.csv").write_text("c,b,a\n" + "5,z,1\n6,x,4\n" * 10)
    more = read_like(Request(tmp_path / "more.csv"), first)
    assert list(more.frame.columns) == ["a", "b", "c"]
    assert list(more.frame["a"].cat.categories) == ["1", "2", "3", "4"]
    assert list(more.frame["b"].cat.categories) == ["x", "y", "z"]


def test_more_rows_of_another_kind_are_refused(tmp_path: Path) -> None:
    first = read(tmp_path, "a,b\n" + "1,x\n2,y\n" * 10)
    (tmp_path / "more.csv").write_text("a,b\n" + "one,x\ntwo,y\n" * 10)
    with pytest.raises(InputError, match="no number"):
        read_like(Request(tmp_path / "more.csv"), first)
