"""Vectors and matrices in kernels, on every device: values, entries, products, methods, arrays of them, linear algebra."""

import math

import numpy as np
import pytest
from devices import INTERPRETED

import octants as oc

vec2 = oc.types.vector(2, oc.f32)
vec3 = oc.types.vector(3, oc.f32)
ivec3 = oc.types.vector(3, oc.i32)
mat2 = oc.types.matrix(2, 2, oc.f32)
mat3 = oc.types.matrix(3, 3, oc.f32)
F32 = oc.types.ndarray(dtype=oc.f32, ndim=1)


# ---- values -----------------------------------------------------------------------------------------------------------------


def test_constructors(arch):
    host = oc.Vector([4, 5])

    @oc.kernel
    def k(
        x: oc.f32,
    ) -> (
        vec3,
        oc.types.matrix(2, 3, oc.f32),
        vec3,
        vec3,
        oc.types.vector(4, oc.f32),
        ivec3,
        oc.types.vector(2, oc.i32),
    ):
        a = oc.Vector([1, 2.5, x])
        m = oc.Matrix([[1, 2, 3], [4, 5, x]], dt=oc.f32)
        fill = vec3(x)
        listed = vec3([1, 2, 3])
        joined = oc.types.vector(4, oc.f32)(oc.Vector([1.0, 2.0]), 3, x)
        cut = ivec3(vec3(1.9, -1.9, x))
        return a, m, fill, listed, joined, cut, host + 1

    a, m, fill, listed, joined, cut, plus = k(7.5)
    assert a.to_list() == [1, 2.5, 7.5]
    assert m.to_list() == [[1, 2, 3], [4, 5, 7.5]]
    assert fill.to_list() == [7.5] * 3 and listed.to_list() == [1, 2, 3] and joined.to_list() == [1, 2, 3, 7.5]
    assert cut.to_list() == [1, -1, 7] and plus.to_list() == [5, 6]


