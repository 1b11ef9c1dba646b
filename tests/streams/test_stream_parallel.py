"""``with oc.stream_parallel():`` blocks, on every device: what belongs to a branch stays in it and in order, and branches are joined.

What a branch's later statement reads is made slowly by the one before it, so that a missing order shows.
"""

import threading

import numpy as np
import pytest
from devices import INTERPRETED
from stream_kernels import IntArray, slowly

import octants as oc

pytestmark = pytest.mark.host_access


@oc.func
def slow(x, steps):
    """Many steps from ``x``; :func:`slowly` is the same for numpy. How long a ``while`` takes is not known before, so that branches with one
    have streams of their own on every device that has streams."""
    v, done = x, 0
    while done < steps:
        v = v * 1664525 + 1013904223
        done += 1
    return v


@pytest.fixture
def sizes(arch):
    """How many elements, and how many steps make one slow."""
    return (12, 20) if arch in INTERPRETED else (1000, 3000)


def arrays(count, n):
    return [oc.ndarray(oc.i32, n) for _ in range(count)]


# ---- what belongs to a branch ---------------------------------------------------------------------------------------------


def test_loops_of_a_block_are_in_order(arch, sizes):
    n, steps = sizes

    @oc.kernel
    def k(a: IntArray, b: IntArray, c: IntArray, d: IntArray, steps: oc.i32):
        with oc.stream_parallel():
            for i in range(a.shape[0]):
                a[i] = slow(i, steps)
            for i in range(a.shape[0]):
                b[i] = a[a.shape[0] - 1 - i] + 1
        with oc.stream_parallel():
            for i in range(a.shape[0]):
                c[i] = slow(i + 7, steps)
            for i in range(a.shape[0]):
                d[i] = c[a.shape[0] - 1 - i] + 2

    a, b, c, d = arrays(4, n)
    for _ in range(5):
        k(a, b, c, d, steps)
        assert (b.to_numpy() == slowly(np.arange(n), steps)[::-1] + 1).all()
        assert (d.to_numpy() == slowly(np.arange(n) + 7, steps)[::-1] + 2).all()


def test_bare_statements_before_between_and_after_loops(arch, sizes):
    n, steps = sizes
    counter = oc.field(oc.i32, shape=())

    @oc.kernel
    def k(a: IntArray, b: IntArray, c: IntArray, steps: oc.i32):
        with oc.stream_parallel():
            counter[None] = 3
            a[0] = slow(5, 100 * steps)
            for i in range(1, a.shape[0]):
                a[i] = a[0] + counter[None]
            b[0] = a[1] + 1
            for i in range(1, a.shape[0]):
                b[i] = b[0] + a[i]
            counter[None] += b[2]
        with oc.stream_parallel():
            for i in c:
                c[i] = slow(i, steps)

    a, b, c = arrays(3, n)
    k(a, b, c, steps)
    with np.errstate(over="ignore"):
        first = slowly(5, 100 * steps)
        rest = first + np.int32(3)
        b0 = rest + np.int32(1)
        assert a.to_numpy().tolist() == [first] + (n - 1) * [rest]
        assert b.to_numpy().tolist() == [b0] + (n - 1) * [b0 + rest]
        assert counter[None] == np.int32(3) + (b0 + rest)
    assert (c.to_numpy() == slowly(np.arange(n), steps)).all()


def test_loops_wrapped_in_runtime_if_and_while(arch, sizes):
    n, steps = sizes

    @oc.kernel
    def k(a: IntArray, b: IntArray, c: IntArray, d: IntArray, flag: oc.i32, steps: oc.i32):
        with oc.stream_parallel():
            if flag > 0:
                for i in range(a.shape[0]):
                    a[i] = slow(i, steps)
            for i in range(a.shape[0]):
                b[i] = a[i] + 1
        with oc.stream_parallel():
            rounds = 0
            while rounds < 3:
                for i in range(c.shape[0]):
                    c[i] = slow(c[i], steps)
                rounds += 1
            for i in range(c.shape[0]):
                d[i] = c[c.shape[0] - 1 - i] + rounds

    a, b, c, d = arrays(4, n)
    k(a, b, c, d, 1, steps)
    assert (b.to_numpy() == slowly(np.arange(n), steps) + 1).all()
    assert (d.to_numpy() == slowly(np.zeros(n), 3 * steps) + 3).all()
    a.fill(4)
    k(a, b, c, d, 0, steps)
    assert (b.to_numpy() == 5).all()


