"""Records of a delimited text, a part of them drawn at random in one pass, in memory for that part alone.

Requirements this design meets:

- a file may be larger than memory: lines stream by, and only the lines that are drawn are taken apart;
- a quoted cell may hold line ends and delimiters: a record goes on until its quotes are balanced;
- the same seed draws the same rows; each set of rows is as likely as any other (reservoir sampling, Algorithm L);
- a row that does not fit the header is refused with its line number.
"""

from __future__ import annotations

import codecs
import csv
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import TextIOWrapper
from itertools import islice
from random import Random

from subgrove._cli.columns import Wanted, reject_twice
from subgrove._cli.encoding import LONGEST, Encoding, find_encoding, gzip_errors
from subgrove._cli.open_file import Source
from subgrove.exceptions import InputError, ParameterError

DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "vertical bar"}
_NO_MEANING = "subgrove.no_meaning"  # how five bytes are read that Windows-1252 has no character for
_LOOKED_AT = 200  # records that the delimiter is told by

Record = tuple[int, int, str]  # number of the record after the header, line it starts in, text


def _as_control(error: UnicodeError) -> tuple[str, int]:
    """A byte without a meaning as the control character of its number, as browsers read it."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return error.object[error.start : error.end].decode("latin-1"), error.end


codecs.register_error(_NO_MEANING, _as_control)


@dataclass(frozen=True)
class Records:
    """Cells of some rows: `rows[i]` is row number `numbers[i]` of the file, from 0, of `total`."""

    names: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numbers: tuple[int, ...]
    total: int
    delimiter: str
    encoding: Encoding


def read_records(source: Source, wanted: Wanted, *, most: int, seed: int, delimiter: str | None = None) -> Records:
    """At most so many rows of a text, with the wanted of its columns; all rows if it has no more."""
    encoding = find_encoding(source)
    mark = _named(delimiter) if delimiter is not None else _found(source, encoding)
    with _open_text(source, encoding) as lines:
        records = _records(lines, source)
        header = next(records, None)
        if header is None:
            raise InputError(f"{source.path} has nothing but empty lines.")
        names = _names(_cells(header, mark, source), source)
        chosen = set(wanted(names))
        drawn, total = _drawn(records, most, Random(seed))
    if not total:
        raise InputError(f"{source.path} has a line of column names and no rows below it.")
    places = [place for place, name in enumerate(names) if name in chosen]
    rows = tuple(_row(record, names, places, mark, source) for record in drawn)
    return Records(
        tuple(names[place] for place in places),
        rows,
        tuple(number - 1 for number, _, _ in drawn),
        total,
        mark,
        encoding,
    )


@contextmanager
def _open_text(source: Source, encoding: Encoding) -> Iterator[TextIOWrapper]:
    """Lines of the file as text; its faults are told in words."""
    errors = _NO_MEANING if encoding.name == "cp1252" else "strict"
    try:
        with source.open() as file, TextIOWrapper(file, encoding.name, errors, newline="") as lines:
            yield lines
    except UnicodeError as error:
        raise InputError(f"{source.path} is not {encoding.name} throughout: {error}.") from error
    except (EOFError, gzip_errors()) as error:
        raise InputError(f"{source.path} is damaged, it cannot be unpacked to its end: {error}.") from error


def _records(lines: TextIOWrapper, source: Source) -> Iterator[Record]:
    """Numbered records; a line with an odd number of quotes goes on in the next."""
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
                if size > LONGEST:
                    raise _open_quote(source, start)
            else:
                raise _open_quote(source, start)
            line = "".join(parts)
        if line.strip("\r\n\ufeff"):
            yield number, start, line
            number += 1


def _open_quote(source: Source, line: int) -> InputError:
    return InputError(
        f'{source.path} has a quote (") in line {line} that is never closed. Close it, or write "" for a quote in a '
        f"quoted cell."
    )


def _drawn(records: Iterator[Record], most: int, random: Random) -> tuple[list[Record], int]:
    """A random part in the order of the file, and how many there are."""
    kept = list(islice(records, most))
    last = kept[-1][0] if kept else 0
    if len(kept) < most:
        return kept, last
    counted = _Last(records, last)
    weight = math.exp(math.log(_above_zero(random)) / most)
    while True:
        skipped = math.floor(math.log(_above_zero(random)) / math.log1p(-weight)) if weight > 0 else 1 << 62
        record = next(islice(counted, skipped, skipped + 1), None)
        if record is None:
            return sorted(kept), counted.number
        kept[random.randrange(most)] = record
        weight *= math.exp(math.log(_above_zero(random)) / most)


class _Last:
    """An iterator that knows the number of the last record that went by."""

    def __init__(self, records: Iterator[Record], number: int) -> None:
        self.records, self.number = records, number

    def __iter__(self) -> _Last:
        return self

    def __next__(self) -> Record:
        record = next(self.records)
        self.number = record[0]
        return record


def _above_zero(random: Random) -> float:
    return 1.0 - random.random()


def _cells(record: Record, mark: str, source: Source) -> list[str]:
    try:
        return [cell.strip() for cell in next(csv.reader([record[2]], delimiter=mark))]
    except csv.Error as error:
        if "new-line" in str(error):  # a quote inside of a cell opened nothing, though _records thought so
            raise InputError(
                f'Line {record[1]} of {source.path} has a quote (") inside a cell that does not start with one. '
                f'Write the cell as "5"" pipe", in quotes that are doubled inside.'
            ) from error
        raise InputError(f"Line {record[1]} of {source.path} cannot be taken apart: {error}.") from error


def _row(record: Record, names: tuple[str, ...], places: Sequence[int], mark: str, source: Source) -> tuple[str, ...]:
    cells = _cells(record, mark, source)
    if len(cells) != len(names):
        raise InputError(
            f"Line {record[1]} of {source.path} has {len(cells)} cells, the header has {len(names)} "
            f"({DELIMITERS.get(mark, repr(mark))} separated). Repair the line, or name the right --delimiter."
        )
    return tuple(cells[place] for place in places)


def _named(delimiter: str) -> str:
    """The delimiter a user named, as a character or as a word."""
    words = {name: mark for mark, name in DELIMITERS.items()} | {"\\t": "\t", "space": " "}
    mark = words.get(delimiter, delimiter)
    if len(mark) != 1 or mark in '"\r\n':
        raise ParameterError(f"--delimiter must be one character, or tab, comma, semicolon, space; got {delimiter!r}.")
    return mark


def _found(source: Source, encoding: Encoding) -> str:
    """The delimiter that takes most of the first records apart into the same number of cells, more than one."""
    with _open_text(source, encoding) as lines:
        first = list(islice(_records(lines, source), _LOOKED_AT))
    scores = {mark: _agreement(first, mark) for mark in DELIMITERS}
    best = max(scores, key=lambda mark: scores[mark])
    return best if scores[best] > (0.0, 0) else ","


def _agreement(records: Sequence[Record], mark: str) -> tuple[float, int]:
    """Share of the records that have as many cells as most have, and this number; nothing for a single cell."""
    counts = Counter(_n_cells(record, mark) for record in records)
    cells, often = counts.most_common(1)[0] if counts else (1, 0)
    return (often / len(records), cells) if cells > 1 else (0.0, 0)


def _n_cells(record: Record, mark: str) -> int:
    """Number of cells; 1 where a line end is in no quotes by this mark, which then is not the one."""
    try:
        return len(next(csv.reader([record[2]], delimiter=mark)))
    except csv.Error:
        return 1


def _names(cells: list[str], source: Source) -> tuple[str, ...]:
    """Column names; those that are missing are numbered, those that occur twice refused."""
    cells[0] = cells[0].lstrip("\ufeff")
    if len(cells) == 1:
        raise InputError(
            f"{source.path} has one column, {cells[0][:60]!r}; at least two are needed. "
            f"If another character separates the cells, name it with --delimiter."
        )
    names = [cell or f"column_{place}" for place, cell in enumerate(cells, start=1)]
    reject_twice(names, str(source.path))
    return tuple(names)