def test_operators_are_entrywise_and_promote(arch):
    @oc.kernel
    def k(v: vec3, w: ivec3, out: oc.types.ndarray(dtype=oc.f32, ndim=2)):
        r0 = v + w
        r1 = 2 * v - 1
        r2 = v / w
        r3 = -v // 2
        r4 = v**2
        r5 = oc.min(v, 1.0) + oc.max(w, 2)
        r6 = oc.select(v > w, v, w)
        r7 = abs(v) % 2
        r8 = oc.sin(v)
        r9 = oc.cast((w << 1) | 1, float)
        for i in oc.static(range(3)):
            out[0, i] = r0[i]
            out[1, i] = r1[i]
            out[2, i] = r2[i]
            out[3, i] = r3[i]
            out[4, i] = r4[i]
            out[5, i] = r5[i]
            out[6, i] = r6[i]
            out[7, i] = r7[i]
            out[8, i] = r8[i]
            out[9, i] = r9[i]

    v, w = np.array([1.5, -2.5, 3], np.float32), np.array([2, 1, -4], np.int32)
    out = np.zeros((10, 3), np.float32)
    k(v, w, out)
    expected = [v + w, 2 * v - 1, v / w, -v // 2, v**2, np.minimum(v, 1) + np.maximum(w, 2)]
    expected += [np.where(v > w, v, w), abs(v) % 2, np.sin(v), (w << 1) | 1]
    np.testing.assert_allclose(out, expected, rtol=1e-6)


def test_entries_slices_and_swizzles(arch):
    @oc.kernel
    def k(n: oc.i32) -> (vec3, mat3, oc.f32, vec2, oc.types.vector(4, oc.f32)):
        v = oc.Vector([1.0, 2.0, 3.0])
        v[n] = 10.0
        v.x += 1.0
        v.zy = v.xx
        m = oc.Matrix.zero(oc.f32, 3, 3)
        m[0, :] = v
        m[1:, 1:] = oc.Matrix([[5.0, 6.0], [7.0, 8.0]])
        for i in range(3):
            m[i, 0] = m[i, n] + i
        m[2, ::2] += oc.Vector([100.0, 200.0])
        a, b, c = v
        return v, m, a + b * c, m[1:3, 1], v.rgbr

    v, m, s, column, four = k(1)
    assert v.to_list() == [2, 2, 2]
    assert m.to_list() == [[2, 2, 2], [6, 5, 6], [109, 7, 208]]
    assert s == 6 and column.to_list() == [5, 7] and four.to_list() == [2, 2, 2, 2]


def test_products(arch):
    @oc.kernel
    def k(a: oc.types.matrix(2, 3, oc.f32), b: oc.types.matrix(3, 2, oc.f32), v: vec3) -> (mat2, vec2, vec2, oc.f32):
        return a @ b, a @ v, v @ b, v @ v

    rng = np.random.default_rng(1)
    a, b, v = rng.random((2, 3)), rng.random((3, 2)), rng.random(3)
    for found, expected in zip(k(a, b, v), [a @ b, a @ v, v @ b, v @ v], strict=True):
        np.testing.assert_allclose(np.array(found), expected, rtol=1e-5)


def test_large_products_are_loops(arch):
    big = oc.types.matrix(12, 12, oc.f64)

    @oc.kernel
    def k(x: oc.types.ndarray(dtype=big, ndim=1)):
        x[2] = x[0] @ x[1] + x[0].transpose() * 2 - x[1]

    x = np.random.default_rng(2).random((3, 12, 12))
    a, b = x[0].copy(), x[1].copy()
    k(x)
    np.testing.assert_allclose(x[2], a @ b + 2 * a.T - b, rtol=1e-12)
    if arch == "cpu":
        assert sum(v for name, v in k.compile_statistics()[0].items() if name.endswith("_ms")) < 3000


def test_methods(arch):
    @oc.kernel
    def k(v: vec3, w: vec3, m: mat3, out: F32) -> (vec3, mat3, mat3, vec3, mat3):
        out[0] = v.norm()
        out[1] = v.norm_sqr()
        out[2] = v.dot(w)
        out[3] = v.sum()
        out[4] = v.max()
        out[5] = v.min()
        out[6] = m.determinant()
        out[7] = m.trace()
        out[8] = oc.cast((v > 0).all(), float)
        out[9] = oc.cast((v > 0).any(), float)
        out[10] = len(v) + m.n + m.m + v.ndim
        out[11] = v.norm_inv()
        f = v
        f.fill(3.0)
        out[12] = f.sum()
        return v.cross(w), v.outer_product(w), m.inverse(), v.normalized(), m.transpose()

    rng = np.random.default_rng(3)
    v, w, m = rng.random(3) - 0.3, rng.random(3), rng.random((3, 3)) + np.eye(3)
    out = np.zeros(13, np.float32)
    cross, outer, inverse, unit, transposed = k(v, w, m, out)
    norm = np.linalg.norm(v)
    expected = [
        norm,
        norm**2,
        v @ w,
        v.sum(),
        v.max(),
        v.min(),
        np.linalg.det(m),
        np.trace(m),
        (v > 0).all(),
        (v > 0).any(),
        10,
        1 / norm,
        9,
    ]
    np.testing.assert_allclose(out, expected, rtol=1e-5)
    np.testing.assert_allclose(np.array(cross), np.cross(v, w), rtol=1e-5)
    np.testing.assert_allclose(np.array(outer), np.outer(v, w), rtol=1e-5)
    np.testing.assert_allclose(np.array(inverse), np.linalg.inv(m), rtol=1e-4)
    np.testing.assert_allclose(np.array(unit), v / norm, rtol=1e-5)
    np.testing.assert_allclose(np.array(transposed), m.astype(np.float32).T)


def test_funcs_take_copies_and_templates_take_the_variable(arch):
    @oc.func
    def changes(v: vec3) -> vec3:
        v[0] = 9.0
        return v * 2

    @oc.func
    def sets(v: oc.template()):
        v.y = 7.0

    @oc.kernel
    def k() -> (vec3, vec3):
        v = vec3(1, 2, 3)
        w = changes(v)
        sets(v)
        return v, w

    v, w = k()
    assert v.to_list() == [1, 7, 3] and w.to_list() == [18, 4, 6]


def test_grouped_loops_give_vectors(arch):
    @oc.kernel
    def k(x: oc.types.ndarray(dtype=oc.i32, ndim=2), y: oc.types.ndarray(dtype=oc.i32, ndim=2)):
        for I in oc.grouped(x):
            J = I % 2 + oc.Vector([1, 0])
            x[I] = J.x * 100 + J[1] * 10 + I.dot(I)
            for D in oc.static(oc.grouped(oc.ndrange(2, 2))):
                oc.atomic_add(y[I // 2 * 2 + D], D[0] * 2 + D[1])

    x, y = np.zeros((4, 6), np.int32), np.zeros((4, 6), np.int32)
    k(x, y)
    i, j = np.indices((4, 6))
    np.testing.assert_array_equal(x, (i % 2 + 1) * 100 + j % 2 * 10 + i * i + j * j)
    np.testing.assert_array_equal(y, 4 * (2 * (i % 2) + j % 2))


def test_python_functions_trace_vectors(arch):
    def reflect(v, n):
        return v - 2 * v.dot(n) * n

    @oc.kernel
    def k(v: vec3) -> vec3:
        return reflect(v, oc.Vector([0.0, 1.0, 0.0]))

    with pytest.warns(SyntaxWarning, match="reflect"):
        assert k([1, 2, 3]).to_list() == [1, -2, 3]


# ---- arrays -----------------------------------------------------------------------------------------------------------------


def test_arrays_of_vectors(arch):
    @oc.kernel
    def k(x: oc.types.ndarray(dtype=vec3, ndim=1), total: oc.types.ndarray(dtype=vec3, ndim=1)):
        for i in x:
            x[i] = x[i] * 2 + i
            x[i][1] += 0.5
            x[i].z = x[i].x
            x[i].xy += oc.Vector([1.0, 2.0])
            total[0] += x[i]

    x = oc.Vector.ndarray(3, oc.f32, 100)
    x.fill(1)
    x[3] = [4, 5, 6]
    x[4][2] = 9
    x[5].x = 8
    total = oc.Vector.ndarray(3, oc.f32, shape=1)
    before = x.to_numpy()
    assert before.shape == (100, 3) and x.shape == (100,) and x.element_shape == (3,)
    assert before[3].tolist() == [4, 5, 6] and before[4].tolist() == [1, 1, 9] and before[5].tolist() == [8, 1, 1]
    k(x, total)
    i = np.arange(100)[:, None]
    expected = before * 2 + i
    expected[:, 1] += 0.5
    expected[:, 2] = expected[:, 0]
    expected[:, :2] += [1, 2]
    np.testing.assert_allclose(x.to_numpy(), expected)
    np.testing.assert_allclose(total[0].to_numpy(), expected.sum(0), rtol=1e-5)
    assert isinstance(x[0], oc.Vector)


def test_arrays_of_matrices_and_plain_arrays(arch):
    @oc.kernel
    def k(x: oc.types.ndarray(dtype=mat2, ndim=2), v: oc.types.ndarray(dtype=oc.f32, ndim=1, element_shape=(2,))):
        for i, j in x:
            x[i, j][0, 1] = i
            x[i, j] = x[i, j] @ x[i, j]
            v[i] += x[i, j] @ oc.Vector([1.0, 0.0])

    data = np.random.default_rng(4).random((3, 4, 2, 2)).astype(np.float32)
    v = np.zeros((3, 2), np.float32)
    expected = data.copy()
    expected[:, :, 0, 1] = np.arange(3)[:, None]
    expected = expected @ expected
    x = oc.Matrix.ndarray(2, 2, oc.f32, (3, 4))
    x.from_numpy(data)
    k(x, v)
    np.testing.assert_allclose(x.to_numpy(), expected, rtol=1e-5)
    np.testing.assert_allclose(v, expected[:, :, :, 0].sum(1), rtol=1e-5)
    with pytest.raises(ValueError, match="element shape"):
        k(x, np.zeros((3, 3), np.float32))
    with pytest.raises(ValueError, match="element type"):
        k(x, np.zeros((3, 2), np.float64))


# ---- oc.math and linear algebra -----------------------------------------------------------------------------------------------


def test_math_functions(arch):
    @oc.kernel
    def k(v: vec3, n: vec3, out: F32) -> (vec3, vec3, vec3):
        out[0] = oc.math.mix(1.0, 3.0, 0.25)
        out[1] = oc.math.clamp(5.0, 0.0, 2.0)
        out[2] = oc.math.smoothstep(0.0, 2.0, 1.0)
        out[3] = oc.math.length(v)
        out[4] = oc.math.distance(v, n)
        out[5] = oc.math.fract(2.75)
        out[6] = oc.math.sign(-3.0)
        out[7] = oc.math.mod(-1.0, 3.0)
        out[8] = oc.math.radians(180.0)
        c = oc.math.cmul(oc.math.vec2(1, 2), oc.math.vec2(3, -1))
        out[9] = c.x
        out[10] = c.y
        out[11] = float(oc.math.isnan(oc.math.nan)) + float(oc.math.isinf(-oc.math.inf))
        return oc.math.reflect(v, n), oc.math.normalize(v), oc.math.cross(v, n)

    v, n = np.array([1.0, -2, 3]), np.array([0.0, 1, 0])
    out = np.zeros(12, np.float32)
    reflected, unit, cross = k(v, n, out)
    expected = [1.5, 2, 0.5, np.linalg.norm(v), np.linalg.norm(v - n), 0.75, -1, 2, math.pi, 5, 5, 2]
    np.testing.assert_allclose(out, expected, rtol=1e-6)
    assert reflected.to_list() == [1, 2, 3]
    np.testing.assert_allclose(np.array(unit), v / np.linalg.norm(v), rtol=1e-6)
    np.testing.assert_allclose(np.array(cross), np.cross(v, n), rtol=1e-6)


@pytest.mark.parametrize(("dtype", "limit"), [(oc.f32, 3e-6), (oc.f64, 1e-14)], ids=["f32", "f64"])
@pytest.mark.parametrize("n", [2, 3])
def test_svd_and_polar(arch, dtype, limit, n):
    mat = oc.types.matrix(n, n, dtype)
    arrays = oc.types.ndarray(dtype=mat, ndim=1)

    @oc.kernel
    def k(a: arrays, u: arrays, s: arrays, v: arrays, r: arrays, p: arrays):
        for i in a:
            u_, s_, v_ = oc.svd(a[i], dtype)
            u[i] = u_
            s[i] = s_
            v[i] = v_
            r_, p_ = oc.polar_decompose(a[i], dtype)
            r[i] = r_
            p[i] = p_

    count = 50
    a = np.random.default_rng(5).standard_normal((count, n, n))
    a[0] = np.eye(n)
    a[1] = 0
    a[2] = 1
    arrays_ = [oc.ndarray(mat, count) for _ in range(6)]
    arrays_[0].from_numpy(a)
    k(*arrays_)
    a, u, s, v, r, p = (x.to_numpy().astype(np.float64) for x in arrays_)
    eye = np.eye(n)
    assert np.abs(u @ s @ v.transpose(0, 2, 1) - a).max() < limit * 10
    assert np.abs(u @ u.transpose(0, 2, 1) - eye).max() < limit and np.abs(v @ v.transpose(0, 2, 1) - eye).max() < limit
    sigma = np.abs(np.diagonal(s, axis1=1, axis2=2))
    np.testing.assert_allclose(sigma, np.linalg.svd(a, compute_uv=False), atol=limit * 10)
    assert np.abs(r @ p - a).max() < limit * 10


@pytest.mark.parametrize(("dtype", "limit"), [(oc.f32, 2e-5), (oc.f64, 1e-12)], ids=["f32", "f64"])
@pytest.mark.parametrize("n", [2, 3, 6])
def test_symmetric_eigenvalues(arch, dtype, limit, n):
    mat, vec = oc.types.matrix(n, n, dtype), oc.types.vector(n, dtype)

    @oc.kernel
    def k(
        a: oc.types.ndarray(dtype=mat, ndim=1),
        w: oc.types.ndarray(dtype=vec, ndim=1),
        q: oc.types.ndarray(dtype=mat, ndim=1),
    ):
        for i in a:
            w_, q_ = oc.sym_eig(a[i], dtype)
            w[i] = w_
            q[i] = q_

    a = np.random.default_rng(6).standard_normal((20, n, n))
    a = a + a.transpose(0, 2, 1)
    x, w, q = oc.ndarray(mat, 20), oc.ndarray(vec, 20), oc.ndarray(mat, 20)
    x.from_numpy(a)
    k(x, w, q)
    np.testing.assert_allclose(w.to_numpy(), np.linalg.eigvalsh(a), atol=limit)
    q = q.to_numpy().astype(np.float64)
    np.testing.assert_allclose(q @ (w.to_numpy()[:, :, None] * q.transpose(0, 2, 1)), a, atol=limit)


@pytest.mark.parametrize(("dtype", "limit"), [(oc.f32, 1e-3), (oc.f64, 1e-11)], ids=["f32", "f64"])
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 12])
def test_inverse(arch, dtype, limit, n):
    mat = oc.types.matrix(n, n, dtype)

    @oc.kernel
    def k(a: oc.types.ndarray(dtype=mat, ndim=1), b: oc.types.ndarray(dtype=mat, ndim=1)):
        for i in a:
            b[i] = a[i].inverse()

    a = np.random.default_rng(7).random((8, n, n)) + np.eye(n)
    x, y = oc.ndarray(mat, 8), oc.ndarray(mat, 8)
    x.from_numpy(a)
    k(x, y)
    np.testing.assert_allclose(y.to_numpy() @ a, np.broadcast_to(np.eye(n), a.shape), atol=limit)


@pytest.mark.parametrize("n", [2, 3])
def test_solve_and_eig(arch, n):
    @oc.kernel
    def k(a: oc.types.matrix(n, n, oc.f64), b: oc.types.vector(n, oc.f64)) -> oc.types.vector(n, oc.f64):
        return oc.solve(a, b, oc.f64)

    a, b = np.random.default_rng(8).random((n, n)), np.arange(1.0, n + 1)
    np.testing.assert_allclose(a @ np.array(k(a, b)), b, rtol=1e-12)


def test_eig_and_make_spd(arch):
    @oc.kernel
    def k(
        a: oc.types.matrix(2, 2, oc.f64), b: oc.types.matrix(4, 4, oc.f64)
    ) -> (oc.types.matrix(2, 2, oc.f64), oc.types.matrix(4, 4, oc.f64)):
        values, vectors = oc.eig(a, oc.f64)
        return values, oc.make_spd(b, oc.f64)

    b = np.random.default_rng(9).standard_normal((4, 4))
    b = b + b.T
    values, spd = k([[0.0, -2.0], [2.0, 0.0]], b)
    assert sorted(np.array(values)[:, 1].tolist()) == [-2, 2]
    w, q = np.linalg.eigh(b)
    np.testing.assert_allclose(np.array(spd), q @ np.diag(np.maximum(w, 0)) @ q.T, atol=1e-10)


@pytest.mark.parametrize("scale", [1e-7, 1e-6, 1e-4, 1e-2])
@pytest.mark.parametrize("n", [2, 3])
def test_svd_near_the_identity_has_no_bias(arch, n, scale):
    """The deformation of a body in free fall: the orthogonal factor must not shrink or grow it."""
    mat = oc.types.matrix(n, n, oc.f32)
    arrays = oc.types.ndarray(dtype=mat, ndim=1)

    @oc.kernel
    def k(a: arrays, u: arrays, s: arrays, v: arrays, r: arrays, p: arrays):
        for i in a:
            u_, s_, v_ = oc.svd(a[i])
            u[i] = u_
            s[i] = s_
            v[i] = v_
            r_, p_ = oc.polar_decompose(a[i])
            r[i] = r_
            p[i] = p_

    count = 200 if arch in INTERPRETED else 2000
    noise = np.random.default_rng(n).standard_normal((count, n, n))
    a = (np.eye(n) + scale * noise).astype(np.float32)
    arrays_ = [oc.ndarray(mat, count) for _ in range(6)]
    arrays_[0].from_numpy(a)
    k(*arrays_)
    a, u, s, v, r, p = (array.to_numpy().astype(np.float64) for array in arrays_)
    left, _, right = np.linalg.svd(a)
    exact = left @ right
    off = u @ v.transpose(0, 2, 1) - exact
    if n == 2 and scale <= 1e-6:
        assert abs(off).max() < 1e-11 and abs(r - exact).max() < 1e-11
    else:
        bias = 1e-8 if n == 2 else 6e-8
        assert abs(off).max() < 5e-7 and abs(np.trace(off, axis1=1, axis2=2).mean() / n) < bias
    unit = 1.2e-7
    assert abs(u @ s @ v.transpose(0, 2, 1) - a).max() < 40 * unit
    assert abs(r @ p - a).max() < 20 * unit
    for q in (u, v, r):
        assert abs(q @ q.transpose(0, 2, 1) - np.eye(n)).max() < 10 * unit


def test_svd_compiles_quickly():
    @oc.kernel
    def k(a: oc.types.ndarray(dtype=mat3, ndim=1)):
        for i in a:
            u, s, v = oc.svd(a[i])
            a[i] = u @ s @ v.transpose()

    k(oc.ndarray(mat3, 4))
    # The peer takes about 640 ms; this leaves room for a slow machine.
    assert sum(v for name, v in k.compile_statistics()[0].items() if name.endswith("_ms")) < 2000


def test_a_vector_with_too_many_entries_is_refused():
    numbers = [0] * 70000

    @oc.kernel
    def k() -> oc.i32:
        v = oc.Vector(numbers)
        return v[0]

    with pytest.raises(oc.OctantsTypeError, match="65535 entries"):
        k()


# ---- shapes as annotations ----------------------------------------------------------------------------------------------------


def test_a_shape_without_data_type_takes_entries_of_any_type(arch):
    vector, square = oc.types.vector(3), oc.types.matrix(2, 2)

    @oc.func
    def doubled(v: vector) -> vector:
        v *= 2
        return v

    @oc.func
    def both(v: vector, m: square) -> tuple[vector, square]:
        return v + 0.5, m @ m

    @oc.kernel
    def k() -> (ivec3, vec3, vec3, mat2):
        whole = oc.Vector([1, 2, 3])
        real = oc.Vector([0.25, 0.5, 1.0])
        shifted, product = both(whole, oc.Matrix([[1, 1], [0, 1]]))
        return doubled(whole), doubled(real) + whole, shifted, product

    whole, real, shifted, product = k()
    assert whole.to_list() == [2, 4, 6]
    # The argument is passed by value.
    assert real.to_list() == [1.5, 3, 5]
    assert shifted.to_list() == [1.5, 2.5, 3.5]
    assert product.to_list() == [[1, 2], [0, 1]]

    @oc.kernel
    def wrong() -> oc.i32:
        return doubled(oc.Vector([1, 2]))[0]

    with pytest.raises(oc.OctantsCompilationError, match="argument 'v' must be a 3-vector, not a 2-vector of i32"):
        wrong()

    @oc.func
    def cut(v: vector) -> oc.types.vector(2):
        return v

    @oc.kernel
    def another_result() -> oc.i32:
        return cut(oc.Vector([1, 2, 3]))[2]

    with pytest.warns(UserWarning, match=r"(?s)OC1010.*a 3-vector of i32 is returned"):
        assert another_result() == 3


def test_a_shape_without_data_type_is_for_funcs_alone(arch):
    shape = oc.types.vector(3)

    with pytest.raises(oc.OctantsSyntaxError, match="a 3-vector without a data type"):

        @oc.kernel
        def k(v: shape):
            pass

    with pytest.raises(oc.OctantsSyntaxError, match="a 3-vector without a data type"):

        @oc.kernel
        def returning() -> shape:
            return oc.Vector([1, 2, 3])

    for make in (
        lambda: shape(1),
        lambda: shape.field(shape=2),
        lambda: oc.ndarray(shape, 2),
        lambda: oc.types.struct(v=shape),
        lambda: oc.types.ndarray(dtype=shape),
    ):
        with pytest.raises(oc.OctantsTypeError, match="no data type; write for example oc.types.vector\\(3, oc.f32\\)"):
            make()
    assert shape == oc.types.vector(3) != vec3
