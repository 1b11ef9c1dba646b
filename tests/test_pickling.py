"""Copies and pickles of arrays, fields, kernels and the objects that hold them, within a process and between two."""

import copy
import pickle
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import octants as oc

vec3 = oc.types.vector(3, oc.f32)


def both(value):
    return copy.deepcopy(value), pickle.loads(pickle.dumps(value))


FIELDS = {
    "scalars": lambda: oc.field(oc.f32, (2, 3)),
    "no axes": lambda: oc.field(oc.i32, ()),
    "order and offset": lambda: oc.field(oc.i64, (2, 3), order="ji", offset=(-1, 2), name="x"),
    "with gradients": lambda: oc.field(oc.f64, 3, needs_grad=True, needs_dual=True),
    "vectors": lambda: oc.Vector.field(3, oc.f32, 4),
    "vectors, entries apart": lambda: oc.Vector.field(3, oc.f32, 4, layout=oc.Layout.SOA),
    "matrices of several types": lambda: oc.Matrix.field(2, 2, [[oc.f32, oc.i32], [oc.i8, oc.f64]], 3),
    "structs": lambda: oc.Struct.field({"a": oc.f32, "v": vec3}, shape=(2, 2)),
}


def filled(field):
    contents = field.to_numpy()
    parts = contents.values() if isinstance(contents, dict) else [contents]
    for part in parts:
        part[...] = np.arange(part.size).reshape(part.shape)
    field.from_numpy(contents)
    return contents


@pytest.mark.parametrize("name", FIELDS)
def test_fields_with_a_shape(name):
    field = FIELDS[name]()
    contents = filled(field)
    for other in both(field):
        assert type(other) is type(field) and other is not field
        for what in ("shape", "dtype", "layout", "name", "_offset"):
            assert repr(getattr(other, what)) == repr(getattr(field, what)), what
        assert other.has_grad() == field.has_grad() and other.has_dual() == field.has_dual()
        np.testing.assert_equal(other.to_numpy(), contents)
        other.fill(0)
    np.testing.assert_equal(field.to_numpy(), contents)


def test_fields_in_a_tree_of_nodes_are_not_pickled():
    x = oc.field(oc.f32)
    oc.root.dense(oc.i, 4).place(x)
    with pytest.raises(TypeError, match="to_numpy"):
        pickle.dumps(x)
    text = pickle.dumps(oc.field(oc.f32, 3))
    oc.reset()
    with pytest.raises(RuntimeError, match=r"oc\.init"):
        pickle.loads(text)


@oc.data_oriented
class Solver:
    def __init__(self):
        self.x = oc.field(oc.f32, 4)
        self.y = oc.ndarray(oc.f32, 4)
        self.t = oc.tensor(oc.f32, (4, 2), layout=(1, 0))
        self.n = 3

    @oc.func
    def scaled(self, v):
        return self.n * v

    @oc.kernel
    def step(self):
        for i in self.x:
            self.x[i] += self.scaled(i)
            self.y[i] = self.x[i] + self.t[i, 1]


def test_data_oriented_objects_are_copied_with_their_arrays():
    solver = Solver()
    solver.t.fill(10)
    solver.step()
    for other in both(solver):
        other.step()
        assert other.y.to_numpy().tolist() == [10, 16, 22, 28]
        other.n = 0
        other.step()
        assert other.x.to_numpy().tolist() == [0, 6, 12, 18]
    assert solver.x.to_numpy().tolist() == [0, 3, 6, 9]


def test_arrays_with_layouts_and_gradients_are_copied_deeply():
    x = oc.ndarray(oc.f32, (2, 3), needs_grad=True, layout=(1, 0))
    x.from_numpy(np.arange(6, dtype=np.float32).reshape(2, 3))
    other = copy.deepcopy(x)
    assert other.layout == (1, 0) and other.has_grad() and other.grad is not x.grad
    np.testing.assert_array_equal(other.to_numpy(), x.to_numpy())
    bare = pickle.loads(pickle.dumps(x))
    assert bare.layout is None and not bare.has_grad()
    np.testing.assert_array_equal(bare.to_numpy(), x.to_numpy())


def test_kernels_of_a_function_are_not_found_by_name():
    @oc.kernel
    def local():
        pass

    assert copy.copy(local) is local and copy.deepcopy([local])[0] is local
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(local)


MAIN = """
import sys
import cloudpickle
import octants as oc

FACTOR = 3

@oc.func
def scaled(x):
    return FACTOR * x

@oc.kernel
def fill(x: oc.types.ndarray(dtype=oc.f32, ndim=1)):
    for i in x:
        x[i] = scaled(i)

def make(offset):
    @oc.kernel
    def shifted(x: oc.types.ndarray(dtype=oc.f32, ndim=1)):
        for i in x:
            x[i] = scaled(i) + offset

    return shifted

def work(shifted):
    import octants as oc

    oc.init(arch=oc.cpu, log_level="error")
    x = oc.ndarray(oc.f32, 3)
    fill(x)
    first = x.to_numpy().tolist()
    shifted(x)
    return first, x.to_numpy().tolist()

with open(sys.argv[1], "wb") as file:
    cloudpickle.dump((work, make(10)), file)
"""

READER = """
import pickle, sys
with open(sys.argv[1], "rb") as file:
    work, shifted = pickle.load(file)
print(work(shifted))
"""


@pytest.mark.no_device
def test_cloudpickle_sends_kernels_of_a_main_program_to_another_process(tmp_path):
    pytest.importorskip("cloudpickle")
    program, sent = tmp_path / "program.py", tmp_path / "sent"
    program.write_text(textwrap.dedent(MAIN))
    subprocess.run([sys.executable, program, sent], check=True)
    # The reader may be a machine that has no such file.
    program.unlink()
    done = subprocess.run([sys.executable, "-c", READER, sent], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "([0.0, 3.0, 6.0], [10.0, 13.0, 16.0])"
