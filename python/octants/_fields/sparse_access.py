# type: ignore  (in the kernel language annotations are values)
"""What the host does with fields whose elements may not be there: kernels, since only code finds and makes cells.

The functions are called by the extension in place of copies. Arrays are flat: elements in row-major order, the entries of each side by
side.
"""

from __future__ import annotations

from .. import _language as lang
from .._language.fields import deactivate_all
from .._matrix import Vector
from .._matrix.conversion import converted
from .._matrix.promotion import numpy_type
from .._primitive_types import i32
from .._session import is_watched, kernel, runtime
from ..types import Template, ndarray

_FLAT = ndarray(ndim=1)
_INDEX = ndarray(dtype=i32, ndim=1)


@kernel
def _get(x: Template, index: _INDEX, out: _FLAT, entries: Template):
    at = Vector([index[k] for k in lang.static(range(len(x.shape)))]) if lang.static(len(x.shape) > 0) else ()
    for entry in lang.static(range(len(entries))):
        if lang.static(entries[entry] is None):
            out[entry] = x[at]
        else:
            out[entry] = x[at][entries[entry]]


@kernel
def _set(x: Template, index: _INDEX, values: _FLAT, entries: Template):
    at = Vector([index[k] for k in lang.static(range(len(x.shape)))]) if lang.static(len(x.shape) > 0) else ()
    for entry in lang.static(range(len(entries))):
        if lang.static(entries[entry] is None):
            x[at] = values[entry]
        else:
            x[at][entries[entry]] = values[entry]


@kernel
def _fill(x: Template, values: _FLAT, entries: Template):
    for at in lang.grouped(x):
        for entry in lang.static(range(len(entries))):
            if lang.static(entries[entry] is None):
                x[at] = values[entry]
            else:
                x[at][entries[entry]] = values[entry]


@kernel
def _copy(x: Template, array: _FLAT, entries: Template, origin: Template, to_array: Template):
    for at in lang.grouped(x):
        number = i32(0)
        for axis in lang.static(range(len(x.shape))):
            number = lang.cast(number * x.shape[axis] + at[axis] - origin[axis], i32)
        for entry in lang.static(range(len(entries))):
            place = lang.cast(number * lang.static(len(entries)) + entry, i32)
            if lang.static(entries[entry] is None and to_array):
                array[place] = x[at]
            elif lang.static(to_array):
                array[place] = x[at][entries[entry]]
            elif lang.static(entries[entry] is None):
                x[at] = array[place]
            else:
                x[at][entries[entry]] = array[place]


@kernel
def _deactivate_all(node: Template):
    deactivate_all(node)


@kernel
def _copy_field(target: Template, source: Template, shift: Template, over: Template):
    for at in lang.grouped(over):
        if lang.static(over is target):
            target[at] = source[at - Vector(shift)]
        else:
            target[at + Vector(shift)] = source[at]


@kernel
def _copy_element(target: Template, source: Template):
    target[None] = source[None]


def _entries(field) -> tuple:
    """How each entry of an element is named in a kernel; ``None`` for a scalar."""
    shape = tuple(getattr(field, "_element_shape", ()))
    if len(shape) == 2:
        return tuple((row, column) for row in range(shape[0]) for column in range(shape[1]))
    return tuple(range(shape[0])) if shape else (None,)


def _array(field, values):
    """Numbers of the field's type; integers that do not fit wrap around."""
    import numpy

    wanted = numpy.dtype(_number_type(field))
    with numpy.errstate(all="ignore"):
        if wanted.kind in "iu" and all(isinstance(value, int) for value in values):
            bits = 8 * wanted.itemsize
            wrapped = [value & ((1 << bits) - 1) for value in values]
            return numpy.asarray(wrapped, dtype=f"u{wanted.itemsize}").view(wanted)
        return converted(numpy.asarray(values), wanted)


def _number_type(field):
    """The numpy type of its numbers; of quantised ones, that they are calculated with as."""
    return numpy_type(getattr(field, "_compute", None) or field.dtype)


def _position(index):
    import numpy

    return numpy.asarray(index, dtype=numpy.int32)


def _call(kernel, *args, **kwargs):
    kernel(*args, **kwargs)


def _look(kernel, *args, **kwargs):
    """A kernel by which the host looks at elements, which is no call of a Tape."""
    if runtime.call_hook is None:
        kernel(*args, **kwargs)
        return
    from ..ad.tape import unrecorded

    unrecorded(kernel, args, kwargs)


def element(field, index) -> list:
    """The scalars of an element; zeros if it is not there."""
    entries = _entries(field)
    out = _array(field, [0] * len(entries))
    _look(_get, field, _position(index), out, entries)
    return out.tolist()


def set_element(field, index, values) -> None:
    """Sets an element, and makes it."""
    _set(field, _position(index), _array(field, values), _entries(field))


def set_entry(field, index, entry, value) -> None:
    """Sets one entry of an element, and makes it."""
    _set(field, _position(index), _array(field, [value]), (_entries(field)[entry],))


def fill(field, values, qd_stream=None) -> None:
    """Sets all elements that are there."""
    if not field.shape:
        set_element(field, (), values)
        return
    _fill(field, _array(field, values), _entries(field), qd_stream=qd_stream)


def read(field, shape, qd_stream=None):
    """All elements as a numpy array; zeros where they are not there."""
    import numpy

    out = numpy.zeros(shape, dtype=_number_type(field))
    _transfer(field, out, True, qd_stream)
    return out


def write(field, array, qd_stream=None) -> None:
    """Sets all elements that are there from an array in C order."""
    _transfer(field, array, False, qd_stream)


def copy_among(field, array, number, count, to_array, qd_stream=None) -> None:
    """Copies all elements to every ``count``th scalar of a contiguous array, or from there."""
    part = array.reshape(-1)[number::count]
    if to_array:
        part[:] = read(field, part.shape, qd_stream)
    else:
        write(field, part.copy(), qd_stream)


def _transfer(field, array, to_array: bool, qd_stream) -> None:
    from ..exceptions import OctantsRuntimeError

    if array.size >= 2**31:
        raise OctantsRuntimeError(
            f"a sparse field of {array.size} elements cannot be an array: loop over what is active in a kernel"
        )
    flat = array.reshape(-1)
    if not field.shape and to_array:
        flat[:] = element(field, ())
        return
    if not field.shape:
        set_element(field, (), flat.tolist())
        return
    (_look if to_array else _call)(
        _copy, field, flat, _entries(field), tuple(field._origin()), to_array, qd_stream=qd_stream
    )


def copy_field(target, source, qd_stream=None) -> None:
    """Sets all elements to those of another field: to zeros where they are not there, which makes no cells."""
    if not source.shape and is_watched():
        _copy_element(target, source, qd_stream=qd_stream)
        return
    if not source.shape:
        target[None] = source[None]
        return
    shift = tuple(to - of for to, of in zip(target._origin(), source._origin(), strict=True))
    if source._is_sparse:
        _copy_field(target, source, shift, target, qd_stream=qd_stream)
    if target._is_sparse or not source._is_sparse:
        _copy_field(target, source, shift, source, qd_stream=qd_stream)


def copy_active(target, source) -> None:
    """Sets those elements of a sparse field that are there to those of another field of the same shape."""
    shift = tuple(to - of for to, of in zip(target._origin(), source._origin(), strict=True))
    if target.shape:
        _copy_field(target, source, shift, target)
    else:
        target[None] = source[None]


def clear(node, qd_stream=None) -> None:
    """Gives up all cells of a node and below."""
    _deactivate_all(node, qd_stream=qd_stream)
