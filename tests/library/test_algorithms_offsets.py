"""``oc.algorithms`` over fields whose indices begin at an offset: elements are numbered from the first, wherever that is."""

import itertools

import numpy as np
import pytest

import octants as oc
from octants import algorithms as al

N = 300
#: Each array begins elsewhere, so that an index of one that is used for another is out of place.
OFFSETS = [-N, -7, 5, 1000, -1_000_000]


def makers(turn):
    """Makes fields at one offset after the other."""
    offsets = itertools.islice(itertools.cycle(OFFSETS), turn, None)

    def made(dtype, data_or_size, vector=0):
        size = data_or_size if isinstance(data_or_size, int) else len(data_or_size)
        make = oc.field if not vector else lambda *args, **kwargs: oc.Vector.field(vector, *args, **kwargs)
        field = make(dtype, (size,), offset=(next(offsets),))
        if not isinstance(data_or_size, int):
            field.from_numpy(data_or_size)
        return field

    return made


@oc.kernel
def reduced_and_scanned(
    arr: oc.Tensor, one: oc.Tensor, out: oc.Tensor, scratch: oc.Tensor, op: oc.Template, levels: oc.Template
):
    if oc.static(op == "add"):
        al.reduce_add(arr, one, scratch, N, oc.i32, levels)
        al.exclusive_scan_add(arr, out, scratch, N, oc.i32, levels)
    elif oc.static(op == "min"):
        al.reduce_min(arr, one, scratch, N, oc.i32, levels)
        al.exclusive_scan_min(arr, out, scratch, N, oc.i32, levels)
    else:
        al.reduce_max(arr, one, scratch, N, oc.i32, levels)
        al.exclusive_scan_max(arr, out, scratch, N, oc.i32, levels)


@pytest.mark.parametrize("turn", range(2))
@pytest.mark.parametrize("op", ["add", "min", "max"])
def test_reductions_and_scans(arch, op, turn):
    data = np.random.default_rng(3).integers(-(10**6), 10**6, N, dtype=np.int32)
    ufunc = {"add": np.add, "min": np.minimum, "max": np.maximum}[op]
    empty = {"add": 0, "min": 2**31 - 1, "max": -(2**31)}[op]
    for levels in (2, 3):
        made = makers(turn)
        arr, one, out = made(oc.i32, data), made(oc.i32, 3), made(oc.i32, N)
        reduced_and_scanned(arr, one, out, made(oc.u32, al.reduce_scratch_slots(N, levels)), op, levels)
        assert one.to_numpy().tolist() == [ufunc.reduce(data), 0, 0]
        assert (out.to_numpy() == ufunc.accumulate(np.concatenate([[empty], data[:-1]]))).all()
        assert (arr.to_numpy() == data).all()


@oc.kernel
def selected_and_added(
    arr: oc.Tensor, flags: oc.Tensor, out: oc.Tensor, count: oc.Tensor, keys: oc.Tensor, sums: oc.Tensor, scratch: oc.Tensor,
    by_flags: oc.Template,
):  # fmt: skip
    if oc.static(by_flags):
        al.select(arr, flags, out, count, scratch, N, 2)
    else:
        al.reduce_by_key_add(flags, arr, keys, sums, count, scratch, N, oc.i32, 2)


@pytest.mark.parametrize("turn", range(2))
def test_selection_and_sums_over_runs(arch, turn):
    random = np.random.default_rng(4)
    data = random.integers(-(10**6), 10**6, N, dtype=np.int32)
    flags = (random.random(N) < 0.4).astype(np.int32)
    made = makers(turn)
    arr, flag, out, count = made(oc.i32, data), made(oc.i32, flags), made(oc.i32, N), made(oc.i32, 2)
    keys, sums, scratch = made(oc.i32, N), made(oc.i32, N), made(oc.u32, al.reduce_by_key_scratch_slots(N))
    selected_and_added(arr, flag, out, count, keys, sums, scratch, True)
    assert count.to_numpy().tolist() == [flags.sum(), 0]
    assert (out.to_numpy()[: flags.sum()] == data[flags == 1]).all()
    selected_and_added(arr, flag, out, count, keys, sums, scratch, False)
    starts = np.flatnonzero(np.diff(flags, prepend=-1))
    assert count.to_numpy().tolist() == [len(starts), 0]
    assert (keys.to_numpy()[: len(starts)] == flags[starts]).all()
    assert (sums.to_numpy()[: len(starts)] == np.add.reduceat(data, starts)).all()


@oc.kernel
def sorted_in_place(
    keys: oc.Tensor, other: oc.Tensor, values: oc.Tensor, other_values: oc.Tensor, scratch: oc.Tensor, n: oc.Tensor
):
    al.sort(keys, other, values, other_values, scratch, n, oc.i32, True, 32, 2)


