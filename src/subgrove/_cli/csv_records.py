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

import csv
import gzip
import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from io import TextIOWrapper
from itertools import chain, count, islice
from pathlib import Path
from random import Random
from typing import Any

from subgrove._cli.columns import RawTable, SelectColumns, require
from subgrove._cli.options import DataOptions
from subgrove._cli.terminal import quoted
from subgrove._core.text import count_of, first_of
from subgrove.exceptions import InputError, ParameterError

DELIMITERS = {"tab": "\t", "\\t": "\t", "space": " "}
LONGEST_LINE = 16 << 20  # characters of a line or a quoted cell
_N_FIRST = 200  # records that the delimiter and the header are detected from
_N_LAST = 20  # records of which some may be footnotes and totals
_SEPARATOR_LINE = re.compile(r'\ufeff?"?sep=(.)', re.IGNORECASE)  # as Excel writes it
_TOTAL = re.compile(r"((grand|sub)[ -]?)?totale?s?|sum|summe|(ins)?gesamt(summe)?|somme|suma|totaal", re.IGNORECASE)
_NUMBER = re.compile(r"\W*\d")
_NUMBER_NOT_YEAR = re.compile(r"(?!(19|20)\d\d$)-?[\d.,]+")
_N_LINES, _N_WORDS = 2_000, 1_000  # that an encoding is detected from
_WORD = re.compile(rb"[^\x00-?|]+")  # of letters and bytes of letters
# Candidates for text that is not UTF-8; of equally plausible ones the first is taken.
_WESTERN, _EAST_ASIAN = ("cp1252", "cp1250", "cp1254"), ("gb18030", "cp932", "big5", "euc_jp", "cp949")
_OTHERS = ("mac_roman", "cp850", "cp1251", "koi8_r", "cp1253", "cp1255", "cp1256", "cp852", "cp866")

Record = tuple[int, str]  # its first line in the file, and its text
Row = tuple[int, Record]  # its number after the header, from 0
Layout = tuple[str, int, list[str], list[str]]  # delimiter, number of records up to the header, column names, notes


def read_csv(options: DataOptions, select: SelectColumns) -> RawTable:
    """Read the selected columns of a sample of the rows; of all rows if there are at most `options.sample_size`."""
    for encoding, note in possible_encodings(options.data, options.encoding):
        with suppress(UnicodeError), open_bytes(options.data) as file:
            try:
                stream = TextIOWrapper(file, encoding, newline="")
            except LookupError as error:
                raise ParameterError(f"--encoding: {error}. Use a name such as cp1252 or utf-16.") from error
            return read_lines(iter(partial(stream.readline, LONGEST_LINE + 1), ""), options, select, note)
    raise InputError(f"The text is not valid {encoding}. Set its encoding with --encoding.")


def read_lines(lines: Iterator[str], options: DataOptions, select: SelectColumns, note: str) -> RawTable:
    """Read lines of delimited text, as `read_csv` does; the given note comes before those on the lines."""
    import pandas as pd

    csv.field_size_limit(2 * LONGEST_LINE)  # which no record exceeds; by default cells have at most 131,072 characters
    records = _records(lines)
    first = list(islice(records, _N_FIRST))
    delimiter, start, names, notes = _detect_layout(first, options.delimiter)
    selected = select(names)
    rows = zip(numbers := count(), chain(first[start:], records), strict=False)
    sample = _reservoir_sample(rows, options.sample_size, Random(options.random_state))
    n_rows = next(numbers) - 1
    table, left_out = _rows_of_table(sample, names, delimiter)
    frame = pd.DataFrame.from_dict(table, orient="index", columns=names, dtype=object)[selected]
    total = n_rows if len(sample) < n_rows else len(table)
    return RawTable(frame, total, tuple(filter(None, [note, *notes, *left_out])), delimiter)


def _records(lines: Iterator[str]) -> Iterator[Record]:
    """Yield the records that are not empty; a line with an odd number of quotes continues in the next."""
    start, record, is_open = 0, "", False  # whether a quote is not closed
    for n_lines, line in enumerate(lines, start=1):
        if len(line) > LONGEST_LINE or "\0" in line:
            raise InputError(f"Line {n_lines} has binary content, or more than {LONGEST_LINE >> 20} MB of text.")
        start, record = (start, record + line) if is_open else (n_lines, line)
        is_open ^= line.count('"') % 2 == 1
        if is_open and len(record) > LONGEST_LINE:
            break
        if not is_open and record.strip("\r\n\ufeff"):
            yield start, record
    require(not is_open, f'A quote (") in line {start} is never closed. Close it, or write "" for a quote in a cell.')


