"""Tables are read correctly: encodings, delimiters, kinds of columns, samples of large files."""

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

from subgrove._cli.columns import KnownColumns
from subgrove._cli.reading import FileTable, read_like, read_table_file
from subgrove._data.columns import OTHER
from subgrove.exceptions import InputError, ParameterError

from .conftest import options


def read(
    tmp_path: Path, content: str | bytes, name: str = "data.csv", keep_all: bool = False, **values: Any
) -> FileTable:
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_table_file(options(path, **values), KnownColumns(keep_all=keep_all))


def column(tmp_path: Path, cells: list[str], **values: Any) -> tuple[Any, Any]:
    """Return the column that these cells are read as, and its description."""
    text = "x,i\n" + "".join(f'"{cell}",{at % 3}\n' for at, cell in enumerate(cells))
    data = read(tmp_path, text, **values)
    return data.frame.get("x"), data.columns[0]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "cp1252"])
def test_text_is_the_same_in_any_encoding(tmp_path: Path, encoding: str) -> None:
    text = "stadt,größe\n" + "München,1\nKöln,2\n“Ulm”,3\n" * 10
    data = read(tmp_path, text.encode(encoding))
    assert list(data.frame.columns) == ["stadt", "größe"]
    assert data.frame["stadt"].tolist()[:3] == ["München", "Köln", "“Ulm”"]
    assert bool(data.notes) == (encoding in {"utf-16", "utf-16-le", "utf-16-be", "utf-32", "cp1252"})


@pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
def test_delimiter_is_detected_beside_others_in_text(tmp_path: Path, mark: str) -> None:
    rows = "".join(f'{i}{mark}"a, b; c | d\t{i % 2}"{mark}{i * 2}\n' for i in range(30))
    data = read(tmp_path, f"n{mark}text{mark}m\n{rows}", columns=["n", "text", "m"])
    assert list(data.frame.columns) == ["n", "text", "m"]
    assert data.frame["text"].nunique() == 2


def test_decimal_commas_are_numbers_with_other_delimiters(tmp_path: Path) -> None:
    data = read(tmp_path, "a;b\n" + "1,5;2\n2,25;3\n" * 10)
    assert data.frame["a"].tolist()[:2] == [1.5, 2.25]
    assert data.columns[0].note == "decimal commas"


def test_cells_of_any_length_are_read(tmp_path: Path) -> None:
    long = "x" * 200_000
    data = read(tmp_path, f"a,b\n{long},1\n" + "y,2\n" * 20, columns=["a", "b"])
    assert data.frame["a"].iloc[0] == long


def test_quoted_cell_may_contain_line_ends(tmp_path: Path) -> None:
    data = read(tmp_path, 'a,b\r\n"one\r\ntwo",1\r\nthree,2\r\n' + "three,1\r\n" * 20)
    assert data.frame["a"].iloc[0] == "one\r\ntwo"
    assert len(data.frame) == 22


@pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
def test_delimiter_is_detected_despite_line_ends_in_cells(tmp_path: Path, mark: str) -> None:
    rows = "".join(f'{i}{mark}"one\ntwo, {i % 2}"{mark}{i * 2}\n' for i in range(30))
    data = read(tmp_path, f'n{mark}"a\nname"{mark}m\n{rows}', columns=["n", "a\nname", "m"])
    assert list(data.frame.columns) == ["n", "a\nname", "m"]
    assert len(data.frame) == 30


def test_bytes_undefined_in_windows_1252_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"not valid cp1252.*--encoding"):
        read(tmp_path, b"a,b\n" + b"1,\xe9\x81\n2,\xe9\x8d\n" * 10)


def test_given_encoding_is_used(tmp_path: Path) -> None:
    content = "a,stadt\n" + "1,München\n2,Köln\n" * 10
    data = read(tmp_path, content.encode("cp850"), encoding="cp850")
    assert data.frame["stadt"].tolist()[:2] == ["München", "Köln"]
    assert data.notes == ()


def test_wrong_encoding_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"not valid utf-8.*--encoding"):
        read(tmp_path, "a,b\n1,é\n".encode("cp1252"), encoding="utf-8")
    with pytest.raises(InputError, match="not valid utf-16"):
        read(tmp_path, "a,b\n1,2\n".encode("utf-16-le"), encoding="utf-16")
    with pytest.raises(ParameterError, match="unknown encoding: klingon"):
        read(tmp_path, "a,b\n1,2\n", encoding="klingon")


