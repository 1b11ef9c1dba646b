"""What all fields have in common: where they are placed, their gradients, their traffic with other libraries."""

from __future__ import annotations

import itertools
import sys
import weakref

from .. import _octants
from .._arrays.torch_tensors import set_from_torch, torch_alias, torch_of
from .._matrix.conversion import array_of
from .._session import is_watched
from .._tensor import Tensor
from ..exceptions import OctantsRuntimeError

TYPE_CHECKING = False  # as `typing` says it, without its weight
if TYPE_CHECKING:
    from collections.abc import Iterator

    from .._octants import Tree
    from .node import SNode


class Field(_octants.Field):
    """An array whose layout is known when a kernel is compiled. Make one with ``oc.field``, ``oc.Vector.field`` and their like."""

    #: The name that it was made with, for messages.
    name: str
    #: Whether its elements are structs.
    _is_struct = False
    #: Where it is placed, or its first member or entry.
    _snode: SNode | None = None
    #: The index of its first element as it was placed; empty for zeros.
    _offset: list[int]
    #: Where it was made, if not with a shape.
    _origin_text: str = ""
    #: What ``order`` made of the axes, the slowest to vary first.
    _permutation: tuple[int, ...] | None = None
    #: How it was made in a tree of its own: shape, order, offset and layout.
    _placement: tuple | None = None
    #: Companions by kind, and the kinds that must be placed.
    _companions: dict[str, Field | None]
    #: Of a companion: its kind, whose it is, and whether it is that of gradients.
    _companion_kind: str | None = None
    _companion_owner: weakref.ref[Field] | None = None
    _is_second = False
    #: Of a companion: whether it was found to have the indices of whose it is.
    _has_indices_of_owner = False
    _needs: tuple[str, ...] = ()

    def __init__(self, name: str):
        self.name = name
        self._offset = []
        self._companions = {}

    @property
    def _name(self) -> str:
        """The name that it was made with."""
        return self.name

    # ---- for the classes of fields ----

    def _place(self, node: SNode, offset: list[int]) -> None:
        raise NotImplementedError

    def _bind(self, tree: Tree, leaf: int) -> None:
        self._bind_leaf(tree, leaf, self.name)

    def _materialise(self) -> None:
        """Gives it its memory; called when it is first used."""
        self._require_place()
        assert self._snode is not None
        self._snode._builder._materialise()

    def _leaf_fields(self) -> Iterator[Field]:
        """The fields of one leaf that it is made of."""
        yield self

    def _new_companion(self, kind: str) -> Field | None:
        """A field for its gradients, not placed; nothing if it has none."""
        raise NotImplementedError

    # ---- where it lies ----

    @property
    def shape(self) -> tuple[int, ...]:
        """How many elements there are along each axis."""
        self._require_place()
        return self._snode.shape if self._snode is not None else self._extents()

    @property
    def snode(self) -> SNode:
        """Its place in a node; of several, the first."""
        self._require_place()
        assert self._snode is not None
        self._snode._field = weakref.ref(self)
        return self._snode

    def parent(self, n: int = 1) -> SNode | None:
        """The node ``n`` levels above its place: 1 is the node that it is placed in. ``None`` beyond the root."""
        return None if self._snode is None else self._snode.parent(n)

    @property
    def _parent_node(self) -> SNode | None:
        """The node that it is placed in."""
        return self.parent()

    @property
    def layout(self) -> tuple[int, ...] | None:
        """The order of the axes in memory, the slowest to vary first, if ``order`` changed it."""
        return self._permutation

    def _require_place(self) -> None:
        if self._snode is None and not self._is_bound:
            require_places([self])

    def _require_no_place(self) -> None:
        if self._snode is not None:
            raise OctantsRuntimeError(
                f"This variable has been placed: {self._description()} lies in {self._snode.parent()}; a field is placed once"
            )

    def _description(self) -> str:
        owner = None if self._companion_owner is None else self._companion_owner()
        if owner is not None:
            kind = self._companion_kind
            made = "" if kind in owner._needs else f", which has no `needs_{kind}=True`"
            return f"the `.{kind}` of {owner._description()}{made}"
        text = f"`{self.name}`" if self.name else repr(self)
        return f"{text} made at {self._origin_text}" if self._origin_text else text

    # ---- gradients ----

    @property
    def grad(self) -> Field | None:
        """The field of gradients: one for reals, which may not be placed yet; ``None`` for integers."""
        return self._companion("grad")

    @property
    def dual(self) -> Field | None:
        """The field of duals: one for reals, which may not be placed yet; ``None`` for integers."""
        return self._companions.get("second") or self._companion("dual")

    def has_grad(self) -> bool:
        """Whether gradients are placed."""
        return self._has("grad")

    def has_dual(self) -> bool:
        """Whether duals are placed."""
        return self._has("dual")

    def _companion(self, kind: str) -> Field | None:
        if kind == "dual" and self._companion_kind == "grad":
            return self._companions.get("second")
        if kind not in self._companions:
            made = self._companions[kind] = self._new_companion(kind)
            if made is not None:
                made._companion_kind, made._companion_owner = kind, weakref.ref(self)
        return self._companions[kind]

    def _leaf_companion(self, kind: str, leaf: int) -> Field | None:
        """The companion of one leaf, if it is placed."""
        part = next(itertools.islice(self._leaf_fields(), leaf, None))
        if not part._has(kind):
            return None
        companion = part._companion(kind)
        assert companion is not None
        if not companion._has_indices_of_owner:
            own, others = ((one.shape, tuple(one._origin())) for one in (part, companion))
            if own != others:
                raise OctantsRuntimeError(
                    f"{part._description()} has shape {own[0]} from index {own[1]} on, and its `.{kind}` has shape {others[0]} from {others[1]} on: "
                    "place both with the same shape and offset"
                )
            companion._has_indices_of_owner = True
        return companion

    def _place_second_derivatives(self) -> None:
        """Makes duals of a field of gradients that is placed and has no memory yet, in the same node."""
        from .making import like
        from .node import SNode

        snode = self._snode
        if "second" in self._companions or snode is None:
            return
        made = self._companions["second"] = like(self)
        made._companion_kind, made._is_second = "dual", True
        made._place(SNode(snode._builder, snode._node), self._offset)

    def _second_derivatives(self) -> Field:
        """The duals of a field of gradients, made when they are first asked for."""
        made = self._companions.get("second")
        if made is None:
            from .builder import companions
            from .making import allocate_like

            made = self._companions["second"] = allocate_like(self)
            made._companion_kind, made._is_second = "dual", True
            companions.add(made)
        return made

    def _has(self, kind: str) -> bool:
        companion = self._companion(kind)
        return companion is not None and companion._snode is not None

    def _lacks(self, kind: str) -> bool:
        return kind in self._needs and not self._has(kind)

    def _allocate_companion(self, kind: str) -> None:
        from .making import allocate

        companion = self._companion(kind)
        if companion is not None and companion._snode is None and self._placement is not None:
            allocate([companion], *self._placement)

    # ---- elements ----

    def __iter__(self):
        raise NotImplementedError(
            "a field is looped over in kernels; on the host, loop over to_numpy() or over indices"
        )

    def __float__(self):
        return only_number(self, float)

    def __int__(self):
        return only_number(self, int)

    def fill(self, val, *, qd_stream=None) -> None:
        """Sets every element."""
        raise NotImplementedError

    def copy_from(self, other, *, qd_stream=None) -> None:
        """Sets all elements to those of another field of the same shape. In a Tape or in FwdMode, derivatives go with them."""
        other = other._impl if isinstance(other, Tensor) else other
        is_packed = getattr(type(other), "__octants_encoded__", None) == "octants._fields.quantised_elements"
        if not isinstance(other, Field) and not is_packed:
            raise TypeError(f"Cannot copy from a non-field object: {type(other).__name__}")
        if self.shape != other.shape:
            raise ValueError(f"the field has shape {self.shape}, which is not that of the source, {other.shape}")
        # Members of structs are copied one after the other.
        by_kernel = is_watched() and not self._is_struct
        if is_packed or self._is_sparse or other._is_sparse or by_kernel:
            from .sparse_access import copy_field

            copy_field(self, other, qd_stream)
        else:
            self._copy_elements(other, qd_stream)

    def _copied_at_once(self, other: Field, qd_stream) -> bool:
        """Copies all elements of a field of the same elements as they lie in memory. Says whether they could be."""
        leaves, others = list(self._leaf_fields()), list(other._leaf_fields())
        return len(leaves) == len(others) and self._copy_leaves(leaves, others, qd_stream)

    def _copy_elements(self, other: Field, qd_stream) -> None:
        raise NotImplementedError

    def __str__(self):
        """The elements, as numpy writes them; while a kernel is being compiled, what the field is."""
        if _octants.is_compiling() or (self._snode is None and not self._is_bound):
            return repr(self)
        return str(self.to_numpy())

    def __reduce__(self):
        from .._pickling import reduced_field

        return reduced_field(self)

    def __copy__(self) -> Field:
        from .._pickling import copied_field

        return copied_field(self)

    def __deepcopy__(self, memo: dict) -> Field:
        from .._pickling import deeply_copied_field

        return deeply_copied_field(self, memo)

    # ---- other libraries ----

    def to_numpy(self, *args, **kwargs):
        """A numpy array with all elements."""
        raise NotImplementedError

    def from_numpy(self, arr, *, qd_stream=None) -> None:
        """Sets all elements from a numpy array."""
        raise NotImplementedError

    def to_torch(self, device=None, *, copy: bool | None = True, qd_stream=None):
        """A torch tensor with all elements."""
        if not copy and device is None and (shared := torch_alias(self)) is not None:
            return shared
        return torch_of(self, lambda copy: self.to_numpy(copy=copy, qd_stream=qd_stream), device, copy, qd_stream)

    def from_torch(self, arr, *, qd_stream=None) -> None:
        """Sets all elements from a torch tensor, from whichever device."""
        set_from_torch(self, arr, lambda array: self.from_numpy(array, qd_stream=qd_stream), qd_stream)

    def to_dlpack(self, versioned: bool = False):
        """A capsule by which another library sees the memory without a copy."""
        self._require_place()
        return self._to_dlpack(versioned)

    def __array__(self, dtype=None, copy: bool | None = None):
        """What numpy asks for where it cannot look at the memory itself."""
        return array_of(self, dtype, copy)


