"""What the algorithms take, how they cut arrays into blocks, and how much scratch they need.

The law of the scratch: for ``n`` elements an algorithm uses no entry behind those that its ``*_scratch_slots(n)`` counts, whatever ``log256_max_n`` is. A level
of at most ``BLOCK`` entries is the last one, and levels behind it are empty. A scratch that is shorter is refused before anything is written; where launches
are not waited for, an algorithm then takes no elements at all.

The counts of slots are calculated by the host and by kernels.
"""

from __future__ import annotations

from .. import _session
from .._language import library_assert, static
from .._language.pyfunc import pyfunc
from .._primitive_types import f32, f64, i32, i64, u32, u64
from .._session import func
from ..exceptions import OctantsRuntimeError
from ..types import Template

#: Elements that one iteration goes through. The scratch is laid out by it.
BLOCK = 256
#: A digit of a key that is sorted by, in bits.
DIGIT_BITS = 8
DIGITS = 1 << DIGIT_BITS
#: An array has at most ``BLOCK`` to this power of elements.
MOST_LEVELS = 4

UNSIGNED = {i32: u32, u32: u32, f32: u32, i64: u64, u64: u64, f64: u64}
WIDTH = {u32: 32, u64: 64}

#: Limits of the types: what a minimum and a maximum of nothing are.
_LEAST = {i32: -(1 << 31), u32: 0, i64: -(1 << 63), u64: 0, f32: float("-inf"), f64: float("-inf")}
_GREATEST = {
    i32: (1 << 31) - 1,
    u32: (1 << 32) - 1,
    i64: (1 << 63) - 1,
    u64: (1 << 64) - 1,
    f32: float("inf"),
    f64: float("inf"),
}


def first_index(arr) -> int:
    """The index of the first element: that of a field's offset, and 0 of every other array."""
    if not hasattr(type(arr), "_origin"):
        return 0
    parts = list(arr._leaf_fields()) if hasattr(type(arr), "_leaf_fields") else [arr]
    firsts = {tuple(part._origin()) for part in parts}
    if len(firsts) > 1:
        raise OctantsRuntimeError(
            f"the members of {arr._description()} begin at different indices: {', '.join(map(str, sorted(firsts)))}"
        )
    (origin,) = firsts
    if len(origin) != 1:
        raise OctantsRuntimeError(f"algorithms take arrays of one axis; {arr._description()} has {len(origin)}")
    return origin[0]


@pyfunc
def nth(arr: Template, at):
    """The index of an element by its number from 0."""
    return at + static(first_index(arr))


def require_levels(log256_max_n: int) -> int:
    """``log256_max_n``, if there are such arrays."""
    if not 1 <= log256_max_n <= MOST_LEVELS:
        raise ValueError(f"log256_max_n is 1 to {MOST_LEVELS}, not {log256_max_n}")
    return log256_max_n


def identity(op: str, dtype) -> int | float:
    """What ``op`` gives of no elements."""
    if dtype not in UNSIGNED:
        raise NotImplementedError(f"reductions and scans take i32, u32, f32, i64, u64 and f64, not {dtype}")
    if op == "add":
        return 0
    return _GREATEST[dtype] if op == "min" else _LEAST[dtype]


def require_apart(is_same: bool) -> bool:
    """Refuses a scan of an array into itself."""
    if is_same:
        raise ValueError(
            "an exclusive scan needs an `out` that is not `arr`: its blocks are read again after others are written"
        )
    return True


def require_run_values(dtype) -> bool:
    """Refuses values that runs are not added up of."""
    if dtype not in (i32, u32, f32):
        raise NotImplementedError(f"reduce_by_key_add takes values of i32, u32 and f32, not {dtype}")
    return True


