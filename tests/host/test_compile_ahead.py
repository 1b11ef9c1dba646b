"""``oc.compile``, ``oc.compile_all``, kernels with ``fastcache=True``, and threads that compile and launch at the same time."""

import enum
import threading
import warnings
from dataclasses import dataclass

import numpy as np
import pytest

import octants as oc

Array = oc.types.ndarray(dtype=oc.i32, ndim=1)


def made(kernel) -> int:
    return len(kernel.compile_statistics())


def test_a_kernel_is_compiled_ahead_and_not_launched(arch):
    @oc.kernel
    def add(a: Array, n: oc.template()):
        for i in a:
            a[i] += n

    a = oc.ndarray(oc.i32, 4)
    oc.compile(add, a, 3)
    oc.compile(add, a, n=3)
    assert made(add) == 1 and a.to_numpy().tolist() == [0, 0, 0, 0]
    add(a, 3)
    assert made(add) == 1 and a.to_numpy().tolist() == [3, 3, 3, 3]
    with pytest.raises(TypeError, match="takes a kernel"):
        oc.compile(made, a)
    with pytest.raises(oc.OctantsRuntimeTypeError):
        oc.compile(add, "text", 3)


def test_methods_and_derivatives_are_compiled_ahead():
    @oc.data_oriented
    class Model:
        def __init__(self):
            self.x = oc.field(oc.f32, shape=4, needs_grad=True)
            self.loss = oc.field(oc.f32, shape=(), needs_grad=True)

        @oc.kernel
        def run(self):
            for i in self.x:
                self.loss[None] += self.x[i] ** 2

    model = Model()
    oc.compile(model.run)
    oc.compile(model.run, grad=True)
    model.x.fill(3)
    model.run()
    assert made(Model.run) == 1 and model.loss[None] == 36


def kernels(count):
    """Kernels of one text, each with a number of its own."""

    def one(number):
        @oc.kernel
        def add(a: Array):
            for i in a:
                a[i] += number

        return add

    return [one(number) for number in range(count)]


def test_many_are_compiled_in_the_background(capsys):
    all_kernels = kernels(12)
    a = oc.ndarray(oc.i32, 4)
    compilations = oc.compile_all([(kernel, a) for kernel in all_kernels], background=True, progress=True)
    compilations.wait()
    assert compilations.finished == compilations.total == 12
    assert "12/12" in capsys.readouterr().err
    for kernel in all_kernels:
        kernel(a)
        assert made(kernel) == 1
    assert a.to_numpy().tolist() == 4 * [66]
    with pytest.raises(oc.OctantsRuntimeTypeError):
        oc.compile_all([(all_kernels[0], a), (all_kernels[1], 3.5)], progress=False)
    assert oc.compile_all([]).total == 0


def test_threads_compile_and_launch_the_same_and_other_kernels(arch):
    """Eight threads call all kernels in orders of their own, each on arrays of its own: every result is right, and code is made once."""
    count, rounds = (6, 2) if arch in ("reference", "remote") else (12, 6)
    all_kernels = kernels(count)
    wrong = []
    begin = threading.Barrier(8)

    def use(number):
        random = np.random.default_rng(number)
        a, b = oc.ndarray(oc.i32, 64), np.zeros(64, np.int32)
        begin.wait()
        try:
            for _ in range(rounds):
                for which in random.permutation(count):
                    all_kernels[which](a)
                    all_kernels[which](b)
            expected = rounds * sum(range(count))
            if a.to_numpy().tolist() != 64 * [expected] or b.tolist() != 64 * [expected]:
                wrong.append((number, a.to_numpy().tolist(), b.tolist()))
        except Exception as error:
            wrong.append(error)

    threads = [threading.Thread(target=use, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


class Colour(enum.Enum):
    RED = 1


@dataclass
class Sizes:
    n: int


factor = 3
FACTOR = 4


@pytest.mark.no_device
def test_globals_in_kernels_that_promise_to_have_none():
    @oc.func
    def scaled(x):
        return x * factor

    @oc.kernel(fastcache=True)
    def through_a_func(a: Array):
        for i in a:
            a[i] = scaled(a[i])

    @oc.kernel(fastcache=True)
    def constant(a: Array):
        for i in a:
            a[i] += FACTOR + oc.static(factor)

    @oc.kernel(fastcache=True)
    def allowed(a: Array, sizes: Sizes, colour: oc.template()):
        for i in a:
            if oc.static(colour == Colour.RED):
                a[i] += oc.max(oc.cast(np.pi, oc.i32), sizes.n)

    a = np.ones(4, np.int32)
    with pytest.raises(oc.OctantsCompilationError, match=r"PURE\.VIOLATION.*`factor`"):
        through_a_func(a)
    with pytest.warns(UserWarning, match=r"PURE\.VIOLATION.*`FACTOR`"):
        constant(a)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        allowed(a, Sizes(5), Colour.RED)
    assert a.tolist() == 4 * [13]


@pytest.mark.no_device
def test_arguments_that_have_no_key_of_their_own():
    class Anything:
        n = 3

    @oc.kernel(fastcache=True)
    def add(a: Array, thing: oc.template()):
        for i in a:
            a[i] += thing.n

    a = np.zeros(4, np.int32)
    with pytest.warns(UserWarning, match=r"\[FASTCACHE\]\[PARAM_INVALID\] argument thing of .*Anything") as warned:
        add(a, Anything())
    assert a.tolist() == 4 * [3]
    assert [str(one.message).split(" ")[0] for one in warned] == [
        "[FASTCACHE][PARAM_INVALID]",
        "[FASTCACHE][INVALID_FUNC]",
    ]
    oc.init(arch=oc.cpu, log_level="error", src_ll_cache=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        add(a, Anything())
    assert not add._primal.src_ll_cache_observations.cache_key_generated


@pytest.mark.no_device
def test_kernels_without_the_promise_are_named_when_they_are_compiled(capfd):
    @oc.kernel
    def undeclared(n: oc.i32) -> oc.i32:
        return n

    @oc.kernel(fastcache=True)
    def declared(n: oc.i32) -> oc.i32:
        return n

    undeclared(1)
    oc.init(arch=oc.cpu, log_level="error", print_non_pure=True)
    declared(1)
    assert "[NOT_PURE]" not in capfd.readouterr().out
    undeclared(1)
    undeclared(2)
    said = capfd.readouterr().out
    assert said.count("[NOT_PURE]") == 1 and "undeclared" in said


@pytest.mark.no_device
def test_what_became_of_a_kernel_is_told_as_elsewhere():
    @oc.kernel(fastcache=True)
    def add(a: Array):
        for i in a:
            a[i] += 1

    assert not add._primal.src_ll_cache_observations.cache_key_generated
    add(np.zeros(4, np.int32))
    first = add._primal.src_ll_cache_observations
    assert first.cache_key_generated and first.cache_stored and not first.cache_loaded
    oc.init(arch=oc.cpu, log_level="error")
    add(np.zeros(4, np.int32))
    second = add._primal.src_ll_cache_observations
    assert second.cache_loaded and second.cache_validated and not second.cache_stored
