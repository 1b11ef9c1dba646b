"""Functions that are compiled on their own, on every device: recursion, early returns, references."""

import threading

import numpy as np
import pytest

import octants as oc

pytestmark = [pytest.mark.host_access, pytest.mark.sanitizer_core]

vec2 = oc.types.vector(2, oc.f32)
Pair = oc.types.struct(a=oc.i32, v=vec2)


def test_recursion(arch):
    @oc.real_func
    def fibonacci(n: oc.i32) -> oc.i32:
        if n < 2:
            return n
        return fibonacci(n - 1) + fibonacci(n - 2)

    @oc.kernel
    def k(x: oc.types.ndarray(dtype=oc.i32, ndim=1)):
        for i in x:
            x[i] = fibonacci(i)

    x = np.zeros(15, np.int32)
    k(x)
    assert x.tolist() == [0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377]


@pytest.mark.parametrize("stack", [256 << 10, 1 << 20])
def test_endless_recursion_fails_on_a_thread_with_a_small_stack(arch, stack):
    @oc.real_func
    def down(n: oc.i32) -> oc.i32:
        return down(n + 1) + 1

    @oc.kernel
    def serial() -> oc.i32:
        return down(0)

    @oc.kernel
    def parallel(x: oc.types.ndarray(dtype=oc.i32, ndim=1)):
        for i in x:
            x[i] = down(i)

    def run():
        for launch in (serial, lambda: parallel(np.zeros(100, np.int32))):
            try:
                launch()
            except oc.OctantsAssertionError as error:
                errors.append(str(error))

    errors = []
    before = threading.stack_size(stack)
    try:
        thread = threading.Thread(target=run)
        thread.start()
    finally:
        threading.stack_size(before)
    thread.join()
    assert len(errors) == 2
    assert all("calls of `down` are nested too deep" in error for error in errors), errors


@pytest.mark.host_devices("a GPU's threads have a few KiB of stack each")
def test_recursion_may_use_most_of_the_stack(arch):
    @oc.real_func
    def count(n: oc.i32) -> oc.i32:
        if n == 0:
            return 0
        return count(n - 1) + 1

    @oc.kernel
    def k(n: oc.i32) -> oc.i32:
        return count(n)

    assert k(10_000) == 10_000


def test_returns_leave_loops(arch):
    @oc.real_func
    def first_pair(n: oc.i32, target: oc.i32) -> (oc.i32, oc.i32):
        steps = 0
        for i in range(n):
            j = 0
            while j < n:
                steps += 1
                if i * j == target:
                    if i > 1:
                        return i, j
                j += 1
            if steps > 1000:
                return -2, steps
        return -1, steps

    @oc.kernel
    def k(n: oc.i32, target: oc.i32) -> (oc.i32, oc.i32):
        a, b = first_pair(n, target)
        return a, b

    def expected(n, target):
        steps = 0
        for i in range(n):
            for j in range(n):
                steps += 1
                if i * j == target and i > 1:
                    return i, j
            if steps > 1000:
                return -2, steps
        return -1, steps

    for n, target in [(10, 12), (10, 7), (10, 0), (3, 100), (40, 2000)]:
        assert k(n, target) == expected(n, target)


def test_vectors_structs_templates_and_references(arch):
    @oc.real_func
    def scaled(v: vec2, by: oc.f32) -> vec2:
        v *= by
        return v

    @oc.real_func
    def changed(p: oc.ref(Pair), count: oc.ref(oc.i32), step: oc.template()) -> oc.f32:
        p.a += step
        p.v = scaled(p.v, 2.0)
        count += 1
        return p.v.sum()

    @oc.real_func
    def stored(x: oc.types.ndarray(dtype=oc.f32, ndim=1), i: oc.i32):
        if i < 0:
            return
        x[i] = i * 2

    @oc.kernel
    def k(x: oc.types.ndarray(dtype=oc.f32, ndim=1)) -> (Pair, oc.i32, oc.f32):
        p = Pair(a=1, v=vec2(1, 2))
        count = 0
        total = changed(p, count, 10)
        total += changed(p, count, 100)
        for i in range(3):
            stored(x, i)
        stored(x, -1)
        return p, count, total

    x = np.zeros(3, np.float32)
    p, count, total = k(x)
    assert p.a == 111 and p.v.to_list() == [4, 8] and count == 2 and total == 18
    assert x.tolist() == [0, 2, 4]


def test_mistakes(arch):
    @oc.real_func
    def twice(x) -> oc.i32:
        return x * 2

    @oc.kernel
    def untyped() -> oc.i32:
        return twice(3)

    with pytest.raises(oc.OctantsSyntaxError, match="needs a type"):
        untyped()

    @oc.real_func
    def add(x: oc.ref(oc.i32)):
        x += 1

    @oc.kernel
    def literal():
        add(3)

    with pytest.raises(oc.OctantsSyntaxError, match="by reference"):
        literal()
