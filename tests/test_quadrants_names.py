"""Names and forms that programs for Quadrants use."""

import functools
import importlib

import numpy as np
import pytest

import octants as oc

MODULES = [
    "lang.ops", "lang.impl", "lang.exception", "lang.misc", "lang.util", "lang.kernel_impl", "lang.matrix", "lang.snode", "lang.field", "lang.struct",
    "lang._ndarray", "lang.buffer_view", "types.annotations", "types.primitive_types", "types.enums", "types.ndarray_type",
    "types.compound_types", "_lib.core",
]  # fmt: skip


@pytest.mark.no_device
@pytest.mark.parametrize("name", MODULES)
def test_deep_imports_find_the_same_objects(name):
    module = importlib.import_module(f"octants.{name}")
    for public in getattr(module, "__all__", ()):
        found = getattr(module, public)
        if hasattr(oc, public) and not public.endswith("type_ids"):
            assert found is getattr(oc, public) or public in ("ndarray", "matrix", "vector", "struct"), public


@pytest.mark.no_device
def test_what_programs_look_up_inside():
    assert oc.lang.ops.sin is oc.sin and oc.types.primitive_types.f32 is oc.f32
    assert oc.lang.exception.QuadrantsIndexError is oc.exceptions.OctantsIndexError
    assert oc._lib.core.with_cuda() and not oc._lib.core.with_vulkan()
    assert oc.types.primitive_types.integer_types
    assert oc.lang.Matrix is oc.Matrix and oc.lang.kernel is oc.kernel
    with pytest.raises(AttributeError, match="module 'octants.lang' has no attribute 'nonsense'"):
        oc.lang.nonsense


def test_types_of_other_libraries_and_options_are_found_inside(arch):
    util = oc.lang.util
    assert util.to_quadrants_type(np.float32) is oc.f32 and util.to_numpy_type(oc.u1) == np.bool_
    assert oc.lang.impl.current_cfg().default_fp is oc.f32
    if util.has_pytorch():
        import torch

        wanted = {oc.f32: torch.float32, oc.u1: torch.bool, oc.i64: torch.int64, oc.u8: torch.uint8}
        assert {dtype: util.to_pytorch_type(dtype) for dtype in wanted} == wanted
    with pytest.raises(TypeError, match="not a data type"):
        util.to_quadrants_type(np.complex64)


def test_the_runtime_is_known_on_the_host_and_in_kernels(arch):
    runtime = oc.lang.impl.get_runtime()
    assert runtime.default_fp is oc.f32 and runtime.default_ip is oc.i32
    runtime.prog.synchronize()

    @oc.kernel
    def tolerance() -> oc.f32:
        return 1e-6 if oc.static(oc.lang.impl.get_runtime().default_fp == oc.f32) else 1e-13

    assert tolerance() == np.float32(1e-6)


@pytest.mark.no_device
def test_what_is_not_there_yet_says_what_to_use():
    from octants._not_yet import INSTEAD

    missing = [name for name in INSTEAD if not hasattr(oc, name)]
    for name in missing:
        with pytest.raises(AttributeError, match=f"oc.{name} is not in Octants yet: "):
            getattr(oc, name)
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        oc.nonsense


def test_a_field_is_printed_with_its_elements(arch, capsys):
    x = oc.field(oc.f32, (2, 2))
    x[0, 1] = 3
    print(x)
    print(oc.Vector.field(2, oc.i32, 2))
    print(oc.Struct.field({"a": oc.i32}, shape=2))
    print(oc.field(oc.i32, ()))
    printed = capsys.readouterr().out
    assert printed == "[[0. 3.]\n [0. 0.]]\n[[0 0]\n [0 0]]\n{'a': array([0, 0], dtype=int32)}\n0\n"
    assert repr(x) == "<oc.field f32 (2, 2)>" and str(oc.field(oc.f32)) == "<oc.field f32 not placed>"

    @oc.kernel
    def show():
        oc.static_print(x)

    show()
    assert "oc.field" in capsys.readouterr().out


@oc.func
def combined(a, b, c):
    return 100 * a + 10 * b + c


@oc.real_func
def difference(a: oc.i32, b: oc.i32) -> oc.i32:
    return a - b


def test_partial_funcs(arch):
    first = functools.partial(combined, 1)
    last = functools.partial(functools.partial(combined, c=3), 7)
    table = oc.field(oc.i32, 3)
    table[2] = 5

    @oc.func
    def looked_up(t: oc.template(), i):
        return t[i]

    of_table = functools.partial(looked_up, table)
    less = functools.partial(difference, b=4)

    @oc.data_oriented
    class Object:
        n = 2

        @oc.func
        def scaled(self, v, w):
            return self.n * v + w

    bound = functools.partial(Object().scaled, 10)

    @oc.kernel
    def go(out: oc.types.ndarray(dtype=oc.i32, ndim=1)):
        for _ in range(1):
            out[0] = first(2, 3)
            out[1] = first(c=2, b=4)
            out[2] = last(8)
            out[3] = last(8, c=9)  # in place of the one that was fixed
            out[4] = of_table(2)
            out[5] = less(10)
            out[6] = bound(3)

    out = oc.ndarray(oc.i32, 7)
    go(out)
    assert out.to_numpy().tolist() == [123, 142, 783, 789, 5, 6, 23]

    @oc.kernel
    def wrong() -> oc.i32:
        return first(1, 2, 3)

    with pytest.raises(oc.OctantsSyntaxError, match="Too many arguments"):
        wrong()


