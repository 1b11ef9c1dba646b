"""`oc.math` and decompositions on the host. The functions are those that kernels are compiled from."""

import numpy as np
import pytest
from host_values import EPS, same

import octants as oc

pytestmark = pytest.mark.no_device

vec2, vec3, mat2 = oc.math.vec2, oc.math.vec3, oc.math.mat2


# ---- oc.math --------------------------------------------------------------------------------------------------------------


def test_glsl_functions():
    m = oc.math
    same(m.mix(vec3(1, 2, 3), vec3(4, 5, 6), vec3(0, 0.5, 1)), [1, 3.5, 6])
    same(m.clamp(vec3(1, 2, 3), 1.5, 2), [1.5, 2, 2])
    assert m.clamp(5, 1, 3) == 3
    same(m.step(1.0, vec3(0.5, 1, 2)), [0, 1, 1])
    same(m.smoothstep(vec2(0, 1), vec2(2, 3), vec2(1, 2.5)), [0.5, 0.84375])
    same(m.fract(vec2(1.25, -1.25)), [0.25, 0.75])
    same(m.sign(vec3(-2, 0, 3)), [-1, 0, 1])
    same(m.mod(vec2(5.5, -5.5), 2), [1.5, 0.5])
    assert m.mod(7, 3) == 1
    assert m.radians(180.0) == np.pi and abs(m.degrees(1.0) - np.degrees(1.0)) < 1e-14
    assert m.length(vec2(3, 4)) == 5 and m.distance(vec2(1, 2), vec2(4, 6)) == 5 and m.dot(vec2(1, 2), vec2(3, 4)) == 11
    same(m.cross(vec3(1, 2, 3), vec3(3, 1, 2)), [1, 7, -5])
    same(m.normalize(vec2(3, 4)), [0.6, 0.8], 1e-7)
    same(m.reflect(vec3(1, -1, 0), vec3(0, 1, 0)), [1, 1, 0])
    same(m.refract(vec3(0.6, -0.8, 0), vec3(0, 1, 0), 0.5), [0.3, -np.sqrt(1 - 0.09), 0], 1e-6)
    same(m.refract(vec3(0.8, -0.6, 0), vec3(0, 1, 0), 2.0), [0, 0, 0])
    same(m.isnan(vec2(m.nan, 1)), [1, 0])
    same(m.isinf(vec2(m.inf, 1)), [1, 0])
    same(m.log2(vec2(8, 2)), [3, 1])
    same(m.vdir(0.3), [np.cos(0.3), np.sin(0.3)])
    same(m.inverse(mat2(1, 2, 3, 4)), [[-2, 1], [1.5, -0.5]])


def test_complex_numbers():
    m = oc.math

    def as_complex(v):
        return complex(v.x, v.y)

    for a in (3 - 4j, -1 + 0j, -2 - 1e-3j, 1e-8 + 1j, 0j):
        z = oc.Vector([a.real, a.imag])
        root = as_complex(m.csqrt(z))
        assert abs(root - np.sqrt(a)) <= 1e-15 * abs(root)
        assert abs(as_complex(m.cexp(z)) - np.exp(a)) <= 1e-14
        assert as_complex(m.cconj(z)) == a.conjugate()
        assert abs(as_complex(m.cpow(z, 3)) - a**3) <= 1e-13
        if a:
            assert abs(as_complex(m.clog(z)) - np.log(a)) <= 1e-15 * 4
            assert abs(as_complex(m.cinv(z)) - 1 / a) <= 1e-15
            assert abs(as_complex(m.cdiv(vec2(1, 2), z)) - (1 + 2j) / a) <= 1e-6
        assert as_complex(m.cmul(z, oc.Vector([0, 1]))) == complex(-a.imag, a.real)


