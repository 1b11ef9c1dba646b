"""The names of the language for programs that run as plain Python: what numpy, Python or the host's objects do in another way is said here.

A program's model imports this module as ``oc``. Names that are not here are those of the package.
"""

from __future__ import annotations

import ast
import contextlib
import copy
import itertools
import math

import numpy as np
from generator_activity import HostNode
from generator_types import REALS, SCALARS, Tensor

import octants

#: What integers become in a true division: ``default_fp`` of the program.
default_real: type = np.float64


def __getattr__(name: str):
    return getattr(octants, name)


def kernel(function):
    return function


func = real_func = kernel


def data_oriented(cls):
    return cls


def loop_config(**_):
    """Says how a loop runs, not what it computes."""


@contextlib.contextmanager
def stream_parallel():
    """Says what may run at the same time."""
    yield


def ref(dtype):
    return dtype


# ---- arrays -------------------------------------------------------------------------------------------------------------


class HostArray:
    """An array or a view as kernels see it: elements may be vectors, a loop goes over its indices."""

    def __init__(
        self, data: np.ndarray, element: str | Tensor, origin: tuple[int, ...] = (), *, clamps: bool = False,
        activity=None, stored=None,
    ):  # fmt: skip
        self.data, self.element, self.origin, self.clamps = data, element, origin, clamps
        #: Of a sparse field: which of its cells are there. Of a quantised one: what becomes of a value that is stored.
        self.activity, self.stored = activity, stored
        rank = len(element.shape) if isinstance(element, Tensor) else 0
        self.shape = data.shape[: data.ndim - rank]
        self.size = self.shape[0]

    def _index(self, index):
        if isinstance(index, (int, np.integer)):
            return int(index)
        return tuple(int(i) - first for i, first in itertools.zip_longest(index, self.origin, fillvalue=0))

    def __getitem__(self, index):
        if isinstance(index, slice):
            return HostArray(self.data[index], self.element, clamps=self.clamps)
        if self.clamps and self.size == 0:
            value = np.zeros(self.data.shape[1:], self.data.dtype)[()]
        elif self.clamps:
            value = self.data[min(max(int(index), 0), self.size - 1)]
        else:
            value = self.data[self._index(index)]
        if not isinstance(self.element, Tensor):
            return value
        from octants._matrix import matrix_over

        # A view: an assignment to an entry of the element reaches the array.
        return matrix_over(value, getattr(octants, self.element.scalar))

    def __setitem__(self, index, value):
        at = self._index(index)
        if self.activity:
            self.activity.activate_element(at if isinstance(at, tuple) else (at,))
        if self.stored:
            value = self.stored(SCALARS[self.element](value))
        self.data[at] = np.asarray(value) if isinstance(self.element, Tensor) else value

    def parent(self, level=1):
        return HostNode(self.activity, 2 - level)

    def __iter__(self):
        if self.activity:
            firsts = self.origin or (0,) * len(self.shape)
            visited = [tuple(a + n for a, n in zip(firsts, at, strict=True)) for at in self.activity.visited_elements()]
            return iter([at[0] for at in visited] if len(self.shape) == 1 else visited)
        if len(self.shape) == 1:
            return iter(range(self.shape[0]))
        firsts = self.origin or (0,) * len(self.shape)
        return itertools.product(*(range(a, a + n) for a, n in zip(firsts, self.shape, strict=True)))

    def subview(self, offset, size):
        return self[int(offset) : int(offset) + int(size)]


class HostStructs(list):
    """A field of structs: what is assigned is copied."""

    shape = property(lambda self: (len(self),))

    def __setitem__(self, index, value):
        super().__setitem__(int(index), copied(value))

    def __getitem__(self, index):
        return super().__getitem__(int(index))

    def __iter__(self):
        return iter(range(len(self)))

    def elements(self) -> list:
        return [self[i] for i in self]


class BufferView:
    """A part of an array; with a type in brackets, what a member is annotated with."""

    def __new__(cls, array, offset, size):
        return array.subview(offset, size)

    def __class_getitem__(cls, _):
        return cls


def is_active(node, index):
    return node.is_active(index)


def activate(node, index):
    node.activate(index)


def deactivate(node, index):
    node.deactivate(index)


def append(node, index, value):
    return node.append(index, value)


def length(node, index):
    return node.length(index)


# ---- structs ------------------------------------------------------------------------------------------------------------


def copied(value):
    """What an assignment copies in a kernel."""
    return copy.deepcopy(value) if isinstance(value, (octants.Matrix, octants.Vector)) or is_struct(value) else value


def is_struct(value) -> bool:
    return hasattr(type(value), "__annotations__") and hasattr(type(value), "is_model_struct")


