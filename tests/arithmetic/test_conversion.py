"""Numbers that the host gives to arrays and matrices become what a kernel's cast makes of them."""

import warnings

import numpy as np
import pytest

import octants as oc

REALS = [
    300.7,
    -300.7,
    127.9,
    -128.9,
    128.0,
    -129.0,
    255.5,
    1e20,
    -1e20,
    2.0**63,
    -(2.0**63),
    2.0**64,
    0.5,
    -0.5,
    np.nan,
    np.inf,
    -np.inf,
]
INTEGERS = ["i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64"]


def cast_by_a_kernel(values, dtype):
    out = oc.ndarray(dtype, len(values))

    @oc.kernel
    def go(x: oc.types.NDArray, out: oc.types.NDArray):
        for i in range(x.shape[0]):
            out[i] = oc.cast(x[i], dtype)

    go(values, out)
    return out.to_numpy()


@pytest.mark.host_access
@pytest.mark.parametrize("name", INTEGERS)
@pytest.mark.parametrize("real", [np.float64, np.float32, np.float16])
def test_reals_become_integers_as_in_kernels(arch, name, real):
    dtype = getattr(oc, name)
    with np.errstate(all="ignore"):
        values = np.array(REALS, real)
    expected = cast_by_a_kernel(values.astype(np.float64), dtype)
    sparse = oc.field(dtype)
    oc.root.pointer(oc.i, len(values)).place(sparse)
    entries = oc.Vector.field(len(values), dtype, ())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for target in (oc.ndarray(dtype, len(values)), oc.field(dtype, len(values)), sparse):
            for i, value in enumerate(values):
                target[i] = value
            assert target.to_numpy().tolist() == expected.tolist()
            target.fill(0)
            target.from_numpy(values)
            assert target.to_numpy().tolist() == expected.tolist()
        entries.from_numpy(values)
        assert entries.to_numpy().tolist() == expected.tolist()
        assert [int(oc.cast(value, dtype)) for value in values] == expected.tolist()
        assert oc.cast(values, dtype).tolist() == expected.tolist()
        assert oc.Vector(list(values), dt=dtype).to_list() == expected.tolist()


@pytest.mark.host_access
def test_copies_between_types_are_casts(arch):
    reals, integers = oc.field(oc.f64, len(REALS)), oc.field(oc.i8, len(REALS))
    reals.from_numpy(np.array(REALS))
    integers.copy_from(reals)
    assert integers.to_numpy().tolist() == cast_by_a_kernel(np.array(REALS), oc.i8).tolist()
    x, y = oc.ndarray(oc.f64, len(REALS)), oc.ndarray(oc.i8, len(REALS))
    x.from_numpy(np.array(REALS))
    y.copy_from(x)
    assert y.to_numpy().tolist() == integers.to_numpy().tolist()


@pytest.mark.no_device
def test_integers_wrap_from_64_bits_and_not_from_more():
    assert oc.cast(300, oc.i8) == 44 and oc.cast(-1, oc.u64) == 2**64 - 1 and oc.cast(2**63, oc.u64) == 2**63
    assert oc.cast(2**63 - 1, oc.i32) == -1 and oc.cast(2**63, oc.f64) == 2.0**63
    for number, dtype in ((2**63, oc.i64), (2**63, oc.i8), (2**64, oc.u64), (-(2**63) - 1, oc.i64)):
        with pytest.raises(OverflowError, match=f"{number} exceeded the range of specified dtype: {dtype}"):
            oc.cast(number, dtype)


def test_integers_of_kernels_wrap_from_64_bits(arch):
    @oc.kernel
    def casts() -> oc.types.vector(4, oc.i64):
        return oc.Vector(
            [
                oc.cast(300, oc.i8),
                oc.cast(2**40 + 7, oc.i32),
                oc.cast(oc.u64(2**63), oc.i64),
                oc.cast(oc.cast(-1, oc.u64) == oc.u64(2**64 - 1), oc.i64),
            ],
            dt=oc.i64,
        )

    assert casts().to_list() == [44, 7, -(2**63), 1]


@pytest.mark.filterwarnings("error")
def test_a_sparse_field_of_one_cell_is_read_without_a_warning(arch):
    for place in (
        lambda x: oc.root.pointer(oc.i, 1).place(x),
        lambda x: oc.root.pointer(oc.i, 1).dense(oc.i, 4).place(x),
        lambda x: oc.root.bitmasked(oc.i, 1).place(x),
        lambda x: oc.root.pointer(oc.ij, 1).pointer(oc.ij, (1, 4)).place(x),
    ):
        x = oc.field(oc.f32)
        place(x)
        out = oc.ndarray(oc.f32, x.shape)

        @oc.kernel
        def read(out: oc.types.NDArray):
            for at in oc.grouped(x):
                out[at] = x[at] + 1

        ones = np.ones(x.shape, np.float32)
        assert (x.to_numpy() == 0).all()
        x[(0,) * len(x.shape)] = 5
        x.from_numpy(ones)
        assert x.to_numpy().reshape(-1)[0] == 1
        read(out)
        assert out.to_numpy().reshape(-1)[0] == 2