def test_legacy_encoding_late_in_a_file_is_detected(tmp_path: Path) -> None:
    data = read(tmp_path, b"a,b\n" + b"1,x\n2,y\n" * 30_000 + "3,Köln\n".encode("cp1252") * 9, sample_size=70_000)
    assert data.frame["b"].iloc[-1] == "Köln"
    assert "'Köln'" in data.notes[0]


def test_gzipped_file_is_read(tmp_path: Path) -> None:
    data = read(tmp_path, gzip.compress(b"a,b\n" + b"1,2\n3,4\n" * 10), "data.csv.gz")
    assert data.frame["a"].tolist()[:2] == [1, 3]


def test_path_with_spaces_is_read(tmp_path: Path) -> None:
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
    values, inferred = column(tmp_path, cells * 10)
    assert inferred.kind == "date"
    assert values.iloc[0] == pd.Timestamp(first)
    assert values.iloc[1] > values.iloc[0]


def test_ambiguous_dates_follow_the_option(tmp_path: Path) -> None:
    month, inferred = column(tmp_path, ["3/4/2024", "5/6/2024"] * 10)
    day, _ = column(tmp_path, ["3/4/2024", "5/6/2024"] * 10, day_first=True)
    assert (month.iloc[0], day.iloc[0]) == (pd.Timestamp("2024-03-04"), pd.Timestamp("2024-04-03"))
    assert "--day-first" in inferred.note


def test_order_of_dates_is_not_assumed_if_some_show_it(tmp_path: Path) -> None:
    day, inferred = column(tmp_path, ["3/4/2024", "25/6/2024"] * 10)
    assert day.iloc[0] == pd.Timestamp("2024-04-03")
    assert inferred.note == "day/month/year"


def test_numbers_as_column_names_have_a_note(tmp_path: Path) -> None:
    assert "numbers only" in read(tmp_path, "5.1,3.5\n" + "4.9,3\n4.7,3.2\n" * 10).notes[0]


def test_invalid_date_is_a_level(tmp_path: Path) -> None:
    _, inferred = column(tmp_path, ["2024-01-31", "2024-02-30"] * 10)
    assert inferred.kind == "nominal"


def test_integers_stay_integers_unless_values_are_missing(tmp_path: Path) -> None:
    whole, _ = column(tmp_path, ["1", "2", "7"] * 10)
    gaps, inferred = column(tmp_path, ["1", "NA", "7"] * 10)
    assert whole.dtype == np.int64
    assert gaps.dtype == np.float64
    assert inferred.n_missing == 10


def test_additional_texts_are_missing_values(tmp_path: Path) -> None:
    values, inferred = column(tmp_path, ["1", "-", "7", "none"] * 10, na=["-", "none"])
    assert inferred.kind == "numeric"
    assert values.isna().sum() == 20


def test_none_is_a_level(tmp_path: Path) -> None:
    values, inferred = column(tmp_path, ["none", "bank"] * 10)
    assert inferred.n_missing == 0
    assert set(values) == {"none", "bank"}


def test_infinite_numbers_are_missing_with_a_note(tmp_path: Path) -> None:
    values, inferred = column(tmp_path, ["1.5", "inf", "-inf", "2"] * 10)
    assert values.isna().sum() == 20
    assert inferred.note == "20 cells read as missing, not a number: 'inf', '-inf'"


def test_codes_with_leading_zeros_are_levels(tmp_path: Path) -> None:
    values, inferred = column(tmp_path, ["01067", "80331"] * 10)
    assert inferred.kind == "nominal"
    assert values.iloc[0] == "01067"


def test_one_leading_zero_does_not_make_codes_of_numbers(tmp_path: Path) -> None:
    values, inferred = column(tmp_path, [*map(str, range(5, 305)), "007"])
    assert inferred.kind == "numeric"
    assert values.iloc[-1] == 7


def test_nominal_option_reads_numbers_as_levels(tmp_path: Path) -> None:
    values, inferred = column(tmp_path, ["10", "9", "2"] * 10, nominal=["x"])
    assert inferred.kind == "nominal"
    assert list(values.cat.categories) == ["2", "9", "10"]


def test_identifiers_are_left_out_with_a_reason(tmp_path: Path) -> None:
    text = "name,a,b\n" + "".join(f"person {i},{i % 4},{i % 3}\n" for i in range(40))
    data = read(tmp_path, text)
    assert list(data.frame.columns) == ["a", "b"]
    assert "40 distinct values" in data.columns[0].left_out


def test_row_numbers_are_left_out_unless_selected(tmp_path: Path) -> None:
    text = "id,a,b\n" + "".join(f"{i + 100},{i % 4},{i % 3}\n" for i in range(40))
    assert read(tmp_path, text).columns[0].left_out.startswith("identifier")
    assert list(read(tmp_path, text, columns=["id", "a"]).frame.columns) == ["id", "a"]


