"""``oc.algorithms`` beside sorting: reductions, scans, selection, sums over runs, and what is deprecated; against numpy."""

import numpy as np
import pytest

import octants as oc
from octants import algorithms as al

SIZES = [0, 1, 2, 255, 256, 257, 65535, 65536, 65537]
DTYPES = ["i32", "u32", "f32", "i64", "u64", "f64"]
NUMPY = {"add": np.add, "min": np.minimum, "max": np.maximum}


def numpy_type(name):
    return getattr(np, {"i": "int", "u": "uint", "f": "float"}[name[0]] + name[1:])


def numbers(name, n, seed=0):
    """Numbers whose sums are exact: integers, and eighths that stay small."""
    random = np.random.default_rng(seed)
    if name[0] == "f":
        return (random.integers(-40, 40, n) / 8).astype(numpy_type(name))
    limits = np.iinfo(numpy_type(name))
    return random.integers(limits.min // 2, limits.max // 2, n, dtype=numpy_type(name))


def identity(name, op):
    if op == "add":
        return 0
    if name[0] == "f":
        return np.inf if op == "min" else -np.inf
    limits = np.iinfo(numpy_type(name))
    return limits.max if op == "min" else limits.min


def made(kind, dtype, data, slots=None):
    """An array of a kind with these contents, or with room for so many."""
    size = max(1, len(data) if slots is None else slots)
    array = {"field": oc.field, "ndarray": oc.ndarray, "tensor": oc.tensor}[kind](dtype, (size,))
    if slots is None and len(data):
        array.from_numpy(data)
    return array


def scratch_of(kind, name, slots):
    return made(kind, oc.u64 if name.endswith("64") else oc.u32, (), slots)


def levels_of(n):
    return next(k for k in (1, 2, 3, 4) if n <= 256**k)


def is_slow(arch, n):
    return arch == "reference" and n > 300


@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("op", ["add", "min", "max"])
def test_reductions_and_scans_are_those_of_numpy(arch, op, name):
    dtype = getattr(oc, name)
    reduce, scan = getattr(al, f"reduce_{op}"), getattr(al, f"exclusive_scan_{op}")
    for n in SIZES:
        if is_slow(arch, n):
            continue
        levels = levels_of(n)

        @oc.kernel
        def go(
            arr: oc.types.NDArray, one: oc.types.NDArray, out: oc.types.NDArray, scratch: oc.types.NDArray, n: oc.i32
        ):
            reduce(arr, one, scratch, n, dtype, levels)
            scan(arr, out, scratch, n, dtype, levels)

        data = numbers(name, n)
        arr, one, out = made("ndarray", dtype, data), oc.ndarray(dtype, 1), made("ndarray", dtype, (), n)
        go(arr, one, out, scratch_of("ndarray", name, al.reduce_scratch_slots(n, levels)), n)
        first = np.array([identity(name, op)], dtype=data.dtype)
        running = NUMPY[op].accumulate(np.concatenate([first, data]), dtype=data.dtype)
        assert one.to_numpy()[0] == running[-1], n
        assert (out.to_numpy()[:n] == running[:-1]).all(), n
        assert (arr.to_numpy()[:n] == data).all()


@pytest.mark.parametrize("kind", ["field", "ndarray", "tensor"])
def test_arguments_may_be_fields_arrays_and_tensors(arch, kind):
    data = numbers("f32", 300)
    flags = (np.arange(300) % 3 == 1).astype(np.int32)
    arr, out, one = made(kind, oc.f32, data), made(kind, oc.f32, (), 300), made(kind, oc.f32, (), 1)
    chosen, flag, count = made(kind, oc.f32, (), 300), made(kind, oc.i32, flags), made(kind, oc.i32, (), 1)
    keys, sums, runs = made(kind, oc.i32, (), 300), made(kind, oc.f32, (), 300), made(kind, oc.i32, (), 1)
    scratch = made(kind, oc.u32, (), al.reduce_by_key_scratch_slots(300))

    @oc.kernel
    def go(
        arr: oc.Tensor, out: oc.Tensor, one: oc.Tensor, chosen: oc.Tensor, flag: oc.Tensor, count: oc.Tensor, keys: oc.Tensor,
        sums: oc.Tensor, runs: oc.Tensor, scratch: oc.Tensor,
    ):  # fmt: skip
        al.reduce_add(arr, one, scratch, 300, oc.f32, 2)
        al.exclusive_scan_add(arr, out, scratch, 300, oc.f32, 2)
        al.select(arr, flag, chosen, count, scratch, 300, 2)
        al.reduce_by_key_add(flag, arr, keys, sums, runs, scratch, 300, oc.f32, 2)

    go(arr, out, one, chosen, flag, count, keys, sums, runs, scratch)
    assert one.to_numpy()[0] == data.sum()
    assert (out.to_numpy() == np.concatenate([[0], np.cumsum(data)[:-1]])).all()
    assert count.to_numpy()[0] == flags.sum() and (chosen.to_numpy()[: flags.sum()] == data[flags == 1]).all()
    starts = np.flatnonzero(np.diff(flags, prepend=-1))
    assert runs.to_numpy()[0] == len(starts) and (keys.to_numpy()[: len(starts)] == flags[starts]).all()
    assert (sums.to_numpy()[: len(starts)] == np.add.reduceat(data, starts)).all()


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_select_keeps_the_order(arch, share):
    random = np.random.default_rng(5)
    for n in SIZES:
        if is_slow(arch, n):
            continue
        levels = levels_of(n)

        @oc.kernel
        def go(
            arr: oc.types.NDArray, flags: oc.types.NDArray, out: oc.types.NDArray, count: oc.types.NDArray, scratch: oc.types.NDArray,
            n: oc.i32,
        ):  # fmt: skip
            al.select(arr, flags, out, count, scratch, n, log256_max_n=levels)

        data, flags = numbers("i64", n), (random.random(n) < share).astype(np.int32)
        out, count = made("ndarray", oc.i64, (), n), made("ndarray", oc.i32, np.array([77], np.int32))
        scratch = made("ndarray", oc.u32, (), al.select_scratch_slots(n))
        go(made("ndarray", oc.i64, data), made("ndarray", oc.i32, flags), out, count, scratch, n)
        assert count[0] == flags.sum() and (out.to_numpy()[: flags.sum()] == data[flags == 1]).all()


def test_select_takes_structs_and_vectors(arch):
    point = oc.types.struct(place=oc.types.vector(3, oc.f32), number=oc.i32)
    points, out = point.field(shape=300), point.field(shape=300)
    flags, count = oc.field(oc.i32, 300), oc.field(oc.i32, 1)
    scratch = oc.field(oc.u32, al.select_scratch_slots(300))

    @oc.kernel
    def go():
        for i in range(300):
            points[i] = point(place=oc.Vector([i, i + 0.5, -i]), number=i)
            flags[i] = i % 7 == 3
        al.select(points, flags, out, count, scratch, 300, 2)

    go()
    names = np.arange(3, 300, 7)
    assert count[0] == len(names) and (out.number.to_numpy()[: len(names)] == names).all()
    assert (out.place.to_numpy()[: len(names)] == np.stack([names, names + 0.5, -names], axis=1)).all()


@pytest.mark.parametrize("name", ["i32", "u32", "f32"])
def test_runs_of_equal_keys_are_added_up(arch, name):
    random = np.random.default_rng(6)
    dtype = getattr(oc, name)
    for n in SIZES:
        for longest in (1, 3, 1000, 10**9):
            if is_slow(arch, n):
                continue
            levels = levels_of(n)

            @oc.kernel
            def go(
                keys: oc.types.NDArray, values: oc.types.NDArray, to_keys: oc.types.NDArray, to_values: oc.types.NDArray,
                count: oc.types.NDArray, scratch: oc.types.NDArray, n: oc.i32,
            ):  # fmt: skip
                al.reduce_by_key_add(keys, values, to_keys, to_values, count, scratch, n, dtype, levels)

            lengths = random.integers(1, longest + 1, n)
            lengths = lengths[: 1 + np.searchsorted(np.cumsum(lengths), n)]
            keys = np.repeat(np.arange(len(lengths)), lengths.clip(max=n))[:n] % 5
            values = numbers(name, n)
            to_keys, to_values = made("ndarray", oc.i64, (), n), made("ndarray", dtype, (), n)
            count = made("ndarray", oc.i32, np.array([77], np.int32))
            scratch = made("ndarray", oc.u32, (), al.reduce_by_key_scratch_slots(n))
            go(made("ndarray", oc.i64, keys), made("ndarray", dtype, values), to_keys, to_values, count, scratch, n)
            starts = np.flatnonzero(np.diff(keys, prepend=-1))
            runs = len(starts)
            assert count[0] == runs
            assert (to_keys.to_numpy()[:runs] == keys[starts]).all()
            expected = np.add.reduceat(values, starts, dtype=values.dtype) if n else values
            assert (to_values.to_numpy()[:runs] == expected).all(), (n, longest)


def test_keys_that_are_no_numbers_are_runs_of_their_own(arch):
    keys = np.array([1, 1, np.nan, np.nan, 2], np.float32)
    arrays = [made("ndarray", oc.f32, keys), made("ndarray", oc.i32, np.arange(5, dtype=np.int32))]
    arrays += [oc.ndarray(oc.f32, 5), oc.ndarray(oc.i32, 5), oc.ndarray(oc.i32, 1), oc.ndarray(oc.u32, 8)]

    @oc.kernel
    def go(a: oc.Tensor, b: oc.Tensor, c: oc.Tensor, d: oc.Tensor, e: oc.Tensor, f: oc.Tensor):
        al.reduce_by_key_add(a, b, c, d, e, f, 5, oc.i32, 1)

    go(*arrays)
    assert arrays[4][0] == 4 and arrays[3].to_numpy()[:4].tolist() == [1, 2, 3, 4]


@pytest.mark.host_devices("a million elements take an interpreter long")
def test_a_million_elements_and_the_same_sum_in_every_run():
    n = 1_000_000
    data = np.random.default_rng(8).standard_normal(n).astype(np.float32)

    @oc.kernel
    def go(arr: oc.types.NDArray, one: oc.types.NDArray, out: oc.types.NDArray, scratch: oc.types.NDArray, n: oc.i32):
        al.reduce_add(arr, one, scratch, n, oc.f32, 3)
        al.exclusive_scan_add(arr, out, scratch, n, oc.f32, 3)

    seen = set()
    for threads in (1, 2, 5):
        oc.init(arch=oc.cpu, cpu_max_num_threads=threads, log_level="error")
        one, out = oc.ndarray(oc.f32, 1), oc.ndarray(oc.f32, n)
        go(made("ndarray", oc.f32, data), one, out, scratch_of("ndarray", "f32", al.reduce_scratch_slots(n, 3)), n)
        seen.add((float(one[0]), out.to_numpy().tobytes()))
        np.testing.assert_allclose(out.to_numpy(), np.cumsum(data, dtype=np.float64) - data, atol=2e-2)
    assert len(seen) == 1


def test_the_count_may_be_a_number_of_the_run(arch):
    data = numbers("i32", 100)
    arr, out, n = made("ndarray", oc.i32, data), oc.ndarray(oc.i32, 1), oc.ndarray(oc.i32, ())

    @oc.kernel
    def go(arr: oc.types.NDArray, out: oc.types.NDArray, scratch: oc.types.NDArray, n: oc.types.NDArray):
        al.reduce_max(arr, out, scratch, n[None], oc.i32, 1)

    for count in (100, 7):
        n[None] = count
        go(arr, out, oc.ndarray(oc.u32, 1), n)
        assert out[0] == data[:count].max()


@pytest.mark.no_device
def test_slots_of_scratch():
    for slots in (al.reduce_scratch_slots, al.exclusive_scan_scratch_slots):
        assert [slots(n) for n in (0, 1, 256, 257, 65537, 1 << 20)] == [1, 1, 1, 2, 259, 4112]
        assert [slots(257, k) for k in (1, 2, 3, 4)] == [1, 2, 3, 4]
        with pytest.raises(ValueError, match="log256_max_n is 1 to 4, not 0"):
            slots(10, 0)
    assert al.select_scratch_slots(0) == 1 and al.reduce_by_key_scratch_slots(0) == 1
    assert al.select_scratch_slots(1 << 20) < 1 << 20


def test_slots_of_scratch_in_kernels(arch):
    @oc.kernel
    def slots(n: oc.i32) -> oc.types.vector(4, oc.i32):
        return oc.Vector([
            al.reduce_scratch_slots(n), al.reduce_scratch_slots(n, 3), al.select_scratch_slots(n), al.reduce_by_key_scratch_slots(n),
        ])  # fmt: skip

    for n in (0, 1, 257, 1 << 20):
        expected = [al.reduce_scratch_slots(n), al.reduce_scratch_slots(n, 3), al.select_scratch_slots(n)]
        assert list(slots(n)) == [*expected, al.reduce_by_key_scratch_slots(n)]


def test_what_is_refused(arch):
    x, y, s = oc.field(oc.i32, 4), oc.field(oc.i16, 4), oc.field(oc.u32, 4)

    def refused(body, cause, says):
        with pytest.raises(oc.OctantsCompilationError, match=says) as caught:
            body()
        assert isinstance(caught.value.__cause__, cause)

    @oc.kernel
    def into_itself():
        al.exclusive_scan_add(x, x, s, 4, oc.i32, 1)

    @oc.kernel
    def array_into_itself(a: oc.types.NDArray):
        al.exclusive_scan_max(a, a, s, 4, oc.i32, 1)

    @oc.kernel
    def too_high():
        al.reduce_add(x, x, s, 4, oc.i32, 5)

    @oc.kernel
    def short_type():
        al.reduce_min(y, y, s, 4, oc.i16, 1)

    @oc.kernel
    def long_values():
        al.reduce_by_key_add(x, x, x, x, x, s, 4, oc.f64, 1)

    @oc.kernel
    def in_a_loop():
        for i in range(2):
            al.reduce_add(x, x, s, 4, oc.i32, 1)

    refused(into_itself, ValueError, "an `out` that is not `arr`")
    refused(lambda: array_into_itself(oc.ndarray(oc.i32, 4)), ValueError, "an `out` that is not `arr`")
    refused(too_high, ValueError, "log256_max_n is 1 to 4, not 5")
    refused(short_type, NotImplementedError, "reductions and scans take i32")
    refused(long_values, NotImplementedError, "takes values of i32, u32 and f32, not f64")
    with pytest.raises(oc.OctantsCompilationError, match="top level"):
        in_a_loop()


@pytest.mark.parametrize("name", ["i32", "f32", "u8", "i64"])
def test_parallel_sort(arch, name):
    for n in (1, 2, 3, 255, 256, 257):
        keys, values = oc.field(getattr(oc, name), n), oc.Vector.field(2, oc.i32, n)
        data = np.random.default_rng(n).permutation(n).astype(keys.to_numpy().dtype)
        keys.from_numpy(data)
        pairs = np.stack([np.arange(n), -np.arange(n)], axis=1).astype(np.int32)
        values.from_numpy(pairs)
        with pytest.warns(DeprecationWarning, match="parallel_sort is deprecated"):
            al.parallel_sort(keys, values)
        assert (keys.to_numpy() == np.sort(data)).all(), n
        moved = values.to_numpy()
        assert (data[moved[:, 0]] == np.sort(data)).all() and (moved[:, 0] == -moved[:, 1]).all()
        assert sorted(moved[:, 0]) == list(range(n))
        keys.from_numpy(data)
        with pytest.warns(DeprecationWarning):
            al.parallel_sort(keys)
        assert (keys.to_numpy() == np.sort(data)).all()


def test_prefix_sums(arch):
    for n in (1, 256, 257, 700):
        field = oc.field(oc.i32, n)
        data = numbers("i32", n)
        field.from_numpy(data)
        with pytest.warns(DeprecationWarning, match="PrefixSumExecutor is deprecated"):
            executor = al.PrefixSumExecutor(n)
        executor.run(field)
        assert (field.to_numpy() == np.cumsum(data, dtype=np.int32)).all()
    with pytest.raises(RuntimeError, match="adds up fields of i32, not of f32"):
        executor.run(oc.field(oc.f32, n))