def test_serialised_loops_and_loops_with_break(arch, sizes):
    n, steps = sizes

    @oc.kernel
    def k(a: IntArray, b: IntArray, c: IntArray, d: IntArray, steps: oc.i32):
        with oc.stream_parallel():
            oc.loop_config(serialize=True)
            for i in range(1, a.shape[0]):
                a[i] = slow(a[i - 1] + 1, steps // 10)
            for i in range(a.shape[0]):
                b[i] = a[i] + 1
        with oc.stream_parallel():
            oc.loop_config(serialize=True)
            for i in range(c.shape[0]):
                if i == 7:
                    break
                c[i] = slow(i, 10 * steps)
            for i in range(c.shape[0]):
                d[i] = c[i] + 1

    a, b, c, d = arrays(4, n)
    k(a, b, c, d, steps)
    expected = [np.int32(0)]
    for _ in range(n - 1):
        expected.append(slowly(expected[-1] + np.int32(1), steps // 10))
    assert (b.to_numpy() == np.array(expected) + np.int32(1)).all()
    broken = np.where(np.arange(n) < 7, slowly(np.arange(n), 10 * steps), 0)
    assert (d.to_numpy() == broken + 1).all()


def test_settings_of_a_loop_end_with_its_block(arch):
    """A ``loop_config`` without a loop says nothing about a loop of the next block, which may not break."""

    @oc.kernel
    def k(a: IntArray):
        with oc.stream_parallel():
            a[0] = 1
            oc.loop_config(serialize=True)
        with oc.stream_parallel():
            for i in range(1, a.shape[0]):
                if i == 3:
                    break
                a[i] = 1

    with pytest.raises(oc.OctantsSyntaxError, match="OC0504"):
        k(oc.ndarray(oc.i32, 4))


def test_loops_over_arrays_fields_and_grouped_indices(arch, sizes):
    n, steps = sizes
    f, g = oc.field(oc.i32, shape=n), oc.Vector.field(2, oc.i32, shape=(4, n // 4))

    @oc.kernel
    def k(a: IntArray, b: IntArray, c: IntArray, e: IntArray, steps: oc.i32):
        with oc.stream_parallel():
            for i in a:
                a[i] = slow(i, steps)
            for i in b:
                b[i] = a[a.shape[0] - 1 - i]
        with oc.stream_parallel():
            for i in f:
                f[i] = slow(i + 1, steps)
            for i in c:
                c[i] = f[c.shape[0] - 1 - i]
        with oc.stream_parallel():
            for I in oc.grouped(g):
                g[I] = oc.Vector([slow(I[0], steps), I[1]])
            for i, j in oc.ndrange(4, e.shape[0] // 4):
                e[i * (e.shape[0] // 4) + j] = g[i, j][0] + g[i, j][1]

    a, b, c, e = arrays(4, n)
    k(a, b, c, e, steps)
    assert (b.to_numpy() == slowly(np.arange(n), steps)[::-1]).all()
    assert (c.to_numpy() == slowly(np.arange(n) + 1, steps)[::-1]).all()
    expected = slowly(np.arange(4), steps)[:, None] + np.arange(n // 4, dtype=np.int32)
    assert (e.to_numpy() == expected.ravel()).all()


def test_arrays_of_numpy(arch, sizes):
    n, steps = sizes

    @oc.kernel
    def k(a: IntArray, b: IntArray, c: IntArray, steps: oc.i32):
        with oc.stream_parallel():
            for i in a:
                a[i] = slow(i, steps)
            for i in b:
                b[i] += a[i]
        with oc.stream_parallel():
            for i in c:
                c[i] = 2 * c[i] + slow(i, steps)

    a, b, c = np.zeros(n, np.int32), np.ones(n, np.int32), np.arange(n, dtype=np.int32)
    k(a, b, c, steps)
    assert (b == slowly(np.arange(n), steps) + 1).all()
    assert (c == slowly(np.arange(n), steps) + 2 * np.arange(n, dtype=np.int32)).all()


def test_funcs_with_loops_and_fill(arch, sizes):
    n, steps = sizes

    @oc.func
    def produce(x, steps):
        x[0] = 9
        for i in range(1, x.shape[0]):
            x[i] = slow(x[0] + i, steps)

    @oc.func
    def consume(x, y):
        for i in range(x.shape[0]):
            y[i] = x[x.shape[0] - 1 - i]

    @oc.kernel
    def k(a: IntArray, b: IntArray, c: IntArray, d: IntArray, steps: oc.i32):
        with oc.stream_parallel():
            produce(a, steps)
            consume(a, b)
        with oc.stream_parallel():
            c.fill(steps)
            consume(c, d)
            d[0] += 1

    a, b, c, d = arrays(4, n)
    k(a, b, c, d, steps)
    expected = slowly(np.arange(n) + 9, steps)
    expected[0] = 9
    assert (b.to_numpy() == expected[::-1]).all()
    assert d.to_numpy().tolist() == [steps + 1] + (n - 1) * [steps]


def test_a_real_function_in_a_branch(arch, sizes):
    n, steps = sizes

    @oc.real_func
    def climb(x: oc.i32, steps: oc.i32) -> oc.i32:
        v = x
        for _ in range(steps):
            v = v * 1664525 + 1013904223
        return v

    @oc.kernel
    def k(a: IntArray, b: IntArray, c: IntArray, steps: oc.i32):
        with oc.stream_parallel():
            for i in a:
                a[i] = climb(i, steps)
            for i in b:
                b[i] = a[i] + 1
        with oc.stream_parallel():
            for i in c:
                c[i] = climb(i + 1, steps)

    a, b, c = arrays(3, n)
    k(a, b, c, steps)
    assert (b.to_numpy() == slowly(np.arange(n), steps) + 1).all()
    assert (c.to_numpy() == slowly(np.arange(n) + 1, steps)).all()


def test_values_computed_before_a_loop_are_each_branchs_own(arch, sizes):
    """Both branches keep values for their loops, in memory of the launch: each reads its own."""
    n, steps = sizes

    @oc.kernel
    def k(a: IntArray, b: IntArray, steps: oc.i32, base: oc.i32):
        with oc.stream_parallel():
            v = slow(a[0], 50 * steps)
            w = v + base
            for i in range(a.shape[0]):
                a[i] = v + w + i
        with oc.stream_parallel():
            v = slow(b[0], 50 * steps)
            w = v - base
            for i in range(b.shape[0]):
                b[i] = v + w + i

    a, b = arrays(2, n)
    a[0], b[0] = 11, 22
    k(a, b, steps, 5)
    with np.errstate(over="ignore"):
        one, two = slowly(11, 50 * steps), slowly(22, 50 * steps)
        assert (a.to_numpy() == (one + (one + np.int32(5))) + np.arange(n, dtype=np.int32)).all()
        assert (b.to_numpy() == (two + (two - np.int32(5))) + np.arange(n, dtype=np.int32)).all()


def test_bounds_computed_on_the_device(arch, sizes):
    n, steps = sizes

    @oc.kernel
    def k(a: IntArray, b: IntArray, steps: oc.i32):
        with oc.stream_parallel():
            end = (slow(a[0], 50 * steps) & 7) + 2
            for i in range(end):
                a[i] = -1
            for i in range(end, end + 2):
                a[i] = -2
        with oc.stream_parallel():
            b[0] = (slow(b[1], 50 * steps) & 7) + 2
            for i in range(b[0]):
                b[1 + i] = -3

    a, b = arrays(2, n)
    a[0], b[1] = 3, 4
    k(a, b, steps)
    end = (int(slowly(3, 50 * steps)) & 7) + 2
    assert a.to_numpy()[: end + 3].tolist() == end * [-1] + [-2, -2] + [a.to_numpy()[end + 2]]
    other = (int(slowly(4, 50 * steps)) & 7) + 2
    assert b.to_numpy()[: other + 1].tolist() == [other] + other * [-3]
    assert (b.to_numpy()[other + 1 :] == 0).all()


def test_sums_of_branches_stay_apart(arch, sizes):
    n, steps = sizes

    @oc.kernel
    def k(a: IntArray, total: IntArray, steps: oc.i32):
        with oc.stream_parallel():
            s = 0
            for i in range(a.shape[0]):
                s += slow(i, steps) & 15
            total[0] = s
        with oc.stream_parallel():
            s = 100
            for i in range(a.shape[0]):
                s += slow(i + 1, steps) & 15
            total[1] = s

    total = oc.ndarray(oc.i32, 2)
    k(oc.ndarray(oc.i32, n), total, steps)
    one = int((slowly(np.arange(n), steps) & 15).sum())
    two = 100 + int((slowly(np.arange(n) + 1, steps) & 15).sum())
    assert total.to_numpy().tolist() == [one, two]


def test_branches_may_add_to_one_place(arch, sizes):
    n, steps = sizes
    total = oc.field(oc.i32, shape=())

    @oc.kernel
    def k(a: IntArray, steps: oc.i32):
        for b in oc.static(range(4)):
            with oc.stream_parallel():
                for i in range(a.shape[0]):
                    a[i] += b + (slow(i, steps) & 1)
                    total[None] += 1

    a = oc.ndarray(oc.i32, n)
    k(a, steps)
    assert total[None] == 4 * n
    assert (a.to_numpy() == 6 + 4 * (slowly(np.arange(n), steps) & 1)).all()


def test_branches_may_scatter_sums_into_one_array(arch, sizes):
    """Neither branch may keep private copies of what the other adds to, too."""
    n, _ = sizes
    n *= 20 if arch not in INTERPRETED else 1

    @oc.kernel
    def k(keys: IntArray, bins: IntArray):
        for b in oc.static(range(3)):
            with oc.stream_parallel():
                for i in keys:
                    bins[keys[i]] += b + 1

    keys = np.random.default_rng(3).integers(0, 10, n).astype(np.int32)
    bins = np.zeros(10, np.int32)
    for _ in range(10):
        k(keys, bins)
    assert (bins == 60 * np.bincount(keys, minlength=10)).all()


# ---- random numbers, prints, assertions -----------------------------------------------------------------------------------


def drawn(arch, blocks, seed=5):
    """Numbers drawn by two loops, each in a block of its own or both in one."""
    oc.init(arch=getattr(oc, arch), random_seed=seed, log_level="error")

    @oc.kernel
    def apart(x: oc.types.ndarray(dtype=oc.f32, ndim=1), y: oc.types.ndarray(dtype=oc.f32, ndim=1)):
        with oc.stream_parallel():
            x[0] = oc.random()
            x[1] = oc.random()
            for i in range(2, 200):
                x[i] = oc.random()
        with oc.stream_parallel():
            y[0] = oc.random()
            y[1] = oc.random()
            for i in range(2, 200):
                y[i] = oc.random()

    @oc.kernel
    def other(x: oc.types.ndarray(dtype=oc.f32, ndim=1), y: oc.types.ndarray(dtype=oc.f32, ndim=1)):
        with oc.stream_parallel():
            for i in range(2, 200):
                x[i] = oc.random()
            for i in range(2, 200):
                y[i] = oc.random()

    x, y = oc.ndarray(oc.f32, 200), oc.ndarray(oc.f32, 200)
    kernel = apart if blocks == 2 else other
    kernel(x, y)
    first = x.to_numpy(), y.to_numpy()
    kernel(x, y)
    return *first, x.to_numpy(), y.to_numpy()


def test_random_numbers_of_branches_are_independent(arch):
    numbers = np.concatenate(drawn(arch, 2))
    assert len(set(numbers.tolist())) > 790
    for first, second in zip(drawn(arch, 2), drawn(arch, 2), strict=True):
        assert (first == second).all()
    assert (drawn(arch, 2)[0] != drawn(arch, 2, seed=6)[0]).any()


def test_random_numbers_are_the_same_on_every_device(arch):
    """The reference device runs branches in order, others may overlap them."""
    ours = drawn(arch, 2)
    for mine, theirs in zip(ours, drawn("reference", 2), strict=True):
        assert (mine == theirs).all()


def test_prints_of_branches_are_whole_and_complete(arch, capfd):
    @oc.kernel
    def k():
        for b in oc.static(range(3)):
            with oc.stream_parallel():
                print("branch", b, "begins")
                for i in range(50):
                    print("branch", b, "prints", i)

    k()
    oc.sync()
    lines = capfd.readouterr().out.splitlines()
    expected = [f"branch {b} begins" for b in range(3)] + [
        f"branch {b} prints {i}" for b in range(3) for i in range(50)
    ]
    assert sorted(lines) == sorted(expected)


def test_a_failed_assertion_in_a_branch_is_raised_and_the_rest_joined(arch):
    oc.init(arch=getattr(oc, arch), debug=True, log_level="error")

    @oc.kernel
    def k(a: IntArray, b: IntArray, bad: oc.i32):
        with oc.stream_parallel():
            for i in a:
                a[i] = slow(i, 10)
            for i in a:
                assert i != bad, f"element {i} is bad"
            for i in a:
                a[i] = 7
        with oc.stream_parallel():
            for i in b:
                b[i] = slow(i, 10)

    a, b = arrays(2, 20)
    for attempt in range(3):
        with pytest.raises(oc.OctantsAssertionError, match="element 4 is bad"):
            k(a, b, 4)
        assert (a.to_numpy() != 7).all(), "nothing of the branch runs after the failure"
        b.fill(-1)
        k(a, b, -1)
        assert (a.to_numpy() == 7).all() and (b.to_numpy() == slowly(np.arange(20), 10)).all()
        a.fill(attempt)


def long_walk(arch):
    """A func that takes long enough for branches to overlap: short ones run in order, where the second never begins."""
    steps = 20 if arch in INTERPRETED else 50_000

    @oc.func
    def walk(x):
        v = x
        oc.loop_config(serialize=True)
        for _ in range(steps):
            v = (v * 5 + 3) % 1009
        return v

    return walk


def test_failures_of_several_branches(arch):
    """The first one in the order of the program is raised. Others are told where they happened, too; in order they never begin."""
    oc.init(arch=getattr(oc, arch), debug=True, log_level="error")
    walk = long_walk(arch)

    @oc.kernel
    def k(a: IntArray, b: IntArray):
        with oc.stream_parallel():
            for i in a:
                assert walk(a[i]) == -1, f"the first fails at {i}"
        with oc.stream_parallel():
            for i in b:
                assert walk(b[i]) == -1, f"the second fails at {i}"

    a, b = arrays(2, 3)
    for _ in range(3):
        with pytest.raises(oc.OctantsAssertionError, match="the first fails at") as caught:
            k(a, b)
        if arch not in INTERPRETED:
            assert "another branch failed, too: the second fails at" in str(caught.value)


def test_a_failure_of_another_branch_alone(arch):
    oc.init(arch=getattr(oc, arch), debug=True, log_level="error")
    walk = long_walk(arch)

    @oc.kernel
    def k(a: IntArray, b: IntArray):
        with oc.stream_parallel():
            for i in a:
                a[i] = walk(a[i])
        with oc.stream_parallel():
            for i in b:
                assert walk(b[i]) == -1, f"the second fails at {i}"

    with pytest.raises(oc.OctantsAssertionError, match="the second fails at"):
        k(*arrays(2, 3))


def test_indices_are_checked_in_branches(arch):
    oc.init(arch=getattr(oc, arch), debug=True, log_level="error")

    @oc.kernel
    def k(a: IntArray, at: oc.i32):
        with oc.stream_parallel():
            a[0] = 1
        with oc.stream_parallel():
            a[at] = 2

    a = oc.ndarray(oc.i32, 4)
    with pytest.raises(oc.OctantsAssertionError):
        k(a, 9)
    k(a, 3)
    assert a.to_numpy().tolist() == [1, 0, 0, 2]


# ---- grouping, repetition -------------------------------------------------------------------------------------------------


def test_kernels_that_differ_in_grouping_alone_have_different_code(arch):
    @oc.kernel
    def none(a: IntArray, b: IntArray):
        for i in a:
            a[i] = i
        for i in b:
            b[i] = a[i] + 1

    @oc.kernel
    def one(a: IntArray, b: IntArray):
        with oc.stream_parallel():
            for i in a:
                a[i] = i
            for i in b:
                b[i] = a[i] + 1

    @oc.kernel
    def two(a: IntArray, b: IntArray):
        with oc.stream_parallel():
            for i in a:
                a[i] = i
        with oc.stream_parallel():
            for i in b:
                b[i] = i + 1

    texts = []
    for kernel in (none, one, two):
        a, b = arrays(2, 8)
        kernel(a, b)
        assert b.to_numpy().tolist() == list(range(1, 9))
        texts.append(kernel.dump("ir"))
    assert [text.count("fork {") + text.count("} and {") for text in texts] == [0, 1, 2]


def test_the_same_fork_many_times(arch):
    times = 60 if arch in INTERPRETED else 10_000

    @oc.kernel
    def k(a: IntArray, b: IntArray):
        with oc.stream_parallel():
            for i in a:
                a[i] += 1
            a[0] += a[1]
        with oc.stream_parallel():
            for i in b:
                b[i] += 2

    a, b = arrays(2, 16)
    for _ in range(times):
        k(a, b)
    assert (a.to_numpy()[1:] == times).all()
    assert (b.to_numpy() == 2 * times).all()
    assert a[0] == times + times * (times + 1) // 2


def test_the_same_fork_of_long_loops_many_times(arch):
    """Loops that several threads take part in, in branches that have streams of their own."""
    times, n = (20, 12) if arch in INTERPRETED else (10_000, 20_000)

    @oc.kernel
    def k(a: IntArray, b: IntArray, c: IntArray):
        with oc.stream_parallel():
            for i in a:
                a[i] = slow(a[i], 2)
            for i in b:
                b[i] += a[a.shape[0] - 1 - i]
        with oc.stream_parallel():
            for i in c:
                c[i] = slow(c[i] + 1, 3)

    a, b, c = arrays(3, n)
    for _ in range(times):
        k(a, b, c)
    x, y, z = (np.zeros(n, np.uint32) for _ in range(3))
    factor, summand = np.uint32(1664525), np.uint32(1013904223)
    with np.errstate(over="ignore"):
        for _ in range(times):
            for _ in range(2):
                x *= factor
                x += summand
            y += x[::-1]
            z += np.uint32(1)
            for _ in range(3):
                z *= factor
                z += summand
    for found, expected in ((a, x), (b, y), (c, z)):
        assert (found.to_numpy().view(np.uint32) == expected).all()


# ---- with explicit streams ------------------------------------------------------------------------------------------------


def test_branches_are_ordered_with_the_stream_that_they_are_launched_on(arch, sizes):
    """Every branch comes after earlier work of the launching stream, and later work after every branch."""
    n, steps = sizes

    @oc.kernel
    def produce(a: IntArray, c: oc.i32, steps: oc.i32):
        for i in a:
            a[i] = slow(i + c, steps)

    @oc.kernel
    def consume(a: IntArray, b: IntArray, c: IntArray, steps: oc.i32):
        with oc.stream_parallel():
            for i in b:
                b[i] = slow(a[a.shape[0] - 1 - i], steps)
        with oc.stream_parallel():
            for i in c:
                c[i] = slow(a[a.shape[0] - 1 - i] + 1, steps)

    @oc.kernel
    def finish(a: IntArray, b: IntArray, c: IntArray):
        for i in a:
            a[i] = b[i] ^ c[i]

    for stream in (None, oc.create_stream()):
        a, b, c = arrays(3, n)
        for offset in range(10):
            produce(a, offset, steps, qd_stream=stream)
            consume(a, b, c, steps, qd_stream=stream)
            finish(a, b, c, qd_stream=stream)
            made = slowly(np.arange(n) + offset, steps)[::-1]
            if offset % 3 == 2:
                assert (a.to_numpy() == slowly(made, steps) ^ slowly(made + np.int32(1), steps)).all()


def test_random_numbers_on_two_streams(arch):
    """Each launch has its own numbers, whichever stream it is on: those of the same launches in order."""

    def numbers(make):
        oc.init(arch=getattr(oc, make), random_seed=9, log_level="error")

        @oc.kernel
        def draw(x: oc.types.ndarray(dtype=oc.f32, ndim=1)):
            for i in x:
                x[i] = oc.random()

        arrays = [oc.ndarray(oc.f32, 300) for _ in range(4)]
        with oc.create_stream() as one, oc.create_stream() as two:
            for number, array in enumerate(arrays):
                draw(array, qd_stream=(one, two)[number % 2])
        return [array.to_numpy() for array in arrays]

    found = numbers(arch)
    assert len(set(np.concatenate(found).tolist())) > 1190
    for mine, theirs in zip(found, numbers("reference"), strict=True):
        assert (mine == theirs).all()


def test_forks_from_several_threads(arch, sizes):
    n, steps = sizes

    @oc.kernel
    def k(a: IntArray, b: IntArray, c: oc.i32, steps: oc.i32):
        with oc.stream_parallel():
            v = a[0] * 0 + c
            for i in a:
                a[i] = slow(i + v, steps)
            for i in a:
                a[i] += v
        with oc.stream_parallel():
            for i in b:
                b[i] = slow(i - c, steps)

    k(*arrays(2, n), 0, 1)
    wrong = []

    def work(number):
        with oc.create_stream() as stream:
            for c in range(10 * number, 10 * number + 5):
                a, b = arrays(2, n)
                k(a, b, c, steps, qd_stream=stream if c % 2 else None)
                if not (a.to_numpy() == slowly(np.arange(n) + c, steps) + np.int32(c)).all():
                    wrong.append((number, c, "a"))
                if not (b.to_numpy() == slowly(np.arange(n) - c, steps)).all():
                    wrong.append((number, c, "b"))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
