"""Classes whose methods are kernels and funcs."""

from __future__ import annotations


def data_oriented(cls=None, *, stable_members=False, template_primitives=True):
    """Lets a class have kernels and funcs as methods.

    Arrays that the object refers to are arguments of the kernel, read from the object at each call. Numbers are constants of the
    compiled code, and the kernel compiles again when one that it uses has changed; with ``template_primitives=False`` they are
    arguments, too. ``stable_members=True``, by which a program says that members are never assigned again, is accepted and changes
    nothing: what a kernel uses is compared at each call as it is.
    """
    if cls is None:
        return lambda decorated: data_oriented(decorated, template_primitives=template_primitives)
    if not isinstance(cls, type):
        raise TypeError(f"@oc.data_oriented decorates a class, not {type(cls).__name__}")
    cls.__octants_template_primitives__ = bool(template_primitives)
    # By which programs for Quadrants tell such classes.
    cls._data_oriented = True
    return cls


def field_type(cls: type, name: str) -> object:
    """The type of a dataclass's field, a text resolved where the class that declares it was defined."""
    import sys

    for base in cls.__mro__:
        annotation = vars(base).get("__annotations__", {}).get(name)
        if isinstance(annotation, str):
            scope = vars(sys.modules[base.__module__]) if base.__module__ in sys.modules else {}
            return eval(annotation, dict(scope), dict(vars(base)))
        if annotation is not None:
            return annotation
    return None


def require_frozen(cls: type, path: tuple[type, ...] = ()) -> None:
    """Refuses a dataclass with a ``Final`` member that can be reached through one that is not frozen.

    Such members are constants of compiled code: the class says that nobody assigns them.
    """
    import typing

    if cls in path:
        return
    path = (*path, cls)
    for name in getattr(cls, "__dataclass_fields__", ()):
        declared = field_type(cls, name)
        if typing.get_origin(declared) is typing.Final or declared is typing.Final:
            for holder in path:
                if not holder.__dataclass_params__.frozen:
                    raise TypeError(
                        f"`{cls.__name__}.{name}` is `Final`, a constant of compiled code, and {holder.__name__} is not frozen: write "
                        f"`@dataclasses.dataclass(frozen=True)` above {holder.__name__}, or leave `Final` out"
                    )
        elif isinstance(declared, type) and hasattr(declared, "__dataclass_fields__"):
            require_frozen(declared, path)
