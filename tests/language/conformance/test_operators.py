"""Every operator on every pair of scalar types: the type that comes out, seen through its wrapping and rounding, and the value."""

import numpy as np
import pytest
from scalar_rules import (
    INTEGERS,
    NUMPY,
    REALS,
    SCALARS,
    SIGNED,
    convert,
    divided,
    limits,
    promote,
    truncating,
    values,
    width,
    wrap,
)

import octants as oc


def array(dtype, ndim=1):
    return oc.types.ndarray(dtype=dtype, ndim=ndim)


def start(arch):
    oc.init(arch=getattr(oc, arch), fast_math=False, log_level="error")


def operands(a, b):
    """All pairs of the two types' values."""
    x, y = np.meshgrid(np.array(values(a), dtype=object), np.array(values(b), dtype=object))
    return x.ravel().astype(NUMPY[a]), y.ravel().astype(NUMPY[b])


def wide(dtype):
    """A type that shows all bits of `dtype`, and whether they were extended with the sign."""
    return oc.f64 if dtype in REALS else oc.i64


def numbers(x, dtype):
    return [convert(v.item(), dtype) for v in x]


def check(out, x, y, result, exact):
    """`exact` of both operands as `result` holds them, in `result`."""
    with np.errstate(all="ignore"):
        expected = [exact(a, b) for a, b in zip(x, y, strict=True)]
        if result in REALS:
            np.testing.assert_array_equal(out, np.array([NUMPY[result](v) for v in expected]).astype(np.float64))
        else:
            assert out.tolist() == [wrap(wrap(int(v), result), oc.i64) for v in expected]


@pytest.mark.parametrize("a", SCALARS, ids=str)
def test_arithmetic(arch, a):
    start(arch)
    for b in SCALARS:
        check_arithmetic(a, b)


def check_arithmetic(a, b):
    result = promote(a, b)
    shown = wide(result)

    @oc.kernel
    def k(x: array(a), y: array(b), out: array(shown, 2)):
        for i in range(x.shape[0]):
            out[0, i] = oc.cast(x[i] + y[i], shown)
            out[1, i] = oc.cast(x[i] - y[i], shown)
            out[2, i] = oc.cast(x[i] * y[i], shown)
            out[3, i] = oc.cast(min(x[i], y[i]), shown)
            out[4, i] = oc.cast(max(x[i], y[i]), shown)
            out[5, i] = oc.cast(oc.select(x[i] < y[i], x[i], y[i]), shown)

    x, y = operands(a, b)
    out = np.zeros((6, x.size), dtype=NUMPY[shown])
    k(x, y, out)
    p, q = numbers(x, result), numbers(y, result)
    check(out[0], p, q, result, lambda v, w: v + w)
    check(out[1], p, q, result, lambda v, w: v - w)
    check(out[2], p, q, result, lambda v, w: v * w)
    check(out[3], p, q, result, min)
    check(out[4], p, q, result, max)
    check(out[5], p, q, result, lambda v, w: v if v < w else w)


@pytest.mark.parametrize("a", SCALARS, ids=str)
def test_comparisons(arch, a):
    start(arch)
    for b in SCALARS:
        check_comparisons(a, b)


def check_comparisons(a, b):
    @oc.kernel
    def k(x: array(a), y: array(b), out: array(oc.i32, 2)):
        for i in range(x.shape[0]):
            out[0, i] = x[i] < y[i]
            out[1, i] = x[i] <= y[i]
            out[2, i] = x[i] > y[i]
            out[3, i] = x[i] >= y[i]
            out[4, i] = x[i] == y[i]
            out[5, i] = x[i] != y[i]
            if oc.static(not real):
                out[6, i] = not x[i]

    real = a in REALS
    x, y = operands(a, b)
    out = np.zeros((7, x.size), dtype=np.int32)
    k(x, y, out)
    result = promote(a, b)
    pairs = list(zip(numbers(x, result), numbers(y, result), strict=True))
    assert out[0].tolist() == [p < q for p, q in pairs]
    assert out[1].tolist() == [p <= q for p, q in pairs]
    assert out[2].tolist() == [p > q for p, q in pairs]
    assert out[3].tolist() == [p >= q for p, q in pairs]
    assert out[4].tolist() == [p == q for p, q in pairs]
    assert out[5].tolist() == [p != q for p, q in pairs]
    assert real or out[6].tolist() == (x == 0).tolist()


@pytest.mark.parametrize("a", SCALARS, ids=str)
def test_and_and_or_give_their_operands(arch, a):
    start(arch)
    for b in SCALARS:
        check_operands_of_and_and_or(a, b)


