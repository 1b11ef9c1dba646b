"""Arrays that the threads of a block share: what they consist of, how they are passed, what is known of them, what is refused."""

import numpy as np
import pytest

import octants as oc
from octants.simt import block

vec2 = oc.types.vector(2, oc.f32)


@oc.dataclass
class Particle:
    pos: vec2
    hits: oc.i32
    mass: oc.f64

    @oc.func
    def momentum(self):
        return self.pos * oc.cast(self.mass, oc.f32)


Inner = oc.types.struct(lo=oc.f32, hi=oc.f32)
Outer = oc.types.struct(box=Inner, count=oc.u8)


# ---- elements --------------------------------------------------------------------------------------------------------------


def test_structs(arch):
    @oc.kernel
    def go(out: oc.types.NDArray[oc.f64, 2]):
        oc.loop_config(block_dim=32)
        for i in range(64):
            lane = i % 32
            sh = block.SharedArray(32, Particle)
            sh[lane] = Particle(pos=vec2(lane, 2 * lane), hits=0, mass=i)
            block.sync()
            other = sh[31 - lane]
            out[i, 0] = other.momentum().y
            block.sync()
            sh[lane // 4].hits += 1
            oc.atomic_max(sh[0].mass, 100.0 + lane)
            sh[lane // 8].pos.y += 1.0
            block.sync()
            out[i, 1] = sh[lane].hits
            out[i, 2] = sh[0].mass
            out[i, 3] = sh[lane].pos[1]

    out = np.zeros((64, 4))
    go(out)
    lane = np.arange(64) % 32
    assert (out[:, 0] == 2 * (31 - lane) * (np.arange(64) // 32 * 32 + 31 - lane)).all()
    assert (out[:, 1] == np.where(lane < 8, 4, 0)).all() and (out[:, 2] == 131).all()
    assert (out[:, 3] == 2 * lane + np.where(lane < 4, 8, 0)).all()


def test_structs_of_structs(arch):
    @oc.func
    def widen(sh, i, by):
        sh[i].box.lo -= by
        sh[i].box.hi += by

    @oc.kernel
    def go(out: oc.types.NDArray[oc.f32, 2]):
        oc.loop_config(block_dim=32)
        for i in range(32):
            sh = block.SharedArray((2, 16), Outer)
            at = sh[i // 16, i % 16]
            sh[i // 16, i % 16] = Outer(box=Inner(lo=i, hi=i + 1), count=200 + i)
            block.sync()
            widen_all(sh, i)
            block.sync()
            mine = sh[i // 16, i % 16]
            out[i, 0], out[i, 1], out[i, 2] = mine.box.lo, mine.box.hi, mine.count
            out[i, 3] = sh.box.hi[0, i % 16] + sh.shape[1] + len(sh)

    @oc.func
    def widen_all(sh, i):
        sh[i // 16, i % 16].box.lo -= 2.0
        sh.box.hi[i // 16, i % 16] += 2.0
        sh.count[i // 16, i % 16] += oc.u8(1)

    out = np.zeros((32, 4), np.float32)
    go(out)
    i = np.arange(32)
    assert (out[:, 0] == i - 2).all() and (out[:, 1] == i + 3).all() and (out[:, 2] == (201 + i) % 256).all()
    assert (out[:, 3] == i % 16 + 3 + 18).all()


@pytest.mark.parametrize("name", ["f16", "i8", "u8", "i16", "u16", "u1"])
def test_narrow_elements_keep_their_neighbours(arch, name):
    dtype = getattr(oc, name)
    vec = oc.types.vector(3, dtype)

    @oc.kernel
    def go(x: oc.types.NDArray[oc.i32, 1], out: oc.types.NDArray[oc.i32, 2]):
        oc.loop_config(block_dim=64)
        for i in range(64):
            line = block.SharedArray(65, dtype)
            vectors = block.SharedArray(64, vec)
            line[i] = oc.cast(x[i], dtype)
            for j in oc.static(range(3)):
                vectors[i][j] = oc.cast(x[(i + j) % 64], dtype)
            block.sync()
            out[i, 0] = oc.cast(line[63 - i], oc.i32)
            out[i, 1] = oc.cast(vectors[63 - i].z, oc.i32)

    x = np.random.default_rng(0).integers(0, 2 if name == "u1" else 100, 64).astype(np.int32)
    out = np.zeros((64, 2), np.int32)
    go(x, out)
    assert (out[:, 0] == x[::-1]).all() and (out[:, 1] == np.roll(x, -2)[::-1]).all()


@pytest.mark.parametrize("name", ["i8", "u16", "f16", "i64", "f64"])
def test_atomics_on_components_and_narrow_elements(arch, name):
    dtype = getattr(oc, name)
    mat = oc.types.matrix(2, 2, dtype)

    @oc.kernel
    def go(out: oc.types.NDArray[oc.i32, 2]):
        oc.loop_config(block_dim=32)
        for i in range(32):
            line = block.SharedArray(8, dtype)
            m = block.SharedArray((2,), mat)
            if i < 8:
                line[i] = oc.cast(0, dtype)
            if i < 2:
                m[i] = mat(0)
            block.sync()
            line[i % 8] += oc.cast(i % 3, dtype)
            oc.atomic_max(m[1][0, 1], oc.cast(i, dtype))
            m[0][i % 2, 1] += oc.cast(1, dtype)
            m[1][1, 0] -= oc.cast(1, dtype)
            block.sync()
            out[i, 0] = oc.cast(line[i % 8], oc.i32)
            out[i, 1] = oc.cast(m[1][0, 1], oc.i32)
            out[i, 2] = oc.cast(m[0][0, 1], oc.i32)
            out[i, 3] = oc.cast(-m[1][1, 0], oc.i32) % 65536

    out = np.zeros((32, 4), np.int32)
    go(out)
    i = np.arange(32)
    sums = np.bincount(i % 8, i % 3)
    assert (out[:, 0] == sums[i % 8]).all() and (out[:, 1] == 31).all() and (out[:, 2] == 16).all()
    assert (out[:, 3] == 32).all()


def test_whole_vectors_are_added_entry_by_entry(arch):
    @oc.kernel
    def go(out: oc.types.NDArray[vec2, 1]):
        oc.loop_config(block_dim=32)
        for i in range(32):
            sh = block.SharedArray(2, vec2)
            if i < 2:
                sh[i] = vec2(0)
            block.sync()
            sh[i % 2] += vec2(1, i)
            block.sync()
            if i < 2:
                out[i] = sh[i]

    out = oc.Vector.ndarray(2, oc.f32, 2)
    go(out)
    assert (out.to_numpy() == [[16, 240], [16, 256]]).all()


# ---- shapes ----------------------------------------------------------------------------------------------------------------

N = 4


@pytest.mark.parametrize("shape", [24, (24,), [4, 6], (2, 3, 4), np.int64(24), (np.int32(4), 6)], ids=repr)
def test_shapes(arch, shape):
    extents = [int(n) for n in np.atleast_1d(shape)]

    @oc.kernel
    def go(out: oc.types.NDArray[oc.i32, 1]):
        oc.loop_config(block_dim=32)
        for i in range(32):
            sh = block.SharedArray(shape, oc.i32)
            if i < 24:
                if oc.static(len(extents) == 1):
                    sh[i] = i
                elif oc.static(len(extents) == 2):
                    sh[i // 6, i % 6] = i
                else:
                    sh[i // 12, i // 4 % 3, i % 4] = i
            block.sync()
            total = 0
            for I in oc.grouped(sh):
                total = 2 * total + sh[I]
            out[i] = total + len(sh.shape)
            oc.static_assert(len(sh) == extents[0] and sh.shape[-1] == extents[-1] and sh.dtype == oc.i32)

    out = np.zeros(32, np.int32)
    go(out)
    total = 0
    for i in range(24):
        total = 2 * total + i
    assert (out == total + len(extents)).all()


def test_shapes_are_calculated_while_compiling(arch):
    @oc.kernel
    def go(out: oc.types.NDArray[oc.i32, 1], wide: oc.template(), n: oc.template()):
        oc.loop_config(block_dim=oc.static(2 * N))
        for i in range(2 * N):
            a = block.SharedArray((oc.static(N if wide else 1), n // 2, N + 1), oc.i32)
            b = block.SharedArray(a.shape, oc.i32)
            c = block.SharedArray(a.shape[0] * len(b) + 1, oc.i32)
            out[i] = a.shape[0] * 100 + a.shape[1] * 10 + b.shape[2] + 1000 * c.shape[0]

    out = np.zeros(2 * N, np.int32)
    for wide in (True, False):
        go(out, wide, 7)
        first = N if wide else 1
        assert (out == first * 100 + 30 + N + 1 + 1000 * (first * first + 1)).all()


# ---- names, funcs, blocks of the program -----------------------------------------------------------------------------------


def test_funcs_take_them_with_and_without_annotations(arch):
    @oc.func
    def plain(sh, i):
        sh[i] += 1

    @oc.func
    def template(sh: oc.template(), i):
        sh[i] += 10

    @oc.func
    def array(sh: oc.types.NDArray[oc.i32, 1], i: oc.i32):
        sh[i] += 100
        plain(sh, i)

    @oc.kernel
    def go(out: oc.types.NDArray[oc.i32, 1]):
        oc.loop_config(block_dim=32)
        for i in range(32):
            sh = block.SharedArray(32, oc.i32)
            sh[i] = 0
            plain(sh, i)
            template(sh, i)
            array(sh, i=i)
            out[i] = sh[i]

    out = np.zeros(32, np.int32)
    go(out)
    assert (out == 112).all()


def test_a_func_has_arrays_of_its_own_for_each_size(arch):
    @oc.func
    def rotated(value, n: oc.template()):
        sh = block.SharedArray(n, oc.i32)
        lane = block.thread_idx()
        if lane < n:
            sh[lane] = value
        block.sync()
        result = sh[(lane + 1) % n]
        block.sync()
        return result

    @oc.kernel
    def go(out: oc.types.NDArray[oc.i32, 2]):
        oc.loop_config(block_dim=32)
        for i in range(32):
            out[i, 0] = rotated(i, 32) + 100 * rotated(i, 8)
            total = 0
            for k in range(3):
                total = rotated(total + i, 16)
                if k == 1:
                    extra = block.SharedArray(4, oc.i32)
                    if i == 0:
                        extra[3] = 1000
                    block.sync()
                    total += extra[3]
            out[i, 1] = total

    out = np.zeros((32, 2), np.int32)
    go(out)
    i = np.arange(32)
    assert (out[:, 0] == (i + 1) % 32 + 100 * ((i + 1) % 8)).all()
    total = 0 * i
    for k in range(3):
        total = (total + i)[(i + 1) % 16] + (1000 if k == 1 else 0)
    assert (out[:, 1] == total).all()


def test_names_go_from_one_array_to_another(arch):
    @oc.kernel
    def go(out: oc.types.NDArray[oc.i32, 2], first: oc.template()):
        oc.loop_config(block_dim=32)
        for i in range(32):
            a, b = block.SharedArray(32, oc.i32), block.SharedArray(32, oc.i32)
            sh = a
            sh[i] = i
            sh = b
            sh[i] = 100 + i
            chosen = a if oc.static(first) else b
            a, b = b, a
            block.sync()
            out[i, 0], out[i, 1], out[i, 2] = chosen[31 - i], sh[31 - i], a[31 - i]

    for first in (True, False):
        out = np.zeros((32, 3), np.int32)
        go(out, first)
        i = np.arange(32)
        assert (out[:, 0] == 31 - i + (0 if first else 100)).all()
        assert (out[:, 1] == 131 - i).all() and (out[:, 2] == 131 - i).all()


# ---- what is refused -------------------------------------------------------------------------------------------------------

BAD = [
    ("sh[i, 0] = 1", IndexError, "rank 1"),
    ("x = plane[i]", IndexError, "rank 2"),
    ("x = plane[i, 0, 0]", IndexError, "rank 2"),
    ("sh[0.5] = 1", TypeError, "integers"),
    ("x = sh[oc.cast(i, oc.f32)]", TypeError, "integers"),
    ("sh[-1] = 1", oc.OctantsSyntaxError, "Negative indices"),
    ("sh[32] = 1", IndexError, "out of range of axis 0"),
    ("x = plane[3, 9]", IndexError, "out of range of axis 1"),
    ("sh[oc.i32(-1)] = 1", IndexError, "out of range"),
    ("x = structs[40].hits", IndexError, "out of range"),
    ("x = structs[0, 0].hits", IndexError, "rank 1"),
    ("x = structs[0].weight", oc.OctantsCompilationError, "`weight`"),
    ("x = structs.weight[0]", oc.OctantsCompilationError, "`weight`"),
    ("x = structs + 1", TypeError, "used as a value"),
    ("x = sh + 1", TypeError, "used as a value"),
    ("sh = 1", TypeError, "cannot be assigned again"),
    ("sh += 1", TypeError, "cannot be assigned again"),
    ("if i > 3:\n            sh = other", TypeError, "cannot be assigned again"),
    ("x = deep(sh, i)", TypeError, "real function `deep`"),
    ("x = deeper(sh, i)", TypeError, "real function `deeper`"),
    ("x = block.SharedArray(4, oc.types.vector(3))", TypeError, ""),
]


@pytest.mark.parametrize("statement,error,text", BAD, ids=[statement for statement, _, _ in BAD])
def test_mistakes(arch, tmp_path, statement, error, text):
    program = tmp_path / "program.py"
    program.write_text(
        "import octants as oc\n"
        "from octants.simt import block\n"
        "S = oc.types.struct(hits=oc.i32, mass=oc.f32)\n"
        "@oc.real_func\n"
        "def deep(a: oc.types.NDArray[oc.i32, 1], i: oc.i32) -> oc.i32:\n"
        "    return a[i]\n"
        "@oc.real_func\n"
        "def deeper(a: oc.template(), i: oc.i32) -> oc.i32:\n"
        "    return a[i]\n"
        "@oc.kernel\n"
        "def go():\n"
        "    oc.loop_config(block_dim=32)\n"
        "    for i in range(32):\n"
        "        sh, other = block.SharedArray(32, oc.i32), block.SharedArray(32, oc.i32)\n"
        "        plane, structs = block.SharedArray((4, 9), oc.i32), block.SharedArray(32, S)\n"
        f"        {statement}\n"
    )
    names = {"__name__": "program", "__file__": str(program)}
    exec(compile(program.read_text(), str(program), "exec"), names)
    with pytest.raises(error) as raised:
        names["go"]()
    line = 16 + statement.count("\n")
    assert text in str(raised.value) and f"{program}:{line}:" in str(raised.value)
