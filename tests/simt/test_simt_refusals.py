"""What blocks, subgroups and tiles refuse, and where they say it is."""

import inspect

import numpy as np
import pytest

import octants as oc
from octants.simt import Tile32x32, block, subgroup, warp


def refused(function, error, *arguments):
    """The text of what a kernel raises; it points at the line with ``# here``."""
    source, first = inspect.getsourcelines(function)
    (line,) = [first + at for at, text in enumerate(source) if "# here" in text]
    with pytest.raises(error) as raised:
        oc.kernel(function)(*arguments)
    text = str(raised.value)
    assert f"{__file__}:{line}:" in text, text
    return text


# ---- where blocks are ----------------------------------------------------------------------------------------------------


def test_outside_of_loops(arch):
    def go():
        block.sync()  # here

    assert "`simt.block.sync` stands in no parallel loop" in refused(go, oc.OctantsCompilationError)


def test_in_a_serial_loop(arch):
    def go():
        oc.loop_config(serialize=True)
        for i in range(32):
            subgroup.shuffle(i, 0)  # here

    assert "`simt.subgroup.shuffle` stands in no parallel loop" in refused(go, oc.OctantsCompilationError)


def test_in_a_real_function(arch):
    @oc.real_func
    def neighbour(x: oc.i32) -> oc.i32:
        return subgroup.shuffle_up(x, 1)

    def go():
        for i in range(32):
            neighbour(i)  # here

    text = refused(go, oc.OctantsCompilationError)
    assert "`simt.subgroup.shuffle_up` stands in no parallel loop" in text and "is passed what it needs" in text


def test_in_a_loop_over_a_field(arch):
    x = oc.field(oc.i32, 64)

    def go():
        for i in x:
            x[i] = block.thread_idx()  # here

    text = refused(go, oc.OctantsCompilationError)
    assert "`simt.block.thread_idx` stands in a loop over the elements of a field" in text


def test_in_a_loop_whose_threads_are_limited(arch):
    def go():
        oc.loop_config(parallelize=2)
        for _ in range(128):
            block.sync()  # here

    assert "a loop whose threads are limited" in refused(go, oc.OctantsCompilationError)


def test_tiles_outside_of_loops(arch):
    def go():
        Tile32x32.eye(dtype=oc.f32)  # here

    assert "stands in no parallel loop" in refused(go, oc.OctantsCompilationError)


def test_iterations_that_do_not_fill_their_blocks(arch):
    def of_blocks():
        oc.loop_config(block_dim=64)
        for _ in range(100):  # here
            block.sync()

    def of_subgroups():
        for i in range(40):  # here
            subgroup.reduce_add(i)

    assert "100 iterations are no whole number of blocks of 64 threads" in refused(of_blocks, ValueError)
    assert "40 iterations are no whole number of subgroups of 32 threads" in refused(of_subgroups, ValueError)


def test_an_ndrange_that_does_not_fill_its_blocks(arch):
    def go():
        oc.loop_config(block_dim=32)
        for _, _ in oc.ndrange(3, 5):  # here
            block.sync()

    assert "15 iterations are no whole number of blocks of 32 threads" in refused(go, ValueError)


def test_blocks_that_are_too_large(arch):
    def go():
        oc.loop_config(block_dim=2048)  # here
        for _ in range(2048):
            block.sync()

    assert "a block has at most 1024 threads, not 2048" in refused(go, oc.OctantsCompilationError)


# ---- shared arrays -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [0, -3, 4.5, (4, 0), (), "four", None])
def test_shapes_of_shared_arrays(arch, shape):
    if shape == ():
        pytest.skip("an array of one element")

    def go():
        oc.loop_config(block_dim=32)
        for _ in range(32):
            block.SharedArray(shape, oc.f32)  # here

    text = refused(go, ValueError)
    assert "the shape of a shared array is a positive integer or a tuple of such, known while compiling" in text


def test_shapes_that_only_the_launch_knows(arch):
    def go(n: oc.i32):
        oc.loop_config(block_dim=32)
        for _ in range(32):
            block.SharedArray((n, 2), oc.f32)  # here

    assert "known while compiling" in refused(go, ValueError, 4)


def test_types_of_shared_arrays(arch):
    def go():
        oc.loop_config(block_dim=32)
        for _ in range(32):
            block.SharedArray(4, "f32")  # here

    assert "expected a type, got a string" in refused(go, TypeError)


