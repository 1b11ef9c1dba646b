"""Structs on the host: values with named members, their types, and ``@oc.dataclass``.

Inside a kernel the compiler recognises ``Struct`` and struct types by their mark ``__octants__`` and never runs them; it reads
``members`` and ``methods`` of a type, ``entries`` of a value.
"""

from __future__ import annotations

from .._octants import trace_call
from ..exceptions import OctantsSyntaxError, OctantsTypeError
from . import Matrix, holds_expression
from .promotion import data_type
from .types import MatrixType

TYPE_CHECKING = False  # as `typing` says it, without its weight
if TYPE_CHECKING:
    from typing import Any

_METHODS_KEY = "__struct_methods"


class Struct:
    """A value with named members: ``oc.Struct(pos=oc.Vector([0, 0]), mass=1.0)``, or ``oc.Struct({"mass": 1.0})``.

    Members are attributes, or items by name. A member keeps the type that it was made with.
    """

    __slots__ = ("__weakref__", "_entries", "_methods", "_type")
    __octants__ = "Struct"

    if TYPE_CHECKING:
        field: Any

    def __new__(cls, *args, **kwargs):
        if holds_expression(args) or holds_expression(kwargs):
            return trace_call(cls, args, kwargs)
        if len(args) + bool(kwargs) > 1 or not all(isinstance(given, (dict, Struct)) for given in args):
            raise OctantsSyntaxError("oc.Struct takes one dict, or its members as keywords")
        given = kwargs
        for members in args:
            given = dict(members.items if isinstance(members, Struct) else members)
        methods = given.pop(_METHODS_KEY, {})
        for name in given:
            if not isinstance(name, str) or not name.isidentifier():
                raise OctantsSyntaxError(f"the members of a struct have names, not {name!r}")
        return _made({name: _member(value) for name, value in given.items()}, methods, None)

    @property
    def keys(self) -> list[str]:
        """The names of the members."""
        return list(self._entries)

    @property
    def items(self):
        """The members as pairs of name and value."""
        return self._entries.items()

    @property
    def entries(self) -> dict:
        """The members by name."""
        return self._entries

    @property
    def methods(self) -> dict:
        """The functions that the struct has as methods, by name."""
        return self._methods

    def to_dict(self, include_methods: bool = False, include_ndim: bool = False) -> dict:
        """The members as a dict: structs as dicts, vectors and matrices as lists."""
        result: dict = {}
        ranks = {}
        for name, value in self._entries.items():
            if isinstance(value, Struct):
                result[name] = value.to_dict(include_methods=include_methods, include_ndim=include_ndim)
            elif isinstance(value, Matrix):
                result[name] = value.to_list()
                ranks[name] = value.ndim
            else:
                result[name] = value
        if include_methods:
            result[_METHODS_KEY] = dict(self._methods)
        if include_ndim:
            result["__matrix_ndim"] = ranks
        return result

    def __getattr__(self, name):
        if name in self._entries:
            return self._entries[name]
        method = self._methods.get(name)
        if method is not None:
            return method.__get__(self, type(self)) if hasattr(method, "__get__") else method
        group = () if self._type is None else self._type.unpacked.get(name, ())
        if group:
            return _Unpacked(self, group)
        raise AttributeError(
            f"the struct has no member {name!r}; it has {', '.join(self._entries)}", name=name, obj=self
        )

    def __setattr__(self, name, value):
        if name not in self._entries:
            raise AttributeError(
                f"the struct has no member {name!r} to set; it has {', '.join(self._entries)}", name=name, obj=self
            )
        self._entries[name] = _assigned(name, self._entries[name], value, self._type)

    def __getitem__(self, name):
        if name not in self._entries:
            raise KeyError(f"the struct has no member {name!r}; it has {', '.join(self._entries)}")
        return self._entries[name]

    def __setitem__(self, name, value):
        self[name]
        setattr(self, name, value)

    def __dir__(self):
        return [*object.__dir__(self), *self._entries, *self._methods]

    def __len__(self):
        return len(self._entries)

    def __iter__(self):
        return iter(self._entries.values())

    def __contains__(self, name):
        return name in self._entries

    def __repr__(self):
        return repr(self.to_dict())

    def __reduce__(self):
        return _made, (self._entries, self._methods, self._type)

    def __copy__(self):
        return _made({name: _copied(value) for name, value in self._entries.items()}, self._methods, self._type)

    def __deepcopy__(self, memo):
        return self.__copy__()


