"""``oc.linalg``: sparse matrices that kernels fill, their operators and solvers; against numpy."""

import numpy as np
import pytest

import octants as oc
from octants.linalg import SparseCG, SparseMatrix, SparseMatrixBuilder, SparseSolver

NUMPY = {"f32": np.float32, "f64": np.float64}
CLOSE = {"f32": 2e-5, "f64": 1e-12}


def dense(matrix):
    rows, columns, values = matrix.matrix.triplets()
    made = np.zeros(matrix.shape, values.dtype)
    made[rows, columns] = values
    return made


def matrix_of(array, name="f64", storage_format="col_major"):
    """A sparse matrix with the entries of a dense one that are not zero."""
    made = SparseMatrix(*array.shape, dtype=getattr(oc, name), storage_format=storage_format)
    rows, columns = np.nonzero(array)
    triplets = oc.ndarray(oc.f64, max(3, 3 * len(rows)))
    if len(rows):
        triplets.from_numpy(np.stack([rows, columns, array[rows, columns]], axis=1).astype(np.float64).reshape(-1))
        made.build_from_ndarray(triplets)
    return made


def random_array(random, n, m, share=0.3):
    return np.where(random.random((n, m)) < share, random.integers(-8, 9, (n, m)) / 4, 0.0)


@oc.kernel
def append(
    A: oc.types.sparse_matrix_builder(), rows: oc.types.NDArray, columns: oc.types.NDArray, values: oc.types.NDArray
):
    for k in range(rows.shape[0]):
        if k % 2 == 0:
            A[rows[k], columns[k]] += values[k]
        else:
            A[rows[k], columns[k]] -= values[k]


# ---- builders ----


@pytest.mark.parametrize("storage_format", ["col_major", "row_major"])
@pytest.mark.parametrize("name", ["f32", "f64"])
def test_kernels_add_up_triplets(arch, name, storage_format):
    random = np.random.default_rng(1)
    builder = SparseMatrixBuilder(7, 5, max_num_triplets=200, dtype=getattr(oc, name), storage_format=storage_format)
    for count in (200, 30):
        rows, columns = random.integers(0, 7, count, dtype=np.int32), random.integers(0, 5, count, dtype=np.int32)
        values = (random.integers(-8, 9, count) / 4).astype(NUMPY[name])
        append(builder, rows, columns, values)
        expected = np.zeros((7, 5), NUMPY[name])
        np.add.at(expected, (rows, columns), np.where(np.arange(count) % 2 == 0, values, -values))
        made = builder.build()
        assert made.dtype == getattr(oc, name) and made.shape == (7, 5)
        assert (dense(made) == expected).all()
    assert (dense(builder.build()) == 0).all(), "what was built is not built again"


def test_builders_of_other_sizes_and_new_ones_run_the_same_kernel(arch):
    for n in (2, 3, 9):
        builder = SparseMatrixBuilder(n, n, max_num_triplets=n)

        @oc.func
        def put(A: oc.template(), at, value):
            A[at] += value

        @oc.kernel
        def diagonal(A: oc.types.sparse_matrix_builder(), count: oc.i32):
            for i in range(count):
                put(A, oc.Vector([i, i]), i + 1)

        diagonal(builder, n)
        assert (dense(builder.build()) == np.diag(np.arange(1, n + 1))).all()


@pytest.mark.host_devices("it is about threads of the host")
def test_sums_of_reals_do_not_depend_on_the_order_of_threads():
    random = np.random.default_rng(2)
    count = 100_000
    rows, columns = random.integers(0, 9, count, dtype=np.int32), random.integers(0, 9, count, dtype=np.int32)
    values = random.standard_normal(count).astype(np.float32)
    seen = set()
    for threads in (1, 2, 7):
        oc.init(arch=oc.cpu, cpu_max_num_threads=threads, log_level="error")
        builder = SparseMatrixBuilder(9, 9, max_num_triplets=count)
        append(builder, rows, columns, values)
        seen.add(dense(builder.build()).tobytes())
    assert len(seen) == 1


