"""The product of two matrices in shared memory, as an expert writes it for a GPU.

A block has a tile of 128 x 128 elements of the result, and a thread 64 of them in registers: four quarters of 4 x 4, so that what the lanes of a subgroup read lies side by
side. The parts of both factors are double buffered: while one is multiplied, the next one is on its way to registers; two parts are a round of the loop, so that it is known
which buffer is read. The left one lies transposed, with rows that are padded by four numbers, so that both are read four numbers at a time.
"""

# type: ignore  (kernels: annotations are values of the language)

from typing import Any

#: Rows and columns of a block's tile, and of a thread's.
TILE, OWN = 128, 8
#: Columns of the left factor, and rows of the right one, that are in shared memory at once.
DEPTH = 16
THREADS = (TILE // OWN) ** 2
PADDING = 4
#: Numbers side by side that a thread brings at once.
SIDE_BY_SIDE = 4


def tiles(qd: Any) -> Any:
    """A kernel for matrices whose sides are multiples of the tile's, and as deep as two parts, or four, six and so on."""
    f32, block = qd.f32, qd.simt.block
    # How many threads bring a row of each factor's part, how many rows they bring at once, and how often.
    left_threads, right_threads = DEPTH // SIDE_BY_SIDE, TILE // SIDE_BY_SIDE
    left_rows, right_rows = THREADS // left_threads, THREADS // right_threads
    turns = TILE // left_rows
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
            a_row, a_column = thread // left_threads, thread % left_threads * SIDE_BY_SIDE
            b_row, b_column = thread // right_threads, thread % right_threads * SIDE_BY_SIDE
            y, x = thread // 16 * quarter, thread % 16 * quarter
            sums = qd.Matrix.zero(f32, OWN, OWN)
            next_a, next_b = qd.Matrix.zero(f32, turns, SIDE_BY_SIDE), qd.Matrix.zero(f32, turns, SIDE_BY_SIDE)
            for t in qd.static(range(turns)):
                for e in qd.static(range(SIDE_BY_SIDE)):
                    left[0, a_column + e, a_row + t * left_rows] = a[top + a_row + t * left_rows, a_column + e]
                    right[0, b_row + t * right_rows, b_column + e] = b[b_row + t * right_rows, side + b_column + e]
            block.sync()
            for pair in range(parts // 2):
                for now in qd.static(range(2)):
                    part = 2 * pair + now
                    if part + 1 < parts:
                        first = (part + 1) * DEPTH
                        for t in qd.static(range(turns)):
                            for e in qd.static(range(SIDE_BY_SIDE)):
                                next_a[t, e] = a[top + a_row + t * left_rows, first + a_column + e]
                            for e in qd.static(range(SIDE_BY_SIDE)):
                                next_b[t, e] = b[first + b_row + t * right_rows, side + b_column + e]
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
                        for t in qd.static(range(turns)):
                            for e in qd.static(range(SIDE_BY_SIDE)):
                                left[1 - now, a_column + e, a_row + t * left_rows] = next_a[t, e]
                            for e in qd.static(range(SIDE_BY_SIDE)):
                                right[1 - now, b_row + t * right_rows, b_column + e] = next_b[t, e]
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
