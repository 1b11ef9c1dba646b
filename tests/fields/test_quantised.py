"""Fields of quantised numbers: what is stored, who shares a word, how they are placed."""

import numpy as np
import pytest
from quantised_model import rounded_fixed, rounded_float, rounded_together, wrapped

import octants as oc

pytestmark = pytest.mark.host_access

quant = oc.types.quant


def packed(*types, bits=32, shape=16, axes=oc.i):
    fields = [oc.field(one) for one in types]
    word = oc.BitpackedFields(max_num_bits=bits)
    word.place(*fields)
    oc.root.dense(axes, shape).place(word)
    return fields


@pytest.mark.parametrize(
    "bits, members", [(32, [(5, True), (7, False), (20, True)]), (64, [(33, True), (1, False), (30, False)])]
)
def test_integers_wrap_and_leave_their_neighbours_alone(arch, bits, members):
    compute = oc.i64
    fields = packed(*(quant.int(n, signed, compute) for n, signed in members), bits=bits)
    x, y, z = fields

    @oc.kernel
    def store(a: oc.types.NDArray[oc.i64, 2]):
        for i in x:
            z[i] = a[2, i]
            x[i] = a[0, i]
            y[i] = a[1, i]

    @oc.kernel
    def read(out: oc.types.NDArray[oc.i64, 2]):
        for i in range(16):
            out[0, i] = x[i]
            out[1, i] = y[i] * 2
            out[2, i] = z[i]

    rng = np.random.default_rng(1)
    numbers = rng.integers(-(1 << 40), 1 << 40, (3, 16))
    store(numbers)
    expected = np.array([[wrapped(int(v), n, s) for v in row] for row, (n, s) in zip(numbers, members, strict=True)])
    got = np.zeros((3, 16), np.int64)
    read(got)
    np.testing.assert_array_equal(got, expected * [[1], [2], [1]])
    for field, row in zip(fields, expected, strict=True):
        np.testing.assert_array_equal(field.to_numpy(), row)
        assert [field[i] for i in range(16)] == row.tolist()
    y[3] = 1
    assert y[3] == 1 and x[3] == expected[0, 3] and z[3] == expected[2, 3]
    x.from_numpy(np.arange(16) - 8)
    read(got)
    assert got[0].tolist() == list(range(-8, 8)) and got[2].tolist() == expected[2].tolist()


def test_multiples_of_a_scale_are_rounded_and_clamped(arch):
    fine, coarse, unsigned = packed(
        quant.fixed(10, max_value=2.0), quant.fixed(4, scale=0.5), quant.fixed(6, signed=False, max_value=1.0)
    )

    @oc.kernel
    def store(a: oc.types.NDArray[oc.f32, 1]):
        for i in range(16):
            fine[i] = a[i]
            coarse[i] = a[i]
            unsigned[i] = a[i]

    numbers = np.array([0, 0.1, 0.5, 0.99, 1, 1.5, 1.999, 2, 2.5, -0.1, -1, -2, -2.5, 5, -9, 0.0029296875], np.float32)
    store(numbers)

    for field, how in (
        (fine, (10, True, 1 / 256)), (coarse, (4, True, 0.5)), (unsigned, (6, False, 1 / 64)),
    ):  # fmt: skip
        wanted = np.array([rounded_fixed(number, *how) for number in numbers])
        np.testing.assert_array_equal(field.to_numpy(), wanted.astype(np.float32))
        field.fill(0.5)
        assert field[7] == 0.5
        field.from_numpy(numbers)
        np.testing.assert_array_equal(field.to_numpy(), wanted.astype(np.float32))


@pytest.mark.parametrize("bits, signed", [(16, False), (31, False), (31, True), (32, True), (40, True)])
def test_numbers_far_out_of_range_are_clamped_in_integers_of_their_size(arch, bits, signed):
    (x,) = packed(quant.fixed(bits, signed, compute=oc.f64, scale=0.5), bits=64, shape=8)
    given = [1e300, -1e300, float("inf"), float("-inf"), float("nan"), 2.0**33, -(2.0**31), 3.3]

    @oc.kernel
    def store(a: oc.types.NDArray[oc.f64, 1]):
        for i in x:
            x[i] = a[i]

    store(np.array(given))
    low, high = x.dtype.bounds
    steps = [0 if np.isnan(v) else min(max(v * 2, low), high) for v in given]
    assert x.to_numpy().tolist() == [np.floor(step + 0.5) / 2 for step in steps]
    if arch == "cpu":
        assert ("i64" in store.dump("tasks")) == (bits > 31)


