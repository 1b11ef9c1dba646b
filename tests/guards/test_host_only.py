"""What may run while a kernel is being compiled is a closed list. Everything else of ours is refused there and changes nothing."""

import inspect

import numpy as np
import pytest

import octants as oc

pytestmark = pytest.mark.host_access

#: What a kernel may call of a field, a node, an array and a view. ``fill`` is part of the kernel.
QUERIES = {
    "parent",
    "get_scalar_field",
    "get_member_field",
    "has_grad",
    "has_dual",
    "get_ndarray",
    "subview",
    "_get_children",
    "_path_from_root",
}


def refused(function, *args, code="OC0618"):
    """The kernel that calls `function` is refused, with the line of the call and a hint."""

    @oc.kernel
    def calls():
        function(*args)

    with pytest.raises(oc.OctantsCompilationError, match=code) as caught:
        calls()
    text = str(caught.value)
    assert "function(*args)" in text and "= help: " in text
    return text


def methods_of(thing):
    names = [name for name in dir(type(thing)) if not name.startswith("__")]
    return {name for name in names if not isinstance(inspect.getattr_static(type(thing), name), property)} & {
        name for name in names if callable(getattr(thing, name, None))
    }


def things():
    field, vector = oc.field(oc.f32, shape=4), oc.Vector.field(2, oc.i32, shape=4)
    struct = oc.Struct.field({"a": oc.f32}, shape=4)
    builder = oc.FieldsBuilder()
    placed = oc.field(oc.i32)
    builder.dense(oc.i, 4).place(placed)
    tree = builder.finalize()
    return {
        "scalar field": field,
        "vector field": vector,
        "struct field": struct,
        "node": field.parent(),
        "builder": oc.FieldsBuilder(),
        "tree": tree,
    }


@pytest.mark.parametrize("kind", ["scalar field", "vector field", "struct field", "node", "builder", "tree"])
def test_methods_that_are_not_queries_are_refused(kind):
    thing = things()[kind]
    names = methods_of(thing) - QUERIES - {"fill"}
    # A property that fails on the host is no method; what is left covers every public method.
    assert names, kind
    for name in sorted(names):
        refused(getattr(thing, name))


@pytest.mark.parametrize(
    "name", ["sync", "reset", "init", "ndarray", "field", "FieldsBuilder", "set_logging_level", "dump_compile_config"]
)
def test_functions_of_the_session_are_refused(name):
    if not hasattr(oc, name):
        pytest.skip(f"there is no oc.{name}")
    array = oc.ndarray(oc.f32, 3)
    refused(getattr(oc, name))
    assert array.to_numpy().tolist() == [0, 0, 0]


def test_every_public_function_is_refused_or_only_calculates():
    """A new function of the package must be put on one side: by the module that it stands in."""
    allowed_modules = {
        f"octants.{name}"
        for name in (
            "types math exceptions math._complex _arrays.methods _language.fields _language.frexp _language.normal "
            "_language _matrix _matrix.decompositions _matrix.elementwise _matrix.host_forms _matrix.methods _matrix.operators _matrix.promotion "
            "_matrix.struct _matrix.types _session.extensions"
        ).split()
    }
    for name in dir(oc):
        thing = getattr(oc, name)
        module = getattr(thing, "__module__", "") or ""
        if name.startswith("_") or not inspect.isfunction(thing) or module in allowed_modules:
            continue
        # `oc.func(f)(x)` calls a function of Python's as a func.
        if getattr(thing, "__octants__", None) is None and thing not in (oc.func, oc.real_func):
            refused(thing)


def test_queries_of_fields_run_while_compiling(arch):
    x = oc.Vector.field(2, oc.f32, shape=(3, 4), needs_grad=True)
    s = oc.Struct.field({"a": oc.f32}, shape=5)

    @oc.kernel
    def ask() -> oc.i32:
        total = x.shape[1] + x.n + x.snode.shape[0] * 10
        if oc.static(x.has_grad()):
            total += 100
        for i in range(x.parent().shape[0]):
            x.get_scalar_field(1)[i, 0] = 1.0
        for i in s.get_member_field("a"):
            s.get_member_field("a")[i] = 2.0
        return total

    assert ask() == 136
    assert x.to_numpy()[:, 0].tolist() == [[0, 1]] * 3 and s.a.to_numpy().tolist() == [2] * 5


