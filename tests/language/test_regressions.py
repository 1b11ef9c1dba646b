"""Programs that once went wrong, each as small as it can be."""

import platform
import subprocess
import sys

import numpy as np
import pytest

import octants as oc


@pytest.mark.no_device
def test_raw_division_and_logical_shift_of_numpy_integers_on_the_host():
    # The host took numpy's integers for reals, and every integer for one of 32 bits.
    quotient = oc.raw_div(np.int32(-7), np.int32(2))
    assert quotient == -3
    assert quotient.dtype == np.int32
    assert oc.raw_mod(np.int32(-7), np.int32(2)) == -1
    assert oc.bit_shr(np.int8(-1), np.int8(1)) == 127
    assert oc.bit_shr(np.int64(-1), 1) == 2**63 - 1


def test_views_are_checked_inside_real_functions(arch):
    # The message named the index of the caller's loop, which the function cannot see.
    array = oc.types.ndarray(dtype=oc.i32, ndim=1)

    @oc.real_func
    def second(x: array, i: oc.i32) -> oc.i32:
        part = oc.BufferView(x, i, 2)
        return part[1]

    @oc.kernel
    def run(x: array, n: oc.i32) -> oc.i32:
        total = 0
        for i in range(n):
            total += second(x, i)
        return total

    oc.init(arch=getattr(oc, arch), debug=True, log_level="error")
    x = np.arange(8, dtype=np.int32)
    assert run(x, 3) == 6
    with pytest.raises(oc.OctantsAssertionError, match="construction Out Of Range.*offset=7, size=2, ndarray length=8"):
        run(x, 8)


@pytest.mark.no_device
def test_lists_of_unsigned_integers_of_64_bits_keep_their_digits():
    # numpy makes reals of a list with integers above and below 2**63.
    big = 2**64 - 1
    assert oc.Vector([big, 3], dt=oc.u64).to_list() == [big, 3]
    assert oc.Matrix([[big, 0], [np.uint64(big), np.int64(7)]], dt=oc.u64).to_list() == [[big, 0], [big, 7]]
    assert oc.types.vector(2, oc.u64)([big, -1]).to_list() == [big, big]
    with pytest.raises(oc.OctantsTypeError, match="must fit in 64 bits"):
        oc.Vector([2**64, 1])


def test_one_iteration_sees_its_own_stores_through_both_names_of_an_array(arch):
    # The vectoriser was told that no iteration needs another's results, and took accesses of the same iteration for independent, too.
    vectors = oc.types.ndarray(dtype=oc.types.vector(4, oc.i32), ndim=1)

    @oc.kernel
    def run(v: vectors, w: vectors, a: vectors):
        for i in range(64):
            v[i] = a[i]
            w[i] = oc.Vector([1, 2, 3, 4])
            v[i][2] = w[i][0]

    v, a = np.zeros((64, 4), np.int32), np.arange(256, dtype=np.int32).reshape(64, 4)
    run(v, v, a)
    assert (v == [1, 2, 1, 4]).all()


def test_an_entry_of_a_field_in_parts_is_chosen_at_run_time(arch):
    # Such an entry could be read, but not written.
    v = oc.Vector.field(3, oc.i32, shape=6, layout=oc.Layout.SOA)
    m = oc.Matrix.field(2, 3, oc.f32, shape=6, layout=oc.Layout.SOA)

    @oc.real_func
    def doubled(x: oc.ref(oc.f32)):
        x *= 2

    @oc.kernel
    def run():
        for i in v:
            v[i][i % 3] = i + 1
            v[i][(i + 1) % 3] += 10
            v[i][(i + 1) % 3] *= v[i][i % 3]
            m[i][i % 2, i % 3] = v[i][i % 3]
            doubled(m[i][i % 2, i % 3])

    run()
    vectors, matrices = np.zeros((6, 3), np.int32), np.zeros((6, 2, 3), np.float32)
    for i in range(6):
        vectors[i, i % 3], vectors[i, (i + 1) % 3] = i + 1, 10 * (i + 1)
        matrices[i, i % 2, i % 3] = 2 * (i + 1)
    assert (v.to_numpy() == vectors).all() and (m.to_numpy() == matrices).all()


