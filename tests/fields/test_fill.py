"""``fill`` of fields, arrays and views in kernels: it runs when the kernel runs."""

import dataclasses

import numpy as np
import pytest

import octants as oc

pytestmark = pytest.mark.host_access


def test_fill_runs_at_every_launch(arch):
    x = oc.field(oc.f32, shape=(3, 4))

    @oc.kernel
    def clear(value: oc.f32):
        x.fill(value)

    clear(2.5)
    assert (x.to_numpy() == 2.5).all()
    x.fill(1)
    clear(-1.0)
    assert (x.to_numpy() == -1).all()


def test_fill_under_a_false_condition_does_nothing(arch):
    x = oc.field(oc.i32, shape=5)

    @oc.kernel
    def clear(really: oc.i32):
        if really:
            x.fill(7)

    clear(0)
    assert x.to_numpy().tolist() == [0] * 5
    clear(1)
    assert x.to_numpy().tolist() == [7] * 5
    clear(0)
    assert x.to_numpy().tolist() == [7] * 5


def test_fill_in_order_with_what_stands_around_it(arch):
    x, total = oc.field(oc.i32, shape=8), oc.field(oc.i32, shape=2)

    @oc.kernel
    def step():
        for i in x:
            x[i] = i
        for i in x:
            total[0] += x[i]
        x.fill(3)
        for i in x:
            total[1] += x[i]

    step()
    assert total.to_numpy().tolist() == [28, 24]


def test_fill_inside_loops_is_serial_and_repeats(arch):
    x, seen = oc.field(oc.i32, shape=3), oc.field(oc.i32, shape=4)

    @oc.kernel
    def serial():
        oc.loop_config(serialize=True)
        for k in range(4):
            x.fill(k * 10)
            x[1] += 1
            seen[k] = x[0] + x[1] + x[2]

    serial()
    assert seen.to_numpy().tolist() == [1, 31, 61, 91]


def test_fill_with_the_element_of_the_field_itself(arch):
    x = oc.field(oc.i32, shape=6)

    @oc.kernel
    def spread():
        x.fill(x[2] + 1)

    x.from_numpy(np.arange(6, dtype=np.int32))
    spread()
    assert x.to_numpy().tolist() == [3] * 6


@pytest.mark.parametrize("layout", [oc.Layout.AOS, oc.Layout.SOA])
def test_fill_vectors_matrices_and_structs(arch, layout):
    v = oc.Vector.field(2, oc.i32, shape=3, layout=layout)
    m = oc.Matrix.field(2, 2, oc.f32, shape=(2, 2), layout=layout)
    mixed = oc.Vector.field(2, [oc.i32, oc.f32], shape=3)
    inner = oc.types.struct(w=oc.f64, c=oc.types.vector(3, oc.i32))
    outer = oc.types.struct(a=oc.i32, s=inner)
    s = outer.field(shape=4, layout=layout)

    @oc.kernel
    def numbers(value: oc.i32):
        v.fill(value)
        m.fill(value)
        mixed.fill(value)
        s.fill(value)

    @oc.kernel
    def values(value: oc.i32):
        v.fill([value, 2])
        m.fill(oc.Matrix([[value, 1], [2, 3]]))
        mixed.fill(oc.Vector([value, 1.5]))
        s.fill(outer(value, inner(0.5, [1, 2, value])))

    numbers(9)
    assert (v.to_numpy() == 9).all() and (m.to_numpy() == 9).all() and (mixed.to_numpy() == 9).all()
    assert (s.a.to_numpy() == 9).all() and (s.s.w.to_numpy() == 9).all() and (s.s.c.to_numpy() == 9).all()
    values(4)
    assert (v.to_numpy() == [4, 2]).all() and (m.to_numpy() == [[4, 1], [2, 3]]).all()
    assert (mixed.to_numpy() == [4, 1.5]).all()
    assert (s.a.to_numpy() == 4).all() and (s.s.w.to_numpy() == 0.5).all() and (s.s.c.to_numpy() == [1, 2, 4]).all()


def test_fill_a_member_of_a_struct_field(arch):
    s = oc.Struct.field({"a": oc.i32, "fill": oc.f32}, shape=3)

    @oc.kernel
    def fill(value: oc.i32):
        s.a.fill(value)
        # A member hides the method of the same name.
        s.fill.fill(value)

    fill(3)
    assert s.a.to_numpy().tolist() == [3] * 3
    assert s.get_member_field("fill").to_numpy().tolist() == [3] * 3


def test_fill_respects_offsets_orders_and_blocks(arch):
    offset = oc.field(oc.i32, shape=(3, 4), offset=(-2, 5))
    order = oc.field(oc.i32, shape=(3, 4), order="ji")
    blocks, beside = oc.field(oc.i32), oc.field(oc.i32)
    oc.root.dense(oc.ij, (2, 3)).dense(oc.ij, (4, 2)).place(blocks, beside)
    alone = oc.field(oc.f64, shape=())

    @oc.kernel
    def fill(value: oc.i32):
        offset.fill(value)
        order.fill(value)
        blocks.fill(value)
        alone.fill(value)

    fill(6)
    for field in (offset, order, blocks):
        assert (field.to_numpy() == 6).all()
    assert (beside.to_numpy() == 0).all() and alone[None] == 6


