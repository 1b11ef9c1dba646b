"""``oc.algorithms``: sorting."""

import numpy as np
import pytest

import octants as oc
from octants.algorithms import sort, sort_scratch_slots


def sorter(key_dtype, has_values, end_bit, levels):
    @oc.kernel
    def go(
        keys: oc.types.NDArray,
        tmp_keys: oc.types.NDArray,
        values: oc.types.NDArray,
        tmp_values: oc.types.NDArray,
        scratch: oc.types.NDArray,
        n: oc.types.NDArray,
    ):
        sort(
            keys, tmp_keys, values, tmp_values, scratch, n, key_dtype=key_dtype, has_values=has_values, end_bit=end_bit, log256_max_n=levels
        )  # fmt: skip

    return go


def array(dtype, data):
    made = oc.ndarray(dtype, len(data))
    made.from_numpy(data)
    return made


def sorted_by_us(arch, dtype, keys, count, end_bit, levels=2):
    values = np.arange(len(keys), dtype=np.int32)
    n = oc.ndarray(oc.i32, ())
    n[None] = count
    ours, moved = array(dtype, keys), array(oc.i32, values)
    scratch = oc.ndarray(oc.u32, sort_scratch_slots(len(keys), levels))
    sorter(dtype, True, end_bit, levels)(
        ours, oc.ndarray(dtype, len(keys)), moved, oc.ndarray(oc.i32, len(keys)), scratch, n
    )
    return ours.to_numpy(), moved.to_numpy()


@pytest.mark.parametrize("name", ["i32", "u32", "f32", "i64", "u64", "f64"])
def test_sort_orders_keys_and_keeps_equal_ones_in_order(arch, name):
    dtype, numpy_type = getattr(oc, name), getattr(np, {"i": "int", "u": "uint", "f": "float"}[name[0]] + name[1:])
    random = np.random.default_rng(1)
    if name[0] == "f":
        keys = np.round(random.standard_normal(700) * 20) * 1e3 + 0.0  # −0.0 comes before 0.0
        keys[:4] = [np.inf, -np.inf, 1e-40, 0.0]
    else:
        limits = np.iinfo(numpy_type)
        keys = random.integers(limits.min, limits.max, 700, dtype=numpy_type)
        keys[100:300] = random.integers(0, 9, 200)
    keys = keys.astype(numpy_type)
    count = 651
    order = np.argsort(keys[:count], kind="stable")
    ours, moved = sorted_by_us(arch, dtype, keys, count, 8 * numpy_type().itemsize)
    assert (ours[:count] == keys[:count][order]).all() and (moved[:count] == order).all()
    assert (moved[count:] == np.arange(count, 700)).all(), "what is beyond the count stays"


def test_sort_by_the_lowest_bits_and_of_few_keys(arch):
    keys = np.array([0x30001, 0x10002, 0x20001, 0x40000], dtype=np.uint32)
    ours, moved = sorted_by_us(arch, oc.u32, keys, 4, 16, levels=1)
    assert ours.tolist() == [0x40000, 0x30001, 0x20001, 0x10002] and moved.tolist() == [3, 0, 2, 1]
    assert sorted_by_us(arch, oc.u32, keys, 0, 16, levels=1)[0].tolist() == keys.tolist()


def test_sort_of_fields_without_values(arch):
    keys, other = oc.field(oc.f32, 300), oc.field(oc.f32, 300)
    scratch, n = oc.field(oc.u32, sort_scratch_slots(300)), oc.field(oc.i32, ())
    data = np.random.default_rng(2).standard_normal(300).astype(np.float32)
    keys.from_numpy(data)
    n[None] = 300

    @oc.kernel
    def go():
        sort(keys, other, keys, other, scratch, n, oc.f32, False, 32, 2)

    go()
    assert (keys.to_numpy() == np.sort(data)).all()


@pytest.mark.no_device
def test_slots_of_scratch():
    assert sort_scratch_slots(1) == 257 and sort_scratch_slots(256, 1) == 257
    assert sort_scratch_slots(1 << 20, 3) == (1 << 20) + 4096 + 16 + 1
    with pytest.raises(ValueError, match="log256_max_n is 1 to 4, not 5"):
        sort_scratch_slots(10, 5)


@pytest.mark.parametrize("dtype, end_bit, levels, says", [
    ("i16", 16, 1, "sort takes keys of i32"), ("i32", 24, 1, "end_bit is a multiple of 16 up to 32, not 24"),
    ("i32", 64, 1, "up to 32, not 64"), ("i32", 32, 0, "log256_max_n is 1 to 4, not 0"),
])  # fmt: skip
def test_what_sort_refuses(arch, dtype, end_bit, levels, says):
    dtype = getattr(oc, dtype)
    arrays = [oc.ndarray(dtype, 4) for _ in range(4)]
    with pytest.raises(Exception, match=says):
        sorter(dtype, False, end_bit, levels)(*arrays, oc.ndarray(oc.u32, 300), oc.ndarray(oc.i32, ()))
