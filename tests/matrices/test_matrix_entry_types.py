"""Matrices of the host keep the declared type of their entries, whatever makes a new matrix of them."""

import copy
import pickle

import numpy as np
import pytest

import octants as oc

BIG = 2**40


def wide(n=2, m=2, dt=oc.i64):
    return oc.Matrix([[BIG + 7 * i + j for j in range(m)] for i in range(n)], dt=dt)


def vector(n=3, dt=oc.i64):
    return oc.Vector([BIG + 2 * i for i in range(n)], dt=dt)


SAME_ENTRIES = {
    "transpose": lambda: wide(2, 3).transpose(),
    "slice": lambda: wide(3, 3)[0:2, 1],
    "swizzle": lambda: vector().zyx,
    "iteration": lambda: next(iter(wide())),
    "rows": lambda: oc.Matrix.rows([vector(2), vector(2)]),
    "cols": lambda: oc.Matrix.cols([vector(2), vector(2)]),
    "rows with a list": lambda: oc.Matrix.rows([vector(2), [1, 2]]),
    "rows with a narrow one": lambda: oc.Matrix.rows([oc.Vector([1, 2], dt=oc.i32), vector(2)]),
    "copy": lambda: copy.copy(wide()),
    "pickle": lambda: pickle.loads(pickle.dumps(wide())),
    "constructor": lambda: oc.Matrix(wide()),
    "outer product": lambda: vector(2).outer_product(oc.Vector([1, 2, 3], dt=oc.i32)),
    "cross": lambda: oc.Vector([1, 2, 3], dt=oc.i64).cross(oc.Vector([0, 1, 0], dt=oc.i32)),
    "conjugate": lambda: oc.math.cconj(vector(2)),
    "numpy": lambda: np.positive(vector()),
}


@pytest.mark.parametrize("name", SAME_ENTRIES)
def test_entries_keep_their_declared_type(name):
    result = SAME_ENTRIES[name]()
    assert result.dt is oc.i64 and result.entries.dtype == np.int64
    # Beside a typed value, plain numbers count as the default type, which has 32 bits.
    shifted = result >> oc.Matrix(np.zeros(result.get_shape(), np.int32))
    assert shifted.entries.dtype == np.int64 and shifted.to_list() == result.to_list()


@pytest.mark.parametrize("name", SAME_ENTRIES)
def test_a_kernel_sees_the_declared_type(arch, name):
    result = SAME_ENTRIES[name]()

    @oc.kernel
    def corner() -> oc.i64:
        return result.max()

    assert corner() == max(result.entries.ravel().tolist())


@pytest.mark.parametrize("first", [oc.i32, oc.u32, oc.f32, oc.f64, oc.u8, oc.i64, oc.f16])
@pytest.mark.parametrize("second", [oc.i32, oc.u32, oc.f32, oc.f64])
def test_products_have_the_type_that_operators_have(first, second):
    a, b = oc.Vector([3, 5, 7], dt=first), oc.Vector([2, 11, 13], dt=second)
    expected = (a * b).dt
    for result in (a.outer_product(b), a.cross(b), oc.math.cmul(a.xy, b.xy), oc.Matrix.rows([a, b])):
        assert result.dt is expected
    assert a.outer_product(b).to_list() == [[x * y for y in (2, 11, 13)] for x in (3, 5, 7)]
    assert a.xy.cross(b.xy).dtype == (a * b).entries.dtype


@pytest.mark.parametrize("dt", [oc.f32, oc.f64])
def test_inverses_and_decompositions_keep_the_type_of_reals(dt):
    m = oc.Matrix([[2, 1], [1, 3]], dt=dt)
    assert m.inverse().dt is dt and oc.Matrix(np.eye(5), dt=dt).inverse().dt is dt
    assert oc.math.rot_by_axis(oc.Vector([0, 0, 1], dt=dt), 0.5).dt is dt
    for results in (oc.svd(m, dt), oc.polar_decompose(m, dt=dt), oc.sym_eig(m, dt), oc.eig(m, dt)):
        assert [result.dt for result in results] == [dt] * len(results)
    assert oc.make_spd(m, dt).dt is dt and oc.solve(m, oc.Vector([1, 2], dt=dt), dt).dt is dt


def test_an_inverse_of_integers_is_of_the_default_real():
    assert oc.Matrix([[2, 0], [0, 4]], dt=oc.i64).inverse().dt is oc.f32


def test_plain_numbers_stay_plain():
    v = oc.Vector([1.0, 2.0, 3.0])
    for result in (v.outer_product(v), v.cross(v), oc.Matrix.rows([v, v]), oc.Matrix.cols([v, [1, 2, 3]]), np.sin(v)):
        assert result.dt is None
    assert (v == v).dt is None and np.isnan(vector().cast(oc.f64)).dt is None


def test_an_element_of_an_array_of_truths_is_no_condition():
    for elements in (oc.Vector.ndarray(2, oc.u1, shape=1), oc.Vector.field(2, oc.u1, shape=1)):
        with pytest.raises(oc.OctantsTypeError, match="all"):
            bool(elements[0])
