"""Forms that programs for Quadrants rely on: constants in dataclasses, funcs made in kernels, clamped entries, tuples that are compared."""

import dataclasses
import enum
from typing import Final, Optional

import numpy as np
import pytest

import octants as oc

ARRAY = oc.types.NDArray[oc.f32, 1]


class Mode(enum.Enum):
    FAST = 1
    EXACT = 2


@dataclasses.dataclass(frozen=True)
class Settings:
    n: Final[int]
    scale: Final[float]
    name: Final[str]
    mode: Final[Mode]
    x: ARRAY


@oc.kernel
def by_settings(s: Settings) -> oc.f32:
    total = 0.0
    for i in oc.static(range(s.n)):
        total += s.scale * s.x[i]
    if oc.static(s.name == "twice" and s.mode is Mode.EXACT):
        total *= 2
    return total


def test_final_members_of_frozen_dataclasses_are_constants(arch):
    x = oc.ndarray(oc.f32, 4)
    x.fill(1.0)
    one = Settings(3, 0.5, "once", Mode.EXACT, x)
    assert by_settings(one) == 1.5
    assert by_settings(dataclasses.replace(one, n=4)) == 2.0
    assert by_settings(dataclasses.replace(one, name="twice")) == 3.0
    assert by_settings(dataclasses.replace(one, name="twice", mode=Mode.FAST)) == 1.5


def test_final_members_need_frozen_dataclasses(arch):
    @dataclasses.dataclass
    class Open:
        n: Final[int]

    @dataclasses.dataclass(frozen=True)
    class Inner:
        n: Final[int]

    @dataclasses.dataclass
    class Outer:
        inner: Inner

    @oc.kernel
    def of_open(c: Open) -> oc.i32:
        return c.n

    @oc.kernel
    def of_outer(c: Outer) -> oc.i32:
        return c.inner.n

    with pytest.raises(TypeError, match=r"`Open\.n` is `Final`.*Open is not frozen.*frozen=True"):
        of_open(Open(3))
    with pytest.raises(TypeError, match=r"`Inner\.n` is `Final`.*Outer is not frozen"):
        of_outer(Outer(Inner(3)))


def test_a_derived_dataclass_counts_as_its_base(arch):
    @dataclasses.dataclass
    class Base:
        x: ARRAY

    @dataclasses.dataclass
    class Derived(Base):
        y: ARRAY

    @oc.kernel
    def first(b: Base) -> oc.f32:
        return b.x[0]

    @oc.kernel
    def of_derived(b: Derived) -> oc.f32:
        return b.y[0]

    x, y = oc.ndarray(oc.f32, 2), oc.ndarray(oc.f32, 2)
    x[0], y[0] = 5, 7
    for _ in range(3):
        assert (first(Derived(x, y)), first(Base(y)), of_derived(Derived(x, y))) == (5, 7, 7)
    with pytest.raises(oc.OctantsRuntimeTypeError, match="must be an instance of Derived, not of Base"):
        of_derived(Base(x))


def test_a_derived_dataclass_counts_as_its_base_in_another_one(arch):
    @dataclasses.dataclass
    class Part:
        x: ARRAY
        n: oc.i32

    @dataclasses.dataclass
    class Longer(Part):
        z: ARRAY = None

    @dataclasses.dataclass
    class Unrelated:
        x: ARRAY
        n: oc.i32

    @dataclasses.dataclass
    class Whole:
        part: Part
        n: oc.i32

    @oc.func
    def of_part(part: Part) -> oc.f32:
        return part.n * 10 + part.x[1]

    @oc.func
    def of_whole(whole: Whole) -> oc.f32:
        return of_part(whole.part) + whole.n

    @oc.kernel
    def direct(whole: Whole) -> oc.f32:
        return whole.part.n + whole.n

    @oc.kernel
    def passed_on(whole: Whole) -> oc.f32:
        return of_whole(whole)

    x = oc.ndarray(oc.f32, 2)
    x[1] = 5
    for part in (Part(x, 1), Longer(x, 2, x), Longer(x, 3), Part(x, 4)):
        whole = Whole(part, 100)
        assert [direct(whole), passed_on(whole)] == [100 + part.n, 105 + 10 * part.n]
    with pytest.raises(oc.OctantsRuntimeTypeError, match="Unrelated cannot be converted"):
        passed_on(Whole(Unrelated(x, 1), 100))