def test_shared_arrays_that_do_not_fit(arch):
    def alone():
        oc.loop_config(block_dim=32)
        for _ in range(32):
            block.SharedArray((512, 512), oc.f64)  # here

    def together():
        oc.loop_config(block_dim=32)
        for i in range(32):
            a = block.SharedArray((100, 256), oc.f32)  # here
            b = block.SharedArray((200, 256), oc.f32)
            a[0, i], b[0, i] = 1.0, 2.0
            block.sync()
            a[1, i] = b[0, 31 - i] + a[0, 31 - i]

    assert "and this array takes 2097152" in refused(alone, oc.OctantsCompilationError)
    assert "its arrays take 307200, 102400 of them here" in refused(together, oc.OctantsCompilationError)


# ---- arguments -----------------------------------------------------------------------------------------------------------


def test_blocks_of_no_whole_subgroups(arch):
    def go():
        oc.loop_config(block_dim=48)
        for i in range(96):
            block.reduce_add(i, 48, oc.i32)  # here

    text = refused(go, oc.OctantsCompilationError)
    assert "takes a block_dim that is a multiple of the subgroup's size, 32; it is 48" in text


def test_another_block_dim_than_the_loops(arch):
    def other():
        oc.loop_config(block_dim=64)
        for i in range(128):
            block.reduce_all_add(i, 128, oc.i32)  # here

    def unsaid():
        for i in range(128):
            block.inclusive_add(i, 32, oc.i32)  # here

    assert "takes the block_dim of the loop" in refused(other, oc.OctantsCompilationError)
    assert "here it is given 32" in refused(unsaid, oc.OctantsCompilationError)


@pytest.mark.parametrize("block_dim", [16, 48])
def test_blocks_with_a_part_of_a_tile(arch, block_dim):
    def go():
        oc.loop_config(block_dim=block_dim)
        for i in range(2 * block_dim):
            subgroup.reduce_add(i)  # here

    text = refused(go, oc.OctantsCompilationError)
    assert "the loop's block_dim is no whole number of tiles of 32 lanes" in text


@pytest.mark.parametrize("size", [6, -1])
def test_tiles_that_no_subgroup_has(arch, size):
    def go():
        for i in range(128):
            subgroup.inclusive_add_tiled(i, size)  # here

    text = refused(go, oc.OctantsCompilationError)
    assert f"tiles of a subgroup have 2**log2_size lanes, where log2_size is 0 to 5; it is {size}" in text


def test_ballots_of_more_lanes_than_there_are(arch):
    def go():
        for i in range(128):
            subgroup.ballot_first_n(i, 33)  # here

    assert "ballot_first_n takes 1 to 32 lanes, not 33" in refused(go, oc.OctantsCompilationError)


def test_digits_that_are_not_the_blocks(arch):
    def few():
        oc.loop_config(block_dim=64)
        for i in range(64):
            bins = block.SharedArray(64, oc.i32)
            block.radix_rank_match_atomic_or(oc.u32(i), 64, 5, 0, 5, bins, bins)  # here

    def wide():
        oc.loop_config(block_dim=64)
        for i in range(64):
            bins = block.SharedArray(64, oc.i32)
            block.radix_rank_match_atomic_or(oc.u32(i), 64, 6, 28, 6, bins, bins)  # here

    assert "with radix_bits=5 it is 64" in refused(few, oc.OctantsCompilationError)
    assert "here it is 6 bits from 28 on" in refused(wide, oc.OctantsCompilationError)


def test_what_lanes_cannot_exchange(arch):
    x = oc.field(oc.i32, 32)

    def field():
        for i in range(32):
            subgroup.shuffle(x, i)  # here

    def lane():
        for i in range(32):
            subgroup.shuffle(i, 1.5)  # here

    assert "a field is used as a value" in refused(field, TypeError)
    assert "a lane is an integer, not f32" in refused(lane, TypeError)


def test_upper_triangles(arch):
    def go():
        for _ in range(32):
            t = Tile32x32.eye(dtype=oc.f32)
            b = Tile32x32.zeros(dtype=oc.f32)
            t.solve_triangular_(b, lower=False)  # here

    text = refused(go, TypeError)
    assert "Tile32x32.solve_triangular_ solves with lower triangles only: lower=True" in text


def test_tiles_of_other_types(arch):
    def go():
        for _ in range(32):
            Tile32x32.zeros(dtype=oc.i32)  # here

    assert "tiles are of f32 or f64, not i32" in refused(go, TypeError)


@pytest.mark.no_device
def test_on_the_host():
    for name, call in {
        "simt.block.sync": block.sync,
        "simt.block.SharedArray": lambda: block.SharedArray(4, oc.f32),
        "simt.subgroup.shuffle": lambda: subgroup.shuffle(1, 2),
        "simt.grid.mem_fence": oc.simt.grid.mem_fence,
        "global_thread_idx": oc.global_thread_idx,
        "outer": lambda: oc.outer(1, 2),
    }.items():
        with pytest.raises(oc.OctantsSyntaxError, match=rf"oc\.{name} can only be used inside a kernel or func"):
            call()
    for name, call in {"reduce_add": lambda: subgroup.reduce_add(1), "ballot": lambda: warp.ballot(1)}.items():
        with pytest.raises(oc.OctantsSyntaxError, match=f"the func `{name}` was called from ordinary Python"):
            call()


