"""The encoding of a text file: declared by the user or a byte order mark, else UTF-8, else detected."""

from __future__ import annotations

import codecs
import gzip
import json
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

from subgrove.exceptions import InputError, ParameterError

_HEAD = 1 << 16  # bytes
_CONTROL = re.compile(rb"[\x01-\x08\x0e-\x1a\x1c-\x1f]")
_WORD = re.compile(rb"[a-zA-Z\x80-\xff]{3,}")
# Candidates for text that is not UTF-8; of equally plausible ones the first is taken.
_WESTERN, _EAST_ASIAN = ("cp1252", "cp1250", "cp1254"), ("gb18030", "cp932", "big5", "euc_jp", "cp949")
_OTHERS = ("mac_roman", "cp850", "cp1251", "koi8_r", "cp1253", "cp1255", "cp1256", "cp852", "cp866")


@contextmanager
def open_bytes(path: Path, gzipped: bool) -> Iterator[IO[bytes]]:
    """Open a file, decompressed."""
    try:
        with cast(IO[bytes], gzip.open(path)) if gzipped else path.open("rb") as file:
            yield file
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{path} is damaged, decompression failed: {error}.") from error


def binary_error(path: Path, line: int) -> InputError:
    """Return the error for a file that is not text."""
    formats = "CSV, TSV, Excel and Parquet files can be read"
    return InputError(f"{path} is not a text file: it has binary content (near line {line}). {formats}.")


def declared_encoding(path: Path, gzipped: bool, given: str | None) -> tuple[str, str]:
    """Return the encoding that the user, a byte order mark, or the zeros of UTF-16 declare, and a note; else UTF-8."""
    if given is not None:
        try:
            return codecs.lookup(given).name, ""
        except LookupError as error:
            raise ParameterError(f"--encoding {given!r} is unknown. Use a name such as cp1252 or utf-16.") from error
    with open_bytes(path, gzipped) as file:
        head = file.read(_HEAD)
    name = json.detect_encoding(head)
    if not name.startswith("utf-8"):
        return name, f"read as {name.upper()}{', without a byte order mark' if name.endswith('e') else ''}"
    if len(_CONTROL.findall(head)) > 0.01 * len(head) + 1:
        raise binary_error(path, 1)
    return name, ""


def detected_encoding(path: Path, gzipped: bool) -> tuple[str, str]:
    """Return the most plausible encoding of a file that is not UTF-8, and a note with a word of it."""
    first: dict[bool, int] = {}  # whether a line is UTF-8 -> the first such line
    sample = b""
    with open_bytes(path, gzipped) as file:
        for number, line in enumerate(file, start=1):
            if not line.isascii():
                is_utf8 = _decodes(line, "utf-8")
                first.setdefault(is_utf8, number)
                sample += b"" if is_utf8 or len(sample) > _HEAD else line
    name = _most_plausible(sample)
    if len(first) > 1 and name not in _EAST_ASIAN:  # of which short texts can be UTF-8 by chance
        lines = f"line {first[True]} is UTF-8, line {first[False]} is not"
        raise InputError(f"{path} mixes encodings: {lines}. Save it in one encoding, preferably UTF-8.")
    cells = re.split(r"[\r\n,;\t|]", sample.decode(name))
    example = next(cell for cell in cells if not cell.isascii())[:40]
    return name, f"not UTF-8 (line {first[False]}), read as {name}: {example!r} (override with --encoding)"


def _most_plausible(sample: bytes) -> str:
    from charset_normalizer import from_bytes

    sample = b"\n".join(dict.fromkeys(cell for cell in re.split(rb"[\r\n\t,;]", sample) if not cell.isascii()))
    high = [byte for word in _WORD.findall(sample) for byte in word if byte >= 0x80]
    if not high and _decodes(sample, "cp1252"):
        return "cp1252"  # signs such as € and °
    western = () if 2 * sum(byte < 0xA0 for byte in high) > len(high) else _WESTERN  # its letters are above
    candidates = (*western, *_OTHERS, *_EAST_ASIAN)
    found = from_bytes(sample, cp_isolation=list(candidates), threshold=0.6, enable_fallback=False)
    names = {name: (match.chaos, -match.coherence) for match in found for name in match.could_be_from_charset}
    ranked = sorted((names[name], at) for at, name in enumerate(candidates) if name in names)
    return candidates[ranked[0][1]] if ranked else "latin-1"


def _decodes(text: bytes, encoding: str) -> bool:
    try:
        text.decode(encoding)
    except UnicodeDecodeError:
        return False
    return True
