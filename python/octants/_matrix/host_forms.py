"""What the host runs in place of a function's text in the kernel language, so that entries keep their declared type.

A number that is taken out of a matrix on the host is one of numpy's, which does not know whether its type was declared: a matrix that is
built from such numbers is one of plain numbers. A kernel compiles the text; the host runs the form that stands before it.
"""

from __future__ import annotations

import functools

from . import Matrix, cast_array, holds_expression, matrix_over, quiet
from .operators import declared_type, operand
from .promotion import data_type, numpy_type, of_numpy, promoted


def on_host(form):
    """Lets the host call ``form(text, *arguments)``, where ``text`` is the decorated function, which kernels compile.

    Values that are known only when a kernel runs are for the text.
    """

    def decorate(text):
        @functools.wraps(text)
        def call(*args, **kwargs):
            if holds_expression(args) or holds_expression(kwargs):
                return text(*args, **kwargs)
            return form(text, *args, **kwargs)

        # The compiler looks here for the function to compile.
        setattr(call, "__octants_text__", text)  # noqa: B010
        return call

    return decorate


def of_common_type(text, *args, **kwargs):
    """The text's result, with entries of the arguments' common type; of the default real where integers gave reals."""
    import numpy

    with numpy.errstate(all="ignore"):
        result = text(*args, **kwargs)
    operands = [found for found in map(operand, (*args, *kwargs.values())) if found is not None]
    if all(declared is None for _, declared in operands):
        return result
    common = promoted([(array.dtype, declared is not None) for array, declared in operands])

    def typed(value):
        if isinstance(value, tuple):
            return tuple(typed(part) for part in value)
        if not isinstance(value, Matrix) or value.dt is not None or value.entries.dtype.kind == "b":
            return value
        divided = value.entries.dtype.kind == "f" and common.kind != "f"
        target = numpy_type(float) if divided else common
        return matrix_over(cast_array(value.entries, target), of_numpy(target))

    return typed(result)


def of_real_type(text, *args, **kwargs):
    """The text's result, with entries declared as the type that the parameter ``dt`` asks for, else as the default real."""
    given = [*args, *kwargs.values()]
    dt = next((value for value in given if not isinstance(value, Matrix)), None)
    result = text(*args, **kwargs)
    real = data_type(float if dt is None else dt)

    def typed(value):
        return matrix_over(cast_array(value.entries, numpy_type(real)), real) if isinstance(value, Matrix) else value

    return tuple(typed(part) for part in result) if isinstance(result, tuple) else typed(result)


def stacked(axis: int):
    """The form of a function that makes a matrix out of vectors, its rows or columns."""

    def form(text, vectors):
        import numpy

        operands = [operand(vector) for vector in vectors]
        shapes = {None if found is None else found[0].shape for found in operands}
        if len(shapes) != 1 or any(shape is None or len(shape) != 1 for shape in shapes):
            # The text says what is wrong with them.
            return text(vectors)
        arrays, declared = zip(*operands, strict=True)
        common = promoted([(array.dtype, dt is not None) for array, dt in zip(arrays, declared, strict=True)])
        entries = quiet.quietly(numpy.array, arrays, common)
        return matrix_over(entries if axis == 0 else entries.T.copy(), declared_type(common, *declared))

    return form