class StructType:
    """A type of structs: ``oc.types.struct(pos=vec3, mass=oc.f32)``. Call it to make values.

    Members are given in order or by name; what is left out is zero. A dict or a struct with the same members is cast.
    """

    __octants__ = "struct_type"

    def __init__(self, members: dict, methods: dict | None = None, name: str | None = None, doc: str | None = None):
        self.__name__ = name or "struct"
        self.__doc__ = doc or type(self).__doc__
        #: Vectors that are kept as scalar members, by name: the names of these members.
        self.unpacked: dict[str, tuple[str, ...]] = {}
        #: Types by name: data types, types of vectors and matrices, types of structs.
        self.members: dict = {}
        for member, dtype in members.items():
            self._add(member, dtype, unpack=name is not None)
        self.methods: dict = dict(methods or {})
        #: What slices of arrays stand for where values are loaded from them and stored: of tiles, by the name of the operation.
        self.slices: dict = {}

    def __or__(self, other):
        """``S | None`` annotates a parameter that may be ``None``."""
        if other is not None:
            return NotImplemented
        from typing import Optional

        return Optional[self]  # noqa: UP045

    __ror__ = __or__

    def _add(self, member: str, dtype, unpack: bool) -> None:
        if isinstance(dtype, MatrixType) and dtype.unpacked:
            if not unpack:
                raise OctantsSyntaxError(
                    f"member `{member}`: a vector with unpacked=True is for members of an @oc.dataclass"
                )
            dtype.require_dtype(f"the type of member `{member}`")
            names = tuple(f"_{member}{i}" for i in range(dtype.n))
            self.unpacked[member] = names
            for part in names:
                self._add(part, dtype.dtype, unpack)
            return
        if member in self.members:
            raise OctantsSyntaxError(
                f"member `{member}` is there twice: unpacked vectors are kept as members of such names"
            )
        self.members[member] = _member_type(member, dtype)

    def __call__(self, *args, **kwargs):
        if holds_expression(args) or holds_expression(kwargs):
            return trace_call(self, args, kwargs)
        if len(args) == 1 and not kwargs and isinstance(args[0], (dict, Struct)):
            given = _members_of(args[0])
            first = next(iter(self.members.values()), None)
            if set(given) == set(self.members) or not isinstance(first, StructType):
                return self.cast(given)
        given = self._matched(args, kwargs)
        return self._made({name: given.get(name, 0) for name in self.members})

    def cast(self, struct):
        """A struct or dict with the same members as a value of this type."""
        if not isinstance(struct, (dict, Struct)):
            raise OctantsTypeError(
                f"only a struct or a dict can be made a {self.__name__}, not {type(struct).__name__}"
            )
        given = _members_of(struct)
        if set(given) != set(self.members):
            raise OctantsSyntaxError(
                f"{self.__name__} has the members {', '.join(self.members)}; got {', '.join(given) or 'none'}"
            )
        return self._made(given)

    def filled_with_scalar(self, value):
        """The struct with one number in all places."""
        return self._made(
            {
                name: dtype.filled_with_scalar(value) if isinstance(dtype, StructType) else value
                for name, dtype in self.members.items()
            }
        )

    def field(self, shape=None, **options):
        """A field of such structs; the options are those of ``oc.Struct.field``."""
        from .._fields.making import struct_type_field

        return struct_type_field(self, shape, **options)

    def _matched(self, args: tuple, kwargs: dict) -> dict:
        names = list(self.members)
        if len(args) > len(names):
            members = "1 member" if len(names) == 1 else f"{len(names)} members"
            raise OctantsSyntaxError(f"{self.__name__} has {members}, got {len(args)} values")
        given = dict(zip(names, args, strict=False))
        for name, value in kwargs.items():
            if name not in self.members:
                raise OctantsSyntaxError(f"{self.__name__} has no member {name!r}; it has {', '.join(names) or 'none'}")
            if name in given:
                raise OctantsSyntaxError(f"member {name!r} of {self.__name__} is given twice")
            given[name] = value
        return given

    def _made(self, given: dict):
        return _made(
            {name: _typed(name, dtype, given[name]) for name, dtype in self.members.items()}, self.methods, self
        )

    def __instancecheck__(self, instance) -> bool:
        return isinstance(instance, Struct) and (
            instance._type is self or (instance._type is None and instance.keys == list(self.members))
        )

    def __repr__(self):
        members = ", ".join(f"{name}={dtype!r}" for name, dtype in self.members.items())
        return f"<oc.StructType {self.__name__}: {members}>"


def struct(**members) -> StructType:
    """The type of structs with the given members: ``oc.types.struct(pos=vec3, mass=oc.f32)``.

    The key ``__struct_methods`` gives functions by name that values have as methods.
    """
    methods = members.pop(_METHODS_KEY, {})
    return StructType(members, methods)


