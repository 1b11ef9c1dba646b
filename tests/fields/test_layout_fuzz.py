"""Random shapes, layouts, strides and slices against numpy: copies in and out, kernels, views, and what is refused."""

import itertools

import numpy as np
import pytest

import octants as oc

pytestmark = pytest.mark.filterwarnings("ignore:axis . is cut again")

TYPES = {oc.u8: np.uint8, oc.i16: np.int16, oc.f32: np.float32, oc.f64: np.float64}
AXES = [oc.i, oc.j, oc.k]


def rearranged(generator, array):
    """The same elements under other strides: axes turned round, swapped, or with something between them."""
    axes = generator.permutation(array.ndim)
    stored = np.ascontiguousarray(array.transpose(axes)).transpose(np.argsort(axes))
    if generator.random() < 0.5:
        wider = np.zeros([extent * 2 for extent in array.shape], array.dtype)
        steps = tuple(slice(None, None, int(generator.choice([2, -2]))) for _ in array.shape)
        wider[steps] = stored
        stored = wider[steps]
    assert np.array_equal(stored, array)
    return stored


def placed(generator, dtype, element):
    """A field somewhere in a random tree, and its shape."""
    kind = generator.choice(["order", "blocks", "together", "tensor"])
    rank = int(generator.integers(1, 4))
    layout = oc.Layout.SOA if generator.random() < 0.5 else oc.Layout.AOS
    shape = tuple(int(extent) for extent in generator.integers(1, (200, 90, 20)[rank - 1], rank))

    def field(*args, **kwargs):
        if len(element) == 2:
            return oc.Matrix.field(*element, dtype, *args, **kwargs)
        return oc.Vector.field(*element, dtype, *args, **kwargs) if element else oc.field(dtype, *args, **kwargs)

    if kind == "order" or (kind == "tensor" and element):
        order = "".join(generator.permutation(list("ijk"[:rank])))
        options = {"layout": layout} if element else {}
        return field(shape=shape, order=order, **options), shape
    if kind == "tensor":
        return oc.tensor(dtype, shape, layout=tuple(int(n) for n in generator.permutation(rank))), shape
    inner = tuple(int(extent) for extent in generator.integers(1, 9, rank))
    outer = tuple(int(extent) for extent in generator.integers(1, 12, rank))
    axes = AXES[0] if rank == 1 else getattr(oc, "ijk"[:rank])
    node = oc.root.dense(axes, outer).dense(axes, inner)
    x = field()
    others = [oc.field(oc.i16), oc.field(oc.f64)] if kind == "together" else []
    node.place(*others[:1], x, *others[1:])
    return x, tuple(a * b for a, b in zip(outer, inner))


@pytest.mark.parametrize("seed", range(40))
def test_fields_and_tensors_hold_what_arrays_hold(seed):
    generator = np.random.default_rng(seed)
    dtype = list(TYPES)[seed % len(TYPES)]
    element = [(), (3,), (3, 3), (2, 3), (9,)][seed % 5]
    x, shape = placed(generator, dtype, element)
    values = (generator.random(shape + element) * 100).astype(TYPES[dtype])
    x.from_numpy(rearranged(generator, values))
    np.testing.assert_array_equal(x.to_numpy(), values)
    for _ in range(3):
        index = tuple(int(generator.integers(0, extent)) for extent in shape)
        np.testing.assert_array_equal(np.array(x[index]).reshape(element), values[index])

    @oc.kernel
    def increase():
        for I in oc.grouped(x):
            x[I] += 1

    increase() if not isinstance(x, oc.Tensor) else x.from_numpy(values + values.dtype.type(1))
    values = values + values.dtype.type(1)
    np.testing.assert_array_equal(x.to_numpy(), values)
    wrong = values[..., :-1] if values.shape[-1] > 1 else np.concatenate([values, values])
    with pytest.raises(ValueError):
        x.from_numpy(wrong)
    np.testing.assert_array_equal(x.to_numpy(), values)


@oc.kernel
def copy_2d(a: oc.types.ndarray(ndim=2), b: oc.types.ndarray(ndim=2)):
    for i, j in a:
        b[i, j] = a[i, j]


@pytest.mark.parametrize("seed", range(12))
def test_strided_arguments_are_used_in_place(arch, seed):
    generator = np.random.default_rng(seed)
    base = (generator.random((17, 23)) * 100).astype(list(TYPES.values())[seed % 4])

    def part():
        slices = []
        for extent in base.shape:
            step = int(generator.choice([-3, -2, -1, 1, 2, 3]))
            first, last = sorted(int(n) for n in generator.integers(0, extent + 1, 2))
            slices.append(slice(first, last, step) if step > 0 else slice(last, first and first - 1, step))
        view = base[tuple(slices)]
        return view.T if generator.random() < 0.5 else view

    view = part()
    out = rearranged(generator, np.zeros(view.shape, view.dtype))
    copy_2d(view, out)
    np.testing.assert_array_equal(out, view)


@pytest.mark.parametrize("seed", range(8))
def test_slices_of_arrays_are_those_of_numpy(seed):
    generator = np.random.default_rng(seed)
    extent = int(generator.integers(1, 40))
    values = np.arange(extent, dtype=np.int32)
    x = oc.ndarray(oc.i32, extent)
    x.from_numpy(values)

    @oc.kernel
    def total(view: oc.BufferView) -> oc.i32:
        result = 0
        for i in range(view.size):
            result += view[i] * (i + 1)
        return result

    bounds = [None, *(int(n) for n in generator.integers(-2 * extent, 2 * extent, 5))]
    for first, last, step in itertools.product(bounds, bounds, (None, 1, 2, -1)):
        if step not in (None, 1):
            with pytest.raises(ValueError, match="step"):
                x[first:last:step]
            continue
        expected = values[first:last:step]
        if len(expected) == 0:
            continue
        view = x[first:last:step]
        assert (view.size, view.offset) == (len(expected), int(expected[0]))
        assert total(view) == int((expected * (np.arange(len(expected)) + 1)).sum())
