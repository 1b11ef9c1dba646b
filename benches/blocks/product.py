"""The product of two matrices in shared memory, as an expert writes it for a GPU.

A block has a tile of 128 x 128 elements of the result, and a thread 64 of them in registers: four quarters of 4 x 4, so that what the lanes of a subgroup read lies side by side. The
parts of both factors are double buffered: while one is multiplied, the next one is on its way to registers. The left one lies transposed, with rows that are padded by four
numbers, so that both are read four numbers at a time.
"""

# type: ignore  (kernels: annotations are values of the language)

from typing import Any

#: Rows and columns of a block's tile, and of a thread's.
TILE, OWN = 128, 8
#: Columns of the left factor, and rows of the right one, that are in shared memory at once.
DEPTH = 8
THREADS = (TILE // OWN) ** 2
PADDING = 4


def tiles(qd: Any) -> Any:
    """A kernel for matrices whose sides are multiples of the tile's."""
    f32, block = qd.f32, qd.simt.block
    # What a thread brings of both factors, and how many threads bring a row of it.
    each = TILE * DEPTH // THREADS
    left_threads, right_threads = DEPTH // each, TILE // each
    half, quarter = TILE // 2, OWN // 2

    @qd.kernel
    def multiply(
        a: qd.types.ndarray(dtype=qd.f32, ndim=2),
        b: qd.types.ndarray(dtype=qd.f32, ndim=2),
        c: qd.types.ndarray(dtype=qd.f32, ndim=2),
    ):
        qd.loop_config(block_dim=THREADS)
        for i in range(c.shape[0] // TILE * (c.shape[1] // TILE) * THREADS):
            left = block.SharedArray((2, DEPTH, TILE + PADDING), f32)
            right = block.SharedArray((2, DEPTH, TILE), f32)
            columns, parts = c.shape[1] // TILE, a.shape[1] // DEPTH
            tile, thread = i // THREADS, i % THREADS
            top, side = tile // columns * TILE, tile % columns * TILE
            a_row, a_column = thread // left_threads, thread % left_threads * each
            b_row, b_column = thread // right_threads, thread % right_threads * each
            y, x = thread // 16 * quarter, thread % 16 * quarter
            sums = qd.Matrix.zero(f32, OWN, OWN)
            next_a, next_b = qd.Vector.zero(f32, each), qd.Vector.zero(f32, each)
            for e in qd.static(range(each)):
                left[0, a_column + e, a_row] = a[top + a_row, a_column + e]
                right[0, b_row, b_column + e] = b[b_row, side + b_column + e]
            block.sync()
            for part in range(parts):
                now, then = part % 2, 1 - part % 2
                if part + 1 < parts:
                    for e in qd.static(range(each)):
                        next_a[e] = a[top + a_row, (part + 1) * DEPTH + a_column + e]
                    for e in qd.static(range(each)):
                        next_b[e] = b[(part + 1) * DEPTH + b_row, side + b_column + e]
                for k in qd.static(range(DEPTH)):
                    v, w = qd.Vector.zero(f32, OWN), qd.Vector.zero(f32, OWN)
                    for e in qd.static(range(quarter)):
                        v[e] = left[now, k, y + e]
                        v[quarter + e] = left[now, k, half + y + e]
                        w[e] = right[now, k, x + e]
                        w[quarter + e] = right[now, k, half + x + e]
                    for r in qd.static(range(OWN)):
                        for s in qd.static(range(OWN)):
                            sums[r, s] += v[r] * w[s]
                if part + 1 < parts:
                    for e in qd.static(range(each)):
                        left[then, a_column + e, a_row] = next_a[e]
                    for e in qd.static(range(each)):
                        right[then, b_row, b_column + e] = next_b[e]
                block.sync()
            for r in qd.static(range(OWN)):
                for s in qd.static(range(OWN)):
                    row = top + r // quarter * half + y + r % quarter
                    c[row, side + s // quarter * half + x + s % quarter] = sums[r, s]

    return multiply


def plain(qd: Any) -> Any:
    """The same without blocks: a thread has a row."""

    @qd.kernel
    def multiply(
        a: qd.types.ndarray(dtype=qd.f32, ndim=2),
        b: qd.types.ndarray(dtype=qd.f32, ndim=2),
        c: qd.types.ndarray(dtype=qd.f32, ndim=2),
    ):
        for i in range(c.shape[0]):
            for j in range(c.shape[1]):
                c[i, j] = 0.0
            for k in range(a.shape[1]):
                for j in range(c.shape[1]):
                    c[i, j] += a[i, k] * b[k, j]

    return multiply
