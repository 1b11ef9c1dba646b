"""Vectors, matrices, structs, `oc.math` and decompositions on the host. The functions are those that kernels are compiled from."""

import copy
import math
import pickle
import random
import subprocess
import sys
import warnings

import numpy as np
import pytest

import octants as oc
from octants._octants import plain_array

pytestmark = pytest.mark.no_device

EPS = {"f32": 2.0**-23, "f64": 2.0**-52}
vec2, vec3, vec4, ivec3, mat2 = oc.math.vec2, oc.math.vec3, oc.math.vec4, oc.math.ivec3, oc.math.mat2


def same(value, expected, tolerance=0.0):
    array = value.to_numpy() if isinstance(value, oc.Matrix) else np.asarray(value)
    expected = np.asarray(expected)
    assert array.shape == expected.shape
    np.testing.assert_allclose(array.astype(float), expected.astype(float), rtol=tolerance, atol=tolerance)


# ---- making ---------------------------------------------------------------------------------------------------------------


def test_constructors():
    assert oc.Matrix([[1, 2], [3, 4]]).to_list() == [[1, 2], [3, 4]]
    assert isinstance(oc.Matrix([1, 2, 3]), oc.Vector)
    assert oc.Vector(np.arange(3)).to_list() == oc.Vector(i for i in range(3)).to_list() == [0, 1, 2]
    original = oc.Vector([1.7, 2], dt=oc.f64)
    copied = oc.Vector(original)
    copied.x = 5
    assert original.x == 1.7 and copied.dt is oc.f64
    assert oc.Vector([1.7, -1.7], dt=oc.i32).to_list() == [1, -1]
    assert oc.Vector([300, -1], dt=oc.u8).to_list() == [44, 255]
    # A number of a width of its own decides beside plain numbers.
    assert oc.Vector([np.float32(1), 2.5]).entries.dtype == np.float32


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda: oc.Matrix([[1, 2], [3]]), "equal length"),
        (lambda: oc.Matrix([oc.Vector([1, 2]), oc.Vector([3, 4])]), "oc.Matrix.rows"),
        (lambda: oc.Vector([[1, 2], [3, 4]]), "flat list"),
        (lambda: oc.Vector(3), "list of numbers"),
        (lambda: oc.Vector("ab"), "list of numbers"),
        (lambda: oc.Vector([]), r"shape \(0,\)"),
        (lambda: oc.Vector([1, None]), "NoneType"),
        (lambda: oc.Vector([2**80]), "64 bits"),
        (lambda: oc.Matrix(np.ones((2, 2, 2))), r"shape \(2, 2, 2\)"),
        (lambda: vec3(1, 2), r"oc.types.vector\(3, f32\) takes one number or 3 numbers, got 2"),
        (lambda: vec3(vec4(1)), r"shape \(4,\)"),
        (lambda: vec3("abc"), "not from str"),
        (lambda: oc.types.vector(0, oc.f32), "positive integer"),
        (lambda: oc.types.matrix(2, 2)(1), "data type"),
    ],
)
def test_refused_constructions(make, words):
    with pytest.raises(oc.OctantsTypeError, match=words):
        make()


def test_typed_constructors():
    assert vec3(1).to_list() == [1, 1, 1] and vec3(1).entries.dtype == np.float32
    assert (
        vec3(1, oc.Vector([2, 3])).to_list() == vec3(vec2(1, 2), 3).to_list() == vec3([1, 2, 3]).to_list() == [1, 2, 3]
    )
    assert (
        mat2(1, 2, 3, 4).to_list()
        == mat2([1, 2], [3, 4]).to_list()
        == mat2([[1, 2], [3, 4]]).to_list()
        == [[1, 2], [3, 4]]
    )
    assert ivec3(vec3(1.9, -1.9, 0)).to_list() == [1, -1, 0]
    assert oc.types.vector(3, float) == vec3 != ivec3 and len({oc.types.vector(3, oc.f32), vec3}) == 1
    assert isinstance(vec3(1), vec3) and not isinstance(vec2(1), vec3)
    with pytest.warns(UserWarning, match="169 entries"):
        oc.types.matrix(13, 13, oc.f32)