@pytest.mark.parametrize("turn", range(2))
def test_sorting(arch, turn):
    data = np.random.default_rng(5).integers(-40, 40, N, dtype=np.int32)
    made, n = makers(turn), oc.field(oc.i32, ())
    n[None] = N
    keys, other, values = made(oc.i32, data), made(oc.i32, N), made(oc.i32, np.arange(N, dtype=np.int32))
    sorted_in_place(keys, other, values, made(oc.i32, N), made(oc.u32, al.sort_scratch_slots(N)), n)
    order = np.argsort(data, kind="stable")
    assert (keys.to_numpy() == data[order]).all() and (values.to_numpy() == order).all()


@pytest.mark.filterwarnings("ignore:.*is deprecated:DeprecationWarning")
@pytest.mark.parametrize("offset", OFFSETS)
def test_what_the_host_calls(arch, offset):
    data = np.random.default_rng(6).permutation(N).astype(np.int32)
    keys, values = oc.field(oc.i32, N, offset=offset), oc.Vector.field(2, oc.i32, N, offset=3 - offset)
    keys.from_numpy(data)
    values.from_numpy(np.stack([np.arange(N), -np.arange(N)], axis=1).astype(np.int32))
    al.parallel_sort(keys, values)
    assert (keys.to_numpy() == np.arange(N)).all()
    assert (values.to_numpy()[:, 0] == np.argsort(data)).all() and (values.to_numpy().sum(axis=1) == 0).all()
    keys.from_numpy(data)
    al.PrefixSumExecutor(N).run(keys)
    assert (keys.to_numpy() == np.cumsum(data)).all()


def test_one_kernel_for_fields_at_several_offsets(arch):
    for offset in (0, 9, -9, 0):
        data = np.arange(N, dtype=np.int32)
        arr, one = oc.field(oc.i32, N, offset=offset), oc.field(oc.i32, 1, offset=-offset)
        arr.from_numpy(data)
        out, scratch = oc.ndarray(oc.i32, N), oc.ndarray(oc.u32, al.reduce_scratch_slots(N, 2))
        reduced_and_scanned(arr, one, out, scratch, "add", 2)
        assert one[-offset] == data.sum() and (out.to_numpy() == np.cumsum(data) - data).all()


@pytest.mark.filterwarnings("ignore:.*is deprecated:DeprecationWarning")
def test_what_is_refused(arch):
    both = oc.Struct.field({"a": oc.i32, "b": oc.i32})
    oc.root.dense(oc.i, 4).place(both.a, offset=1)
    oc.root.dense(oc.i, 4).place(both.b, offset=2)
    flags, count, scratch = oc.field(oc.i32, 4), oc.field(oc.i32, 1), oc.field(oc.u32, 8)
    grid = oc.field(oc.i32, (2, 2), offset=(1, 1))

    @oc.kernel
    def members_apart():
        al.select(both, flags, both, count, scratch, 4, 1)

    @oc.kernel
    def two_axes():
        al.reduce_add(grid, count, scratch, 4, oc.i32, 1)

    with pytest.raises(oc.OctantsCompilationError, match=r"begin at different indices: \(1,\), \(2,\)") as caught:
        members_apart()
    assert "al.select(both" in str(caught.value)
    with pytest.raises(oc.OctantsCompilationError, match="arrays of one axis; .* has 2") as caught:
        two_axes()
    assert "al.reduce_add(grid" in str(caught.value)
    with pytest.raises(ValueError, match="adds up 5 elements, and the field has 4"):
        al.PrefixSumExecutor(5).run(flags)
    with pytest.raises(ValueError, match="a value for each of 4 keys; there are 1"):
        al.parallel_sort(flags, count)


@pytest.mark.parametrize("solver", ["MatrixFreeCG", "MatrixFreeBICGSTAB"])
def test_solvers_of_operators(arch, solver):
    begin = (-3, 2)
    b, x = oc.field(oc.f64, (4, 5), offset=begin), oc.field(oc.f64, (4, 5), offset=begin)
    b.from_numpy(np.random.default_rng(7).random((4, 5)))

    @oc.kernel
    def apply(x: oc.template(), product: oc.template()):
        for i, j in x:
            product[i, j] = (i + 4 + j) * x[i, j]

    assert getattr(oc.linalg, solver)(oc.linalg.LinearOperator(apply), b, x, tol=1e-12)
    weights = np.add.outer(np.arange(-3, 1), np.arange(2, 7)) + 4
    np.testing.assert_allclose(x.to_numpy(), b.to_numpy() / weights, rtol=1e-10)
    with pytest.raises(RuntimeError, match=r"whose indices begin alike, not at \(-3, 2\) and \(0, 0\)"):
        getattr(oc.linalg, solver)(oc.linalg.LinearOperator(apply), b, oc.field(oc.f64, (4, 5)))
