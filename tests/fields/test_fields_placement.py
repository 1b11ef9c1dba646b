"""Fields from the host: layouts, placing, companions, builders, and when memory is freed."""

import gc
import threading
import warnings

import numpy as np
import pytest

import octants as oc

pytestmark = pytest.mark.host_access

vec3 = oc.types.vector(3, oc.f32)


# ---- layouts -----------------------------------------------------------------------------------------------------------------


@pytest.mark.host_devices("looks at the memory in place")
def test_order_changes_memory_and_nothing_else():
    x = oc.field(oc.i32, shape=(2, 3), order="ji")
    x.from_numpy(np.arange(6).reshape(2, 3))
    assert (x.layout, x.shape, x[1, 2]) == ((1, 0), (2, 3), 5)
    np.testing.assert_array_equal(x.to_numpy(), np.arange(6).reshape(2, 3))
    assert x.to_numpy(copy=False).strides == (4, 8)
    assert oc.field(oc.f32, shape=(2, 3, 4), order="kij").layout == (2, 0, 1)
    assert oc.field(oc.f32, shape=(2, 3), order="ij").layout is None


def test_sizes_and_offsets_of_a_tree():
    x, y, z = oc.field(oc.i16), oc.field(oc.f32), oc.field(oc.f64)
    v, m = oc.Vector.field(3, oc.f32), oc.Matrix.field(2, 2, oc.f64)
    first = oc.root.dense(oc.i, 32)
    first.place(x)
    second = oc.root.dense(oc.i, 32)
    second.place(y, z)
    third = oc.root.dense(oc.ij, (2, 3))
    third.place(v)
    fourth = third.dense(oc.i, 4)
    fourth.place(m)
    assert (first._cell_size_bytes, second._cell_size_bytes) == (2, 16)
    assert (first._offset_bytes_in_parent_cell, second._offset_bytes_in_parent_cell) == (0, 64)
    assert third._offset_bytes_in_parent_cell == 64 + 32 * 16
    assert z.snode._offset_bytes_in_parent_cell == 8
    assert [v.get_scalar_field(n).snode._offset_bytes_in_parent_cell for n in range(3)] == [0, 4, 8]
    assert (fourth._cell_size_bytes, fourth._offset_bytes_in_parent_cell) == (32, 16)
    assert third._cell_size_bytes == 16 + 4 * 32
    assert (v.shape, m.shape, fourth.shape) == ((2, 3), (8, 3), (8, 3))
    assert v.parent() == third and m.parent(2) == third and m.parent(3) == oc.root.parent(0) or m.parent(4) is None
    assert [child._kind for child in third._get_children()] == ["place", "place", "place", "dense"]
    assert third._path_from_root()[1] == third and fourth._path_from_root()[1:] == [third, fourth]
    assert str(m.snode) == "oc.root => dense [2, 3] => dense [8, 3] => place [8, 3]"
    assert len({node._id for node in (first, second, third, fourth, v.snode, m.snode)}) == 6


@pytest.mark.host_devices("looks at the memory in place")
def test_named_axes():
    assert repr(oc.ik) == "oc.ik" and oc.axes(0, 2) == oc.ik and repr(oc.axes(2, 0)) == "oc.axes(2, 0)"
    x = oc.field(oc.f32)
    oc.root.dense(oc.axes(1, 3), (2, 5)).place(x)
    assert x.shape == (2, 5)  # axes without extent are not there
    y = oc.field(oc.i32)
    oc.root.dense(oc.axes(1, 0), (3, 2)).place(y)
    assert y.shape == (2, 3)
    y.from_numpy(np.arange(6).reshape(2, 3))
    assert y.to_numpy(copy=False).strides == (4, 8)
    with pytest.raises(RuntimeError, match="at most 12"):
        oc.axes(12)
    with pytest.raises(TypeError):
        oc.axes("i")


@pytest.mark.parametrize(
    ("axes", "dimensions", "error", "text"),
    [
        (oc.i, 0, RuntimeError, "should be positive, got 0"),
        (oc.ij, (2, -3), RuntimeError, "got -3 in dimension 1"),
        (oc.i, 2.5, TypeError, "an extent is an integer"),
        (0, 3, TypeError, "oc.axes"),
        (oc.i, (2, 3), RuntimeError, "same size, but got 1 and 2"),
    ],
)
def test_bad_nodes(axes, dimensions, error, text):
    with pytest.raises(error, match=text):
        oc.root.dense(axes, dimensions)


