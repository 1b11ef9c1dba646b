"""Fields of structs: a field for each member."""

from __future__ import annotations

from .._matrix.struct import Struct, StructType
from .._session import is_watched
from .elements import struct_element
from .field import Field

TYPE_CHECKING = False  # as `typing` says it, without its weight
if TYPE_CHECKING:
    from typing import Any

TYPE_CHECKING = False  # as `typing` says it, without its weight
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .node import SNode


class StructField(Field):
    """A field of structs: ``oc.Struct.field({"mass": oc.f32, "pos": vec3}, shape=8)``. Its members are fields, and attributes."""

    _is_companion = False
    _is_struct = True

    def __init__(self, struct_type: StructType, members: dict[str, Field], name: str = ""):
        super().__init__(name)
        #: The type of the elements.
        self.struct_type = struct_type
        self._members = members
        # A member may have the name of a method, which it then hides, but not of a property.
        self.__dict__.update((key, member) for key, member in members.items() if key not in self.__dict__)

    # ---- what it is ----

    @property
    def keys(self) -> list[str]:
        """The names of the members."""
        return list(self._members)

    @property
    def dtype(self) -> StructType:
        """The type of the elements."""
        return self.struct_type

    @property
    def methods(self) -> dict:
        """The functions that elements have as methods, by name."""
        return self.struct_type.methods

    def get_member_field(self, key: str) -> Field:
        """The field of a member."""
        if key not in self._members:
            raise KeyError(f"the field has no member {key!r}; it has {', '.join(self._members)}")
        return self._members[key]

    def __getattr__(self, name: str) -> Field:
        members = self.__dict__.get("_members", {})
        if name in members:
            return members[name]
        raise AttributeError(f"the field has no member {name!r}; it has {', '.join(members)}", name=name, obj=self)

    def __dir__(self):
        return [*super().__dir__(), *self._members]

    # ---- placing ----

    @property
    def _snode(self) -> SNode | None:  # type: ignore[override]
        snodes = [member._snode for member in self._members.values()]
        return snodes[0] if all(snodes) else None

    def _place(self, node: SNode, offset: list[int]) -> None:
        for field in self._leaf_fields():
            field._require_no_place()
        for member in self._members.values():
            member._place(node, offset)

    def _materialise(self) -> None:
        for member in self._members.values():
            member._require_place()
        shapes = {name: member.shape for name, member in self._members.items()}
        if len(set(shapes.values())) > 1:
            from ..exceptions import OctantsRuntimeError

            raise OctantsRuntimeError(
                f"the members of {self._description()} are placed with different shapes: "
                f"{', '.join(f'{name} {shape}' for name, shape in shapes.items())}; all must have the same"
            )
        self._bind_members(list(self._members.items()), self.struct_type)

    def _leaf_fields(self) -> Iterator[Field]:
        for member in self._members.values():
            yield from member._leaf_fields()

    def _new_companion(self, kind: str) -> StructField | None:
        members = {name: member._companion(kind) for name, member in self._members.items()}
        placed = {name: member for name, member in members.items() if member is not None}
        return StructField(self.struct_type, placed, f"{self.name}.{kind}") if placed else None

    # ---- elements ----

    def __getitem__(self, index) -> Any:
        return struct_element(self, self._checked(index))

    def __setitem__(self, index, value):
        index = self._checked(index)
        given = self._member_values(value)
        if set(given) - set(self._members):
            raise KeyError(f"the field has the members {', '.join(self._members)}; got {', '.join(given)}")
        for name, member in self._members.items():
            member[index] = given[name]  # type: ignore[index]

    def _member_values(self, value) -> dict:
        """What members are set to, by name."""
        if isinstance(value, Struct):
            value = dict(value.items)
        if not isinstance(value, dict):
            raise TypeError(f"a struct is set to a struct or a dict, not to {type(value).__name__}")
        for name in self._members:
            if name not in value:
                raise KeyError(f"member {name!r} is missing; the field has {', '.join(self._members)}")
        return value

    # ---- all elements ----

    def fill(self, val, *, qd_stream=None) -> None:
        """Sets every element: to one number in all places, or to a struct or dict."""
        if isinstance(val, (Struct, dict)):
            given = self._member_values(val)
            for name, member in self._members.items():
                member.fill(given[name], qd_stream=qd_stream)
        else:
            for member in self._members.values():
                member.fill(val, qd_stream=qd_stream)

    def _copy_elements(self, other: Field, qd_stream) -> None:
        if not isinstance(other, StructField) or other.keys != self.keys:
            raise ValueError(
                f"a field of structs with the members {', '.join(self.keys)} cannot be copied from {other!r}"
            )
        is_same = not is_watched() and self.struct_type.members == other.struct_type.members
        if is_same and self._copied_at_once(other, qd_stream):
            return
        for name, member in self._members.items():
            member.copy_from(other.get_member_field(name), qd_stream=qd_stream)

    def to_numpy(self, *, copy: bool | None = True, qd_stream=None) -> dict:
        """The members as numpy arrays, by name; members that are structs as dicts."""
        return self._each(lambda member: member.to_numpy(copy=copy, qd_stream=qd_stream))

    def to_torch(self, device=None, *, copy: bool | None = True, qd_stream=None) -> dict:
        """The members as torch tensors, by name."""
        return self._each(lambda member: member.to_torch(device, copy=copy, qd_stream=qd_stream))

    def _each(self, convert: Callable[[Field], object]) -> dict:
        return {name: convert(member) for name, member in self._members.items()}

    def from_numpy(self, array_dict, *, qd_stream=None) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Sets all elements from numpy arrays by the names of the members."""
        given = self._member_values(array_dict)
        for name, member in self._members.items():
            member.from_numpy(given[name], qd_stream=qd_stream)

    def from_torch(self, array_dict, *, qd_stream=None) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Sets all elements from torch tensors by the names of the members."""
        given = self._member_values(array_dict)
        for name, member in self._members.items():
            member.from_torch(given[name], qd_stream=qd_stream)

    def to_dlpack(self, versioned: bool = False):
        """Refused: a struct is no array; its members are."""
        raise ValueError("a field of structs is no array; call to_dlpack on its members")

    def __dlpack__(self, **options):
        """Refused, also as a copy."""
        raise BufferError("a field of structs is no array; ask its members for their memory")

    def __dlpack_device__(self):
        raise BufferError("a field of structs is no array; ask its members for their memory")

    def __array__(self, dtype=None, copy: bool | None = None):
        """Refused, also as a copy."""
        raise TypeError("a field of structs is no array; take its members, or the dict that to_numpy() gives")

    def __repr__(self):
        name = f" {self.name}" if self.name else ""
        members = ", ".join(f"{key}: {_type_text(dtype)}" for key, dtype in self.struct_type.members.items())
        return f"<oc.Struct.field{name} {{{members}}} {self.shape if self._snode or self._is_bound else 'not placed'}>"


def _type_text(dtype) -> str:
    return dtype.__name__ if isinstance(dtype, StructType) else repr(dtype)
