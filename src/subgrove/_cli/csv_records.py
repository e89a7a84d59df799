"""Read delimited text in one pass, with a random sample of its rows.

Requirements this design meets:

- a file may be larger than memory: lines are streamed, and only the sampled ones are parsed;
- a quoted cell may contain line ends and delimiters: a record continues until its quotes are balanced;
- the same seed gives the same rows; all sets of rows are equally likely (reservoir sampling, Algorithm L);
- lines that are not rows of the table, such as titles and totals, are left out with a note;
- the encoding is declared by the user or a byte order mark, else UTF-8, else detected;
- errors give the number of the line.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import json
import math
import re
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from io import TextIOWrapper
from itertools import chain, count, islice
from pathlib import Path
from random import Random
from typing import IO, NamedTuple, cast

from subgrove._cli.columns import RawTable, SelectColumns
from subgrove._cli.options import DataOptions
from subgrove._cli.terminal import quoted
from subgrove._core.text import count_of, first_of
from subgrove.exceptions import InputError, ParameterError

DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "vertical bar"}
LONGEST_LINE = 16 << 20  # characters of a line or a quoted cell
_N_FIRST = 200  # records that the delimiter and the header are detected from
_N_LAST = 20  # records of which some may be footnotes and totals
_EMPTY = "without values"
_SEPARATOR_LINE = re.compile(r'\ufeff?"?sep=(.)"?\s*', re.IGNORECASE)  # as Excel writes it
_TOTAL = re.compile(r"((grand|sub)[ -]?)?totale?s?|sum|summe|(ins)?gesamt(summe)?|somme|suma|totaal", re.IGNORECASE)
_NUMBER = re.compile(r"\W*\d")
_YEAR = re.compile(r"(19|20)\d\d")
_HEAD = 1 << 16  # bytes that an encoding is detected from
_CONTROL = re.compile(rb"[\x01-\x08\x0e-\x1a\x1c-\x1f]")
_NOT_WESTERN = re.compile(rb"[\x81\x8d\x8f\x90\x9d]")  # bytes that Windows-1252 does not define
_LETTERS = re.compile(rb"[a-zA-Z\x80-\xff]{3,}")
# Candidates for text that is not UTF-8; of equally plausible ones the first is taken.
_WESTERN, _EAST_ASIAN = ("cp1252", "cp1250", "cp1254"), ("gb18030", "cp932", "big5", "euc_jp", "cp949")
_OTHERS = ("mac_roman", "cp850", "cp1251", "koi8_r", "cp1253", "cp1255", "cp1256", "cp852", "cp866")

Record = tuple[int, int, str]  # number of the record, from 0; its first line; its text


class Layout(NamedTuple):
    """How records are split: the delimiter, the number of the header, the column names, and notes."""

    mark: str
    header: int
    names: list[str]
    notes: list[str]


def read_csv(path: Path, select: SelectColumns, options: DataOptions) -> RawTable:
    """Read the selected columns of a sample of the rows; of all rows if there are at most `options.sample_size`."""
    encoding, note = declared_encoding(path, options.encoding)
    while True:
        try:
            with open_bytes(path) as file, TextIOWrapper(file, encoding, newline="") as stream:
                lines = iter(partial(stream.readline, LONGEST_LINE + 1), "")
                return read_lines(lines, path, select, options, note)
        except UnicodeDecodeError as error:
            if options.encoding or encoding != "utf-8":
                remedy = "Set its encoding with --encoding."
                raise InputError(f"{path} is not valid {encoding}: {error}. {remedy}") from error
        encoding, note = detected_encoding(path)


def read_lines(lines: Iterator[str], path: Path, select: SelectColumns, options: DataOptions, note: str) -> RawTable:
    """Read lines of delimited text, as `read_csv` does; the given note comes before those on the lines."""
    import pandas as pd

    csv.field_size_limit(2 * LONGEST_LINE)  # which no record exceeds; by default cells have at most 131,072 characters
    records = _records(lines, path, numbers := count())
    first = list(islice(records, _N_FIRST))
    layout = _detect_layout(first, options.delimiter, path)
    selected = select(layout.names)
    rows = chain((one for one in first if one[0] > layout.header), records)
    sample = _reservoir_sample(rows, options.sample_size, Random(options.random_state))
    table, left_out = _rows_of_table(sample, layout, path)
    n_rows = next(numbers) - layout.header - 1
    return RawTable(
        pd.DataFrame.from_dict(table, orient="index", columns=layout.names, dtype=object)[selected],
        total=n_rows if len(sample) < n_rows else len(table),
        notes=(*filter(None, [note]), *layout.notes, *left_out),
        untyped=True,
        decimal_comma=layout.mark != ",",
    )


def _records(lines: Iterator[str], path: Path, numbers: Iterator[int]) -> Iterator[Record]:
    """Yield the records that are not empty; a line with an odd number of quotes continues in the next."""
    start, record, is_open = 0, "", False  # whether a quote is not closed
    for n_lines, line in enumerate(lines, start=1):
        if len(line) > LONGEST_LINE:
            remedy = "Expected a table with one line per row."
            raise InputError(f"{path} has a line of more than {LONGEST_LINE >> 20} MB (line {n_lines}). {remedy}")
        if "\0" in line:
            raise _binary_error(path, n_lines)
        start, record = (start, record + line) if is_open else (n_lines, line)
        is_open ^= line.count('"') % 2 == 1
        if is_open and len(record) > LONGEST_LINE:
            break
        if not is_open and record.strip("\r\n\ufeff"):
            yield next(numbers), start, record
    if is_open:
        remedy = 'Close it, or write "" for a quote inside a quoted cell.'
        raise InputError(f'{path} has a quote (") in line {start} that is never closed. {remedy}')


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
    try:
        return next(csv.reader([text], delimiter=mark))
    except csv.Error as error:  # an odd quote was inside a cell and did not open one
        remedy = 'Quote the cell and double the quotes inside: "5"" pipe".'
        what = f'has a quote (") inside a cell that does not start with one. {remedy}'
        raise InputError(f"Line {line} of {path} {what}") from error


def _rows_of_table(sample: list[Record], layout: Layout, path: Path) -> tuple[dict[int, list[str]], list[str]]:
    """Return the cells of the rows of the table by their positions, and notes on other lines."""
    width, table, others = len(layout.names), dict[int, list[str]](), defaultdict[str, list[str]](list)
    rows = [(record, _cells(record, layout.mark, path)) for record in sample]
    is_table = any(len(cells) >= width for _, cells in rows[:-_N_LAST] or rows)
    while is_table and rows and (what := _other_line(rows, width)) and len(others[what]) < _N_LAST:
        others[what].append(rows.pop()[0][2])
    for (number, line, text), every in rows:
        cells = every if any(every[width:]) else every[:width]
        if cells == layout.names:
            others["that repeats the header"].append(text)
        elif not any(map(str.strip, cells)):
            others[_EMPTY].append(text)
        elif len(cells) == width:
            table[number - layout.header - 1] = cells
        else:
            header = f"the header has {width} (delimiter: {DELIMITERS.get(layout.mark, repr(layout.mark))})"
            remedy = "Correct the line, or set --delimiter."
            raise InputError(f"Line {line} of {path} has {len(cells)} cells, {header}. {remedy}")
    if not table:
        raise InputError(f"{path} has a header but no rows with values.")
    return table, [_left_out(what, lines) for what, lines in others.items()]


def _left_out(what: str, lines: list[str]) -> str:
    return f"{count_of(len(lines), 'line')} {what} left out: {quoted(map(str.strip, lines), 2, 60)}."


def _other_line(rows: list[tuple[Record, list[str]]], width: int) -> str:
    """Return what the last line is if it is not a row: footnote, total or empty."""
    cells = rows[-1][1]
    filled = [(place, cell.strip(" :")) for place, cell in enumerate(cells) if cell.strip()]
    if not filled:
        return _EMPTY
    place, word = filled[0]
    if len(cells) >= width and word in (one[place].strip(" :") for _, one in rows[:-1] if len(one) > place):
        return ""
    if len(cells) < width or (len(filled) == 1 < width - 1 and not _NUMBER.match(word)):
        return "at the end that is not a row"
    return "at the end with totals" if _TOTAL.fullmatch(word) else ""


def _parse_delimiter(delimiter: str) -> str:
    """Return the delimiter of --delimiter, a character or the name of one."""
    words = {name: mark for mark, name in DELIMITERS.items()} | {"\\t": "\t", "space": " "}
    mark = words.get(delimiter, delimiter)
    if len(mark) != 1 or mark in '"\r\n':
        raise ParameterError(f"--delimiter must be one character, tab, comma, semicolon or space; got {delimiter!r}.")
    return mark


def _detect_layout(first: list[Record], delimiter: str | None, path: Path) -> Layout:
    """Detect the delimiter, the header and the column names from the first records."""
    declared = _SEPARATOR_LINE.fullmatch(first[0][2]) if first else None
    records = first[1:] if declared else first
    if not records:
        raise InputError(f"{path} contains only empty lines.")
    texts = [text for _, _, text in records]
    mark = _parse_delimiter(delimiter) if delimiter else declared[1] if declared else _detect_delimiter(texts)
    split = [_split(text, mark) for text in texts]
    width = Counter(map(len, split)).most_common(1)[0][0]
    at = next((at for at in range(len(split)) if not _is_title(split[at : at + 2], width)), 0)
    names, rows = _cells(records[at], mark, path), split[at + 1 :]
    names[0] = names[0].lstrip("\ufeff")
    while len(names) > max(width, 1) and not names[-1]:
        names.pop()
    if len(names) == width - 1 and rows:  # which have names, or a delimiter at their end
        names = ["", *names] if any(cells[-1] for cells in rows if len(cells) == width) else [*names, ""]
    if len(names) == 1:
        remedy = "If the cells have another delimiter, set it with --delimiter."
        raise InputError(f"{path} has one column, {names[0][:60]!r}; at least two are needed. {remedy}")
    notes = [f"Delimiter: {DELIMITERS.get(mark, repr(mark))}."] if mark != "," else []
    notes += [_left_out("above the header", texts[:at])] if at else []
    if all(re.fullmatch(r"-?[\d.,]+", name.strip()) and not _YEAR.fullmatch(name.strip()) for name in names):
        notes.append("The first line has numbers only, and is read as column names. Add a header if it is a row.")
    names = [name.strip() or f"column_{place}" for place, name in enumerate(names, start=1)]
    return Layout(mark, records[at][0], _unique(names, notes), notes)


def _is_title(records: list[list[str]], width: int) -> bool:
    """Whether the first of two records is not the header: most cells are empty or missing."""
    cells, following = records[0], records[-1]
    n_filled = sum(map(bool, cells))
    if len(cells) == width - 1 and len(following) == width:  # a sentence with commas is followed by a header of words
        return not any(map(_NUMBER.match, following))
    return len(cells) < width or (n_filled <= max(1, width // 3) and (width > 2 or bool(cells[0])) and width > 1)


def _unique(names: list[str], notes: list[str]) -> list[str]:
    """Return different names; add a note if some were repeated."""
    found: dict[str, str] = {}
    numbers: Counter[str] = Counter()
    for name in names:
        new = name
        while new in found:
            numbers[name] += 1
            new = f"{name}_{numbers[name] + 1}"
        found[new] = name
    renamed = [f"{name!r} is {new!r}" for new, name in found.items() if name != new]
    notes += [f"Repeated column names: the second {first_of(renamed, 3)}."] if renamed else []
    return list(found)


def _detect_delimiter(texts: list[str]) -> str:
    """Return the delimiter that splits most of the records into the same number of cells, more than one."""

    def agreement(mark: str) -> tuple[int, int]:
        cells, times = Counter(len(_split(text, mark)) for text in texts).most_common(1)[0]
        return (times, cells) if cells > 1 else (0, 0)

    best = max(DELIMITERS, key=agreement)
    return " " if agreement(best) == (0, 0) and agreement(" ")[0] > len(texts) / 2 else best


def _split(text: str, mark: str) -> list[str]:
    """Return the cells; one if this delimiter leaves a line end outside of quotes, so it is not the one."""
    try:
        return [cell.strip() for cell in next(csv.reader([text], delimiter=mark))]
    except csv.Error:
        return [text]


@contextmanager
def open_bytes(path: Path) -> Iterator[IO[bytes]]:
    """Open a file, decompressed if it is gzipped."""
    try:
        with path.open("rb") as file:
            yield cast(IO[bytes], gzip.GzipFile(fileobj=file)) if file.peek(2)[:2] == b"\x1f\x8b" else file
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{path} is damaged, decompression failed: {error}.") from error


def _binary_error(path: Path, line: int) -> InputError:
    formats = "CSV, TSV, Excel and Parquet files can be read"
    return InputError(f"{path} is not a text file: it has binary content (near line {line}). {formats}.")


def declared_encoding(path: Path, given: str | None) -> tuple[str, str]:
    """Return the encoding that the user, a byte order mark, or the zeros of UTF-16 declare, and a note; else UTF-8."""
    if given is not None:
        try:
            return codecs.lookup(given).name, ""
        except LookupError as error:
            raise ParameterError(f"--encoding {given!r} is unknown. Use a name such as cp1252 or utf-16.") from error
    with open_bytes(path) as file:
        head = file.read(_HEAD)
    name = json.detect_encoding(head)
    if not name.startswith("utf-8"):
        return name, f"Encoding: read as {name.upper()}{', without a byte order mark' if name.endswith('e') else ''}."
    if len(_CONTROL.findall(head)) > 0.01 * len(head) + 1:
        raise _binary_error(path, 1)
    return name, ""


def detected_encoding(path: Path) -> tuple[str, str]:
    """Return the most plausible encoding of a file that is not UTF-8, and a note with a word of it."""
    first: dict[bool, int] = {}  # whether a line is UTF-8 -> the first such line
    sample = b""
    with open_bytes(path) as file:
        for number, line in enumerate(file, start=1):
            if not line.isascii():
                is_utf8 = line.decode(errors="ignore").encode() == line
                first.setdefault(is_utf8, number)
                sample += b"" if is_utf8 or len(sample) > _HEAD else line
    name = _most_plausible(sample)
    if len(first) > 1 and name not in _EAST_ASIAN:  # of which short texts can be UTF-8 by chance
        lines = f"line {first[True]} is UTF-8, line {first[False]} is not"
        raise InputError(f"{path} mixes encodings: {lines}. Save it in one encoding, preferably UTF-8.")
    example = next(cell for cell in re.split(r"[\r\n,;\t|]", sample.decode(name)) if not cell.isascii())[:40]
    note = f"Encoding: not UTF-8 (line {first[False]}), read as {name}: {example!r} (override with --encoding)."
    return name, note


def _most_plausible(sample: bytes) -> str:
    from charset_normalizer import from_bytes

    sample = b"\n".join(dict.fromkeys(cell for cell in re.split(rb"[\r\n\t,;]", sample) if not cell.isascii()))
    high = [byte for word in _LETTERS.findall(sample) for byte in word if byte >= 0x80]
    if not high and not _NOT_WESTERN.search(sample):
        return "cp1252"  # signs such as € and °
    western = () if 2 * sum(byte < 0xA0 for byte in high) > len(high) else _WESTERN  # its letters are above
    candidates = (*western, *_OTHERS, *_EAST_ASIAN)
    found = from_bytes(sample, cp_isolation=list(candidates), threshold=0.6, enable_fallback=False)
    scores = {name: (match.chaos, -match.coherence) for match in found for name in match.could_be_from_charset}
    return min((name for name in candidates if name in scores), key=lambda name: scores[name], default="latin-1")