def test_nodes_multiply_and_other_divisions_than_powers_of_two_warn():
    x = oc.field(oc.i32)
    with pytest.warns(UserWarning, match="axis i is cut again into 3"):
        oc.root.dense(oc.ij, (4, 5)).dense(oc.i, 3).dense(oc.j, 2).place(x)
    assert x.shape == (12, 10)
    numbers = np.arange(120).reshape(12, 10)
    x.from_numpy(numbers)
    np.testing.assert_array_equal(x.to_numpy(), numbers)
    assert all(x[i, j] == numbers[i, j] for i in range(12) for j in range(10))
    with pytest.raises(ValueError, match="Zero-copy not available"):
        x.to_numpy(copy=False)
    with pytest.raises(oc.OctantsRuntimeError, match="an index has 32 bits"):
        oc.root.dense(oc.i, 2**16).dense(oc.i, 2**16)


def test_hash_nodes_are_refused():
    with pytest.raises(RuntimeError, match="not supported"):
        oc.root.hash(oc.i, 4)


# ---- placing -----------------------------------------------------------------------------------------------------------------


def test_placed_once():
    x, v = oc.field(oc.f32, name="x"), oc.Vector.field(2, oc.f32)
    s = oc.Struct.field({"a": oc.f32, "b": oc.i32})
    oc.root.dense(oc.i, 4).place(x, v, s)
    for again in (x, v, v.get_scalar_field(0), s, s.a, oc.field(oc.f32, shape=2)):
        with pytest.raises(oc.OctantsRuntimeError, match="has been placed"):
            oc.root.dense(oc.i, 4).place(again)
    with pytest.raises(oc.OctantsRuntimeError, match="`x` made at .*test_fields_placement.py:[0-9]+ lies in"):
        oc.root.place(x)


def test_never_placed():
    x, v, s = oc.field(oc.f32, name="x"), oc.Vector.field(2, oc.f32), oc.Struct.field({"a": oc.f32})
    for field in (x, v, s, oc.field(oc.f32, shape=2).grad):
        for use in (lambda f: f[0], lambda f: f.to_numpy(), lambda f: f.fill(0), lambda f: f.shape, lambda f: f.snode):
            with pytest.raises(oc.OctantsRuntimeError, match="These field.s. are not placed.*has no allocation"):
                use(field)
    with pytest.raises(RuntimeError, match=r"`x` made at .*test_fields_placement.py:[0-9]+"):
        x[0]
    assert x.parent() is None


@pytest.mark.parametrize("kind", ["grad", "dual"])
def test_gradients_that_were_not_asked_for_say_whose_they_are(kind):
    x, v = oc.field(oc.f32, shape=3, name="x"), oc.Vector.field(2, oc.f32, shape=3)

    @oc.kernel
    def write(gradients: oc.template()):
        for i in gradients:
            gradients[i] = 1.0

    remedy = f"Make the field with `needs_{kind}=True`, or call `oc.root.lazy_{kind}"
    for field, name in ((x, "`x`"), (v, r"<oc.Vector.field\(2\) f32 \(3,\)>")):
        words = f"the `.{kind}` of {name}, which has no `needs_{kind}=True`.*{remedy}"
        for use in (lambda f: f[0], lambda f: f.to_numpy(), write):
            with pytest.raises(oc.OctantsRuntimeError, match=words):
                use(getattr(field, kind))
    getattr(oc.root, f"lazy_{kind}")()
    write(x.grad if kind == "grad" else x.dual)
    assert getattr(x, kind).to_numpy().tolist() == [1, 1, 1]


def test_what_cannot_be_placed():
    with pytest.raises(ValueError, match="3 cannot be placed"):
        oc.root.dense(oc.i, 4).place(3)
    with pytest.raises(oc.OctantsRuntimeError, match="1 axes, but the offset has 2"):
        oc.root.dense(oc.i, 4).place(oc.field(oc.f32), offset=(1, 2))
    x = oc.field(oc.f32)
    node = oc.root.dense(oc.i, 4).place(x)
    with pytest.raises(oc.OctantsRuntimeError, match="no cells"):
        x.snode.dense(oc.i, 2)
    oc.root.dense(oc.i, 3)  # nothing lies in it, and it takes no memory
    assert x[0] == 0
    with pytest.raises(oc.OctantsRuntimeError, match="FieldsBuilder finalized"):
        node.place(oc.field(oc.f32))


