"""Sparse nodes: activation, loops, lists, recycling, host access, and what is refused."""

import numpy as np
import pytest

import octants as oc

pytestmark = [pytest.mark.host_access]


@pytest.fixture(autouse=True)
def on_every_device(arch):
    """No test of this file leaves a device out."""


def count_of(x):
    @oc.kernel
    def count() -> oc.i32:
        n = 0
        for _ in oc.grouped(x):
            n += 1
        return n

    return count()


def test_a_loop_does_not_visit_what_it_makes():
    x, y, z = oc.field(oc.i32), oc.field(oc.i32), oc.field(oc.i32)
    oc.root.pointer(oc.i, 64).dense(oc.i, 2).place(x)
    oc.root.dense(oc.i, 8).bitmasked(oc.i, 16).place(y)
    lists = oc.root.dense(oc.i, 4).dynamic(oc.j, 64, chunk_size=4)
    lists.place(z)

    @oc.kernel
    def begin():
        for i in range(3):
            x[i * 40] = 1
            y[i * 40] = 1
            oc.append(lists, [i], 1)

    @oc.kernel
    def grow():
        for i in x:
            x[(i + 2) % 128] += 1
        for i in y:
            y[(i + 1) % 128] += 1
        for i, j in z:
            oc.append(lists, [i], 1)
            oc.append(lists, [3], 1)

    begin()
    grow()
    assert (count_of(x), count_of(y), count_of(z)) == (12, 6, 9)
    assert x.to_numpy().sum() == 3 + 6 and y.to_numpy().sum() == 3 + 3
    grow()
    assert (count_of(x), count_of(y), count_of(z)) == (18, 9, 27)


def test_a_cell_that_many_iterations_write_first_is_made_once():
    x = oc.field(oc.i32)
    outer = oc.root.pointer(oc.ij, 16)
    inner = outer.pointer(oc.ij, 4)
    inner.dense(oc.ij, 4).place(x)
    n = 4096

    @oc.kernel
    def touch():
        for k in range(n):
            x[(k * 7) % 256, (k * 13) % 256] += 1

    touch()
    expected = np.zeros((256, 256), np.int32)
    k = np.arange(n)
    np.add.at(expected, ((k * 7) % 256, (k * 13) % 256), 1)
    assert np.array_equal(x.to_numpy(), expected)
    blocks = expected.reshape(16, 16, 16, 16).any(axis=(1, 3)).sum()
    assert outer._num_dynamically_allocated == blocks
    assert inner._num_dynamically_allocated == expected.reshape(64, 4, 64, 4).any(axis=(1, 3)).sum()


def test_the_root_gives_up_the_cells_of_all_trees():
    x = oc.field(oc.i32)
    oc.root.pointer(oc.i, 4).dense(oc.i, 2).place(x)
    x[3] = 5
    y, builder = oc.field(oc.i32), oc.FieldsBuilder()
    builder.bitmasked(oc.i, 4).place(y)
    builder.finalize()
    y[1] = 4
    oc.root.deactivate_all()
    assert count_of(x) == count_of(y) == 0
    assert not x.to_numpy().any()


def test_numbers_of_the_host_wrap_as_in_dense_fields():
    x, dense = oc.field(oc.u8), oc.field(oc.u8, 3)
    oc.root.pointer(oc.i, 3).place(x)
    for one in x, dense:
        one[0], one[1], one[2] = -1, 256 + 7, np.int64(-2)
    assert x.to_numpy().tolist() == dense.to_numpy().tolist() == [255, 7, 254]


def test_memory_is_bounded_over_many_rebuilds():
    x, y = oc.field(oc.f32), oc.field(oc.i32)
    outer = oc.root.pointer(oc.i, 16)
    inner = outer.pointer(oc.i, 4)
    inner.dense(oc.i, 4).place(x)
    lists = outer.dynamic(oc.j, 100, chunk_size=2)
    lists.place(y)

    @oc.kernel
    def build(step: oc.i32):
        for i in range(64):
            x[(i * 4 + step * 16) % 256] = 1.0
            oc.append(lists, [i % 16], i)

    @oc.kernel
    def drop():
        for i in outer:
            oc.deactivate(outer, [i])

    most = [0, 0, 0]
    for step in range(40):
        build(step)
        assert x.to_numpy().sum() == 64 and y.to_numpy().sum() == 64 * 63 // 2
        found = [node._num_dynamically_allocated for node in (outer, inner, lists)]
        if step == 0:
            most = found
        assert found == most
        if step % 2:
            drop()
        else:
            oc.deactivate_all_snodes()
        assert count_of(x) == 0 and count_of(y) == 0
        assert not x.to_numpy().any() and not y.to_numpy().any()


