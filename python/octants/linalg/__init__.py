"""Linear algebra: sparse matrices that kernels fill, solvers of systems with them, and iterative solvers for operators that are kernels.

Matrices lie in the host's memory as numpy arrays (``_compressed``), products with vectors are kernels (``_products``), and factorisations are the
compiled half's (``octants_direct``).
"""

from __future__ import annotations

from .matrixfree_cg import LinearOperator, MatrixFreeBICGSTAB, MatrixFreeCG
from .sparse_cg import SparseCG
from .sparse_matrix import SparseMatrix, SparseMatrixBuilder
from .sparse_solver import SparseSolver

__all__ = [
    "LinearOperator", "MatrixFreeBICGSTAB", "MatrixFreeCG", "SparseCG", "SparseMatrix", "SparseMatrixBuilder", "SparseSolver",
]  # fmt: skip
