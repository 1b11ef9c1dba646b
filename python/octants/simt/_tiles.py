# type: ignore  (in the kernel language annotations are values, and what is static decides the types)
"""Tiles: square matrices in the registers of a subgroup. A lane has the row of its number; lanes behind the last row have nothing to do.

All lanes of the subgroup make each call. Rows are members of a struct, so that nothing is in memory; columns are known while compiling. What lanes tell each
other goes by shuffles, in flow that all lanes share.
"""

from __future__ import annotations

from .. import _session
from .._language import cast, sqrt, static
from .._matrix.struct import dataclass
from .._matrix.types import vector
from .._primitive_types import f32, f64
from .._session import func
from ..types import Template
from ._compile_time import refuse_type, refuse_upper
from ._primitives import invocation_id, shuffle


@func
def _rows_end(begin, end, extent, size: Template):
    """Where the rows end that a tile has of an array: with those asked for, of the array, and of the tile."""
    return min(end, extent, begin + size)


def _tile_struct(size: int, dtype):
    """The type of tiles of ``size`` rows of ``dtype``."""

    class Tile:
        """A square matrix in the registers of a subgroup: a lane has the row of its number."""

        r: vector(size, dtype, unpacked=True)

        @func
        def eye_(self):
            """Makes it the identity."""
            lane = invocation_id()
            for j in static(range(size)):
                self.r[j] = cast(lane == j, dtype)

        @func
        def cholesky_(self, eps):
            """Makes the lower triangle the one whose product with its transpose is this symmetric matrix. What is above it has no meaning.

            A pivot is the root of ``eps`` where it would be that of less; of a row, that is the ``eps`` of the row's lane.
            """
            lane = invocation_id()
            for k in static(range(size)):
                pivot = shuffle(sqrt(max(self.r[k], cast(eps, dtype))), k)
                factor = cast(0, dtype)
                if lane > k:
                    factor = self.r[k] / pivot
                    self.r[k] = factor
                elif lane == k:
                    self.r[k] = pivot
                others = [shuffle(factor, j) for j in static(range(k + 1, size))]
                for j in static(range(k + 1, size)):
                    self.r[j] -= factor * others[j - k - 1]

        @func
        def solve_triangular_(self, B: Template, lower: Template = True):
            """Makes ``B`` the solution X of X·Lᵀ = B, where L is the lower triangle of this tile. It divides by the diagonal, whatever it is."""
            if static(not lower):
                static(refuse_upper(size))
            B._divide_by(self)

        @func
        def _divide_by(self, L):
            for k in static(range(size)):
                solved = self.r[k] / shuffle(L.r[k], k)
                self.r[k] = solved
                others = [shuffle(L.r[k], j) for j in static(range(k + 1, size))]
                for j in static(range(k + 1, size)):
                    self.r[j] -= solved * others[j - k - 1]

        @func
        def _subtract_outer(self, a, b):
            """``self -= outer(a, b)``, where a lane has an entry of both vectors."""
            own, other = cast(a, dtype), cast(b, dtype)
            for j in static(range(size)):
                self.r[j] -= own * shuffle(other, j)

        @func
        def _load(self, arr: Template, batch, row_begin, row_end, column_begin, column_end):
            """``self[:] = arr[row_begin:row_end, column_begin:column_end]``, or ``arr[batch, ...]``.

            Rows behind the end stay as they are; columns behind it are 0.
            """
            first = static(0 if batch is None else 1)
            row = row_begin + invocation_id()
            columns = min(column_end, arr.shape[first + 1]) - column_begin
            if row < _rows_end(row_begin, row_end, arr.shape[first], size):
                for j in static(range(size)):
                    self.r[j] = 0
                    if j < columns:
                        if static(batch is None):
                            self.r[j] = cast(arr[row, column_begin + j], dtype)
                        else:
                            self.r[j] = cast(arr[batch, row, column_begin + j], dtype)

        @func
        def _store(self, arr: Template, batch, row_begin, row_end, column_begin, column_end):
            """``arr[row_begin:row_end, column_begin:column_end] = self``, or ``arr[batch, ...]``: what there is of both."""
            first = static(0 if batch is None else 1)
            row = row_begin + invocation_id()
            columns = min(column_end, arr.shape[first + 1]) - column_begin
            if row < _rows_end(row_begin, row_end, arr.shape[first], size):
                for j in static(range(size)):
                    if j < columns:
                        if static(batch is None):
                            arr[row, column_begin + j] = self.r[j]
                        else:
                            arr[batch, row, column_begin + j] = self.r[j]

    Tile.__name__ = f"Tile{size}x{size}"
    return dataclass(Tile)


@func
def column(arr: Template, batch, row_begin, row_end, at):
    """``arr[row_begin:row_end, at]``, or ``arr[batch, ...]``: an entry on each lane, and 0 behind the end."""
    first = static(0 if batch is None else 1)
    row = row_begin + invocation_id()
    entry = cast(0, static(arr.dtype))
    if row < min(row_end, arr.shape[first]):
        if static(batch is None):
            entry = arr[row, at]
        else:
            entry = arr[batch, row, at]
    return entry


class TileType:
    """Square matrices in the registers of a subgroup: ``Tile16x16`` or ``Tile32x32``."""

    def __init__(self, size: int):
        #: How many rows, and columns, a tile has.
        self.SIZE = size
        self._structs = {dtype: _tile_struct(size, dtype) for dtype in (f32, f64)}

    @func
    def zeros(self, dtype: Template = None):
        """A tile of zeros, of ``f32`` or ``f64``; the session's type of reals, if nothing is said."""
        of = static(_session.cfg.default_fp if dtype is None else dtype)
        if static(of not in self._structs):
            static(refuse_type(self.SIZE, of))
        return static(self._structs[of])()

    @func
    def eye(self, dtype: Template = None):
        """The identity, of ``f32`` or ``f64``; the session's type of reals, if nothing is said."""
        tile = self.zeros(dtype)
        tile.eye_()
        return tile

    def __repr__(self):
        return f"<oc.simt.Tile{self.SIZE}x{self.SIZE}>"


Tile16x16 = TileType(16)
Tile32x32 = TileType(32)
