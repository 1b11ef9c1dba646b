"""Loops at the edges of what compilers assume: elements that lie apart, short rows, words that branches share, indices that wrap, bytes that are no bools, NaNs.

Each is a part of a kernel, or a kernel, on arrays of its own.
"""

from __future__ import annotations

import numpy as np
from generator_bundles import Bundles
from generator_expressions import Scope
from generator_reductions import SIGNS, Shared
from generator_types import INTEGERS

#: Elements of a view whose elements lie apart, and how far they do.
SPACED = 16
STEPS = (2, 3, 5)
#: Rows that are no multiple of four, and of few elements.
SHORT = ((3, 4), (7, 8), (35, 4), (19, 8))
#: What is added to an index to be near the limits of its type.
FAR = (2**31 - 1, 2**31 - 20, -(2**31), 1 - 2**31, 2**31 - 1 - 40, 3)


class Edges(Bundles):
    """Writes such loops."""

    def __init__(self, seed: int):
        super().__init__(seed)
        self.step = 1
        self.flags: Shared | None = None

    def choose_edges(self) -> None:
        """Arrays that only these loops use."""
        r = self.random
        if r.random() < 0.5:
            return
        self.step, real = self.pick(*STEPS), self.pick("f32", "f64")
        self.flags = Shared("flags", "u1", self.pick("xor", "and", "or"), 4)
        self.outputs |= {
            "spaced": (self.pick("f32", "f32", "f64", "i32"), (SPACED,)),
            "short": ("f32", self.pick(*SHORT)),
            "row_sums": ("f32", (8,)),
            "near": (self.pick(*self.integers, "f32"), (self.size + 8,)),
            "flags": ("u1", (4,)),
            "nan_most": (real, (4,)),
            "nan_given": (real, (2,)),
            "alone": ("i32", (4,)),
        }
        self.no_views |= {"spaced", "short", "row_sums", "near", "flags", "nan_most", "nan_given", "alone"}

    def overlapping(self, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        arrays = super().overlapping(arrays)
        if "spaced" in arrays:
            whole = np.zeros(SPACED * self.step, arrays["spaced"].dtype)
            arrays["spaced"] = whole[:: self.step]
            # Any byte but 0 is true.
            arrays["flags"] = np.array([0, 2, 1, 254], np.uint8).view(np.bool_)
            arrays["nan_given"][:] = np.nan
        return arrays

    def edge_loop(self, scope: Scope, base: int) -> bool:
        """One of the loops, if the program has their arrays."""
        kinds = [self.spaced_loop, self.row_loop, self.near_loop, self.flag_loop, self.nan_loop, self.single_loop]
        if not self.flags:
            return False
        if self.in_arrays:
            kinds += [self.wrapping_conditions] * 5
        self.pick(*kinds)(scope, base)
        return True

    def whole_number(self, t: str, scope: Scope) -> str:
        """A small one, so that sums of reals are exact."""
        if t in INTEGERS:
            return self.of(t, scope, 1)
        return f"oc.cast({self.integer('i32', scope, 1)} & 63, oc.{t})"

    def spaced_loop(self, scope: Scope, base: int) -> None:
        """Sums of neighbours in a view whose elements lie apart."""
        i, k, t = self.fresh("i"), self.fresh("k"), self.outputs["spaced"][0]
        inner = scope.inner()
        self.emit(base - 1, f"for {i} in range({self.pick(40, 70)}):")
        inner.indices.append(i)
        self.emit(base, f"{k} = {self.integer('i32', inner, 1)} & 7")
        for distance in self.random.sample(range(4), self.random.randint(2, 4)):
            self.emit(base, f"spaced[{k} + {distance}] {self.pick('+', '-')}= {self.whole_number(t, inner)}")

    def row_loop(self, scope: Scope, base: int) -> None:
        """Sums of short rows, whose number is known at launch alone, beside stores."""
        i, j = self.fresh("i"), self.fresh("j")
        inner = scope.inner()
        self.emit(base - 1, f"for {i}, {j} in oc.ndrange(short.shape[0], short.shape[1]):")
        inner.indices += [i, j]
        value = self.fresh("v")
        self.emit(base, f"{value} = {self.whole_number('f32', inner)}")
        self.emit(base, f"row_sums[{i} >> {self.pick(3, 4)}] {self.pick('+', '-')}= {value} + short[{i}, {j}]")
        if self.random.random() < 0.5:
            self.emit(base, f"short[{i}, {j}] = {value}")

    def near_loop(self, scope: Scope, base: int) -> None:
        """Updates of neighbouring elements, perhaps under a condition, with bounds of any integer type."""
        i, t, n = self.fresh("i"), self.outputs["near"][0], self.size
        inner = scope.inner()
        bound = self.pick(*INTEGERS, "i32")
        low, high = self.pick(0, 1, 3), self.pick(str(n), f"p & {n - 1}")
        self.emit(base - 1, f"for {i} in range(oc.cast({low}, oc.{bound}), oc.cast({high}, oc.{bound})):")
        inner.indices.append(i)
        indent = base
        if self.random.random() < 0.5:
            self.emit(base, f"if {self.condition(inner)}:")
            indent += 1
        value = self.fresh("v")
        self.emit(indent, f"{value} = {self.whole_number(t, inner)}")
        for distance in self.random.sample(range(7), self.random.randint(2, 4)):
            self.emit(indent, f"near[{i} + {distance}] {self.pick('+', '-')}= {value}")

    def flag_loop(self, scope: Scope, base: int) -> None:
        """Updates of truth values, whose bytes are any."""
        i, op = self.fresh("i"), self.flags.op
        inner = scope.inner()
        self.emit(base - 1, f"for {i} in range({self.pick(1, 5, 40)}):")
        inner.indices.append(i)
        at = self.integer("i32", inner, 1)
        place = f"flags[{self.pick('0', '1', '3', f'{at} & 3')}]"
        value = f"oc.cast({self.condition(inner)}, oc.u1)"
        self.emit(base, f"oc.atomic_{op}({place}, {value})", f"{place} {SIGNS[op]}= {value}")

    def nan_loop(self, scope: Scope, base: int) -> None:
        """A least or greatest value, stored where a comparison holds, or where it does not. All iterations have the same value, perhaps no number."""
        i, v, t = self.fresh("i"), self.fresh("v"), self.outputs["nan_most"][0]
        place = f"nan_most[{self.pick('2', '3')}]"
        more, less = self.pick((">", "<"), ("<", ">"))
        equal = self.pick("", "=")
        self.emit(base - 1, f"for {i} in range({self.pick(1, 33)}):")
        value = f"oc.cast({self.pick('1.5', '-2.0', '0.0')}, oc.{t})"
        self.emit(base, f"{v} = nan_given[p & 1] if {self.pick('p & 2 == 0', 'q > 0.0')} else {value}")
        kind = self.random.randrange(4)
        if kind == 0:
            self.emit(base, f"if {v} {more}{equal} {place}:")
            self.emit(base + 1, f"{place} = {v}")
        elif kind == 1:
            self.emit(base, f"if {v} {less}{equal} {place}:")
            self.emit(base + 1, "pass")
            self.emit(base, "else:")
            self.emit(base + 1, f"{place} = {v}")
        elif kind == 2:
            self.emit(base, f"{place} = {place} if {place} {more}{equal} {v} else {v}")
        else:
            self.emit(base, f"if not {place} {more}{equal} {v}:")
            self.emit(base + 1, f"{place} = {v}")

    def single_loop(self, scope: Scope, base: int) -> None:
        """An assignment of the one iteration that a sum of its indices tells."""
        i, j, k = self.fresh("i"), self.fresh("j"), self.fresh("k")
        a, b, c = (self.random.randint(1, 5) for _ in range(3))
        extra = self.random.randint(0, 2)
        self.emit(base - 1, f"for {i}, {j}, {k} in oc.ndrange({a}, {b}, {c}):")
        inner = scope.inner()
        inner.indices += [i, j, k]
        step, row = c + extra, (c + extra) * b
        total = self.random.randint(0, row * a)
        parts = [f"{row} * {i}", f"{step} * {j}", k]
        self.random.shuffle(parts)
        self.emit(base, f"if {' + '.join(parts)} == {total}:")
        self.emit(base + 1, f"alone[{self.random.randrange(4)}] = {self.integer('i32', inner, 1)}")

    def branching_kernel(self, parameters: dict[str, str]) -> str:
        """A kernel whose branches write different elements of the same words."""
        name, ways = self.fresh("kernel"), self.pick(2, 3)
        self.bundled_header(name, parameters, "None", None)
        scope = self.start()
        scope.add("i32", "p", assignable=False)
        compute = self.quantised["q_0"].compute
        for number in range(ways):
            i, inner = self.fresh("i"), scope.inner()
            self.emit(1, "with oc.stream_parallel():")
            self.emit(2, f"for {i} in range({self.size}):")
            inner.indices.append(i)
            self.emit(3, f"if {i} % {ways} == {number}:")
            self.emit(4, f"q_0[{i}] = {self.settled(compute, inner)}")
        return name

    def wrapping_conditions(self, scope: Scope, base: int) -> None:
        """Elements of words under conditions on indices that wrap."""
        i, compute = self.fresh("i"), self.quantised["q_0"].compute
        inner = scope.inner()
        self.emit(base - 1, f"for {i} in range({self.pick(str(self.size), f'p & {self.size - 1}')}):")
        inner.indices.append(i)
        for _ in range(self.random.randint(1, 3)):
            far, bound = self.pick(*FAR), self.pick(0, 5, -3, *FAR, "p")
            index = f"oc.cast({i}, oc.i32) + oc.cast({far}, oc.i32)"
            compared = f"{index} {self.pick('<', '<=', '>', '>=', '==', '!=')} oc.cast({bound}, oc.i32)"
            self.emit(base, f"if {compared}:")
            self.emit(base + 1, f"q_0[{i}] = {self.pick('0', '1', self.settled(compute, inner))}")