def sort_passes(key_dtype, end_bit: int, log256_max_n: int) -> range:
    """The digits that are sorted by."""
    require_levels(log256_max_n)
    if key_dtype not in UNSIGNED:
        raise NotImplementedError(f"sort takes keys of i32, u32, f32, i64, u64 and f64, not {key_dtype}")
    width = WIDTH[UNSIGNED[key_dtype]]
    if end_bit % (2 * DIGIT_BITS) or not 0 < end_bit <= width:
        raise ValueError(f"end_bit is a multiple of {2 * DIGIT_BITS} up to {width}, not {end_bit}")
    return range(end_bit // DIGIT_BITS)


@pyfunc
def blocks_of(n):
    """How many blocks ``n`` elements have."""
    return (n + (BLOCK - 1)) // BLOCK


@pyfunc
def _slots_above(n, levels: Template):
    """How many blocks there are of ``n`` elements, of these blocks, and so on; the last level has no block of its own."""
    total, size = 0, n
    for _ in static(range(levels - 1)):
        size = blocks_of(size)
        total += size
    return total


@pyfunc
def _slots_needed(n, levels: Template = MOST_LEVELS):
    """As ``_slots_above``, with no more levels than ``n`` elements have: one block is the last level."""
    total, size = 0, n
    for _ in static(range(levels - 1)):
        size = blocks_of(size)
        total += size if size > 1 else 0
    return total


@pyfunc
def reduce_scratch_slots(n, log256_max_n: Template = None):  # type: ignore[assignment]
    """How many entries ``reduce_add``, ``reduce_min`` and ``reduce_max`` need as scratch for up to ``n`` elements."""
    slots = 0
    if static(log256_max_n is None):
        slots = _slots_needed(n)
    else:
        slots = _slots_above(n, static(require_levels(log256_max_n)))
    return max(slots, 1)


@pyfunc
def exclusive_scan_scratch_slots(n, log256_max_n: Template = None):  # type: ignore[assignment]
    """How many entries ``exclusive_scan_add``, ``_min`` and ``_max`` need as scratch for up to ``n`` elements."""
    return reduce_scratch_slots(n, log256_max_n)


@pyfunc
def select_scratch_slots(n):
    """How many u32 entries ``select`` needs as scratch for up to ``n`` elements, whatever ``log256_max_n`` is."""
    return max(_slots_above(blocks_of(n), static(MOST_LEVELS)) + blocks_of(n), 1)


@pyfunc
def reduce_by_key_scratch_slots(n):
    """How many u32 entries ``reduce_by_key_add`` needs as scratch for up to ``n`` elements, whatever ``log256_max_n`` is."""
    return select_scratch_slots(n) + blocks_of(n)


@pyfunc
def sort_scratch_slots(n, log256_max_n: Template = None):  # type: ignore[assignment]
    """How many u32 entries ``sort`` needs as scratch for up to ``n`` keys, whatever ``log256_max_n`` is."""
    if static(log256_max_n is not None):
        static(require_levels(log256_max_n))
    counts = DIGITS * max(blocks_of(n), 1)
    return counts + _slots_needed(counts) + 1


def failures_are_told() -> bool:
    """Whether a check that fails is raised by the launch, at no cost: a GPU's launches are waited for in debug mode only."""
    config = _session.cfg
    return config is not None and (config.debug or config.arch.name != "cuda")  # type: ignore[attr-defined]


@func
def _within(scratch: Template, n, slots, capacity, name: Template, log256_max_n: Template):
    """``n``, or 0 where the scratch is too short, or the levels are too few, for ``n`` elements: of these the caller is told."""
    room = scratch.shape[0]
    has_room = n <= 0 or slots <= room
    has_levels = n <= capacity
    if static(failures_are_told()):
        library_assert(has_room, f"the scratch of `{name}` has {room} entries, and {n} elements need {slots}")
        library_assert(
            has_levels, f"`{name}` with log256_max_n={log256_max_n} takes up to {capacity} elements, and there are {n}"
        )
    return n if has_room and has_levels else 0


@func
def levels_within(scratch: Template, n, name: Template, levels: Template):
    """``n`` if the scratch holds the levels of blocks of ``n`` elements. The last level goes on for as long as it takes."""
    slots = 0
    if static(levels > 1):
        slots = max(_slots_needed(n, levels), 1)
    return _within(scratch, n, slots, static((1 << 31) - 1), name, levels)


@func
def blocks_within(scratch: Template, n, slots, name: Template, log256_max_n: Template):
    """``n`` if the scratch has ``slots`` entries, and ``n`` elements as many levels of blocks as are added up."""
    return _within(scratch, n, slots, static(min(BLOCK**log256_max_n, (1 << 31) - 1)), name, log256_max_n)


@pyfunc
def counts_slots(counts):
    """How many entries ``sums_before`` uses for so many counts, with these."""
    return counts + _slots_needed(counts)
