"""print, text and random numbers of kernels, on every device."""

import numpy as np
import pytest

import octants as oc

pytestmark = [pytest.mark.host_access, pytest.mark.sanitizer_core]


def test_print_formats(arch, capfd):
    S = oc.types.struct(a=oc.i32, v=oc.types.vector(2, oc.f32))

    @oc.kernel
    def k(x: oc.f32, y: oc.i32, z: oc.f64, u: oc.u8):
        v = oc.Vector([1.0, x])
        m = oc.Matrix([[1, 2], [3, y]])
        print("hi", x, y, z, u, sep=", ", end="!\n")
        print(v, m, y == 7)
        print(f"{x:.2f} {y:5d} {z:.3e} {v:.1f} {u:x} {{}}")
        print("{1} {0:.3f} {name}".format(x, y, name=u))
        print()
        print(S(a=y, v=v), (x, y))

    k(1.5, 7, 2.25, 200)
    oc.sync()
    lines = capfd.readouterr().out.splitlines()
    assert lines == [
        "hi, 1.500000, 7, 2.250000000000, 200!",
        "[1.000000, 1.500000] [[1, 2], [3, 7]] 1",
        "1.50     7 2.250e+00 [1.0, 1.5] c8 {}",
        "7 1.500 200",
        "",
        "{a: 7, v: [1.000000, 1.500000]} [1.500000, 7]",
    ]


def test_print_in_loops_keeps_each_text_whole(arch, capfd):
    @oc.kernel
    def k():
        for i in range(200):
            if i % 2 == 0:
                print("number", i, i * i)

    k()
    oc.sync()
    lines = capfd.readouterr().out.splitlines()
    assert sorted(lines) == sorted(f"number {i} {i * i}" for i in range(0, 200, 2))


def test_assert_messages_hold_values(arch):
    oc.init(arch=getattr(oc, arch), debug=True, log_level="error")

    @oc.kernel
    def k(x: oc.i32):
        v = oc.Vector([x, 2 * x])
        assert x < 5, f"x is {x} of {v}, half {x / 2:.2f} {{:d}}"

    k(4)
    with pytest.raises(AssertionError, match=r"x is 6 of \[6, 12\], half 3\.00 \{:d\}"):
        k(6)
    k(1)


@pytest.mark.parametrize("dtype", [oc.f32, oc.f64, oc.i32, oc.u32, oc.i64, oc.u64, oc.u8], ids=str)
def test_random_is_uniform(arch, dtype):
    n = 20000

    @oc.kernel
    def k(x: oc.types.ndarray(dtype=dtype, ndim=1)):
        for i in x:
            x[i] = oc.random(dtype)

    x, y = oc.ndarray(dtype, n), oc.ndarray(dtype, n)
    k(x)
    k(y)
    a, b = x.to_numpy(), y.to_numpy()
    assert not np.array_equal(a, b)
    if dtype in (oc.f32, oc.f64):
        assert a.min() >= 0 and a.max() < 1
        unit = a.astype(np.float64)
    else:
        info = np.iinfo(a.dtype)
        unit = (a.astype(np.float64) - info.min) / (float(info.max) - info.min + 1)
    counts, _ = np.histogram(unit, bins=20, range=(0, 1))
    chi2 = ((counts - n / 20) ** 2 / (n / 20)).sum()
    # 19 degrees of freedom: beyond 60 once in about two million.
    assert chi2 < 60
    assert abs(np.corrcoef(unit[:-1], unit[1:])[0, 1]) < 0.05
    if dtype == oc.f64:
        assert len(np.unique(a)) == n


def test_random_follows_the_seed(arch):
    def draw(seed):
        oc.init(arch=getattr(oc, arch), random_seed=seed, log_level="error")

        @oc.kernel
        def k(x: oc.types.ndarray(dtype=oc.f32, ndim=1)):
            for i in x:
                x[i] = oc.random() + oc.random()

        x = oc.ndarray(oc.f32, 1000)
        k(x)
        return x.to_numpy()

    assert np.array_equal(draw(3), draw(3))
    assert not np.array_equal(draw(3), draw(4))


def test_randn_is_normal(arch):
    @oc.kernel
    def k(x: oc.types.ndarray(dtype=oc.f64, ndim=1)):
        for i in x:
            x[i] = oc.randn(oc.f64)

    x = oc.ndarray(oc.f64, 40000)
    k(x)
    a = x.to_numpy()
    assert np.isfinite(a).all()
    assert abs(a.mean()) < 0.03 and abs(a.std() - 1) < 0.03
    assert abs((a**3).mean()) < 0.1 and abs((a**4).mean() - 3) < 0.3


def test_a_program_without_a_console_prints_nothing(arch, monkeypatch, capfd):
    a = np.zeros(3, np.int32)

    @oc.kernel
    def k(a: oc.types.NDArray):
        for i in range(3):
            print("told to nobody", i)
            a[i] = i + 1

    monkeypatch.setattr("sys.stdout", None)
    k(a)
    oc.sync()
    monkeypatch.undo()
    assert a.tolist() == [1, 2, 3] and capfd.readouterr().out == ""