def test_python_code_that_runs_while_compiling_touches_nothing():
    x, y, a = oc.field(oc.i32, shape=3), oc.field(oc.i32, shape=3), oc.ndarray(oc.i32, 3)
    tree = oc.FieldsBuilder()
    tree.dense(oc.i, 2).place(oc.field(oc.i32))
    view = a[1:]
    finished = tree.finalize()
    growing = oc.FieldsBuilder()

    def attempts():
        yield lambda: x.fill(1)
        yield lambda: x.copy_from(y)
        yield lambda: x.from_numpy(np.ones(3, np.int32))
        yield lambda: x.to_numpy()
        yield lambda: x.to_numpy(copy=False)
        yield lambda: x[0]
        yield lambda: x.__setitem__(0, 1)
        yield lambda: a.fill(1)
        yield lambda: a.copy_from(a)
        yield lambda: a.to_numpy()
        yield lambda: a.from_numpy(np.ones(3, np.int32))
        yield lambda: a[0]
        yield lambda: a.__setitem__(0, 1)
        yield lambda: np.asarray(a)
        yield lambda: view.to_numpy()
        yield lambda: finished.destroy()
        yield lambda: growing.dense(oc.i, 3)
        yield lambda: growing.finalize()
        yield lambda: oc.ndarray(oc.f32, 3)
        yield lambda: oc.field(oc.f32, shape=3)
        yield lambda: oc.sync()
        yield lambda: oc.reset()
        yield lambda: oc.init(arch=oc.cpu)

    for attempt in attempts():

        @oc.kernel
        def calls(attempt: oc.template()):
            attempt()

        with pytest.raises(oc.OctantsCompilationError, match="OC0618") as caught:
            calls(attempt)
        assert "attempt()" in str(caught.value) and "= help: " in str(caught.value)
    assert x.to_numpy().tolist() == [0] * 3 and a.to_numpy().tolist() == [0] * 3


def test_a_refusal_that_python_code_catches_changes_nothing():
    x = oc.field(oc.i32, shape=3)

    def tries() -> int:
        try:
            x.fill(5)
        except oc.OctantsCompilationError:
            return 1
        return 2

    @oc.kernel
    def calls() -> oc.i32:
        return tries()

    with pytest.warns(SyntaxWarning):
        assert calls() == 1
    assert x.to_numpy().tolist() == [0] * 3
    # Outside of a compilation it works again.
    assert tries() == 2 and x.to_numpy().tolist() == [5] * 3


def test_a_kernel_launched_while_compiling_is_refused():
    x = oc.field(oc.i32, shape=3)

    @oc.kernel
    def inner():
        for i in x:
            x[i] += 1

    def launch():
        inner()
        return 1

    @oc.kernel
    def outer() -> oc.i32:
        return launch()

    inner()
    with pytest.raises(oc.OctantsSyntaxError, match="Kernels cannot call other kernels") as caught:
        outer()
    assert "return launch()" in str(caught.value)
    assert x.to_numpy().tolist() == [1] * 3


def test_a_kernel_that_launches_itself_while_compiling_is_refused():
    def again() -> float:
        return endless()

    @oc.kernel
    def endless() -> oc.f32:
        return 1.0 + again()

    with pytest.raises(oc.OctantsSyntaxError, match="Kernels cannot call other kernels"):
        endless()


def test_a_kernel_method_called_in_a_kernel_is_refused():
    @oc.data_oriented
    class Solver:
        def __init__(self):
            self.x = oc.field(oc.i32, shape=3)

        @oc.kernel
        def one(self):
            for i in self.x:
                self.x[i] += 1

        @oc.kernel
        def two(self):
            self.one()

    solver = Solver()
    solver.one()
    with pytest.raises(oc.OctantsSyntaxError, match="Kernels cannot call other kernels"):
        solver.two()
    assert solver.x.to_numpy().tolist() == [1] * 3


def test_properties_and_methods_of_objects_do_not_read_data_while_compiling():
    @oc.data_oriented
    class Counter:
        def __init__(self):
            self.count = oc.field(oc.i32, shape=())
            self.size = 4

        @property
        def now(self):
            return self.count[None]

        @property
        def twice(self):
            return 2 * self.size

        @oc.kernel
        def stale(self) -> oc.i32:
            return self.now

        @oc.kernel
        def fresh(self) -> oc.i32:
            return self.count[None] + self.twice

    counter = Counter()
    with pytest.raises(oc.OctantsCompilationError, match="OC0618"):
        counter.stale()
    counter.count[None] = 3
    assert counter.fresh() == 11