def test_default_types_are_those_of_the_session():
    oc.init(arch=oc.cpu, default_fp=oc.f64, default_ip=oc.i64, log_level="error")
    assert oc.types.vector(2, float).dtype is oc.f64
    assert oc.Matrix.unit(2, 0).dt is oc.i64 and oc.math.eye(2).dt is oc.f64


def test_named_matrices():
    same(oc.Matrix.identity(oc.f32, 2), [[1, 0], [0, 1]])
    same(oc.Matrix.zero(oc.f32, 2, 3), np.zeros((2, 3)))
    same(oc.Vector.one(oc.i32, 3), [1, 1, 1])
    same(oc.Matrix.diag(2, 1.5), [[1.5, 0], [0, 1.5]])
    same(oc.Matrix.rows([vec2(1, 2), [3, 4]]), [[1, 2], [3, 4]])
    same(oc.Matrix.cols([vec2(1, 2), vec2(3, 4)]), [[1, 3], [2, 4]])
    with pytest.raises(oc.OctantsTypeError, match=r"\[2, 3\]"):
        oc.Matrix.cols([vec2(1), vec3(1)])
    with pytest.raises(oc.OctantsTypeError, match="not at 3"):
        oc.Vector.unit(3, 3)


# ---- operators ------------------------------------------------------------------------------------------------------------


def test_operators_follow_the_type_rules_of_kernels():
    def type_of(value):
        return value.entries.dtype.name

    u8, f16, f64 = (oc.types.vector(2, t)(1, 2) for t in (oc.u8, oc.f16, oc.f64))
    i32, u32, f32 = (oc.types.vector(2, t)(1, 2) for t in (oc.i32, oc.u32, oc.f32))
    assert type_of(u8 + 1) == "int32" and type_of(f16 + 1) == "float16" and type_of(f16 + 1.0) == "float32"
    assert type_of(i32 + u32) == "uint32" and type_of(i32 * f16) == "float16" and type_of(f32 * f64) == "float64"
    assert type_of(i32 / i32) == "float32" and type_of(u8 << 3) == "uint8" and type_of(i32**f32) == "float32"
    assert type_of(u8**2) == "uint8" and type_of(f32 > 1) == "bool"
    # Plain numbers stay plain numbers.
    plain = oc.Vector([1, 2])
    assert (plain / 2).to_list() == [0.5, 1.0] and (plain / 2).dt is None
    assert (plain * f32).dt is oc.f32
    assert (oc.types.vector(1, oc.u8)(200) ** 2).to_list() == [200 * 200 % 256]


