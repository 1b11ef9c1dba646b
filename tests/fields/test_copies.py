"""Copies between fields, arrays and numpy, whatever the layout: as numpy does them, and nothing beside."""

import numpy as np
import pytest

import octants as oc

pytestmark = pytest.mark.host_access

#: Odd extents, extents below a register or a tile, and so many elements that several threads copy them.
SHAPES = [(1, 1), (3, 5), (17, 33), (64, 48), (1, 700), (700, 1), (611, 509), (2400, 120)]
TYPES = ["u1", "u8", "i16", "f16", "f32", "u64"]


def _places(dtype, shape):
    """Fields of one shape in every layout, with what lies beside them."""
    rows, columns = shape
    beside, neighbour = oc.field(dtype), oc.field(oc.i32)
    oc.root.dense(oc.ij, shape).place(beside, neighbour)
    blocked, in_blocks = oc.field(dtype), oc.field(oc.u8)
    # Cells of padding behind elements of one byte; axes without a divisor are blocks of one.
    inner = tuple(next(n for n in (16, 8, 1) if extent % n == 0) for extent in shape)
    outer = (rows // inner[0], columns // inner[1])
    oc.root.dense(oc.ij, outer).dense(oc.ij, inner).place(blocked, in_blocks)
    fields = {
        "rows": oc.field(dtype, shape=shape),
        "columns": oc.field(dtype, shape=shape, order="ji"),
        "offset": oc.field(dtype, shape=shape, offset=(-3, 5)),
        "beside": beside,
        "blocks": blocked,
    }
    neighbours = [neighbour, in_blocks]
    for other in neighbours:
        other.fill(7)
    return fields, neighbours


def _numbers(dtype, shape):
    random = np.random.default_rng(5)
    return random.integers(0, 2 if dtype == "u1" else 200, shape).astype(oc.types.to_numpy_type(getattr(oc, dtype)))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_every_layout_is_copied_to_every_other(dtype, shape):
    numbers = _numbers(dtype, shape)
    fields, neighbours = _places(getattr(oc, dtype), shape)
    for name, field in fields.items():
        field.from_numpy(numbers)
        np.testing.assert_array_equal(field.to_numpy(), numbers, err_msg=name)
    for number, (name, source) in enumerate(fields.items()):
        for other, target in fields.items():
            target.fill(1)
            source.from_numpy(np.roll(numbers, number))
            target.copy_from(source)
            for field in (source, target):
                np.testing.assert_array_equal(field.to_numpy(), np.roll(numbers, number), err_msg=f"{name} to {other}")
    for name, field in fields.items():
        field.fill(1)
        assert (field.to_numpy() == 1).all(), name
    for neighbour in neighbours:
        assert (neighbour.to_numpy() == 7).all()


@pytest.mark.parametrize("shape", [(3, 5), (701, 301)], ids=str)
@pytest.mark.parametrize("layout", [oc.Layout.AOS, oc.Layout.SOA])
@pytest.mark.parametrize("order", ["ij", "ji"])
def test_entries_and_members_are_copied_among_themselves(shape, layout, order):
    random = np.random.default_rng(6)
    v = oc.Vector.field(3, oc.f32, shape=shape, layout=layout, order=order)
    numbers = random.random((*shape, 3), dtype=np.float32)
    v.from_numpy(numbers)
    v.get_scalar_field(0).copy_from(v.get_scalar_field(2))
    numbers[..., 0] = numbers[..., 2]
    np.testing.assert_array_equal(v.to_numpy(), numbers)
    v.copy_from(v)
    np.testing.assert_array_equal(v.to_numpy(), numbers)
    s = oc.Struct.field(
        {"a": oc.f32, "v": oc.types.vector(3, oc.f32), "k": oc.u8}, shape=shape, layout=layout, order=order
    )
    arrays = {
        "a": random.random(shape, dtype=np.float32),
        "v": random.random((*shape, 3), dtype=np.float32),
        "k": random.integers(0, 200, shape).astype(np.uint8),
    }
    s.from_numpy(arrays)
    for name, array in s.to_numpy().items():
        np.testing.assert_array_equal(array, arrays[name])
    s.v.copy_from(v)
    s.a.copy_from(v.get_scalar_field(1))
    expected = {"a": numbers[..., 1], "v": numbers, "k": arrays["k"]}
    for name, array in s.to_numpy().items():
        np.testing.assert_array_equal(array, expected[name])
    w = oc.Vector.field(3, oc.f32, shape=shape)
    w.copy_from(s.v)
    np.testing.assert_array_equal(w.to_numpy(), numbers)


@pytest.mark.parametrize("shape", [(3, 5, 2), (67, 33, 101)], ids=str)
def test_arrays_of_any_order_are_copied_to_each_other(shape):
    numbers = np.random.default_rng(7).random(shape)
    orders = [(0, 1, 2), (2, 1, 0), (1, 2, 0)]
    for one in orders:
        for other in orders:
            a, b = (oc.ndarray(oc.f64, shape=shape, layout=order) for order in (one, other))
            a.from_numpy(numbers)
            b.copy_from(a)
            np.testing.assert_array_equal(b.to_numpy(), numbers)


@pytest.mark.filterwarnings("ignore:axis i is cut again")
def test_blocks_that_have_no_loops_in_common_are_copied():
    fields = []
    for blocks in ((4, 3), (6, 2)):
        made = oc.field(oc.i32)
        oc.root.dense(oc.i, blocks[0]).dense(oc.j, 5).dense(oc.i, blocks[1]).place(made)
        fields.append(made)
    numbers = np.arange(60, dtype=np.int32).reshape(12, 5)
    fields[0].from_numpy(numbers)
    fields[1].copy_from(fields[0])
    np.testing.assert_array_equal(fields[1].to_numpy(), numbers)
