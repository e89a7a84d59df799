"""Which encoding a text is in, found by looking at all of its bytes once, a block at a time."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass

from subgrove._cli.open_file import Source
from subgrove.exceptions import InputError

BLOCK = 1 << 20
LONGEST = 16 << 20  # bytes of a line or a quoted cell; what is longer is no table

_FOREIGN = re.compile("[\udc80-\udcff]")  # bytes that are no UTF-8, as Python's surrogateescape keeps them
_KNOWN = re.compile("[^\x00-\x7f\udc80-\udcff]")  # characters that were more than one byte of UTF-8
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_CONTROL = re.compile(rb"[\x01-\x08\x0e-\x1a\x1c-\x1f]")


@dataclass(frozen=True)
class Encoding:
    """An encoding by Python's name; `note` is for the user, where it was guessed."""

    name: str
    note: str = ""


def find_encoding(source: Source) -> Encoding:
    """UTF-8, UTF-16 or UTF-32 with a mark, or Windows-1252 where it cannot be UTF-8; binary files are refused."""
    try:
        with source.open() as file:
            start = file.read(BLOCK)
            marked = _by_mark(start)
            if marked is not None:
                return marked
            scan = _Scan(source)
            block = start
            while block:
                scan.see(block)
                block = file.read(BLOCK)
            return scan.result()
    except (EOFError, gzip_errors()) as error:
        raise InputError(f"{source.path} is damaged, it cannot be unpacked to its end: {error}.") from error


def gzip_errors() -> type[Exception]:
    """What a damaged gzip file raises besides EOFError."""
    import zlib

    return zlib.error


def _by_mark(start: bytes) -> Encoding | None:
    for mark, name in _MARKS:
        if start.startswith(mark):
            return Encoding(name, "" if name == "utf-8-sig" else f"read as {name.upper()}")
    pairs = start[:2000]
    if len(pairs) >= 8 and b"\0" in pairs:
        for name, zeros, others in (("utf-16-le", pairs[1::2], pairs[::2]), ("utf-16-be", pairs[::2], pairs[1::2])):
            if zeros.count(0) > 0.9 * len(zeros) and not others.count(0):
                return Encoding(name, f"read as {name.upper()}, without a mark at its start")
    return None


class _Scan:
    """What is known of a text after some blocks."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        self.lines = self.since_line_end = 0
        self.known = self.foreign = 0  # the line where such characters were first seen

    def see(self, block: bytes) -> None:
        """Look at one more block."""
        self._reject_binary(block)
        if not block.isascii() or self.decoder.getstate()[0]:
            text = self.decoder.decode(block)
            self.known = self.known or self._line_of(_KNOWN.search(text), text)
            self.foreign = self.foreign or self._line_of(_FOREIGN.search(text), text)
            if self.known and self.foreign:
                raise InputError(
                    f"{self.source.path} mixes encodings: line {self.known} is UTF-8, line {self.foreign} is not. "
                    f"Save it again in one encoding, best UTF-8."
                )
        self.lines += block.count(b"\n")
        end = max(block.rfind(b"\n"), block.rfind(b"\r"))
        self.since_line_end = len(block) - end - 1 if end >= 0 else self.since_line_end + len(block)
        if self.since_line_end > LONGEST:
            raise InputError(
                f"{self.source.path} has a line of more than {LONGEST >> 20} MB (line {self.lines + 1}). "
                f"It is no table of text; expected are lines of values."
            )

    def result(self) -> Encoding:
        """The encoding of all that was seen."""
        if self.foreign or self.decoder.getstate()[0]:
            return Encoding("cp1252", f"not UTF-8 (line {self.foreign or self.lines}); read as Windows-1252 (Latin 1)")
        return Encoding("utf-8")

    def _reject_binary(self, block: bytes) -> None:
        if b"\0" in block or len(_CONTROL.findall(block[:65536])) > 0.01 * min(len(block), 65536) + 1:
            raise InputError(
                f"{self.source.path} is no text: it has binary content (near line {self.lines + 1}). "
                f"CSV, TSV and Parquet files can be read."
            )

    def _line_of(self, found: re.Match[str] | None, text: str) -> int:
        return self.lines + 1 + text.count("\n", 0, found.start()) if found else 0