def test_partial_of_builtins_functions_of_the_language_and_types(arch):
    at_least, chosen, narrow = functools.partial(max, 3), functools.partial(oc.select, True), functools.partial(oc.u8)

    @oc.kernel
    def go(n: oc.i32) -> oc.i32:
        return at_least(n) * 10000 + chosen(n, 7) * 1000 + narrow(n + 256)

    assert [go(2), go(5)] == [32002, 55005]

    @oc.kernel
    def wrong(n: oc.i32) -> oc.i32:
        return chosen(n, 1, 2)

    with pytest.raises(oc.OctantsCompilationError, match="select"):
        wrong(1)


def test_an_annotation_of_a_func_converts_numbers_and_says_nothing_of_vectors(arch):
    @oc.func
    def number(x) -> oc.i32:
        return x

    @oc.func
    def vector(x) -> oc.types.vector(2, oc.i32):
        return oc.Vector([x, x])

    @oc.func
    def fitting(x) -> oc.types.vector(2, oc.f32):
        return oc.Vector([x, x])

    @oc.func
    def pair(x) -> tuple[oc.types.vector(3, oc.f32), oc.i32]:
        return oc.Vector([x, x]), x

    @oc.func
    def struct(x) -> oc.types.struct(a=oc.f32):
        return x

    @oc.kernel
    def go(x: oc.f32, n: oc.i32, out: oc.types.NDArray[oc.f32, 1]):
        for _ in range(1):
            out[0] = number(x)
            out[1] = vector(x)[1]
            out[2] = fitting(n)[0] / 2
            v, whole = pair(x)
            out[3] = v.sum() + whole
            out[4] = struct(x)

    out = oc.ndarray(oc.f32, 5)
    with pytest.warns(UserWarning) as told:
        go(2.5, 3, out)
    assert out.to_numpy().tolist() == [2, 2.5, 1.5, 7, 2.5]
    ignored = [str(one.message).splitlines()[0] for one in told if "OC1010" in str(one.message)]
    assert ignored == [
        "warning[OC1010]: a 2-vector of f32 is returned where a 2-vector of i32 is annotated",
        "warning[OC1010]: a 2-vector of f32 is returned where a 3-vector of f32 is annotated",
        "warning[OC1010]: f32 is returned where what the annotation says is annotated",
    ]

    @oc.func
    def wrong(x) -> oc.i32:
        return oc.types.struct(a=oc.f32)(x)

    @oc.kernel
    def bad(x: oc.f32) -> oc.i32:
        return wrong(x)

    with pytest.raises(oc.OctantsTypeError, match="OC0314"):
        bad(1.0)


def test_a_comprehensions_variable_may_have_an_outer_name(arch):
    @oc.kernel
    def go() -> oc.i32:
        i = 5
        v = oc.Vector([i for i in range(3)])
        return v.sum() * 10 + i

    assert go() == 35


def test_return_annotations_of_funcs(arch):
    @oc.func
    def truncated(x) -> oc.i32:
        return x * 1.5

    @oc.func
    def real(x) -> float:
        return x

    @oc.func
    def pair(x) -> oc.types.vector(2, oc.f32):
        return oc.Vector([x, x])

    @oc.kernel
    def go() -> oc.f32:
        return truncated(3) + real(1) / 2 + pair(1).sum()

    assert go() == 4 + 0.5 + 2


def test_captured_lists_and_tuples_are_assigned_to_vectors(arch):
    numbers, reals = [1, 2, 3], (4.0, 5.0, 6.0)
    x = oc.Vector.field(3, oc.f32, 2)

    @oc.kernel
    def go():
        v = oc.Vector([0.0, 0.0, 0.0])
        v = numbers
        x[0] = v
        x[1] = reals

    go()
    assert x.to_numpy().tolist() == [[1, 2, 3], [4, 5, 6]]


def test_a_walrus_inside_and(arch):
    @oc.kernel
    def go(n: oc.i32) -> oc.i32:
        r = 0
        if n > 0 and (m := n * 2) > 5:
            r = m
        return r

    assert (go(3), go(1)) == (6, 0)


def test_addresses_of_fields_and_their_places(arch):
    x = oc.field(oc.f32, 8)

    @oc.kernel
    def apart() -> oc.u64:
        return oc.get_addr(x, [3]) - oc.get_addr(x.snode, [1])

    assert apart() == 8


def test_parameters_have_their_names():
    x = oc.ndarray(oc.f32, 3)
    x.fill(val=2)
    assert x.to_numpy().tolist() == [2, 2, 2]
    t = oc.tensor(oc.f32, 3)
    t.fill(value=4)
    assert t[1] == 4
    matrix = oc.Matrix([[1, 2], [3, 4]])
    matrix.fill(val=5)
    assert matrix.to_list() == [[5, 5], [5, 5]]
    builder, y = oc.FieldsBuilder(), oc.field(oc.i32)
    builder.pointer(indices=oc.i, dimensions=2).dynamic(axis=oc.j, dimension=8, chunk_size=4).place(y)
    builder.finalize()
    y[1, 0] = 3
    assert y.to_numpy()[1, 0] == 3
    pairs = oc.Struct.field({"a": oc.f32, "b": oc.i32}, shape=2)
    pairs.from_numpy(array_dict={"a": np.ones(2, np.float32), "b": np.arange(2, dtype=np.int32)})
    assert pairs.get_member_field(key="b")[1] == 1
    assert oc.algorithms.sort_scratch_slots(n=1) == 257


def test_stable_members_changes_nothing():
    @oc.data_oriented(stable_members=True)
    class Counter:
        def __init__(self):
            self.x = oc.ndarray(oc.i32, 1)
            self.step = 2

        @oc.kernel
        def run(self):
            self.x[0] += self.step

    counter = Counter()
    counter.run()
    counter.step = 40
    counter.run()
    assert counter.x[0] == 42
