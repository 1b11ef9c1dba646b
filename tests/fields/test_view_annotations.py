"""Annotations of views on kernels, funcs and real functions."""

import numpy as np
import pytest
from view_arguments import Clamped, Ints, counted

import octants as oc

pytestmark = [pytest.mark.host_access, pytest.mark.sanitizer_core]


def test_annotations_of_views_are_checked():
    a, b = counted(4), oc.ndarray(oc.f32, 4)

    @oc.kernel
    def both(v: oc.BufferView[oc.i32, "clamp"], w: oc.BufferView[oc.f32]) -> oc.f32:
        return v[100] + w[0]

    assert both(a[:3], b[:]) == 2
    with pytest.raises(ValueError, match="required element type: i32, but f32"):
        both(b[:], b[:])
    assert repr(oc.BufferView[oc.i32, "clamp"]) == 'oc.BufferView[i32, "clamp"]'
    for wrong in ("f32", 3, "clamp", (), (oc.f32, "clamp", 3), ("clamp", oc.f32)):
        with pytest.raises((TypeError, ValueError)):
            oc.BufferView[wrong]
    with pytest.raises(ValueError, match="boundary"):
        oc.BufferView[oc.f32, "wrap"]


@oc.func
def first_of_view(v: oc.BufferView[oc.i32]):
    return v[0]


@oc.func
def first_of_array(v: oc.types.ndarray(dtype=oc.i32, ndim=1)):
    return v[0]


@oc.func
def clamped_func(v: oc.BufferView[oc.i32, "clamp"]):
    return v[100]


def test_annotations_of_funcs_are_enforced(arch):
    @oc.kernel
    def right(v: oc.BufferView, w: Clamped, a: Ints) -> oc.i32:
        return first_of_view(v[1:]) + first_of_array(a) + first_of_view(oc.BufferView(a, 2, 1)) + clamped_func(w[:2])

    a = counted(8)
    assert right(a[3:], a[1:], a) == 4 + 0 + 2 + 2
    Reals, Table = oc.types.ndarray(dtype=oc.f32, ndim=1), oc.types.ndarray(dtype=oc.i32, ndim=2)

    @oc.kernel
    def wrong_element(v: oc.BufferView) -> oc.i32:
        return first_of_view(v)

    @oc.kernel
    def array_for_view(a: Ints) -> oc.i32:
        return first_of_view(a)

    @oc.kernel
    def view_for_array(v: oc.BufferView) -> oc.i32:
        return first_of_array(v)

    @oc.kernel
    def wrong_array(a: Reals) -> oc.i32:
        return first_of_array(a)

    @oc.kernel
    def wrong_rank(a: Table) -> oc.i32:
        return first_of_array(a)

    @oc.kernel
    def number(n: oc.i32) -> oc.i32:
        return first_of_array(n)

    @oc.kernel
    def unclamped(v: oc.BufferView) -> oc.i32:
        return clamped_func(v)

    reals = oc.ndarray(oc.f32, 4)
    assert wrong_element(a[:]) == 0
    with pytest.raises(ValueError, match="required element type: i32, but f32"):
        wrong_element(reals[:])
    with pytest.raises(TypeError, match="argument 'v' must be a BufferView, not an array of i32"):
        array_for_view(a)
    with pytest.raises(TypeError, match="argument 'v' must be an array, not a BufferView"):
        view_for_array(a[:])
    with pytest.raises(ValueError, match="required element type: i32, but f32"):
        wrong_array(reals)
    with pytest.raises(ValueError, match="required ndim=1, but an array of ndim=2"):
        wrong_rank(oc.ndarray(oc.i32, (2, 2)))
    with pytest.raises(TypeError, match="argument 'v' must be an array, not i32"):
        number(3)
    with pytest.raises(ValueError, match="clamp"):
        unclamped(a[:])


@oc.real_func
def total_of(v: oc.BufferView[oc.i32]) -> oc.i32:
    result = 0
    for i in range(v.size):
        result += v[i]
    return result


@oc.real_func
def halved(v: oc.BufferView[oc.i32]) -> oc.i32:
    if v.size == 0:
        return 0
    if v.size == 1:
        v[0] += 100
        return v[0]
    half = v.size // 2
    return halved(v[:half]) + halved(v[half:])


@oc.real_func
def clamped_last(v: oc.BufferView[oc.i32, "clamp"], a: oc.types.ndarray(dtype=oc.i32, ndim=1)) -> oc.i32:
    return v[1000] + a[0]


def test_views_are_parameters_of_real_functions(mode):
    @oc.kernel
    def run(v: oc.BufferView, w: Clamped, a: Ints, n: oc.i32, out: Ints):
        for i in range(4):
            out[i] = total_of(v[i:n])
        out[4] = total_of(v) + total_of(oc.BufferView(a, 1, 2))
        out[5] = halved(v[1:-1])
        out[6] = clamped_last(w[:2], a) + clamped_last(w[3:3], a)

    a, out = counted(10), oc.ndarray(oc.i32, 7)
    run(a[2:8], a[4:], counted(4), -1, out)
    assert out.to_numpy().tolist() == [20, 18, 15, 11, 30, 418, 105]
    assert a.to_numpy().tolist() == [0, 1, 2, 103, 104, 105, 106, 7, 8, 9]


@oc.real_func
def outside(v: oc.BufferView, i: oc.i32) -> oc.i32:
    return v[i]


def test_views_in_real_functions_are_checked(arch):
    oc.init(arch=getattr(oc, arch), debug=True, log_level="error")

    @oc.kernel
    def run(v: oc.BufferView, i: oc.i32) -> oc.i32:
        return outside(v[1:3], i)

    a = counted(10)
    assert run(a[2:8], 1) == 4
    with pytest.raises(oc.OctantsAssertionError, match=r"got index 2 \(offset=3, size=2\)"):
        run(a[2:8], 2)

    @oc.kernel
    def wrong(a: Ints) -> oc.i32:
        return outside(a, 0)

    with pytest.raises(TypeError, match="argument 'v' must be a BufferView"):
        wrong(a)