def dataclass(cls):
    """A class of values with the annotated members; those that are not given are zero."""
    members = cls.__annotations__

    def __init__(self, **given):
        for name, dtype in members.items():
            if name in given:
                value = copied(given[name])
            elif isinstance(dtype, type):
                value = dtype()
            else:
                value = SCALARS[str(dtype)](0) if str(dtype) in SCALARS else dtype(0)
            setattr(self, name, value)

    cls.__init__, cls.is_model_struct = __init__, True
    return cls


# ---- arithmetic ---------------------------------------------------------------------------------------------------------


def _is_real(x) -> bool:
    return isinstance(x, (float, np.floating))


def _is_integer(x) -> bool:
    return isinstance(x, (int, np.integer, np.bool_))


def divide(a, b):
    a, b = (default_real(x) if _is_integer(x) else x for x in (a, b))
    return a / b


def floor_div(a, b):
    return np.floor(a / b) if _is_real(a) else a // b


def mod(a, b):
    return a - np.floor(a / b) * b if _is_real(a) else a % b


def power(a, exponent):
    """The result has the type of the base: reals are squared repeatedly, integers wrap."""
    if not _is_real(a):
        return a ** type(a)(exponent)
    result, square, rest = type(a)(1), a, abs(int(exponent))
    while rest:
        if rest & 1:
            result = result * square
        rest >>= 1
        # The last square is not used: it may be infinite.
        square = square * square if rest else square
    return type(a)(1) / result if exponent < 0 else result


def _nearest(function):
    """A function of reals, computed in a wider type."""

    def rounded(*args):
        kind = type(args[0])
        wide = np.longdouble if kind is np.float64 else np.float64
        return kind(function(*(wide(x) for x in args)))

    return rounded


sin, cos, tan, tanh = _nearest(np.sin), _nearest(np.cos), _nearest(np.tan), _nearest(np.tanh)
asin, acos, atan2 = _nearest(np.arcsin), _nearest(np.arccos), _nearest(np.arctan2)
erf = _nearest(lambda x: type(x)(math.erf(x)))
exp, log, pow = _nearest(np.exp), _nearest(np.log), _nearest(np.power)  # noqa: A001
rsqrt = _nearest(lambda x: 1 / np.sqrt(x))


# ---- the text -----------------------------------------------------------------------------------------------------------

_FUNCTIONS = {ast.Div: "divide", ast.FloorDiv: "floor_div", ast.Mod: "mod", ast.Pow: "power"}


class _Operators(ast.NodeTransformer):
    """Operators that mean something else for numpy's scalars become calls, what is assigned is copied, and types of parameters
    are left out."""

    @staticmethod
    def _call(name: str, *given):
        def here(node):
            return ast.copy_location(node, given[0])

        target = here(ast.Attribute(here(ast.Name("oc", ast.Load())), name, ast.Load()))
        return here(ast.Call(target, list(given), []))

    def visit_BinOp(self, node):  # noqa: N802
        self.generic_visit(node)
        name = _FUNCTIONS.get(type(node.op))
        return self._call(name, node.left, node.right) if name else node

    def visit_Assign(self, node):  # noqa: N802
        self.generic_visit(node)
        node.value = self._copied(node.value)
        return node

    def _copied(self, value):
        if isinstance(value, ast.Tuple):
            return ast.copy_location(ast.Tuple([self._copied(x) for x in value.elts], ast.Load()), value)
        if not isinstance(value, (ast.Name, ast.Attribute, ast.Subscript)):
            return value
        return self._call("copied", value)

    def visit_FunctionDef(self, node):  # noqa: N802
        self.generic_visit(node)
        node.returns = None
        for argument in node.args.args:
            argument.annotation = None
        return node

    def visit_AugAssign(self, node):  # noqa: N802
        self.generic_visit(node)
        if type(node.op) not in _FUNCTIONS:
            return node
        old = copy.deepcopy(node.target)
        old.ctx = ast.Load()
        value = self._call(_FUNCTIONS[type(node.op)], old, node.value)
        return ast.copy_location(ast.Assign([node.target], value), node)


def module_of(text: str, fp: str) -> dict:
    """The names that the model of a program defines."""
    global default_real
    default_real = REALS[fp]
    tree = _Operators().visit(ast.parse(text))
    names: dict = {"__name__": "model"}
    exec(compile(tree, "model", "exec", dont_inherit=True), names)  # noqa: S102
    return names


def numbers(value) -> list:
    """The numbers of a result in order, whatever it is made of."""
    if isinstance(value, (tuple, list)):
        return list(itertools.chain.from_iterable(numbers(x) for x in value))
    if isinstance(value, (octants.Matrix, octants.Vector)):
        return list(value.to_numpy().ravel())
    if isinstance(value, octants.Struct):
        return numbers([value[name] for name in value.keys])
    if is_struct(value):
        return numbers([getattr(value, name) for name in value.__annotations__])
    return [value]