def test_lists_grow_at_their_end_and_keep_their_elements():
    x, v = oc.field(oc.i32), oc.Vector.field(2, oc.f32)
    lists = oc.root.pointer(oc.i, 8).dynamic(oc.j, 1000, chunk_size=8)
    lists.place(x)
    pairs = oc.root.dynamic(oc.i, 256, chunk_size=16)
    pairs.place(v)
    old = oc.field(oc.i32, shape=300)

    @oc.kernel
    def fill():
        for n in range(300):
            old[n] = oc.append(lists, n % 3, n)
        for n in range(100):
            oc.append(pairs, [], oc.Vector([n, 2.0 * n]))

    @oc.kernel
    def lengths(out: oc.types.ndarray(oc.i32, 1)):
        for i in range(8):
            out[i] = oc.length(lists, i)
        out[8] = oc.length(pairs, [])

    fill()
    out = np.zeros(9, np.int32)
    lengths(out)
    assert out.tolist() == [100, 100, 100, 0, 0, 0, 0, 0, 100]
    found = x.to_numpy()
    assert sorted(found[:3, :100].ravel().tolist()) == list(range(300)) and not found[3:].any()
    assert sorted(v.to_numpy()[:100, 1].tolist()) == [2.0 * n for n in range(100)]
    olds = old.to_numpy()
    assert all(sorted(olds[k::3].tolist()) == list(range(100)) for k in range(3))
    x[5, 20] = 9
    lengths(out)
    assert out[5] == 21 and x[5, 20] == 9 and x[5, 3] == 0
    assert count_of(x) == 321

    @oc.kernel
    def drop():
        for i in range(2):
            oc.deactivate(lists, i)

    drop()
    lengths(out)
    assert out[:3].tolist() == [0, 0, 100] and count_of(x) == 121


def test_structs_matrices_offsets_and_the_host():
    Particle = oc.types.struct(pos=oc.types.vector(3, oc.f32), mass=oc.f32)
    s, m, soa = Particle.field(), oc.Matrix.field(2, 2, oc.f32), oc.field(oc.i16)
    block = oc.root.pointer(oc.ij, 4)
    block.bitmasked(oc.ij, 4).place(s)
    block.dense(oc.ij, 4).place(m, offset=(-8, -8))
    block.dense(oc.ij, 4).place(soa, offset=(-8, -8))
    s[3, 5] = Particle(pos=[1, 2, 3], mass=4)
    m[-8, 7] = oc.Matrix([[1, 2], [3, 4]])
    m[-8, 7][0, 1] = 9
    assert s[3, 5].mass == 4 and s[3, 5].pos[2] == 3 and s[0, 0].mass == 0
    assert m[-8, 7][0, 1] == 9 and m[0, 0][0, 0] == 0 and soa[-8, 7] == 0
    got = s.to_numpy()
    assert got["mass"].sum() == 4 and got["pos"].shape == (16, 16, 3) and got["pos"][3, 5].tolist() == [1, 2, 3]
    assert m.to_numpy().sum() == 17 and m.to_numpy()[0, 15].tolist() == [[1, 9], [3, 4]]
    s.mass.fill(2)
    assert s.to_numpy()["mass"].sum() == 2
    dense = oc.Matrix.field(2, 2, oc.f32, shape=(16, 16), offset=(-8, -8))
    dense.copy_from(m)
    assert np.array_equal(dense.to_numpy(), m.to_numpy())
    m.from_numpy(np.ones((16, 16, 2, 2), np.float32))
    # Two blocks are there: that of (3, 5), and that of (-8, 7).
    assert m.to_numpy().sum() == 2 * 16 * 4
    assert oc.sparse.usage(s.mass) == 1 / 256

    @oc.kernel
    def shift():
        for I in oc.grouped(m):
            m[I] = m[I] @ m[I]
            soa[I] = oc.cast(I[0], oc.i16)

    shift()
    assert m.to_numpy().sum() == 2 * 16 * 8
    assert sorted(set(soa.to_numpy().ravel().tolist())) == [-8, -7, -6, -5, 0]


