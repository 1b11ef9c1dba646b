"""The names of the language for whole programs that run as plain Python: what a tape's program computes, without any derivative.

A program's text runs with this module in the place of `oc`: kernels and funcs are functions, arrays are lists of Python's floats, and parallel loops run in their order. What a
program declares to be constant for its derivatives (what `no_grad` writes, what the host reads) is recorded by the first run and given again by the others, which start
elsewhere: their differences then leave out what does not flow.
"""

from __future__ import annotations

import ast
import copy
import itertools
import math
import types as python_types

import numpy as np

#: Names of a program that kernels have from when they were called first.
BAKED = ("RATE",)

f64, i32 = "f64", "i32"


class Matrix:
    """A vector, or a matrix as a vector of its rows."""

    __slots__ = ("entries",)

    def __init__(self, entries, dt=None):
        self.entries = [Matrix(one) if isinstance(one, (list, Matrix)) else float(one) for one in entries]

    def __getitem__(self, at):
        if isinstance(at, tuple):
            return self.entries[at[0]][at[1]]
        return self.entries[at]

    def __setitem__(self, at, value):
        if isinstance(at, tuple):
            self.entries[at[0]][at[1]] = value
        else:
            self.entries[at] = value

    def __iter__(self):
        return iter(self.entries)

    def _with(self, other, function):
        others = other.entries if isinstance(other, Matrix) else itertools.repeat(other)
        return Matrix([function(a, b) for a, b in zip(self.entries, others)])  # noqa: B905

    def __add__(self, other):
        return self._with(other, lambda a, b: a + b)

    def __sub__(self, other):
        return self._with(other, lambda a, b: a - b)

    def __mul__(self, other):
        return self._with(other, lambda a, b: a * b)

    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self):
        return self * -1.0

    def __matmul__(self, other):
        if isinstance(other.entries[0], Matrix):
            return Matrix([[row.dot(column) for column in zip(*other.entries, strict=True)] for row in self.entries])
        return Matrix([row.dot(other) for row in self.entries])

    def dot(self, other):
        return sum(a * b for a, b in zip(self.entries, other, strict=True))

    def norm_sqr(self):
        return self.dot(self)

    def sum(self):
        return sum(self.entries)

    def transpose(self):
        return Matrix([list(column) for column in zip(*self.entries, strict=True)])

    def trace(self):
        return sum(row[i] for i, row in enumerate(self.entries))

    def numbers(self) -> list[float]:
        return [x for one in self.entries for x in (one.numbers() if isinstance(one, Matrix) else [one])]


Vector = Matrix


class _Struct:
    """A value with members."""

    def __init__(self, **members):
        self.__dict__ |= {name: _value(value) for name, value in members.items()}


def _value(value):
    """What an assignment copies."""
    return copy.deepcopy(value) if isinstance(value, (Matrix, _Struct)) else value


class _Type:
    """A type of vectors, matrices or structs, with a zero of it."""

    def __init__(self, zero):
        self.zero = zero

    def __call__(self, entries=None, **members):
        return type(self.zero)(**members) if members else Matrix(entries)

    def field(self, shape=None, **_):
        return Structs(shape, self.zero)


def _zero(dtype):
    return _value(dtype.zero) if isinstance(dtype, _Type) else (0 if dtype == i32 else 0.0)


