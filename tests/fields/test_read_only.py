"""``oc.cache_read_only(x)`` before a loop: the loop only reads ``x``."""

import inspect

import numpy as np
import pytest

import octants as oc


def refused(function, *arguments):
    """A kernel is refused at the line with ``# here``, and told where it was said."""
    source, first = inspect.getsourcelines(function)
    (line,) = [first + at for at, text in enumerate(source) if "# here" in text]
    with pytest.raises(oc.OctantsCompilationError) as raised:
        oc.kernel(function)(*arguments)
    text = str(raised.value)
    assert f"{__file__}:{line}:" in text and "here it was said to be read only" in text, text
    return text


def test_a_loop_that_only_reads_computes_what_it_did(arch):
    x, y = oc.field(oc.f32, 64), oc.field(oc.f32, 64)
    x.from_numpy(np.arange(64, dtype=np.float32))

    @oc.kernel
    def shifted():
        oc.cache_read_only(x)
        oc.loop_config(block_dim=32)
        for i in range(63):
            y[i] = x[i + 1] + x[i]
        # Another loop may write it.
        for i in x:
            x[i] = y[i]

    shifted()
    assert np.array_equal(x.to_numpy(), np.append(2 * np.arange(63) + 1, 0))


def test_assignments_and_updates_are_refused(arch):
    x = oc.field(oc.f32, 8)

    def assigned():
        oc.cache_read_only(x)
        for i in x:
            x[i] = 1.0  # here

    def added():
        oc.cache_read_only(x)
        for i in range(8):
            x[0] += 1.0  # here

    def atomic():
        oc.cache_read_only(x)
        oc.loop_config(serialize=True)
        for i in range(8):
            oc.atomic_max(x[i], 1.0)  # here

    for function in (assigned, added, atomic):
        assert "the loop writes `x`" in refused(function)


def test_what_a_func_writes_is_refused(arch):
    x, y = oc.Vector.field(3, oc.f32, 8), oc.field(oc.f32, 8)

    @oc.func
    def store(i):
        x[i][1] = 2.0

    @oc.kernel
    def go():
        oc.cache_read_only(y, x)
        for i in range(8):
            store(i)

    with pytest.raises(oc.OctantsCompilationError, match="the loop writes `x`"):
        go()


def test_elements_of_sparse_fields_and_of_structs_are_looked_at(arch):
    x = oc.field(oc.f32)
    oc.root.pointer(oc.i, 4).dense(oc.i, 4).place(x)
    particle = oc.types.struct(at=oc.f32, mass=oc.f32).field(shape=8)

    def sparse():
        oc.cache_read_only(x)
        for i in range(16):
            x[i] = 1.0  # here

    def member():
        oc.cache_read_only(particle)
        for i in range(8):
            particle[i].mass = 1.0  # here

    assert "the loop writes `x`" in refused(sparse)
    assert "the loop writes `particle`" in refused(member)

    @oc.kernel
    def reads() -> oc.f32:
        total = 0.0
        oc.cache_read_only(x, particle)
        for i in range(8):
            total += x[i] + particle[i].at
        return total

    assert reads() == 0


def test_a_field_given_as_an_argument_is_the_same_field(arch):
    x, y = oc.field(oc.f32, 8), oc.field(oc.f32, 8)

    def scale(a: oc.template(), b: oc.template()):
        oc.cache_read_only(a)
        for i in a:
            b[i] = 2 * a[i]  # here

    oc.kernel(scale)(x, y)
    assert "the loop writes `a`" in refused(scale, x, x)


@pytest.mark.no_device
def test_what_is_only_read_is_loaded_so_on_a_gpu():
    x, y = oc.field(oc.f32, 1024), oc.field(oc.f32, 1024)
    s, t = oc.field(oc.f32), oc.field(oc.f32)
    for sparse in (s, t):
        oc.root.pointer(oc.i, 16).dense(oc.i, 64).place(sparse)

    @oc.kernel
    def dense():
        oc.cache_read_only(x)
        for i in range(1023):
            y[i] = x[i + 1] * x[i]

    @oc.kernel
    def sparse():
        oc.cache_read_only(s)
        for i in t:
            t[i] = s[i]

    for kernel in (dense, sparse):
        kernel()
        text = kernel.dump("ptx", capability=90)
        loads = [word for word in text.split() if word.startswith("ld.global") and word.endswith("f32")]
        assert loads and all(word.startswith("ld.global.nc") for word in loads), loads
