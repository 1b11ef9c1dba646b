"""Fields in the place of arrays: which arrays are fields, how they lie in memory, and a field of structs."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

import numpy as np
from generator_expressions import Scope
from generator_straight import Straight
from generator_types import StructType, Tensor, scalar_of

#: Kinds of the outer and of the inner node above the elements of a sparse field.
LEVELS = [pair for pair in itertools.product(("dense", "pointer", "bitmasked"), repeat=2) if pair != ("dense", "dense")]

INTEGERS = ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")


@dataclass(frozen=True)
class FieldLayout:
    """How a field is made."""

    #: "shape": of its own; "nested": below several dense nodes; "together": beside all others like it, in one node; "packed": as bits of words;
    #: "sparse": below nodes whose cells come and go; "quantised": as bits of words that programs write.
    kind: str
    #: The extents of the outer node, along each axis.
    blocks: tuple[int, ...]
    order: str | None
    apart: bool
    origin: tuple[int, ...]
    #: Of a sparse field: the kinds of its two nodes, and what fields have in common that lie there together.
    levels: tuple[str, ...] = ()
    group: tuple = ()


class Fields(Straight):
    """Takes fields for some of the arrays; programs read and write them alike."""

    def __init__(self, seed: int):
        super().__init__(seed)
        self.fields: dict[str, FieldLayout] = {}
        #: The index of the first element of the grid and of its digests.
        self.origin = (0, 0)
        #: The type of the elements of the field ``sf``, if there is one.
        self.struct_field: StructType | None = None
        self.struct_layout: FieldLayout | None = None

    def choose_fields(self) -> None:
        r = self.random
        if r.random() < 0.6:
            return
        if r.random() < 0.3:
            self.origin = (r.randint(-3, 3), r.randint(-3, 3))
        for name, (element, shape) in (self.inputs | self.outputs).items():
            free = name not in self.offsets and name not in self.aliases
            on_grid = name in ("grid", "d_grid")
            if free and (r.random() < 0.5 or (on_grid and self.origin != (0, 0))):
                layout = self.field_layout(element, shape, self.origin if on_grid else (0,) * len(shape))
                if name in self.inputs and name not in self.outputs and element in INTEGERS and r.random() < 0.5:
                    # Quantised elements take but some of the statements that programs write with; any may read them.
                    layout = replace(layout, kind="packed")
                elif isinstance(element, str) and r.random() < 0.4:
                    layout = self.sparse_layout(name, shape, layout)
                self.fields[name] = layout
        self.fields |= {alias: self.fields[name] for alias, name in self.aliases.items() if name in self.fields}
        self.no_views |= set(self.fields)

    def field_layout(self, element, shape: tuple[int, ...], origin: tuple[int, ...]) -> FieldLayout:
        kind = self.pick("shape", "shape", "nested", "together")
        order = self.pick(None, "ji", "ij") if len(shape) == 2 and kind == "shape" else None
        blocks = tuple(self.pick(*(d for d in range(1, extent + 1) if extent % d == 0)) for extent in shape)
        apart = not isinstance(element, str) and kind == "shape" and self.random.random() < 0.5
        return FieldLayout(kind, blocks, order, apart, origin)

    def sparse_layout(self, name: str, shape: tuple[int, ...], layout: FieldLayout) -> FieldLayout:
        """Some lie together; those alone that one loop writes, and that others ask whether they are active, do not."""
        levels = self.pick(*LEVELS)
        alone = name[:2] not in ("a_", "o_") or self.random.random() < 0.5
        group = (name,) if alone else (shape, levels, layout.blocks)
        return replace(layout, kind="sparse", levels=levels, group=group)

    def choose_struct_field(self) -> None:
        if self.struct_types and self.fields and self.random.random() < 0.6:
            self.struct_field = self.pick(*self.struct_types)
            self.struct_layout = self.field_layout(self.struct_field, (self.size,), (0,))

    def own_struct(self, scope: Scope, target: str) -> None:
        """The struct that is the iteration's own."""
        if self.struct_field:
            scope.add(self.struct_field, f"sf[{target}]")


