"""Lower factors of many small matrices, a block of threads for each, in shared memory.

`tiles` is the blocked factorisation as simulators write it, with tiles in the registers of subgroups: block columns from the left to the right, each less the products of the columns before it.
What a lane needs of other lanes comes by shuffles, one for each product. `rows` has a row on each thread, and reads what all threads of a subgroup need alike from shared memory, four
numbers at a time.

The text is that of Octants and of Quadrants: `qd` is either.
"""

# type: ignore  (kernels: annotations are values of the language)

from typing import Any

#: Lanes of a subgroup.
LANES = 32
#: Columns that `rows` factors at once.
PANEL = 16


def tiles(qd: Any, size: int, n: int, subgroups: int) -> Any:
    """A kernel that factors with tiles of ``size`` rows; the subgroups of a block take the tiles of a block column in turns."""
    f32, block = qd.f32, qd.simt.block
    tile = {16: qd.simt.Tile16x16, 32: qd.simt.Tile32x32}[size]
    threads, columns, parts = LANES * subgroups, -(-n // size), -(-n // LANES)
    # An odd pitch: the rows of a column lie in banks of their own.
    pitch = n | 1

    @qd.kernel
    def factor(a: qd.types.ndarray(dtype=qd.f32, ndim=3), f: qd.types.ndarray(dtype=qd.f32, ndim=3)):
        qd.loop_config(block_dim=threads)
        for i in range(a.shape[0] * threads):
            sh = block.SharedArray((n, pitch), f32)
            m, thread = i // threads, i % threads
            subgroup, lane = thread // LANES, thread % LANES
            for e in range((n + subgroups - 1) // subgroups):
                row = e * subgroups + subgroup
                for part in qd.static(range(parts)):
                    if row < n and part * LANES + lane < n:
                        sh[row, part * LANES + lane] = a[m, row, part * LANES + lane]
            block.sync()
            for k in range(columns):
                k0, k1 = k * size, qd.min((k + 1) * size, n)
                if subgroup == 0:
                    t = tile.eye(dtype=f32)
                    t[:] = sh[k0:k1, k0:k1]
                    for c in range(k0):
                        v = sh[k0:k1, c]
                        t -= qd.outer(v, v)
                    t.cholesky_(1e-12)
                    sh[k0:k1, k0:k1] = t
                block.sync()
                for round in range((columns - k - 1 + subgroups - 1) // subgroups):
                    r = k + 1 + round * subgroups + subgroup
                    if r < columns:
                        r0, r1 = r * size, qd.min((r + 1) * size, n)
                        u = tile.zeros(dtype=f32)
                        u[:] = sh[r0:r1, k0:k1]
                        for c in range(k0):
                            v = sh[r0:r1, c]
                            w = sh[k0:k1, c]
                            u -= qd.outer(v, w)
                        d = tile.eye(dtype=f32)
                        d[:] = sh[k0:k1, k0:k1]
                        d.solve_triangular_(u)
                        sh[r0:r1, k0:k1] = u
                block.sync()
            for e in range((n + subgroups - 1) // subgroups):
                row = e * subgroups + subgroup
                for part in qd.static(range(parts)):
                    column = part * LANES + lane
                    if row < n and column < n:
                        value = 0.0
                        if column <= row:
                            value = sh[row, column]
                        f[m, row, column] = value

    return factor


def rows(qd: Any, n: int, subgroups: int) -> Any:
    """A kernel that factors with a row on each thread; there may be more threads. ``n`` is a multiple of 4, and an odd one best: then rows of 16 bytes have banks of their own."""
    f32, block, shuffle = qd.f32, qd.simt.block, qd.simt.subgroup.shuffle
    threads, parts = LANES * subgroups, -(-n // LANES)
    panels = [(begin, min(PANEL, n - begin)) for begin in range(0, n, PANEL)]

    @qd.kernel
    def factor(a: qd.types.ndarray(dtype=qd.f32, ndim=3), f: qd.types.ndarray(dtype=qd.f32, ndim=3)):
        qd.loop_config(block_dim=threads)
        for i in range(a.shape[0] * threads):
            sh = block.SharedArray((threads, n), f32)
            inverse = block.SharedArray((PANEL,), f32)
            m, thread = i // threads, i % threads
            subgroup, lane = thread // LANES, thread % LANES
            # Threads behind the last row have rows of zeros.
            for e in range(LANES):
                row = e * subgroups + subgroup
                for part in qd.static(range(parts)):
                    if part * LANES + lane < n:
                        value = 0.0
                        if row < n:
                            value = a[m, row, part * LANES + lane]
                        sh[row, part * LANES + lane] = value
            block.sync()
            for p in qd.static(range(len(panels))):
                begin = qd.static(panels[p][0])
                width = qd.static(panels[p][1])
                u = qd.Vector.zero(f32, width)
                if (subgroup + 1) * LANES > begin:
                    # Negative until all products are there: a sum of products is fused, and of a chain of differences LLVM makes the difference of a sum.
                    for j in qd.static(range(width)):
                        u[j] = -sh[thread, begin + j]
                    for c in range(begin // 4):
                        v = qd.Vector.zero(f32, 4)
                        for e in qd.static(range(4)):
                            v[e] = sh[thread, 4 * c + e]
                        for j in qd.static(range(width)):
                            for e in qd.static(range(4)):
                                u[j] += v[e] * sh[begin + j, 4 * c + e]
                    for j in qd.static(range(width)):
                        u[j] = -u[j]
                if subgroup == begin // LANES:
                    for j in qd.static(range(width)):
                        square = qd.max(shuffle(u[j], qd.u32(begin % LANES + j)), 1e-12)
                        one_by_pivot = qd.rsqrt(square)
                        if thread == begin + j:
                            u[j] = square
                            inverse[j] = one_by_pivot
                        u[j] *= one_by_pivot
                        for k in qd.static(range(j + 1, width)):
                            u[k] -= u[j] * shuffle(u[j], qd.u32(begin % LANES + k))
                    if begin <= thread:
                        for j in qd.static(range(width)):
                            sh[thread, begin + j] = u[j]
                block.sync()
                if subgroup > begin // LANES:
                    for j in qd.static(range(width)):
                        rest = -u[j]
                        for k in qd.static(range(j)):
                            rest += u[k] * sh[begin + j, begin + k]
                        u[j] = -rest * inverse[j]
                    for j in qd.static(range(width)):
                        sh[thread, begin + j] = u[j]
                block.sync()
            for e in range((n + subgroups - 1) // subgroups):
                row = e * subgroups + subgroup
                for part in qd.static(range(parts)):
                    column = part * LANES + lane
                    if row < n and column < n:
                        value = 0.0
                        if column <= row:
                            value = sh[row, column]
                        f[m, row, column] = value

    return factor


def plain(qd: Any, n: int) -> Any:
    """The same without blocks: a thread factors a matrix, in place."""

    @qd.kernel
    def factor(a: qd.types.ndarray(dtype=qd.f32, ndim=3), f: qd.types.ndarray(dtype=qd.f32, ndim=3)):
        for m in range(a.shape[0]):
            for j in range(n):
                for i in range(n):
                    f[m, j, i] = 0.0
            for j in range(n):
                pivot = a[m, j, j]
                for k in range(j):
                    pivot -= f[m, j, k] * f[m, j, k]
                pivot = qd.sqrt(qd.max(pivot, 1e-12))
                f[m, j, j] = pivot
                for i in range(j + 1, n):
                    value = a[m, i, j]
                    for k in range(j):
                        value -= f[m, i, k] * f[m, j, k]
                    f[m, i, j] = value / pivot

    return factor
