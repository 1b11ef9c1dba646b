"""Nodes of trees: what they cut, what lies in them, and how it lies there."""

from __future__ import annotations

import weakref

from .._octants import Node
from ..exceptions import OctantsRuntimeError
from .axes import LETTERS, Axes

TYPE_CHECKING = False  # as `typing` says it, without its weight
if TYPE_CHECKING:
    from .builder import FieldsBuilder
    from .field import Field
    from .quantised import QuantArray

#: How many elements the first chunk of a list has. Chosen, not measured: a few cache lines of numbers.
_CHUNK = 32


class SNode(Node):
    """A node of a tree of fields, made by ``oc.root.dense(oc.ij, (4, 8))`` and its like; or the place of a field in one.

    ``place`` puts fields into the node's cells; ``dense`` cuts the cells further.
    """

    _builder: FieldsBuilder
    #: Of a place: the field that it is asked of.
    _field: weakref.ref[Field] | None = None

    def __new__(cls, builder: FieldsBuilder, node: int, leaf: tuple[int, int] | None = None):
        self = Node.__new__(cls, builder._tree, node, leaf)
        self._builder = builder
        return self

    # ---- growing ----

    def dense(self, axes: Axes, dimensions) -> SNode:
        """A node whose cells are all there, side by side: ``oc.root.dense(oc.ij, (4, 8))``. One number is for every axis."""
        return self._cut_cells("dense", axes, dimensions)

    def pointer(self, axes: Axes, dimensions) -> SNode:
        """A node whose cells are made one by one when they are first written: ``oc.root.pointer(oc.ij, (64, 64))``."""
        return self._cut_cells("pointer", axes, dimensions)

    def bitmasked(self, axes: Axes, dimensions) -> SNode:
        """A node whose cells lie side by side, with a bit each that says whether it is active."""
        return self._cut_cells("bitmasked", axes, dimensions)

    def dynamic(self, axis: Axes, dimension, chunk_size=None) -> SNode:
        """A list that grows at its end, up to ``dimension`` elements: its first ``chunk_size`` at once, then ever larger chunks."""
        self._no_place("dynamic")
        if not isinstance(axis, Axes):
            raise TypeError(f"a node cuts axes such as oc.i or oc.axes(0), not {axis!r}")
        dimension = whole(dimension, "an extent")
        chunk = min(dimension, _CHUNK) if chunk_size is None else whole(chunk_size, "chunk_size")
        return SNode(self._builder, self._tree.add_dynamic(self._node, axis, dimension, chunk))

    def _cut_cells(self, kind: str, axes: Axes, dimensions) -> SNode:
        self._no_place(kind)
        axes, extents = _cut(axes, dimensions)
        self._warn_of_divisions(axes, extents)
        return SNode(self._builder, self._tree.add_node(self._node, kind, axes, extents))

    def quant_array(self, axes: Axes, dimensions, max_num_bits) -> QuantArray:
        """Cells that share a word of ``max_num_bits`` bits, for one field of quantised numbers."""
        self._no_place("quant_array")
        from .quantised import QuantArray

        axes, extents = _cut(axes, dimensions)
        above = {axis for node in self._path_from_root() for axis in self._tree.axes(node._node)}
        new = [axis for axis in axes if axis not in above]
        # Words have all axes: one of them along those that only the quant_array cuts.
        node = self.dense(Axes(new), 1) if new else self
        cut = dict(zip(axes, extents, strict=True))
        return QuantArray(node, [cut.get(axis, 1) for axis in sorted(above.union(new))], max_num_bits)

    def hash(self, axes: Axes, dimensions) -> SNode:
        """Not supported."""
        raise OctantsRuntimeError("hash nodes are not supported; a pointer node cuts an index space sparsely, too")

    def place(self, *fields, offset=None) -> SNode:
        """Puts fields into each cell, in this order. ``offset`` is the index of the first element, a number for each axis."""
        from .field import Field
        from .quantised import BitpackedFields, _PackedField

        self._no_place("place")
        for field in fields:
            if isinstance(field, (list, tuple)):
                self.place(*field, offset=offset)
            elif isinstance(field, (Field, BitpackedFields)):
                field._place(self, origin(offset))
            elif isinstance(field, _PackedField):
                raise OctantsRuntimeError(
                    "fields of quantised numbers are placed by oc.BitpackedFields or in a quant_array, not one by one"
                )
            else:
                raise ValueError(f"{field!r} cannot be placed: place takes fields")
        return self

    def lazy_grad(self) -> None:
        """Places a gradient beside each field of reals in this node and below."""
        self._builder._place_companions("grad", self)

    def lazy_dual(self) -> None:
        """Places a dual beside each field of reals in this node and below."""
        self._builder._place_companions("dual", self)

    def deactivate_all(self) -> None:
        """Deactivates all cells of the node and below. Those of dense nodes are always there, so that nothing happens to them."""
        if self._tree.is_sparse:
            from .sparse_access import clear

            self._builder._materialise()
            clear(self if self._leaf is None else self.parent())

    # ---- looking ----

    @property
    def shape(self) -> tuple[int, ...]:
        """How many cells there are along each axis, counted from the root."""
        return tuple(self._tree.shape(self._node))

    def parent(self, n: int = 1) -> SNode | None:
        """The node ``n`` levels up; ``None`` beyond the root."""
        node: SNode | None = self
        for _ in range(n):
            if node is None:
                return None
            if node._leaf is not None:
                node = SNode(self._builder, node._node)
                continue
            above = self._tree.parent(node._node)
            node = None if above is None else SNode(self._builder, above)
        return node

    @property
    def _kind(self) -> str:
        if self._leaf is not None:
            return "place"
        return "root" if self._tree.parent(self._node) is None else self._tree.kind(self._node)

    @property
    def _cell_size_bytes(self) -> int:
        """How many bytes a cell has; of a field's place, a scalar."""
        self._builder._materialise()
        if self._leaf is not None:
            return self._tree.entry_offset(*self._leaf)[0]
        return self._tree.cell_bytes(self._node)

    @property
    def _offset_bytes_in_parent_cell(self) -> int:
        """Its offset in the parent's cell, in bytes."""
        self._builder._materialise()
        if self._leaf is not None:
            return self._tree.entry_offset(*self._leaf)[1]
        return self._tree.node_offset(self._node)

    @property
    def _num_dynamically_allocated(self) -> int:
        """How many cells of a pointer node, or chunks of a dynamic one, there is memory for that was in use; others have none."""
        self._builder._materialise()
        return self._tree.allocated(self._node)

    @property
    def _backed_bytes(self) -> int | None:
        """Bytes that there is memory for in the pool of a pointer or dynamic node, on devices that map it as it is needed."""
        self._builder._materialise()
        return self._tree.backed_bytes(self._node)

    @property
    def _placed_field(self) -> Field | None:
        """The field that this is the place of."""
        return None if self._field is None else self._field()

    def _get_children(self) -> list[SNode]:
        """What lies in a cell: nodes, and the places of fields, one for each entry of a vector or matrix."""
        children = []
        if self._leaf is None:
            for is_leaf, number, entries in self._tree.children(self._node):
                if is_leaf:
                    children += [SNode(self._builder, self._node, (number, entry)) for entry in range(entries)]
                else:
                    children.append(SNode(self._builder, number))
        return children

    def _path_from_root(self) -> list[SNode]:
        """The nodes from the root to this one."""
        path: list[SNode] = [self]
        while (above := path[-1].parent()) is not None:
            path.append(above)
        return path[::-1]

    def __repr__(self):
        return "oc.root" if self._kind == "root" else f"<oc.SNode {self._kind} {self.shape}>"

    def __str__(self):
        return " => ".join(
            "oc.root" if node._kind == "root" else f"{node._kind} {list(node.shape)}" for node in self._path_from_root()
        )

    # ---- checks ----

    def _no_place(self, verb: str) -> None:
        if self._leaf is not None:
            raise OctantsRuntimeError(f"{verb}: the place of a field has no cells that anything could lie in")

    def _warn_of_divisions(self, axes: Axes, extents: list[int]) -> None:
        """An index is cut by division; by a power of two that costs next to nothing."""
        above = {axis for node in self._path_from_root() for axis in self._tree.axes(node._node)}
        for axis, extent in zip(axes, extents, strict=True):
            if axis in above and extent & (extent - 1):
                import warnings

                name = LETTERS[axis] if axis < len(LETTERS) else axis
                warnings.warn(
                    f"axis {name} is cut again into {extent}: a power of two would be faster here",
                    UserWarning,
                    stacklevel=5,
                )


def _cut(axes, dimensions) -> tuple[Axes, list[int]]:
    if not isinstance(axes, Axes):
        raise TypeError(f"a node cuts axes such as oc.ij or oc.axes(0, 1), not {axes!r}")
    extents = [dimensions] if not hasattr(dimensions, "__iter__") else list(dimensions)
    if len(extents) == 1:
        extents *= len(axes)
    if len(extents) != len(axes):
        raise OctantsRuntimeError(f"axes and sizes must have the same size, but got {len(axes)} and {len(extents)}")
    return axes, [whole(extent, "an extent") for extent in extents]


def whole(value, what: str) -> int:
    """An integer, as Python's."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{what} is an integer, not {value!r}")
    return value.__index__()


def origin(offset) -> list[int]:
    """The index of the first element, a number for each axis; nothing where there is none."""
    if offset is None:
        return []
    offset = [offset] if not hasattr(offset, "__iter__") else list(offset)
    return [whole(first, "an offset") for first in offset]


def _unsupported(kind: str) -> OctantsRuntimeError:
    return OctantsRuntimeError(f"{kind} SNode is not supported on this backend.")