def _type_of(element, names: dict):
    import octants as oc

    if isinstance(element, StructType):
        return names[element.name]
    scalar = getattr(oc, scalar_of(element))
    if not isinstance(element, Tensor):
        return scalar
    return oc.types.matrix(*element.shape, scalar) if element.m else oc.types.vector(element.n, scalar)


def made_fields(program: Fields, names: dict) -> dict:
    """The fields of a program by name, placed and zero."""
    import octants as oc

    wanted = {name: (*what, program.fields[name]) for name, what in (program.inputs | program.outputs).items()
              if name in program.fields and name not in program.aliases}  # fmt: skip
    if program.struct_field and program.struct_layout:
        wanted["sf"] = (program.struct_field, (program.size,), program.struct_layout)
    axes = {1: oc.i, 2: oc.ij}
    nodes, found, beside = {}, {}, []
    for name, (element, shape, how) in wanted.items():
        dtype = _type_of(element, names)
        offset = how.origin if any(how.origin) else None
        if how.kind == "quantised":
            continue
        if how.kind == "packed":
            found[name], neighbours = _packed_field(element, shape, how)
            beside += neighbours
            continue
        if how.kind == "shape":
            layout = oc.Layout.SOA if how.apart else oc.Layout.AOS
            maker = dtype.field if isinstance(element, StructType) else oc.field
            first = () if isinstance(element, StructType) else (dtype,)
            given = {} if isinstance(element, str) else {"layout": layout}
            found[name] = maker(*first, shape=shape, order=how.order, offset=offset, **given)
            continue
        found[name] = dtype.field() if isinstance(element, StructType) else oc.field(dtype)
        if how.kind == "nested":
            inner = tuple(extent // block for extent, block in zip(shape, how.blocks, strict=True))
            node = oc.root.dense(axes[len(shape)], how.blocks).dense(axes[len(shape)], inner)
        elif how.kind == "sparse":
            if how.group not in nodes:
                nodes[how.group] = sparse_node(how, shape)
            node = nodes[how.group]
        elif shape in nodes:
            node = nodes[shape]
        else:
            node = nodes[shape] = oc.root.dense(axes[len(shape)], shape)
        node.place(found[name], offset=offset)
    for neighbour in beside:
        neighbour.fill(-1)
    return found | {alias: found[name] for alias, name in program.aliases.items() if name in found}


def sparse_node(how: FieldLayout, shape: tuple[int, ...]):
    """The inner of the two nodes above a sparse field's elements."""
    import octants as oc

    axes = {1: oc.i, 2: oc.ij}[len(shape)]
    inner = tuple(extent // block for extent, block in zip(shape, how.blocks, strict=True))
    outer, below = how.levels or ("dense", "dense")
    return getattr(getattr(oc.root, outer)(axes, how.blocks), below)(axes, inner)


def _packed_field(element: str, shape: tuple[int, ...], how: FieldLayout):
    """A field whose elements share words with others, and these, which lie below and above them."""
    import octants as oc

    bits, quant = int(element[1:]), oc.types.quant
    word = oc.BitpackedFields(64 if bits > 8 else 16)
    beside = [oc.field(quant.int(width)) for width in (how.blocks[0] % 5 + 1, 2) if bits < 64]
    made = oc.field(quant.int(bits, signed=element[0] == "i", compute=getattr(oc, element)))
    word.place(*beside[:1], made, *beside[1:])
    oc.root.dense({1: oc.i, 2: oc.ij}[len(shape)], shape).place(word, offset=how.origin if any(how.origin) else None)
    return made, beside


def members_of(program: Fields, found) -> list:
    """All numbers of the field of structs, member by member: of a field's dictionary, or of the model's list."""
    columns = []
    for _, place in program.struct_field.leaves("") if program.struct_field else ():
        path = place.strip(".").split(".")
        if isinstance(found, dict):
            value = found
            for name in path:
                value = value[name]
        else:
            value = []
            for element in found:
                for name in path:
                    element = getattr(element, name)
                value.append(np.asarray(element))
        columns.append(np.asarray(value))
    return columns
