# type: ignore  (in the kernel language annotations are values, and what is static decides the types)
"""Sorting of one key and one value per lane, in registers: a bitonic network."""

from __future__ import annotations

from .._language import static
from .._session import func
from ..types import Template
from ._lanes import LOG2_GROUP_SIZE, lane_in_tile, require_tile
from ._primitives import shuffle_xor


@func
def _comes_before(key, value, other_key, other_value):
    return key < other_key or (key == other_key and value < other_value)


@func
def bitonic_sort_kv_tiled(key, value, log2_size: Template):
    """Sorts the pairs of key and value of the tile's lanes, by keys and then by values: the pair of this lane's place."""
    require_tile(log2_size)
    lane = lane_in_tile(log2_size)
    for log2_run in static(range(1, log2_size + 1)):
        # Runs of this length rise and fall in turn, so that two of them are one of the next length; the last one rises.
        falls = (lane & static((1 << log2_run) & ((1 << log2_size) - 1))) != 0
        for bit in static(range(log2_run - 1, -1, -1)):
            other_key = shuffle_xor(key, static(1 << bit))
            other_value = shuffle_xor(value, static(1 << bit))
            is_upper = (lane & static(1 << bit)) != 0
            # Both lanes of a pair compare the same two pairs in the same order: no pair is lost, whatever a NaN compares to.
            swaps = _comes_before(other_key, other_value, key, value)
            if is_upper != falls:
                swaps = _comes_before(key, value, other_key, other_value)
            if swaps:
                key = other_key
                value = other_value
    return key, value


@func
def bitonic_sort_kv(key, value):
    """Sorts the pairs of key and value of the subgroup's lanes, by keys and then by values: the pair of this lane's place."""
    return bitonic_sort_kv_tiled(key, value, LOG2_GROUP_SIZE)
