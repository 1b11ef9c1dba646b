"""Blocks with many statements that leave the iteration or the function: their number has no limit."""

import numpy as np
import pytest
from test_depth import kernel_of

import octants as oc

ARRAY = "x: oc.types.ndarray(dtype=oc.i32, ndim=1)"


def lines(count: int, text: str, indent: str) -> str:
    """A text for each number, which stands for ``{i}``."""
    return "".join(indent + line + "\n" for i in range(count) for line in text.format(i=i).split("\n"))


def filled(k, n, *args):
    x = np.zeros(n, np.int32)
    k(x, *args)
    return x


@pytest.mark.parametrize("count", [63, 64, 65, 66, 97, 1000])
def test_many_continues_in_a_row(arch, count):
    body = (
        "    for i in range(x.shape[0]):\n"
        + lines(count, "if i == {i} * 2:\n    x[i] = {i}\n    continue", "        ")
        + "        x[i] = -1"
    )
    n = 2 * count + 5
    expected = [i // 2 if i % 2 == 0 and i < 2 * count else -1 for i in range(n)]
    assert filled(kernel_of(body, f"k({ARRAY})"), n).tolist() == expected


def test_many_continues_with_statements_between_them(arch):
    # Every statement sees what the ones before it defined.
    parts = ["    for i in range(x.shape[0]):\n        v0 = i * 10\n"]
    for i in range(300):
        parts.append(
            f"        if v{i} > 1000:\n            x[i] = -{i}\n            continue\n        v{i + 1} = v{i} + 3\n"
        )
    body = "".join(parts) + "        x[i] = v300 + v7"

    def model(i):
        v = [i * 10]
        for j in range(300):
            if v[j] > 1000:
                return -j
            v.append(v[j] + 3)
        return v[300] + v[7]

    assert filled(kernel_of(body, f"k({ARRAY})"), 120).tolist() == [model(i) for i in range(120)]


def test_every_kind_of_name_is_seen_by_later_statements(arch):
    setup = (
        "        pair = (i, i * 2)\n"
        "        v = oc.Vector([i, i + 1, i + 2])\n"
        "        s = oc.Struct(a=i, b=oc.Vector([i * 3, 5]))\n"
        "        part = view[i:i + 4]\n"
        "        n = oc.static(7)\n"
        "        text = f'{i}'\n"
    )
    use = "        x[i] = pair[1] + v[2] + s.b[0] + part[1] + n + part.shape[0] * 1000 + d\n"
    leave = lines(40, "if i == {i} + 500:\n    continue", "        ")
    change = "        s.a += 1\n        v[2] += 10\n        pair2 = (pair[0], v)\n"
    for before in ("", leave):
        body = (
            "    for i in range(x.shape[0]):\n"
            + before
            + setup
            + leave
            + change
            + leave
            + "        if (d := i + s.a) > 100000:\n            continue\n"
            + leave
            + use
        )
        signature = f"k({ARRAY}, view: oc.BufferView[oc.i32])"
        data = oc.ndarray(oc.i32, 20)
        data.from_numpy(np.arange(20, dtype=np.int32) * 100)
        x = np.zeros(8, np.int32)
        kernel_of(body, signature)(x, oc.BufferView(data, 0, 20))
        assert x.tolist() == [2 * i + i + 12 + 3 * i + (i + 1) * 100 + 7 + 4000 + 2 * i + 1 for i in range(8)]


@pytest.mark.filterwarnings("ignore:warning.OC1002:SyntaxWarning")
def test_an_object_that_host_code_made_of_run_time_values_is_seen_by_later_statements(arch):
    before = (
        "class Pair:\n    def __init__(self, a, b):\n        self.sum, self.product = a + b, a * b\n"
        "def made(a):\n    return Pair(a, a + 1)\n"
    )
    leave = lines(40, "if i == {i} + 500:\n    continue", "        ")
    body = (
        "    for i in range(x.shape[0]):\n"
        + leave
        + "        pair = made(i)\n"
        + leave
        + leave
        + "        x[i] = pair.sum + pair.product"
    )
    k = kernel_of(body, f"k({ARRAY})", before=before)
    assert filled(k, 8).tolist() == [2 * i + 1 + i * (i + 1) for i in range(8)]


@pytest.mark.parametrize("word", ["break", "continue"])
def test_many_exits_of_a_serial_loop(arch, word):
    body = (
        "    s = 0\n    oc.loop_config(serialize=True)\n    for i in range(a):\n"
        + lines(200, f"if i == {{i}} * 5 + 3:\n    s += 1000\n    {word}\ns += {{i}} & 1", "        ")
        + "    return s"
    )

    def model(a):
        s = 0
        for i in range(a):
            for j in range(200):
                if i == j * 5 + 3:
                    s += 1000
                    break
                s += j & 1
            else:
                continue
            if word == "break":
                break
        return s

    k = kernel_of(body)
    assert [k(a) for a in (1, 3, 5, 30)] == [model(a) for a in (1, 3, 5, 30)]


def test_exits_deeper_down_and_exits_at_the_end(arch):
    body = (
        "    for i in range(x.shape[0]):\n"
        + lines(
            100, "if i > {i}:\n    if i == {i} * 3:\n        x[i] = {i}\n        continue\n    x[i] += 1", "        "
        )
        + "        if i > 50:\n            continue\n        else:\n            continue\n        x[i] = 77"
    )

    def model(i):
        x = 0
        for j in range(100):
            if i > j:
                if i == j * 3:
                    return j
                x += 1
        return x

    assert filled(kernel_of(body, f"k({ARRAY})"), 150).tolist() == [model(i) for i in range(150)]


def test_what_follows_the_block_of_many_exits_runs(arch):
    inside = lines(100, "if i == {i} * 2:\n    continue", "            ")
    body = (
        "    for i in range(x.shape[0]):\n        if x[i] >= 0:\n"
        + inside
        + "            x[i] += 1\n        if i == 5:\n            continue\n        x[i] += 10"
    )
    expected = [0 if i % 2 == 0 and i < 200 else 1 if i == 5 else 11 for i in range(210)]
    assert filled(kernel_of(body, f"k({ARRAY})"), 210).tolist() == expected


def test_many_returns_of_a_real_function(arch):
    function = (
        "@oc.real_func\ndef f(a: oc.i32) -> oc.i32:\n    r = a * 2\n"
        + lines(1000, "if a == {i}:\n    return {i} * 3 + r", "    ")
        + "    for i in range(a):\n        if i == 5000:\n            return -5\n    return -1\n"
    )
    k = kernel_of("    return f(a)", before=function)
    assert [k(0), k(31), k(32), k(999), k(1000), k(6000)] == [0, 155, 160, 4995, -1, -5]


def test_many_static_conditions_leave_an_unrolled_loop(arch):
    function = (
        "@oc.real_func\ndef f(a: oc.i32) -> oc.i32:\n    r = a\n    for k in oc.static(range(5)):\n"
        + lines(100, "r += {i}\nif oc.static(k == {i} + 7):\n    return -1", "        ")
        + "        if oc.static(k == 2):\n            break\n    return r\n"
    )
    assert kernel_of("    return f(a)", before=function)(1) == 1 + 3 * sum(range(100))


@pytest.mark.no_device
def test_gpu_code_of_many_exits():
    # Whether conditions are about indices alone is asked of each op once, however deep it lies.
    leave = lines(40, "if i == {i} + 500:\n    continue", "        ")
    values = "        v = oc.Vector([i, i + 1, i + 2])\n"
    body = f"    for i in range(x.shape[0]):\n{values}{leave}        v[2] += 10\n{leave}{leave}        x[i] = v[2]"
    oc.init(arch=oc.cpu, log_level="error")
    k = kernel_of(body, f"k({ARRAY})")
    assert filled(k, 8).tolist() == list(range(12, 20))
    assert ".entry" in k.dump("ptx")
