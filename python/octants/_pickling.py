"""How kernels, funcs and fields are pickled.

A kernel that can be found by its name is pickled as that name, as Python's functions are. One that cannot (of a function's own, of a notebook), and
one of a main program that ``cloudpickle`` sends to another process, is sent as its function and the text that this is compiled from.
"""

from __future__ import annotations

import sys
from copy import deepcopy

from ._octants import Func, Kernel, host_only


def reduced_function(decorated, function, *options):
    """What ``__reduce__`` of a kernel or a func gives."""
    module, qualname = function.__module__, function.__qualname__
    if _found(module, qualname) is decorated and not (module == "__main__" and _is_cloudpickle_at_work()):
        return qualname
    from ._session.source import find_text

    return rebuild_function, (isinstance(decorated, Kernel), function, options, find_text(function))


def _found(module: str | None, qualname: str):
    """What stands under a name in a module."""
    found = sys.modules.get(module or "")
    for name in qualname.split("."):
        found = getattr(found, name, None)
    return found


def _is_cloudpickle_at_work() -> bool:
    """Whether ``cloudpickle`` is pickling just now: whoever reads its work has another main program."""
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_globals.get("__name__", "").partition(".")[0] == "cloudpickle":
            return True
        frame = frame.f_back
    return False


def rebuild_function(is_kernel: bool, function, options: tuple, text: str | None):
    """Makes a kernel or a func again from its function; ``text`` is the whole file that it stands in."""
    import hashlib
    import linecache

    from ._session import runtime

    name = function.__code__.co_filename
    if text is not None and linecache.getlines(name) != text.splitlines(keepends=True):
        # The reader has no such file, or another one.
        digest = hashlib.sha256(text.encode()).hexdigest()[:12]
        name = f"<{name} {digest}>"
        linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
        function.__code__ = function.__code__.replace(co_filename=name)
    made = (Kernel if is_kernel else Func)(function, runtime, *options)
    made.__doc__, made.__module__ = function.__doc__, function.__module__
    return made


def reduced_field(field):
    """What ``__reduce__`` of a field gives: how it was made, and its contents. Gradients and duals are those of their field."""
    host_only("pickle")
    owner = _owner(field)
    if owner is not None:
        return companion, (owner, field._companion_kind)
    if getattr(field, "_placement", None) is None:
        raise not_copied(field)
    args = _type_of(field), field.name, field._needs, field._placement, field.to_numpy()
    return rebuild_field, (*args, companion_contents(field))


def copied_field(field):
    """What ``copy.copy`` gives: a field with memory of its own, also of gradients and duals."""
    host_only("copy")
    owner = _owner(field)
    if owner is not None:
        return rebuild_field(_type_of(field), field.name, (), owner._placement, field.to_numpy())
    placement = getattr(field, "_placement", None)
    if placement is None:
        raise not_copied(field)
    made = rebuild_field(_type_of(field), field.name, field._needs, placement, None, companion_contents(field))
    # Derivatives go with the elements.
    made.copy_from(field)
    return made


def deeply_copied_field(field, memo: dict):
    """What ``copy.deepcopy`` gives: likewise, and gradients or duals stay those of their field."""
    owner = _owner(field)
    if owner is None:
        made = copied_field(field)
    else:
        made = getattr(deepcopy(owner, memo), field._companion_kind)
    memo[id(field)] = made
    return made


def companion(field, kind: str):
    """The gradients or duals of a field."""
    return getattr(field, kind)


def _owner(field):
    """Whose gradients or duals a field holds, if that was made with a shape."""
    owner = getattr(field, "_companion_owner", None)
    owner = None if owner is None or field._is_second else owner()
    return None if owner is None or owner._placement is None else owner


def not_copied(field) -> TypeError:
    """A field without memory of its own: that of a node belongs to all fields that are placed there."""
    return TypeError(
        f"{field!r} is not copied or pickled: only a field that is made with shape=... has memory of its own, and this one is placed in a node, "
        "is a part of another field, or has no place yet. Make another field and call its copy_from(), or take to_numpy()"
    )


def companion_contents(field) -> dict:
    """The elements of gradients and duals, and of the gradients' duals."""
    contents = {kind: getattr(field, kind).to_numpy() for kind in ("grad", "dual") if field._has(kind)}
    second = field.grad._companions.get("second") if "grad" in contents else None
    return contents if second is None else {**contents, "second": second.to_numpy()}


def set_companions(field, contents: dict) -> None:
    """Gives a field the gradients and duals of another one, with memory where it has none."""
    for kind in contents.keys() - {"second"}:
        if not field._has(kind):
            field._allocate_companion(kind)
        getattr(field, kind).from_numpy(contents[kind])
    if "second" in contents:
        field.grad._second_derivatives().from_numpy(contents["second"])


def _type_of(field):
    """What ``oc.field`` made it of, or types of the entries."""
    from ._fields.matrix import MatrixField
    from ._matrix.types import matrix, vector

    if not isinstance(field, MatrixField):
        return field.dtype
    if field._declared is None:
        return field._element_shape, [dtype.name for dtype in field._dtypes]
    extents = field._element_shape
    return vector(extents[0], field.dtype) if len(extents) == 1 else matrix(*extents, dtype=field.dtype)


def rebuild_field(dtype, name: str, needs: tuple[str, ...], placement: tuple, data, companions: dict | None = None):
    """Makes a field again from its pickle."""
    from ._fields.making import field, matrix_field, vector_field
    from ._octants import dtypes
    from ._session import runtime

    if runtime.arch is None:
        raise RuntimeError("call oc.init() before unpickling a field")
    shape, order, offset, layout = placement
    options = {"order": order, "name": name, "offset": offset, "layout": layout}
    options |= {"needs_grad": "grad" in needs, "needs_dual": "dual" in needs}
    if isinstance(dtype, tuple):
        extents, types = dtype[0], [dtypes[one] for one in dtype[1]]
        if len(extents) == 1:
            made = vector_field(extents[0], dtype=types, shape=shape, **options)
        else:
            rows = [types[row * extents[1] : (row + 1) * extents[1]] for row in range(extents[0])]
            made = matrix_field(extents[0], extents[1], dtype=rows, shape=shape, **options)
    else:
        made = field(dtype, shape, **options)
    if data is not None:
        made.from_numpy(data)
    set_companions(made, companions or {})
    return made