def _reservoir_sample(rows: Iterator[Row], size: int, random: Random) -> list[Row]:
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


def _cells(record: Record, delimiter: str, width: int = LONGEST_LINE) -> list[str]:
    """Return the cells of a record without spaces around them, and without empty ones beyond a width."""
    try:
        cells = [cell.strip() for cell in next(csv.reader([record[1]], delimiter=delimiter))]
    except csv.Error as error:  # an odd quote was inside a cell and did not open one
        raise InputError(f'Line {record[0]} has a quote (") inside a cell. Write the cell as "5"" pipe".') from error
    return cells if any(cells[width:]) else cells[:width]


def _rows_of_table(sample: list[Row], names: list[str], delimiter: str) -> tuple[dict[int, list[str]], list[str]]:
    """Return the cells of the rows of the table by their numbers, and notes on other lines."""
    width, rows, others = len(names), [], defaultdict[str, list[str]](list)
    for number, (line, text) in sample:
        cells = _cells((line, text), delimiter, width)
        if cells == names or not any(cells):
            others["that repeats the header" if any(cells) else "without values"].append(text)
        else:
            rows.append((number, line, text, cells))
    fewest = max(1, len(rows) - _N_LAST)
    while len(rows) > fewest and (what := _what_is_last([row[-1] for row in rows], width)):
        others[what].append(rows.pop()[2])
    require(rows, "There is a header but no rows with values.")
    for _, line, _, cells in rows:
        header = f"the header has {width} (delimiter: {delimiter!r})"
        require(len(cells) == width, f"Line {line} has {len(cells)} cells, {header}. Correct it, or set --delimiter.")
    return {row[0]: row[-1] for row in rows}, [_left_out(what, texts) for what, texts in others.items()]


def _left_out(what: str, texts: list[str]) -> str:
    return f"{count_of(len(texts), 'line')} {what} left out: {quoted(map(str.strip, texts), 2, 60)}."


def _what_is_last(rows: list[list[str]], width: int) -> str:
    """Return what the last line is if it is not a row: a footnote or a total."""
    *others, cells = rows
    filled = [place for place, cell in enumerate(cells) if cell]
    word = cells[filled[0]].strip(" :")
    if len(cells) < width or (len(filled) == 1 < width - 1 and not _NUMBER.match(word)):
        return "at the end that is not a row"
    is_level = any(row[filled[0] : filled[0] + 1] == [word] for row in others)
    return "at the end with totals" if _TOTAL.fullmatch(word) and not is_level else ""


def _detect_layout(records: list[Record], given: str | None) -> Layout:
    """Detect the delimiter, the header and the column names from the first records."""
    require(records, "The file is empty. Expected a header line with column names, then lines of values.")
    declared = _SEPARATOR_LINE.match(records[0][1])
    start = bool(declared)
    known = DELIMITERS.get(given, given) if given else declared[1] if declared else ""
    usable = not known or (len(known) == 1 and known not in '"\r\n')
    require(usable, f"--delimiter must be one character, tab or space; got {known!r}.", ParameterError)
    delimiter, width = _detect_delimiter(records[start:] or records, known or ",;\t| ")
    rows = [_cells(record, delimiter, width) for record in records]
    at = next((at for at in range(start, len(rows)) if _is_header(rows[at : at + 2], width)), start)
    names, below = rows[at], [row for row in rows[at + 1 :] if len(row) == width]
    if len(names) == width - 1 and below:  # rows have names, or a delimiter at their end
        names = ["", *names] if any(row[-1] for row in below) else [*names, ""]
    require(len(names) > 1, f"There is one column, {names[0][:60]!r}. If the cells have another --delimiter, set it.")
    notes = [f"Delimiter: {delimiter!r}."] if delimiter != "," else []
    notes += [_left_out("above the header", [text for _, text in records[start:at]])] if at > start else []
    if all(map(_NUMBER_NOT_YEAR.fullmatch, names)):
        notes.append("The first line has numbers only, and is read as column names. Add a header if it is a row.")
    unique = _unique([name.lstrip("\ufeff") or f"column_{place}" for place, name in enumerate(names, start=1)])
    renamed = [f"{name!r} is {new!r}" for new, name in zip(unique, names, strict=True) if name not in (new, "")]
    notes += [f"Repeated column names: the second {first_of(renamed, 3)}."] if renamed else []
    return delimiter, at + 1, unique, notes