def test_round_on_the_host_adds_no_half(arch):
    # A half added to the number before 0.5, or to a large odd one, is rounded itself.
    @oc.kernel
    def run(x: oc.f64) -> oc.f64:
        return oc.round(x)

    oc.init(arch=getattr(oc, arch), default_fp=oc.f64, fast_math=False, log_level="error")
    for x in (0.49999999999999994, -0.49999999999999994, 2.0**52 + 1, -(2.0**52) - 1, 0.5, -0.5, 2.5, -2.5, 0.0, 1e300):
        assert oc.round(np.float64(x)) == run(x), x
    for real in (np.float16, np.float32):
        assert oc.round(real(-2.5)) == -3 and oc.round(real(-2.5)).dtype == real
    assert oc.round(oc.Vector([-0.5, 0.25, 1.5])).to_list() == [-1, 0, 2]
    assert oc.round(2.5, oc.i32) == 3 and oc.round(3) == 3


def test_a_constant_among_the_entries_of_a_matrix_is_kept(arch):
    # LLVM's vectoriser of straight-line code lost the 7.
    matrices = oc.types.ndarray(dtype=oc.types.matrix(3, 3, oc.i8), ndim=2)

    @oc.kernel
    def run(grid: matrices, a: oc.types.ndarray(dtype=oc.i8, ndim=1)):
        for i, j in oc.ndrange((1, 4), 3):
            b, x, y = a[6], oc.cast(i, oc.i8), oc.cast(j, oc.i8)
            limits = oc.Matrix([[b, b, x], [x, b, b], [b, b, b]], dt=oc.i8)
            values = oc.Matrix([[b, x, b], [y, b, b], [oc.cast(7, oc.i8), b, y]], dt=oc.i8)
            grid[i, j] -= oc.select((y | grid[i, j]) <= limits, values, grid[i, j])

    oc.init(arch=getattr(oc, arch), fast_math=False, log_level="error")
    grid = np.zeros((4, 3, 3, 3), np.int8)
    run(grid, np.full(8, 43, np.int8))
    assert (grid[1:, :, 2, 0] == -7).all()


@pytest.mark.host_devices("a process of its own; allocations of the host have a margin")
@pytest.mark.parametrize("shape", [(24, 24), (2048, 2048)], ids=str)
def test_a_row_beyond_the_edge_of_a_field_ends_no_process(shape, tmp_path):
    """Unchecked programs do that: the row is zeros, and what is written there is nobody else's."""
    program = tmp_path / "beyond.py"
    program.write_text(
        "import octants as oc\noc.init(log_level='error')\n"
        f"x, y = oc.field(oc.f32, {shape}), oc.field(oc.f32, {shape})\n\n\n"
        "@oc.kernel\ndef smooth(shift: oc.i32):\n"
        "    for i, j in x:\n        y[i + shift, j] = x[i - 1, j] + x[i + 1, j] + 1\n\n\n"
        "smooth(0)\nassert y.to_numpy().max() == 1 and y.to_numpy().min() == 1\n"
        "smooth(1)\nsmooth(-1)\nprint('alive', x.to_numpy().any())\n"
    )
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True)
    assert done.stdout == "alive False\n", (done.returncode, done.stderr)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="looks at instructions of x86-64")
@pytest.mark.no_device
def test_a_minimum_that_a_loop_carries_is_no_branch():
    # As a branch it was mispredicted where the data decides: edit distances took three times as long.
    oc.init(arch=oc.cpu, log_level="error", offline_cache=False)
    table = oc.field(oc.i32, (65, 65))

    @oc.kernel
    def distances(a: oc.types.NDArray[oc.i32, 1], b: oc.types.NDArray[oc.i32, 1]):
        oc.loop_config(serialize=True)
        for i in range(1, 65):
            for j in range(1, 65):
                change = 0 if a[i - 1] == b[j - 1] else 1
                left = oc.min(table[i - 1, j] + 1, table[i, j - 1] + 1)
                table[i, j] = oc.min(left, table[i - 1, j - 1] + change)

    letters = oc.ndarray(oc.i32, 64)
    distances(letters, letters)
    assert "cmov" in distances.dump("asm")
