"""Sparse matrices in compressed form, as numpy arrays, and calculating with them. Knows no session and no kernels."""

from __future__ import annotations

import numpy

from ..exceptions import OctantsRuntimeError


class Compressed:
    """A sparse matrix, column by column or row by row.

    *Lines* are its columns or its rows. Line ``k`` has the entries ``starts[k]`` to ``starts[k + 1]``; ``places`` says where in the line each of them is, in
    order and none twice.
    """

    __slots__ = ("by_rows", "places", "shape", "starts", "values")

    def __init__(
        self,
        shape: tuple[int, int],
        by_rows: bool,
        starts: numpy.ndarray,
        places: numpy.ndarray,
        values: numpy.ndarray,
    ):
        self.shape = shape
        self.by_rows = by_rows
        self.starts = starts
        self.places = places
        self.values = values

    @property
    def line_count(self) -> int:
        """How many lines there are."""
        return self.shape[0] if self.by_rows else self.shape[1]

    def triplets(self) -> tuple[numpy.ndarray, numpy.ndarray, numpy.ndarray]:
        """Rows, columns and values of the entries, in the order of memory."""
        lines = numpy.repeat(numpy.arange(self.line_count), numpy.diff(self.starts))
        return (lines, self.places, self.values) if self.by_rows else (self.places, lines, self.values)

    def ordered(self, by_rows: bool) -> Compressed:
        """The same matrix, by rows or by columns."""
        if by_rows == self.by_rows:
            return self
        rows, columns, values = self.triplets()
        lines, places = (rows, columns) if by_rows else (columns, rows)
        # Entries of a line stay in the order of the lines that they come from.
        order = numpy.argsort(lines, kind="stable")
        count = self.shape[0] if by_rows else self.shape[1]
        return Compressed(self.shape, by_rows, _starts(lines, count), places[order].astype(numpy.int32), values[order])

    def transposed(self) -> Compressed:
        """The transpose, in the same order."""
        rows, columns = self.shape
        flipped = Compressed((columns, rows), not self.by_rows, self.starts, self.places, self.values)
        return flipped.ordered(self.by_rows)

    def with_values(self, values: numpy.ndarray) -> Compressed:
        """The same places with other values."""
        return Compressed(self.shape, self.by_rows, self.starts, self.places, values)

    def has_places_of(self, other: Compressed) -> bool:
        """Whether entries are in the same places, in the same order."""
        return (
            self.by_rows == other.by_rows
            and numpy.array_equal(self.starts, other.starts)
            and numpy.array_equal(self.places, other.places)
        )

    def find(self, row: int, column: int) -> tuple[int, bool]:
        """The number of an entry, or the one that it would have, and whether it is there."""
        line, place = (row, column) if self.by_rows else (column, row)
        begin, end = int(self.starts[line]), int(self.starts[line + 1])
        at = begin + int(numpy.searchsorted(self.places[begin:end], place))
        return at, at < end and self.places[at] == place

    def set(self, row: int, column: int, value: float) -> None:
        """Sets an entry, which it makes if it is not there."""
        at, is_there = self.find(row, column)
        if not is_there:
            line, place = (row, column) if self.by_rows else (column, row)
            self.places = numpy.insert(self.places, at, place)
            self.values = numpy.insert(self.values, at, 0)
            self.starts = self.starts.copy()
            self.starts[line + 1 :] += 1
        self.values[at] = value

    def plus(self, other: Compressed, sign: int) -> Compressed:
        """The sum, or the difference."""
        if self.has_places_of(other):
            return self.with_values(self.values + sign * other.values.astype(self.values.dtype))
        rows, columns, values = self.triplets()
        other_rows, other_columns, other_values = other.triplets()
        return _added_up(
            self.shape,
            self.by_rows,
            numpy.concatenate([rows, other_rows]),
            numpy.concatenate([columns, other_columns]),
            numpy.concatenate([values, sign * other_values.astype(values.dtype)]),
        )

    def times_entries(self, other: Compressed) -> Compressed:
        """The product entry by entry."""
        other = other.ordered(self.by_rows)
        common, own, others = numpy.intersect1d(self._keys(), other._keys(), True, True)
        lines, places = numpy.divmod(common, max(1, self._line_length()))
        values = self.values[own] * other.values[others].astype(self.values.dtype)
        starts = _starts(lines, self.line_count)
        return Compressed(self.shape, self.by_rows, starts, places.astype(numpy.int32), values)

    def times(self, other: Compressed) -> Compressed:
        """The product of matrices."""
        rows, inner, values = self.triplets()
        right = other.ordered(True)
        # Each entry meets a row of the right factor.
        counts = numpy.diff(right.starts)[inner]
        before = numpy.repeat(numpy.cumsum(counts) - counts, counts)
        met = numpy.repeat(right.starts[inner], counts) + numpy.arange(counts.sum()) - before
        # In double precision, as they are added up.
        products = numpy.repeat(values.astype(numpy.float64), counts) * right.values[met]
        shape = (self.shape[0], other.shape[1])
        made = _added_up(shape, self.by_rows, numpy.repeat(rows, counts), right.places[met], products)
        return made.with_values(made.values.astype(values.dtype))

    def _line_length(self) -> int:
        return self.shape[1] if self.by_rows else self.shape[0]

    def _keys(self) -> numpy.ndarray:
        """Numbers by which entries are told apart, and in order."""
        lines = numpy.repeat(numpy.arange(self.line_count), numpy.diff(self.starts))
        return lines * self._line_length() + self.places