def test_several_elements_in_a_word(arch):
    x = oc.field(quant.int(4))
    oc.root.dense(oc.i, 3).quant_array(oc.i, 8, max_num_bits=32).place(x)
    y = oc.field(quant.int(1, signed=False))
    oc.root.dense(oc.ij, (2, 3)).quant_array(oc.ij, (4, 8), max_num_bits=32).place(y)
    alone = oc.field(quant.int(3))
    oc.root.quant_array(oc.i, 10, max_num_bits=32).place(alone)
    assert x.shape == (24,) and y.shape == (8, 24) and alone.shape == (10,)

    @oc.kernel
    def fill():
        for i in x:
            x[i] = i - 12
        for i, j in y:
            y[i, j] = (i * j) % 3 == 1
        for i in alone:
            alone[i] = i

    @oc.kernel
    def change():
        for index in oc.grouped(x):
            x[index] += 1
        for i in range(24):
            x[i] -= 2
        for i, j in oc.ndrange(8, 24):
            y[i, j] = 1 - y[i, j]

    fill()
    change()
    assert x.to_numpy().tolist() == [wrapped(i - 13, 4, True) for i in range(24)]
    assert [x[i] for i in range(24)] == x.to_numpy().tolist()
    wanted = [[int((i * j) % 3 != 1) for j in range(24)] for i in range(8)]
    assert y.to_numpy().tolist() == wanted
    assert alone.to_numpy().tolist() == [wrapped(i, 3, True) for i in range(10)]
    y.from_numpy(1 - np.array(wanted))
    assert (y.to_numpy() + wanted == 1).all()