class Array:
    """A field, an ndarray or a tensor. A loop over it goes over its indices."""

    def __init__(self, shape, zero=0.0):
        self.shape = () if shape is None else (shape,) if isinstance(shape, int) else tuple(shape)
        self.cells = [_value(zero) for _ in range(math.prod(self.shape))]

    def _at(self, index) -> int:
        if isinstance(index, Matrix):
            index = tuple(int(i) for i in index)
        if not isinstance(index, tuple):
            index = () if index is None else (index,)
        at = 0
        for i, n in zip(index, self.shape, strict=True):
            if not 0 <= i < n:
                raise IndexError(f"{index} is outside of {self.shape}")
            at = at * n + int(i)
        return at

    def __getitem__(self, index):
        return View(self, index) if isinstance(index, slice) else self.cells[self._at(index)]

    def __setitem__(self, index, value):
        at = self._at(index)
        self.cells[at] = int(value) if isinstance(self.cells[at], int) else _value(value)

    def __iter__(self):
        if len(self.shape) == 1:
            return iter(range(self.shape[0]))
        return itertools.product(*map(range, self.shape))

    grad = dual = None

    # --- by the host -----------------------------------------------------------------------------------------------------

    def to_numpy(self) -> np.ndarray:
        numbers = [one.numbers() if isinstance(one, Matrix) else one for one in self.cells]
        return np.array(numbers).reshape((*self.shape, *np.shape(numbers)[1:]))

    def from_numpy(self, values) -> None:
        values = np.asarray(values).tolist()
        for _ in range(len(self.shape) - 1):
            values = list(itertools.chain.from_iterable(values))
        for at, value in enumerate(values if self.shape else [values]):
            self.cells[at] = Matrix(value) if isinstance(self.cells[at], Matrix) else type(self.cells[at])(value)

    def fill(self, value) -> None:
        self.from_numpy(np.full(self.to_numpy().shape, value))

    def copy_from(self, other) -> None:
        self.cells = copy.deepcopy(other.cells)


class View(Array):
    """A part of an array of one axis."""

    def __init__(self, whole, part):
        self.whole, self.first = whole, part.start
        self.shape = (part.stop - part.start,)

    def __getitem__(self, index):
        self._at(index)
        return self.whole[index + self.first]

    def __setitem__(self, index, value):
        self._at(index)
        self.whole[index + self.first] = value


class Structs(Array):
    """A field of structs."""

    def __getattr__(self, name):
        if name.startswith("_") or name in ("cells", "shape"):
            raise AttributeError(name)
        return _Member(self, name)

    def copy_from(self, other) -> None:
        self.cells = copy.deepcopy(other.cells)


class _Member(Array):
    """A member of the structs of a field."""

    def __init__(self, structs, name):
        self.structs, self.name, self.shape = structs, name, structs.shape

    @property
    def cells(self):
        return _Cells(self.structs.cells, self.name)

    @cells.setter
    def cells(self, values):
        for one, value in zip(self.structs.cells, values, strict=True):
            setattr(one, self.name, value)


class _Cells:
    """The values of a member, as a list."""

    def __init__(self, structs, name):
        self.structs, self.name = structs, name

    def __len__(self):
        return len(self.structs)

    def __getitem__(self, at):
        return getattr(self.structs[at], self.name)

    def __setitem__(self, at, value):
        setattr(self.structs[at], self.name, value)


def ndarray(dtype, shape, **_):
    return Array(shape, _zero(dtype))


def field(dtype, shape=None, **_):
    return Array(shape, _zero(dtype))


tensor = field


class _Node:
    """A tree of nodes: elements that were never written are zero."""

    def __init__(self, extent=0):
        self.extent = extent

    def pointer(self, axis, extent):
        return _Node(extent)

    def place(self, array, *_):
        array.shape, array.cells = (self.extent,), [0.0] * self.extent


root, i = _Node(), None


Tensor = BufferView = None


class Backend:
    FIELD = NDARRAY = None


class Layout:
    SOA = AOS = None


def template():
    return None


types = python_types.SimpleNamespace(
    ndarray=lambda **_: None,
    vector=lambda n, dtype: _Type(Matrix([0.0] * n)),
    matrix=lambda n, m, dtype: _Type(Matrix([[0.0] * m] * n)),
    struct=lambda **members: _Type(_Struct(**{name: _zero(dtype) for name, dtype in members.items()})),
)


# --- kernels ---------------------------------------------------------------------------------------------------------------


class World:
    """What runs of one program share."""

    def __init__(self):
        #: Values that the first run found for what is constant, in order; `None` while it runs.
        self.recorded: list = []
        self.given: list | None = None
        #: For each kernel that was called, the globals that it has.
        self.baked: dict = {}

    def first(self) -> None:
        """The first run begins, also from other values."""
        self.recorded, self.given = [], None

    def again(self) -> None:
        """Another run begins; the first one is over."""
        self.given = list(self.recorded)

    def constant(self, found):
        if self.given is None:
            self.recorded.append(found)
            return found
        return self.given.pop(0)

    def constants(self, function, arrays):
        """Calls a function whose writes are constants."""
        function()
        for array, cells in zip(arrays, self.constant([copy.deepcopy(one.cells) for one in arrays]), strict=True):
            array.cells = copy.deepcopy(cells)


