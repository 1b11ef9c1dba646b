"""Blocks of threads as plain numpy: all lanes of a loop in lockstep, one statement at a time, each under a mask of lanes.

It owns what lanes do together (votes, shuffles, reductions, scans, sorting) and memory of blocks, and knows nothing of the compiler. A program without races comes to the same in
whatever order lanes run, so one order is enough. Where asked, all touches of shared memory are kept, and which of them race is said.
"""

from __future__ import annotations

import collections
from dataclasses import dataclass

import numpy as np

#: Lanes of a subgroup.
LANES = 32

#: numpy's types by the names of the language.
NUMPY = {
    "u1": np.bool_, "i8": np.int8, "u8": np.uint8, "i16": np.int16, "u16": np.uint16, "i32": np.int32, "u32": np.uint32,
    "i64": np.int64, "u64": np.uint64, "f16": np.float16, "f32": np.float32, "f64": np.float64,
}  # fmt: skip

COMBINE = {
    "add": np.add, "mul": np.multiply, "min": np.minimum, "max": np.maximum,
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
}  # fmt: skip


def each(function, *values):
    """Entry by entry through vectors, matrices and structs, which are lists of lanes' values."""
    if isinstance(values[0], list):
        return [each(function, *parts) for parts in zip(*values, strict=True)]
    return function(*values)


@dataclass
class Touched:
    """An access of lanes to shared memory: where, when, and what was written."""

    array: str
    line: int
    kind: str
    lanes: np.ndarray
    index: np.ndarray
    bytes: list[bytes] | None
    #: Entries of an element that is a vector or a matrix.
    entries: range
    blocks_passed: np.ndarray
    subgroups_passed: np.ndarray