def test_more_triplets_than_there_is_place_for_are_an_error(arch):
    builder = SparseMatrixBuilder(4, 4, max_num_triplets=3)
    ones, at = np.ones(4, np.float32), np.arange(4, dtype=np.int32)
    append(builder, at, at, ones)
    with pytest.raises(
        oc.OctantsRuntimeError, match="appended 4 triplets to a SparseMatrixBuilder of max_num_triplets=3"
    ):
        builder.build()
    append(builder, at[:3], at[:3], ones[:3])
    assert (dense(builder.build()) == np.diag([1, -1, 1, 0])).all(), "it may be used again"
    none = SparseMatrixBuilder(4, 4)
    append(none, at, at, ones)
    with pytest.raises(oc.OctantsRuntimeError, match="max_num_triplets=0"):
        none.build()


def test_the_count_of_triplets_does_not_wrap(arch):
    """More are appended than there are numbers of 32 bits: no triplet is written before the first one."""
    A = SparseMatrixBuilder(3, 3, max_num_triplets=4)

    @oc.kernel
    def append(A: oc.types.sparse_matrix_builder()):
        for i in range(3):
            A[i, i] += 1.0

    for counted in (2**31 - 1, 2**31, 2**32 - 1, 2**32):
        A._count.fill(counted)
        append(A)
        with pytest.raises(oc.OctantsRuntimeError, match=f"appended {counted + 3} triplets"):
            A.build()
    append(A)
    assert (dense(A.build()) == np.eye(3)).all()


def test_triplets_outside_of_the_matrix_are_an_error(arch):
    builder = SparseMatrixBuilder(4, 3, max_num_triplets=9)
    append(builder, np.array([0], np.int32), np.array([3], np.int32), np.ones(1, np.float32))
    with pytest.raises(oc.OctantsRuntimeError, match=r"column 3 is outside of a matrix of shape \(4, 3\)"):
        builder.build()
    append(builder, np.array([-1], np.int32), np.array([0], np.int32), np.ones(1, np.float32))
    with pytest.raises(oc.OctantsRuntimeError, match="row -1 is outside"):
        builder.build()


def test_debug_mode_checks_indices_of_builders(arch):
    oc.init(arch=getattr(oc, arch), debug=True, log_level="error")
    builder = SparseMatrixBuilder(4, 3, max_num_triplets=9)
    with pytest.raises(AssertionError, match=r"Out of bound access to field `A`: index \(4, 0\) with shape \(4, 3\)"):
        append(builder, np.array([4], np.int32), np.array([0], np.int32), np.ones(1, np.float32))


def test_all_but_adding_is_refused_at_its_line():
    builder = SparseMatrixBuilder(4, 4, max_num_triplets=9)

    @oc.kernel
    def assign(A: oc.types.sparse_matrix_builder()):
        A[0, 1] = 2.0

    @oc.kernel
    def read(A: oc.types.sparse_matrix_builder()) -> oc.f32:
        return A[0, 1]

    @oc.kernel
    def scale(A: oc.types.sparse_matrix_builder()):
        A[0, 1] *= 2.0

    @oc.kernel
    def atomic(A: oc.types.sparse_matrix_builder()):
        oc.atomic_add(A[0, 1], 2.0)

    @oc.kernel
    def one_index(A: oc.types.sparse_matrix_builder()):
        A[0] += 2.0

    @oc.kernel
    def vector(A: oc.types.sparse_matrix_builder()):
        A[0, 1] += oc.Vector([1.0, 2.0])

    @oc.kernel
    def loop(A: oc.types.sparse_matrix_builder()):
        for i in A:
            pass

    only_added_to = r"an element of a SparseMatrixBuilder can only be added to"
    for kernel, text, says in (
        (assign, "A[0, 1] = 2.0", only_added_to),
        (read, "return A[0, 1]", only_added_to),
        (scale, "A[0, 1] *= 2.0", only_added_to),
        (atomic, "oc.atomic_add(A[0, 1], 2.0)", only_added_to),
        (one_index, "A[0] += 2.0", "2"),
        (vector, "A[0, 1] += oc.Vector([1.0, 2.0])", "cannot assign .* to an element of a SparseMatrixBuilder"),
        (loop, "for i in A:", "SparseMatrixBuilder"),
    ):
        with pytest.raises(oc.OctantsCompilationError, match=says) as caught:
            kernel(builder)
        assert text in str(caught.value)


def test_print_triplets(capsys):
    builder = SparseMatrixBuilder(4, 5, max_num_triplets=10)

    @oc.kernel
    def fill(A: oc.types.sparse_matrix_builder()):
        A[0, 0] += 1.5
        A[3, 4] -= 7

    fill(builder)
    builder.print_triplets()
    assert capsys.readouterr().out == "n=4, m=5, num_triplets=2 (max=10)\n[0, 0] = 1.5\n[3, 4] = -7\n"
    assert builder.build()[3, 4] == -7