# ---- what is seen while blocks run ---------------------------------------------------------------------------------------


def test_barriers_under_divergent_conditions(reporting):
    def condition():
        oc.loop_config(block_dim=64)
        for i in range(128):
            if i % 64 != 3:
                block.sync()  # here

    def left_loop():
        oc.loop_config(block_dim=32)
        for i in range(32):
            for j in range(10):
                if j == i:
                    break
                block.sync()  # here

    def skipped():
        oc.loop_config(block_dim=32)
        for i in range(32):
            if i > 3:
                continue
            block.sync()  # here

    def rounds():
        oc.loop_config(block_dim=32)
        for i in range(32):
            for _ in range(i):
                block.sync()  # here

    assert "a barrier that lane 3 of the block never reaches" in refused(condition, AssertionError)
    assert "a barrier that lane 0 of the block never reaches" in refused(left_loop, AssertionError)
    assert "a barrier that lane 4 of the block never reaches" in refused(skipped, AssertionError)
    assert "a barrier that lane 0 of the block never reaches" in refused(rounds, AssertionError)


@pytest.mark.no_device
def test_threads_part_around_a_barrier_that_none_of_them_reaches():
    """The interpreter runs it; where the first thread decides for all, they would go the wrong way."""

    def sides(x: oc.types.NDArray[oc.i32, 1], n: oc.i32):
        oc.loop_config(block_dim=64)
        for i in range(64):
            x[i] = 1
            if i < 32:
                for _ in range(n):
                    block.sync()  # here
            else:
                x[i] = 2

    def rounds(x: oc.types.NDArray[oc.i32, 1], n: oc.i32):
        oc.loop_config(block_dim=64)
        for i in range(64):
            for _ in range(i // 32 + 1):
                x[i] += 1
                if n > 0:
                    subgroup.sync()
                    block.sync()  # here

    def exchange(x: oc.types.NDArray[oc.i32, 1], n: oc.i32):
        oc.loop_config(block_dim=64)
        for i in range(64):
            x[i] = 1
            if i % 32 > 3:
                x[i] = 2
                if n > 0:
                    x[i] = subgroup.reduce_all_add(i)  # here

    wanted = [np.arange(64) // 32 + 1] * 2 + [(np.arange(64) % 32 > 3) + 1]
    texts = [
        "threads part at an `if` or a loop that has a barrier inside, which lane 32 of the block never reaches",
        "threads part at an `if` or a loop that has a barrier inside, which lane 0 of the block never reaches",
        "threads part at an `if` or a loop where lanes exchange values, and lane 0 of the subgroup is elsewhere",
    ]
    for function, result, text in zip((sides, rounds, exchange), wanted, texts, strict=True):
        oc.init(arch=oc.reference, log_level="error")
        x = np.zeros(64, np.int32)
        oc.kernel(function)(x, 0)
        assert (x == result).all()
        oc.init(arch=oc.cpu, debug=True, log_level="error")
        assert text in refused(function, AssertionError, np.zeros(64, np.int32), 0)


def test_votes_and_reductions_under_divergent_conditions(reporting):
    def vote():
        oc.loop_config(block_dim=64)
        for i in range(64):
            if i < 32:
                block.sync_count_nonzero(i)  # here

    def reduction():
        oc.loop_config(block_dim=64)
        for i in range(64):
            if i < 16:
                subgroup.reduce_add(i)  # here

    def barrier():
        oc.loop_config(block_dim=64)
        for i in range(64):
            if i % 2 == 0:
                subgroup.sync()  # here

    assert "lane 32 of the block" in refused(vote, AssertionError)
    assert "lanes exchange values, and lane 16 of the subgroup is elsewhere" in refused(reduction, AssertionError)
    assert "lane 1 of the subgroup" in refused(barrier, AssertionError)


def test_a_subgroup_may_be_elsewhere_than_the_block(reporting):
    @oc.kernel
    def go(x: oc.types.NDArray[oc.i32, 1]):
        oc.loop_config(block_dim=128)
        for i in range(128):
            if i // 32 == 2:
                x[i] = subgroup.reduce_all_add(i)
                subgroup.sync()

    x = np.zeros(128, np.int32)
    go(x)
    assert (x[64:96] == np.arange(64, 96).sum()).all() and (x[:64] == 0).all() and (x[96:] == 0).all()


def test_races(reporting):
    def read_too_early():
        oc.loop_config(block_dim=64)
        for i in range(64):
            sh = block.SharedArray(64, oc.i32)
            sh[i] = i
            sh[i] += sh[63 - i]  # here

    def written_too_early():
        oc.loop_config(block_dim=64)
        for i in range(64):
            sh = block.SharedArray(64, oc.i32)
            sh[i] = i
            block.sync()
            v = sh[63 - i]
            sh[i] = v  # here

    for go in (read_too_early, written_too_early):
        with pytest.raises(
            AssertionError, match="of a block touch the same element of shared memory without a barrier"
        ):
            oc.kernel(go)()


def test_lanes_that_are_not_there(reporting):
    def go():
        oc.loop_config(block_dim=16)
        for i in range(32):
            subgroup.shuffle(i, 20)  # here

    assert "lane 0 asks for the value of lane 20, which does not run" in refused(go, AssertionError)


def test_elements_that_are_not_there(reporting):
    oc.init(arch=oc.cfg.arch, debug=True, log_level="error")

    def go():
        oc.loop_config(block_dim=32)
        for i in range(32):
            sh = block.SharedArray((32, 2), oc.f32)
            sh[i + 1, 0] = 1.0  # here

    assert "index (32, 0) is out of bounds of `sh` with shape (32, 2)" in refused(go, AssertionError)


def test_a_number_of_iterations_that_only_the_launch_knows(arch):
    @oc.kernel
    def go(n: oc.i32):
        oc.loop_config(block_dim=64)
        for _ in range(n):
            block.sync()

    go(128)
    with pytest.raises(
        (AssertionError, RuntimeError), match="100 iterations are no whole number of blocks of 64 threads"
    ):
        go(100)
        oc.sync()


# ---- sessions without blocks on a CPU ------------------------------------------------------------------------------------


@pytest.fixture
def without_blocks():
    oc.init(arch=oc.cpu, simt_on_cpu=False, log_level="error")


def requires_a_gpu(function, error, *arguments):
    text = refused(function, error, *arguments)
    assert "requires a GPU backend" in text, text


@pytest.mark.no_device
def test_a_cpu_may_refuse_blocks(without_blocks):
    def barrier():
        for i in range(64):
            block.sync()  # here

    def count():
        for i in range(64):
            block.sync_count_nonzero(i)  # here

    def shared():
        for i in range(64):
            s = block.SharedArray(64, oc.i32)  # here
            s[i] = i

    def thread(x: oc.types.NDArray[oc.i32, 1]):
        for i in range(64):
            x[i] = block.global_thread_idx()  # here

    def fence():
        for i in range(64):
            oc.simt.grid.mem_fence()  # here

    for function in (barrier, count, shared, fence):
        requires_a_gpu(function, ValueError)
    requires_a_gpu(thread, ValueError, np.zeros(64, np.int32))


@pytest.mark.no_device
def test_a_cpu_may_refuse_subgroups_and_tiles(without_blocks):
    def exchange(x: oc.types.NDArray[oc.i32, 1]):
        for i in range(64):
            x[i] = subgroup.shuffle(x[i], 0)  # here

    def add(x: oc.types.NDArray[oc.i32, 1]):
        for i in range(64):
            x[i] = subgroup.reduce_all_add(x[i])  # here

    def tile():
        for i in range(64):
            t = Tile32x32.zeros()  # here
            t.cholesky_(1e-6)

    x = np.zeros(64, np.int32)
    requires_a_gpu(exchange, oc.OctantsCompilationError, x)
    requires_a_gpu(add, oc.OctantsCompilationError, x)
    requires_a_gpu(tile, oc.OctantsCompilationError)


@pytest.mark.no_device
def test_other_devices_have_blocks_whatever_is_said_of_cpus():
    oc.init(arch=oc.reference, simt_on_cpu=False, log_level="error")

    @oc.kernel
    def exchange(x: oc.types.NDArray[oc.i32, 1]):
        for i in range(64):
            x[i] = subgroup.shuffle(i, 0)

    x = np.zeros(64, np.int32)
    exchange(x)
    assert (x == np.arange(64) // 32 * 32).all()


@pytest.mark.no_device
def test_a_kernel_is_lowered_anew_where_blocks_are_refused():
    @oc.kernel
    def wait():
        oc.loop_config(block_dim=64)
        for i in range(64):
            block.sync()

    wait()
    oc.init(arch=oc.cpu, simt_on_cpu=False, log_level="error")
    with pytest.raises(ValueError, match="requires a GPU backend"):
        wait()
    oc.init(arch=oc.cpu, log_level="error")
    wait()
