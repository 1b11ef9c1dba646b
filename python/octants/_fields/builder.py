"""Builders of trees, and ``oc.root``, the builder that is always there."""

from __future__ import annotations

import weakref
from _thread import RLock

from .._octants import Tree, host_only
from .._session import runtime
from ..exceptions import OctantsRuntimeError
from .node import SNode

TYPE_CHECKING = False  # as `typing` says it, without its weight
if TYPE_CHECKING:
    from .field import Field

#: Fields that hold gradients or duals and have memory, of all sessions.
companions: weakref.WeakSet[Field] = weakref.WeakSet()

#: Fields that have a leaf of a tree, companions among them.
placed: weakref.WeakSet[Field] = weakref.WeakSet()

#: Builders of trees with sparse nodes that have memory, of all sessions.
sparse_trees: weakref.WeakSet[FieldsBuilder] = weakref.WeakSet()


class FieldsBuilder:
    """Collects nodes and fields; ``finalize`` gives them memory.

    >>> builder = oc.FieldsBuilder()
    >>> x = oc.field(oc.f32)
    >>> builder.dense(oc.i, 8).place(x)
    >>> tree = builder.finalize()
    >>> tree.destroy()
    """

    def __init__(self):
        self._tree = Tree(runtime)
        #: Held while fields get their memory.
        self._finishing = RLock()
        #: Whether it is finalized when a field in it is first used.
        self._at_first_use = False
        #: Fields that wait for their memory, with their leaves. Nothing here once they have it.
        self._waiting: list[tuple[Field, int]] = []
        #: Fields that were made with a shape, each in a tree of its own, since this builder is the root.
        self._apart: weakref.WeakSet[Field] = weakref.WeakSet()
        #: Fields that were made without a shape since this builder is the root: they must be placed before anything runs.
        self._declared: list[weakref.ref[Field]] = []

    @property
    def root(self) -> SNode:
        """The one cell that everything lies in."""
        return SNode(self, 0)

    @property
    def finalized(self) -> bool:
        """Whether the tree has memory, and grows no more."""
        return self._tree.is_finished

    def dense(self, indices, dimensions) -> SNode:
        """See ``SNode.dense``."""
        return self.root.dense(indices, dimensions)

    def pointer(self, indices, dimensions) -> SNode:
        """See ``SNode.pointer``."""
        return self.root.pointer(indices, dimensions)

    def bitmasked(self, indices, dimensions) -> SNode:
        """See ``SNode.bitmasked``."""
        return self.root.bitmasked(indices, dimensions)

    def dynamic(self, index, dimension, chunk_size=None) -> SNode:
        """See ``SNode.dynamic``."""
        return self.root.dynamic(index, dimension, chunk_size)

    def quant_array(self, indices, dimensions, max_num_bits):
        """See ``SNode.quant_array``."""
        return self.root.quant_array(indices, dimensions, max_num_bits)

    def place(self, *fields, offset=None) -> SNode:
        """Places fields of one element: the root is one cell."""
        return self.root.place(*fields, offset=offset)

    def lazy_grad(self) -> None:
        """Places a gradient beside each field of reals."""
        self.root.lazy_grad()

    def lazy_dual(self) -> None:
        """Places a dual beside each field of reals."""
        self.root.lazy_dual()

    def deactivate_all(self) -> None:
        """See ``SNode.deactivate_all``."""
        self.root.deactivate_all()

    def finalize(self, raise_warning: bool = True) -> SNodeTree:
        """Gives the tree its memory, all zero. The builder cannot be used afterwards."""
        host_only("finalize")
        if self.finalized:
            raise OctantsRuntimeError("FieldsBuilder finalized: it makes one tree; use a new oc.FieldsBuilder()")
        if not self._waiting and raise_warning:
            import warnings

            warnings.warn("Finalizing an empty FieldsBuilder!", UserWarning, stacklevel=2)
        with self._finishing:
            self._finish()
        return SNodeTree(self._tree)

    def _require_places(self) -> None:
        """Refuses to go on while a field that was declared, or what it asked for, has no place."""
        from .field import require_places

        if self._unplaced():
            # One that the program has dropped may be kept by a cycle.
            import gc

            gc.collect()
            require_places(self._unplaced())
        self._declared.clear()
        self._require_companions()

    def _require_companions(self) -> None:
        """Refuses to go on while gradients or duals that a field asked for have no place."""
        for kind in ("grad", "dual"):
            lacking = [field for field, _ in self._waiting if field._lacks(kind)]
            if lacking:
                raise OctantsRuntimeError(
                    f"These field(s) requrie `needs_{kind}=True`, however their {kind} field(s) are not placed: "
                    f"{', '.join(field._description() for field in lacking)}. Place them, or call lazy_{kind}() on the builder"
                )

    def _unplaced(self) -> list[Field]:
        fields = [field for field in (known() for known in self._declared) if field is not None]
        return [field for field in fields if field._snode is None and not field._is_bound]

    def _place_second_derivatives(self) -> None:
        """Places duals of gradients that lie in sparse nodes beside these, so that they come and go with them; others have memory when they are asked for."""
        for field, _ in list(self._waiting):
            if field._companion_kind is not None:
                continue
            kinds = [field._companion(kind) for kind in ("grad", "dual")]
            grad, dual = ((one if one is not None and one._snode is not None else None) for one in kinds)
            if grad is not None and dual is not None and grad._snode._builder is self:  # type: ignore[union-attr]
                grad._place_second_derivatives()

    def _finish(self) -> None:
        self._require_places()
        if self._tree.is_sparse:
            self._place_second_derivatives()
        self._tree.check()
        self._tree.finish()
        if self._tree.is_sparse:
            sparse_trees.add(self)
        if runtime.root is self:
            runtime.root = None
        waiting, self._waiting = self._waiting, []
        for field, leaf in waiting:
            field._bind(self._tree, leaf)
            placed.add(field)
            if field._companion_kind is not None:
                companions.add(field)

    def _materialise(self) -> None:
        """Gives memory to a tree that waits for its first use, and then calls the hook that programs may wrap."""
        if not self._at_first_use and not self.finalized:
            raise OctantsRuntimeError(
                "Field builder is not finalized. Please call finalize() on it, before fields that are placed in it are used"
            )
        with self._finishing:
            if self.finalized:
                return
            self._finish()
            from .._peer.inside import get_runtime

            get_runtime().materialize()

    def _finish_or_wait(self) -> None:
        """Gives the tree its memory at once, unless a program wants to be told before its first use."""
        from .._peer.inside import is_materialize_wrapped

        if is_materialize_wrapped():
            self._at_first_use = True
        else:
            self._finish()

    def _place_companions(self, kind: str, below: SNode) -> None:
        for field, _ in list(self._waiting):
            snode = field._snode
            if below._leaf is None and snode is not None and below in snode._path_from_root():
                companion = field._companion(kind)
                if companion is not None and companion._snode is None:
                    companion._place(SNode(self, snode._node), field._offset)
        if below._node == 0:
            for field in list(self._apart):
                field._allocate_companion(kind)