# ---- matrices ----


@pytest.mark.parametrize("formats", [("col_major",) * 2, ("row_major",) * 2, ("col_major", "row_major")])
@pytest.mark.parametrize("name", ["f32", "f64"])
def test_operators_are_those_of_dense_matrices(arch, name, formats):
    random = np.random.default_rng(3)
    for n, m in ((1, 1), (4, 7), (9, 3), (12, 12)):
        for share in (0.0, 0.2, 1.0):
            a, b, c = random_array(random, n, m, share), random_array(random, n, m), random_array(random, m, 5)
            A, B = matrix_of(a, name, formats[0]), matrix_of(b, name, formats[1])
            C = matrix_of(c, name, formats[1])
            x = (random.integers(-8, 9, m) / 4).astype(NUMPY[name])
            for ours, theirs in (
                (A, a), (A + B, a + b), (A - B, a - b), (A - 2 * A, -a), (A * B, a * b), (2.5 * A, 2.5 * a), (A * 3, 3 * a), (A @ C, a @ c),
                (A.transpose(), a.T), (A.transpose().transpose(), a), (A @ C @ C.transpose() - A, a @ c @ c.T - a),
            ):  # fmt: skip
                assert ours.dtype == getattr(oc, name) and ours.shape == theirs.shape
                assert (dense(ours) == theirs).all()
            assert (A @ x == a @ x).all() and (A @ x).dtype == NUMPY[name]
            A += B
            assert (dense(A) == a + b).all()
            A -= B
            assert (dense(A) == a).all()
            assert (A @ x == a @ x).all(), "what a product keeps is that of the matrix as it is"


def test_products_with_vectors_of_every_kind(arch):
    a = random_array(np.random.default_rng(4), 6, 4)
    A = matrix_of(a, "f32")
    x = np.arange(4, dtype=np.float32)
    for kind in (oc.ndarray, oc.field, oc.tensor):
        vector = kind(oc.f32, (4,))
        vector.from_numpy(x)
        product = A @ vector
        is_array = kind is oc.ndarray or (kind is oc.tensor and isinstance(vector._impl, oc.Ndarray))
        assert isinstance(product, oc.Ndarray if is_array else np.ndarray)
        product = product.to_numpy() if is_array else product
        assert (product == a @ x).all() and product.dtype == np.float32
    assert (A @ x.astype(np.float64) == a @ x).all()


def test_entries_are_read_and_set():
    a = random_array(np.random.default_rng(5), 5, 6)
    for storage_format in ("col_major", "row_major"):
        A = matrix_of(a, "f64", storage_format)
        twice, x = A * 2, np.ones(6)
        other = A + SparseMatrix(5, 6, dtype=oc.f64)
        for i in range(5):
            for j in range(6):
                assert A[i, j] == a[i, j]
                A[i, j] = 10 * i + j
        assert (dense(A) == 10 * np.arange(5)[:, None] + np.arange(6)).all() and A[4, 5] == 45.0
        assert (dense(twice) == 2 * a).all() and (dense(other) == a).all(), "others keep their entries"
        assert (A @ x == dense(A) @ x).all()
    for index in ((5, 0), (0, 6), (-1, 0)):
        with pytest.raises(AssertionError, match="is outside of a matrix"):
            A[index]
        with pytest.raises(AssertionError, match="is outside of a matrix"):
            A[index] = 1
    with pytest.raises(TypeError, match="two indices"):
        A[1]


def test_building_from_arrays_of_triplets(arch):
    triplets = np.array([[0, 0, 1.5], [2, 1, 2.0], [0, 0, 1.0]], np.float32)
    numbers, vectors = oc.ndarray(oc.f32, 9), oc.Vector.ndarray(3, oc.f32, 3)
    numbers.from_numpy(triplets.reshape(-1))
    vectors.from_numpy(triplets)
    for array in (numbers, vectors):
        A = SparseMatrix(3, 2)
        A.build_from_ndarray(array)
        assert (dense(A) == [[2.5, 0], [0, 0], [0, 2]]).all()
    with pytest.raises(oc.OctantsRuntimeError, match="triplets are numbers by threes; the array has 8"):
        A.build_from_ndarray(oc.ndarray(oc.f32, 8))
    with pytest.raises(oc.OctantsRuntimeError, match=r"takes an oc\.ndarray"):
        A.build_from_ndarray(triplets)
    for wrong, says in ((1.5, r"the column 1\.5"), (np.nan, "the column nan"), (np.inf, "the column inf")):
        vectors[1] = [2, wrong, 1]
        with pytest.raises(oc.OctantsRuntimeError, match=f"triplet 1 has {says}, which is no integer"):
            A.build_from_ndarray(vectors)
    vectors[1] = [0.25, 1, 1]
    with pytest.raises(oc.OctantsRuntimeError, match=r"triplet 1 has the row 0\.25"):
        A.build_from_ndarray(vectors)


