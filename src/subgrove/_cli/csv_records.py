"""Read delimited text in one pass, with a random sample of its rows.

Requirements this design meets:

- a file may be larger than memory: lines are streamed, and only the sampled ones are parsed;
- a quoted cell may contain line ends and delimiters: a record continues until its quotes are balanced;
- the same seed gives the same rows; all sets of rows are equally likely (reservoir sampling, Algorithm L);
- text is UTF-8, UTF-16 or UTF-32, else Windows-1252; a file that mixes encodings is rejected;
- errors give the number of the line.
"""

from __future__ import annotations

import csv
import gzip
import json
import math
import re
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import TextIOWrapper
from itertools import islice
from pathlib import Path
from random import Random
from typing import IO, cast

from subgrove._cli.columns import RawTable, SelectColumns
from subgrove._cli.options import DataOptions
from subgrove.exceptions import InputError, ParameterError

DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "vertical bar"}
LONGEST_LINE = 16 << 20  # characters of a line or a quoted cell
_HEAD = 1 << 16  # bytes that the encoding is detected from
_N_DETECTION = 200  # records that the delimiter is detected from
_CONTROL = re.compile(rb"[\x01-\x08\x0e-\x1a\x1c-\x1f]")
_NOT_UTF8 = re.compile("[\udc80-\udcff]")  # bytes that are not UTF-8, as Python's surrogateescape decodes them
_MULTIBYTE = re.compile("[^\x00-\x7f\udc80-\udcff]")  # characters that were several bytes of UTF-8
_UNDEFINED = {0xDC00 + byte: byte for byte in (0x81, 0x8D, 0x8F, 0x90, 0x9D)}  # in Windows-1252: control characters

Record = tuple[int, int, str]  # number of the record, the header being 0; its first line; its text


def read_csv(path: Path, gzipped: bool, select: SelectColumns, options: DataOptions) -> RawTable:
    """Read the selected columns of a sample of the rows; of all rows if there are at most `options.sample_size`."""
    mark = _detect_delimiter(path, gzipped) if options.delimiter is None else _parse_delimiter(options.delimiter)
    with _open_text(path, gzipped) as text:
        records = text.records()
        header = next(records, None)
        if header is None:
            raise InputError(f"{path} contains only empty lines.")
        names = _column_names(_cells(header, mark, path), path)
        selected = set(select(names))
        places = [place for place, name in enumerate(names) if name in selected]
        sample = _reservoir_sample(records, options.sample_size, Random(options.random_state))
    if not sample:
        raise InputError(f"{path} has a header but no rows.")
    rows = [_row(record, len(names), places, mark, path) for record in sample]
    notes = {"Encoding": text.note, "Delimiter": "" if mark == "," else _delimiter_name(mark)}
    return RawTable(
        columns=dict(zip((names[place] for place in places), zip(*rows, strict=True), strict=True)),
        row_numbers=tuple(number - 1 for number, _, _ in sample),
        total=text.n_records - 1,
        notes=tuple(f"{what}: {note}." for what, note in notes.items() if note),
        untyped=True,
        decimal_comma=mark != ",",
    )


@contextmanager
def _open_text(path: Path, gzipped: bool) -> Iterator[_TextFile]:
    """Open a file as text in its encoding; bytes that are not UTF-8 are decoded later, by `_cells`."""
    encoding = ""
    try:
        with cast(IO[bytes], gzip.open(path)) if gzipped else path.open("rb") as file:
            head = file.read(_HEAD)
            file.seek(0)
            encoding, note = _encoding_of(head)
            if encoding == "utf-8" and len(_CONTROL.findall(head)) > 0.01 * len(head) + 1:
                raise _binary(path, 1)
            errors = "surrogateescape" if encoding == "utf-8" else "strict"
            with TextIOWrapper(file, encoding, errors, newline="") as stream:
                yield _TextFile(path, stream, note)
    except UnicodeError as error:
        raise InputError(f"{path} is not valid {encoding}: {error}.") from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{path} is damaged, decompression failed: {error}.") from error


def _encoding_of(head: bytes) -> tuple[str, str]:
    """Return the encoding that a byte order mark, or the zeros of UTF-16 and UTF-32, reveal, and a note; else UTF-8."""
    name = json.detect_encoding(head)
    if name.startswith("utf-8"):
        return name, ""
    return name, f"read as {name.upper()}{', without a byte order mark' if name.endswith('e') else ''}"


def _binary(path: Path, line: int) -> InputError:
    return InputError(
        f"{path} is not a text file: it has binary content (near line {line}). CSV, TSV and Parquet files can be read."
    )