def check_operands_of_and_and_or(a, b):
    result = promote(a, b)
    shown = wide(result)

    @oc.kernel
    def k(x: array(a), y: array(b), out: array(shown, 2)):
        for i in range(x.shape[0]):
            out[0, i] = oc.cast(x[i] and y[i], shown)
            out[1, i] = oc.cast(x[i] or y[i], shown)

    x, y = operands(a, b)
    out = np.zeros((2, x.size), dtype=NUMPY[shown])
    k(x, y, out)
    pairs = list(zip(numbers(x, result), numbers(y, result), (x != 0).tolist(), strict=True))
    bits = {oc.u64: np.uint64}.get(result, out.dtype)
    assert (
        out[0].tolist() == np.array([q if truth else p for p, q, truth in pairs], dtype=bits).astype(out.dtype).tolist()
    )
    assert (
        out[1].tolist() == np.array([p if truth else q for p, q, truth in pairs], dtype=bits).astype(out.dtype).tolist()
    )


@pytest.mark.parametrize("a", SCALARS, ids=str)
def test_division(arch, a):
    start(arch)
    for b in SCALARS:
        check_division(a, b)


def check_division(a, b):
    result, quotient = promote(a, b), divided(a, b)
    shown = wide(result)

    @oc.kernel
    def k(x: array(a), y: array(b), real: array(oc.f64), out: array(shown, 2)):
        for i in range(x.shape[0]):
            real[i] = x[i] / y[i]
            out[0, i] = oc.cast(x[i] // y[i], shown)
            out[1, i] = oc.cast(x[i] % y[i], shown)
            out[2, i] = oc.cast(oc.raw_div(x[i], y[i]), shown)
            out[3, i] = oc.cast(oc.raw_mod(x[i], y[i]), shown)

    x, y = operands(a, b)
    x, y = x[y != 0], y[y != 0]
    real, out = np.zeros(x.size), np.zeros((4, x.size), dtype=NUMPY[shown])
    k(x, y, real, out)
    check(real, numbers(x, quotient), numbers(y, quotient), quotient, lambda v, w: v / w)
    p, q = numbers(x, result), numbers(y, result)
    if result in REALS:
        check(out[0], p, q, result, lambda v, w: np.floor(v / w))
        check(out[2], p, q, result, lambda v, w: v / w)
        check(out[1], p, q, result, lambda v, w: v - np.floor(v / w) * w)
        check(out[3], p, q, result, np.fmod)
    else:
        check(out[0], p, q, result, lambda v, w: v // w)
        check(out[1], p, q, result, lambda v, w: v % w)
        check(out[2], p, q, result, truncating)
        check(out[3], p, q, result, lambda v, w: v - truncating(v, w) * w)


@pytest.mark.parametrize("a", INTEGERS, ids=str)
def test_bits_and_shifts(arch, a):
    start(arch)
    for b in INTEGERS:
        check_bits_and_shifts(a, b)


def check_bits_and_shifts(a, b):
    result = promote(a, b)

    @oc.kernel
    def k(x: array(a), y: array(b), out: array(oc.i64, 2)):
        for i in range(x.shape[0]):
            out[0, i] = oc.cast(x[i] & y[i], oc.i64)
            out[1, i] = oc.cast(x[i] | y[i], oc.i64)
            out[2, i] = oc.cast(x[i] ^ y[i], oc.i64)

    @oc.kernel
    def shifts(x: array(a), y: array(b), out: array(oc.i64, 2)):
        for i in range(x.shape[0]):
            out[0, i] = oc.cast(x[i] << y[i], oc.i64)
            out[1, i] = oc.cast(x[i] >> y[i], oc.i64)
            out[2, i] = oc.cast(oc.bit_shr(x[i], y[i]), oc.i64)

    x, y = operands(a, b)
    out = np.zeros((3, x.size), dtype=np.int64)
    k(x, y, out)
    p, q = numbers(x, result), numbers(y, result)
    check(out[0], p, q, result, lambda v, w: v & w)
    check(out[1], p, q, result, lambda v, w: v | w)
    check(out[2], p, q, result, lambda v, w: v ^ w)
    # A shift gives its left operand's type; by less than that type's width.
    x, y = (v[(y >= 0) & (y < width(a))] for v in (x, y))
    out = np.zeros((3, x.size), dtype=np.int64)
    shifts(x, y, out)
    p, q = numbers(x, a), [v.item() for v in y]
    check(out[0], p, q, a, lambda v, w: v << int(w))
    check(out[1], p, q, a, lambda v, w: v >> int(w))
    check(out[2], p, q, a, lambda v, w: (v % 2 ** width(a)) >> int(w))


@pytest.mark.parametrize("a", [t for t in SCALARS if t != oc.u1], ids=str)
@pytest.mark.parametrize("b", [oc.i8, oc.i32, oc.u64, oc.f32], ids=str)
def test_powers(arch, a, b):
    start(arch)
    result = promote(a, b) if b in REALS else a
    shown = wide(result)

    @oc.kernel
    def k(x: array(a), y: array(b), out: array(shown)):
        for i in range(x.shape[0]):
            out[i] = oc.cast(x[i] ** y[i], shown)

    x, y = (
        v.ravel()
        for v in np.meshgrid(np.array([1, 2, 3, 5, 11], dtype=NUMPY[a]), np.array([0, 1, 2, 3, 7], dtype=NUMPY[b]))
    )
    out = np.zeros(x.size, dtype=NUMPY[shown])
    k(x, y, out)
    exact = [int(p) ** int(q) for p, q in zip(x, y, strict=True)]
    if result in REALS:
        with np.errstate(over="ignore"):
            expected = np.array(exact, dtype=np.float64).astype(NUMPY[result]).astype(np.float64)
        np.testing.assert_allclose(out, expected, rtol=4 * float(np.finfo(NUMPY[result]).eps))
    else:
        assert out.tolist() == [wrap(wrap(v, result), oc.i64) for v in exact]


@pytest.mark.parametrize("a", SCALARS, ids=str)
def test_casts(arch, a):
    start(arch)
    for b in SCALARS:
        shown = wide(b)

        @oc.kernel
        def k(x: array(a), out: array(shown, 2), b: oc.template(), shown: oc.template()):
            for i in range(x.shape[0]):
                out[0, i] = oc.cast(oc.cast(x[i], b), shown)
                out[1, i] = oc.cast(b(x[i]), shown)

        x = np.array(values(a), dtype=object).astype(NUMPY[a])
        if a in REALS and b in INTEGERS:
            low, high = limits(b)
            x = x if b == oc.u1 else x[[low - 1 < v < high for v in x.tolist()]]
        out = np.zeros((2, x.size), dtype=NUMPY[shown])
        k(x, out, b, shown)
        expected = [convert(v.item(), b) for v in x]
        expected = [float(v) if b in REALS else wrap(v, oc.i64) for v in expected]
        assert out[0].tolist() == expected, b
        assert out[1].tolist() == expected, b


@pytest.mark.parametrize("a", SCALARS, ids=str)
def test_one_operand(arch, a):
    start(arch)
    shown = wide(a)

    @oc.kernel
    def k(x: array(a), out: array(shown, 2)):
        for i in range(x.shape[0]):
            out[0, i] = oc.cast(-x[i], shown)
            out[1, i] = oc.cast(abs(x[i]), shown)
            out[2, i] = oc.cast(oc.zero(x[i]), shown)
            out[3, i] = oc.cast(oc.one(x[i]), shown)

    x = np.array(values(a), dtype=object).astype(NUMPY[a])
    out = np.zeros((4, x.size), dtype=NUMPY[shown])
    k(x, out)
    p = numbers(x, a)
    if a != oc.u1:
        check(out[0], p, p, a, lambda v, _: -v)
        check(out[1], p, p, a, lambda v, _: abs(v))
    assert (out[2] == 0).all()
    assert (out[3] == 1).all()
    if a in INTEGERS:

        @oc.kernel
        def inverted(x: array(a), out: array(oc.i64)):
            for i in range(x.shape[0]):
                out[i] = oc.cast(~x[i], oc.i64)

        out = np.zeros(x.size, dtype=np.int64)
        inverted(x, out)
        check(out, p, p, a, lambda v, _: ~v)


@pytest.mark.parametrize("a", SCALARS, ids=str)
def test_bit_casts_keep_every_bit(arch, a):
    start(arch)
    for b in SCALARS:
        if width(a) != width(b) or a == oc.u1:
            continue

        @oc.kernel
        def k(x: array(a), out: array(b), b: oc.template()):
            for i in range(x.shape[0]):
                out[i] = oc.bit_cast(x[i], b)

        x = np.array(values(a), dtype=object).astype(NUMPY[a])
        out = np.zeros(x.size, dtype=NUMPY[b])
        k(x, out, b)
        assert out.tobytes() == x.tobytes(), b


@pytest.mark.parametrize(("a", "b"), [(oc.f32, oc.i32), (oc.i32, oc.f32), (oc.f64, oc.f64), (oc.u1, oc.f16)], ids=str)
@pytest.mark.parametrize("operator", ["and", "or", "xor", "left", "right"])
def test_bit_operators_refuse_reals(arch, a, b, operator):
    start(arch)

    @oc.kernel
    def k(x: a, y: b) -> oc.i32:
        r = 0
        if oc.static(operator == "and"):
            r = x & y
        elif oc.static(operator == "or"):
            r = x | y
        elif oc.static(operator == "xor"):
            r = x ^ y
        elif oc.static(operator == "left"):
            r = x << y
        else:
            r = x >> y
        return r

    with pytest.raises(oc.OctantsTypeError, match="unsupported operand type"):
        k(1, 1)


def test_signed_is_lost_only_at_equal_width():
    assert [promote(oc.i32, b) for b in SCALARS if b in SIGNED or b == oc.u16] == [
        oc.i32,
        oc.i32,
        oc.i32,
        oc.i64,
        oc.i32,
    ]
    assert promote(oc.i32, oc.u32) == oc.u32
    assert promote(oc.i64, oc.u32) == oc.i64
