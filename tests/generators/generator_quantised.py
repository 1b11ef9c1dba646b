"""Quantised fields that programs write: members of one word, or several elements of one field in a word, perhaps below sparse nodes."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from generator_expressions import Scope
from generator_sparse import Sparse
from generator_types import INTEGERS, SCALARS, width
from quantised_model import rounded_fixed, rounded_float, wrapped

#: How many elements of a field share a word, where it has words of its own.
TOGETHER = 8


@dataclass(frozen=True)
class QuantType:
    """How the numbers of a field are stored."""

    #: "int", "fixed" or "float".
    kind: str
    compute: str
    signed: bool
    bits: int
    #: Of a float: the bits of the exponent. Of a fixed: the negated exponent of the scale.
    exponent: int = 0

    def made(self):
        import octants as oc

        compute, quant = getattr(oc, self.compute), oc.types.quant
        if self.kind == "int":
            return quant.int(self.bits, self.signed, compute)
        if self.kind == "fixed":
            return quant.fixed(self.bits, self.signed, compute=compute, scale=2.0**-self.exponent)
        return quant.float(self.exponent, self.bits - self.exponent, self.signed, compute)

    def stored(self, value):
        """What is read after a value was written."""
        kind = SCALARS[self.compute]
        if self.kind == "int":
            return np.array(wrapped(int(value), self.bits, self.signed)).astype(kind)[()]
        if self.kind == "fixed":
            return rounded_fixed(kind(value), self.bits, self.signed, 2.0**-self.exponent)
        return kind(rounded_float(float(value), self.exponent, self.bits - self.exponent, self.signed))


class Quantised(Sparse):
    """Writes loops over quantised fields ``q_…``, whose elements are each written by one iteration."""

    def __init__(self, seed: int):
        super().__init__(seed)
        self.quantised: dict[str, QuantType] = {}
        #: Whether they are members of one word, or each has a word for several of its elements.
        self.in_arrays = False

    def choose_quantised(self) -> None:
        if not self.fields or self.random.random() < 0.5:
            return
        self.in_arrays = self.size > TOGETHER and self.random.random() < 0.6
        for number in range(1 if self.in_arrays else self.random.randint(1, 3)):
            name, type_ = f"q_{number}", self.quant_type(8 if self.in_arrays else 20)
            self.quantised[name] = type_
            self.outputs[name] = (type_.compute, (self.size,))
        cells = self.cells_of("q_0")
        layout = self.field_layout(type_.compute, cells, (0,))
        if self.random.random() < 0.5:
            layout = self.sparse_layout("q_0", cells, layout)
        layout = replace(layout, kind="quantised")
        self.fields |= dict.fromkeys(self.quantised, layout)
        self.no_views |= set(self.quantised)

    def cells_of(self, name: str) -> tuple[int, ...]:
        return (self.size // TOGETHER,) if name in self.quantised and self.in_arrays else super().cells_of(name)

    def quant_type(self, most: int) -> QuantType:
        r = self.random
        kind = "int" if self.in_arrays else self.pick("int", "fixed", "float")
        signed = r.random() < 0.6
        if kind == "int":
            compute = self.pick(*self.integers)
            return QuantType(kind, compute, signed, r.randint(1, min(most, width(compute))))
        compute = self.pick(*(t for t in self.reals if t != "f16"))
        bits = r.randint(6, most)
        return QuantType(
            kind, compute, signed, bits, r.randint(2, min(bits - 3, 7)) if kind == "float" else r.randint(0, 6)
        )

    def quantised_loop(self, scope: Scope, base: int) -> None:
        i, names = self.fresh("i"), list(self.quantised)
        inner = scope.inner()
        self.emit(base - 1, f"for {i} in {self.pick(f'range({self.size})', f'range(p & {self.size - 1})', names[0])}:")
        inner.indices.append(i)
        for name, (element, shape) in self.inputs.items():
            if shape == (self.size,):
                inner.add(element, f"{name}[{i}]", assignable=False)
        for _ in range(self.random.randint(2, 6)):
            name = self.pick(*names)
            compute = self.quantised[name].compute
            kind = self.random.randrange(5)
            if kind == 0:
                value = self.fresh("v")
                self.emit(base, f"{value} = {name}[{i}]")
                inner.add(compute, value, assignable=False)
            elif kind == 1:
                self.emit(base, f"if {self.condition(inner, 2)}:")
                self.emit(base + 1, f"{name}[{i}] = {self.settled(compute, inner)}")
            elif kind == 2 and compute in INTEGERS:
                self.emit(base, f"{name}[{i}] {self.pick('+', '-')}= {self.settled(compute, inner)}")
            else:
                self.emit(base, f"{name}[{i}] = {self.settled(compute, inner)}")
        self.written = list(dict.fromkeys([*names, *self.written]))


def made_quantised(program: Quantised, node_above) -> dict:
    """The fields by name; ``node_above(layout, shape)`` is the node of their words."""
    import octants as oc

    found = {name: oc.field(type_.made()) for name, type_ in program.quantised.items()}
    if not found:
        return found
    node = node_above(program.fields["q_0"], program.cells_of("q_0"))
    if program.in_arrays:
        node.quant_array(oc.i, TOGETHER, max_num_bits=64).place(found["q_0"])
        return found
    word = oc.BitpackedFields(64)
    word.place(*found.values())
    node.place(word)
    return found