@pytest.mark.filterwarnings("ignore:axis")
def test_bits_and_cells_are_told_apart():
    x, y = oc.field(oc.f32), oc.field(oc.f32)
    block = oc.root.pointer(oc.i, 8)
    bits = block.bitmasked(oc.i, 40)
    bits.place(x, y)

    @oc.kernel
    def on():
        for i in range(10):
            oc.activate(bits, i * 32)
        x[3] = 1.0

    @oc.kernel
    def states() -> oc.types.vector(3, oc.i32):
        a, b = 0, 0
        for i in range(320):
            if oc.is_active(bits, [i]):
                a += 1
        for i in range(8):
            if oc.is_active(block, i):
                b += 1
        return oc.Vector([a, b, oc.rescale_index(x, block, oc.Vector([85]))[0]])

    @oc.kernel
    def off():
        for i in x:
            if i % 64 == 0:
                oc.deactivate(bits, i)

    on()
    assert states().to_list() == [11, 8, 2]
    x.fill(3)
    off()
    assert states().to_list() == [6, 8, 2]
    assert x.to_numpy().sum() == 18 and x[0] == 0
    bits.deactivate_all()
    assert states().to_list() == [0, 8, 2] and count_of(block) == 8
    block.deactivate_all()
    assert states().to_list() == [0, 0, 2]


def test_addresses_are_those_of_the_elements():
    x = oc.field(oc.f64)
    oc.root.pointer(oc.i, 4).dense(oc.i, 4).place(x)
    x[5] = 1

    @oc.kernel
    def addresses() -> oc.types.vector(3, oc.u64):
        return oc.Vector([oc.get_addr(x, [5]), oc.get_addr(x, [6]), oc.get_addr(x, [0])])

    first, second, none = addresses().to_list()
    assert second - first == 8 and none == 0