def test_texts_and_files(tmp_path):
    A = SparseMatrix(2, 2)
    A[0, 0], A[1, 0], A[1, 1] = 1 / 3, 1e10, -2.5e-7
    assert str(A) == repr(A) == "[  0.3333,        0]\n[   1e+10, -2.5e-07]"
    A.mmwrite(str(tmp_path / "a.mtx"))
    lines = (tmp_path / "a.mtx").read_text().splitlines()
    assert lines[0] == "%%MatrixMarket matrix coordinate real general" and lines[2] == "2 2 3"
    read = {tuple(line.split()[:2]): np.float32(line.split()[2]) for line in lines[3:]}
    assert read == {("1", "1"): np.float32(1 / 3), ("2", "1"): np.float32(1e10), ("2", "2"): np.float32(-2.5e-7)}


def test_a_large_matrix_is_not_written_out():
    for storage_format in ("col_major", "row_major"):
        A = SparseMatrix(10**6, 2 * 10**6, storage_format=storage_format)
        assert repr(A) == "1000000 x 2000000 matrix of f32 with 0 entries"
        A[5, 1_999_999], A[7, 3] = 1 / 3, 2.0
        entries = ["[7, 3] = 2", "[5, 1999999] = 0.3333"]
        wanted = entries if storage_format == "col_major" else entries[::-1]
        assert str(A).splitlines() == ["1000000 x 2000000 matrix of f32 with 2 entries", *wanted]
    many = str(matrix_of(np.ones((100, 100)))).splitlines()
    assert many[0] == "100 x 100 matrix of f64 with 10000 entries" and len(many) == 10 and many[-1] == "..."


def test_what_matrices_refuse():
    A = SparseMatrix(3, 4)
    for operator in ("__add__", "__sub__", "__mul__", "__iadd__", "__isub__"):
        with pytest.raises(AssertionError, match=r"shapes \(3, 4\) and \(4, 3\) do not fit"):
            getattr(A, operator)(A.transpose())
    with pytest.raises(AssertionError, match="do not fit"):
        A @ A
    for vector in (np.zeros(3, np.float32), oc.field(oc.f32, 3), oc.ndarray(oc.f32, 3)):
        with pytest.raises(AssertionError, match=r"has shape \(3,\), and needs \(4,\)"):
            A @ vector
    with pytest.raises(oc.OctantsRuntimeError, match="not list"):
        A @ [1.0]
    for wrong in (lambda: A + 1, lambda: A - 1, lambda: A * "2", lambda: A * A.shape):
        with pytest.raises(TypeError):
            wrong()
    with pytest.raises(RuntimeError, match="numbers of f32 or f64, not i32"):
        SparseMatrix(3, 3, dtype=oc.i32)
    with pytest.raises(RuntimeError, match="numbers of f32 or f64, not i32"):
        SparseMatrixBuilder(3, 3, max_num_triplets=1, dtype=oc.i32)
    with pytest.raises(RuntimeError, match='"col_major" or "row_major", not \'diagonal\''):
        SparseMatrix(3, 3, storage_format="diagonal")


# ---- solvers ----


def grid(side):
    """The five-point stencil, with a little more on the diagonal."""
    line = 2.05 * np.eye(side) - np.eye(side, k=1) - np.eye(side, k=-1)
    return np.kron(line, np.eye(side)) + np.kron(np.eye(side), line)