def test_rotations():
    m = oc.math
    for rotation in (
        m.rotation2d(0.5),
        m.rotation3d(0.1, 0.2, 0.3),
        m.rot_by_axis(oc.Vector([1.0, 2.0, 3.0]), 0.3),
        m.rot_yaw_pitch_roll(0.1, 0.2, 0.3),
    ):
        same(rotation @ rotation.transpose(), np.eye(rotation.n), 1e-15)
        assert abs(rotation.determinant() - 1) < 1e-15
    # The axis stays, and a row vector turns counterclockwise about it.
    same(oc.Vector([1.0, 2, 3, 1]) @ m.rot_by_axis(oc.Vector([1.0, 2, 3]), 0.3), [1, 2, 3, 1], 1e-15)
    same(
        oc.Vector([1.0, 0, 0, 1]) @ m.rot_by_axis(oc.Vector([0, 0, 2.0]), 0.5), [np.cos(0.5), np.sin(0.5), 0, 1], 1e-15
    )
    same(m.rotation2d(0.5) @ oc.Vector([1, 0]), [np.cos(0.5), np.sin(0.5)], 1e-15)
    # Roll about z first, then pitch about x, then yaw about y.
    same(oc.Vector([0, 0, 1, 1]) @ m.rot_yaw_pitch_roll(np.pi / 2, 0.0, 0.7), [1, 0, 0, 1], 1e-15)
    same(m.rotation3d(0.1, 0.2, 0.3), m.rot_yaw_pitch_roll(0.3, 0.1, 0.2).to_numpy())
    same(m.translate(1, 2, 3) @ m.scale(2, 2, 2) @ oc.Vector([1, 1, 1, 1]), [3, 4, 5, 1])


def test_position_of_a_set_bit():
    none = 0xFFFFFFFF
    bits = 0b1011
    cases = {
        (0, 3): 3,
        (3, -1): 3,
        (2, 1): 3,
        (1, 0): 1,
        (2, 0): none,
        (0, 4): none,
        (3, -3): 0,
        (2, -3): none,
        (31, -1): 3,
    }
    for (base, offset), expected in cases.items():
        assert oc.math.fns(bits, base, offset) == expected, (base, offset)


def test_public_names_of_math():
    missing = [name for name in oc.math.__all__ if not hasattr(oc.math, name)]
    assert not missing


# ---- decompositions -------------------------------------------------------------------------------------------------------


