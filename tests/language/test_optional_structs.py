"""Parameters annotated with ``S | None``, for structs and dataclasses."""

import dataclasses
from typing import Optional

import numpy as np
import pytest

import octants as oc

Limits = oc.types.struct(low=oc.f32, high=oc.f32)


@dataclasses.dataclass(frozen=True)
class Options:
    scale: oc.f32
    data: oc.types.ndarray(oc.f32, 1)


@oc.dataclass
class Point:
    x: oc.i32
    y: oc.i32


def test_a_struct_may_be_none(arch):
    @oc.kernel
    def clamped(x: oc.f32, limits: Limits | None) -> oc.f32:
        result = x
        if oc.static(limits is not None):
            result = oc.min(oc.max(x, limits.low), limits.high)
        return result

    bounds = Limits(low=1.0, high=2.0)
    assert [clamped(5.0, bounds), clamped(5.0, None), clamped(0.0, bounds), clamped(0.0, None)] == [2, 5, 1, 0]
    assert clamped(x=7.0, limits=Limits(low=1.0, high=6.0)) == 6
    with pytest.raises(oc.OctantsRuntimeTypeError, match="OC0801"):
        clamped(5.0, 3)


def test_two_structs_may_be_none_apart(arch):
    @oc.kernel
    def total(a: Optional[Point], b: Point | None) -> oc.i32:
        result = 0
        if oc.static(a is not None):
            result += a.x
        if oc.static(b is not None):
            result += 10 * b.y
        return result

    p, q = Point(1, 2), Point(3, 4)
    assert [total(None, None), total(p, None), total(None, q), total(p, q), total(None, None)] == [0, 1, 40, 41, 0]


def test_a_dataclass_may_be_none(arch):
    @oc.kernel
    def scaled(x: oc.f32, options: Options | None) -> oc.f32:
        result = x
        if oc.static(options is not None):
            result = x * options.scale + options.data[1]
        return result

    data = oc.ndarray(oc.f32, 2)
    data.from_numpy(np.array([1, 10], np.float32))
    options = Options(3.0, data)
    assert [scaled(2.0, None), scaled(2.0, options), scaled(3.0, None), scaled(3.0, options)] == [2, 16, 3, 19]
    with pytest.raises(oc.OctantsRuntimeTypeError, match="OC0806"):
        scaled(2.0, 4)


def test_a_func_takes_none_where_its_kernel_does(arch):
    @oc.func
    def part(p: Point | None, options: Options | None):
        result = 0.0
        if oc.static(p is not None):
            result += p.x
        if oc.static(options is not None):
            result += options.scale * options.data[0]
        return result

    @oc.kernel
    def go(p: Point | None, options: Options | None) -> oc.f32:
        return part(p, options) + part(None, None)

    data = oc.ndarray(oc.f32, 2)
    data.fill(2)
    options = Options(4.0, data)
    assert [go(None, None), go(Point(5, 6), None), go(None, options), go(Point(5, 6), options)] == [0, 5, 8, 13]


def test_what_else_may_not_be_none():
    @oc.kernel
    def required(p: Point) -> oc.i32:
        return p.x

    with pytest.raises(oc.OctantsRuntimeTypeError, match="OC0801"):
        required(None)

    @oc.kernel
    def unasked(p: Point | None) -> oc.i32:
        return p.x

    assert unasked(Point(3, 4)) == 3
    with pytest.raises(oc.OctantsCompilationError, match=r"\[OC\d{4}\][\s\S]*p\.x"):
        unasked(None)
    with pytest.raises(TypeError):
        Point | 3