@pytest.mark.parametrize("solver_type", ["LLT", "LDLT", "LU"])
@pytest.mark.parametrize("ordering", ["AMD", "COLAMD"])
@pytest.mark.parametrize("name", ["f32", "f64"])
def test_direct_solvers(name, solver_type, ordering):
    random = np.random.default_rng(6)
    for storage_format in ("col_major", "row_major"):
        for n in (1, 2, 20, 150):
            a = random_array(random, n, n, min(0.5, 4 / n))
            if solver_type != "LU":
                a = a + a.T
                signs = -1 if solver_type == "LDLT" else 1
                a = a + np.diag(np.where(np.arange(n) % 2, signs, 1) * (np.abs(a).sum(axis=1) + 1))
            else:
                a = a + 30 * np.roll(np.eye(n), 3, axis=1)
            b = random.standard_normal(n).astype(NUMPY[name])
            solver = SparseSolver(getattr(oc, name), solver_type, ordering)
            solver.compute(matrix_of(a, name, storage_format))
            assert solver.info() is True
            x = solver.solve(b)
            assert x.dtype == NUMPY[name]
            np.testing.assert_allclose(x, np.linalg.solve(a, b), atol=CLOSE[name], rtol=CLOSE[name])


def test_right_hand_sides_of_every_kind(arch):
    a = grid(5)
    solver = SparseSolver(oc.f32, "LDLT")
    solver.compute(matrix_of(a, "f32"))
    b = np.arange(25, dtype=np.float32)
    expected = np.linalg.solve(a, b)
    np.testing.assert_allclose(solver.solve(b), expected, rtol=1e-5)
    for kind in (oc.ndarray, oc.field):
        right = kind(oc.f32, 25)
        right.from_numpy(b)
        x = solver.solve(right)
        assert isinstance(x, oc.Ndarray if kind is oc.ndarray else np.ndarray)
        np.testing.assert_allclose(x.to_numpy() if kind is oc.ndarray else x, expected, rtol=1e-5)


def test_an_analysis_does_for_other_values_and_is_made_anew_for_other_places():
    a, b = grid(6), np.ones(36)
    for solver_type in ("LLT", "LU"):
        solver = SparseSolver(oc.f64, solver_type)
        solver.analyze_pattern(matrix_of(a))
        assert not solver.info()
        for factor in (1.0, 3.0):
            solver.factorize(matrix_of(a * factor))
            np.testing.assert_allclose(solver.solve(b), np.linalg.solve(a * factor, b), rtol=1e-12)
        other = a.copy()
        other[0, 35] = other[35, 0] = -0.05
        solver.factorize(matrix_of(other))
        np.testing.assert_allclose(solver.solve(b), np.linalg.solve(other, b), rtol=1e-12)


def test_symmetric_solvers_look_at_the_lower_triangle():
    a = grid(4)
    for solver_type in ("LLT", "LDLT"):
        solver = SparseSolver(oc.f64, solver_type)
        solver.compute(matrix_of(np.tril(a)))
        np.testing.assert_allclose(solver.solve(np.ones(16)), np.linalg.solve(a, np.ones(16)), rtol=1e-12)


@pytest.mark.parametrize("solver_type, entries, has_factors", [
    ("LLT", [1, -2, 3], False), ("LDLT", [1, -2, 3], True), ("LU", [1, -2, 3], True),
    ("LLT", [1, 0, 3], False), ("LDLT", [1, 0, 3], False), ("LU", [1, 0, 3], False),
])  # fmt: skip
def test_matrices_without_factors(solver_type, entries, has_factors):
    solver = SparseSolver(oc.f64, solver_type)
    solver.compute(matrix_of(np.diag(entries)))
    assert solver.info() is has_factors
    if has_factors:
        np.testing.assert_allclose(solver.solve(np.ones(3)), 1 / np.array(entries))
    else:
        with pytest.raises(oc.OctantsRuntimeError, match=f"the matrix has no {solver_type} factors"):
            solver.solve(np.ones(3))
    solver.compute(matrix_of(np.diag([1, 2, 4])))
    assert solver.info() and solver.solve(np.ones(3)).tolist() == [1, 0.5, 0.25], "the next matrix may have some"


