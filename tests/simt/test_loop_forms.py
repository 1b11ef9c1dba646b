"""What is said of a loop of blocks: `oc.loop_config` as simulators write it, in kernels and in funcs that they call."""

import dataclasses
import enum

import numpy as np
import pytest

import octants as oc
from octants.simt import block

BLOCK_DIM = 32
_K = 32
_W = 4


class Level(enum.IntEnum):
    NEVER = 0
    PARTIAL = 1
    ALL = 2


@dataclasses.dataclass(frozen=True)
class Config:
    threads: int = 64
    level: Level = Level.PARTIAL
    is_coop: bool = True


@oc.data_oriented
class Static:
    def __init__(self, threads, level):
        self.threads = threads
        self.level = level


def sizes(kernel, *args):
    x = np.zeros(256, np.int32)
    kernel(x, *args)
    return np.unique(x).tolist()


def test_compile_time_expressions(arch):
    config, solver, table = Config(), Static(128, Level.ALL), {"threads": 64}

    @oc.kernel
    def go(x: oc.types.NDArray[oc.i32, 1], which: oc.template(), given: oc.template()):
        if oc.static(which == 0):
            oc.loop_config(block_dim=BLOCK_DIM)
            for i in range(256):
                x[i] = block.sync_count_nonzero(1)
        elif oc.static(which == 1):
            oc.loop_config(block_dim=_K * _W)
            for i in range(256):
                x[i] = block.sync_count_nonzero(1)
        elif oc.static(which == 2):
            oc.loop_config(block_dim=given.threads)
            for i in range(256):
                x[i] = block.sync_count_nonzero(1)
        elif oc.static(which == 3):
            oc.loop_config(block_dim=config.threads if oc.static(config.is_coop) else 16)
            for i in range(256):
                x[i] = block.sync_count_nonzero(1)
        elif oc.static(which == 4):
            oc.loop_config(block_dim=oc.static(table["threads"] // 2))
            for i in range(256):
                x[i] = block.sync_count_nonzero(1)
        elif oc.static(which == 5):
            oc.loop_config(block_dim=oc.static(min(solver.threads, 96)))
            for i in range(192):
                x[i] = block.sync_count_nonzero(1)

    assert sizes(go, 0, solver) == [32] and sizes(go, 1, solver) == [128]
    assert sizes(go, 2, solver) == [128] and sizes(go, 2, config) == [64]
    assert sizes(go, 3, solver) == [64] and sizes(go, 4, solver) == [32]
    assert sizes(go, 5, solver) == [0, 96]


def test_a_member_that_changes_is_seen(arch):
    @oc.data_oriented
    class Solver:
        def __init__(self):
            self.threads = 32

        @oc.kernel
        def run(self, x: oc.types.NDArray[oc.i32, 1]):
            oc.loop_config(block_dim=self.threads)
            for i in range(256):
                x[i] = block.sync_count_nonzero(1)

    solver = Solver()
    for threads in (32, 64, 128, 16, 64):
        solver.threads = threads
        assert sizes(solver.run) == [threads]


@pytest.mark.parametrize("block_dim", [None, 32, np.int32(64)])
def test_everything_is_said_at_once(arch, block_dim):
    """A serial loop has no blocks, whatever else is said of it."""

    @oc.kernel
    def go(x: oc.types.NDArray[oc.i32, 1], config: oc.template()):
        oc.loop_config(name="sum_up", serialize=config.level < Level.PARTIAL, block_dim=block_dim)
        for i in range(256):
            if oc.static(config.level < Level.PARTIAL):
                x[i] = x[i - 1] + 1 if i > 0 else 1
            elif oc.static(block_dim is None):
                x[i] = -1
            else:
                x[i] = block.sync_count_nonzero(1)

    assert sizes(go, Static(1, Level.NEVER)) == list(range(1, 257))
    assert sizes(go, Static(1, Level.ALL)) == [-1 if block_dim is None else int(block_dim)]


@pytest.mark.parametrize("wrapped", [True, False])
def test_serialize_is_a_comparison(arch, wrapped):
    @oc.kernel
    def go(x: oc.types.NDArray[oc.i32, 1], config: oc.template()):
        oc.loop_config(
            serialize=oc.static(config.level < Level.PARTIAL) if oc.static(wrapped) else config.level < Level.PARTIAL
        )
        for i in range(256):
            x[i] = i

    assert sizes(go, Config(level=Level.NEVER)) == sizes(go, Config(level=Level.ALL)) == list(range(256))


def test_funcs_have_loops_of_their_own_with_what_is_said_there(arch):
    @oc.func
    def total(x, out, threads: oc.template(), is_coop: oc.template()):
        oc.loop_config(name="total", block_dim=oc.static(threads if is_coop else None))
        for i_flat in range(out.shape[0] * threads):
            tid, i_item = i_flat % threads, i_flat // threads
            if oc.static(is_coop):
                sh = block.SharedArray((threads,), oc.i32)
                sh[tid] = x[i_item * threads + tid]
                block.sync()
                if tid == 0:
                    for j in range(threads):
                        out[i_item] += sh[j]
            else:
                out[i_item] += x[i_flat]

    @oc.kernel
    def classes(x: oc.types.NDArray[oc.i32, 1], a: oc.types.NDArray[oc.i32, 1], b: oc.types.NDArray[oc.i32, 1]):
        for n in oc.static(range(2)):
            if oc.static(n == 0):
                total(x, a, 32, True)
                total(x, a, 32, False)
            else:
                total(x, b, threads=64, is_coop=True)

    x = np.arange(256, dtype=np.int32)
    a, b = np.zeros(8, np.int32), np.zeros(4, np.int32)
    classes(x, a, b)
    assert (a == 2 * x.reshape(8, 32).sum(1)).all() and (b == x.reshape(4, 64).sum(1)).all()


BAD = [
    ("block_dim=n", "`block_dim`"),
    ("block_dim=0", "`block_dim`"),
    ("block_dim=-32", "`block_dim`"),
    ("block_dim=32.0", "`block_dim`"),
    ('block_dim="32"', "`block_dim`"),
    ("serialize=n > 3", "`serialize`"),
    ("name=3", "`name`"),
    ("blockdim=32", "block_dim"),
]


@pytest.mark.parametrize("option,text", BAD, ids=[option for option, _ in BAD])
def test_what_loops_cannot_be_told(arch, tmp_path, option, text):
    program = tmp_path / "program.py"
    program.write_text(
        "import octants as oc\n"
        "@oc.kernel\n"
        "def go(n: oc.i32, x: oc.types.NDArray[oc.i32, 1]):\n"
        f"    oc.loop_config({option})\n"
        "    for i in range(32):\n"
        "        x[i] = 1\n"
    )
    names = {"__name__": "program", "__file__": str(program)}
    exec(compile(program.read_text(), str(program), "exec"), names)
    with pytest.raises(oc.OctantsCompilationError) as raised:
        names["go"](32, np.zeros(32, np.int32))
    assert text in str(raised.value) and f"{program}:4:" in str(raised.value)