def test_row_numbers_are_recognized_in_a_sample(tmp_path: Path) -> None:
    text = "id,a,b\n" + "".join(f"{i},{i % 4},{i % 3}\n" for i in range(400))
    assert read(tmp_path, text, sample_size=50).columns[0].left_out.startswith("identifier")


def test_constant_and_empty_columns_are_left_out_with_a_reason(tmp_path: Path) -> None:
    data = read(tmp_path, "same,none,a,b\n" + "".join(f"7,,{i % 4},{i % 3}\n" for i in range(40)))
    assert {one.name: one.left_out for one in data.columns if one.left_out} == {
        "same": "constant",
        "none": "all values missing",
    }


def test_rare_levels_are_merged(tmp_path: Path) -> None:
    cells = [f"often {i % 90}" for i in range(900)] + [f"rare {i % 40}" for i in range(80)]
    values, inferred = column(tmp_path, cells)
    assert len(values.cat.categories) == 91
    assert OTHER in inferred.note
    assert (values == OTHER).sum() == sum(Counter(cells)[cell] for cell in set(cells) - set(values))


def test_all_columns_and_levels_are_kept_for_a_loaded_model(tmp_path: Path) -> None:
    text = "name,same\n" + "".join(f"person {i},1\n" for i in range(140))
    data = read(tmp_path, text, keep_all=True)
    assert data.frame["name"].nunique() == 140
    assert list(data.frame.columns) == ["name", "same"]


def test_columns_are_named_one_by_one_or_comma_separated(tmp_path: Path) -> None:
    text = 'a,"b,c",d\n' + "".join(f"{i % 4},{i % 3},{i % 5}\n" for i in range(40))
    assert list(read(tmp_path, text, columns=["a", "b,c"]).frame.columns) == ["a", "b,c"]
    assert list(read(tmp_path, text, columns=["a, d"]).frame.columns) == ["a", "d"]


def numbered(n: int) -> str:
    return "i,x\n" + "".join(f"{i},{(i * 7) % 13}\n" for i in range(n))


def test_sampled_rows_depend_on_the_random_state_only(tmp_path: Path) -> None:
    rows = [
        read(tmp_path, numbered(2000), sample_size=100, random_state=seed, columns=["i", "x"]).frame["i"].tolist()
        for seed in (1, 1, 2)
    ]
    assert rows[0] == rows[1] != rows[2]
    assert len(set(rows[0])) == 100
    assert rows[0] == sorted(rows[0])


def test_rows_are_sampled_uniformly(tmp_path: Path) -> None:
    """20 of 100 rows, 400 times: each row 80 times on average, standard deviation 8; 4.5 deviations are allowed."""
    path = tmp_path / "data.csv"
    path.write_text(numbered(100))
    drawn: Counter[int] = Counter()
    for seed in range(400):
        drawn.update(
            read_table_file(options(path, sample_size=20, random_state=seed, columns=["i", "x"])).frame["i"].tolist()
        )
    assert len(drawn) == 100
    assert max(abs(times - 80) for times in drawn.values()) < 36


def test_all_rows_are_read_up_to_the_sample_size(tmp_path: Path) -> None:
    data = read(tmp_path, numbered(100), sample_size=100, columns=["i", "x"])
    assert (len(data.frame), data.total, data.notes) == (100, 100, ())


def test_sampling_is_reported(tmp_path: Path) -> None:
    data = read(tmp_path, numbered(3000), sample_size=1000, columns=["i", "x"])
    assert data.total == 3000
    assert "1,000 of the 3,000 rows" in data.notes[0]


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    """100 rows of 9 MB of text are sampled; only some blocks of 1 MB are in memory at a time."""
    path = tmp_path / "data.csv"
    path.write_text("a,b,c\n" + "some text,1234567890,0.123456789\n" * 270_000)
    many = options(path, sample_size=100, columns=["a", "b", "c"])
    read_table_file(replace(many, data=_small(tmp_path)))  # imports are not counted
    tracemalloc.start()
    read_table_file(many)
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
            "wait": pl.Series([i * 1_500_000 for i in range(n)]).cast(pl.Duration("us")),
            "level": pl.Series(["b", "a", "c"] * 20, dtype=pl.Categorical),
            "digits": [str(i % 3) for i in range(n)],
            "nested": [["x"], ["y", "z"], []] * 20,
            "bytes": [b"u", b"v"] * 30,
        }
    )
    path = tmp_path / "typed.parquet"
    frame.write_parquet(path)
    return path