def test_entries_may_be_placed_apart():
    v = oc.Vector.field(2, oc.f32, name="v")
    oc.root.dense(oc.i, 3).place(v.get_scalar_field(0))
    with pytest.raises(oc.OctantsRuntimeError, match="not placed"):
        v[0]
    with pytest.raises(oc.OctantsRuntimeError, match="has been placed"):
        oc.root.dense(oc.i, 3).place(v)
    oc.root.dense(oc.i, 3).place(v.get_scalar_field(1))
    v[2] = [1, 2]
    assert v.get_scalar_field(1)[2] == 2 and v.shape == (3,)


@pytest.mark.parametrize(("extent", "offset", "text"), [(4, None, "different shapes"), (3, 1, "different offsets")])
def test_entries_that_do_not_go_together(extent, offset, text):
    v = oc.Vector.field(2, oc.f32)
    oc.root.dense(oc.i, 3).place(v.get_scalar_field(0))
    oc.root.dense(oc.i, extent).place(v.get_scalar_field(1), offset=offset)
    with pytest.raises(RuntimeError, match=text):
        v[0]


def test_members_that_do_not_go_together():
    s = oc.Struct.field({"a": oc.f32, "b": oc.f32})
    oc.root.dense(oc.i, 3).place(s.a)
    oc.root.dense(oc.i, 4).place(s.b)
    with pytest.raises(RuntimeError, match="different shapes: a .3,., b .4,."):
        s[0]


def test_entries_of_several_types():
    v = oc.Vector.field(2, [oc.f32, oc.i32], shape=2)
    v[0] = [1.5, 2.5]
    assert v[0].to_list() == [1.5, 2.0] and v.get_scalar_field(1).dtype is oc.i32
    v[0][1] = 7
    assert v.get_scalar_field(1)[0] == 7
    v.fill([0.5, 3])
    np.testing.assert_array_equal(v.to_numpy(), [[0.5, 3], [0.5, 3]])
    v.from_numpy(np.array([[1.5, 2.5], [3.5, 4.5]]))
    assert v.get_scalar_field(0).to_numpy().tolist() == [1.5, 3.5] and v.get_scalar_field(1).to_numpy().tolist() == [
        2,
        4,
    ]


def test_fields_share_nodes_and_trees_grow_between_uses():
    x, y = oc.field(oc.f32), oc.Vector.field(2, oc.i64)
    oc.root.dense(oc.i, 4).place(x, y)
    x[1] = 2
    y[1] = [3, 4]
    z = oc.field(oc.i8)  # the root begins a new tree
    oc.root.dense(oc.i, 2).place(z)
    z[0] = 5
    assert (x[1], y[1].to_list(), z[0]) == (2, [3, 4], 5)
    assert x.to_numpy().tolist() == [0, 2, 0, 0]
    y.fill(7)
    assert x.to_numpy().tolist() == [0, 2, 0, 0] and y.to_numpy().ravel().tolist() == [7] * 8


def test_sync_gives_memory_to_what_waits():
    x = oc.field(oc.f32)
    oc.root.dense(oc.i, 1024).place(x)
    before = oc._session.runtime.live_bytes
    oc.sync()
    assert oc._session.runtime.live_bytes - before == 4096


# ---- gradients ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["grad", "dual"])
def test_companions(kind):
    needs = {f"needs_{kind}": True}
    x = oc.field(oc.f32, shape=(2, 3), offset=(1, 1), name="x", **needs)
    companion = getattr(x, kind)
    assert getattr(x, f"has_{kind}")() and companion.shape == (2, 3) and companion is getattr(x, kind)
    companion[2, 3] = 4
    assert companion.to_numpy()[1, 2] == 4 and not x.to_numpy().any() and getattr(companion, kind) is None
    v = oc.Vector.field(3, oc.f64, shape=2, layout=oc.Layout.SOA, **needs)
    getattr(v, kind)[1] = [1, 2, 3]
    assert getattr(v.get_scalar_field(1), kind)[1] == 2
    s = oc.Struct.field({"a": oc.f32, "v": vec3}, shape=2, **needs)
    getattr(s, kind)[1].v = [1, 2, 3]
    assert getattr(s.v, kind)[1].to_list() == [1, 2, 3]
    plain = oc.field(oc.f32, shape=2)
    assert not getattr(plain, f"has_{kind}")() and getattr(oc.field(oc.i32, shape=2), kind) is None