def test_optional_arguments(arch):
    @oc.kernel
    def which(x: Optional[ARRAY], y: oc.Tensor | None, z: Optional[oc.template]) -> oc.i32:
        result = 0
        if oc.static(x is not None):
            result += 1
        if oc.static(y is not None):
            result += 10
        if oc.static(z is not None):
            result += 100
        return result

    a, f = oc.ndarray(oc.f32, 2), oc.field(oc.f32, 2)
    for _ in range(2):
        assert [which(None, None, None), which(a, None, 3), which(None, f, None), which(None, a, f)] == [
            0,
            101,
            10,
            110,
        ]


def test_a_plain_function_is_marked_in_a_kernel(arch):
    def f(x):
        result = 0.0
        if x > 1:
            result = x * 2
        return result

    @oc.kernel
    def k(x: oc.f32) -> oc.f32:
        g = oc.static(oc.func(f))
        return oc.func(f)(x) + g(x + 1)

    assert k(3.0) == 14.0


def test_types_of_math_follow_the_session(arch):
    names = ["vec2", "mat3", "ivec4", "uvec2"]

    @oc.kernel
    def third(v: oc.math.vec2) -> oc.f64:
        w = oc.math.vec2(v[0] / 3, 1)
        return w[0]

    for real, integer, unsigned in ((oc.f64, oc.i64, oc.u64), (oc.f32, oc.i32, oc.u32)):
        oc.init(arch=oc.cfg.arch, default_fp=real, default_ip=integer, log_level="error")
        types = [getattr(oc.math, name) for name in names]
        assert [one.dtype for one in types] == [real, real, integer, unsigned]
        assert oc.math.vec3.field(shape=3).dtype == real
        assert (
            third(oc.math.vec2(2, 2))
            != third(oc.math.vec2(1, 2))
            == (1 / 3 if real is oc.f64 else np.float32(1) / np.float32(3))
        )


def test_values_of_types_of_math_are_no_constants(arch):
    pair = oc.types.struct(v=oc.math.ivec2, x=oc.f32)

    @oc.kernel
    def k(v: oc.math.vec3, p: pair) -> oc.f32:
        return v[0] * 10 + p.v[1] + p.x

    assert [k(oc.math.vec3(i, 0, 0), pair(v=oc.math.ivec2(0, i), x=0.5)) for i in range(4)] == [0.5, 11.5, 22.5, 33.5]


def test_integers_are_neither_nan_nor_infinite(arch):
    @oc.kernel
    def k(n: oc.i32) -> oc.i32:
        v = oc.math.isnan(oc.Vector([n, n])) or oc.math.isinf(oc.Vector([n, 1]))
        return oc.cast(oc.math.isnan(n), oc.i32) + oc.cast(oc.math.isinf(3), oc.i32) + v[0] + v[1]

    assert k(5) == 0


def test_vectors_are_the_rows_of_a_matrix(arch):
    v, w = oc.Vector([1, 2, 3]), oc.Vector([4, 5, 6])
    assert oc.Matrix([v, w]).to_numpy().tolist() == [[1, 2, 3], [4, 5, 6]]

    @oc.kernel
    def k(n: oc.i32) -> oc.i32:
        m = oc.Matrix([v, w])
        of_run = oc.Matrix([oc.Vector([n, n + 1]), oc.Vector([7, 8])])
        return m[1, 0] * 100 + of_run[0, 1] * 10 + of_run[1, 1]

    assert k(1) == 428