@pytest.mark.parametrize("engine", ["pyarrow", "polars"])
def test_parquet_is_read_the_same_way_by_both_readers(
    typed_file: Path, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from subgrove._cli import reading

    monkeypatch.setattr(reading, "find_spec", lambda name: name == engine or None)
    data = read_table_file(options(typed_file))
    kinds = {one.name: one.kind for one in data.columns}
    assert kinds == {
        "whole": "numeric",
        "gaps": "numeric",
        "flag": "nominal",
        "day": "date",
        "moment": "date",
        "wait": "numeric",
        "level": "nominal",
        "digits": "numeric",
        "nested": "nominal",
        "bytes": "nominal",
    }
    assert data.frame["gaps"].isna().sum() == 12
    assert data.frame["flag"].isna().sum() == 7
    assert data.frame["moment"].iloc[1] == pd.Timestamp("2024-01-01 01:30")
    assert data.frame["wait"].iloc[2] == 3.0


def test_both_readers_of_parquet_sample_the_same_rows(typed_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from subgrove._cli import reading

    frames = []
    for engine in ("pyarrow", "polars"):
        monkeypatch.setattr(reading, "find_spec", lambda name, engine=engine: name == engine or None)
        frames.append(read_table_file(options(typed_file, sample_size=20, random_state=3)).frame)
    pd.testing.assert_frame_equal(*frames)


def test_test_rows_are_read_with_the_kinds_of_the_training_rows(tmp_path: Path) -> None:
    first = read(tmp_path, "a,b,c\n" + "1,x,10\n2,y,20\n3,x,30\n" * 10, nominal=["a"])
    (tmp_path / "more.csv").write_text("c,b,a\n" + "5,z,1\n6,x,4\n" * 10)
    more = read_like(options(tmp_path / "more.csv"), first)
    assert list(more.frame.columns) == ["a", "b", "c"]
    assert list(more.frame["a"].cat.categories) == ["1", "2", "3", "4"]
    assert list(more.frame["b"].cat.categories) == ["x", "y", "z"]


def test_spellings_of_test_rows_that_are_merged_into_those_of_the_training_rows_are_stated(tmp_path: Path) -> None:
    first = read(tmp_path, "a,b\n" + "1,yes\n2,no\n" * 10)
    (tmp_path / "more.csv").write_text("a,b\n" + "1,YES\n2,maybe\n" * 10)
    more = read_like(options(tmp_path / "more.csv"), first)
    assert list(more.frame["b"].cat.categories) == ["no", "yes", "maybe"]
    assert more.columns[1].note == "spellings merged: 'YES' is 'yes'"


def test_columns_without_values_in_the_test_rows_have_no_levels_but_those_of_the_training_rows(tmp_path: Path) -> None:
    first = read(tmp_path, "a,b,c,d\n" + "1.5,x,2024-01-31,1\n2,y,2024-02-01,2\n" * 10)
    (tmp_path / "more.csv").write_text("a,b,c,d\n" + ",,,1\n,,,2\n" * 10)
    frame = read_like(options(tmp_path / "more.csv"), first).frame
    assert frame[["a", "b", "c"]].isna().all(axis=None)
    assert [list(frame[name].cat.categories) for name in ("a", "b", "c")] == [[], ["x", "y"], []]


def test_dates_that_the_test_rows_do_not_have_are_an_error_that_names_both_files(tmp_path: Path) -> None:
    first = read(tmp_path, "a,b\n" + "2024-01-31,1\n2024-02-01,2\n" * 10)
    (tmp_path / "more.csv").write_text("a,b\n" + "soon,1\nlate,2\n" * 10)
    with pytest.raises(InputError, match=r"'a' does not hold dates \(.*data.csv has date values there\), but 'soon'"):
        read_like(options(tmp_path / "more.csv"), first)


def test_more_rows_of_another_kind_are_error_message(tmp_path: Path) -> None:
    first = read(tmp_path, "a,b\n" + "1,x\n2,y\n" * 10)
    (tmp_path / "more.csv").write_text("a,b\n" + "one,x\ntwo,y\n" * 10)
    with pytest.raises(InputError, match="not a number"):
        read_like(options(tmp_path / "more.csv"), first)


def test_large_numbers_that_floats_do_not_distinguish_are_not_called_constant(folder: Path) -> None:
    lines = [f"{2**60 + i % 7},{i * i % 13},{i % 11}" for i in range(80)]
    Path("data.csv").write_text("h,b,y\n" + "\n".join(lines))
    (found,) = [one for one in read_table_file(options(Path("data.csv"))).columns if one.name == "h"]
    assert found.left_out == "constant to 15 digits"