def test_fill_through_templates_funcs_and_self(arch):
    @oc.func
    def clear(x: oc.template(), value):
        x.fill(value)

    @oc.kernel
    def by_template(x: oc.template(), value: oc.i32):
        clear(x, value)

    @oc.data_oriented
    class Solver:
        def __init__(self):
            self.x = oc.field(oc.i32, shape=3)
            self.a = oc.ndarray(oc.i32, 4)
            self.parts = [oc.field(oc.i32, shape=2) for _ in range(2)]

        @oc.func
        def clear(self, value):
            self.x.fill(value)

        @oc.kernel
        def run(self, value: oc.i32):
            self.clear(value)
            self.a.fill(value + 1)
            for part in oc.static(self.parts):
                part.fill(value + 2)

    x, y = oc.field(oc.i32, shape=3), oc.Vector.field(2, oc.i32, shape=2)
    by_template(x, 5)
    by_template(y, 6)
    by_template(x, 7)
    assert x.to_numpy().tolist() == [7] * 3 and (y.to_numpy() == 6).all()
    for start in (1, 10):
        solver = Solver()
        solver.run(start)
        solver.run(start + 1)
        assert (solver.x.to_numpy() == start + 1).all() and (solver.a.to_numpy() == start + 2).all()
        assert all((part.to_numpy() == start + 3).all() for part in solver.parts)


def test_fill_arrays_and_members_of_dataclasses(arch):
    @dataclasses.dataclass
    class State:
        x: oc.types.ndarray(dtype=oc.f32, ndim=2)
        v: oc.types.ndarray(dtype=oc.types.vector(2, oc.i32), ndim=1)

    @oc.kernel
    def fill(state: State, plain: oc.types.ndarray(), value: oc.i32):
        state.x.fill(value)
        if value > 2:
            state.v.fill([value, 1])
        plain.fill(value * 0.5)

    for plain in (oc.ndarray(oc.f64, 5), np.zeros((2, 2), np.float32)):
        state = State(oc.ndarray(oc.f32, (2, 3)), oc.Vector.ndarray(2, oc.i32, 4))
        fill(state, plain, 1)
        assert (state.v.to_numpy() == 0).all()
        fill(state, plain, 3)
        assert (state.x.to_numpy() == 3).all() and (state.v.to_numpy() == [3, 1]).all()
        assert (np.asarray(plain) == 1.5).all()


def test_fill_views(arch):
    a = oc.ndarray(oc.i32, 8)

    @oc.kernel
    def fill(v: oc.BufferView[oc.i32]):
        v.fill(3)
        w = v[1:3]
        w.fill(5)

    fill(a[2:7])
    assert a.to_numpy().tolist() == [0, 0, 3, 5, 5, 3, 3, 0]


def test_fill_in_a_real_function(arch):
    @oc.real_func
    def clear(a: oc.types.ndarray(dtype=oc.i32, ndim=1), value: oc.i32) -> oc.i32:
        a.fill(value)
        return value

    @oc.kernel
    def run(a: oc.types.ndarray(dtype=oc.i32, ndim=1)) -> oc.i32:
        return clear(a, 4)

    a = oc.ndarray(oc.i32, 5)
    assert run(a) == 4
    assert a.to_numpy().tolist() == [4] * 5


def test_fill_at_the_top_level_is_a_parallel_loop():
    x = oc.field(oc.f32, shape=64)

    @oc.kernel
    def top():
        x.fill(1)

    @oc.kernel
    def nested(yes: oc.i32):
        if yes:
            x.fill(1)

    top()
    nested(1)
    assert "parallel_for" in top.dump("ir")
    assert "parallel_for" not in nested.dump("ir")


def test_fill_with_a_value_of_another_shape_is_refused():
    v = oc.Vector.field(2, oc.f32, shape=3)
    s = oc.Struct.field({"a": oc.i32, "b": oc.f32}, shape=3)

    @oc.kernel
    def too_long():
        v.fill(oc.Vector([1.0, 2.0, 3.0]))

    @oc.kernel
    def lacks_one():
        s.fill(oc.Struct(a=1))

    @oc.kernel
    def two_values():
        v.fill(1, 2)

    for kernel, code in ((too_long, "OC0315"), (lacks_one, "OC0319"), (two_values, "OC0610")):
        with pytest.raises(oc.OctantsCompilationError, match=code) as caught:
            kernel()
        assert "test_fill.py" in str(caught.value) and "_array_methods" not in str(caught.value)
    assert (v.to_numpy() == 0).all()
