# type: ignore  (in the kernel language annotations are values, and what is static decides the types)
"""What lanes of a warp of 32 do together, by the names of CUDA. ``simt.subgroup`` has all of it and more, for values of any type.

All lanes of the warp call it, with the same ``mask``: whose bits say which lanes count.
"""

from __future__ import annotations

from .._language import cast, static
from .._primitive_types import f32, i32, u32
from .._session import func
from ..math import clz
from ._lanes import GROUP_SIZE
from ._primitives import ballot as _ballot
from ._primitives import shuffle, shuffle_down, shuffle_up, shuffle_xor, subgroup_sync

__all__ = [
    "active_mask",
    "all_nonzero",
    "any_nonzero",
    "ballot",
    "match_all",
    "match_any",
    "shfl_down_f32",
    "shfl_down_i32",
    "shfl_sync_f32",
    "shfl_sync_i32",
    "shfl_up_f32",
    "shfl_up_i32",
    "shfl_xor_i32",
    "sync",
    "unique",
]


@func
def ballot(predicate):
    """On which lanes the predicate is not zero: a bit for each."""
    return cast(_ballot(predicate), u32)


@func
def active_mask():
    """The bits of the lanes of this warp: of a whole warp, all of them."""
    return cast(_ballot(True), u32)


@func
def all_nonzero(mask, predicate):
    """1 if the predicate is not zero on all lanes of ``mask``, else 0."""
    return cast((ballot(not predicate) & cast(mask, u32)) == u32(0), i32)


@func
def any_nonzero(mask, predicate):
    """1 if the predicate is not zero on some lane of ``mask``, else 0."""
    return cast((ballot(predicate) & cast(mask, u32)) != u32(0), i32)


@func
def unique(mask, predicate):
    """1 if the predicate is not zero on all lanes of ``mask`` or on none, else 0."""
    votes = ballot(predicate) & cast(mask, u32)
    return cast(votes == u32(0) or votes == (active_mask() & cast(mask, u32)), i32)


@func
def match_any(mask, value):
    """The bits of the lanes of ``mask`` that have this lane's ``value``."""
    lanes = u32(0)
    for lane in static(range(GROUP_SIZE)):
        other = shuffle(value, lane)
        if other == value:
            lanes |= u32(static(1 << lane))
    return lanes & cast(mask, u32)


@func
def match_all(mask, value):
    """``mask`` if all of its lanes have the same ``value``, else 0."""
    lanes = cast(mask, u32)
    one_of_them = (31 - cast(clz(lanes), i32)) & static(GROUP_SIZE - 1)
    differs = value != shuffle(value, one_of_them)
    return lanes if (ballot(differs) & lanes) == u32(0) else u32(0)


@func
def shfl_sync_i32(mask, val, offset):
    """What ``val`` is on the lane of this number."""
    return shuffle(cast(val, i32), offset)


@func
def shfl_sync_f32(mask, val, offset):
    """What ``val`` is on the lane of this number."""
    return shuffle(cast(val, f32), offset)


@func
def shfl_up_i32(mask, val, offset):
    """What ``val`` is on the lane so many below; the own where there is none."""
    return shuffle_up(cast(val, i32), offset)


@func
def shfl_up_f32(mask, val, offset):
    """What ``val`` is on the lane so many below; the own where there is none."""
    return shuffle_up(cast(val, f32), offset)


@func
def shfl_down_i32(mask, val, offset):
    """What ``val`` is on the lane so many above; the own where there is none."""
    return shuffle_down(cast(val, i32), offset)


@func
def shfl_down_f32(mask, val, offset):
    """What ``val`` is on the lane so many above; the own where there is none."""
    return shuffle_down(cast(val, f32), offset)


@func
def shfl_xor_i32(mask, val, offset):
    """What ``val`` is on the lane whose number differs in the bits of ``offset``."""
    return shuffle_xor(cast(val, i32), offset)


@func
def sync(mask):
    """All lanes wait for each other, and see what each other wrote."""
    subgroup_sync()
