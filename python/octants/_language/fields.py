"""Names of the kernel language about fields and their nodes. They belong in kernels: on the host they say so."""

from __future__ import annotations

from . import _marked, _only_in_kernels


def _in_kernels(name: str, meaning: str):
    def call(*args, **kwargs):
        raise _only_in_kernels(name)

    call.__doc__ = meaning
    return _marked(name)(call)


get_addr = _in_kernels("get_addr", "``get_addr(field, index)``: the address of an element in memory, as ``u64``.")
rescale_index = _in_kernels(
    "rescale_index", "``rescale_index(a, b, I)``: an index into ``a`` as one into ``b``, which has more or fewer cells."
)
loop_unique = _in_kernels(
    "loop_unique", "``loop_unique(val, covers=None)``: ``val``, with the promise that no two iterations have the same."
)
assume_in_range = _in_kernels(
    "assume_in_range",
    "``assume_in_range(val, base, low, high)``: ``val``, with the promise that ``base + low <= val < base + high``.",
)
block_local = _in_kernels(
    "block_local", "``block_local(*fields)``: a hint that a block's threads add to the same elements of these fields."
)
cache_read_only = _in_kernels(
    "cache_read_only", "``cache_read_only(*fields)``: before a loop that only reads these fields, which is checked."
)
stop_grad = _in_kernels(
    "stop_grad", "``stop_grad(*fields)``: what is loaded from them in this block counts as a constant in derivatives."
)
no_activate = _in_kernels(
    "no_activate", "``no_activate(*nodes)``: a hint that the cells of the nodes are active already."
)
is_active = _in_kernels("is_active", "``is_active(node, index)``: whether a cell of a sparse node is there.")
activate = _in_kernels("activate", "``activate(node, index)``: makes a cell of a sparse node.")
deactivate = _in_kernels("deactivate", "``deactivate(node, index)``: takes a cell of a sparse node away.")
append = _in_kernels("append", "``append(node, index, val)``: adds an element to a dynamic node; gives the old length.")
deactivate_all = _in_kernels("deactivate_all", "``deactivate_all(node)``: takes all cells of a node and below away.")
length = _in_kernels("length", "``length(node, index)``: how many elements a dynamic node has.")