def test_a_real_function_takes_any_matrix_with_as_many_entries(arch):
    @oc.real_func
    def lower_left(m: oc.types.matrix(2, 2, oc.f32)) -> oc.f32:
        return m[1, 0]

    @oc.kernel
    def k(x: oc.f32) -> oc.f32:
        return lower_left(oc.Vector([x, x + 1, x + 2, x + 3])) + lower_left(oc.Matrix([[x, x], [10, 20]]))

    assert k(1.0) == 13.0


def test_clamping_holds_for_entries_too(arch):
    x = oc.Vector.ndarray(2, oc.f32, (3, 3))
    m = oc.Matrix.ndarray(2, 3, oc.f32, 2)
    x[1, 2] = [5, 6]
    m[1] = [[1, 2, 3], [4, 5, 6]]

    @oc.kernel
    def read(x: oc.types.ndarray(boundary="clamp"), i: oc.i32) -> oc.f32:
        return x[1, 2][i] * 100 + x[1, 2][5] * 10 + x[1, 2][-4]

    @oc.kernel
    def entry(m: oc.types.ndarray(boundary="clamp"), i: oc.i32, j: oc.i32) -> oc.f32:
        return m[1][i, j]

    @oc.kernel
    def write(x: oc.types.ndarray(boundary="clamp"), i: oc.i32):
        x[1, 2][i] = 3

    assert [read(x, i) for i in (5, -3, 1)] == [665, 565, 665]
    assert [entry(m, i, j) for i, j in ((7, 0), (7, 7), (0, 7), (-1, -1))] == [4, 6, 3, 1]
    write(x, 9)
    assert x[1, 2].to_numpy().tolist() == [5, 3] and x.to_numpy().sum() == 8


def test_a_real_function_may_end_with_a_loop_that_returns(arch):
    @oc.real_func
    def first(n: oc.i32) -> oc.i32:
        for i in range(3):
            if n > 0:
                return n + i
            else:
                return -1

    @oc.real_func
    def once(n: oc.i32) -> oc.i32:
        while n < 5:
            return n

    @oc.kernel
    def k(n: oc.i32) -> oc.i32:
        return first(n) * 10 + once(n)

    assert (k(2), k(-1)) == (22, -11)

    @oc.real_func
    def maybe(n: oc.i32) -> oc.i32:
        for i in range(3):
            if n > 0:
                return 1

    @oc.kernel
    def refused() -> oc.i32:
        return maybe(1)

    with pytest.raises(oc.OctantsSyntaxError, match="can reach its end"):
        refused()


def test_what_a_known_operand_decides_is_not_compiled(arch):
    @oc.kernel
    def k(x: oc.template()) -> oc.i32:
        result = 0
        if False and x.missing[0] > 3:
            result = 1
        if True or x.missing:
            result += 10
        return result

    assert k(None) == 10


def test_format_letters_of_known_integers(arch, capfd):
    @oc.kernel
    def k(x: oc.i32):
        print(f"{3:i} {x:i} {x:5i}|{7:5i}|{7:05i}|{7:u}", "{:i}".format(5))

    k(9)
    oc.sync()
    assert capfd.readouterr().out == "3 9     9|    7|00007|7 5\n"


def test_several_calls_of_loop_config_add_up(arch):
    @oc.kernel
    def k(x: oc.types.ndarray()) -> oc.i32:
        last = -1
        oc.loop_config(serialize=True)
        oc.loop_config(block_dim=32)
        for i in range(100):
            if i > last:
                last = i
                if i == 50:
                    break
        return last

    assert k(np.zeros(1, np.float32)) == 50


SMALL = [oc.i8, oc.u8, oc.i16, oc.u16]


