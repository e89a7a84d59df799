"""Read delimited text in one pass, with a random sample of its rows.

Requirements this design meets:

- a file may be larger than memory: lines are streamed, and only the sampled ones are parsed;
- a quoted cell may contain line ends and delimiters: a record continues until its quotes are balanced;
- the same seed gives the same rows; all sets of rows are equally likely (reservoir sampling, Algorithm L);
- lines that are not rows of the table, such as titles and totals, are left out with a note;
- the encoding is declared by the user or a byte order mark, else UTF-8, else detected;
- errors give the number of the line; `read_file` adds the name of the file.
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
from contextlib import contextmanager, suppress
from functools import partial
from io import TextIOWrapper
from itertools import chain, count, islice
from pathlib import Path
from random import Random
from typing import IO, cast

from subgrove._cli.columns import RawTable, SelectColumns, require
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
_NUMBER_NOT_YEAR = re.compile(r"(?!(19|20)\d\d$)-?[\d.,]+")
_HEAD = 1 << 16  # bytes that an encoding is detected from
_CONTROL = re.compile(rb"[\x01-\x08\x0e-\x1a\x1c-\x1f]")
_NOT_WESTERN = re.compile(rb"[\x81\x8d\x8f\x90\x9d]")  # bytes that Windows-1252 does not define
_LETTERS = re.compile(rb"[a-zA-Z\x80-\xff]{3,}")
# Candidates for text that is not UTF-8; of equally plausible ones the first is taken.
_WESTERN, _EAST_ASIAN = ("cp1252", "cp1250", "cp1254"), ("gb18030", "cp932", "big5", "euc_jp", "cp949")
_OTHERS = ("mac_roman", "cp850", "cp1251", "koi8_r", "cp1253", "cp1255", "cp1256", "cp852", "cp866")

Record = tuple[int, str]  # its first line in the file, and its text
NumberedRecord = tuple[int, Record]  # its number after the header, from 0


Table = dict[int, list[str]]  # number of a row -> its cells
Layout = tuple[str, int, list[str], list[str]]  # delimiter, place of the header, column names, notes


def read_csv(options: DataOptions, select: SelectColumns) -> RawTable:
    """Read the selected columns of a sample of the rows; of all rows if there are at most `options.sample_size`."""
    for encoding, note in possible_encodings(options.data, options.encoding):
        with suppress(UnicodeError), open_bytes(options.data) as file:
            stream = TextIOWrapper(file, encoding, newline="")
            return read_lines(iter(partial(stream.readline, LONGEST_LINE + 1), ""), options, select, note)
    raise InputError(f"The text is not valid {encoding}. Set its encoding with --encoding.")


def read_lines(lines: Iterator[str], options: DataOptions, select: SelectColumns, note: str) -> RawTable:
    """Read lines of delimited text, as `read_csv` does; the given note comes before those on the lines."""
    import pandas as pd

    csv.field_size_limit(2 * LONGEST_LINE)  # which no record exceeds; by default cells have at most 131,072 characters
    records = _records(lines)
    first = list(islice(records, _N_FIRST))
    mark, header, names, notes = _detect_layout(first, options.delimiter)
    selected = select(names)
    rows = zip(numbers := count(), chain(first[header + 1 :], records), strict=False)
    sample = _reservoir_sample(rows, options.sample_size, Random(options.random_state))
    table, left_out = _rows_of_table(sample, names, mark)
    frame = pd.DataFrame.from_dict(table, orient="index", columns=names, dtype=object)[selected]
    n_rows = next(numbers) - 1
    total = n_rows if len(sample) < n_rows else len(table)
    return RawTable(frame, total, (*filter(None, [note]), *notes, *left_out), mark)


def _records(lines: Iterator[str]) -> Iterator[Record]:
    """Yield the records that are not empty; a line with an odd number of quotes continues in the next."""
    start, record, is_open = 0, "", False  # whether a quote is not closed
    for n_lines, line in enumerate(lines, start=1):
        if len(line) > LONGEST_LINE or "\0" in line:
            raise InputError(f"Line {n_lines} has binary content, or is a line of more than {LONGEST_LINE >> 20} MB.")
        start, record = (start, record + line) if is_open else (n_lines, line)
        is_open ^= line.count('"') % 2 == 1
        if is_open and len(record) > LONGEST_LINE:
            break
        if not is_open and record.strip("\r\n\ufeff"):
            yield start, record
    require(not is_open, f'A quote (") in line {start} is never closed. Close it, or write "" for a quote in a cell.')


def _reservoir_sample(rows: Iterator[NumberedRecord], size: int, random: Random) -> list[NumberedRecord]:
    """Return a random sample of the rows, in the order of the file."""
    sample = list(islice(rows, size))
    weight = 1.0
    while len(sample) == size:
        weight *= math.exp(math.log(1.0 - random.random()) / size)  # of a uniform number in (0, 1]
        skipped = math.floor(math.log(1.0 - random.random()) / math.log1p(-weight)) if weight > 0 else 1 << 62
        row = next(islice(rows, skipped, None), None)
        if row is None:
            break
        sample[random.randrange(size)] = row
    return sorted(sample)


def _cells(record: Record, mark: str) -> list[str]:
    try:
        return next(csv.reader([record[1]], delimiter=mark))
    except csv.Error as error:  # an odd quote was inside a cell and did not open one
        raise InputError(f'Line {record[0]} has a quote (") inside a cell. Write the cell as "5"" pipe".') from error


def _words(record: Record, mark: str) -> list[str]:
    """Return the cells without spaces; one if this delimiter leaves a line end outside of quotes."""
    with suppress(InputError):
        return [cell.strip() for cell in _cells(record, mark)]
    return [record[1]]


def _fit(cells: list[str], width: int) -> list[str]:
    """Return the cells without empty ones beyond a width."""
    return cells if any(cells[width:]) else cells[:width]


def _rows_of_table(sample: list[NumberedRecord], names: list[str], mark: str) -> tuple[Table, list[str]]:
    """Return the cells of the rows of the table by their numbers, and notes on other lines."""
    width, table, others = len(names), Table(), defaultdict[str, list[str]](list)
    rows = [(number, record, _cells(record, mark)) for number, record in sample]
    while len(rows) > 1 and (what := _what_is_last([cells for _, _, cells in rows], width)):
        if len(others[what]) == _N_LAST:
            break
        others[what].append(rows.pop()[1][1])
    for number, (line, text), every in rows:
        cells = _fit(every, width)
        if cells == names:
            others["that repeats the header"].append(text)
        elif not any(map(str.strip, cells)):
            others[_EMPTY].append(text)
        elif len(cells) == width:
            table[number] = cells
        else:
            header = f"the header has {width} (delimiter: {_name(mark)})"
            raise InputError(f"Line {line} has {len(cells)} cells, {header}. Correct the line, or set --delimiter.")
    require(table, "There is a header but no rows with values.")
    return table, [_left_out(what, texts) for what, texts in others.items()]


def _left_out(what: str, texts: list[str]) -> str:
    return f"{count_of(len(texts), 'line')} {what} left out: {quoted(map(str.strip, texts), 2, 60)}."


def _what_is_last(rows: list[list[str]], width: int) -> str:
    """Return what the last line is if it is not a row: footnote, total or empty."""
    cells = rows[-1]
    filled = [(place, cell.strip(" :")) for place, cell in enumerate(cells) if cell.strip()]
    if not filled:
        return _EMPTY
    place, word = filled[0]
    if len(cells) >= width and word in (one[place].strip(" :") for one in rows[:-1] if len(one) > place):
        return ""
    if len(cells) < width or (len(filled) == 1 < width - 1 and not _NUMBER.match(word)):
        return "at the end that is not a row"
    return "at the end with totals" if _TOTAL.fullmatch(word) else ""


def _name(mark: str) -> str:
    return DELIMITERS.get(mark, repr(mark))


def _given_delimiter(delimiter: str) -> str:
    """Return the delimiter of --delimiter, a character or the name of one."""
    words = {name: mark for mark, name in DELIMITERS.items()} | {"\\t": "\t", "space": " "}
    mark = words.get(delimiter, delimiter)
    what = "one character, tab, comma, semicolon or space"
    require(len(mark) == 1 and mark not in '"\r\n', f"--delimiter must be {what}; got {delimiter!r}.", ParameterError)
    return mark


def _detect_layout(first: list[Record], delimiter: str | None) -> Layout:
    """Detect the delimiter, the header and the column names from the first records."""
    declared = _SEPARATOR_LINE.fullmatch(first[0][1]) if first else None
    records = first[1:] if declared else first
    require(records, "There are only empty lines.")
    mark = _given_delimiter(delimiter) if delimiter else declared[1] if declared else _detect_delimiter(records)
    rows = [_words(record, mark) for record in records]
    width = Counter(map(len, rows)).most_common(1)[0][0]
    at = next((at for at in range(len(rows)) if not _is_title(rows[at : at + 2], width)), 0)
    names = [name.strip().lstrip("\ufeff") for name in _fit(_cells(records[at], mark), width)]
    if len(names) == width - 1 and rows[at + 1 :]:  # rows have names, or a delimiter at their end
        names = ["", *names] if any(row[-1] for row in rows[at + 1 :] if len(row) == width) else [*names, ""]
    require(len(names) > 1, f"There is one column, {names[0][:60]!r}. If the cells have another --delimiter, set it.")
    notes = [f"Delimiter: {_name(mark)}."] if mark != "," else []
    notes += [_left_out("above the header", [text for _, text in records[:at]])] if at else []
    if all(map(_NUMBER_NOT_YEAR.fullmatch, names)):
        notes.append("The first line has numbers only, and is read as column names. Add a header if it is a row.")
    unique = _unique([name or f"column_{place}" for place, name in enumerate(names, start=1)])
    renamed = [f"{name!r} is {new!r}" for new, name in zip(unique, names, strict=True) if name not in (new, "")]
    notes += [f"Repeated column names: the second {first_of(renamed, 3)}."] if renamed else []
    return mark, at + bool(declared), unique, notes


def _is_title(rows: list[list[str]], width: int) -> bool:
    """Whether the first of two rows is not the header: most cells are empty or missing."""
    cells, following = rows[0], rows[-1]
    n_filled = sum(map(bool, cells))
    if len(cells) == width - 1 and len(following) == width:  # a sentence with commas is followed by a header of words
        return not any(map(_NUMBER.match, following))
    return len(cells) < width or (n_filled <= max(1, width // 3) and (width > 2 or bool(cells[0])) and width > 1)


def _unique(names: list[str]) -> list[str]:
    """Return different names: repeated ones get a number."""
    unique: dict[str, None] = {}
    numbers: defaultdict[str, count[int]] = defaultdict(lambda: count(2))
    for name in names:
        candidates = chain([name], (f"{name}_{number}" for number in numbers[name]))
        unique[next(one for one in candidates if one not in unique)] = None
    return list(unique)


def _detect_delimiter(records: list[Record]) -> str:
    """Return the delimiter that splits most of the records into the same number of cells, more than one."""

    def agreement(mark: str) -> tuple[int, int]:
        cells, times = Counter(len(_words(record, mark)) for record in records).most_common(1)[0]
        return (times, cells) if cells > 1 else (0, 0)

    best = max(DELIMITERS, key=agreement)
    return " " if agreement(best) == (0, 0) and agreement(" ")[0] > len(records) / 2 else best


@contextmanager
def open_bytes(path: Path) -> Iterator[IO[bytes]]:
    """Open a file, decompressed if it is gzipped."""
    try:
        with path.open("rb") as file:
            yield cast(IO[bytes], gzip.GzipFile(fileobj=file)) if file.peek(2)[:2] == b"\x1f\x8b" else file
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"The file is damaged, decompression failed: {error}.") from error


def possible_encodings(path: Path, given: str | None) -> Iterator[tuple[str, str]]:
    """Yield encodings with notes: the given one; or what the first bytes declare; or UTF-8, then a detected one."""
    try:
        codecs.lookup(given or "utf-8")
    except LookupError as error:
        raise ParameterError(f"--encoding {given!r} is unknown. Use a name such as cp1252 or utf-16.") from error
    with open_bytes(path) as file:
        head = file.read(_HEAD)
    name = json.detect_encoding(head)
    if given or not name.startswith("utf-8"):
        yield given or name, "" if given else f"Encoding: read as {name.upper()}."
        return
    is_text = len(_CONTROL.findall(head)) <= 0.01 * len(head) + 1
    require(is_text, "This is binary content, not text. Save it as CSV, TSV, Excel (.xlsx) or Parquet.")
    yield name, ""
    yield detected_encoding(path)


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
    lines = f"line {first.get(True)} is UTF-8, line {first[False]} is not"
    is_mixed = len(first) > 1 and name not in _EAST_ASIAN  # of which short texts can be UTF-8 by chance
    require(not is_mixed, f"The file mixes encodings: {lines}. Save it in one encoding, preferably UTF-8.")
    example = next(cell for cell in re.split(r"[\r\n,;\t|]", sample.decode(name)) if not cell.isascii())[:40]
    return name, f"Encoding: not UTF-8 (line {first[False]}), read as {name}: {example!r} (override with --encoding)."


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