class _TextFile:
    """An open text file, the numbers of lines and records read so far, and the first lines of each encoding."""

    def __init__(self, path: Path, stream: TextIOWrapper, note: str) -> None:
        self.path, self.stream, self.note = path, stream, note  # on the encoding, "" if it was not guessed
        self.n_lines = self.n_records = 0
        self.utf8_line = self.other_line = 0  # first lines with multi-byte UTF-8, and with bytes that are not UTF-8

    def records(self) -> Iterator[Record]:
        """Yield the records that are not empty; a line with an odd number of quotes continues in the next."""
        lines = self._lines()
        for line in lines:
            start = self.n_lines
            record = line + self._rest_of_record(lines) if line.count('"') % 2 else line
            if record.strip("\r\n\ufeff"):
                yield self.n_records, start, record
                self.n_records += 1

    def _rest_of_record(self, lines: Iterator[str]) -> str:
        """Return the lines up to the one that closes a quote."""
        start, size, parts = self.n_lines, 0, []
        for line in lines:
            parts.append(line)
            size += len(line)
            if line.count('"') % 2:
                return "".join(parts)
            if size > LONGEST_LINE:
                break
        raise InputError(
            f'{self.path} has a quote (") in line {start} that is never closed. Close it, or write "" for a quote '
            f"inside a quoted cell."
        )

    def _lines(self) -> Iterator[str]:
        while line := self.stream.readline(LONGEST_LINE + 1):
            self.n_lines += 1
            if len(line) > LONGEST_LINE:
                raise InputError(
                    f"{self.path} has a line of more than {LONGEST_LINE >> 20} MB (line {self.n_lines}). "
                    f"Expected a table with one line per row."
                )
            if "\0" in line:
                raise _binary(self.path, self.n_lines)
            if not line.isascii() and self.stream.errors == "surrogateescape":
                self._check_encoding(line)
            yield line

    def _check_encoding(self, line: str) -> None:
        if not self.utf8_line and _MULTIBYTE.search(line):
            self.utf8_line = self.n_lines
        if not self.other_line and _NOT_UTF8.search(line):
            self.other_line = self.n_lines
            self.note = f"not UTF-8 (line {self.n_lines}); read as Windows-1252 (Latin 1)"
        if self.utf8_line and self.other_line:
            raise InputError(
                f"{self.path} mixes encodings: line {self.utf8_line} is UTF-8, line {self.other_line} is not. "
                f"Save it in one encoding, preferably UTF-8."
            )


def _reservoir_sample(records: Iterator[Record], size: int, random: Random) -> list[Record]:
    """Return a random sample of the records, in the order of the file."""
    sample = list(islice(records, size))
    weight = 1.0
    while len(sample) == size:
        weight *= math.exp(math.log(1.0 - random.random()) / size)  # of a uniform number in (0, 1]
        skipped = math.floor(math.log(1.0 - random.random()) / math.log1p(-weight)) if weight > 0 else 1 << 62
        record = next(islice(records, skipped, None), None)
        if record is None:
            break
        sample[random.randrange(size)] = record
    return sorted(sample)


def _cells(record: Record, mark: str, path: Path) -> list[str]:
    _, line, text = record
    if _NOT_UTF8.search(text):
        text = text.encode("utf-8", "surrogateescape").decode("cp1252", "surrogateescape").translate(_UNDEFINED)
    try:
        return [cell.strip() for cell in next(csv.reader([text], delimiter=mark))]
    except csv.Error as error:
        if "new-line" in str(error):  # the odd quote was inside a cell, so it did not open a quoted one
            raise InputError(
                f'Line {line} of {path} has a quote (") inside a cell that does not start with one. '
                f'Quote the cell and double the quotes inside: "5"" pipe".'
            ) from error
        raise InputError(f"Line {line} of {path} cannot be parsed: {error}.") from error


def _row(record: Record, n_columns: int, places: Sequence[int], mark: str, path: Path) -> list[str]:
    """Return the cells of a row at some places."""
    cells = _cells(record, mark, path)
    if len(cells) != n_columns:
        raise InputError(
            f"Line {record[1]} of {path} has {len(cells)} cells, the header has {n_columns} "
            f"(delimiter: {_delimiter_name(mark)}). Correct the line, or set --delimiter."
        )
    return [cells[place] for place in places]


def _delimiter_name(mark: str) -> str:
    return DELIMITERS.get(mark, repr(mark))


def _parse_delimiter(delimiter: str) -> str:
    """Return the delimiter of --delimiter, a character or the name of one."""
    words = {name: mark for mark, name in DELIMITERS.items()} | {"\\t": "\t", "space": " "}
    mark = words.get(delimiter, delimiter)
    if len(mark) != 1 or mark in '"\r\n':
        raise ParameterError(
            f"--delimiter must be one character, or one of tab, comma, semicolon, space; got {delimiter!r}."
        )
    return mark


def _detect_delimiter(path: Path, gzipped: bool) -> str:
    """Return the delimiter that splits most of the first records into the same number of cells, more than one."""
    with _open_text(path, gzipped) as text:
        first = [record for _, _, record in islice(text.records(), _N_DETECTION)]

    def agreement(mark: str) -> tuple[int, int]:
        cells, times = Counter(_n_cells(record, mark) for record in first).most_common(1)[0]
        return (times, cells) if cells > 1 else (0, 0)

    return max(DELIMITERS, key=agreement) if first else ","


def _n_cells(record: str, mark: str) -> int:
    """Return the number of cells; 1 if this delimiter leaves a line end outside of quotes, so it is not the one."""
    try:
        return len(next(csv.reader([record], delimiter=mark)))
    except csv.Error:
        return 1


def _column_names(cells: list[str], path: Path) -> list[str]:
    """Return the column names; missing ones are numbered."""
    cells[0] = cells[0].lstrip("\ufeff")
    if len(cells) == 1:
        raise InputError(
            f"{path} has one column, {cells[0][:60]!r}; at least two are needed. "
            f"If the cells have another delimiter, set it with --delimiter."
        )
    return [cell or f"column_{place}" for place, cell in enumerate(cells, start=1)]