@pytest.mark.parametrize("dtype", SMALL, ids=str)
def test_small_integers_that_overflow_are_told(arch, dtype, capfd):
    oc.init(arch=oc.cfg.arch, debug=True, log_level="error")
    info = np.iinfo({"i8": "int8", "u8": "uint8", "i16": "int16", "u16": "uint16"}[str(dtype)])
    low, high = int(info.min), int(info.max)

    @oc.kernel
    def add(a: dtype, b: dtype) -> dtype:
        return a + b

    @oc.kernel
    def subtract(a: dtype, b: dtype) -> dtype:
        return a - b

    @oc.kernel
    def multiply(a: dtype, b: dtype) -> dtype:
        return a * b

    @oc.kernel
    def shift(a: dtype, b: dtype) -> dtype:
        return a << b

    def told():
        oc.sync()
        return capfd.readouterr().out

    for kernel, word, wraps, fits in (
        (add, "Addition", (high, 1, low), (high - 1, 1, high)),
        (subtract, "Subtraction", (low, 1, high), (low + 1, 1, low)),
        (multiply, "Multiplication", (high, 2, low - 2 + (low == 0) * (high + 1)), (high // 2, 2, high - 1)),
        (shift, "Shift left", (high, 2, (high << 2) % (high - low + 1) - (high - low + 1) * (low < 0)), (1, 3, 8)),
    ):
        a, b, _ = wraps
        kernel(a, b)
        assert f"{word} overflow detected in" in told()
        a, b, expected = fits
        assert kernel(a, b) == expected and told() == ""


def test_gradients_without_a_place_are_refused_at_any_launch(arch):
    @oc.kernel
    def k(y: oc.types.ndarray()):
        for i in y:
            y[i] = 1

    x = oc.field(oc.f32, needs_grad=True)
    oc.root.dense(oc.i, 3).place(x)
    y = oc.ndarray(oc.f32, 3)
    with pytest.raises(RuntimeError, match="grad field"):
        k(y)
    oc.root.lazy_grad()
    k(y)
    assert y.to_numpy().tolist() == [1, 1, 1]


# ---- tuples and lists -----------------------------------------------------------------------------------------------------------


@oc.kernel
def equal(a: oc.i32, b: oc.i32, c: oc.i32, d: oc.i32) -> oc.i32:
    result = 0
    if (a, b) == (c, d):
        result += 1
    if (a, b) != (c, d):
        result += 10
    if [a, (b, 1)] == [c, (d, 1)]:
        result += 100
    if (a, b) == (c, d, 1):
        result += 1000
    if (a, b) == (1, 2):
        result += 10000
    if (oc.Vector([a, b]), a) == (oc.Vector([c, d]), c):
        result += 100000
    if (a, b) == [c, d]:
        result += 1000000
    return result


def test_tuples_are_equal_if_their_items_are(arch):
    assert equal(1, 2, 1, 2) == 110101
    assert equal(1, 2, 1, 3) == 10010
    assert equal(1, 2, 2, 2) == 10010
    assert equal(5, 2, 5, 2) == 100101


@oc.kernel
def ordered(a: oc.f32, b: oc.i32, c: oc.f32, d: oc.i32) -> oc.i32:
    result = 0
    if (a, b) < (c, d):
        result += 1
    if (a, b) <= (c, d):
        result += 10
    if (a, b) > (c, d):
        result += 100
    if (a, b) >= (c, d):
        result += 1000
    if (a,) < (c, d):
        result += 10000
    if [a, b] >= [c]:
        result += 100000
    return result


def test_tuples_are_ordered_as_in_python(arch):
    values = [(1.0, 1), (1.0, 2), (2.0, 1), (float("nan"), 1)]
    for a, b in values:
        for c, d in values:
            tests = [(a, b) < (c, d), (a, b) <= (c, d), (a, b) > (c, d), (a, b) >= (c, d), (a,) < (c, d), [a, b] >= [c]]
            if a != a or c != c:
                # Python takes one object to be equal to itself.
                tests = [False] * 6
            assert ordered(a, b, c, d) == sum(10**at for at, holds in enumerate(tests) if holds)


def test_a_shape_is_compared_as_a_tuple(arch):
    @oc.kernel
    def k(x: oc.types.ndarray(), n: oc.i32) -> oc.i32:
        result = 0
        if x.shape == (n, 3):
            result = 1
        return result

    x = oc.ndarray(oc.f32, (2, 3))
    assert (k(x, 2), k(x, 3)) == (1, 0)
