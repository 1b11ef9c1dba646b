"""Assignments in parallel loops to what all iterations share: reductions give what the sequential loop gives, races are told."""

import warnings

import numpy as np
import pytest
from conftest import stamps
from devices import INTERPRETED

import octants as oc

N = 40_000


ONE_THREAD = "cpu, one thread"


def pytest_generate_tests(metafunc):
    if "device" in metafunc.fixturenames:
        metafunc.parametrize("device", [*stamps(metafunc.definition), ONE_THREAD], indirect=True)


@pytest.fixture
def device(request):
    """Every device, and one thread of the CPU."""
    oc.init(arch=oc.cfg.arch, log_level="error", cpu_max_num_threads=1 if request.param == ONE_THREAD else 4)
    return request.param


@pytest.fixture
def quiet():
    """No warning may be given."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def size(device):
    return 500 if device in INTERPRETED else N


def numbers(n, dtype=np.int32, low=-1000, high=1000):
    return np.random.default_rng(7).integers(low, high, n).astype(dtype)


# ---- reductions -----------------------------------------------------------------------------------------------------------------


@pytest.mark.sanitizer_core
def test_sums_by_assignment(device, quiet):
    @oc.kernel
    def sums(x: oc.types.ndarray(dtype=oc.i32, ndim=1)) -> oc.types.vector(7, oc.i32):
        a = 1
        b = 2
        c = 3
        d = 4
        e = 5
        f = 6
        g = 7
        for i in x:
            a = a + x[i]
            b = x[i] + b
            c = c - x[i]
            d = d + x[i] + 1
            e = x[i] * 2 + (e - 3)
            f = f - x[i] - 2
            if x[i] > 0:
                t = g
                g = t + x[i]
        return oc.Vector([a, b, c, d, e, f, g])

    x = numbers(size(device))
    s, n = int(x.sum()), len(x)
    expected = [1 + s, 2 + s, 3 - s, 4 + s + n, 5 + 2 * s - 3 * n, 6 - s - 2 * n, 7 + int(x[x > 0].sum())]
    assert sums(x).to_numpy().tolist() == expected


def test_a_real_sum_by_assignment(device, quiet):
    @oc.kernel
    def mean(x: oc.types.ndarray(dtype=oc.f64, ndim=1)) -> oc.f64:
        s = oc.f64(0.0)
        for i in x:
            s = s + x[i] * x[i]
        return s / x.shape[0]

    x = np.random.default_rng(1).random(size(device))
    assert mean(x) == pytest.approx((x * x).mean(), rel=1e-12)


def test_products_and_bits_by_assignment(device, quiet):
    @oc.kernel
    def combine(x: oc.types.ndarray(dtype=oc.u32, ndim=1)) -> oc.types.vector(5, oc.u32):
        p = oc.u32(1)
        q = oc.u32(3)
        a = oc.u32(0xFFFFFFFF)
        o = oc.u32(0)
        e = oc.u32(5)
        for i in x:
            p = p * x[i]
            q *= x[i]
            a = a & x[i]
            o = x[i] | o
            e = e ^ x[i]
        return oc.Vector([p, q, a, o, e])

    x = numbers(size(device), np.uint32, 1, 1 << 30) | np.uint32(0b10001)
    with np.errstate(over="ignore"):
        p = int(np.multiply.reduce(x, dtype=np.uint32))
    expected = [p, 3 * p % (1 << 32), int(np.bitwise_and.reduce(x)), int(np.bitwise_or.reduce(x))]
    expected.append(5 ^ int(np.bitwise_xor.reduce(x)))
    assert combine(x).to_numpy().tolist() == expected


MAXIMA = {
    "max(m, v)": "m = max(m, x[i])",
    "max(v, m)": "m = max(x[i], m)",
    "oc.max": "m = oc.max(m, x[i])",
    "several": "m = max(m, x[i], x[i] - 1)",
    "v > m": "if x[i] > m:\n            m = x[i]",
    "v >= m": "if x[i] >= m:\n            m = x[i]",
    "m < v": "if m < x[i]:\n            m = x[i]",
    "m <= v": "if m <= x[i]:\n            m = x[i]",
    "named": "v = x[i]\n        if v > m:\n            m = v",
    "computed": "if 2 * x[i] + 1 > m:\n            m = 2 * x[i] + 1",
    "else": "if x[i] <= m:\n            pass\n        else:\n            m = x[i]",
    "not": "if not x[i] <= m:\n            m = x[i]",
    "and": "if x[i] % 3 != 0 and x[i] > m:\n            m = x[i]",
    "and after": "if x[i] > m and x[i] % 3 != 0:\n            m = x[i]",
    "nested": "if x[i] % 3 != 0:\n            if x[i] > m:\n                m = x[i]",
    "choice": "m = x[i] if x[i] > m else m",
    "other choice": "m = m if m > x[i] else x[i]",
    "select": "m = oc.select(x[i] > m, x[i], m)",
    "other select": "m = oc.select(m >= x[i], m, x[i])",
    "inner loop": "for j in range(2):\n            if x[i] - j > m:\n                m = x[i] - j",
    "func": "m = larger(m, x[i])",
    "func with a reference": "raise_to(m, x[i])",
}


@oc.func
def larger(a, b):
    return max(a, b)


@oc.func
def raise_to(target: oc.template(), v):
    if v > target:
        target = v


def kernel_of(tmp_path, form, initial, dtype):
    """A kernel with this form of update, from a file of its own."""
    import importlib.util

    path = tmp_path / "form.py"
    path.write_text(
        "import octants as oc\n"
        "from test_shared_assignment import larger, raise_to, smaller\n\n\n"
        "@oc.kernel\n"
        f"def reduce(x: oc.types.ndarray(dtype=oc.{dtype}, ndim=1)) -> oc.{dtype}:\n"
        f"    m = oc.{dtype}({initial})\n"
        "    for i in x:\n"
        f"        {form}\n"
        "    return m\n\n\n"
        "@oc.kernel\n"
        f"def reduce_element(x: oc.types.ndarray(dtype=oc.{dtype}, ndim=1), out: oc.types.ndarray(dtype=oc.{dtype}, ndim=1)):\n"
        f"    out[1] = oc.{dtype}({initial})\n"
        "    for i in x:\n"
        f"        {form.replace('m', 'out[1]').replace('out[1]ax', 'max').replace('out[1]in', 'min').replace('s' + 'out[1]all', 'small')}\n"
    )
    spec = importlib.util.spec_from_file_location("form", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.reduce, module.reduce_element


def expected_of(form, x, largest):
    """What Python itself makes of it."""
    m = -(10**6) if largest else 10**6
    import builtins

    scope = {
        "max": builtins.max,
        "min": builtins.min,
        "larger": builtins.max,
        "smaller": builtins.min,
        "oc": oc,
    }
    for value in x.tolist():
        if "raise_to" in form:
            m = max(m, value)
            continue
        scope |= {"x": [value], "i": 0, "m": m}
        exec(form.replace("\n        ", "\n"), scope)
        m = scope["m"]
    return m


@oc.func
def smaller(a, b):
    return min(a, b)


@pytest.mark.parametrize("form", MAXIMA)
@pytest.mark.parametrize("dtype", ["i32", "f32"])
def test_maxima_by_assignment(device, quiet, form, dtype, tmp_path):
    text = MAXIMA[form]
    n = 300 if device in INTERPRETED else 5000
    x = numbers(n, np.int32)
    local, element = kernel_of(tmp_path, text, -1_000_000 if dtype == "i32" else "-1000000.0", dtype)
    expected = expected_of(text, x, True)
    x = x.astype(np.float32) if dtype == "f32" else x
    assert local(x) == expected
    out = np.zeros(3, x.dtype)
    element(x, out)
    assert out.tolist() == [0, expected, 0]


@pytest.mark.parametrize("form", [f for f in MAXIMA if f != "func with a reference"])
def test_minima_by_assignment(device, quiet, form, tmp_path):
    text = MAXIMA[form].replace("max", "min").replace("larger", "smaller")
    text = text.translate(str.maketrans("<>", "><"))
    x = numbers(300 if device in INTERPRETED else 5000, np.int32)
    local, element = kernel_of(tmp_path, text, 1_000_000, "i32")
    expected = expected_of(text, x, False)
    assert local(x) == expected
    out = np.zeros(3, x.dtype)
    element(x, out)
    assert out.tolist() == [0, expected, 0]


@pytest.mark.sanitizer_core
def test_elements_of_fields_and_vectors(device, quiet):
    total, best = oc.field(oc.i32, shape=()), oc.field(oc.i32, shape=4)
    box = oc.Vector.field(2, oc.i32, shape=())
    apart = oc.Vector.field(2, oc.i32, shape=(), layout=oc.Layout.SOA)
    low = oc.Vector.field(2, oc.i32, shape=())

    @oc.kernel
    def reduce(x: oc.types.ndarray(dtype=oc.i32, ndim=1), k: oc.i32) -> oc.types.vector(3, oc.i32):
        v = oc.Vector([0, 0, 0])
        for i in x:
            total[None] = total[None] + x[i]
            if x[i] > best[k]:
                best[k] = x[i]
            box[None][0] = min(box[None][0], x[i])
            box[None][1] = max(box[None][1], x[i])
            apart[None] = apart[None] + oc.Vector([1, x[i]])
            low[None] = min(low[None], oc.Vector([x[i], -x[i]]))
            v = v + oc.Vector([x[i], 1, 2])
        return v

    x = numbers(size(device))
    s, n = int(x.sum()), len(x)
    assert reduce(x, 2).to_numpy().tolist() == [s, n, 2 * n]
    assert total[None] == s and best.to_numpy().tolist() == [0, 0, x.max(), 0]
    assert box[None].to_list() == [x.min(), x.max()] and apart[None].to_list() == [n, s]
    assert low[None].to_list() == [x.min(), -x.max()]


def test_members_of_structs(device, quiet):
    @oc.kernel
    def reduce(x: oc.types.ndarray(dtype=oc.i32, ndim=1)) -> oc.i32:
        range_ = oc.Struct(low=1000, high=-1000)
        for i in x:
            if x[i] < range_.low:
                range_.low = x[i]
            range_.high = max(range_.high, x[i])
        return range_.high - range_.low

    x = numbers(size(device), low=-999, high=999)
    assert reduce(x) == x.max() - x.min()


def test_elements_that_a_serial_loop_inside_runs_over(device, quiet):
    @oc.kernel
    def columns(x: oc.types.ndarray(dtype=oc.i32, ndim=2), out: oc.types.ndarray(dtype=oc.i32, ndim=1)):
        for i in range(x.shape[0]):
            for k in range(x.shape[1]):
                out[k] = out[k] + x[i, k]

    x = numbers(3 * size(device)).reshape(-1, 3)
    out = np.zeros(3, np.int32)
    columns(x, out)
    assert out.tolist() == x.sum(axis=0).tolist()


def test_constants_that_are_clamped_to_one_element(device):
    clamped = oc.types.ndarray(dtype=oc.i32, ndim=1, boundary="clamp")

    @oc.kernel
    def sums(x: oc.types.ndarray(dtype=oc.i32, ndim=1), out: clamped):
        for i in x:
            out[10] = out[10] + x[i]
            out[20] = out[20] - 2 * x[i]

    @oc.kernel
    def mixed(x: oc.types.ndarray(dtype=oc.i32, ndim=1), out: clamped):
        for i in x:
            out[10] = out[10] + x[i]
            out[20] = max(out[20], x[i])

    @oc.kernel
    def largest(x: oc.types.ndarray(dtype=oc.i32, ndim=1), out: clamped):
        for i in x:
            if x[i] > out[1]:
                out[1] = x[i]

    x, out = numbers(size(device)), np.zeros(3, np.int32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sums(x, out)
        largest(x, out)
    assert out.tolist() == [0, x.max(), -x.sum()]
    with pytest.warns(UserWarning, match="OC1007"):
        mixed(x, np.zeros(3, np.int32))


def test_truths_by_assignment(device, quiet):
    @oc.kernel
    def ask(x: oc.types.ndarray(dtype=oc.i32, ndim=1), limit: oc.i32) -> oc.types.vector(4, oc.i32):
        every = limit < 10**6
        some = limit > 10**6
        each = limit < 10**6
        any_ = limit > 10**6
        for i in x:
            every = every and x[i] < limit
            some = some or x[i] == limit - 1
            each = each & (x[i] < limit)
            any_ = any_ | (x[i] == limit - 1)
        return oc.Vector([every, some, each, any_], dt=oc.i32)

    x = numbers(size(device), low=0, high=100)
    x[x == 41] = 40
    assert ask(x, 200).to_numpy().tolist() == [1, 0, 1, 0]
    assert ask(x, 42).to_numpy().tolist() == [0, 0, 0, 0]
    x[len(x) // 2] = 41
    assert ask(x, 42).to_numpy().tolist() == [0, 1, 0, 1]


@pytest.mark.sanitizer_core
def test_several_loops_and_axes(device, quiet):
    @oc.kernel
    def spread(x: oc.types.ndarray(dtype=oc.f32, ndim=2)) -> oc.f32:
        low = x[0, 0]
        high = x[0, 0]
        for i, j in x:
            low = min(low, x[i, j])
            if x[i, j] > high:
                high = x[i, j]
        for i, j in x:
            x[i, j] = (x[i, j] - low) / (high - low)
        s = 0.0
        for I in oc.grouped(x):
            s = s + x[I]
        return s

    x = np.random.default_rng(3).random((20, size(device) // 20)).astype(np.float32)
    expected = ((x.astype(np.float64) - x.min()) / (x.max() - x.min())).sum()
    assert spread(x) == pytest.approx(expected, rel=1e-4)


def test_nan_among_the_values_is_passed_over(device, quiet):
    @oc.kernel
    def largest(x: oc.types.ndarray(dtype=oc.f32, ndim=1)) -> oc.types.vector(2, oc.f32):
        a = -1.0
        b = -1.0
        for i in x:
            if x[i] > a:
                a = x[i]
            b = max(b, x[i])
        return oc.Vector([a, b])

    oc.init(arch=oc.cfg.arch, fast_math=False, log_level="error")
    x = np.random.default_rng(3).random(500).astype(np.float32)
    x[::7] = np.nan
    assert largest(x).to_numpy().tolist() == [np.nanmax(x)] * 2


def test_narrow_numbers_wrap_as_in_order(device):
    @oc.kernel
    def reduce(x: oc.types.ndarray(dtype=oc.i16, ndim=1), out: oc.types.ndarray(dtype=oc.i16, ndim=1)):
        for i in x:
            out[0] = out[0] + x[i]

    x = numbers(size(device), np.int16)
    out = np.zeros(1, np.int16)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=".*OC1003.*")
        reduce(x, out)
    assert out[0] == x.sum(dtype=np.int16)


@pytest.mark.parametrize("level", [0, 3])
def test_the_level_of_optimisation_does_not_matter(level, quiet):
    oc.init(arch=oc.cfg.arch, opt_level=level, cpu_max_num_threads=4, log_level="error")

    @oc.kernel
    def reduce(x: oc.types.ndarray(dtype=oc.i32, ndim=1)) -> oc.i32:
        m = -(10**6)
        for i in x:
            v = x[i] * 2
            t = m
            if v > t:
                m = v
        return m

    x = numbers(N)
    assert reduce(x) == 2 * x.max()


def test_debug_mode_gives_no_false_warning(device, quiet):
    oc.init(arch=oc.cfg.arch, debug=True, log_level="error")

    @oc.kernel
    def reduce(x: oc.types.ndarray(dtype=oc.i32, ndim=1)) -> oc.i32:
        m = -(10**6)
        s = 0
        for i in x:
            s = s + x[i]
            if x[i] > m:
                m = x[i]
        return m + s

    x = numbers(500)
    assert reduce(x) == x.max() + x.sum()


@pytest.mark.parametrize("level", [0, 1])
def test_debug_mode_tells_the_same_races_at_every_level(level):
    oc.init(arch=oc.cfg.arch, debug=True, opt_level=level, log_level="error")

    # An index that is computed twice, and checked twice, is one value.
    @oc.kernel
    def least(x: oc.types.ndarray(dtype=oc.i32, ndim=1), m: oc.types.ndarray(dtype=oc.i32, ndim=1)):
        for i in range(8):
            m[0] = oc.select(m[0] < x[(i - 3) & 7], m[0], x[(i - 3) & 7])

    @oc.kernel
    def last(x: oc.types.ndarray(dtype=oc.i32, ndim=1), m: oc.types.ndarray(dtype=oc.i32, ndim=1)):
        for i in range(8):
            m[0] = oc.select(i < x[(i - 3) & 7], m[0], x[(i - 3) & 7])

    x, m = np.arange(1, 9, dtype=np.int32), np.full(1, 100, np.int32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        least(x, m)
    assert m[0] == 1
    with pytest.warns(UserWarning, match="OC1007"):
        last(x, m)


def test_recognised_forms_are_private_to_each_thread():
    @oc.kernel
    def reduce(x: oc.types.ndarray(dtype=oc.f32, ndim=1)) -> oc.f32:
        s = 0.0
        m = 0.0
        for i in x:
            s = s + x[i]
            if x[i] > m:
                m = x[i]
        return s + m

    reduce(np.ones(8, np.float32))
    text = reduce.dump("tasks")
    assert "reduce (" in text and "atomic_max" in text and "if " not in text


# ---- beside calls, clamped loads and identities ---------------------------------------------------------------------------------

ARRAY = oc.types.ndarray(dtype=oc.i32, ndim=1)
CLAMPED = oc.types.ndarray(dtype=oc.i32, ndim=1, boundary="clamp")


@oc.real_func
def element(x: ARRAY, i: oc.i32) -> oc.i32:
    return x[i]


@oc.real_func
def keep_square(y: ARRAY, x: ARRAY, i: oc.i32) -> oc.i32:
    y[i] = element(x, i) * element(x, i)
    return y[i]


@oc.real_func
def bump(s: ARRAY, i: oc.i32) -> oc.i32:
    s[0] += 1
    return i


def test_a_function_that_cannot_touch_the_place_is_called_between(device, quiet):
    total = oc.field(oc.i32, shape=())

    @oc.kernel
    def reduce(x: ARRAY, y: ARRAY, out: ARRAY, k: oc.i32) -> oc.types.vector(7, oc.i32):
        a, b, c, d, e, f, g = 5, -10_000, 7, 0, 10_000, 0, 10_000
        for i in x:
            a = a + element(x, i)
            b = max(b, element(x, i))
            c = c - element(x, i) - keep_square(y, x, i)
            d = d + element(x, i) if element(x, i) > 100 else d
            if element(x, i) < e:
                e = element(x, i)
            f = f ^ element(x, i)
            total[None] = total[None] + keep_square(y, x, i)
            out[k] = out[k] + element(x, i)
        for i in x:
            # What the function reads is written before both calls, and not between them.
            y[i] = x[i] * 2
            if element(y, i) < g:
                g = element(y, i)
        return oc.Vector([a, b, c, d, e, f, g])

    x = numbers(size(device), low=-100, high=200)
    y, out = np.zeros_like(x), np.zeros(3, np.int32)
    values = x.astype(np.int64)
    a, b, c, d, e, f, g = reduce(x, y, out, 2).to_numpy().tolist()
    assert (a, b) == (5 + values.sum(), max(-10_000, values.max()))
    assert c == 7 - values.sum() - (values**2).sum()
    assert d == values[values > 100].sum() and e == values.min()
    assert f == np.bitwise_xor.reduce(x) and g == 2 * values.min()
    assert total[None] == (values**2).sum()
    assert out.tolist() == [0, 0, values.sum()] and y.tolist() == (2 * values).tolist()


def test_debug_mode_checks_arithmetic_under_the_comparison(device, quiet):
    oc.init(arch=oc.cfg.arch, debug=True, log_level="error")

    @oc.real_func
    def double(x: ARRAY, i: oc.i32) -> oc.i32:
        return x[i] * 2

    @oc.kernel
    def extremes(x: ARRAY) -> oc.types.vector(2, oc.i32):
        a, b = -10_000, 10_000
        for i in x:
            if x[i] * 2 > a:
                a = x[i] * 2
            if double(x, i) < b:
                b = double(x, i)
        return oc.Vector([a, b])

    x = numbers(500)
    assert extremes(x).to_numpy().tolist() == [2 * x.max(), 2 * x.min()]


def test_a_function_that_touches_the_place_makes_a_race(device):
    total = oc.field(oc.i32, shape=())

    @oc.real_func
    def so_far(i: oc.i32) -> oc.i32:
        return total[None] + i

    @oc.real_func
    def begin_again(i: oc.i32) -> oc.i32:
        total[None] = i
        return i

    @oc.kernel
    def reads_field(x: ARRAY):
        for i in x:
            total[None] = total[None] + so_far(x[i])

    @oc.kernel
    def reads_field_first(x: ARRAY):
        for i in x:
            total[None] = so_far(x[i]) + total[None]

    @oc.kernel
    def writes_field(x: ARRAY):
        for i in x:
            total[None] = total[None] + begin_again(i)

    @oc.kernel
    def writes_element(x: ARRAY):
        for i in range(1, x.shape[0]):
            x[0] = x[0] + bump(x, i)

    @oc.kernel
    def reads_element(x: ARRAY):
        for i in range(1, x.shape[0]):
            x[0] = x[0] + element(x, 0)

    @oc.kernel
    def writes_between(x: ARRAY) -> oc.i32:
        m = 0
        for i in x:
            if element(x, i) > m:
                x[i] = 0
                m = element(x, i)
        return m

    for kernel in (reads_field, reads_field_first, writes_field, writes_element, reads_element, writes_between):
        with pytest.warns(UserWarning, match="OC1007"):
            kernel(np.ones(20, np.int32))


def test_a_function_that_draws_gives_no_maximum_by_comparison(device):
    @oc.real_func
    def draw(x: ARRAY, i: oc.i32) -> oc.i32:
        return x[i] + oc.random(oc.i32) % 10

    @oc.kernel
    def largest(x: ARRAY) -> oc.i32:
        m = 0
        for i in x:
            if draw(x, i) > m:
                m = draw(x, i)
        return m

    with pytest.warns(UserWarning, match="OC1007"):
        largest(np.ones(20, np.int32))


def test_a_clamped_element_is_compared_and_stored(device, quiet):
    @oc.kernel
    def extremes(x: CLAMPED, n: oc.i32) -> oc.types.vector(4, oc.i32):
        a, b, c, d = -10_000, 10_000, -10_000, 10_000
        for i in range(n):
            if x[i] > a:
                a = x[i]
            if b > x[i - 5] + 1:
                b = x[i - 5] + 1
            c = x[i] if x[i] > c else c
            d = oc.select(d < x[i], d, x[i])
        return oc.Vector([a, b, c, d])

    x = numbers(size(device))
    low, high = x.min(), x.max()
    assert extremes(x, len(x) + 20).to_numpy().tolist() == [high, low + 1, high, low]


def test_a_clamped_element_that_changes_between_is_a_race(device):
    @oc.kernel
    def largest(x: CLAMPED) -> oc.i32:
        m = -10_000
        for i in range(50):
            if x[i] > m:
                x[i] = 0
                m = x[i]
        return m

    with pytest.warns(UserWarning, match="OC1007"):
        largest(numbers(50))


def test_an_assignment_of_the_place_to_itself_is_no_race(device, quiet):
    @oc.kernel
    def idle(x: oc.types.ndarray(dtype=oc.f64, ndim=1), y: ARRAY, p: oc.i32) -> oc.types.vector(4, oc.i32):
        a, b, c, d = 1, 2, 3, 4
        for i in y:
            x[p & 3] = x[p & 3] - oc.cast(0, oc.f64)
            a = a
            a = a + y[i]
            a = a * 1
            b = b | 0
            b = max(b, y[i])
            if y[i] > c:
                d = d + 0
                c = y[i]
            if i % 2 == 0:
                d = d if y[i] > 0 else d
            d = d - y[i]
        return oc.Vector([a, b, c, d])

    y = numbers(size(device))
    x = np.arange(4.0)
    assert idle(x, y, 6).to_numpy().tolist() == [1 + y.sum(), y.max(), y.max(), 4 - y.sum()]
    assert x.tolist() == [0, 1, 2, 3]


def test_an_old_value_of_the_place_is_a_race(device):
    @oc.kernel
    def restore(y: ARRAY) -> oc.i32:
        s = 0
        for i in y:
            t = s
            s = s + y[i]
            s = t + 0
        return s

    with pytest.warns(UserWarning, match="OC1007"):
        restore(numbers(20))


# ---- races ----------------------------------------------------------------------------------------------------------------------


RACES = {
    "last": "last = x[i]",
    "index": "last = i",
    "half of it": "last = last // 2 + x[i]",
    "mixed": "last = last + x[i]\n        last = max(last, x[i])",
    "reversed difference": "last = x[i] - last",
    "swapped branches": "if x[i] > last:\n            last = x[i] - 1",
    "running sum": "last = last + x[i]\n        y[i] = last",
    "arg max": "if x[i] > last:\n            last = x[i]\n            where = i",
    "twice": "last = last + last + x[i]",
    "old value": "t = last\n        last = last + 1\n        last = t + x[i]",
    "counted maxima": "if x[i] > last:\n            last = x[i]\n            where = where + 1",
}


def sequential(form, x):
    scope = {"last": 0, "where": -1, "x": x.tolist(), "y": [0] * len(x), "max": max}
    code = compile(form.replace("\n        ", "\n"), "form", "exec")
    for i in range(len(x)):
        scope["i"] = i
        exec(code, scope)
    return scope["last"], scope["where"], scope["y"]


@pytest.mark.parametrize("form", RACES)
def test_races_are_told_once_and_one_thread_runs_in_order(device, form, tmp_path):
    path = tmp_path / "race.py"
    path.write_text(
        "import octants as oc\n\n\n"
        "@oc.kernel\n"
        "def race(x: oc.template(), y: oc.types.ndarray(dtype=oc.i32, ndim=1)) -> oc.types.vector(2, oc.i32):\n"
        "    last = 0\n"
        "    where = -1\n"
        "    for i in range(y.shape[0]):\n"
        f"        {RACES[form]}\n"
        "    return oc.Vector([last, where])\n"
    )
    import runpy

    race = runpy.run_path(str(path))["race"]
    n = 300
    values = numbers(n, low=0)
    x, other = oc.field(oc.i32, shape=n), oc.field(oc.i32, shape=n, order="i", offset=0)
    wide = oc.field(oc.i64, shape=n)
    x.from_numpy(values), other.from_numpy(values), wide.from_numpy(values.astype(np.int64))
    y = np.zeros(n, np.int32)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        found = race(x, y).to_numpy().tolist()
        race(other, y.copy())
        race(wide, y.copy())
    told = [str(one.message) for one in told if "OC1007" in str(one.message)]
    assert len(told) == 1, told
    assert "race.py:9" in told[0] or "race.py:1" in told[0]
    assert "= help: " in told[0]
    if device in (ONE_THREAD, *INTERPRETED):
        last, where, running = sequential(RACES[form], values)
        assert found == [(last + 2**31) % 2**32 - 2**31, where]
        assert y.tolist() == running


def test_a_serial_loop_has_no_races(device, quiet):
    @oc.kernel
    def in_order(x: oc.types.ndarray(dtype=oc.i32, ndim=1)) -> oc.i32:
        last = 0
        oc.loop_config(serialize=True)
        for i in x:
            last = last // 2 + x[i]
        oc.loop_config(parallelize=1)
        for i in x:
            last = last // 2 + x[i]
        return last

    x = numbers(200, low=0)
    last = 0
    for _ in range(2):
        for value in x.tolist():
            last = last // 2 + value
    assert in_order(x) == last


def test_what_is_no_race_is_not_told(device, quiet):
    flag, first = oc.field(oc.i32, shape=()), oc.field(oc.i32, shape=())
    corner = oc.field(oc.i32, shape=())
    slots = oc.field(oc.i32, shape=64)

    @oc.kernel
    def fine(x: oc.types.ndarray(dtype=oc.i32, ndim=1)) -> oc.i32:
        count = 0
        for i in x:
            # All iterations write the same.
            if x[i] > 500:
                flag[None] = 1
            # One iteration alone.
            if i == 0:
                first[None] = x[i]
            # Each its own, through a counter.
            if x[i] > 900 and count < 60:
                k = oc.atomic_add(count, 1)
                if k < 60:
                    slots[k] = x[i]
        for i, j in oc.ndrange(4, 5):
            if i == 3 and j == 0:
                corner[None] = i * 10 + j
        # The idiom for a serial block.
        for _ in range(1):
            total = 0
            count = total + 5
            for k in range(3):
                slots[60] = slots[60] * 2 + k
        return count

    x = numbers(300)
    assert fine(x) == 5
    assert flag[None] == 1 and first[None] == x[0] and corner[None] == 30 and slots[60] == 4


def test_a_race_names_the_line_in_a_func():
    @oc.func
    def keep(target: oc.template(), v):
        target = v  # the line

    @oc.kernel
    def race(x: oc.types.ndarray(dtype=oc.i32, ndim=1)) -> oc.i32:
        last = 0
        for i in x:
            keep(last, x[i])
        return last

    with pytest.warns(UserWarning, match="OC1007") as told:
        race(numbers(10))
    assert "the line" in str(told[0].message) and "keep(last, x[i])" in str(told[0].message)
