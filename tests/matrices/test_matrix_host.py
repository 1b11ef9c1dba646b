"""Vectors and matrices on the host: making, operators, entries and methods."""

import copy
import pickle

import numpy as np
import pytest
from host_values import EPS, same

import octants as oc

pytestmark = pytest.mark.no_device

vec2, vec3, vec4, ivec3, mat2 = oc.math.vec2, oc.math.vec3, oc.math.vec4, oc.math.ivec3, oc.math.mat2


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
        (lambda: oc.Matrix([oc.Vector([1, 2]), oc.Vector([3, 4, 5])]), "equal length"),
        (lambda: oc.Matrix([oc.Matrix([[1, 2]]), oc.Matrix([[3, 4]])]), "not matrices"),
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
