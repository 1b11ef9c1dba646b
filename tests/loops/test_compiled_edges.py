"""Kernels at the edges of what passes assume: elements that lie apart, words that branches share, indices at the limits, bytes that are no bools, NaNs."""

import warnings

import numpy as np
import pytest
from devices import INTERPRETED

import octants as oc

pytestmark = pytest.mark.host_access

quant = oc.types.quant
LIMIT = 2**31 - 1


def reals(ndim=1):
    return oc.types.ndarray(dtype=oc.f32, ndim=ndim)


def integers(ndim=1):
    return oc.types.ndarray(dtype=oc.i32, ndim=ndim)


# ---- sums of neighbours ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", [1, 2, 3])
def test_sums_of_neighbours_in_a_view_that_is_strided(arch, step):
    n = 40

    @oc.kernel
    def add(x: reals(), k: integers()):
        for i in range(k.shape[0]):
            x[k[i]] += 1.0
            x[k[i] + 1] += 2.0
            x[k[i] + 2] -= 4.0

    at = np.random.default_rng(step).integers(0, n - 2, 500).astype(np.int32)
    expected = np.zeros((n, step), np.float32)
    for distance, value in enumerate((1, 2, -4)):
        np.add.at(expected[:, 0], at + distance, value)
    whole = np.zeros(n * step, np.float32)
    add(whole[::step], at)
    np.testing.assert_array_equal(whole, expected.ravel())
    if arch == "cuda":
        torch = pytest.importorskip("torch")
        whole = torch.zeros(n * step, device="cuda")
        add(whole[::step], torch.from_numpy(at).cuda())
        np.testing.assert_array_equal(whole.cpu().numpy(), expected.ravel())


@pytest.mark.parametrize("part", ["columns", "rows", "every second row"])
def test_sums_of_neighbours_in_a_part_of_a_matrix(arch, part):
    @oc.kernel
    def add(x: reals(2), k: integers()):
        for i in range(k.shape[0]):
            row = i % x.shape[0]
            x[row, k[i]] += 1.0
            x[row, k[i] + 1] += 2.0

    whole, expected = (np.zeros((12, 20), np.float32) for _ in range(2))
    cut = {"columns": np.s_[:, 2:12:2], "rows": np.s_[3:9, 1:7], "every second row": np.s_[::2, :]}[part]
    view, seen = whole[cut], expected[cut]
    at = np.random.default_rng(1).integers(0, seen.shape[1] - 1, 300).astype(np.int32)
    rows = np.arange(300) % seen.shape[0]
    np.add.at(seen, (rows, at), 1)
    np.add.at(seen, (rows, at + 1), 2)
    add(view, at)
    np.testing.assert_array_equal(whole, expected)
    if arch == "cuda":
        torch = pytest.importorskip("torch")
        whole = torch.zeros((12, 20), device="cuda")
        add(whole[cut], torch.from_numpy(at).cuda())
        np.testing.assert_array_equal(whole.cpu().numpy(), expected)