def deactivate_all_snodes() -> None:
    """Deactivates all cells of all sparse nodes."""
    for builder in list(sparse_trees):
        if builder._tree.is_live:
            builder.deactivate_all()


class SNodeTree:
    """A tree of fields that has memory."""

    def __init__(self, tree: Tree):
        self._tree = tree

    def destroy(self) -> None:
        """Gives the memory back. Its fields cannot be used any more."""
        self._tree.destroy()


class Root:
    """The root that is always there: ``oc.root.dense(oc.i, 8).place(x)``.

    What is placed under it gets memory when a field of it is first used; after that a new tree begins.
    """

    def __getattr__(self, name: str):
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(current_root().root, name)

    def deactivate_all(self) -> None:
        """Deactivates all cells of all trees: ``oc.root`` itself stands for the one that is not in use yet."""
        deactivate_all_snodes()

    def __repr__(self):
        return "oc.root"


def current_root() -> FieldsBuilder:
    """The builder behind ``oc.root``."""
    builder = runtime.root
    if builder is None or builder.finalized:
        builder = FieldsBuilder()
        builder._at_first_use = True
        runtime.root = builder
    return builder


def materialise_root() -> None:
    """Gives memory to what was placed under ``oc.root``."""
    builder = runtime.root
    if builder is not None and builder._waiting:
        builder._materialise()


root = Root()
