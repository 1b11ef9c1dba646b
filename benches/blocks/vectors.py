"""What blocks do with long arrays: reductions, scans, histograms, sums of rows, sorts. Each function gives a kernel; those that begin with ``plain_`` compute the same without blocks."""

# type: ignore  (kernels: annotations are values of the language)

from typing import Any

THREADS = 256
#: Elements of a thread that are on their way at once.
EACH = 16
#: How often a block of a reduction or of a histogram does that.
TURNS = 4
#: Elements of a block's scan.
SCANNED = THREADS * EACH
#: Elements of a block's sum, and of its part of a histogram.
ADDED = SCANNED * TURNS
#: Threads that add up what blocks came to.
LAST = 1024
BINS = 1024
LANES = 32
#: Elements of a row whose sum a subgroup takes, and of one that a block sorts.
ROW, SORTED = 256, 1024


def copy(qd: Any) -> Any:
    """What memory gives."""

    @qd.kernel
    def run(x: qd.types.ndarray(dtype=qd.f32, ndim=1), y: qd.types.ndarray(dtype=qd.f32, ndim=1)):
        for i in range(x.shape[0]):
            y[i] = x[i]

    return run


def reduce(qd: Any) -> Any:
    f32, block = qd.f32, qd.simt.block

    @qd.kernel
    def run(
        x: qd.types.ndarray(dtype=qd.f32, ndim=1),
        partial: qd.types.ndarray(dtype=qd.f32, ndim=1),
        total: qd.types.ndarray(dtype=qd.f32, ndim=1),
    ):
        qd.loop_config(block_dim=THREADS)
        for i in range(x.shape[0] // ADDED * THREADS):
            part, thread = i // THREADS, i % THREADS
            own = qd.Vector.zero(f32, EACH)
            for turn in range(TURNS):
                first = part * ADDED + turn * SCANNED + thread
                for e in qd.static(range(EACH)):
                    own[e] += x[first + e * THREADS]
            mine = 0.0
            for e in qd.static(range(EACH)):
                mine += own[e]
            whole = block.reduce_add(mine, THREADS, f32)
            if thread == 0:
                partial[part] = whole
        qd.loop_config(block_dim=LAST)
        for i in range(LAST):
            rest = 0.0
            for turn in range((partial.shape[0] + LAST - 1) // LAST):
                if turn * LAST + i < partial.shape[0]:
                    rest += partial[turn * LAST + i]
            everything = block.reduce_add(rest, LAST, f32)
            if i == 0:
                total[0] = everything

    return run


def plain_reduce(qd: Any) -> Any:
    @qd.kernel
    def run(
        x: qd.types.ndarray(dtype=qd.f32, ndim=1),
        partial: qd.types.ndarray(dtype=qd.f32, ndim=1),
        total: qd.types.ndarray(dtype=qd.f32, ndim=1),
    ):
        for part in range(partial.shape[0]):
            whole = 0.0
            for e in range(ADDED):
                whole += x[part * ADDED + e]
            partial[part] = whole
        total[0] = 0.0
        for part in range(partial.shape[0]):
            total[0] += partial[part]

    return run


def scan(qd: Any) -> Any:
    """A thread has neighbouring elements, which come and go in the order of memory, by shared memory. Of sixteen elements there one place stays free: a column lies in all banks."""
    f32, block = qd.f32, qd.simt.block

    @qd.kernel
    def run(x: qd.types.ndarray(dtype=qd.f32, ndim=1), y: qd.types.ndarray(dtype=qd.f32, ndim=1)):
        qd.loop_config(block_dim=THREADS)
        for i in range(x.shape[0] // SCANNED * THREADS):
            sh = block.SharedArray((THREADS * (EACH + 1),), f32)
            part, thread = i // THREADS, i % THREADS
            for e in qd.static(range(EACH)):
                at = e * THREADS + thread
                sh[at + at // EACH] = x[part * SCANNED + at]
            block.sync()
            own = qd.Vector.zero(f32, EACH)
            up_to = 0.0
            for e in qd.static(range(EACH)):
                up_to += sh[thread * (EACH + 1) + e]
                own[e] = up_to
            before = block.exclusive_add(up_to, THREADS, f32)
            for e in qd.static(range(EACH)):
                sh[thread * (EACH + 1) + e] = own[e] + before
            block.sync()
            for e in qd.static(range(EACH)):
                at = e * THREADS + thread
                y[part * SCANNED + at] = sh[at + at // EACH]

    return run


def plain_scan(qd: Any) -> Any:
    @qd.kernel
    def run(x: qd.types.ndarray(dtype=qd.f32, ndim=1), y: qd.types.ndarray(dtype=qd.f32, ndim=1)):
        for part in range(x.shape[0] // SCANNED):
            up_to = 0.0
            for e in range(SCANNED):
                up_to += x[part * SCANNED + e]
                y[part * SCANNED + e] = up_to

    return run


def histogram(qd: Any) -> Any:
    """A block counts in shared memory, and adds what it has to all of them."""
    block = qd.simt.block

    @qd.kernel
    def run(keys: qd.types.ndarray(dtype=qd.i32, ndim=1), counts: qd.types.ndarray(dtype=qd.i32, ndim=1)):
        for i in range(BINS):
            counts[i] = 0
        qd.loop_config(block_dim=THREADS)
        for i in range(keys.shape[0] // ADDED * THREADS):
            own = block.SharedArray((BINS,), qd.i32)
            part, thread = i // THREADS, i % THREADS
            for e in qd.static(range(BINS // THREADS)):
                own[e * THREADS + thread] = 0
            block.sync()
            for turn in range(TURNS):
                first = part * ADDED + turn * SCANNED + thread
                for e in qd.static(range(EACH)):
                    qd.atomic_add(own[keys[first + e * THREADS]], 1)
            block.sync()
            for e in qd.static(range(BINS // THREADS)):
                qd.atomic_add(counts[e * THREADS + thread], own[e * THREADS + thread])

    return run


def plain_histogram(qd: Any) -> Any:
    @qd.kernel
    def run(keys: qd.types.ndarray(dtype=qd.i32, ndim=1), counts: qd.types.ndarray(dtype=qd.i32, ndim=1)):
        for i in range(BINS):
            counts[i] = 0
        for i in range(keys.shape[0]):
            qd.atomic_add(counts[keys[i]], 1)

    return run


def row_sums(qd: Any) -> Any:
    f32, subgroup = qd.f32, qd.simt.subgroup

    @qd.kernel
    def run(x: qd.types.ndarray(dtype=qd.f32, ndim=2), y: qd.types.ndarray(dtype=qd.f32, ndim=1)):
        qd.loop_config(block_dim=THREADS)
        for i in range(x.shape[0] * LANES):
            row, lane = i // LANES, i % LANES
            mine = qd.cast(0.0, f32)
            for e in qd.static(range(ROW // LANES)):
                mine += x[row, e * LANES + lane]
            whole = subgroup.reduce_add(mine)
            if lane == 0:
                y[row] = whole

    return run


def plain_row_sums(qd: Any) -> Any:
    @qd.kernel
    def run(x: qd.types.ndarray(dtype=qd.f32, ndim=2), y: qd.types.ndarray(dtype=qd.f32, ndim=1)):
        for row in range(x.shape[0]):
            whole = 0.0
            for e in range(ROW):
                whole += x[row, e]
            y[row] = whole

    return run


def sort(qd: Any) -> Any:
    """A bitonic sort of a row by a block: a thread compares two elements at each step."""
    block = qd.simt.block
    threads = SORTED // 2
    stages = SORTED.bit_length() - 1

    @qd.kernel
    def run(x: qd.types.ndarray(dtype=qd.f32, ndim=1), y: qd.types.ndarray(dtype=qd.f32, ndim=1)):
        qd.loop_config(block_dim=threads)
        for i in range(x.shape[0] // SORTED * threads):
            sh = block.SharedArray((SORTED,), qd.f32)
            part, thread = i // threads, i % threads
            sh[thread] = x[part * SORTED + thread]
            sh[thread + threads] = x[part * SORTED + thread + threads]
            block.sync()
            for stage in qd.static(range(stages)):
                for step in qd.static(range(stage + 1)):
                    distance = qd.static(1 << (stage - step))
                    low = thread // distance * (2 * distance) + thread % distance
                    first, second = sh[low], sh[low + distance]
                    if (first > second) == (low & qd.static(2 << stage) == 0):
                        sh[low] = second
                        sh[low + distance] = first
                    block.sync()
            y[part * SORTED + thread] = sh[thread]
            y[part * SORTED + thread + threads] = sh[thread + threads]

    return run


def plain_sort(qd: Any) -> Any:
    """The same network without blocks: a thread sorts a row."""
    stages = SORTED.bit_length() - 1

    @qd.kernel
    def run(x: qd.types.ndarray(dtype=qd.f32, ndim=1), y: qd.types.ndarray(dtype=qd.f32, ndim=1)):
        for part in range(x.shape[0] // SORTED):
            for e in range(SORTED):
                y[part * SORTED + e] = x[part * SORTED + e]
            for stage in range(stages):
                for step in range(stage + 1):
                    run_of, distance = 2 << stage, 1 << (stage - step)
                    for pair in range(SORTED // 2):
                        low = pair // distance * (2 * distance) + pair % distance
                        a, b = y[part * SORTED + low], y[part * SORTED + low + distance]
                        if (a > b) == (low & run_of == 0):
                            y[part * SORTED + low] = b
                            y[part * SORTED + low + distance] = a

    return run