def test_loops_in_order_and_in_branches():
    x, y = oc.field(oc.i32), oc.field(oc.i32)
    block = oc.root.pointer(oc.i, 32)
    block.dense(oc.i, 4).place(x)
    oc.root.pointer(oc.i, 32).dense(oc.i, 4).place(y)
    order = oc.field(oc.i32, shape=4)

    @oc.kernel
    def first():
        oc.loop_config(serialize=True)
        for i in range(16):
            x[i * 8] = 1
        total = 0
        oc.loop_config(serialize=True)
        for i in x:
            total += x[i]
            if total == 3:
                break
        order[0] = total
        for _ in range(1):
            for i in x:
                order[1] += x[i]

    @oc.kernel
    def both():
        with oc.stream_parallel():
            for i in x:
                x[i] += 1
                if i % 16 == 0:
                    oc.deactivate(block, i // 4)
            for i in x:
                order[2] += 1
        with oc.stream_parallel():
            for i in range(128):
                y[i] = i
            for i in y:
                order[3] += 1

    first()
    assert order.to_numpy().tolist()[:2] == [3, 16]
    both()
    assert order.to_numpy().tolist() == [3, 16, 32, 128]
    assert block._num_dynamically_allocated == 16
    first()
    assert block._num_dynamically_allocated == 16 and count_of(x) == 64


def test_a_kernel_takes_fields_of_many_trees():
    @oc.kernel
    def double(x: oc.template()):
        for i in x:
            x[i] *= 2

    fields = []
    for kind in ("pointer", "bitmasked", "dense"):
        x = oc.field(oc.i32)
        getattr(oc.root, kind)(oc.i, 4).dense(oc.i, 4).place(x)
        fields.append(x)
    for number, x in enumerate(fields):
        x[5] = number + 1
    for x in fields:
        double(x)
    assert [x[5] for x in fields] == [2, 4, 6]


def test_functions_of_the_kernels_own_make_cells():
    x = oc.field(oc.i32)
    oc.root.pointer(oc.i, 64).place(x)

    @oc.real_func
    def spread(i: oc.i32) -> oc.i32:
        x[i] += 1
        return x[i]

    @oc.kernel
    def run() -> oc.i32:
        total = 0
        for i in range(10):
            total += spread(i * 3)
        for i in x:
            total += spread(i + 1)
        return total

    assert run() == 20
    assert count_of(x) == 20


def test_what_is_wrong_is_refused():
    x = oc.field(oc.i32)
    lists = oc.root.dense(oc.i, 2).dynamic(oc.j, 4, chunk_size=2)
    lists.place(x)
    y = oc.field(oc.f32)
    blocks = oc.root.pointer(oc.i, 4)
    blocks.dense(oc.i, 4).place(y)

    @oc.kernel
    def overfull():
        for _ in range(1):
            for n in range(6):
                oc.append(lists, [1], n)

    with pytest.raises(RuntimeError, match="append to a full list: it has room for 4"):
        overfull()
        oc.sync()
    assert x.to_numpy()[1].tolist() == [0, 1, 2, 3]

    def use(function):
        oc.kernel(function)()

    def active():
        oc.is_active(lists, [1])

    def appended():
        oc.append(blocks, [1], 2)

    def long():
        oc.length(blocks, [1])

    def dense():
        oc.activate(y.parent(), [1])

    for function, kinds in [(active, "pointer, hash or bitmasked"), (appended, "dynamic"), (long, "dynamic")]:
        with pytest.raises(oc.OctantsTypeError, match=f"only works on {kinds} nodes"):
            use(function)
    with pytest.raises(oc.OctantsTypeError, match="sparse nodes"):
        use(dense)
    builder = oc.FieldsBuilder()
    for wrong, message in [
        (lambda: builder.dynamic(oc.ij, 8), "exactly one axis"),
        (lambda: builder.dynamic(oc.i, 8).pointer(oc.j, 4), "cannot lie below a dynamic one"),
        (lambda: builder.dynamic(oc.i, 8).dense(oc.i, 4), "cannot be cut again"),
        (lambda: builder.dense(oc.i, 8).dynamic(oc.i, 4), "standalone"),
        (lambda: builder.dynamic(oc.i, 8, chunk_size=0), "at least one"),
        (lambda: builder.pointer(oc.i, 0), "positive"),
    ]:
        with pytest.raises((oc.OctantsRuntimeError, ValueError), match=message):
            wrong()
    with pytest.raises(AttributeError):
        builder.hash(oc.i, 4)


def test_a_tree_that_is_gone_is_refused():
    builder = oc.FieldsBuilder()
    x = oc.field(oc.f32)
    blocks = builder.pointer(oc.i, 4)
    blocks.dense(oc.i, 4).place(x)
    tree = builder.finalize()

    @oc.kernel
    def write():
        x[3] = 1.0

    @oc.kernel
    def activate():
        oc.activate(blocks, [1])

    write()
    activate()
    tree.destroy()
    for use in (write, activate, lambda: x[3], lambda: x.to_numpy(), blocks.deactivate_all):
        with pytest.raises(RuntimeError, match="destroyed"):
            use()


def test_an_index_outside_is_told_in_debug_mode(arch):
    oc.init(arch=getattr(oc, arch), debug=True)
    x = oc.field(oc.f32)
    blocks = oc.root.pointer(oc.i, 4)
    blocks.dense(oc.i, 4).place(x)

    @oc.kernel
    def write(i: oc.i32):
        x[i] = 1.0

    @oc.kernel
    def activate(i: oc.i32):
        oc.activate(blocks, [i])

    write(15)
    activate(3)
    for use, index in [(write, 16), (activate, 4), (activate, -1)]:
        with pytest.raises(AssertionError, match="Out of bound access"):
            use(index)
            oc.sync()
    with pytest.raises(AssertionError):
        x[16]
    assert count_of(x) == 4


def test_a_list_of_values_is_appended_to_several_fields():
    a, b = oc.field(oc.i32), oc.field(oc.f32)
    lists = oc.root.dynamic(oc.i, 8)
    lists.place(a, b)

    @oc.kernel
    def fill():
        for i in range(3):
            oc.append(lists, [], [7, 2.5])
            oc.append(lists, [], (7, 2.5))

    fill()
    assert a.to_numpy().tolist() == [7] * 6 + [0] * 2
    assert b.to_numpy().tolist() == [2.5] * 6 + [0] * 2


def test_lists_have_methods():
    x = oc.field(oc.f32)
    oc.root.dense(oc.i, 4).dynamic(oc.j, 64).place(x)

    @oc.kernel
    def fill() -> oc.i32:
        total = 0
        for i in range(4):
            for n in range(i + 1):
                total += x[i].append(n)
        return total

    @oc.kernel
    def longest() -> oc.i32:
        most = 0
        for i in range(4):
            most = max(most, x[i].length())
        return most

    @oc.kernel
    def drop():
        for i in range(4):
            if i > 1:
                x[i].deactivate()

    assert fill() == 0 + 1 + 3 + 6
    assert longest() == 4
    drop()
    assert longest() == 2 and count_of(x) == 3


def test_a_field_that_is_one_list_is_appended_to_by_its_name():
    numbers, pairs = oc.field(oc.i32), oc.Vector.field(2, oc.f32)
    Edge = oc.types.struct(length=oc.f32, to=oc.math.vec2)
    edges, many = Edge.field(), oc.field(oc.i32)
    for field in (numbers, pairs, edges):
        oc.root.dynamic(oc.i, 64, chunk_size=8).place(field)
    oc.root.pointer(oc.i, 4).dynamic(oc.j, 8).place(many)

    @oc.kernel
    def refill(n: oc.i32) -> oc.types.vector(3, oc.i32):
        numbers.deactivate()
        pairs.deactivate()
        edges.deactivate()
        for i in range(n):
            numbers.append(i)
            pairs.append(oc.Vector([i, 2.0]))
            edges.append(Edge(length=i, to=oc.math.vec2(i, 1)))
        return oc.Vector([numbers.length(), pairs.length(), edges.length()])

    for n in (10, 4):
        assert refill(n).to_list() == [n] * 3
    assert sorted(numbers.to_numpy()[:5]) == [0, 0, 1, 2, 3]
    assert sorted(edges.length.to_numpy()[:4]) == [0, 1, 2, 3] and edges.to.to_numpy()[:5, 1].tolist() == [
        1,
        1,
        1,
        1,
        0,
    ]

    @oc.kernel
    def lists_of_lists():
        many.append(1)

    with pytest.raises(oc.OctantsCompilationError, match=r"\[OC0409\].*append"):
        lists_of_lists()


def test_lists_of_a_field_that_begins_elsewhere():
    x, y = oc.field(oc.i32), oc.field(oc.i32)
    oc.root.dense(oc.i, 4).dynamic(oc.j, 8).place(x, offset=(-2, 0))
    oc.root.pointer(oc.j, 4).dynamic(oc.i, 8).place(y, offset=(0, 5))

    @oc.kernel
    def fill():
        for i in range(4):
            for n in range(i + 1):
                x[i - 2].append(10 * i + n)
                y[i + 5].append(10 * i + n)

    @oc.kernel
    def lengths() -> oc.types.vector(2, oc.i32):
        return oc.Vector([x[1].length(), y[7].length()])

    fill()
    assert lengths().to_list() == [4, 3]
    assert x[1, 3] == 33 and x[-2, 0] == 0 and x[-1, 1] == 11 and y[2, 7] == 22
    assert np.array_equal(x.to_numpy(), y.to_numpy().T)


def test_a_loop_over_a_node_of_one_cell_visits_it():
    x, y = oc.field(oc.i32), oc.field(oc.i32)
    one = oc.root.bitmasked(oc.i, 1)
    one.place(x)
    oc.root.pointer(oc.i, 1).bitmasked(oc.j, 1).place(y)

    @oc.kernel
    def run(other: oc.i32):
        for i in x:
            x[(i + other) % 1] += 1
        for i, j in y:
            y[(i + other) % 1, j] += 1

    run(0)
    assert x[0] == 0 and y[0, 0] == 0
    x[0], y[0, 0] = 5, 6
    for _ in range(2):
        run(0)
    assert (x[0], y[0, 0]) == (7, 8)


def test_what_lies_in_the_cell_of_the_root_has_an_address():
    x, y, z = oc.field(oc.f32), oc.field(oc.f32), oc.field(oc.f32)
    oc.root.bitmasked(oc.ij, 4).place(x)
    oc.root.pointer(oc.i, 4).place(y)
    oc.root.dense(oc.ij, 4).place(z)
    x[0, 1] = y[1] = 1

    @oc.kernel
    def addresses(out: oc.types.ndarray(oc.u64, 1)):
        out[0] = oc.get_addr(x, [0, 1])
        out[1] = oc.get_addr(x, [0, 2])
        out[2] = oc.get_addr(z, [0, 0])
        out[3] = oc.get_addr(y, [1])
        out[4] = oc.get_addr(y, [2])

    out = np.zeros(5, np.uint64)
    addresses(out)
    assert out[:4].all() and out[1] - out[0] == 4 and out[4] == 0


def test_a_task_makes_again_what_it_gave_up():
    x, y = oc.field(oc.i32), oc.field(oc.i32)
    blocks = oc.root.pointer(oc.i, 8)
    blocks.dense(oc.i, 2).place(x)
    lists = oc.root.dense(oc.i, 8).dynamic(oc.j, 6, chunk_size=2)
    lists.place(y)

    @oc.kernel
    def renew(value: oc.i32):
        for i in range(8):
            oc.deactivate(blocks, i)
            x[2 * i] = value
            oc.deactivate(lists, i)
            for n in range(6):
                oc.append(lists, i, value + n)

    for value in range(1, 4):
        renew(value)
        assert x.to_numpy().tolist() == [value, 0] * 8
        assert y.to_numpy().tolist() == [list(range(value, value + 6))] * 8
    # Those that were given up in the last task, and those that were made in it.
    assert blocks._num_dynamically_allocated == 16


def test_threads_that_set_the_same_are_no_race(recwarn):
    x = oc.field(oc.i32)
    oc.root.bitmasked(oc.i, 1).dense(oc.i, 8).place(x)
    flag = oc.field(oc.i32, shape=())

    @oc.kernel
    def fill():
        for i in range(8):
            x[i] = i
            if flag[None] == 0:
                flag[None] = 1

    fill()
    assert flag[None] == 1 and x.to_numpy().tolist() == list(range(8))
    assert not [told for told in recwarn if "OC1007" in str(told.message)]

    @oc.kernel
    def number():
        for i in range(8):
            if flag[None] == 0:
                flag[None] = i

    with pytest.warns(UserWarning, match="OC1007"):
        number()


def test_a_loop_that_makes_cells_below_the_only_one_of_a_node_is_no_race(recwarn):
    x, seen = oc.field(oc.i32), oc.field(oc.i32, 8)
    bits = oc.root.bitmasked(oc.i, 1).bitmasked(oc.i, 8)
    bits.place(x)

    @oc.kernel
    def spread() -> oc.i32:
        count = 0
        for i in bits:
            seen[i] += 1
            count += 1
            oc.activate(bits, i * 2 % 8)
        return count

    assert spread() == 0
    x[3] = 5
    assert [spread() for _ in range(4)] == [1, 2, 3, 4]
    assert seen.to_numpy().tolist() == [1, 0, 0, 4, 2, 0, 3, 0]
    assert not [told for told in recwarn if "OC1007" in str(told.message)]


def test_a_cell_that_is_given_up_in_an_inner_loop_is_made_again():
    x, y, z = oc.field(oc.i32), oc.field(oc.i32), oc.field(oc.i32)
    cells, bits, blocks = oc.root.pointer(oc.i, 4), oc.root.bitmasked(oc.i, 4), oc.root.pointer(oc.i, 4)
    cells.place(x)
    bits.place(y)
    blocks.dense(oc.i, 2).place(z)

    @oc.func
    def drop(i):
        oc.deactivate(blocks, i // 2)

    @oc.kernel
    def assign():
        for i in x:
            for n in range(2):
                x[i] = 7
                if n == 0:
                    oc.deactivate(cells, i)

    @oc.kernel
    def add():
        for i in y:
            n = 0
            while n < 2:
                y[i] += 7
                if n == 0:
                    oc.deactivate(bits, i)
                n += 1

    @oc.kernel
    def add_and_call():
        for i in z:
            for n in range(2):
                z[i] += i + 1
                if n == 0 and i % 2 == 0:
                    drop(i)

    x[1], y[2], z[4] = 1, 1, 1
    assign()
    add()
    add_and_call()
    assert x.to_numpy().tolist() == [0, 7, 0, 0] and y.to_numpy().tolist() == [0, 0, 7, 0]
    assert z[4] == 5 and oc.sparse.usage(z) == 0.25


def test_assignments_that_reduce_are_atomic():
    x, y = oc.field(oc.i32), oc.field(oc.f32)
    oc.root.pointer(oc.i, 8).dense(oc.i, 4).place(x)
    oc.root.pointer(oc.ij, 4).bitmasked(oc.ij, 2).place(y)
    n = 400_000 if oc.cfg.arch in (oc.cpu, oc.cuda) else 1000

    @oc.kernel
    def reduce(k: oc.i32):
        for i in range(n):
            x[0] = x[0] + 1
            x[k] = x[k] + 2
            x[5] = 2 + x[5]
            x[9] = x[9] - i % 3
            x[17] = max(x[17], i)
            y[3, 1] = y[3, 1] + 1.0

    @oc.kernel
    def in_order() -> oc.i32:
        x[30] = x[30] + 5
        x[30] = x[30] * x[30]
        x[30] = 100 - x[30]
        return x[30]

    reduce(13)
    assert [x[k] for k in (0, 5, 9, 13, 17)] == [n, 2 * n, -sum(i % 3 for i in range(n)), 2 * n, n - 1]
    assert y[3, 1] == n
    assert in_order() == 75


def test_neighbours_that_share_a_cell_see_it_made_by_the_first():
    x, y, was = oc.field(oc.i32), oc.field(oc.f32), oc.field(oc.i32, 8192)
    blocks = oc.root.pointer(oc.i, 2048)
    blocks.dense(oc.i, 4).place(x)
    oc.root.pointer(oc.ij, (8, 128)).dense(oc.ij, (2, 16)).place(y)

    @oc.kernel
    def ask_first():
        oc.loop_config(serialize=True)
        for k in range(8192):
            was[k] = oc.is_active(blocks, [k // 4])
            x[k] = k

    @oc.kernel
    def fill(a: oc.f32):
        for k in range(8192):
            x[k] += 1
        for i, j in oc.ndrange(16, 2048):
            y[i, j] = a + i * 2048 + j

    fill(0.5)
    assert (x.to_numpy() == 1).all()
    assert (y.to_numpy() == 0.5 + np.arange(16 * 2048, dtype=np.float32).reshape(16, 2048)).all()
    assert count_of(x) == 8192 and count_of(y) == 16 * 2048
    blocks.deactivate_all()
    assert count_of(x) == 0
    ask_first()
    assert (was.to_numpy() == (np.arange(8192) % 4 != 0)).all()
    assert (x.to_numpy() == np.arange(8192)).all()


def test_neighbours_in_other_blocks_are_found_from_all_ends_of_a_row():
    x, y = oc.field(oc.i32), oc.field(oc.i32)
    oc.root.pointer(oc.ij, 12).dense(oc.ij, 16).place(x, y)
    rng = np.random.default_rng(4)
    there = np.kron(rng.random((12, 12)) < 0.6, np.ones((16, 16), dtype=bool))
    there[:16] = there[-16:] = there[:, :16] = there[:, -16:] = False
    values = np.where(there, rng.integers(1, 1000, there.shape), 0).astype(np.int32)

    @oc.kernel
    def begin(values: oc.types.ndarray(dtype=oc.i32, ndim=2)):
        for i, j in values:
            if values[i, j] > 0:
                x[i, j] = values[i, j]

    @oc.kernel
    def step() -> oc.i32:
        total = 0
        for i, j in x:
            y[i, j] = x[i - 1, j] + 2 * x[i + 1, j] + 4 * x[i, j - 1] + 8 * x[i, j + 1] - x[i, j - 3]
            total += x[i, j + 2]
        return total

    begin(values)
    total = step()
    away = {(a, b): np.roll(values, (-a, -b), (0, 1)) for a, b in [(-1, 0), (1, 0), (0, -1), (0, 1), (0, -3), (0, 2)]}
    expected = away[-1, 0] + 2 * away[1, 0] + 4 * away[0, -1] + 8 * away[0, 1] - away[0, -3]
    assert (y.to_numpy() == np.where(there, expected, 0)).all()
    assert total == away[0, 2][there].sum()