def test_what_solvers_refuse():
    with pytest.raises(AssertionError, match="solver_type is one of LLT, LDLT, LU"):
        SparseSolver(oc.f32, "QR")
    with pytest.raises(AssertionError, match="ordering one of AMD, COLAMD"):
        SparseSolver(oc.f32, "LU", "RCM")
    with pytest.raises(RuntimeError, match="numbers of f32 or f64, not i32"):
        SparseSolver(oc.i32)
    solver = SparseSolver()
    with pytest.raises(RuntimeError, match="before solve"):
        solver.solve(np.ones(2, np.float32))
    for method in (solver.compute, solver.analyze_pattern, solver.factorize):
        with pytest.raises(RuntimeError, match="takes a SparseMatrix, not ndarray"):
            method(np.eye(2))
        with pytest.raises(AssertionError, match=r"square matrix, not one of shape \(2, 3\)"):
            method(SparseMatrix(2, 3))
    solver.compute(matrix_of(np.eye(2)))
    with pytest.raises(AssertionError, match=r"the right-hand side has shape \(3,\), and needs \(2,\)"):
        solver.solve(np.ones(3, np.float32))
    with pytest.raises(RuntimeError, match="the right-hand side is a numpy array, .* not list"):
        solver.solve([1.0, 2.0])


@pytest.mark.parametrize("name", ["f32", "f64"])
def test_conjugate_gradients(arch, name):
    a, b = grid(5), np.arange(25).astype(NUMPY[name])
    A = matrix_of(a, name)
    right = oc.ndarray(getattr(oc, name), 25)
    right.from_numpy(b)
    expected = np.linalg.solve(a, b)
    for given, start in ((b, None), (right, b), (b, right)):
        x, is_solved = SparseCG(A, given, start, max_iter=60).solve()
        assert is_solved is True and x.dtype == NUMPY[name]
        np.testing.assert_allclose(x, expected, rtol=1e-4)
    few, is_solved = SparseCG(A, b, max_iter=2).solve()
    assert is_solved is False and np.linalg.norm(a @ few - b) < np.linalg.norm(b)
    exact = oc.ndarray(getattr(oc, name), 25)
    exact.from_numpy(expected.astype(NUMPY[name]))
    assert SparseCG(A, b, exact, max_iter=0).solve()[1]
    zero, is_solved = SparseCG(A, np.zeros_like(b)).solve()
    assert is_solved and (zero == 0).all()
    with pytest.raises(AssertionError, match="square matrix"):
        SparseCG(SparseMatrix(2, 3), b)
    with pytest.raises(RuntimeError, match="takes a SparseMatrix"):
        SparseCG(a, b)


@pytest.mark.parametrize("size", [1e200, 1e-200, 1e300, 1e-300])
@pytest.mark.parametrize("of", ["right", "matrix", "both"])
def test_conjugate_gradients_of_numbers_whose_squares_are_none(arch, size, of):
    """Squares of such numbers are infinite, or zero: a residual compared with them says nothing."""
    a, b = grid(4), np.arange(1.0, 17)
    A = matrix_of(a * (size if of != "right" else 1), "f64")
    right = b * (size if of != "matrix" else 1)
    x, is_solved = SparseCG(A, right, max_iter=60, atol=1e-10).solve()
    expected = np.linalg.solve(a, b) * {"right": size, "matrix": 1 / size, "both": 1}[of]
    assert is_solved
    np.testing.assert_allclose(x, expected, rtol=1e-8)
    start = oc.ndarray(oc.f64, 16)
    start.from_numpy(expected)
    assert SparseCG(A, right, start, max_iter=1).solve()[1]
    x, is_solved = SparseCG(A, right, max_iter=1, atol=1e-10).solve()
    assert not is_solved


def test_conjugate_gradients_do_not_solve_what_has_no_number():
    for wrong in (np.inf, np.nan):
        assert SparseCG(matrix_of(grid(2)), np.array([1, wrong, 1, 1])).solve()[1] is False
        assert SparseCG(matrix_of(grid(2)), np.ones(4), np.array([1, wrong, 1, 1])).solve()[1] is False
    assert SparseCG(matrix_of(np.diag([1, 1, 1, wrong])), np.ones(4)).solve()[1] is False
    assert SparseCG(matrix_of(np.zeros((4, 4))), np.ones(4)).solve()[1] is False
    x, is_solved = SparseCG(matrix_of(1e-200 * np.eye(4)), 1e200 * np.ones(4)).solve()
    assert is_solved is False, "the solution overflows"
    x, is_solved = SparseCG(matrix_of(1e200 * np.eye(4)), 1e-200 * np.ones(4)).solve()
    assert is_solved is False, "the solution is too small for the type"


