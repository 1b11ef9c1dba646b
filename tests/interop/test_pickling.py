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


def numbered(array, first):
    contents = array.to_numpy()
    array.from_numpy(np.arange(first, first + contents.size, dtype=contents.dtype).reshape(contents.shape))


def same_elements(one, other):
    np.testing.assert_array_equal(one.to_numpy(), other.to_numpy())


ARRAYS = {
    "numbers": lambda: oc.ndarray(oc.f32, (2, 3), needs_grad=True, needs_dual=True, layout=(1, 0)),
    "vectors": lambda: oc.Vector.ndarray(3, oc.f64, (2, 3), needs_grad=True),
    "tensor": lambda: oc.tensor(oc.f32, (2, 3), needs_grad=True, layout=(1, 0)),
    "tensor of a field": lambda: oc.tensor(oc.f32, (2, 3), backend=oc.Backend.FIELD, needs_grad=True, layout=(1, 0)),
    "field": lambda: oc.field(oc.f32, (2, 3), order="ji", offset=(-1, 4), needs_grad=True, needs_dual=True),
    "field of vectors": lambda: oc.Vector.field(2, oc.f32, 3, needs_grad=True, needs_dual=True),
}


@pytest.mark.host_access
@pytest.mark.parametrize("name", ARRAYS)
def test_copies_and_pickles_keep_layout_gradients_and_duals(name):
    x = ARRAYS[name]()
    kinds = [kind for kind in ("grad", "dual") if getattr(x, f"has_{kind}")()]
    assert kinds
    numbered(x, 1)
    for number, kind in enumerate(kinds):
        numbered(getattr(x, kind), 100 * (number + 1))
    for other in (copy.copy(x), *both(x)):
        assert type(other) is type(x) and other.layout == x.layout and other.shape == x.shape
        assert (other.has_grad(), other.has_dual()) == (x.has_grad(), x.has_dual())
        same_elements(other, x)
        for kind in kinds:
            assert getattr(other, kind) is not getattr(x, kind) and getattr(other, kind).layout == x.layout
            same_elements(getattr(other, kind), getattr(x, kind))
            getattr(other, kind).fill(-1)
        other.fill(-1)
    assert x.to_numpy().min() == 1 and x.grad.to_numpy().min() == 100, "copies have memory of their own"


def test_what_is_copied_together_belongs_together():
    x = oc.ndarray(oc.f32, 3, needs_grad=True)
    for make in (copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))):
        other, grad, view = make((x, x.grad, x[1:]))
        assert other.grad is grad and view.get_ndarray() is other
    numbered(x.grad._second_derivatives(), 5)
    for other in both(x):
        same_elements(other.grad.dual, x.grad.dual)
    y = oc.field(oc.f32, 3, needs_grad=True)
    numbered(y.grad._second_derivatives(), 5)
    for other in both(y):
        same_elements(other.grad.dual, y.grad.dual)


def test_structs_are_pickled_with_gradients():
    s = oc.Struct.field({"a": oc.f32, "v": vec3}, shape=3, needs_grad=True)
    numbered(s.v.grad, 7)
    for other in both(s):
        same_elements(other.v.grad, s.v.grad)


def test_a_tensor_whose_field_lies_in_a_tree_becomes_one_with_a_shape():
    x = oc.field(oc.f32)
    oc.root.dense(oc.i, 4).place(x, x.grad)
    numbered(x, 1)
    numbered(x.grad, 10)
    for other in both(oc.wrap(x)):
        same_elements(other, x)
        same_elements(other.grad, x.grad)


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


def copies(value):
    return copy.copy(value), *both(value)


def unowned():
    """Fields without memory of their own, by what they are."""
    fives = oc.types.quant.int(5, True)
    in_array, in_word, in_node = oc.field(fives), oc.field(fives), oc.field(oc.i32)
    oc.root.quant_array(oc.i, 6, max_num_bits=32).place(in_array)
    packed = oc.BitpackedFields(max_num_bits=32)
    packed.place(in_word)
    oc.root.dense(oc.i, 6).place(packed)
    oc.root.dense(oc.i, 4).place(in_node)
    return {
        "quant_array": in_array,
        "bit-packed": in_word,
        "node": in_node,
        "entry": oc.Vector.field(2, oc.f32, 3).get_scalar_field(0),
        "member": oc.Struct.field({"a": oc.f32}, shape=2).a,
    }


@pytest.mark.parametrize("what", ["quant_array", "bit-packed", "node", "entry", "member"])
@pytest.mark.parametrize("make", [copy.copy, copy.deepcopy, pickle.dumps])
def test_fields_without_memory_of_their_own_are_not_copied(arch, what, make):
    with pytest.raises(TypeError, match="is not copied or pickled: only a field that is made with shape=.* copy_from"):
        make(unowned()[what])


def test_copies_of_gradients_have_their_own_elements(arch):
    for x in (oc.field(oc.f32, 3, needs_grad=True), oc.Vector.field(2, oc.f32, 3, needs_grad=True)):
        for made in copies(x.grad):
            made.fill(5)
            assert not x.grad.to_numpy().any() and (made.to_numpy() == 5).all()
        for made in copies(x):
            made.fill(1)
            made.grad.fill(2)
            assert not x.to_numpy().any() and not x.grad.to_numpy().any()


def test_gradients_stay_those_of_their_field(arch):
    x = oc.field(oc.f32, 3, needs_grad=True)
    for one, grad in both((x, x.grad)):
        assert one.grad is grad
    for grad, one in both((x.grad, x)):
        assert one.grad is grad