def dataclass(cls):
    """Makes a struct type out of a class: its annotations are the members, its functions the methods of values."""
    if not isinstance(cls, type):
        raise OctantsSyntaxError(f"@oc.dataclass decorates a class, not {type(cls).__name__}")
    import sys

    scope = sys._getframe(1).f_locals
    members: dict = {}
    methods: dict = {}
    for base in reversed(cls.__mro__[:-1]):
        annotations = _annotations_of(base, scope)
        for name, value in vars(base).items():
            if name in annotations:
                raise OctantsSyntaxError(
                    f"Default value in @dataclass is not supported. `{cls.__name__}.{name}` has one."
                )
            if not name.startswith("__") and (
                callable(value) or isinstance(value, (staticmethod, classmethod, property))
            ):
                methods[name] = value
        members.update(annotations)
    return StructType(members, methods, cls.__name__, cls.__doc__)


# ---- members ----------------------------------------------------------------------------------------------------------------


def _annotations_of(cls: type, scope) -> dict:
    import sys

    annotations = dict(vars(cls).get("__annotations__") or getattr(cls, "__annotations__", {}))
    module = sys.modules.get(cls.__module__)
    for name, annotation in annotations.items():
        if isinstance(annotation, str):
            try:
                annotations[name] = eval(annotation, dict(vars(module)) if module else {}, dict(scope))
            except NameError as error:
                raise OctantsSyntaxError(f"the type of member `{name}` of {cls.__name__}: {error}") from None
    return annotations


def _member_type(name: str, dtype):
    if isinstance(dtype, MatrixType):
        dtype.require_dtype(f"the type of member `{name}`")
        return dtype
    if isinstance(dtype, StructType):
        return dtype
    try:
        return data_type(dtype)
    except TypeError:
        kinds = "a data type, a vector, matrix or struct type"
        raise OctantsTypeError(f"the type of member `{name}` is {kinds}, not {dtype!r}") from None


def _made(entries: dict, methods: dict, struct_type: StructType | None) -> Struct:
    result = object.__new__(Struct)
    object.__setattr__(result, "_entries", entries)
    object.__setattr__(result, "_methods", methods)
    object.__setattr__(result, "_type", struct_type)
    return result


def _members_of(value) -> dict:
    members = dict(value.items if isinstance(value, Struct) else value)
    members.pop(_METHODS_KEY, None)
    return members


def _copied(value):
    return value.__copy__() if isinstance(value, (Struct, Matrix)) else value


def _member(value):
    """What a member without a declared type holds: structs for dicts, matrices for lists, copies of structs and matrices."""
    if isinstance(value, dict):
        return Struct(value)
    if isinstance(value, (list, tuple)):
        return Matrix(value)
    return _copied(value)


def _is_number(value) -> bool:
    """Python's numbers and numpy's scalars."""
    return isinstance(value, (int, float)) or getattr(value, "shape", None) == ()


def _typed(name: str, dtype, value):
    """A value as a member of a declared type; a number fills a vector or matrix, and goes to the first member of a struct."""
    try:
        if isinstance(dtype, StructType):
            return dtype(value) if _is_number(value) else dtype.cast(value)
        return dtype(value)
    except (TypeError, ValueError, SyntaxError) as error:
        kind = OctantsSyntaxError if isinstance(error, SyntaxError) else OctantsTypeError
        raise kind(f"member `{name}` of type {dtype!r}: {error}") from None


def _assigned(name: str, old, value, struct_type: StructType | None):
    """What a member holds after an assignment: as in kernels, its type does not change."""
    if isinstance(old, Struct):
        if not isinstance(value, (dict, Struct)):
            raise OctantsTypeError(
                f"only a struct or a dict can be assigned to member `{name}`, not {type(value).__name__}"
            )
        given = _members_of(value)
        if set(given) != set(old.keys):
            raise OctantsTypeError(
                f"cannot assign a struct with members {', '.join(given) or 'none'} to member `{name}` with {', '.join(old.keys)}"
            )
        return _made({key: _assigned(key, old[key], given[key], old._type) for key in old.keys}, old.methods, old._type)
    if struct_type is not None:
        return _typed(name, struct_type.members[name], value)
    if isinstance(old, Matrix):
        new = _member(value)
        if not isinstance(new, Matrix) or new.get_shape() != old.get_shape():
            raise OctantsTypeError(
                f"member `{name}` is a matrix of shape {old.get_shape()}; {value!r} has another shape"
            )
        return new
    return _member(value)


class OfClass:
    """A function of a class of structs that its values do not have: there the name is free for a member."""

    __slots__ = ("function", "name")

    def __init__(self, name: str, function):
        self.name = name
        self.function = function

    def __get__(self, instance, owner):
        return self.function if instance is None else instance.__getattr__(self.name)


class _Unpacked:
    """A vector that is kept as scalar members, to be indexed."""

    __slots__ = ("_names", "_struct")

    def __init__(self, struct: Struct, names: tuple[str, ...]):
        self._struct = struct
        self._names = names

    def __getitem__(self, index):
        return self._struct[self._names[index]]

    def __setitem__(self, index, value):
        self._struct[self._names[index]] = value

    def __len__(self):
        return len(self._names)

    def __repr__(self):
        return repr([self._struct[name] for name in self._names])
