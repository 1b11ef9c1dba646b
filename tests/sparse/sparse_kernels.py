"""Kernels that tests of sparse fields share."""

import octants as oc


def count_of(x):
    """How many elements of a field, or cells of a node, are active."""

    @oc.kernel
    def count() -> oc.i32:
        n = 0
        for _ in oc.grouped(x):
            n += 1
        return n

    return count()
