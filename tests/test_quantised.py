"""Fields of quantised numbers: what is stored, who shares a word, how they are placed."""

import numpy as np
import pytest

import octants as oc

quant = oc.types.quant


def packed(*types, bits=32, shape=16, axes=oc.i):
    fields = [oc.field(one) for one in types]
    word = oc.BitpackedFields(max_num_bits=bits)
    word.place(*fields)
    oc.root.dense(axes, shape).place(word)
    return fields


def wrapped(value, bits, signed):
    value &= (1 << bits) - 1
    return value - (1 << bits) if signed and value >> (bits - 1) else value


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

    def expected(scale, least, greatest):
        steps = np.sign(numbers) * np.floor(np.abs(numbers) / np.float32(scale) + np.float32(0.5))
        return np.clip(steps, least, greatest) * scale

    for field, wanted in (
        (fine, expected(1 / 256, -512, 511)), (coarse, expected(0.5, -8, 7)), (unsigned, expected(1 / 64, 0, 63)),
    ):  # fmt: skip
        np.testing.assert_array_equal(field.to_numpy(), wanted.astype(np.float32))
        field.fill(0.5)
        assert field[7] == 0.5
        field.from_numpy(numbers)
        np.testing.assert_array_equal(field.to_numpy(), wanted.astype(np.float32))


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
            oc.atomic_max(greatest, oc.atomic_add(other[3], 1))
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


def test_what_cannot_be_placed(arch):
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
    with pytest.raises(oc.OctantsRuntimeError, match="not in Octants yet"):
        quant.float(5, 10)
    with pytest.raises(ValueError, match="compute"):
        quant.int(5, compute=oc.f32)
    with pytest.raises(ValueError, match="bits"):
        quant.int(0)
    x = oc.field(quant.int(5))
    with pytest.raises(oc.OctantsRuntimeError, match="not placed"):
        x.fill(1)
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