def empty(shape: tuple[int, int], by_rows: bool, dtype) -> Compressed:
    """A matrix without entries."""
    none = numpy.zeros(0, numpy.int32)
    return of_triplets(shape, by_rows, none, none, numpy.zeros(0, dtype))


def of_triplets(shape: tuple[int, int], by_rows: bool, rows, columns, values) -> Compressed:
    """The matrix with the sums of the values of each place, which are the same in whatever order the triplets come."""
    if len(values) >= 1 << 31:
        raise OctantsRuntimeError(f"a sparse matrix has fewer than 2**31 entries; {len(values)} were given")
    for name, given, extent in (("row", rows, shape[0]), ("column", columns, shape[1])):
        outside = numpy.flatnonzero((given < 0) | (given >= extent))
        if len(outside):
            raise OctantsRuntimeError(f"{name} {given[outside[0]]} is outside of a matrix of shape {shape}")
    return _added_up(shape, by_rows, rows, columns, values, by_value=True)


def _added_up(shape: tuple[int, int], by_rows: bool, rows, columns, values, by_value: bool = False) -> Compressed:
    """The matrix of triplets, in double precision. Those of a place are added up as they come, or in the order of their values."""
    lines, places = (rows, columns) if by_rows else (columns, rows)
    length = shape[1] if by_rows else shape[0]
    keys = lines.astype(numpy.int64) * length + places
    # Stable sorting merges what is in order already, such as the entries of two matrices and what a kernel's loop appends.
    order = numpy.argsort(keys, kind="stable")
    keys = keys[order]
    is_first = numpy.diff(keys, prepend=-1) != 0
    firsts = numpy.flatnonzero(is_first)
    if len(firsts) == len(keys):
        sums = values[order]
    else:
        if by_value:
            order = _by_value(order, keys, is_first, values)
        sums = numpy.add.reduceat(values[order].astype(numpy.float64), firsts).astype(values.dtype)
    lines, places = numpy.divmod(keys[firsts], max(1, length))
    count = shape[0] if by_rows else shape[1]
    return Compressed(shape, by_rows, _starts(lines, count), places.astype(numpy.int32), sums)


def _by_value(order, keys, is_first, values):
    """An order in which triplets of one place go by their values: only those that share a place are sorted again."""
    shares = ~is_first
    shares[:-1] |= ~is_first[1:]
    sharing = order[shares]
    order = order.copy()
    order[shares] = sharing[numpy.lexsort((values[sharing], keys[shares]))]
    return order


def _starts(lines: numpy.ndarray, count: int) -> numpy.ndarray:
    """Where each line begins, of the lines of the entries."""
    return numpy.concatenate([[0], numpy.cumsum(numpy.bincount(lines, minlength=count))]).astype(numpy.int64)