def _detect_delimiter(records: list[Record], candidates: str) -> tuple[str, int]:
    """Return the delimiter that splits most of the records into the same number of cells, and this number."""

    def agreement(delimiter: str) -> tuple[float, int]:
        widths = Counter({1: 0})
        for record in records:
            with suppress(InputError):  # this delimiter leaves a line end outside of quotes
                widths[len(_cells(record, delimiter))] += 1
        width, times = widths.most_common(1)[0]
        score = times / len(records) - 0.5 if delimiter == " " else times  # a space only if there is no other
        return (score, width) if width > 1 else (0, 1)

    best = max(candidates, key=agreement)
    return best, agreement(best)[1]


def _is_header(rows: list[list[str]], width: int) -> bool:
    """Whether the first of two rows has column names: it is not a title, of which most cells are empty or missing."""
    cells, below = rows[0], rows[-1]
    if len(cells) == width - 1 and len(below) == width:  # a sentence with commas is followed by a header of words
        return any(map(_NUMBER.match, below))
    return len(cells) >= width and 2 * sum(map(bool, cells)) >= width + bool(cells[0])


def _unique(names: list[str]) -> list[str]:
    """Return different names: repeated ones get a number."""
    unique: dict[str, None] = {}
    numbers: defaultdict[str, count[int]] = defaultdict(lambda: count(2))
    for name in names:
        candidates = chain([name], (f"{name}_{number}" for number in numbers[name]))
        unique[next(one for one in candidates if one not in unique)] = None
    return list(unique)


def open_bytes(path: Path) -> Any:
    """Open a file, decompressed if it is gzipped."""
    with path.open("rb") as file:
        is_gzipped = file.read(2) == b"\x1f\x8b"
    return gzip.open(path) if is_gzipped else path.open("rb")


def possible_encodings(path: Path, given: str | None) -> Iterator[tuple[str, str]]:
    """Yield encodings with notes: the given one; or what the first bytes declare; or UTF-8, then a detected one."""
    with open_bytes(path) as file:
        declared = json.detect_encoding(file.read(4))
    is_utf8 = declared.startswith("utf-8")
    yield given or declared, "" if given or is_utf8 else f"Encoding: read as {declared.upper()}."
    if is_utf8 and not given:
        yield detected_encoding(path)


def detected_encoding(path: Path) -> tuple[str, str]:
    """Return the most plausible encoding of a file that is not UTF-8, and a note that shows a word of it."""
    with open_bytes(path) as file:
        lines = list(islice((line for line in file if not line.isascii()), _N_LINES))
    others = [line for line in lines if line.decode(errors="ignore").encode() != line]
    words = dict.fromkeys(word for line in others for word in _WORD.findall(line) if not word.isascii())
    long = [word for word in words if len(word) > 2]
    name = _most_plausible(long[:_N_WORDS])
    word = [*long, *words, b""][0].decode(name, "replace")[:40]
    is_mixed = len(others) < len(lines) and name not in _EAST_ASIAN  # of which short texts can be UTF-8 by chance
    require(not is_mixed, f"Some lines are UTF-8, others are not ({word!r}). Save the file in one encoding.")
    return name, f"Encoding: not UTF-8, read as {name}: {word!r} (override with --encoding)."


def _most_plausible(words: list[bytes]) -> str:
    from charset_normalizer import from_bytes

    sample = b"\n".join(words)
    high = [byte for byte in sample if byte >= 0x80]
    if not high:
        return "cp1252"  # signs such as € and °
    western = () if 2 * sum(byte < 0xA0 for byte in high) > len(high) else _WESTERN  # its letters are above
    candidates = (*western, *_OTHERS, *_EAST_ASIAN)
    found = from_bytes(sample, cp_isolation=list(candidates), threshold=0.6, enable_fallback=False)
    scores = {name: (match.chaos, -match.coherence) for match in found for name in match.could_be_from_charset}
    return min((name for name in candidates if name in scores), key=lambda name: scores[name], default="latin-1")