@pytest.mark.parametrize("shape", [(3, 4), (7, 8), (35, 8), (67, 4), (131, 16), (1003, 8), (5, 32)])
def test_sums_of_short_rows_whose_number_is_odd(arch, shape):
    """Lanes of a warp have different rows, and one of them a row less."""

    @oc.kernel
    def add(x: reals(2), y: reals(), z: reals(2)):
        for i, j in oc.ndrange(x.shape[0], x.shape[1]):
            y[i >> 3] += x[i, j]
            z[i, j] = x[i, j]

    x = np.random.default_rng(0).integers(0, 9, shape).astype(np.float32)
    y, z = np.zeros(shape[0] // 8 + 1, np.float32), np.zeros(shape, np.float32)
    add(x, y, z)
    expected = np.zeros_like(y)
    np.add.at(expected, np.arange(shape[0]) >> 3, x.sum(axis=1))
    np.testing.assert_array_equal(y, expected)
    np.testing.assert_array_equal(z, x)


def test_differences_under_a_condition(arch):
    @oc.kernel
    def take(x: reals(), k: integers()):
        for i in range(k.shape[0]):
            if k[i] % 2 == 0:
                x[k[i]] -= 1.5

    k = np.random.default_rng(0).integers(0, 16, 1000).astype(np.int32)
    x = np.full(16, 2.0, np.float32)
    take(x, k)
    np.testing.assert_array_equal(x, 2.0 - 1.5 * np.bincount(k, minlength=16) * (np.arange(16) % 2 == 0))


# ---- words that branches share --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bits, together", [(1, 32), (4, 8), (3, 10)])
def test_branches_write_elements_of_the_same_words(arch, bits, together):
    n = together * (10 if arch in INTERPRETED else 30000)
    x = oc.field(quant.int(bits, signed=False))
    oc.root.dense(oc.i, n // together).quant_array(oc.i, together, max_num_bits=32).place(x)

    @oc.kernel
    def halves():
        with oc.stream_parallel():
            for i in range(n):
                if i % 2 == 0:
                    x[i] = 1
        with oc.stream_parallel():
            for i in range(n):
                if i % 2 == 1:
                    x[i] = 1

    @oc.kernel
    def clear():
        for i in x:
            x[i] = 0

    for _ in range(3):
        halves()
        assert x.to_numpy().sum() == n
        clear()
        assert x.to_numpy().sum() == 0


# ---- indices at the limits ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bits, together", [(1, 32), (4, 8)])
def test_conditions_on_indices_that_wrap(arch, bits, together):
    n = together * (5 if arch in INTERPRETED else 40)
    x = oc.field(quant.int(bits, signed=False))
    oc.root.dense(oc.i, n // together).quant_array(oc.i, together, max_num_bits=32).place(x)
    i = np.arange(n)
    few = arch in INTERPRETED
    for offset in (LIMIT - 40, -3) if few else (LIMIT, LIMIT - 40, LIMIT - n // 2, -LIMIT, 3, -3):
        for bound in (0, LIMIT - 20) if few else (-LIMIT - 1, -LIMIT + 60, -3, 0, 45, LIMIT - 20, LIMIT):

            @oc.kernel
            def mark(lo: oc.i32, bound: oc.i32):
                for i in range(lo, n):
                    v = 0
                    if i + offset < bound:
                        v = 1
                    if bound <= i + offset:
                        v = 1 - v
                    if i + offset == bound:
                        v = 0
                    if i + offset > bound and i != 7:
                        v = 1
                    x[i] = v

            at = (i + offset + 2**31) % 2**32 - 2**31
            v = (at < bound).astype(int)
            v = np.where(bound <= at, 1 - v, v)
            v = np.where(at == bound, 0, v)
            v = np.where((at > bound) & (i != 7), 1, v)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                mark(0, bound)
            np.testing.assert_array_equal(x.to_numpy(), v, f"{offset} {bound}")


@pytest.mark.host_devices
@pytest.mark.parametrize("distances", [(1, 2), (1, 4), (0, -2), (-1, 1), (-3, -2)])
def test_updates_of_neighbours_by_iterations_up_to_the_limit(arch, distances):
    """Loops that end at the greatest integer; few of their iterations do something."""
    if arch in INTERPRETED:
        pytest.skip("two thousand million iterations")
    first, second = distances

    @oc.kernel
    def add(a: integers(), n: oc.i32):
        for i in range(LIMIT):
            if 3 <= i and i < n:
                a[i + first] += 1
                a[i + second] += 10

    a, expected = np.zeros(40, np.int32), np.zeros(40, np.int32)
    add(a, 20)
    for i in range(3, 20):
        expected[i + first] += 1
        expected[i + second] += 10
    np.testing.assert_array_equal(a, expected)


@pytest.mark.parametrize("dtype", ["u8", "i8", "i16", "u16", "u32", "i64", "u64"])
def test_bounds_of_any_integer_type(arch, dtype):
    n = 64
    x, y = (oc.field(quant.int(bits, signed=False)) for bits in (1, 4))
    oc.root.dense(oc.i, n // 32).quant_array(oc.i, 32, max_num_bits=32).place(x)
    oc.root.dense(oc.i, n // 8).quant_array(oc.i, 8, max_num_bits=32).place(y)

    @oc.kernel
    def run(a: integers(), lo: getattr(oc, dtype), hi: getattr(oc, dtype)):
        for i in range(lo, hi):
            x[i] = 1
        for i in range(lo, hi):
            y[i] = 3
        for i in range(lo, hi):
            a[i] += 1
            a[i + 1] += 10
        for i, j in oc.ndrange((lo, hi), 2):
            a[i] += 100

    a = oc.ndarray(oc.i32, n + 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run(a, 5, 50)
    inside = (np.arange(n + 1) >= 5) & (np.arange(n + 1) < 50)
    np.testing.assert_array_equal(x.to_numpy(), inside[:n])
    np.testing.assert_array_equal(y.to_numpy(), 3 * inside[:n])
    np.testing.assert_array_equal(a.to_numpy(), 201 * inside + 10 * np.roll(inside, 1))


# ---- races ----------------------------------------------------------------------------------------------------------------


def races(kernel, *arguments) -> bool:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        kernel(*arguments)
    return any("OC1007" in str(warning.message) for warning in told)


def test_a_sum_tells_the_iteration_only_if_its_digits_are_bounded(arch):
    @oc.kernel
    def ambiguous(s: integers()):
        for i, j in oc.ndrange(3, 5):
            if 2 * i + j == 4:
                s[0] = i

    @oc.kernel
    def unique(s: integers()):
        for i, j in oc.ndrange(3, 5):
            if 5 * i + j == 7:
                s[0] = 10 * i + j

    @oc.kernel
    def backwards(s: integers()):
        for i, j in oc.ndrange(3, 5):
            if j - 5 * i == -8:
                s[0] = 10 * i + j

    s = np.zeros(1, np.int32)
    assert races(ambiguous, s)
    assert not races(unique, s) and s[0] == 12
    assert not races(backwards, s) and s[0] == 22


def test_one_element_of_a_field_of_nested_nodes_is_one_iteration(arch):
    x = oc.field(oc.i32)
    oc.root.dense(oc.i, 4).dense(oc.i, 8).place(x)

    @oc.kernel
    def find(s: integers()):
        for i in x:
            if i == 19:
                s[0] = i

    s = np.zeros(1, np.int32)
    assert not races(find, s) and s[0] == 19


# ---- bytes that are no bools ----------------------------------------------------------------------------------------------


UPDATES = {
    "add": np.logical_xor, "sub": np.logical_xor, "xor": np.logical_xor, "mul": np.logical_and, "and": np.logical_and,
    "min": np.logical_and, "max": np.logical_or, "or": np.logical_or,
}  # fmt: skip


@pytest.mark.parametrize("op", UPDATES)
def test_updates_of_bools_of_any_byte(arch, op):
    update = getattr(oc, f"atomic_{op}")
    bools = oc.types.ndarray(dtype=oc.u1, ndim=1)

    @oc.kernel
    def change(x: bools, old: bools, k: integers(), v: bools):
        for i in range(k.shape[0]):
            old[i] = update(x[k[i]], v[i])

    raw = np.arange(256, dtype=np.uint8)
    k = np.random.default_rng(0).permutation(256).astype(np.int32)
    for value in (False, True):
        x, old = raw.copy().view(np.bool_), np.zeros(256, np.bool_)
        change(x, old, k, np.full(256, value))
        np.testing.assert_array_equal(x.view(np.uint8) != 0, UPDATES[op](raw != 0, value))
        np.testing.assert_array_equal(old, raw[k] != 0)


# ---- maxima and NaN -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fast", [False, True])
def test_a_nan_goes_where_the_comparison_does_not_hold(arch, fast):
    oc.init(arch=getattr(oc, arch), fast_math=fast, log_level="error")

    @oc.kernel
    def otherwise(m: reals(), v: reals()):
        for i in range(v.shape[0]):
            if v[i] <= m[0]:
                pass
            else:
                m[0] = v[i]
        for i in range(v.shape[0]):
            m[1] = oc.select(m[1] < v[i], m[1], v[i])
        for i in range(v.shape[0]):
            if not v[i] <= m[2]:
                m[2] = v[i]

    @oc.kernel
    def where_it_holds(m: reals(), v: reals()):
        for i in range(v.shape[0]):
            if v[i] > m[0]:
                m[0] = v[i]
        for i in range(v.shape[0]):
            if m[1] > v[i]:
                m[1] = v[i]

    numbers = np.random.default_rng(0).normal(size=50 if arch in INTERPRETED else 5000).astype(np.float32)
    nans = np.full(100, np.nan, np.float32)
    m = np.zeros(3, np.float32)
    assert not races(otherwise, m, numbers)
    np.testing.assert_array_equal(m, [max(numbers.max(), 0), min(numbers.min(), 0), max(numbers.max(), 0)])
    # In any order it is a NaN that comes last.
    otherwise(m, nans)
    assert np.isnan(m).all()
    # The next number takes its place.
    otherwise(m, numbers)
    np.testing.assert_array_equal(m, [numbers.max(), numbers.min(), numbers.max()])
    m = np.zeros(2, np.float32)
    where_it_holds(m, nans)
    where_it_holds(m, numbers)
    np.testing.assert_array_equal(m, [max(numbers.max(), 0), min(numbers.min(), 0)])