@pytest.mark.parametrize("kind", ["grad", "dual"])
def test_lazy_companions(kind):
    x, v, n = oc.field(oc.f32, **{f"needs_{kind}": True}), oc.Vector.field(2, oc.f64), oc.field(oc.i32)
    shaped = oc.field(oc.f32, shape=3)
    node = oc.root.dense(oc.i, 4).place(x, v, n, offset=2)
    with pytest.raises(RuntimeError, match=f"requrie `needs_{kind}=True`.*{kind} field.s. are not placed"):
        x[2]
    getattr(oc.root, f"lazy_{kind}")()
    assert getattr(x, kind).parent() == node
    getattr(x, kind)[5] = 3
    getattr(v, kind)[5] = [1, 2]
    getattr(shaped, kind)[2] = 1
    assert x.to_numpy().tolist() == [0] * 4 and getattr(n, kind) is None


def test_companions_may_be_placed_by_hand():
    x = oc.field(oc.f32, needs_grad=True)
    oc.root.dense(oc.i, 4).place(x, x.grad)
    assert x.has_grad() and x.grad[0] == 0 and not x.has_dual()


# ---- builders ----------------------------------------------------------------------------------------------------------------


def test_builders():
    builder = oc.FieldsBuilder()
    x, v = oc.field(oc.f32), oc.Vector.field(2, oc.f32)
    node = builder.dense(oc.ij, (2, 3))
    node.place(x, v)
    with pytest.raises(oc.OctantsRuntimeError, match="not finalized"):
        x[0, 0]
    tree = builder.finalize()
    x[1, 2] = 3
    assert x[1, 2] == 3 and v.parent() == node
    for use in (
        builder.finalize,
        lambda: builder.dense(oc.i, 3),
        lambda: builder.place(oc.field(oc.f32)),
        lambda: node.dense(oc.k, 2),
    ):
        with pytest.raises(oc.OctantsRuntimeError, match="FieldsBuilder finalized"):
            use()
    tree.destroy()
    for use in (
        lambda: x[0, 0],
        lambda: v[0, 0],
        x.to_numpy,
        lambda: x.fill(1),
        tree.destroy,
    ):
        with pytest.raises(oc.OctantsRuntimeError, match="tree was destroyed"):
            use()
    assert x.shape == (2, 3)


def test_empty_builders_warn():
    with pytest.warns(UserWarning, match="empty FieldsBuilder"):
        oc.FieldsBuilder().finalize()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        oc.FieldsBuilder().finalize(raise_warning=False)


@pytest.mark.host_devices("numpy sees the host's memory alone")
def test_destroy_frees_what_no_view_holds():
    runtime = oc._session.runtime
    builder, x = oc.FieldsBuilder(), oc.field(oc.f64)
    builder.dense(oc.i, 1000).place(x)
    tree = builder.finalize()
    assert runtime.live_bytes == 8000
    view = x.to_numpy(copy=False)
    tree.destroy()
    view[:] = 1  # memory of its own now
    assert runtime.live_bytes == 8000 and view.sum() == 1000
    del view
    assert runtime.live_bytes == 0


@pytest.mark.host_devices("numpy sees the host's memory alone")
def test_views_keep_the_memory_alive():
    x = oc.field(oc.f64, shape=1000)
    view = x.to_numpy(copy=False)
    del x
    gc.collect()
    view[:] = 2
    assert view.sum() == 2000


