"""Elements of sparse fields: structs, matrices, offsets, addresses, functions, many trees, and what the host sets and reads."""

import numpy as np
import pytest
from sparse_kernels import count_of

import octants as oc

pytestmark = [pytest.mark.host_access]


@pytest.fixture(autouse=True)
def on_every_device(arch):
    """No test of this file leaves a device out."""


def test_numbers_of_the_host_wrap_as_in_dense_fields():
    x, dense = oc.field(oc.u8), oc.field(oc.u8, 3)
    oc.root.pointer(oc.i, 3).place(x)
    for one in x, dense:
        one[0], one[1], one[2] = -1, 256 + 7, np.int64(-2)
    assert x.to_numpy().tolist() == dense.to_numpy().tolist() == [255, 7, 254]


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


@pytest.mark.filterwarnings("ignore:axis")
@pytest.mark.parametrize("sparse", [(True, True), (True, False), (False, True)])
@pytest.mark.parametrize("offsets", [(0, 0), (-5, 7), (3, 0)])
def test_a_copy_has_the_elements_of_its_source(sparse, offsets):
    fields = []
    for is_sparse, offset in zip(sparse, offsets, strict=True):
        x = oc.field(oc.i32)
        outer = oc.root.pointer(oc.i, 4) if is_sparse else oc.root.dense(oc.i, 4)
        outer.dense(oc.i, 3).place(x, offset=offset)
        fields.append(x)
    for x, offset, first in zip(fields, offsets, (1, 2), strict=True):
        for i in (first, 4, 11 if first == 1 else 6):
            x[offset + i] = 100 * first + i
    target, source = fields
    before = source.to_numpy()
    target.copy_from(source)
    assert target.to_numpy().tolist() == before.tolist() == [0, 0, 202, 0, 204, 0, 206, 0, 0, 0, 0, 0]
    assert source.to_numpy().tolist() == before.tolist()
    # Blocks of both, of which the target had the last and the source the third.
    assert count_of(source) == (9 if sparse[1] else 12)
    assert count_of(target) == 12