def square_matrices(n, dtype, count):
    """Matrices that are hard in different ways."""
    rng = np.random.default_rng(7)
    for a in rng.standard_normal((count, n, n)):
        q, r = (np.linalg.qr(x)[0] for x in rng.standard_normal((2, n, n)))
        yield a
        yield np.eye(n) + 1e-6 * a
        yield q * (10.0 ** (-4 * np.arange(n))) @ r
        yield q * np.where(np.arange(n) < 1, 1, 1e-5) @ r
        yield np.outer(a[0], a[1])
        yield np.round(a)
        yield a * 1e25
        yield a * 1e-25
        yield np.diag(a[0])
    yield np.zeros((n, n))


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("n", [2, 3])
def test_svd_and_polar(n, dtype):
    dt, eps = getattr(oc, dtype), EPS[dtype]
    for a in square_matrices(n, dtype, 6):
        a = oc.Matrix(a, dt=dt)
        exact = a.to_numpy().astype(float)
        results = [x.to_numpy() for x in oc.svd(a, dt)]
        assert all(x.dtype == a.entries.dtype for x in results)
        u, s, v = (x.astype(float) for x in results)
        size = max(np.linalg.norm(exact, 2), 1e-30)
        assert np.abs(u @ s @ v.T - exact).max() < 12 * eps * size
        for orthogonal in (u, v):
            assert np.abs(orthogonal.T @ orthogonal - np.eye(n)).max() < 12 * eps
        sigma = np.diag(s)
        assert (np.diff(sigma) <= 2 * eps * size).all() and np.count_nonzero(s - np.diag(sigma)) == 0
        assert np.abs(np.abs(sigma) - np.linalg.svd(exact, compute_uv=False)).max() < 12 * eps * size
        assert abs(np.linalg.det(v) - 1) < 1e-5
        assert abs(np.linalg.det(u) - 1) < 1e-5 if n == 3 else sigma[-1] >= 0
        r, stretch = (x.to_numpy().astype(float) for x in oc.polar_decompose(a, dt))
        assert np.abs(r @ stretch - exact).max() < 30 * eps * size
        assert np.abs(r.T @ r - np.eye(n)).max() < 30 * eps and np.abs(stretch - stretch.T).max() < 30 * eps * size


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 6])
def test_symmetric_eigenvalues(n, dtype):
    dt, eps = getattr(oc, dtype), EPS[dtype]
    for a in square_matrices(n, dtype, 1) if n > 1 else [np.array([[-2.0]])]:
        a = oc.Matrix(np.triu(a) + np.triu(a, 1).T, dt=dt)
        exact = a.to_numpy().astype(float)
        values, v = (x.to_numpy() for x in oc.sym_eig(a, dt))
        assert values.dtype == v.dtype == a.entries.dtype
        values, v = values.astype(float), v.astype(float)
        size = max(np.linalg.norm(exact, 2), 1e-30)
        assert np.abs(v * values @ v.T - exact).max() < 25 * eps * size
        assert np.abs(v.T @ v - np.eye(n)).max() < 25 * eps
        reference, axes = np.linalg.eigh(exact)
        assert np.abs(values - reference).max() < 15 * eps * size and (np.diff(values) >= 0).all()
        nearest = oc.make_spd(a, dt)
        assert np.abs(nearest.to_numpy() - axes * np.maximum(reference, 0) @ axes.T).max() < 30 * eps * size
        assert np.abs((oc.make_spd(nearest, dt) - nearest).to_numpy()).max() < 30 * eps * size


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_eigenvalues(dtype):
    dt, eps = getattr(oc, dtype), EPS[dtype]
    rng = np.random.default_rng(3)
    special = [
        [[0, -1], [1, 0]],
        [[2, 0], [0, 2]],
        [[3, 0], [0, 1]],
        [[1, 0], [0, 3]],
        [[2, 1], [0, 3]],
        [[0, 0], [0, 0]],
    ]
    for a in [*rng.standard_normal((30, 2, 2)), *special]:
        a = oc.Matrix(np.asarray(a, dtype=float), dt=dt)
        values, vectors = (x.to_numpy().astype(float) for x in oc.eig(a, dt))
        assert vectors.shape == (4, 2)
        for value, vector in zip(values @ [1, 1j], (vectors[::2] + 1j * vectors[1::2]).T, strict=True):
            assert abs(np.linalg.norm(vector) - 1) < 5 * eps
            assert np.abs(a.to_numpy() @ vector - value * vector).max() <= 6 * eps * np.abs(a.to_numpy()).max()


@pytest.mark.parametrize("n", [2, 3])
def test_solve(n):
    rng = np.random.default_rng(5)
    for _ in range(20):
        a, b = rng.standard_normal((n, n)), rng.standard_normal(n)
        x = oc.solve(oc.Matrix(a), oc.Vector(b), oc.f64).to_numpy()
        assert np.abs(a @ x - b).max() < 1e-14 * np.abs(a).max() * np.abs(x).max()
    same(oc.solve(oc.Matrix([[0, 1], [2, 0]]), oc.Vector([3, 4])), [2, 3])
    with pytest.raises(AssertionError, match="singular"):
        oc.solve(oc.Matrix([[1, 2], [2, 4]]), oc.Vector([1, 1]))


def test_refused_decompositions():
    eye = oc.Matrix.identity(oc.f32, 7)
    for run, words in (
        (lambda: oc.svd(eye), "SVD only supports 2×2 and 3×3 matrices."),
        (lambda: oc.polar_decompose(eye), "Polar decomposition only supports 2×2 and 3×3 matrices."),
        (lambda: oc.eig(eye), "Eigen solver only supports 2×2 matrices."),
        (lambda: oc.sym_eig(eye), "Symmetric eigen solver currently supports sizes up to 6×6."),
        (lambda: oc.make_spd(eye), "Symmetric eigen solver currently supports sizes up to 6×6."),
        (lambda: oc.solve(eye, oc.Vector.one(oc.f32, 7)), "Solver only supports 2×2 and 3×3 matrices."),
    ):
        with pytest.raises(Exception) as caught:
            run()
        assert type(caught.value) is Exception and str(caught.value) == words
    with pytest.raises(AssertionError, match="2 entries, got 3"):
        oc.solve(mat2(1), vec3(1))
