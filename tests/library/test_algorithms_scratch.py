"""The scratch of ``oc.algorithms``: no entry behind those that ``*_scratch_slots`` counts is used, and a scratch that is too short is refused."""

import numpy as np
import pytest

import octants as oc
from octants import algorithms as al

A, T = oc.types.ndarray(), oc.template()
CANARY = 12345
SIZES = [0, 1, 255, 256, 257, 300, 65535, 65536, 65537, 70000]


@oc.kernel
def sorted_keys(x: A, other: A, s: A, count: A, levels: T):
    al.sort(x, other, x, other, s, count, key_dtype=oc.i32, has_values=False, end_bit=16, log256_max_n=levels)


@oc.kernel
def summed(x: A, out: A, s: A, n: oc.i32, levels: T):
    al.reduce_add(x, out, s, n, dtype=oc.i32, log256_max_n=levels)


@oc.kernel
def scanned(x: A, out: A, s: A, n: oc.i32, levels: T):
    al.exclusive_scan_add(x, out, s, n, dtype=oc.i32, log256_max_n=levels)


@oc.kernel
def selected(x: A, flags: A, out: A, count: A, s: A, n: oc.i32, levels: T):
    al.select(x, flags, out, count, s, n, log256_max_n=levels)


@oc.kernel
def summed_by_key(x: A, flags: A, out: A, sums: A, count: A, s: A, n: oc.i32, levels: T):
    al.reduce_by_key_add(x, flags, out, sums, count, s, n, value_dtype=oc.i32, log256_max_n=levels)


def array(values):
    made = oc.ndarray(oc.i32, max(1, len(values)))
    if len(values):
        made.from_numpy(values)
    return made


def number(n):
    made = oc.ndarray(oc.i32, ())
    made[None] = n
    return made


def run(name, x, n, slots, levels):
    """What an algorithm makes of numbers with a scratch of so many entries, and what then stands behind it."""
    memory = np.full(slots + 600, CANARY, np.uint32)
    scratch, values = memory[:slots], array(x)
    if name == "sort":
        sorted_keys(values, array(x), scratch, number(n), levels)
        found = values.to_numpy()[:n]
    elif name == "reduce":
        one = array(x[:1])
        summed(values, one, scratch, n, levels)
        found = one.to_numpy()[0]
    elif name == "exclusive_scan":
        out = array(x)
        scanned(values, out, scratch, n, levels)
        found = out.to_numpy()[:n]
    else:
        flags, out, sums, count = array(x % 2), array(x), array(x), oc.ndarray(oc.i32, 1)
        if name == "select":
            selected(values, flags, out, count, scratch, n, levels)
            found = out.to_numpy()[: count[0]]
        else:
            summed_by_key(flags, values, out, sums, count, scratch, n, levels)
            found = sums.to_numpy()[: count[0]]
    return found, memory[slots:]


def expected(name, x):
    if name == "sort":
        return np.sort(x)
    if name == "reduce":
        return x.sum(dtype=np.int32)
    if name == "exclusive_scan":
        return np.cumsum(x, dtype=np.int32) - x
    if name == "select":
        return x[x % 2 == 1]
    starts = np.flatnonzero(np.diff(x % 2, prepend=-1))
    return np.add.reduceat(x, starts) if len(x) else x


NAMES = ["sort", "reduce", "exclusive_scan", "select", "reduce_by_key"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("levels", [1, 2, 3, 4])
def test_nothing_behind_the_scratch_is_written(arch, name, levels):
    slots_of = getattr(al, f"{name}_scratch_slots")
    random = np.random.default_rng(levels)
    for n in SIZES:
        if n > 256**levels or (arch == "reference" and n > 300):
            continue
        x = random.integers(0, 1000, n).astype(np.int32)
        counts = {slots_of(n)} if name in ("select", "reduce_by_key") else {slots_of(n), slots_of(n, levels)}
        for slots in counts:
            found, behind = run(name, x, n, slots, levels)
            assert (behind == CANARY).all(), (n, slots)
            if n or name == "reduce":
                np.testing.assert_array_equal(found, expected(name, x), err_msg=f"{n} elements, {slots} slots")


@pytest.mark.parametrize("name", NAMES)
def test_a_scratch_that_is_too_short_is_refused_and_not_overrun(arch, name):
    x, n = np.arange(300, dtype=np.int32), 300
    if arch == "cuda":
        _, behind = run(name, x, n, 1, 2)
        assert (behind == CANARY).all()
        oc.init(arch=oc.cuda, debug=True, log_level="error")
    with pytest.raises(Exception, match=rf"scratch of `{name}\w*` has 1 entries, and 300 elements need \d+"):
        run(name, x, n, 1, 2)


@pytest.mark.parametrize("name", ["sort", "select", "reduce_by_key"])
def test_more_elements_than_levels_are_refused(arch, name):
    if arch == "cuda":
        oc.init(arch=oc.cuda, debug=True, log_level="error")
    with pytest.raises(Exception, match="log256_max_n=1 takes up to 256 elements, and there are 300"):
        run(name, np.arange(300, dtype=np.int32), 300, 2000, 1)


@oc.kernel
def slots_in_kernel(n: oc.i32) -> oc.i32:
    return al.sort_scratch_slots(n)


def test_kernels_count_slots_of_sorting(arch):
    assert [slots_in_kernel(n) for n in (0, 1, 257, 70000)] == [al.sort_scratch_slots(n) for n in (0, 1, 257, 70000)]
