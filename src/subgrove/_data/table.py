"""Typed columns from the user's tables.

Requirements this design meets:

- a numeric table is not copied: a float64 array, or a frame of float64 columns;
- every column has a kind (`numeric`, `ordered`, `nominal`), from its dtype or from the user;
- missing values are never dropped: they are NaN in numbers, code -1 among levels;
- new rows are read with the levels of training; an unseen level has code -2.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from typing import Any

import numpy as np
import numpy.typing as npt

from subgrove._core.kinds import KINDS, Rows
from subgrove._core.kinds import Codes as Codes
from subgrove._core.kinds import Floats as Floats
from subgrove._core.kinds import Kind as Kind
from subgrove._core.text import quote
from subgrove._data.columns import ColumnInfo as ColumnInfo
from subgrove._data.columns import check_numbers, reject_unusable, typed, values_like
from subgrove._data.from_containers import float_matrix, names_and_rows, untyped_column, untyped_columns
from subgrove.exceptions import InputError, LengthError, ParameterError


@dataclass(frozen=True, eq=False)
class Table:
    """Rows of typed columns.

    Attributes
    ----------
    columns : tuple of ColumnInfo
        In the order of the user's table.
    numbers : float array (n_rows, number of numeric and ordered columns)
        NaN where missing; ordered columns hold 1 for their first level, 2 for the next, and so on, and
        infinity for an unseen level; dates are microseconds since 1970. In any memory order.
    codes : int array (n_rows, number of nominal columns)
        Index of the level; -1 where missing, -2 where the level is unseen.
    unseen : mapping
        Column name -> levels that training did not have.
    places : tuple of int, or None
        Position of each column in `numbers` or `codes`, if these have other columns, too; None if they do not.
    clusters : int array (n_rows,), or None
        Cluster of each row, numbered from 0; rows of the same one are dependent. None if all rows are independent.
    """

    columns: tuple[ColumnInfo, ...]
    numbers: Floats
    codes: Codes
    unseen: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    places: tuple[int, ...] | None = None
    clusters: Rows | None = None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.numbers.shape[0])

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(column.name for column in self.columns)

    def positions(self) -> tuple[int, ...]:
        """Return the position of each column, in `codes` if nominal, in `numbers` otherwise."""
        return self._positions

    @cached_property
    def _positions(self) -> tuple[int, ...]:
        if self.places is not None:
            return self.places
        places, counts = [], {"codes": 0, "numbers": 0}
        for column in self.columns:
            where = "codes" if column.is_nominal else "numbers"
            places.append(counts[where])
            counts[where] += 1
        return tuple(places)

    def rows(self, rows: npt.NDArray[np.intp]) -> Table:
        """Return some rows; the table itself, if these are all rows in their order."""
        if len(rows) == self.n_rows and (rows == np.arange(self.n_rows)).all():
            return self
        clusters = None if self.clusters is None else self.clusters[rows]
        return Table(self.columns, self.numbers[rows], self.codes[rows], self.unseen, self.places, clusters)

    def without(self, names: Sequence[str]) -> Table:
        """Return the table without some columns; nothing is copied."""
        if not names:
            return self
        others = [pair for pair in zip(self.columns, self.positions(), strict=True) if pair[0].name not in names]
        columns, places = tuple(column for column, _ in others), tuple(at for _, at in others)
        unseen = {name: levels for name, levels in self.unseen.items() if name not in names}
        return Table(columns, self.numbers, self.codes, unseen, places, self.clusters)

    def with_clusters(self, clusters: Rows | None) -> Table:
        """Return the table with the clusters of its rows."""
        return self if clusters is None else replace(self, clusters=clusters)

    def __iter__(self) -> Iterator[TypedColumn]:
        for info, at in zip(self.columns, self.positions(), strict=True):
            yield TypedColumn(info, (self.codes if info.is_nominal else self.numbers)[:, at])

    def values(self, name: str) -> npt.NDArray[Any]:
        """Return the values of a column: numbers, or codes if it is nominal."""
        return self.series(name).values

    def series(self, name: str) -> TypedColumn:
        """Return one column."""
        place = self.names.index(name)
        info, at = self.columns[place], self.positions()[place]
        return TypedColumn(info, self.codes[:, at] if info.is_nominal else self.numbers[:, at])


@dataclass(frozen=True, eq=False)
class TypedColumn:
    """One column: `values` are floats (numeric, ordered) or codes (nominal)."""

    info: ColumnInfo
    values: npt.NDArray[Any]

    @property
    def missing(self) -> npt.NDArray[np.bool_]:
        """Rows without a value."""
        return np.asarray(self.values < 0 if self.info.is_nominal else np.isnan(self.values))


@dataclass(frozen=True, eq=False)
class _Reads:
    """Containers that are read once, by their identity, and the tables that were read from them."""

    containers: dict[int, Any] = field(default_factory=dict)  # so that no other object gets their identity
    tables: dict[int, Table] = field(default_factory=dict)  # with their own kinds and levels
    like: dict[int, list[Table]] = field(default_factory=dict)  # with those of training
    kept: dict[int, dict[Any, Any]] = field(default_factory=dict)  # what was computed from the tables


_reads: ContextVar[_Reads | None] = ContextVar("subgrove_reads", default=None)


@contextmanager
def read_once(*containers: Any, table: Table | None = None) -> Iterator[None]:
    """Read each of these containers once while the context lasts; they must not change meanwhile.

    `table` is the first of them, if it has been read already. What an outer context has read is not read again, and
    what is read of its containers remains known to it.
    """
    reads = _reads.get() or _Reads()
    added = {id(container): container for container in containers if id(container) not in reads.containers}
    reads.containers.update(added)
    if table is not None:
        reads.tables[id(containers[0])] = table
    token = _reads.set(reads)
    try:
        yield
    finally:
        _reads.reset(token)
        for known in (reads.containers, reads.tables, reads.like, reads.kept):
            for own in added:
                known.pop(own, None)


def kept_with(table: Table) -> dict[Any, Any]:
    """Return what is kept for several calls with a table that was read once; for another table a new dict."""
    reads = _reads.get() or _Reads()
    own = next((own for own, known in reads.tables.items() if known is table), None)
    return {} if own is None else reads.kept.setdefault(own, {})


def read_table(X: Any, *, kinds: Mapping[str, Kind] | None = None, argument: str = "X", lenient: bool = False) -> Table:
    """Read the user's table; `kinds` overrides the kinds of the dtypes.

    `lenient` accepts columns that no tree can use: those without a value, and those with very many levels.
    """
    reads = _reads.get()
    if reads is None or kinds or id(X) not in reads.containers:
        table = _read_table(X, kinds, argument)
    else:
        table = reads.tables.get(id(X)) or _read_table(X, None, argument)
        reads.tables[id(X)] = table
    if not lenient:
        for column in table:
            reject_unusable(column.info, column.values, argument)
    return table


def _read_table(X: Any, kinds: Mapping[str, Kind] | None, argument: str) -> Table:
    matrix, names = float_matrix(X, argument)
    if matrix is not None and not kinds:
        _reject_empty(matrix.shape[0], len(names), argument)
        return _from_matrix(matrix, names, argument)
    columns = untyped_columns(X, argument)
    _reject_empty(names_and_rows(X)[1], len(columns), argument)
    if kinds is not None and not isinstance(kinds, Mapping):
        raise ParameterError(
            f"kinds must map column names of {argument} to {', '.join(KINDS)}; got {type(kinds).__name__}."
        )
    wanted = kinds or {}
    unknown = [name for name in wanted if name not in columns]
    if unknown:
        raise ParameterError(f"kinds names {quote(unknown)}, but {argument} has the columns {quote(columns)}.")
    read = [typed(column, name, wanted.get(name), argument) for name, column in columns.items()]
    return stack_columns(read, len(read[0][1]))


def read_like(X: Any, columns: Sequence[ColumnInfo], *, argument: str = "X") -> Table:
    """Read new rows with the kinds and levels of the training `columns` (others are ignored)."""
    reads = _reads.get()
    if reads is None or id(X) not in reads.containers:
        return _read_like(X, columns, argument)
    wanted = tuple(columns)
    own, like = reads.tables.get(id(X)), reads.like.setdefault(id(X), [])
    for known in like if own is None else [own, *like]:
        part = known.without([column.name for column in known.columns if column not in wanted])
        if part.columns == wanted:
            return part
    like.append(_read_like(X, columns, argument))
    return like[-1]


def _read_like(X: Any, columns: Sequence[ColumnInfo], argument: str) -> Table:
    matrix, names = float_matrix(X, argument)
    wanted = tuple(column.name for column in columns)
    plain = all(column.kind == "numeric" and not column.is_date for column in columns)
    if matrix is not None and names == wanted and plain:
        return _from_matrix(matrix, names, argument)
    untyped = untyped_columns(X, argument, only=wanted)
    absent = [name for name in wanted if name not in untyped]
    present, n_rows = names_and_rows(X)
    if absent:
        raise InputError(
            f"{argument} lacks {quote(absent)}, which training had. It has {quote(present)}. "
            f"Pass a table with the same column names."
        )
    read = [(column, *values_like(untyped[column.name], column, argument)) for column in columns]
    unseen = {column.name: new_levels for column, _, new_levels in read if new_levels}
    return stack_columns([(column, values) for column, values, _ in read], n_rows, unseen)


def read_series(x: Any, *, n_rows: int | None = None, kind: Kind | None = None, argument: str = "x") -> TypedColumn:
    """Read one column that is not in a table (a Series, a list or a 1-d array)."""
    column, name = untyped_column(x, argument)
    if n_rows is not None and len(column) != n_rows:
        raise LengthError(
            f"{argument} has {len(column)} values, but X has {n_rows} rows. Pass one value for each row of X."
        )
    info, values = typed(column, name or argument, kind, argument)
    reject_unusable(info, values, argument)
    return TypedColumn(info, values)


def _from_matrix(matrix: Floats, names: tuple[str, ...], argument: str) -> Table:
    # A finite sum proves that a column has no missing or infinite values, without a temporary array.
    with np.errstate(over="ignore", invalid="ignore"):
        doubtful = np.flatnonzero(~np.isfinite(matrix.sum(axis=0)))
    has_missing = {names[at]: check_numbers(matrix[:, at], names[at], argument) for at in doubtful}
    columns = tuple(ColumnInfo(name, "numeric", has_missing=has_missing.get(name, False)) for name in names)
    return Table(columns, matrix, np.empty((matrix.shape[0], 0), dtype=np.int32))


def _reject_empty(n_rows: int, n_columns: int, argument: str) -> None:
    if n_rows == 0 or n_columns == 0:
        raise InputError(f"{argument} has {n_rows} rows and {n_columns} columns; at least one of each is needed.")


def stack_columns(
    columns: Sequence[tuple[ColumnInfo, npt.NDArray[Any]]],
    n_rows: int,
    unseen: Mapping[str, tuple[str, ...]] | None = None,
) -> Table:
    """Return a table of these columns; a copy, in which each column is contiguous in memory."""
    numbers = _matrix([values for info, values in columns if not info.is_nominal], n_rows, np.float64)
    codes = _matrix([values for info, values in columns if info.is_nominal], n_rows, np.int32)
    return Table(tuple(info for info, _ in columns), numbers, codes, unseen or {})


def _matrix(columns: list[npt.NDArray[Any]], n_rows: int, dtype: Any) -> npt.NDArray[Any]:
    """Return columns as a matrix; each is contiguous in memory."""
    stacked = np.empty((len(columns), n_rows), dtype=dtype)
    for line, values in zip(stacked, columns, strict=True):
        line[:] = values
    return stacked.T


_DIGITS = 32
_SHARED = 0.05  # share of rows in common, beyond chance, from which tables overlap
_ROUNDED = 6  # digits of predictions that identify a model; further ones depend on the batch size


def fingerprint(table: Table) -> str:
    """Return 32 hexadecimal digits that depend on the columns: their order, names, kinds, levels and values.

    One column is copied at a time. Nominal levels are identified by name, and only those that occur: containers differ
    in the order of levels, and in whether they have unused ones.
    """
    digest = sha256()  # computed in hardware on most processors
    digest.update(_text(str(table.n_rows)))
    for column in table:
        levels, values = _levels_and_values(column.info, column.values)
        for part in (column.info.name, column.info.kind, str(len(levels)), *levels):
            digest.update(_text(part))
        digest.update(values.data)
    return digest.hexdigest()[:_DIGITS]


def shared_rows(table: Table, others: Table) -> float:
    """Return the share of rows of a table that are also in another one; 0 if chance explains it.

    Tables of few distinct rows have many in common by chance: about as many as there are duplicates within one.
    """
    if set(table.names) != set(others.names):
        return 0.0
    numbers = [column.name for column in table.columns if column.kind == "numeric" and not column.has_missing]
    for name in numbers[:1]:  # in large tables of numbers, one column shows that no rows are shared
        if not np.isin(table.values(name), others.values(name)).any():
            return 0.0
    own, theirs = row_hashes(table), row_hashes(others)
    if np.array_equal(own, theirs):
        return 1.0
    share = float(np.isin(own, theirs).mean())
    counts = np.unique(theirs, return_counts=True)[1]
    chance = float(counts[counts > 1].sum() / len(theirs))
    noise = 4 * np.sqrt(chance * (1 - chance) / len(own))
    return share if share - chance > max(_SHARED, noise) else 0.0


def row_hashes(table: Table) -> npt.NDArray[np.uint64]:
    """Return a hash of each row that does not depend on the order of columns and levels."""
    hashes = np.zeros(table.n_rows, dtype=np.uint64)
    for name in sorted(table.names):
        column = table.series(name)
        if column.info.is_nominal:
            of_levels = [int(sha256(_text(level)).hexdigest()[:16], 16) for level in column.info.levels]
            bits = np.array([*of_levels, 1, 2], dtype=np.uint64)[column.values]
        else:
            bits = _levels_and_values(column.info, column.values)[1].view(np.uint64)
        hashes = (hashes ^ bits) * np.uint64(0x9E3779B97F4A7C15)
        hashes ^= hashes >> np.uint64(29)
    return hashes


def _levels_and_values(column: ColumnInfo, values: npt.NDArray[Any]) -> tuple[tuple[str, ...], npt.NDArray[Any]]:
    """Return levels and contiguous values that do not depend on the container or on the byte order."""
    if not column.is_nominal:
        numbers = np.array(values, dtype="<f8")
        numbers += 0.0  # -0 becomes 0
        numbers[np.isnan(numbers)] = np.nan  # NaN has many bit patterns
        return column.levels, numbers
    present = sorted(column.levels[code] for code in np.unique(values) if code >= 0)
    place = {level: index for index, level in enumerate(present)}
    # Codes below 0, for missing and unseen values, index from the end.
    codes = np.array([*(place.get(level, 0) for level in column.levels), -2, -1], dtype="<i4")
    return tuple(present), codes[values]


def _text(text: str) -> bytes:
    """Return the text after its length, so that different lists of texts give different bytes."""
    encoded = text.encode("utf-8", "surrogatepass")
    return len(encoded).to_bytes(8, "little") + encoded


def digest_of(predictions: npt.NDArray[Any]) -> str:
    """Return a fingerprint of predictions that ignores rounding errors."""
    if predictions.dtype.kind not in "iufb":
        return exact_digest(predictions)
    return sha256(rounded(predictions.astype(np.float64))).hexdigest()[:16]


def exact_digest(values: npt.NDArray[Any]) -> str:
    """Return a fingerprint of numbers or labels."""
    return sha256(str(values.tolist()).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def rounded(values: npt.NDArray[np.float64]) -> bytes:
    """Return numbers rounded relative to the largest of them, with its order of magnitude, as bytes."""
    largest = float(np.abs(values[np.isfinite(values)]).max(initial=0.0))
    unit = 10.0 ** np.floor(np.log10(largest)) if largest > 0 else 1.0
    numbers = np.round(values / unit, _ROUNDED) + 0.0  # -0 becomes 0
    return repr(float(unit)).encode() + np.ascontiguousarray(numbers).tobytes()