class Machine:
    """The lanes of one loop: where they stand, their variables, the memory of their blocks."""

    def __init__(self, count: int, threads: int, arrays: dict[str, np.ndarray], keeps_touches: bool = False):
        self.count, self.threads = count, threads
        self.index = np.arange(count, dtype=np.int32)
        self.block, self.thread = self.index // threads, (self.index % threads).astype(np.int32)
        self.lane = (self.thread % LANES).astype(np.int32)
        self.first = self.index - self.lane
        self.subgroup = self.block * -(-threads // LANES) + self.thread // LANES
        #: How many lanes the subgroup has.
        self.width = np.minimum(LANES, threads - self.thread // LANES * LANES).astype(np.int32)
        self.vars: dict = {}
        self.arrays: dict = dict(arrays)
        self.names: dict[str, str] = {}
        self.mask = np.ones(count, bool)
        #: Lanes that have left the loop, and those that have left its iteration, from the outermost loop on.
        self.frames = [self.frame()]
        self.line = 0
        self.touched: list[Touched] | None = [] if keeps_touches else None
        self.blocks_passed = np.zeros(self.block[-1] + 1, int)
        self.subgroups_passed = np.zeros(self.subgroup[-1] + 1, int)

    def frame(self) -> list[np.ndarray]:
        return [np.zeros(self.count, bool), np.zeros(self.count, bool)]

    # ---- control ---------------------------------------------------------------------------------------------------------

    def run(self, statements, mask) -> None:
        for statement in statements:
            left, skipped = self.frames[-1]
            active = mask & ~left & ~skipped
            if not active.any():
                return
            self.at(statement, active)
            statement.run(self, active)

    def at(self, statement, active) -> None:
        """Says what runs, and by which lanes."""
        self.line, self.mask = statement.line, active
        statement.seen = active if statement.seen is None else statement.seen | active
        statement.threads = self.threads

    def assign(self, name: str, value, mask) -> None:
        old = self.vars.get(name)

        def chosen(new, old):
            return np.where(mask, new, old)

        if old is None:
            old = each(np.zeros_like, value)
        self.vars[name] = each(chosen, value, old)

    def pass_block(self, mask) -> None:
        self.blocks_passed[np.unique(self.block[mask])] += 1

    def pass_subgroup(self, mask) -> None:
        self.subgroups_passed[np.unique(self.subgroup[mask])] += 1

    # ---- memory ----------------------------------------------------------------------------------------------------------

    def resolve(self, name: str) -> str:
        return self.names.get(name, name)

    def declare(self, name: str, size: int, scalars: list[str]) -> None:
        """Memory of the blocks that are here; what is in it is not defined."""
        name = self.resolve(name)
        parts = [np.full((self.block[-1] + 1, size), 77, NUMPY[scalar]) for scalar in scalars]
        if name in self.arrays:
            here = np.zeros(self.block[-1] + 1, bool)
            here[self.block[self.mask]] = True
            parts = [np.where(here[:, None], new, old) for new, old in zip(parts, self.arrays[name], strict=True)]
        self.arrays[name] = parts

    def read(self, name: str, index, entry: int | None = None):
        """Elements, or one entry of each."""
        name = self.resolve(name)
        found = self.arrays[name]
        index = np.where(self.mask, index, 0)
        if isinstance(found, np.ndarray):
            return found[index]
        self.touch(name, "r", index, None, entry)
        parts = [part[self.block, np.minimum(index, part.shape[1] - 1)] for part in found]
        if entry is not None:
            return parts[entry]
        return parts if len(parts) > 1 else parts[0]

    def write(self, name: str, index, value, mask, entry: int | None = None) -> None:
        name = self.resolve(name)
        found = self.arrays[name]
        if isinstance(found, np.ndarray):
            found[index[mask]] = value[mask]
            return
        values = value if isinstance(value, list) else [value]
        self.touch(name, "w", index, values, entry)
        parts = found if entry is None else [found[entry]]
        for part, new in zip(parts, values, strict=True):
            at = np.minimum(index, part.shape[1] - 1)
            part[self.block[mask], at[mask]] = new[mask]

    def update(self, op: str, name: str, index, value, mask) -> None:
        """An atomic update; in whatever order, it comes to the same."""
        name = self.resolve(name)
        found = self.arrays[name]
        if isinstance(found, np.ndarray):
            COMBINE[op].at(found, index[mask], value[mask].astype(found.dtype))
            return
        self.touch(name, "u", index, None)
        COMBINE[op].at(found[0], (self.block[mask], index[mask]), value[mask].astype(found[0].dtype))

    def touch(self, name: str, kind: str, index, values, entry: int | None = None) -> None:
        if self.touched is None:
            return
        entries = range(len(self.arrays[name])) if entry is None else range(entry, entry + 1)
        lanes = np.flatnonzero(self.mask)
        written = None
        if values is not None:
            written = [b"".join(part[lane].tobytes() for part in values) for lane in lanes]
        self.touched.append(
            Touched(
                name,
                self.line,
                kind,
                lanes,
                index[lanes],
                written,
                entries,
                self.blocks_passed[self.block[lanes]],
                self.subgroups_passed[self.subgroup[lanes]],
            )  # fmt: skip
        )

    def races(self) -> tuple[set[frozenset[int]], set[frozenset[int]]]:
        """The lines of accesses by different lanes to one element without a barrier between, of which one writes: of numbers, and of vectors and matrices."""
        places = collections.defaultdict(set)
        for one in self.touched:
            written = one.bytes or [b""] * len(one.lanes)
            rows = zip(one.lanes, one.index, one.blocks_passed, one.subgroups_passed, written, strict=True)
            for lane, index, of_block, of_subgroup, value in rows:
                touch = (lane, of_subgroup, one.kind, value, one.line)
                for entry in one.entries:
                    places[one.array, self.block[lane], index, entry, of_block].add(touch)
        races: tuple[set, set] = set(), set()
        for (array, *_), touches in places.items():
            found = races[len(self.arrays[array]) > 1]
            writes = [one for one in touches if one[2] != "r"]
            for lane, passed, kind, value, line in writes:
                for other, other_passed, other_kind, other_value, other_line in touches:
                    ordered = self.subgroup[lane] == self.subgroup[other] and passed != other_passed
                    same = kind == other_kind and (kind == "u" or value == other_value)
                    if lane != other and not ordered and not same:
                        found.add(frozenset((line, other_line)))
        return races


# ---- what lanes do together ------------------------------------------------------------------------------------------------


def shuffled(m: Machine, kind: str, value, by):
    """What a value is on another lane: `by` says which, as in `shuffle`, `shuffle_up`, `shuffle_down` or `shuffle_xor`."""
    by = by.astype(np.int64)
    if kind == "":
        lane = by % LANES
    elif kind == "xor":
        lane = (m.lane ^ by) % LANES
    else:
        near = (by >= 0) & (by < LANES)
        lane = np.where(near, m.lane - by if kind == "up" else m.lane + by, m.lane)
    lane = np.where((lane >= 0) & (lane < LANES), lane, m.lane)
    source = np.minimum(m.first + lane, m.count - 1)
    return each(lambda x: x[source], value)


def ballot(m: Machine, holds) -> np.ndarray:
    weights = np.where(holds, np.uint64(1) << m.lane.astype(np.uint64), np.uint64(0))
    return (
        np.bincount(m.subgroup, weights >> np.uint64(16)).astype(np.uint64)[m.subgroup] << np.uint64(16)
        | np.bincount(m.subgroup, weights & np.uint64(0xFFFF)).astype(np.uint64)[m.subgroup]
    )


def identity(op: str, dtype):
    if op in ("min", "max"):
        limits = np.iinfo(dtype)
        return limits.max if op == "min" else limits.min
    return {"add": 0, "mul": 1, "and": dtype.type(-1 if dtype.kind == "i" else ~dtype.type(0)), "or": 0, "xor": 0}[op]


def reduced(op: str, x, size: int):
    """What each aligned run of lanes comes to, on all of them."""
    return each(lambda x: COMBINE[op].reduce(x.reshape(-1, size), axis=1, dtype=x.dtype).repeat(size), x)


def inclusive(op: str, x, size: int):
    return each(lambda x: COMBINE[op].accumulate(x.reshape(-1, size), axis=1, dtype=x.dtype).ravel(), x)


def exclusive(op: str, x, size: int):
    def one(x):
        first = np.full((len(x) // size, 1), identity(op, x.dtype) if op != "add" else 0, x.dtype)
        return np.hstack([first, inclusive(op, x, size).reshape(-1, size)[:, :-1]]).ravel()

    return each(one, x)


def segmented(op: str, x, heads, size: int):
    """From the last head of the run, or its first lane, up to each lane."""
    out = x.copy()
    for i in range(len(x)):
        if i % size and not heads[i]:
            out[i] = COMBINE[op](out[i - 1], x[i])
    return out


def sorted_pairs(key, value, size: int):
    keys, values = key.copy(), value.copy()
    for first in range(0, len(key), size):
        at = slice(first, first + size)
        order = np.lexsort((value[at], key[at]))
        keys[at], values[at] = key[at][order], value[at][order]
    return keys, values


def ranks(digit, size: int):
    """Of keys of a block by a digit: their places, how many have each digit, how many a lower one."""
    place, counts, lower = (np.zeros(len(digit), np.int32) for _ in range(3))
    for first in range(0, len(digit), size):
        at = slice(first, first + size)
        place[first + np.argsort(digit[at], kind="stable")] = np.arange(size)
        counts[at] = np.bincount(digit[at], minlength=size)
        lower[at] = np.cumsum(counts[at]) - counts[at]
    return place, counts, lower


def affine(a, b):
    """The composition of two affine maps, which does not commute."""
    return [a[0] * b[0], a[1] * b[0] + b[1]]


def folded(x, size: int, kind: str):
    """Affine maps of a block in the order of its threads: all of them, those up to each thread, or those before it."""
    parts = [part.reshape(-1, size) for part in x]
    out = [np.zeros_like(part) for part in parts]
    running = [np.ones_like(parts[0][:, 0]), np.zeros_like(parts[0][:, 0])]
    for at in range(size):
        if kind == "exclusive":
            out[0][:, at], out[1][:, at] = running
        running = affine(running, [part[:, at] for part in parts])
        if kind == "inclusive":
            out[0][:, at], out[1][:, at] = running
    if kind == "all":
        out = [part[:, None].repeat(size, axis=1) for part in running]
    return [part.ravel() for part in out]