def test_conjugate_gradients_of_matrices_that_are_not_definite():
    """They may or may not find a solution; what they call one is one."""
    random = np.random.default_rng(9)
    for matrix in ([[0, 1], [1, 0]], [[1, 0], [0, -1]], [[1, 2], [2, 1]], [[1, 0], [0, 0]], [[-2, 1], [1, -2]]):
        for right in ([1.0, 1.0], [1.0, -1.0], [1.0, 0.0]):
            x, is_solved = SparseCG(matrix_of(np.array(matrix, float)), np.array(right)).solve()
            assert not is_solved or np.allclose(np.array(matrix) @ x, right), (matrix, right)
    for _ in range(50):
        a = random.integers(-2, 3, (6, 6))
        a, b = (a + a.T).astype(float), random.integers(-2, 3, 6).astype(float)
        x, is_solved = SparseCG(matrix_of(a), b, max_iter=30).solve()
        assert not is_solved or np.linalg.norm(a @ x - b) <= 2e-6 * np.linalg.norm(b)
    assert SparseCG(matrix_of(-grid(4)), np.ones(16)).solve()[1], "one that is negative definite is solved"


@pytest.mark.parametrize("matrix", [
    [[1, 1], [1, 1e-20]], [[1e-20, 1], [1, 1]], [[0, 1], [1, 0]], [[1e-13, 1], [1, 1e-13]],
    [[2, 1, 1], [1, 0, 0], [1, 0, 1]], [[1e-30, 1e-15, 0], [1e-15, 1e-15, 0], [0, 0, 1]],
])  # fmt: skip
def test_symmetric_systems_without_good_pivots_on_the_diagonal(matrix):
    a, x = np.array(matrix, np.float64), np.arange(1.0, len(matrix) + 1)
    solver = SparseSolver(oc.f64, "LDLT")
    solver.compute(matrix_of(np.tril(a)))
    assert solver.info()
    np.testing.assert_allclose(solver.solve(a @ x), x, rtol=1e-9)


# ---- operators that are kernels ----


def stencil(dims, skew):
    @oc.kernel
    def apply(x: oc.template(), out: oc.template()):
        for at in oc.grouped(x):
            total = (2 * dims + 0.5) * x[at]
            for axis in oc.static(range(dims)):
                step = oc.Vector.unit(dims, axis, oc.i32)
                if at[axis] > 0:
                    total -= (1 + skew) * x[at - step]
                if at[axis] < x.shape[axis] - 1:
                    total -= (1 - skew) * x[at + step]
            out[at] = total

    return oc.linalg.LinearOperator(apply)


def dense_operator(operator, dtype, shape):
    """The matrix of an operator, column by column."""
    x, out = oc.field(dtype, shape), oc.field(dtype, shape)
    columns = []
    for unit in np.eye(int(np.prod(shape))):
        x.from_numpy(unit.reshape(shape).astype(x.to_numpy().dtype))
        operator.matvec(x, out)
        columns.append(out.to_numpy().reshape(-1))
    return np.stack(columns, axis=1)


@pytest.mark.parametrize("shape", [(9,), (4, 5), (3, 2, 4)])
@pytest.mark.parametrize("name", ["f32", "f64"])
@pytest.mark.parametrize(
    "solver, skew", [("MatrixFreeCG", 0.0), ("MatrixFreeBICGSTAB", 0.0), ("MatrixFreeBICGSTAB", 0.3)]
)
def test_matrix_free_solvers(arch, solver, skew, name, shape):
    dtype, solve = getattr(oc, name), getattr(oc.linalg, solver)
    operator = stencil(len(shape), skew)
    b, x = oc.field(dtype, shape), oc.field(dtype, shape)
    right = np.random.default_rng(7).standard_normal(shape).astype(NUMPY[name])
    b.from_numpy(right)
    tol = 1e-5 if name == "f32" else 1e-10
    assert solve(operator, b, x, tol=tol) is True
    a = dense_operator(operator, dtype, shape).astype(np.float64)
    assert np.linalg.norm(a @ x.to_numpy().reshape(-1) - right.reshape(-1)) < 3 * tol
    assert solve(operator, b, x, tol=3 * tol, maxiter=0) is True, "x is where it begins"
    x.fill(0)
    assert solve(operator, b, x, maxiter=1) is False


def test_matrix_free_solvers_give_their_fields_back(arch):
    operator = stencil(1, 0.0)
    b, x = oc.field(oc.f64, 1000), oc.field(oc.f64, 1000)
    b.fill(1)
    used = set()
    for solve in (oc.linalg.MatrixFreeCG, oc.linalg.MatrixFreeBICGSTAB) * 2:
        x.fill(0)
        assert solve(operator, b, x)
        used.add(oc._session.runtime.live_bytes)
    assert len(used) == 1