def test_old_fields_refuse(fresh_session):
    x, v = oc.field(oc.f32, shape=2), oc.Vector.field(2, oc.f32, shape=2)
    element = v[0]
    waiting = oc.field(oc.f32)
    oc.root.dense(oc.i, 4).place(waiting)
    node = oc.root.dense(oc.j, 4)
    oc.reset()
    oc.init(arch=getattr(oc, fresh_session), log_level="error")
    for use in (lambda: x[0], lambda: v[0], x.to_numpy, lambda: x.fill(0), lambda: element[0], lambda: waiting[0]):
        with pytest.raises(oc.OctantsRuntimeError, match="belongs to a session that was reset"):
            use()
    late = oc.field(oc.f32)
    node.place(late)
    with pytest.raises(oc.OctantsRuntimeError, match="belongs to a session that was reset"):
        late[0]
    assert oc.field(oc.f32, shape=2)[0] == 0


def test_threads_may_use_a_field_first_at_the_same_time():
    for _ in range(30):
        x, s = oc.field(oc.i32), oc.Struct.field({"a": oc.f32, "v": vec3})
        v = oc.Vector.field(2, [oc.f32, oc.i32])
        oc.root.dense(oc.i, 8).place(x, s, v)
        start, failures = threading.Barrier(4), []

        def use(n, x=x, s=s, v=v, start=start, failures=failures):
            start.wait()
            try:
                x[n], s[n], v[n] = n, {"a": n, "v": [n, n, n]}, [n, n]
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=use, args=(n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failures and x.to_numpy().tolist()[:4] == s.a.to_numpy().tolist()[:4] == [0, 1, 2, 3]
        assert v[3].to_list() == [3, 3]


# ---- memory ------------------------------------------------------------------------------------------------------------------


def test_fields_are_freed_when_nothing_refers_to_them():
    runtime = oc._session.runtime
    before = runtime.live_bytes
    gc.disable()
    try:
        x = oc.field(oc.f32, shape=1000, needs_grad=True)
        v = oc.Vector.field(3, oc.f32, shape=1000, layout=oc.Layout.SOA)
        s = oc.Struct.field({"a": oc.f32, "v": vec3}, shape=1000)
        x[0], v[0], s[0], v.get_scalar_field(1)[0], s.v.get_scalar_field(1)[0]  # noqa: B018
        y = oc.field(oc.f32)
        oc.root.dense(oc.i, 1000).place(y)
        y[0] = 1
        assert runtime.live_bytes > before
        del x, v, s, y
        assert runtime.live_bytes == before
    finally:
        gc.enable()


@pytest.mark.host_devices("about the memory of the process")
def test_ten_thousand_fields_leave_the_process_flat():
    def resident():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * 4096

    def use(n):
        for i in range(n):
            x = oc.field(oc.f32, shape=1 + i % 1000)
            x[0] = 1
            if i % 10 == 0:
                builder, y = oc.FieldsBuilder(), oc.Vector.field(2, oc.f32)
                builder.dense(oc.i, 2).dense(oc.i, 1 << i % 8).place(y)
                tree = builder.finalize()
                y[0] = 1
                tree.destroy()

    use(2000)
    gc.collect()
    before = resident()
    use(10_000)
    gc.collect()
    assert resident() - before < 2 << 20
    assert oc._session.runtime.live_bytes == 0


def test_nodes_say_where_entries_lie_whatever_the_layout(arch):
    x = oc.Vector.field(2, oc.f32, layout=oc.Layout.SOA)
    y = oc.Struct.field({"a": oc.f32, "b": oc.i32}, layout=oc.Layout.SOA)
    oc.root.dense(oc.i, 3).place(x, y)
    x[1] = [3, 4]
    assert x.to_numpy().tolist() == [[0, 0], [3, 4], [0, 0]] and y.shape == (3,)
    assert x.get_scalar_field(0).parent() == y.a.parent() and y.a.parent()._cell_size_bytes == 16


def test_layouts_have_the_numbers_of_quadrants(arch):
    assert list(oc.Layout) == [0, 1, 2] and oc.Layout(1) is oc.Layout.SOA and oc.Layout.NULL == 2
    fields = [oc.Vector.field(2, oc.f32, 3, layout=layout) for layout in (1, 0, oc.Layout.NULL, None)]
    assert [field.get_scalar_field(0).parent()._cell_size_bytes for field in fields] == [4, 8, 8, 8]
    with pytest.raises(ValueError, match="layout is"):
        oc.Vector.field(2, oc.f32, 3, layout="soa")
