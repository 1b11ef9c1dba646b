"""Kernels that take a while, and streams that are kept busy: what the tests of streams share."""

import numpy as np
import pytest
from devices import INTERPRETED

import octants as oc

IntArray = oc.types.ndarray(dtype=oc.i32, ndim=1)

#: Devices with several queues.
CONCURRENT = ("cpu", "cuda")


@oc.func
def slow(x, steps):
    """Many steps from ``x``; :func:`slowly` is the same for numpy."""
    v = x
    oc.loop_config(serialize=True)
    for _ in range(steps):
        v = v * 1664525 + 1013904223
    return v


def slowly(x, steps):
    v = np.atleast_1d(x).astype(np.uint32)
    for _ in range(steps):
        v = v * np.uint32(1664525) + np.uint32(1013904223)
    return v.astype(np.int32).reshape(np.shape(x))[()]


@pytest.fixture
def size(arch):
    """How many elements, and how many steps make one slow."""
    return (12, 20) if arch in INTERPRETED else (1000, 20000)


@oc.kernel
def produce(a: IntArray, begin: oc.i32, steps: oc.i32):
    for i in a:
        a[i] = slow(begin + i, steps)


@oc.kernel
def add_one(a: IntArray):
    for i in a:
        a[i] += 1


@oc.kernel
def add_to(a: IntArray, b: IntArray, plus: oc.i32):
    for i in a:
        b[i] = a[i] + plus


@oc.kernel
def nothing(a: IntArray):
    for i in a:
        a[i] = a[i]


def produced(n, begin, steps):
    return slowly(np.arange(begin, begin + n), steps)


class Held:
    """Keeps a stream, or the default one of a GPU, busy for a while: from ``__enter__`` on, until about ``__exit__``.

    A driver may wait for running work when it loads code: what is launched meanwhile was launched before. :func:`add_one` was.
    """

    def __init__(self, stream=None, steps=150_000_000):
        self.stream = stream
        #: Some tenths of a second.
        self.steps = 400_000_000 if oc.cfg.arch is oc.cuda else steps
        self.done = oc.create_event()
        self.array = oc.ndarray(oc.i32, 1)
        produce(self.array, 0, 1)
        add_one(self.array)
        oc.sync()

    def __enter__(self):
        produce(self.array, 0, self.steps, qd_stream=self.stream)
        self.done.record(self.stream)
        return self

    def is_running(self):
        return not self.done.query()

    def __exit__(self, *_):
        self.stream.synchronize()
        assert self.done.query()
