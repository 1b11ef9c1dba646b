"""Random numbers: uniform, independent between iterations, launches and loops, and fixed by the seed alone.

Statistics are taken at a fixed seed, so that a test passes or fails for good. Limits are about six standard deviations.
"""

import numpy as np
import pytest

import octants as oc

N = 200_000


def start(seed=0, arch=None, **options):
    """A session on the test's device, or on another one."""
    oc.init(arch=arch or oc.cfg.arch, random_seed=seed, log_level="error", **options)


def array(dtype, ndim=1):
    return oc.types.ndarray(dtype=dtype, ndim=ndim)


def draw(dtype, n=N, per_iteration=1):
    @oc.kernel
    def k(out: array(dtype, 2)):
        for i in range(out.shape[0]):
            for j in range(out.shape[1]):
                out[i, j] = oc.random(dtype)

    out = oc.ndarray(dtype, (n // per_iteration, per_iteration))
    k(out)
    return out.to_numpy()


def chi_squared(counts):
    """In standard deviations from its mean, for a uniform expectation."""
    expected = counts.sum() / counts.size
    freedom = counts.size - 1
    return (((counts - expected) ** 2 / expected).sum() - freedom) / np.sqrt(2 * freedom)


@pytest.mark.parametrize("dtype", [oc.f16, oc.f32, oc.f64], ids=str)
@pytest.mark.parametrize("seed", [0, 1, 12345])
def test_reals_are_uniform(dtype, seed):
    start(seed)
    x = draw(dtype).ravel().astype(np.float64)
    assert x.min() >= 0
    assert x.max() < 1
    assert abs(chi_squared(np.bincount((x * 128).astype(int), minlength=128))) < 6
    assert abs(x.mean() - 0.5) < 6 / np.sqrt(12 * N)


@pytest.mark.parametrize("dtype", [oc.i8, oc.u8, oc.i16, oc.u16, oc.i32, oc.u32, oc.i64, oc.u64], ids=str)
def test_integers_use_every_bit(dtype):
    start(3)
    x = draw(dtype).ravel()
    bits = np.unpackbits(x.view(np.uint8).reshape(N, -1), axis=1, bitorder="little")
    # Each bit is set half of the time, and no two bits go together.
    assert np.abs(bits.mean(axis=0) - 0.5).max() < 6 * 0.5 / np.sqrt(N)
    together = np.corrcoef(bits.astype(np.float64), rowvar=False) - np.eye(bits.shape[1])
    assert np.abs(together).max() < 6 / np.sqrt(N)
    assert abs(chi_squared(np.bincount(x.view(np.uint8).reshape(N, -1)[:, -1], minlength=256))) < 6


@pytest.mark.no_device
def test_booleans_are_refused():
    @oc.kernel
    def k() -> oc.u1:
        return oc.random(oc.u1)

    with pytest.raises(oc.OctantsCompilationError):
        k()


@pytest.mark.parametrize("per_iteration", [1, 2, 8])
def test_neighbours_are_independent(per_iteration):
    start(4)
    x = draw(oc.f64, per_iteration=per_iteration)
    flat = x.ravel()
    for lag in (1, 2, 3, 7, 8, 16, 32, 64, 1000):
        assert abs(np.corrcoef(flat[:-lag], flat[lag:])[0, 1]) < 6 / np.sqrt(N)
    # Pairs fill the square evenly, which no correlation would show.
    pairs = (flat[0::2] * 32).astype(int) * 32 + (flat[1::2] * 32).astype(int)
    assert abs(chi_squared(np.bincount(pairs, minlength=1024))) < 6
    # Triples fill the cube.
    whole = flat[: N // 3 * 3].reshape(-1, 3)
    cells = ((whole * 8).astype(int) * [64, 8, 1]).sum(axis=1)
    assert abs(chi_squared(np.bincount(cells, minlength=512))) < 6


def test_runs_have_the_expected_lengths():
    start(5)
    above = draw(oc.f32).ravel() >= 0.5
    changes = np.flatnonzero(above[1:] != above[:-1]).size
    assert abs(changes - N / 2) < 6 * np.sqrt(N) / 2
    assert 10 < np.diff(np.flatnonzero(above[1:] != above[:-1])).max() < 40


def test_no_number_comes_twice_in_64_bits():
    start(6)
    assert np.unique(draw(oc.u64)).size == N


def test_reals_of_64_bits_have_more_than_32_bits():
    start(7)
    x = draw(oc.f64).ravel()
    assert np.unique(x).size == N
    below = np.modf(x * 2.0**32)[0]
    assert abs(chi_squared(np.bincount((below * 64).astype(int), minlength=64))) < 6
    # All are multiples of 2**-52, and half of them are odd ones.
    steps = x * 2.0**52
    assert np.array_equal(steps, np.floor(steps))
    assert abs((steps % 2).mean() - 0.5) < 6 * 0.5 / np.sqrt(N)


def test_launches_differ():
    start(8)
    a, b = draw(oc.f64).ravel(), draw(oc.f64).ravel()
    assert not np.any(a == b)
    assert abs(np.corrcoef(a, b)[0, 1]) < 6 / np.sqrt(N)


def test_one_kernel_launched_again_goes_on():
    start(9)

    @oc.kernel
    def k(out: array(oc.u64)):
        for i in out:
            out[i] = oc.random(oc.u64)

    seen = []
    for _ in range(50):
        out = oc.ndarray(oc.u64, 1000)
        k(out)
        seen.append(out.to_numpy())
    assert np.unique(np.concatenate(seen)).size == 50 * 1000


def test_loops_of_one_kernel_have_streams_of_their_own():
    start(10)

    @oc.kernel
    def k(a: array(oc.f64), b: array(oc.f64), c: array(oc.f64)):
        for i in a:
            a[i] = oc.random(oc.f64)
        for i in b:
            b[i] = oc.random(oc.f64)
        c[0] = oc.random(oc.f64)
        c[1] = oc.random(oc.f64)

    a, b, c = oc.ndarray(oc.f64, N), oc.ndarray(oc.f64, N), oc.ndarray(oc.f64, 2)
    k(a, b, c)
    x, y, z = a.to_numpy(), b.to_numpy(), c.to_numpy()
    assert np.unique(np.concatenate([x, y, z])).size == 2 * N + 2
    assert abs(np.corrcoef(x, y)[0, 1]) < 6 / np.sqrt(N)


def test_seeds_are_independent():
    draws = []
    for seed in (0, 1, 2, 3, 2**31 - 1):
        start(seed)
        draws.append(draw(oc.f64).ravel())
    together = np.corrcoef(np.array(draws)) - np.eye(len(draws))
    assert np.abs(together).max() < 6 / np.sqrt(N)


def program():
    """Uneven work: iterations draw different counts, in two loops, some in a function."""

    @oc.func
    def walk(steps):
        x = oc.f64(0.0)
        for _ in range(steps):
            if oc.random() < 0.5:
                x += oc.random(oc.f64)
            else:
                x -= oc.randn(oc.f64)
        return x

    @oc.kernel
    def k(out: array(oc.f64)):
        for i in out:
            out[i] = walk(i % 17)
        for i in out:
            out[i] += oc.random(oc.i32) % 100

    out = oc.ndarray(oc.f64, 20_000)
    k(out)
    k(out)
    return out.to_numpy()


@pytest.mark.host_devices("threads of the host")
def test_the_thread_count_does_not_matter():
    results = []
    for threads in (1, 2, 5):
        start(11, cpu_max_num_threads=threads)
        results.append(program())
    assert np.array_equal(results[0], results[1])
    assert np.array_equal(results[0], results[2])


def test_the_same_seed_gives_the_same_numbers_again_and_another_does_not():
    start(12)
    first = program()
    start(12)
    assert np.array_equal(first, program())
    start(13)
    assert not np.array_equal(first, program())


@pytest.mark.parametrize("dtype", [oc.u8, oc.u32, oc.i64, oc.f16, oc.f32, oc.f64], ids=str)
def test_every_device_draws_the_same_numbers(dtype):
    start(14)
    drawn = draw(dtype, 600, 3)
    start(14, oc.reference)
    assert np.array_equal(drawn, draw(dtype, 600, 3))


@pytest.mark.parametrize("dtype", [oc.f32, oc.f64], ids=str)
def test_randn_is_normal(dtype):
    start(15)

    @oc.kernel
    def k(out: array(dtype)):
        for i in out:
            out[i] = oc.randn(dtype)

    out = oc.ndarray(dtype, N)
    k(out)
    x = out.to_numpy().astype(np.float64)
    # Moments of the standard normal, with the standard deviation of each estimate.
    for power, moment, deviation in [(1, 0, 1), (2, 1, 2**0.5), (3, 0, 15**0.5), (4, 3, 96**0.5), (6, 15, 10170**0.5)]:
        assert abs((x**power).mean() - moment) < 6 * deviation / np.sqrt(N), power
    # The share beyond 0.5, 1, 2 and 3.
    for limit, share in [(0.5, 0.6170751), (1, 0.3173105), (2, 0.0455003), (3, 0.0026998)]:
        assert abs((np.abs(x) > limit).mean() - share) < 6 * np.sqrt(share / N)
    assert abs(np.corrcoef(x[:-1], x[1:])[0, 1]) < 6 / np.sqrt(N)


def test_randn_defaults_to_the_default_type():
    start(16, default_fp=oc.f64)

    @oc.kernel
    def k(out: array(oc.f64)):
        for i in out:
            out[i] = oc.randn()

    out = oc.ndarray(oc.f64, 1000)
    k(out)
    x = out.to_numpy()
    assert not np.array_equal(x, x.astype(np.float32))