def only_number(field, number: type):
    """The one number that a field holds, as an ``int`` or a ``float``; refuses a field that holds anything else."""
    name = number.__name__
    if field.shape != ():
        index = ", ".join("ijkl"[: len(field.shape)]) if len(field.shape) <= 4 else "i, …"
        text = f"a field of shape {field.shape} is not one number"
        raise _octants.refusal("OC0410", text, f"take an element: `{name}(x[{index}])`")
    element = field[None]
    if not isinstance(element, (int, float)):
        text = f"an element of a {type(field).__name__} is not one number"
        raise _octants.refusal(
            "OC0410", text, f"take one of its numbers: `{name}(x[None][0])` or `{name}(x[None].member)`"
        )
    return number(element)


def user_line() -> str:
    """The file and line of the program outside of this package that is running."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "octants":
        frame = frame.f_back
    return "" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"


def require_places(unplaced: list[Field]) -> None:
    """Refuses fields that have no place, if there are any."""
    if unplaced:
        kind = unplaced[0]._companion_kind
        if kind is None:
            remedy = "Give it a `shape`, or place it with `oc.root.dense(...).place(field)` before it is used"
        else:
            remedy = (
                f"Make the field with `needs_{kind}=True`, or call `oc.root.lazy_{kind}()` once all fields are placed"
            )
        raise OctantsRuntimeError(
            f"These field(s) are not placed: {', '.join(field._description() for field in unplaced)}. Field has no allocation. {remedy}"
        )