@pytest.mark.parametrize("size", [1e-200, 1e-160, 1e200, 0.0])
@pytest.mark.parametrize("name", ["MatrixFreeCG", "MatrixFreeBICGSTAB"])
def test_matrix_free_solvers_call_nothing_a_solution_whose_square_is_none(arch, name, size):
    operator = stencil(1, 0.0)
    b, x, product = (oc.field(oc.f64, 4) for _ in range(3))
    b.fill(size)
    tolerance = 1e-9 * size if size else 1e-9
    is_solved = getattr(oc.linalg, name)(operator, b, x, tol=tolerance, maxiter=20)
    operator.matvec(x, product)
    assert not is_solved or np.abs(product.to_numpy() - size).max() <= tolerance
    assert is_solved or size


def test_what_matrix_free_solvers_refuse(capsys):
    operator = stencil(1, 0.0)
    b = oc.field(oc.f32, 4)
    for solve in (oc.linalg.MatrixFreeCG, oc.linalg.MatrixFreeBICGSTAB):
        with pytest.raises(oc.OctantsTypeError, match="one dtype, not f32 and f64"):
            solve(operator, b, oc.field(oc.f64, 4))
        with pytest.raises(oc.OctantsTypeError, match="fields of f32 and f64, not i32"):
            solve(operator, oc.field(oc.i32, 4), oc.field(oc.i32, 4))
        with pytest.raises(oc.OctantsRuntimeError, match=r"one shape, not \(4,\) and \(5,\)"):
            solve(operator, b, oc.field(oc.f32, 5))
        with pytest.raises(oc.OctantsRuntimeError, match="one to three axes, not 4"):
            solve(operator, oc.field(oc.f32, (1, 1, 1, 1)), oc.field(oc.f32, (1, 1, 1, 1)))
        assert capsys.readouterr().out == ""
        b.fill(1)
        solve(operator, b, oc.field(oc.f32, 4), quiet=False)
        assert "Initial residual = 2.0" in capsys.readouterr().out
    with pytest.raises(oc.OctantsRuntimeError, match=r"x has shape \(4,\), and Ax \(5,\)"):
        operator.matvec(b, oc.field(oc.f32, 5))


def test_what_is_no_matrix_is_refused_in_plain_words(arch):
    matrix = oc.linalg.SparseMatrix(3, 3, dtype=oc.f64)
    for product in (lambda: matrix * np.ones(3), lambda: np.ones(3) * matrix, lambda: matrix * "x"):
        with pytest.raises(TypeError, match="the product with a vector is `A @ x`"):
            product()
    assert (np.float32(2) * matrix).shape == (matrix * np.float64(2)).shape == (3, 3)
    with pytest.raises(TypeError):
        matrix + np.ones(3)
    with pytest.raises(TypeError, match=r"an index of a sparse matrix is an integer, not 0\.5"):
        matrix[0.5, 0]
    with pytest.raises(TypeError, match="an index of a sparse matrix is an integer, not 'a'"):
        matrix[0, "a"] = 1.0


@pytest.mark.parametrize("wrong", [(-1, 3), (3, -1), (1 << 31, 1), (3, 3, -2)])
def test_sizes_of_matrices_are_checked(arch, wrong):
    with pytest.raises(ValueError, match="is an integer from 0 to 2147483647, not"):
        oc.linalg.SparseMatrixBuilder(*wrong)
    if len(wrong) == 2:
        with pytest.raises(ValueError, match="is an integer from 0 to 2147483647, not"):
            oc.linalg.SparseMatrix(*wrong)
    with pytest.raises(TypeError, match="num_rows is an integer, not 2.5"):
        oc.linalg.SparseMatrixBuilder(2.5)


@pytest.mark.filterwarnings("error")
def test_triplets_beyond_64_bits_are_outside(arch):
    triplets = oc.ndarray(oc.f64, 3)
    triplets.from_numpy(np.array([1e20, 0, 1.0]))
    with pytest.raises(
        oc.OctantsRuntimeError, match="triplet 0: row 100000000000000000000 is outside of a matrix of shape"
    ):
        oc.linalg.SparseMatrix(3, 3, dtype=oc.f64).build_from_ndarray(triplets)
