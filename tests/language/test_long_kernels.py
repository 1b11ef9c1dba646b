"""Kernels that are long: they are cut into pieces, which must not be seen."""

import importlib.util

import numpy as np
import pytest

import octants as oc


@pytest.fixture
def made(tmp_path):
    """Makes the kernel `k` of a module from its text."""

    def make(text):
        path = tmp_path / "long_kernel.py"
        path.write_text(text)
        spec = importlib.util.spec_from_file_location("long_kernel", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module.k

    return make


def test_variables_live_through_thousands_of_lines(arch, made):
    lines = "\n".join(f"    a{i % 5} = a{(i + 2) % 5} * 3 + {i}\n    v[{i % 3}] += a{i % 5}" for i in range(900))
    k = made(
        "import octants as oc\n\n\n@oc.kernel\ndef k(x: oc.types.ndarray(oc.i32, 1), n: int) -> oc.i32:\n"
        "    v = oc.Vector([0, 0, 0])\n    w = oc.Vector([1, 2, 3])\n    w[n] = 7\n"
        + "".join(f"    a{i} = x[{i}]\n" for i in range(5))
        + lines
        + "\n    for i in range(3):\n        x[i] = v[i] + w[i]\n    return a0 + a1 + w[n]\n"
    )
    x = np.arange(5, dtype=np.int32)
    a, v = [int(value) for value in x], [0, 0, 0]
    for i in range(900):
        a[i % 5] = a[(i + 2) % 5] * 3 + i
        v[i % 3] += a[i % 5]

    def wrapped(value):
        return (value + 2**31) % 2**32 - 2**31

    result = k(x, 1)
    assert list(x[:3]) == [wrapped(v[0] + 1), wrapped(v[1] + 7), wrapped(v[2] + 3)]
    assert result == wrapped(a[0] + a[1] + 7)


def test_many_loops_run_in_order(arch, made):
    loop = "    i = 0\n    while i < {0}:\n        i += 1\n        x[{1}] += i + x[{2}]\n"
    loops = "".join(loop.format(i % 4, i % 8, (i + 3) % 8) for i in range(150))
    k = made(f"import octants as oc\n\n\n@oc.kernel\ndef k(x: oc.types.ndarray(oc.i32, 1)):\n    i = 0\n{loops}")
    x, expected = np.ones(8, np.int32), np.ones(8, np.int32)
    with np.errstate(over="ignore"):
        for i in range(150):
            for step in range(i % 4):
                expected[i % 8] += np.int32(step + 1) + expected[(i + 3) % 8]
    k(x)
    assert list(x) == list(expected)


def test_nothing_runs_after_an_assertion_that_failed(arch, made):
    oc.init(arch=getattr(oc, arch), debug=True, log_level="error")
    before = "".join(f"    x[{i % 4}] += {i}\n" for i in range(600))
    k = made(
        "import octants as oc\n\n\n@oc.kernel\ndef k(x: oc.types.ndarray(oc.i32, 1)):\n"
        f"{before}    assert x[0] < 0\n{before}"
    )
    x = np.zeros(4, np.int32)
    with pytest.raises(AssertionError):
        k(x)
    assert x.sum() == sum(range(600))


def test_large_matrices_move_whole(arch):
    n = 14
    with pytest.warns(UserWarning, match="entries"):
        Square = oc.types.matrix(n, n, oc.f32)

    @oc.kernel
    def k(x: oc.types.ndarray(Square, 1), y: oc.types.ndarray(Square, 1), row: int):
        for i in range(x.shape[0]):
            m = x[i]
            m[row, i] = 2.0
            x[i] = m @ y[i]
            y[i] = m

    rng = np.random.default_rng(5)
    a, b = (rng.integers(-4, 5, (3, n, n)).astype(np.float32) for _ in range(2))
    x, y, changed = a.copy(), b.copy(), a.copy()
    changed[range(3), 6, range(3)] = 2.0
    with pytest.warns(UserWarning, match="entries"):
        k(x, y, 6)
    np.testing.assert_array_equal(x, changed @ b)
    np.testing.assert_array_equal(y, changed)