def _kernel(world: World):
    def decorate(function):
        names = function.__globals__

        def called(*args, qd_stream=None):
            fixed = world.baked.setdefault(called, {name: names[name] for name in BAKED if name in names})
            now = {name: names[name] for name in fixed}
            names.update(fixed)
            try:
                function(*args)
            finally:
                names.update(now)

        return called

    return decorate


def data_oriented(cls):
    return cls


def func(function):
    return function


real_func = func


def loop_config(**_):
    """Says how a loop runs."""


def sync():
    """All is done."""


class create_stream:  # noqa: N801
    def synchronize(self):
        """All is done."""


class _Branch:
    def __enter__(self):
        return self

    def __exit__(self, *_):
        return False


stream_parallel = _Branch


def static(value):
    return value


def ndrange(*extents):
    return itertools.product(*(range(*one) if isinstance(one, tuple) else range(one) for one in extents))


def grouped(array):
    for index in array:
        yield Matrix.__new__(_Index)._of(index)


class _Index(Matrix):
    def _of(self, index):
        self.entries = list(index) if isinstance(index, tuple) else [index]
        return self


sin, cos, tanh, sqrt, log, exp, asin, atan2 = (
    math.sin, math.cos, math.tanh, math.sqrt, math.log, math.exp, math.asin, math.atan2
)  # fmt: skip
abs, min, max = abs, min, max  # noqa: A001


def rsqrt(x):
    return 1.0 / math.sqrt(x)


def cast(x, dtype):
    return int(x) if dtype == i32 else float(x)


def select(condition, a, b):
    return a if condition else b


def atomic_max(array, index, value):
    array[index] = max(array[index], value)


def atomic_min(array, index, value):
    array[index] = min(array[index], value)


# --- what derivatives are asked for ----------------------------------------------------------------------------------------


def checkpoint(step, n, state, *, snapshots=None):
    for number in range(n):
        step(number)
        for one in state:
            if isinstance(one, tuple):
                one[0].copy_from(one[1])


def _identity(function):
    return function


ad = python_types.SimpleNamespace(
    checkpoint=checkpoint, no_grad=_identity, grad_replaced=_identity, grad_for=lambda _: _identity
)


# --- the text --------------------------------------------------------------------------------------------------------------


class _Kernels(ast.NodeTransformer):
    """In kernels and funcs assignments copy, and an atomic update takes its array and index."""

    def __init__(self):
        self.inside = False

    def visit_FunctionDef(self, node):  # noqa: N802
        was, self.inside = (
            self.inside,
            self.inside
            or any(
                isinstance(one, ast.Attribute) and one.attr in ("kernel", "func", "real_func")
                for one in node.decorator_list
            ),
        )
        self.generic_visit(node)
        self.inside = was
        return node

    def visit_Assign(self, node):  # noqa: N802
        self.generic_visit(node)
        if self.inside and isinstance(node.value, (ast.Name, ast.Attribute, ast.Subscript)):
            node.value = _call("_value", node.value)
        return node

    def visit_Call(self, node):  # noqa: N802
        self.generic_visit(node)
        name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        if name in ("atomic_max", "atomic_min") and isinstance(node.args[0], ast.Subscript):
            target = node.args[0]
            node.args[:1] = [target.value, target.slice]
        return node


def _call(name: str, value):
    target = ast.copy_location(
        ast.Attribute(ast.copy_location(ast.Name("oc", ast.Load()), value), name, ast.Load()), value
    )
    return ast.copy_location(ast.Call(target, [value], []), value)


def module_of(text: str) -> tuple[dict, World]:
    """The names that a program defines, and what its runs share."""
    world = World()
    oc = python_types.SimpleNamespace(**{name: value for name, value in globals().items() if not name.startswith("__")})
    oc.kernel = _kernel(world)
    tree = ast.fix_missing_locations(_Kernels().visit(ast.parse(text.replace("import octants as oc", ""))))
    names: dict = {"__name__": __name__, "oc": oc}
    exec(compile(tree, "model", "exec", dont_inherit=True), names)  # noqa: S102
    names["held"], names["left_out"] = world.constant, world.constants
    return names, world
