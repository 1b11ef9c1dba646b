"""Direct solvers of sparse systems: factors once, solutions as often as one likes."""

from __future__ import annotations

import numpy

from .._matrix.promotion import numpy_type
from .._octants import SparseAnalysis, SparseFactor, host_only
from ..exceptions import OctantsAssertionError, OctantsRuntimeError
from ..types import f32
from ._compressed import Compressed
from ._vectors import as_given, on_host, real_type
from .sparse_matrix import SparseMatrix

_SOLVERS = ("LLT", "LDLT", "LU")
_ORDERINGS = ("AMD", "COLAMD")


class SparseSolver:
    """Solves systems with a sparse matrix by its factors, on the host and in double precision.

    ``LLT`` is for symmetric matrices that are positive definite, ``LDLT`` for symmetric ones; both look at the entries below the diagonal and on it alone.
    Where pivots of ``LDLT`` would let rounding spoil the solution, its factors are those of ``LU``.
    ``LU`` is for any square matrix, with the rows in an order that keeps it stable. Rows and columns are ordered by minimum degree, so that the
    factors have few entries; ``COLAMD`` lets ``LU`` order columns for whatever the order of the rows will be.
    """

    def __init__(self, dtype=f32, solver_type: str = "LLT", ordering: str = "AMD"):
        if solver_type not in _SOLVERS or ordering not in _ORDERINGS:
            raise OctantsAssertionError(
                f"solver_type is one of {', '.join(_SOLVERS)}, and ordering one of {', '.join(_ORDERINGS)}; "
                f"not {solver_type!r} and {ordering!r}"
            )
        self.dtype = real_type(dtype, "a sparse solver")
        self.solver_type = solver_type
        self.ordering = ordering
        #: The matrix that was analysed, by columns, and what follows from the places of its entries.
        self._analysed: Compressed | None = None
        self._analysis: SparseAnalysis | None = None
        self._factor: SparseFactor | None = None
        self._is_factorised = False

    @staticmethod
    def _columns(sparse_matrix) -> Compressed:
        if not isinstance(sparse_matrix, SparseMatrix):
            raise OctantsRuntimeError(f"a sparse solver takes a SparseMatrix, not {type(sparse_matrix).__name__}")
        if sparse_matrix.n != sparse_matrix.m:
            raise OctantsAssertionError(f"a system has a square matrix, not one of shape {sparse_matrix.shape}")
        return sparse_matrix.matrix.ordered(False)

    def compute(self, sparse_matrix: SparseMatrix) -> None:
        """Analyses and factorises a matrix."""
        self.analyze_pattern(sparse_matrix)
        self.factorize(sparse_matrix)

    def analyze_pattern(self, sparse_matrix: SparseMatrix) -> None:
        """Finds all that follows from where the entries of a matrix are: the order of elimination, and the places of the factors' entries."""
        self._analyse(self._columns(sparse_matrix))

    def _analyse(self, columns: Compressed) -> SparseAnalysis:
        host_only("a factorisation")
        starts, places = columns.starts.astype(numpy.int64), columns.places.astype(numpy.int32)
        analysis = SparseAnalysis(self.solver_type, self.ordering, starts.tobytes(), places.tobytes())
        self._analysed, self._analysis = columns, analysis
        self._factor, self._is_factorised = None, False
        return analysis

    def factorize(self, sparse_matrix: SparseMatrix) -> None:
        """Factorises a matrix. One whose entries are elsewhere than those of the matrix that was analysed is analysed first."""
        columns = self._columns(sparse_matrix)
        analysis = self._analysis
        if analysis is None or self._analysed is None or not self._analysed.has_places_of(columns):
            analysis = self._analyse(columns)
        self._factor = analysis.factorise(columns.values.astype(numpy.float64).tobytes())
        self._is_factorised = True

    def solve(self, b):
        """The ``x`` with ``A x = b``: an array if ``b`` is one, else a numpy array."""
        if not self._is_factorised:
            raise OctantsRuntimeError("call compute(), or analyze_pattern() and factorize(), before solve()")
        if self._factor is None:
            raise OctantsRuntimeError(f"the matrix has no {self.solver_type} factors, as info() says")
        assert self._analysed is not None
        right = on_host(b, self._analysed.shape[0], self.dtype, "the right-hand side")
        solution = numpy.frombuffer(self._factor.solve(right.astype(numpy.float64).tobytes()))
        return as_given(solution.astype(numpy_type(self.dtype)), b, self.dtype)

    def info(self) -> bool:
        """Whether the matrix has factors: false if it is singular, and with ``LLT`` also if it is not positive definite."""
        return self._factor is not None
