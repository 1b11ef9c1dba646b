# type: ignore  (in the kernel language annotations are values, and what is static decides the types)
"""Tiles: square matrices in the registers of a subgroup. A lane has the row of its number; lanes behind the last row have nothing to do.

All lanes of the subgroup make each call. Rows are members of a struct, so that nothing is in memory; columns are known while compiling. What lanes tell each
other goes by shuffles, in flow that all lanes share.

Slices of arrays are cut to their arrays by the compiler, which passes where they begin and how many rows and columns are left.
"""

from __future__ import annotations

from .. import _session
from .._language import cast, sqrt, static
from .._matrix.struct import dataclass
from .._matrix.types import vector
from .._primitive_types import f32, f64
from .._session import func
from ..types import Template
from ._compile_time import refuse_cpu, refuse_type, refuse_upper
from ._primitives import invocation_id, shuffle


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
                pivot = sqrt(max(self.r[k], cast(eps, dtype)))
                inverse = shuffle(1 / pivot, k)
                factor = cast(0, dtype)
                if lane > k:
                    factor = self.r[k] * inverse
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
            lane = invocation_id()
            diagonal = cast(1, dtype)
            for k in static(range(size)):
                diagonal = L.r[k] if lane == k else diagonal
            # One division on each lane, of which a GPU's takes as long as a dozen products, in place of one for each column.
            inverse = 1 / diagonal
            for k in static(range(size)):
                solved = self.r[k] * shuffle(inverse, k)
                self.r[k] = solved
                others = [shuffle(L.r[k], j) for j in static(range(k + 1, size))]
                for j in static(range(k + 1, size)):
                    self.r[j] -= solved * others[j - k - 1]
            # The last column comes of all others. Exchanged, it is needed here: else LLVM calculates where the result is stored, under a condition, with all that
            # lanes have told each other in registers until then: 440 of them were spilled for 32 columns.
            self.r[static(size - 1)] = shuffle(self.r[static(size - 1)], invocation_id())

        @func
        def _subtract_outer(self, a, b):
            """``self -= outer(a, b)``, where a lane has an entry of both vectors."""
            own, other = cast(a, dtype), cast(b, dtype)
            for j in static(range(size)):
                self.r[j] -= own * shuffle(other, j)

        @func
        def _load(self, arr: Template, batch: Template, row, rows, column, columns):
            """``self[:] = arr[row : row + rows, column : column + columns]``, or ``arr[batch, ...]``.

            Rows behind the end stay as they are; columns behind it are 0.
            """
            lane = invocation_id()
            if lane < min(rows, size):
                for j in static(range(size)):
                    self.r[j] = 0
                    if j < columns:
                        if static(batch is None):
                            self.r[j] = cast(arr[row + lane, column + j], dtype)
                        else:
                            self.r[j] = cast(arr[batch, row + lane, column + j], dtype)

        @func
        def _store(self, arr: Template, batch: Template, row, rows, column, columns):
            """``arr[row : row + rows, column : column + columns] = self``, or ``arr[batch, ...]``: what there is of both."""
            lane = invocation_id()
            if lane < min(rows, size):
                for j in static(range(size)):
                    if j < columns:
                        if static(batch is None):
                            arr[row + lane, column + j] = cast(self.r[j], static(arr.dtype))
                        else:
                            arr[batch, row + lane, column + j] = cast(self.r[j], static(arr.dtype))

    Tile.__name__ = f"Tile{size}x{size}"
    tile = dataclass(Tile)
    tile.slices = {name: tile.methods.pop(f"_{name}") for name in ("load", "store", "subtract_outer")}
    return tile


class TileType:
    """Square matrices in the registers of a subgroup: ``Tile16x16`` or ``Tile32x32``."""

    def __init__(self, size: int):
        #: How many rows, and columns, a tile has.
        self.SIZE = size
        self._structs = {dtype: _tile_struct(size, dtype) for dtype in (f32, f64)}

    @func
    def zeros(self, dtype: Template = None):
        """A tile of zeros, of ``f32`` or ``f64``; the session's type of reals, if nothing is said."""
        if static(_session.cfg.arch.name == "cpu" and not _session.cfg.simt_on_cpu):
            static(refuse_cpu(self.SIZE))
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
