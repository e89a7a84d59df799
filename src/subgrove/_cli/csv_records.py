"""Read delimited text in one pass, with a random sample of its rows.

Requirements this design meets:

- a file may be larger than memory: lines are streamed, and only the sampled ones are parsed;
- a quoted cell may contain line ends and delimiters: a record continues until its quotes are balanced;
- the same seed gives the same rows; all sets of rows are equally likely (reservoir sampling, Algorithm L);
- the error for a row that does not match the header gives its line number.
"""

from __future__ import annotations

import codecs
import csv
import math
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import TextIOWrapper
from itertools import islice
from random import Random

from subgrove._cli.columns import SelectColumns, reject_duplicates
from subgrove._cli.open_file import LONGEST_LINE, DataFile, TextEncoding, damaged, detect_encoding
from subgrove.exceptions import InputError, ParameterError

DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "vertical bar"}
_AS_CONTROL = "subgrove.as_control"  # decoding of the five bytes that are undefined in Windows-1252
_N_DETECTION = 200  # records that the delimiter is detected from

Record = tuple[int, int, str]  # number of the record, the header being 0; its first line; its text


def _decode_as_control(error: UnicodeError) -> tuple[str, int]:
    """Decode an undefined byte as the control character of its number, as browsers do."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return error.object[error.start : error.end].decode("latin-1"), error.end


codecs.register_error(_AS_CONTROL, _decode_as_control)


@dataclass(frozen=True)
class CsvSample:
    """Cells of sampled rows: `rows[i]` is row `row_numbers[i]` of the file, from 0, of `total`."""

    names: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    row_numbers: tuple[int, ...]
    total: int
    delimiter: str
    encoding: TextEncoding


def read_records(
    file: DataFile, select: SelectColumns, *, sample_size: int, seed: int, delimiter: str | None = None
) -> CsvSample:
    """Read the selected columns of a sample of the rows; of all rows if there are at most `sample_size`."""
    encoding = detect_encoding(file)
    mark = _detect_delimiter(file, encoding) if delimiter is None else _parse_delimiter(delimiter)
    with _open_text(file, encoding) as lines:
        records = _records(lines, file)
        header = next(records, None)
        if header is None:
            raise InputError(f"{file.path} contains only empty lines.")
        names = _column_names(_cells(header, mark, file), file)
        selected = set(select(names))
        sample, total = _reservoir_sample(records, sample_size, Random(seed))
    if not total:
        raise InputError(f"{file.path} has a header but no rows.")
    places = [place for place, name in enumerate(names) if name in selected]
    return CsvSample(
        names=tuple(names[place] for place in places),
        rows=tuple(_row(record, names, places, mark, file) for record in sample),
        row_numbers=tuple(number - 1 for number, _, _ in sample),
        total=total,
        delimiter=mark,
        encoding=encoding,
    )


@contextmanager
def _open_text(file: DataFile, encoding: TextEncoding) -> Iterator[TextIOWrapper]:
    """Open the file as lines of text."""
    errors = _AS_CONTROL if encoding.name == "cp1252" else "strict"
    try:
        with file.open() as stream, TextIOWrapper(stream, encoding.name, errors, newline="") as lines:
            yield lines
    except UnicodeError as error:
        raise InputError(f"{file.path} is not valid {encoding.name}: {error}.") from error
    except (EOFError, zlib.error) as error:
        raise damaged(file.path, error) from error


def _records(lines: TextIOWrapper, file: DataFile) -> Iterator[Record]:
    """Yield numbered records; a line with an odd number of quotes continues in the next."""
    number = at = 0
    for line in lines:
        at += 1
        start = at
        if '"' in line and line.count('"') & 1:
            parts, size = [line], len(line)
            for more in lines:
                at += 1
                parts.append(more)
                size += len(more)
                if more.count('"') & 1:
                    break
                if size > LONGEST_LINE:
                    raise _unclosed_quote(file, start)
            else:
                raise _unclosed_quote(file, start)
            line = "".join(parts)
        if line.strip("\r\n\ufeff"):
            yield number, start, line
            number += 1


def _unclosed_quote(file: DataFile, line: int) -> InputError:
    return InputError(
        f'{file.path} has a quote (") in line {line} that is never closed. Close it, or write "" for a quote inside a '
        f"quoted cell."
    )


def _reservoir_sample(records: Iterator[Record], size: int, random: Random) -> tuple[list[Record], int]:
    """Return a random sample of the records, in the order of the file, and the number of records."""
    sample = list(islice(records, size))
    last = sample[-1][0] if sample else 0
    if len(sample) < size:
        return sample, last
    remaining = _CountedRecords(records, last)
    weight = math.exp(math.log(_positive(random)) / size)
    while True:
        skipped = math.floor(math.log(_positive(random)) / math.log1p(-weight)) if weight > 0 else 1 << 62
        record = next(islice(remaining, skipped, skipped + 1), None)
        if record is None:
            return sorted(sample), remaining.number
        sample[random.randrange(size)] = record
        weight *= math.exp(math.log(_positive(random)) / size)


class _CountedRecords:
    """An iterator that stores the number of the last record."""

    def __init__(self, records: Iterator[Record], number: int) -> None:
        self.records, self.number = records, number

    def __iter__(self) -> _CountedRecords:
        return self

    def __next__(self) -> Record:
        record = next(self.records)
        self.number = record[0]
        return record


def _positive(random: Random) -> float:
    """Return a uniform number in (0, 1]."""
    return 1.0 - random.random()


def _cells(record: Record, mark: str, file: DataFile) -> list[str]:
    try:
        return [cell.strip() for cell in next(csv.reader([record[2]], delimiter=mark))]
    except csv.Error as error:
        if "new-line" in str(error):  # the odd quote was inside a cell, so it did not open a quoted one
            raise InputError(
                f'Line {record[1]} of {file.path} has a quote (") inside a cell that does not start with one. '
                f'Quote the cell and double the quotes inside: "5"" pipe".'
            ) from error
        raise InputError(f"Line {record[1]} of {file.path} cannot be parsed: {error}.") from error


def _row(record: Record, names: tuple[str, ...], places: Sequence[int], mark: str, file: DataFile) -> tuple[str, ...]:
    cells = _cells(record, mark, file)
    if len(cells) != len(names):
        raise InputError(
            f"Line {record[1]} of {file.path} has {len(cells)} cells, the header has {len(names)} "
            f"(delimiter: {DELIMITERS.get(mark, repr(mark))}). Correct the line, or set --delimiter."
        )
    return tuple(cells[place] for place in places)


def _parse_delimiter(delimiter: str) -> str:
    """Return the delimiter of --delimiter, a character or the name of one."""
    words = {name: mark for mark, name in DELIMITERS.items()} | {"\\t": "\t", "space": " "}
    mark = words.get(delimiter, delimiter)
    if len(mark) != 1 or mark in '"\r\n':
        raise ParameterError(
            f"--delimiter must be one character, or one of tab, comma, semicolon, space; got {delimiter!r}."
        )
    return mark


def _detect_delimiter(file: DataFile, encoding: TextEncoding) -> str:
    """Return the delimiter that splits most of the first records into the same number of cells, more than one."""
    with _open_text(file, encoding) as lines:
        first = list(islice(_records(lines, file), _N_DETECTION))
    scores = {mark: _agreement(first, mark) for mark in DELIMITERS}
    best = max(scores, key=lambda mark: scores[mark])
    return best if scores[best] > (0.0, 0) else ","


def _agreement(records: Sequence[Record], mark: str) -> tuple[float, int]:
    """Return the most frequent number of cells and its share of the records; zeros for a single cell."""
    counts = Counter(_n_cells(record, mark) for record in records)
    cells, times = counts.most_common(1)[0] if counts else (1, 0)
    return (times / len(records), cells) if cells > 1 else (0.0, 0)


def _n_cells(record: Record, mark: str) -> int:
    """Return the number of cells; 1 if this delimiter leaves a line end outside of quotes, so it is not the one."""
    try:
        return len(next(csv.reader([record[2]], delimiter=mark)))
    except csv.Error:
        return 1


def _column_names(cells: list[str], file: DataFile) -> tuple[str, ...]:
    """Return the column names; missing ones are numbered."""
    cells[0] = cells[0].lstrip("\ufeff")
    if len(cells) == 1:
        raise InputError(
            f"{file.path} has one column, {cells[0][:60]!r}; at least two are needed. "
            f"If the cells have another delimiter, set it with --delimiter."
        )
    names = [cell or f"column_{place}" for place, cell in enumerate(cells, start=1)]
    reject_duplicates(names, str(file.path))
    return tuple(names)
