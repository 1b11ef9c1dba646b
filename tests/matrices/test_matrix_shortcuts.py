"""Usual operations of vectors and matrices on the host take short paths: values, types and errors are those of the general ones."""

import math
import random
import warnings

import numpy as np
import pytest

import octants as oc
from octants._octants import plain_array

pytestmark = pytest.mark.no_device


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
    from octants._matrix import quiet

    big = oc.Vector([1e308, 1.0])
    for way in (quiet._by_context, quiet._by_errstate):
        call = way()
        assert call is not None
        monkeypatch.setattr(quiet, "quietly", call)
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
