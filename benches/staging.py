"""What staging parts of fields in shared memory would bring, as `oc.block_local` asks for: `python benches/staging.py`.

Each computation is written twice, once as programs write it and once with the tile of a block, and the elements around it, in a shared array. On a GPU the
cache of a core does the same for loops that only read; sums of many threads into neighbouring elements are what sharing is for, and are also written with the hint.
"""

import argparse
import time
from collections.abc import Callable

import octants as oc
from octants.simt import block

SIDE = 16
ROUNDS = 20


def least(call: Callable[[], object]) -> float:
    """Seconds of a launch, in the round that took least."""
    best = float("inf")
    call()
    for _ in range(ROUNDS):
        oc.sync()
        begin = time.perf_counter()
        call()
        oc.sync()
        best = min(best, time.perf_counter() - begin)
    return best


def box(n: int, radius: int) -> None:
    """The sum of a square of elements around each: every element is loaded by `(2 * radius + 1) ** 2` threads."""
    x, y = oc.field(oc.f32, (n, n)), oc.field(oc.f32, (n, n))
    x.fill(1.0)
    wide = SIDE + 2 * radius

    @oc.kernel
    def direct():
        for i, j in oc.ndrange((radius, n - radius), (radius, n - radius)):
            total = 0.0
            for a, b in oc.static(oc.ndrange((-radius, radius + 1), (-radius, radius + 1))):
                total += x[i + a, j + b]
            y[i, j] = total

    @oc.kernel
    def staged():
        oc.loop_config(block_dim=SIDE * SIDE)
        for thread in range(n * n):
            tile, own = thread // (SIDE * SIDE), thread % (SIDE * SIDE)
            row, column = tile // (n // SIDE) * SIDE, tile % (n // SIDE) * SIDE
            shared = block.SharedArray((wide, wide), oc.f32)
            at = own
            while at < wide * wide:
                i, j = row - radius + at // wide, column - radius + at % wide
                if 0 <= i < n and 0 <= j < n:
                    shared[at // wide, at % wide] = x[i, j]
                at += SIDE * SIDE
            block.sync()
            r, c = own // SIDE, own % SIDE
            i, j = row + r, column + c
            if radius <= i < n - radius and radius <= j < n - radius:
                total = 0.0
                for a, b in oc.static(oc.ndrange(2 * radius + 1, 2 * radius + 1)):
                    total += shared[r + a, c + b]
                y[i, j] = total

    report(f"sums of {2 * radius + 1} x {2 * radius + 1} elements", direct, staged, 8 * n * n)


def scatter(n: int, each: int) -> None:
    """Points that lie in order of the cells, some in each, add to the nine cells around theirs."""
    grid = oc.field(oc.f32, (n, n))
    wide = SIDE + 2

    @oc.kernel
    def direct():
        for i, j, _ in oc.ndrange(n, n, each):
            for a, b in oc.static(oc.ndrange(3, 3)):
                oc.atomic_add(grid[oc.min(oc.max(i + a - 1, 0), n - 1), oc.min(oc.max(j + b - 1, 0), n - 1)], 1.0)

    @oc.kernel
    def hinted():
        oc.block_local(grid)
        for i, j, _ in oc.ndrange(n, n, each):
            for a, b in oc.static(oc.ndrange(3, 3)):
                oc.atomic_add(grid[oc.min(oc.max(i + a - 1, 0), n - 1), oc.min(oc.max(j + b - 1, 0), n - 1)], 1.0)

    @oc.kernel
    def staged():
        oc.loop_config(block_dim=SIDE * SIDE)
        for thread in range(n * n):
            tile, own = thread // (SIDE * SIDE), thread % (SIDE * SIDE)
            row, column = tile // (n // SIDE) * SIDE, tile % (n // SIDE) * SIDE
            shared = block.SharedArray((wide, wide), oc.f32)
            at = own
            while at < wide * wide:
                shared[at // wide, at % wide] = 0.0
                at += SIDE * SIDE
            block.sync()
            for _ in range(each):
                for a, b in oc.static(oc.ndrange(3, 3)):
                    oc.atomic_add(shared[own // SIDE + a, own % SIDE + b], 1.0)
            block.sync()
            at = own
            while at < wide * wide:
                i, j = oc.min(oc.max(row - 1 + at // wide, 0), n - 1), oc.min(oc.max(column - 1 + at % wide, 0), n - 1)
                oc.atomic_add(grid[i, j], shared[at // wide, at % wide])
                at += SIDE * SIDE

    report(f"{each} points a cell into 9 cells", direct, staged, 4 * n * n * each, hinted)


def leaves(n: int, side: int) -> None:
    """Cells of a sparse tree add to those around them, most of which lie in the same leaf."""
    x, y = oc.field(oc.f32), oc.field(oc.f32)
    oc.root.pointer(oc.ij, n // side).dense(oc.ij, side).place(x, y)

    @oc.kernel
    def fill():
        for i, j in oc.ndrange((1, n - 1), (1, n - 1)):
            y[i, j] = 1.0

    @oc.kernel
    def direct():
        for i, j in y:
            if y[i, j] > 0:
                for a, b in oc.static(oc.ndrange(3, 3)):
                    x[i + a - 1, j + b - 1] += y[i, j]

    @oc.kernel
    def hinted():
        oc.block_local(x)
        for i, j in y:
            if y[i, j] > 0:
                for a, b in oc.static(oc.ndrange(3, 3)):
                    x[i + a - 1, j + b - 1] += y[i, j]

    fill()
    report(f"leaves of {side} x {side} into 9 cells", direct, None, 4 * n * n, hinted)


def report(
    what: str,
    direct: Callable[[], object],
    staged: Callable[[], object] | None,
    moved: int,
    hinted: Callable[[], object] | None = None,
) -> None:
    """A line: the times, and how many bytes the direct one moves at least."""
    seconds = least(direct)
    line = f"{what:32} {seconds * 1e3:9.3f} ms"
    for call, how in (staged, "staged"), (hinted, "hinted"):
        line += " " * 21 if call is None else f"  {least(call) * 1e3:9.3f} ms {how}"
    print(f"{line}  {moved / seconds / 1e9:8.1f} GB/s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--side", type=int, help="of the grids; a multiple of 16")
    side = parser.parse_args().side
    oc.init(arch=oc.gpu, log_level="error", unrolling_limit=0)
    side = side or (8192 if oc.cfg.arch is oc.cuda else 512)  # type: ignore[attr-defined]
    print(f"{oc.device_properties().name}, {side} x {side}")
    for radius in (1, 2, 3):
        box(side, radius)
    for each in (1, 8):
        scatter(side // 4, each)
    for leaf in (4, 8, 16):
        leaves(side // 8, leaf)


if __name__ == "__main__":
    main()