def test_arithmetic():
    v, m = oc.Vector([7, -7]), oc.Matrix([[1, 2], [3, 4]])
    same(v // 2, [3, -4])
    same(v % 4, [3, 1])
    same(2 - v, [-5, 9])
    same(oc.Vector([-7.5, 7.5]) % 2, [0.5, 1.5])
    same([1, 1] + v, [8, -6])
    same(np.array([1, 1]) + v, [8, -6])
    same(np.float32(2) * v, [14, -14])
    same(v & 3, [3, 1])
    same(-v, [-7, 7])
    same(abs(v), [7, 7])
    same(~v, [-8, 6])
    same(m @ m, [[7, 10], [15, 22]])
    same(m @ oc.Vector([1, 2]), [5, 11])
    same(oc.Vector([1, 2]) @ m, [7, 10])
    assert oc.Vector([1, 2]) @ oc.Vector([3, 4]) == 11
    same(vec2(1, 0) / 0, [np.inf, np.nan])
    with pytest.raises(ZeroDivisionError):
        v // 0


def test_comparisons_give_one_truth_per_entry():
    v = vec3(1, 2, 3)
    assert (v > 1.5).to_list() == [False, True, True]
    assert (v == v).all() and not (v != v).any() and (v > 2).any() and not (v > 2).all()
    with pytest.raises(oc.OctantsTypeError, match=r"\.all\(\)"):
        assert v > 1.5
    assert {v: 1}[v] == 1


@pytest.mark.parametrize(
    "run, words",
    [
        (lambda v, m: v + vec2(1), r"'\+': \(3,\) and \(2,\)"),
        (lambda v, m: v + m, r"'\+': \(3,\) and \(2, 2\)"),
        (lambda v, m: m @ v, r"'@': \(2, 2\) and \(3,\)"),
        (lambda v, m: m @ 2, "not numbers"),
        (lambda v, m: v & 1, "it takes integers"),
        (lambda v, m: ~v, "integers only"),
        (lambda v, m: v + None, "unsupported operand type"),
        (lambda v, m: v.transpose(), "outer_product"),
        (lambda v, m: oc.Matrix([[1, 2], [3, 4], [5, 6]]).inverse(), r"expected a square matrix, got shape \(3, 2\)"),
        (lambda v, m: v.inverse(), r"expected a square matrix, got shape \(3,\)"),
        (lambda v, m: oc.Matrix.identity(oc.f32, 5).determinant(), "sizes up to 4, got 5"),
        (lambda v, m: oc.Matrix.identity(oc.f32, 13).inverse(), "sizes up to 12, got 13"),
        (lambda v, m: m.dot(m), "lhs for dot is not a vector"),
        (lambda v, m: v.dot(vec2(1)), r"\(3,\) and \(2,\)"),
        (lambda v, m: vec4(1).cross(vec4(1)), "2 or 3 entries"),
        (lambda v, m: m.normalized(), "not a vector"),
        (lambda v, m: oc.max(v, vec2(1)), r"\(3,\) and \(2,\)"),
        (lambda v, m: oc.bit_cast(v, oc.f64), "one width"),
    ],
)
def test_refused_operations(run, words):
    with pytest.raises(TypeError, match=words):
        run(vec3(1, 2, 3), mat2(1, 2, 3, 4))


def test_a_variable_keeps_its_type_and_other_names_their_value():
    v = ivec3(1, 2, 3)
    w = v
    v += 1.7
    assert v.to_list() == [2, 3, 4] and v.dt is oc.i32 and w.to_list() == [1, 2, 3]


# ---- entries --------------------------------------------------------------------------------------------------------------


def test_indices_and_slices():
    m, v = oc.Matrix([[1, 2, 3], [4, 5, 6]]), vec4(1, 2, 3, 4)
    assert m[1, 2] == 6 and v[np.int32(1)] == 2
    same(m[0, :], [1, 2, 3])
    same(m[:, 1:], [[2, 3], [5, 6]])
    same(v[3:0:-2], [4, 2])
    row = m[0, :]
    row[0] = 100
    assert m[0, 0] == 1
    m[:, 0] = [7, 8]
    m[1, 1:] = 0
    same(m, [[7, 2, 3], [8, 0, 0]])
    a, b, _, _ = v
    assert (a, b) == (1, 2) and len(m) == 2 and [row.to_list() for row in m] == [[7, 2, 3], [8, 0, 0]]
    with pytest.raises(oc.exceptions.OctantsIndexError, match="Expected 2 indices, got 1"):
        m[0]
    with pytest.raises(oc.OctantsTypeError, match="integers"):
        v[1.0]
    with pytest.raises(oc.OctantsTypeError, match=r"\(3,\) to entries of shape \(2,\)"):
        v[0:2] = [1, 2, 3]
    with pytest.raises(IndexError):
        v[4]


def test_swizzles():
    v = vec4(1, 2, 3, 4)
    assert v.y == v.g == v.t == 2
    assert v.wzyx.to_list() == [4, 3, 2, 1] and v.rrb.to_list() == [1, 1, 3] and v.stpq.to_list() == [1, 2, 3, 4]
    v.xy = v.zw
    v.q = 9.5
    v.rg += 1
    assert v.to_list() == [4, 5, 3, 9.5]
    i = ivec3(1, 2, 3)
    i.xz = [5.9, 6.9]
    assert i.to_list() == [5, 2, 6]
    with pytest.raises(oc.OctantsSyntaxError, match="x, y, z"):
        _ = i.w
    with pytest.raises(oc.OctantsSyntaxError, match="twice"):
        i.xx = [1, 2]
    with pytest.raises(oc.OctantsTypeError, match="vector of 2"):
        i.xy = 1
    with pytest.raises(AttributeError, match="'xr'"):
        _ = i.xr
    with pytest.raises(AttributeError):
        i.foo = 1
    with pytest.raises(oc.OctantsSyntaxError, match="of vectors"):
        _ = mat2(1).x


def test_text_and_copies():
    m = mat2(1, 2, 3, 4)
    assert str(m) == "[[1. 2.]\n [3. 4.]]" and f"{m:.1f}" == "[[1.0, 2.0], [3.0, 4.0]]"
    for other in (copy.copy(m), copy.deepcopy(m), pickle.loads(pickle.dumps(m))):
        other[0, 0] = 9
        assert m[0, 0] == 1 and other.dt is oc.f32
    assert pickle.loads(pickle.dumps(vec3)) == vec3
    assert np.asarray(m).tolist() == m.to_numpy().tolist() and np.sin(m).entries.dtype == np.float32


# ---- methods --------------------------------------------------------------------------------------------------------------


def test_methods():
    v, w, m = vec3(1, 2, 2), vec3(3, 1, 2), mat2(1, 2, 3, 4)
    assert v.norm() == 3 and v.norm_sqr() == 9 and v.norm(7) == 4 and v.norm_inv(7) == 0.25
    same(v.normalized(), np.array([1, 2, 2]) / 3, 1e-7)
    same(vec2(0, 0).normalized(1e-3), [0, 0])
    assert v.dot(w) == 9 and vec2(1, 2).cross(vec2(3, 5)) == -1
    same(v.cross(w), [2, 4, -5])
    same(vec2(1, 2).outer_product(v), [[1, 2, 2], [2, 4, 4]])
    assert m.trace() == 5 and m.determinant() == -2 and m.frobenius_inner(m) == m.norm_sqr() == 30
    same(m.transpose(), [[1, 3], [2, 4]])
    assert m.sum() == 10 and m.max() == 4 and m.min() == 1 and m.all() and not mat2(0).any()
    assert m.cast(int).dt is oc.i32 and m.get_shape() == (2, 2) and (v.n, v.m, v.ndim) == (3, 1, 1)
    v.fill(5)
    assert v.to_list() == [5, 5, 5]
    assert oc.Vector([3, 4]).norm() == 5 and oc.Matrix([[2, 0], [0, 4]]).inverse().to_list() == [[0.5, 0], [0, 0.25]]
    # The type of reals is kept.
    half = oc.types.matrix(2, 2, oc.f16)(1, 2, 3, 4)
    assert half.inverse().entries.dtype == np.float16 and half.norm().dtype == np.float16


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("n", range(1, 13))
def test_inverse(n, dtype):
    rng = np.random.default_rng(n)
    for a in (rng.standard_normal((n, n)), np.roll(np.eye(n), 1, axis=0) + 1e-3 * rng.standard_normal((n, n))):
        m = oc.Matrix(a, dt=getattr(oc, dtype))
        inverse = m.inverse().to_numpy()
        assert inverse.dtype == m.entries.dtype
        exact = m.to_numpy().astype(float)
        error = np.abs(inverse @ exact - np.eye(n)).max()
        assert error < 4 * EPS[dtype] * np.linalg.cond(exact)
        if n <= 4:
            assert abs(m.determinant() - np.linalg.det(exact)) < 10 * EPS[dtype] * np.linalg.norm(exact) ** n


def test_math_functions_take_matrices():
    v = vec3(-1.5, 0.25, 2.5)
    same(oc.round(v), [-2, 0, 3])
    same(oc.floor(v, oc.i32), [-2, 0, 2])
    same(oc.max(v, 0, oc.Vector([1, 1, 1])), [1, 1, 2.5])
    same(oc.select(v > 0, v, 7), [7, 0.25, 2.5])
    same(oc.atan2(v, 1.0), np.arctan2(v.to_numpy(), np.float32(1)))
    same(oc.raw_div(oc.Vector([-7, 7]), 2), [-3, 3])
    same(oc.raw_mod(oc.Vector([-7, 7]), 4), [-3, 3])
    same(oc.bit_shr(ivec3(-1, 8, 1), 1), [0x7FFFFFFF, 4, 0])
    same(oc.sqrt(ivec3(4, 9, 2)), np.sqrt(np.float32([4, 9, 2])))
    assert oc.cast(v, oc.u1).to_list() == [True, True, True] and oc.sqrt(ivec3(4)).dt is oc.f32
    same(oc.zero(oc.Vector([np.inf, 1])), [0, 0])
    assert oc.bit_cast(vec2(1, -1), oc.i32).to_list() == [0x3F800000, -0x40800000]
    # Numbers of Python's have the width that is asked for.
    assert oc.bit_cast(1.0, oc.i32) == 0x3F800000 and oc.bit_cast(1.0, oc.u64) == 0x3FF0000000000000
    assert (
        oc.bit_cast(0x3F800000, oc.f32) == 1.0
        and oc.bit_cast(-1, oc.u8) == 255
        and oc.bit_cast(0xFFFFFFFF, oc.i32) == -1
    )
    for x, dtype in (1.0, oc.u8), (np.float32(1), oc.i64):
        with pytest.raises(oc.OctantsTypeError, match="one width"):
            oc.bit_cast(x, dtype)


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


# ---- structs --------------------------------------------------------------------------------------------------------------


@oc.dataclass
class Particle:
    """A point with a mass."""

    position: vec3
    mass: oc.f32
    number: int

    @oc.pyfunc
    def weight(self, gravity):
        return self.mass * gravity

    @staticmethod
    def kind():
        return "particle"


def test_struct_values():
    s = oc.Struct(a=1, v=[1, 2], inner={"b": 2.5})
    assert s.a == s["a"] == 1 and s.inner.b == 2.5 and s.v.y == 2
    assert s.keys == ["a", "v", "inner"] and len(s) == 3 and "a" in s and list(s.entries) == s.keys
    assert s.to_dict() == {"a": 1, "v": [1, 2], "inner": {"b": 2.5}} and str(s) == str(s.to_dict())
    assert s.to_dict(include_ndim=True)["__matrix_ndim"] == {"v": 1}
    a, v, inner = s
    assert a == 1 and inner is s.inner
    s.v.x = 9
    s["a"] = 3
    s.inner = {"b": 7}
    assert s.to_dict() == {"a": 3, "v": [9, 2], "inner": {"b": 7}}
    assert copy.deepcopy(s).to_dict() == pickle.loads(pickle.dumps(s)).to_dict() == s.to_dict()
    assert oc.Struct(a=2, __struct_methods={"twice": lambda self: 2 * self.a}).twice() == 4


def test_struct_types():
    inner = oc.types.struct(a=oc.i32, v=vec2)
    outer = oc.types.struct(inner=inner, x=float)
    assert inner(1).to_dict() == {"a": 1, "v": [0, 0]} and inner(a=1.7, v=[1, 2]).a == 1
    assert inner({"a": 1, "v": [1, 2]}).v.dt is oc.f32 and inner(oc.Struct(a=1, v=[1, 2])).a == 1
    assert (
        outer(inner(5), 2).to_dict()
        == outer(inner={"a": 5, "v": 0}, x=2).to_dict()
        == {"inner": {"a": 5, "v": [0, 0]}, "x": 2.0}
    )
    s = outer()
    s.inner.a = 2.7
    s.inner.v = vec2(1, 2)
    s.x = 1
    assert s.to_dict() == {"inner": {"a": 2, "v": [1, 2]}, "x": 1.0}
    source = inner(4)
    s.inner = source
    source.a = 5
    assert s.inner.a == 4 and isinstance(s.inner, inner) and not isinstance(s, inner)


def test_dataclasses():
    p = Particle(position=[1, 2, 3], mass=0.5)
    assert p.weight(10) == 5 and p.kind() == "particle" and p.number == 0
    assert Particle.members["number"] is oc.i32 and list(Particle.methods) == ["weight", "kind"]
    assert Particle.__name__ == "Particle" and Particle.__doc__ == "A point with a mass."
    assert "__struct_methods" in p.to_dict(include_methods=True)

    @oc.dataclass
    class Text:
        r: "oc.types.vector(2, oc.f32, unpacked=True)"
        p: "Particle"

    t = Text(1, 2)
    assert list(Text.members) == ["_r0", "_r1", "p"] and t.r[1] == 2
    t.r[1] = 5
    assert t._r1 == 5


@pytest.mark.parametrize(
    "run, error, words",
    [
        (lambda: oc.Struct(1), oc.OctantsSyntaxError, "one dict"),
        (lambda: Particle(1, 2, 3, 4), oc.OctantsSyntaxError, "has 3 members, got 4"),
        (lambda: Particle(speed=1), oc.OctantsSyntaxError, "no member 'speed'; it has position, mass, number"),
        (lambda: Particle(1, position=2), oc.OctantsSyntaxError, "given twice"),
        (lambda: Particle({"mass": 1}), oc.OctantsSyntaxError, "position, mass, number; got mass"),
        (lambda: Particle(position=[1, 2]), oc.OctantsTypeError, "member `position`.*got 2"),
        (lambda: oc.types.struct(a=3), oc.OctantsTypeError, "member `a`"),
        (lambda: oc.types.struct(a=oc.types.vector(2, oc.f32, unpacked=True)), oc.OctantsSyntaxError, "@oc.dataclass"),
        (lambda: oc.types.vector(2, oc.f32, unpacked=True)(1, 2), oc.OctantsSyntaxError, "@oc.dataclass"),
        (
            lambda: oc.dataclass(type("D", (), {"__annotations__": {"x": int}, "x": 3})),
            oc.OctantsSyntaxError,
            "Default value in @dataclass",
        ),
        (lambda: oc.dataclass(type("D", (), {"__annotations__": {"x": "nowhere"}})), oc.OctantsSyntaxError, "nowhere"),
        (lambda: setattr(Particle(), "speed", 1), AttributeError, "no member 'speed'"),
        (lambda: setattr(oc.Struct(s={"a": 1}), "s", {"b": 1}), oc.OctantsTypeError, "members b to member `s` with a"),
        (lambda: setattr(oc.Struct(s={"a": 1}), "s", 1), oc.OctantsTypeError, "only a struct or a dict"),
        (lambda: Particle() + 1, TypeError, "unsupported operand"),
    ],
)
def test_refused_structs(run, error, words):
    with pytest.raises(error, match=words):
        run()


def test_names_collide_with_unpacked_members():
    with pytest.raises(oc.OctantsSyntaxError, match="`_r0` is there twice"):

        @oc.dataclass
        class Collision:
            _r0: oc.f32
            r: oc.types.vector(2, oc.f32, unpacked=True)


# ---- pyfunc and the package -----------------------------------------------------------------------------------------------


def test_pyfunc_is_the_function_itself():
    @oc.pyfunc
    def double(x):
        return 2 * x

    assert double(4) == 8 and double.__octants__ == "func"
    assert Particle().weight.__octants__ == "func" and vec3(1).norm.__octants__ == "func"
    with pytest.raises(oc.OctantsSyntaxError, match="decorates a function"):
        oc.pyfunc(3)


def test_importing_stays_light():
    program = (
        "import sys, octants; print(sorted({'numpy', 'dataclasses', 'typing', 'inspect', 're'} & set(sys.modules)))"
    )
    result = subprocess.run(
        [sys.executable, "-S", "-c", f"import sys; sys.path[:] = {sys.path!r}; {program}"],
        capture_output=True,
        text=True,
    )
    assert result.stdout.strip() == "[]", result.stdout + result.stderr


def test_the_truth_of_a_comparison_is_that_of_all_or_of_any_entry():
    a, b = oc.Vector([1, 2]), oc.Vector([1, 3])
    assert (a == b).to_list() == [True, False]
    assert (a < b).to_list() == [False, True]
    assert a == oc.Vector([1, 2]) and not (a == b)
    assert a != b and not (a != oc.Vector([1, 2]))
    assert a == (1, 2) and a != [1, 3]
    assert a in [b, oc.Vector([1, 2])]
    m = oc.Matrix([[1, 2], [3, 4]])
    assert m == m and not (m != m)


def test_the_truth_of_another_comparison_is_refused():
    a, b = oc.Vector([1, 2]), oc.Vector([1, 3])
    for comparison in (a < b, a <= b, a > b, a >= b, ~(a == b)):
        with pytest.raises(oc.OctantsTypeError, match="one truth for each entry"):
            bool(comparison)
    assert bool(oc.Vector([1]) < oc.Vector([2]))


def test_the_usual_operations_give_what_the_general_ones_give():
    """Operands of one type, plain lists and single indices take short paths: values, types and errors are the same."""
    with np.errstate(all="raise"):
        for dt in (None, oc.f32, oc.f64, oc.i32, oc.i64):
            a, b = oc.Vector([7, 2, 5], dt), oc.Vector([3, 4, 6], dt)
            for result, expected in [(a + b, [10, 6, 11]), (a - b, [4, -2, -1]), (a * b, [21, 8, 30])]:
                assert result.to_list() == expected
                assert result.dt is dt
                assert result.entries.dtype == a.entries.dtype
            assert (a + 1).to_list() == [8, 3, 6]
            assert (10 - a).to_list() == [3, 8, 5]
            assert (a * 2.0).entries.dtype.kind == "f"
            assert (a / b).entries.dtype.kind == "f"
            assert a[1] == a[-2] == a.y == 2
            assert a.cross(b).to_list() == [-8, -27, 22]
            with pytest.raises(IndexError):
                a[3]
            with pytest.raises(oc.OctantsTypeError):
                a[1.0]
            for other in (None, "1", [1, 2], oc.Vector([1, 2], dt)):
                with pytest.raises(TypeError):
                    a + other
        assert (oc.Vector([3e38], oc.f32) + oc.Vector([3e38], oc.f32)).to_list() == [math.inf]
        assert (oc.Vector([1.0]) / 0.0).to_list() == [math.inf]
        assert oc.Vector([1e300], oc.f32).to_list() == [math.inf]
    # A session's default types decide beside typed values, and plain integers may need all 64 bits.
    assert (oc.Vector([1.5, 2.5], oc.f32) * 2.0).dt is oc.f32
    assert (oc.Vector([1.5], oc.f64) + 1).dt is oc.f64
    assert oc.Vector([2**64 - 1, 1]).to_list() == [2**64 - 1, 1]
    assert oc.Vector([2**31], oc.i32).to_list() == [-(2**31)]
    assert oc.Vector([1.9, -1.9], oc.i32).to_list() == [1, -1]
    m = oc.Matrix([[1.0, 2.0], [3.0, 4.0]])
    assert m[1, 0] == 3.0
    assert m[1, 0:2].to_list() == [3.0, 4.0]
    assert bool(oc.Vector([1, 2]) == oc.Vector([1, 2]))
    assert (oc.Vector([1, 2]) == oc.Vector([1, 2])).comparison == "=="
    assert m.comparison is None


@pytest.mark.parametrize("dt", [None, oc.f32, oc.f64])
def test_functions_of_reals_keep_the_type_and_go_entry_by_entry(dt):
    kind = np.dtype(dt.numpy_name) if dt else np.dtype(float)
    numbers = np.array([-1.5, 0.0, 0.25, 2.5, np.inf, np.nan], kind)
    v, w = oc.Vector(numbers, dt=dt), oc.Vector(numbers[::-1].copy(), dt=dt)
    ufuncs = {
        "floor": "floor",
        "ceil": "ceil",
        "sqrt": "sqrt",
        "exp": "exp",
        "sin": "sin",
        "asin": "arcsin",
        "log": "log",
    }
    with np.errstate(all="ignore"):
        found = {name: getattr(oc, name)(v) for name in ufuncs}
        wanted = {name: getattr(np, ufunc)(numbers) for name, ufunc in ufuncs.items()}
        found |= {"max": oc.max(v, w), "//": v // w, "%": v % 2.0, "**": v**2, "r//": 7.0 // v}
        wanted |= {"max": np.fmax(numbers, numbers[::-1]), "//": numbers // numbers[::-1]}
        wanted |= {"%": numbers % kind.type(2), "**": numbers**2, "r//": kind.type(7) // numbers}
    for name, result in found.items():
        assert result.dt is dt, name
        np.testing.assert_array_equal(result.to_numpy(), wanted[name], err_msg=name)


def test_integers_are_divided_with_care():
    v = oc.Vector([7, -7, 3])
    assert (v // 2).to_list() == [3, -4, 1] and (v % 2).to_list() == [1, 1, 1]
    assert (20 // v).to_list() == [2, -3, 6] and (v // v).to_list() == [1, 1, 1]
    assert (v**2).to_list() == [49, 49, 9] and (v / 2).to_list() == [3.5, -3.5, 1.5]
    assert (oc.Vector([7, -7], dt=oc.i32) // 2).dt is oc.i32
    for divide in (lambda: v // 0, lambda: v % 0, lambda: v // oc.Vector([1, 0, 1]), lambda: 1 % oc.Vector([0, 1])):
        with pytest.raises(ZeroDivisionError):
            divide()
    with pytest.raises(oc.OctantsTypeError):
        oc.max(v, oc.Vector([1, 2]))


# ---- short ways -----------------------------------------------------------------------------------------------------------


NUMBERS = [
    0,
    1,
    -3,
    2**31 - 1,
    2**31,
    2**40,
    -(2**63),
    2**63 - 1,
    0.5,
    -0.0,
    1e-40,
    3.4e38,
    1e39,
    float("inf"),
    float("nan"),
    1e300,
]
OTHERS = [True, 2**63, 2**70, np.float32(1), np.int64(2), "1", None, 1j]


@pytest.mark.parametrize("seed", range(40))
def test_short_lists_are_what_numpy_makes_of_them(seed):
    generator = random.Random(seed)
    with np.errstate(all="ignore"):
        for _ in range(50):
            pool = NUMBERS if generator.random() < 0.8 else NUMBERS + OTHERS
            shape = generator.choice([(1,), (3,), (4,), (20,), (1, 1), (2, 3), (5, 4)])
            numbers = [generator.choice(pool) for _ in range(int(np.prod(shape)))]
            rows = numbers if len(shape) == 1 else [numbers[i : i + shape[1]] for i in range(0, len(numbers), shape[1])]
            rows = tuple(map(tuple, rows)) if len(shape) == 2 and generator.random() < 0.3 else rows
            dt = generator.choice([None, oc.f32, oc.f64, oc.i32, oc.i64])
            found = plain_array(rows, dt)
            if any(any(one is other for other in OTHERS) for one in numbers):
                assert found is None
            elif found is not None:
                wanted = np.array(rows, None if dt is None else dt.numpy_name)
                assert (
                    found.dtype == wanted.dtype and found.shape == wanted.shape and found.tobytes() == wanted.tobytes()
                )
            else:
                # What is left to a closer look: integers that do not fit, and reals that are no integers or no finite f32.
                assert dt is not None and not (dt is oc.f64)


@pytest.mark.parametrize(
    "values", [[], [[]], [[1, 2], [3]], [[1], 2], [1, [2]], [[[1]]], 3, "12", {1: 2}, {1, 2}, np.arange(3), None]
)
def test_what_is_no_short_list(values):
    assert plain_array(values) is None


def test_numpy_says_nothing_of_infinities(monkeypatch):
    from octants import _quiet

    big = oc.Vector([1e308, 1.0])
    for way in (_quiet._by_context, _quiet._by_errstate):
        call = way()
        assert call is not None
        monkeypatch.setattr(_quiet, "quietly", call)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            before = np.geterr()
            assert (big * 10.0).to_list() == [np.inf, 10.0] and (big / 0.0).to_list() == [np.inf, np.inf]
            with pytest.raises(ZeroDivisionError):
                call(lambda: 1 // 0)
            assert np.geterr() == before


def test_shapes_and_names_of_vectors():
    v, m = oc.Vector([1, 2, 3]), oc.Matrix([[1, 2], [3, 4], [5, 6]])
    assert (v.n, v.m, v.ndim, len(v), v.get_shape()) == (3, 1, 1, 3, (3,))
    assert (m.n, m.m, m.ndim, len(m), m.get_shape()) == (3, 2, 2, 3, (3, 2))
    for name in ("n", "m", "ndim", "entries", "dt", "comparison"):
        with pytest.raises(AttributeError):
            setattr(v, name, 5)
    assert "norm" in dir(v) and "xyz" not in dir(v) and v.xyz.to_list() == [1, 2, 3]
    # As in Quadrants, the array is the vector's own.
    v.to_numpy()[0] = 7
    assert v[0] == 7
    x = oc.Vector.field(3, oc.f32, 2)
    assert (x[1].n, x[1].m, len(x[1]), x[1].get_shape()) == (3, 1, 3, (3,))


def test_entries_are_set_as_their_type_takes_them():
    f, i, d, m = (
        oc.Vector([1.0, 2.0], dt=oc.f32),
        oc.Vector([1, 2], dt=oc.i32),
        oc.Vector([1.0, 2.0]),
        oc.Matrix([[1.0, 2.0]]),
    )
    f[0], f[1] = 16777217, 1e39
    assert f.to_list() == [16777216.0, np.inf]
    i[0], i[1] = 2**32 + 5, 2.9
    assert i.to_list() == [5, 2]
    d[0], d[-1] = 2**53 + 1, -1
    assert d.to_list() == [2.0**53, -1]
    m[0, 1], m[-1, 0] = 3, 0.5
    assert m.to_list() == [[0.5, 3.0]]
    for wrong in (2, -3):
        with pytest.raises(IndexError):
            d[wrong] = 1.0
    with pytest.raises(IndexError, match="Expected 2 indices"):
        m[0] = 1.0
