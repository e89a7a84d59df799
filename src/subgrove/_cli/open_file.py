"""Open a file: check that it can be read, detect its format and the encoding of its text.

The format is detected from the content, not from the name: a Parquet file called .csv is read as Parquet, and an image
called .csv is rejected.
"""

from __future__ import annotations

import codecs
import gzip
import os
import re
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal, cast

from subgrove.exceptions import InputError

BLOCK = 1 << 20
LONGEST_LINE = 16 << 20  # bytes of a line or a quoted cell
_HEAD = 4096  # bytes that the format is detected from
_OTHER_FORMATS = {
    b"PK\x03\x04": "a zip archive or an Excel workbook",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook",
    b"BZh": "compressed by bzip2",
    b"\xfd7zXZ": "compressed by xz",
    b"\x28\xb5\x2f\xfd": "compressed by zstd",
    b"ARROW1": "an Arrow (Feather) file",
    b"SQLite format 3": "an SQLite database",
    b"%PDF": "a PDF document",
}
_NOT_UTF8 = re.compile("[\udc80-\udcff]")  # bytes that are not UTF-8, as Python's surrogateescape decodes them
_MULTIBYTE = re.compile("[^\x00-\x7f\udc80-\udcff]")  # characters that were several bytes of UTF-8
_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_CONTROL = re.compile(rb"[\x01-\x08\x0e-\x1a\x1c-\x1f]")


@dataclass(frozen=True)
class DataFile:
    """A readable file, its format, and whether it is compressed by gzip."""

    path: Path
    format: Literal["text", "parquet"]
    gzipped: bool = False

    def open(self) -> IO[bytes]:
        """Open the file for reading its uncompressed bytes."""
        return cast(IO[bytes], gzip.open(self.path, "rb")) if self.gzipped else self.path.open("rb")


@dataclass(frozen=True)
class TextEncoding:
    """An encoding by Python's name, and a note for the user where it was guessed."""

    name: str
    note: str = ""


def open_data_file(path: Path) -> DataFile:
    """Check that a file is readable, and detect its format."""
    check_readable(path)
    with path.open("rb") as file:
        head = file.read(_HEAD)
    if not head:
        raise InputError(f"{path} is empty. Expected a header line with column names, then lines of values.")
    gzipped = head[:2] == b"\x1f\x8b"
    if gzipped:
        head = _uncompressed_head(path)
    if head[:4] == b"PAR1":
        return DataFile(path, "parquet", gzipped)
    for mark, what in _OTHER_FORMATS.items():
        if head.startswith(mark):
            raise InputError(f"{path} is {what}. Save it as CSV or Parquet, and pass that file.")
    return DataFile(path, "text", gzipped)


def check_readable(path: Path) -> None:
    """Reject a path that is not a readable file."""
    try:
        if not path.exists():
            raise InputError(f"There is no file {path}. Check the name and the folder (current folder: {Path.cwd()}).")
        if path.is_dir():
            raise InputError(f"{path} is a folder. Pass a file in it.")
    except OSError as error:
        raise InputError(f"{str(path)[:80]!r} is not a valid path: {error.strerror}.") from error
    if not os.access(path, os.R_OK):
        raise InputError(f"{path}: permission to read denied. Change its permissions, or copy it.")
    if not path.is_file():
        raise InputError(f"{path} is not a regular file. It is read twice, so save the rows to a file first.")


def _uncompressed_head(path: Path) -> bytes:
    try:
        with gzip.open(path, "rb") as file:
            head = file.read(_HEAD)
    except (OSError, EOFError) as error:
        raise InputError(f"{path} looks compressed by gzip but cannot be decompressed: {error}.") from error
    if not head:
        raise InputError(f"{path} is empty after decompression.")
    return head


def detect_encoding(file: DataFile) -> TextEncoding:
    """Return UTF-8, UTF-16 or UTF-32, or Windows-1252 where the bytes are not UTF-8; reject binary files."""
    try:
        with file.open() as stream:
            block = stream.read(BLOCK)
            encoding = _encoding_of_head(block)
            if encoding is not None:
                return encoding
            scan = _EncodingScan(file.path)
            while block:
                scan.add(block)
                block = stream.read(BLOCK)
            return scan.result()
    except (EOFError, zlib.error) as error:
        raise damaged(file.path, error) from error


def damaged(path: Path, error: Exception) -> InputError:
    """Return the error for a compressed file that is cut off or corrupt."""
    return InputError(f"{path} is damaged, decompression failed: {error}.")


def _encoding_of_head(head: bytes) -> TextEncoding | None:
    """Return the encoding that a byte order mark, or the zeros of UTF-16, reveal."""
    for mark, name in _BYTE_ORDER_MARKS:
        if head.startswith(mark):
            return TextEncoding(name, "" if name == "utf-8-sig" else f"read as {name.upper()}")
    pairs = head[:2000]
    if len(pairs) >= 8 and b"\0" in pairs:
        for name, high, low in (("utf-16-le", pairs[1::2], pairs[::2]), ("utf-16-be", pairs[::2], pairs[1::2])):
            if high.count(0) > 0.9 * len(high) and not low.count(0):
                return TextEncoding(name, f"read as {name.upper()}, without a byte order mark")
    return None


class _EncodingScan:
    """State of the detection after some blocks of a file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        self.lines = self.since_line_end = 0
        self.utf8_line = self.other_line = 0  # first lines with multi-byte UTF-8, and with bytes that are not UTF-8

    def add(self, block: bytes) -> None:
        """Scan one more block."""
        self._reject_binary(block)
        if not block.isascii() or self.decoder.getstate()[0]:
            text = self.decoder.decode(block)
            self.utf8_line = self.utf8_line or self._line_of(_MULTIBYTE.search(text), text)
            self.other_line = self.other_line or self._line_of(_NOT_UTF8.search(text), text)
            if self.utf8_line and self.other_line:
                raise InputError(
                    f"{self.path} mixes encodings: line {self.utf8_line} is UTF-8, line {self.other_line} is not. "
                    f"Save it in one encoding, preferably UTF-8."
                )
        self.lines += block.count(b"\n")
        end = max(block.rfind(b"\n"), block.rfind(b"\r"))
        self.since_line_end = len(block) - end - 1 if end >= 0 else self.since_line_end + len(block)
        if self.since_line_end > LONGEST_LINE:
            raise InputError(
                f"{self.path} has a line of more than {LONGEST_LINE >> 20} MB (line {self.lines + 1}). "
                f"Expected a table with one line per row."
            )

    def result(self) -> TextEncoding:
        """Return the encoding of the whole file."""
        if self.other_line or self.decoder.getstate()[0]:
            line = self.other_line or self.lines
            return TextEncoding("cp1252", f"not UTF-8 (line {line}); read as Windows-1252 (Latin 1)")
        return TextEncoding("utf-8")

    def _reject_binary(self, block: bytes) -> None:
        if b"\0" in block or len(_CONTROL.findall(block[:65536])) > 0.01 * min(len(block), 65536) + 1:
            raise InputError(
                f"{self.path} is not a text file: it has binary content (near line {self.lines + 1}). "
                f"CSV, TSV and Parquet files can be read."
            )

    def _line_of(self, match: re.Match[str] | None, text: str) -> int:
        return self.lines + 1 + text.count("\n", 0, match.start()) if match else 0