def test_sums_into_bits_of_one_word_lose_nothing(arch):
    count, total, other = packed(
        quant.int(20, signed=False), quant.fixed(24, scale=1 / 64), quant.int(20, signed=False), bits=64, shape=4
    )
    n = 20_000 if arch in ("cpu", "cuda") else 400

    @oc.kernel
    def tally() -> oc.i32:
        greatest = 0
        for i in range(n):
            count[i % 4] += 1
            total[i % 4] += 0.25
            oc.atomic_max(greatest, oc.cast(oc.atomic_add(other[3], 1), oc.i32))
        return greatest

    assert tally() == n - 1
    assert count.to_numpy().tolist() == [n // 4] * 4
    assert total.to_numpy().tolist() == [n / 16] * 4
    assert other.to_numpy().tolist() == [0, 0, 0, n]


def test_fields_that_begin_elsewhere(arch):
    x = oc.field(quant.int(9))
    word = oc.BitpackedFields(32)
    word.place(x)
    oc.root.dense(oc.i, 5).place(word, offset=-2)

    @oc.kernel
    def fill():
        for i in x:
            x[i] = 10 * i

    fill()
    assert [x[i] for i in range(-2, 3)] == [-20, -10, 0, 10, 20]


@pytest.mark.parametrize(
    "cut",
    [
        lambda: oc.root.dense(oc.ij, (4, 2)).quant_array(oc.j, 8, max_num_bits=32),
        lambda: oc.root.dense(oc.j, 16).quant_array(oc.i, 4, max_num_bits=32),
        lambda: oc.root.pointer(oc.ij, (2, 2)).dense(oc.ij, (2, 1)).quant_array(oc.j, 8, max_num_bits=32),
    ],
    ids=["one of two axes", "an axis of its own", "below cells"],
)
def test_words_along_some_of_the_axes(arch, cut):
    x, seen = oc.field(quant.int(4)), oc.field(oc.i32, (4, 16))
    cut().place(x)

    @oc.kernel
    def store():
        for i, j in oc.ndrange((2, 4), 16):
            x[i, j] = (3 * i + j) % 16 - 8

    @oc.kernel
    def visit():
        for i, j in x:
            seen[i, j] += x[i, j] + 100

    store()
    visit()
    expected = np.array([[(3 * i + j) % 16 - 8 if i > 1 else 0 for j in range(16)] for i in range(4)])
    assert x.shape == (4, 16)
    assert np.array_equal(x.to_numpy(), expected)
    assert np.array_equal(seen.to_numpy()[2:], expected[2:] + 100)


def test_words_of_a_field_that_begins_elsewhere(arch):
    x = oc.field(quant.int(4))
    oc.root.dense(oc.ij, (2, 2)).quant_array(oc.ij, (2, 4), max_num_bits=32).place(x, offset=(-2, 5))
    x[-2, 5], x[1, 12], x[0, 8] = 1, 2, 3

    @oc.kernel
    def total() -> oc.i32:
        s = 0
        for i, j in x:
            s += x[i, j] * (100 * i + j)
        return s

    assert total() == -195 + 2 * 112 + 3 * 8
    assert [x.to_numpy()[at] for at in ((0, 0), (3, 7), (2, 3))] == [1, 2, 3]
    with pytest.raises(oc.OctantsRuntimeError, match="a number for each axis"):
        oc.root.quant_array(oc.i, 4, max_num_bits=32).place(oc.field(quant.int(4)), offset=(1, 2))


def test_one_word_without_axes(arch):
    x, v, plain = oc.field(quant.int(5)), oc.Vector.field(2, quant.fixed(10)), oc.field(oc.i32, ())
    word = oc.BitpackedFields(32)
    word.place(x, v)
    oc.root.place(word)

    @oc.kernel
    def change() -> oc.i32:
        x[None] = x[None] * 2
        v[None] = [0.5, -0.25]
        for _ in range(3):
            x[None] += 1
        return x[None]

    x[None] = -5
    assert change() == -7
    assert (x.shape, x[None], x.to_numpy().tolist(), v.to_numpy().tolist()) == ((), -7, -7, [0.5, -0.25])
    x.fill(4)
    plain.copy_from(x)
    assert plain[None] == 4
    x.from_numpy(np.array(7))
    assert x[None] == 7


def test_numbers_of_the_host_wrap_as_those_of_kernels(arch):
    (x,) = packed(quant.int(5, signed=False))
    x[0], x[1] = -1, 2**32 + 33
    assert x.to_numpy().tolist()[:2] == [31, 1]


def test_what_cannot_be_placed(arch):
    for bad in 0, -1.0, float("nan"):
        with pytest.raises(ValueError, match="max_value is a number above 0"):
            quant.fixed(5, max_value=bad)
    with pytest.raises(oc.OctantsRuntimeError, match="no shape"):
        oc.field(quant.int(5), shape=3)
    with pytest.raises(oc.OctantsRuntimeError, match="35 bits used out of 32"):
        packed(quant.int(30), quant.int(5), bits=32)
    with pytest.raises(oc.OctantsRuntimeError, match="BitpackedFields or in a quant_array"):
        oc.root.dense(oc.i, 2).place(oc.field(quant.int(5)))
    with pytest.raises(oc.OctantsRuntimeError, match="10 elements of 5 bits"):
        oc.root.quant_array(oc.i, 10, max_num_bits=32).place(oc.field(quant.int(5)))
    with pytest.raises(oc.OctantsRuntimeError, match="max_num_bits"):
        oc.BitpackedFields(12)
    with pytest.raises(ValueError, match="exp is from 1 to 8"):
        quant.float(9, 10)
    with pytest.raises(ValueError, match="frac is at most 24"):
        quant.float(5, 25)
    with pytest.raises(oc.OctantsRuntimeError, match="needs_grad"):
        oc.field(quant.fixed(5), needs_grad=True)
    with pytest.raises(oc.OctantsSyntaxError, match="At least 2 fields"):
        oc.BitpackedFields(32).place(oc.field(quant.float(5, 9)), shared_exponent=True)
    with pytest.raises(oc.OctantsRuntimeError, match="same exponent"):
        oc.BitpackedFields(32).place(oc.field(quant.float(5, 9)), oc.field(quant.float(6, 9)), shared_exponent=True)
    with pytest.raises(oc.OctantsRuntimeError, match="has an exponent"):
        oc.BitpackedFields(32).place(oc.field(quant.float(5, 9)), oc.field(quant.fixed(9)), shared_exponent=True)
    with pytest.raises(ValueError, match="Only a QuantType"):
        oc.BitpackedFields(32).place(oc.field(oc.f32, shape=2))
    with pytest.raises(oc.OctantsRuntimeError, match="all entries"):
        oc.Vector.field(2, [quant.int(5), oc.i32])
    with pytest.raises(ValueError, match="compute"):
        quant.int(5, compute=oc.f32)
    with pytest.raises(ValueError, match="bits"):
        quant.int(0)
    x = oc.field(quant.int(5))
    with pytest.raises(oc.OctantsRuntimeError, match="not placed"):
        x.fill(1)
    del x
    (y,) = packed(quant.int(5))
    with pytest.raises(oc.OctantsRuntimeError, match="placed already"):
        word = oc.BitpackedFields(32)
        word.place(y)
        oc.root.dense(oc.i, 2).place(word)

    @oc.kernel
    def double():
        for i in y:
            y[i] *= 2

    @oc.kernel
    def flat():
        for i in y:
            y[i, 0] = 2

    with pytest.raises(oc.OctantsCompilationError, match="take `\\+=` and `-=` alone"):
        double()
    with pytest.raises(oc.OctantsCompilationError, match="1"):
        flat()


def shared(*types, bits=64, shape=16):
    fields = [oc.field(one) for one in types]
    word = oc.BitpackedFields(max_num_bits=bits)
    word.place(*fields, shared_exponent=True)
    oc.root.dense(oc.i, shape).place(word)
    return fields


@pytest.mark.parametrize("compute", [oc.f32, oc.f64])
@pytest.mark.parametrize("exponent, fraction, signed", [(5, 11, True), (5, 4, False), (3, 3, True), (1, 5, True), (7, 1, True)])  # fmt: skip
def test_reals_with_an_exponent(arch, exponent, fraction, signed, compute):
    x, beside = packed(quant.float(exponent, fraction, signed, compute), quant.int(9), bits=32, shape=64)
    rng = np.random.default_rng(exponent)
    numbers = rng.uniform(1, 2, 64) * 2.0 ** rng.integers(-(2 ** (exponent - 1)) - 2, 2 ** (exponent - 1) + 4, 64)
    kind = np.float64 if compute is oc.f64 else np.float32
    numbers = (numbers * rng.choice([-1, 1], 64)).astype(kind)
    numbers[:6] = 0, -0.0, np.inf, -np.inf, np.nan, 1e-44
    beside.fill(-77)
    x.from_numpy(numbers)
    expected = [
        rounded_float(float(number), exponent, fraction, signed)
        for number in np.where(np.isfinite(numbers), numbers, 0)
    ]
    expected[2] = rounded_float(1e30, exponent, fraction, signed)
    expected[3] = rounded_float(-1e30, exponent, fraction, signed)
    np.testing.assert_array_equal(x.to_numpy(), np.array(expected, kind))
    assert (beside.to_numpy() == -77).all() and x[7] == expected[7]
    before = x.to_numpy()
    x.from_numpy(before)
    np.testing.assert_array_equal(x.to_numpy(), before)


def test_reals_as_wide_as_a_float_keep_all_but_the_smallest(arch):
    (x,) = packed(quant.float(8, 24), bits=32)
    numbers = np.array([np.inf, -np.inf, np.nan, 3.4e38, -1e-37, 1e-40, 1 / 3, -0.1] * 2, np.float32)
    x.from_numpy(numbers)
    numbers[5::8] = 0
    np.testing.assert_array_equal(x.to_numpy(), numbers)


def test_fields_that_share_an_exponent(arch):
    x, y = shared(quant.float(5, 10), quant.float(5, 10), bits=32)
    z = oc.field(oc.f32, 16)

    @oc.kernel
    def both(a: oc.types.NDArray[oc.f32, 2]):
        for i in range(16):
            x[i] = a[0, i]
            y[i] = a[1, i]

    @oc.kernel
    def one(a: oc.types.NDArray[oc.f32, 2]):
        for i in range(16):
            j = i
            y[j] = a[1, i] * 100
            z[i] = x[j]

    rng = np.random.default_rng(3)
    kept = np.zeros((2, 16))
    for _ in range(3):
        a = (rng.normal(size=(2, 16)) * 2.0 ** rng.integers(-17, 17, 16) * 2.0 ** rng.integers(-6, 1, (2, 16))).astype(
            np.float32
        )
        both(a)
        # What stood there before has no part in it: both are written at once.
        kept = np.array([rounded_together(pair, 5, (10, 10), (True, True)) for pair in a.T.astype(float)]).T
        np.testing.assert_array_equal(np.array([x.to_numpy(), y.to_numpy()]), kept)
        one(a)
        given = np.array([kept[0], (a[1] * np.float32(100)).astype(float)])
        kept = np.array([rounded_together(pair, 5, (10, 10), (True, True)) for pair in given.T]).T
        np.testing.assert_array_equal(np.array([x.to_numpy(), y.to_numpy()]), kept)
        np.testing.assert_array_equal(z.to_numpy(), kept[0])


def test_vectors_matrices_and_structs(arch):
    v = oc.Vector.field(3, quant.float(6, 14))
    word = oc.BitpackedFields(64)
    word.place(v, shared_exponent=True)
    oc.root.dense(oc.i, 5).place(word)
    m = oc.Matrix.field(2, 2, quant.fixed(4, max_value=2.0))
    word = oc.BitpackedFields(16)
    word.place(m)
    oc.root.dense(oc.i, 5).place(word)
    s = oc.Struct.field({"kind": quant.int(3, signed=False), "age": quant.int(5), "mass": oc.f32})
    word = oc.BitpackedFields(8)
    word.place(s.kind, s.age)
    oc.root.dense(oc.i, 5).place(word, s.mass)

    @oc.kernel
    def run() -> oc.f32:
        for i in v:
            v[i] = [i, 0.5, -i]
            v[i] += oc.Vector([1.0, 1.0, 1.0])
            v[i].xy = v[i].yx
            m[i] = [[0.25, 0.5], [i, -0.5]]
            m[i][1, 1] -= 0.25
            s[i].kind = i
            s[i].age = -i
            s[i].mass = 2 * s[i].age
        total = 0.0
        for i in range(5):
            for k in range(3):
                v[i][k] += 0.5
                total += v[i][k]
            v[i][i % 3] = 9
            total += v[i].norm_sqr() * 0 + (m[i] @ v[i][:2])[0] * 0
        return total

    assert run() == sum(i + 1.5 + 2.0 + 1.5 - i for i in range(5))
    expected = np.array([[2, i + 1.5, 1.5 - i] for i in range(5)], np.float32)
    expected[np.arange(5), np.arange(5) % 3] = 9
    np.testing.assert_array_equal(v.to_numpy(), expected)
    assert list(v[3]) == expected[3].tolist() and v[4][1] == 9
    np.testing.assert_array_equal(m.to_numpy()[1], [[0.25, 0.5], [1, -0.75]])
    assert s[3].kind == 3 and s[3].age == -3 and s.to_numpy()["mass"].tolist() == [0, -2, -4, -6, -8]
    v[1] = [1, 2, 3]
    v[2][1] = 7
    v[2].z = -1
    m.fill(0.5)
    s[4] = {"kind": 7, "age": 15, "mass": 3}
    assert v.to_numpy()[1:3].tolist() == [[1, 2, 3], [expected[2, 0], 7, -1]]
    assert (m.to_numpy() == 0.5).all() and s.age[4] == 15 and v.get_scalar_field(1)[2] == 7
    copy = oc.Vector.field(3, oc.f32, shape=5)
    v.copy_from(copy)
    assert (v.to_numpy() == 0).all() and "0." in str(v)

    @oc.kernel
    def short():
        v[0] = [1.0, 2.0]

    with pytest.raises(oc.OctantsCompilationError, match="cannot assign"):
        short()


def test_elements_of_sparse_nodes_come_and_go(arch):
    x, y = oc.field(quant.int(5)), oc.field(quant.fixed(11))
    word = oc.BitpackedFields(16)
    word.place(x, y)
    block = oc.root.pointer(oc.i, 8)
    block.bitmasked(oc.i, 4).place(word)

    @oc.kernel
    def run() -> oc.i32:
        x[9] = 7
        x[30] -= 3
        count = 0
        for i in x:
            count += 100 + x[i]
        return count

    assert run() == 204
    assert x[9] == 7 and x[30] == -3 and x[10] == 0
    y[2] = 0.5
    assert y[2] == 0.5 and x.to_numpy().tolist() == [{9: 7, 30: -3}.get(i, 0) for i in range(32)]
    block.deactivate_all()
    assert x[9] == 0


def test_a_loop_visits_the_elements_of_words_that_are_there(arch):
    x, y, z = oc.field(quant.int(4)), oc.field(quant.int(1, signed=False)), oc.field(quant.int(5))
    blocks = oc.root.pointer(oc.ij, (4, 2))
    blocks.quant_array(oc.ij, (2, 4), max_num_bits=32).place(x)
    oc.root.dense(oc.i, 4).quant_array(oc.i, 8, max_num_bits=8).place(y)
    oc.root.pointer(oc.i, 4).bitmasked(oc.i, 2).quant_array(oc.i, 6, max_num_bits=32).place(z)
    seen = oc.field(oc.i32, (8, 8))

    @oc.kernel
    def visit() -> oc.types.vector(2, oc.i32):
        count, total = 0, 0
        for i, j in x:
            seen[i, j] += 1
            x[i, j] += 1
        for index in oc.grouped(y):
            y[index] = index[0] % 3 == 0
            count += 1
        for i in z:
            z[i] = z[i] + i
            total += i
        return oc.Vector([count, total])

    x[3, 5], x[7, 0], z[13] = 6, -2, 1
    assert visit().to_list() == [32, sum(range(12, 18))]
    expected = np.zeros((8, 8), np.int32)
    expected[2:4, 4:] = expected[6:, :4] = 1
    assert np.array_equal(seen.to_numpy(), expected) and oc.sparse.usage(x) == 0.25
    expected[3, 5], expected[7, 0] = 7, -1
    assert np.array_equal(x.to_numpy(), expected)
    assert y.to_numpy().tolist() == [int(i % 3 == 0) for i in range(32)]
    assert z.to_numpy()[10:20].tolist() == [0, 0, 12, 14, 14, 15, -16, -15, 0, 0]
    x.fill(3)
    assert x.to_numpy().sum() == 3 * 16
    x.from_numpy(np.arange(64).reshape(8, 8) % 8)
    assert x[3, 5] == 5 and x[0, 1] == 0
    blocks.deactivate_all()
    assert not x.to_numpy().any() and oc.sparse.usage(x) == 0


def test_writing_what_a_cell_that_is_not_there_reads_as_makes_it(arch):
    x = oc.field(quant.int(4))
    oc.root.bitmasked(oc.i, 4).quant_array(oc.i, 8, max_num_bits=32).place(x)

    @oc.kernel
    def write(value: oc.i32) -> oc.i32:
        for i in range(8, 16):
            x[i] = value
        count = 0
        for i in x:
            count += i
        return count

    assert write(0) == sum(range(8, 16))


def test_a_word_is_written_once_where_assignments_follow_each_other(arch):
    x, y, z = packed(quant.int(5), quant.int(6), quant.int(7), bits=32)
    seen = oc.field(oc.i32, (4, 16))

    @oc.func
    def halved(value):
        result = value
        if value > 4:
            result = value // 2
        return result

    @oc.kernel
    def run():
        for i in x:
            x[i] = i
            y[i] = halved(i)
            z[i] = -i
            x[i] = x[i] + 1
            y[i], z[i] = z[i], y[i]
            seen[0, i] = x[i]
            if i % 2 == 0:
                x[i] = 1
                y[i] = 2
            seen[1, i] = x[i]
        for i in range(16):
            p = i
            x[p] = 3
            p = (p + 1) % 16
            z[p] = 9
        for i in range(16):
            for k in range(2):
                y[i] = k
            if y[i] == 1:
                continue
            y[i] = 31

    run()
    i = np.arange(16)
    assert seen.to_numpy()[0].tolist() == [wrapped(n + 1, 5, True) for n in i]
    assert seen.to_numpy()[1].tolist() == [1 if n % 2 == 0 else wrapped(n + 1, 5, True) for n in i]
    assert (x.to_numpy() == 3).all() and (z.to_numpy() == 9).all() and (y.to_numpy() == 1).all()


@pytest.mark.parametrize("seed", range(6))
def test_random_words_keep_what_they_hold(arch, seed):
    """Threads write different members of the same words at the same time; a Python model says what is there."""
    rng = np.random.default_rng(seed)
    bits = int(rng.choice([8, 16, 32, 64]))
    types, models, left = [], [], bits
    while left:
        width = int(min(left, rng.integers(1, 1 + bits // 2)))
        kind, signed = rng.choice(["int", "fixed", "float"]), bool(rng.integers(2))
        if kind == "float" and width >= 4:
            exponent = int(rng.integers(1, min(8, width - 1)))
            fraction = min(width - exponent, 22)
            types.append(quant.float(exponent, fraction, signed, oc.f64))
            models.append(lambda v, e=exponent, f=fraction, s=signed: rounded_float(v, e, f, s))
            width = exponent + fraction
        elif kind == "fixed":
            scale = float(2.0 ** rng.integers(-8, 3))
            types.append(quant.fixed(width, signed, compute=oc.f64, scale=scale))
            low, high = types[-1].bounds
            models.append(lambda v, q=scale, a=low, b=high: np.clip(np.sign(v) * np.floor(abs(v) / q + 0.5), a, b) * q)
        else:
            types.append(quant.int(width, signed, oc.i64))
            models.append(lambda v, n=width, s=signed: wrapped(int(v), n, s))
        left -= width
    n = 4000 if arch in ("cpu", "cuda") else 24
    fields = packed(*types, bits=bits, shape=n)
    count = len(fields)

    @oc.kernel
    def store(a: oc.types.NDArray[oc.f64, 2], among: oc.i32):
        for at in range(n * count):
            i = at // count
            for k in oc.static(range(count)):
                if at % count == k and (among >> k) & 1:
                    fields[k][i] = oc.cast(a[k, i], fields[k].dtype.compute)

    expected = np.zeros((count, n))
    for among in (2**count - 1, int(rng.integers(1, 2**count)), int(rng.integers(1, 2**count))):
        a = rng.normal(size=(count, n)) * 2.0 ** rng.integers(-6, 12, (count, 1))
        store(a, among)
        for k in range(count):
            if among >> k & 1:
                values = a[k] if types[k].kind != "int" else np.trunc(a[k])
                expected[k] = [models[k](float(v)) for v in values]
            np.testing.assert_array_equal(fields[k].to_numpy(), expected[k], err_msg=repr(types[k]))


def test_debug_mode_checks_indices_and_reports_no_overflow_of_its_own(arch, capfd):
    oc.init(arch=oc.cfg.arch, debug=True, log_level="error")
    x, y = packed(quant.int(12), quant.fixed(20, max_value=4.0))
    v = oc.Vector.field(2, quant.float(5, 9))
    word = oc.BitpackedFields(32)
    word.place(v, shared_exponent=True)
    oc.root.dense(oc.i, 16).place(word)
    z = oc.field(quant.int(64))
    word = oc.BitpackedFields(64)
    word.place(z)
    oc.root.dense(oc.i, 16).place(word)

    @oc.kernel
    def run(n: oc.i32):
        for i in range(n):
            x[i] = -i
            y[i] = -0.1 * i
            v[i] = [-1e9, 0.001]
            z[i] = -i
            x[i] += x[i]
            y[i] -= 0.5
            v[i] += v[i]

    run(16)
    assert x[5] == -10 and v[3][0] < -1000 and z[2] == -2
    assert "overflow" not in "".join(capfd.readouterr())
    with pytest.raises(oc.OctantsAssertionError, match="`x`: index \\(16,\\) with shape \\(16,\\)"):
        run(17)
    with pytest.raises(AssertionError, match="out of bounds"):
        x[16] = 1
