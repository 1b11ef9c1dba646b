"""Where x -> r·x·(1 - x) ends up, for each r: order that doubles its period, chaos, and windows of order in it.

Each column of the picture is a histogram that one block of threads counts in the memory that they share. Each thread follows a starting point of its own; when all
have counted, the block finds its column's highest count, by which the column is lit.
"""

from __future__ import annotations

import time

import numpy as np
import png
from command_line import options

import octants as oc
from octants.simt import block

THREADS = 128  # of a block
FIRST, LAST = 2.8, 4.0  # values of r
UNSEEN = 1000  # steps that a point has to settle
Pixels = oc.types.ndarray(dtype=oc.u8, ndim=3)


@oc.kernel
def draw(image: Pixels, counts: oc.types.NDArray[oc.i32, 2], seen: oc.i32, size: oc.template()):
    """Follows points for `seen` steps each; a pixel's count is how often one of them was there."""
    oc.loop_config(block_dim=THREADS)
    for i in range(size * THREADS):
        column, thread = i // THREADS, i % THREADS
        histogram = block.SharedArray(size, oc.i32)
        for part in range((size + THREADS - 1) // THREADS):
            row = part * THREADS + thread
            if row < size:
                histogram[row] = 0
        block.sync()
        r = FIRST + (LAST - FIRST) * (column + 0.5) / size
        x = (thread + 0.5) / THREADS
        for _ in range(UNSEEN):
            x = r * x * (1.0 - x)
        for _ in range(seen):
            x = r * x * (1.0 - x)
            row = oc.cast((1.0 - x) * size, oc.i32)
            histogram[oc.min(oc.max(row, 0), size - 1)] += (
                1  # atomic, as every update that threads may make at the same time
            )
        block.sync()
        highest = 0
        for part in range((size + THREADS - 1) // THREADS):
            row = part * THREADS + thread
            if row < size:
                highest = oc.max(highest, histogram[row])
        highest = block.reduce_all_max(highest, THREADS, oc.i32)
        for part in range((size + THREADS - 1) // THREADS):
            row = part * THREADS + thread
            if row < size:
                counts[row, column] = histogram[row]
                light = oc.log(1.0 + histogram[row]) / oc.log(1.0 + highest)
                image[row, column, 0] = oc.cast(255.0 * light**3, oc.u8)
                image[row, column, 1] = oc.cast(255.0 * light**1.6, oc.u8)
                image[row, column, 2] = oc.cast(40.0 + 215.0 * light, oc.u8)


def diagram(size: int, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """The picture, and the counts of its pixels."""
    image, counts = np.zeros((size, size, 3), np.uint8), np.zeros((size, size), np.int32)
    draw(image, counts, steps, size)
    return image, counts


def main() -> None:
    chosen = options(__doc__ or "", smallest=16, size=1024, steps=4000)
    start = time.perf_counter()
    image, counts = diagram(chosen.size, chosen.steps)
    passed = time.perf_counter() - start
    path = chosen.out / "bifurcation.png"
    png.save(path, image)
    print(f"{counts.sum() / 1e6:.0f} million points in {passed:.2f} s, compiling included: {path}")


if __name__ == "__main__":
    main()
