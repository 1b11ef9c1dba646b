"""Tensors of torch: as arguments, and from and to arrays and fields."""

import dataclasses
import gc

import numpy as np
import pytest

import octants as oc

torch = pytest.importorskip("torch", reason="torch is not installed")

VERSION = tuple(int(part) for part in torch.__version__.split(".")[:2])

pytestmark = pytest.mark.host_devices("torch's tensors of the CPU")


@oc.kernel
def add(x: oc.types.ndarray(), y: oc.types.ndarray()):
    for index in oc.grouped(x):
        x[index] += y[index]


@pytest.mark.parametrize("name", ["int8", "uint8", "int16", "int32", "int64", "float16", "float32", "float64"])
def test_tensors_are_used_in_place(arch, name):
    dtype = getattr(torch, name)
    x, y = torch.zeros(3, 4, dtype=dtype), torch.ones(3, 4, dtype=dtype)
    add(x, y)
    assert (x == 1).all()
    add(x.T, y.T)
    assert (x == 2).all()
    add(x[:, ::2], y[:, 1::2])
    assert x.tolist() == [[3, 2, 3, 2]] * 3
    add(x[1], np.ones(4, name))
    assert x[1].tolist() == [4, 3, 4, 3]
    add(x[:0], y[:0])
    one = torch.ones(1, dtype=dtype)
    add(one, one)
    assert one.item() == 2


def test_classes_made_of_tensors(arch):
    class Own(torch.Tensor):
        pass

    parameter = torch.nn.Parameter(torch.zeros(3))
    own = torch.zeros(3).as_subclass(Own)
    for x in (parameter, own):
        for _ in range(2):
            add(x, torch.ones(3))
        assert x.tolist() == [2, 2, 2]


def test_tensors_that_are_resized_between_launches(arch):
    x = torch.zeros(8)
    add(x, torch.ones(8))
    x.resize_(2, 3)
    add(x, torch.ones(2, 3))
    assert (x == 2).all()
    x.set_(torch.zeros(5))
    add(x, torch.ones(5))
    assert x.tolist() == [1] * 5


@pytest.mark.parametrize("kind", ["complex", "bfloat16", "sparse", "meta", "negative"])
def test_what_kernels_cannot_look_at_is_refused(arch, kind):
    bad = {
        "complex": lambda: torch.zeros(3, dtype=torch.complex64),
        "bfloat16": lambda: torch.zeros(3, dtype=torch.bfloat16),
        "sparse": lambda: torch.zeros(3).to_sparse(),
        "meta": lambda: torch.zeros(3, device="meta"),
        "negative": lambda: torch.ones(3, dtype=torch.complex64).conj().imag,
    }[kind]()
    add(torch.zeros(3), torch.ones(3))  # so that there is code that it is compared with
    for _ in range(2):
        with pytest.raises(ValueError, match=r"OC0802.*argument x.*required an"):
            add(bad, torch.ones(3))


def test_tensors_in_dataclasses_and_objects(arch):
    @dataclasses.dataclass
    class State:
        x: oc.types.ndarray(dtype=oc.f32, ndim=1)
        y: oc.Tensor

    @oc.kernel
    def step(state: State):
        for i in state.x:
            state.x[i] += state.y[i]

    @oc.data_oriented
    class Model:
        def __init__(self):
            self.x, self.weights = torch.zeros(3), torch.nn.Parameter(torch.ones(3))

        @oc.kernel
        def step(self):
            for i in self.x:
                self.x[i] += self.weights[i]

    state, model = State(torch.zeros(3), torch.ones(3)), Model()
    for _ in range(2):
        step(state)
        model.step()
    assert state.x.tolist() == model.x.tolist() == [2, 2, 2]


SOURCES = {
    "ndarray": lambda: oc.ndarray(oc.f32, (2, 3)),
    "layout": lambda: oc.tensor(oc.f32, (2, 3), layout=(1, 0)),
    "field": lambda: oc.field(oc.f32, (2, 3)),
    "order": lambda: oc.field(oc.f32, (2, 3), order="ji"),
    "vectors": lambda: oc.Vector.field(3, oc.f32, 2),
    "tensor in a field": lambda: oc.Vector.tensor(3, oc.f32, 2, backend=oc.Backend.FIELD),
}


@pytest.mark.parametrize("name", SOURCES)
def test_from_and_to_torch(arch, name):
    made = SOURCES[name]()
    numbers = torch.arange(6.0).reshape(2, 3)
    made.from_torch(numbers.double().requires_grad_())
    own = made.to_torch()
    assert own.dtype == torch.float32 and torch.equal(own, numbers)
    own.zero_()
    assert torch.equal(made.to_torch(), numbers)
    shared = [
        made.to_torch(copy=False),
        made.to_torch(copy=None),
        made.to_torch("cpu", copy=False),
        torch.from_dlpack(made),
    ]
    shared.append(torch.utils.dlpack.from_dlpack(made.to_dlpack()))
    if VERSION >= (2, 9):  # older ones know capsules without a version alone
        shared.append(torch.utils.dlpack.from_dlpack(made.to_dlpack(versioned=True)))
    assert len({tensor.data_ptr() for tensor in shared}) == 1
    shared[0][1, 2] = 77
    assert made.to_numpy()[1, 2] == 77 and all(tensor[1, 2] == 77 for tensor in shared)
    with pytest.raises(ValueError, match="Zero-copy not available"):
        made.to_torch("meta", copy=False)
    # The memory lives as long as somebody looks at it.
    made = None
    oc.init(arch=getattr(oc, arch), log_level="error")
    gc.collect()
    others = [oc.ndarray(oc.f32, (2, 3)) for _ in range(32)]
    for other in others:
        other.fill(-1)
    assert all(tensor[1, 2] == 77 and tensor[0, 1] == 1 for tensor in shared)


def test_other_types_devices_and_shapes(arch):
    x = oc.ndarray(oc.f32, 3)
    x.from_torch(torch.tensor([1, 2, 3], dtype=torch.bfloat16))
    assert x.to_numpy().tolist() == [1, 2, 3]
    x.from_torch(torch.ones(3, dtype=torch.complex64).conj().imag)
    for bad in (3, np.ones(3)):
        with pytest.raises(TypeError, match="torch tensor"):
            x.from_torch(bad)
    with pytest.raises(ValueError):
        x.from_torch(torch.ones(4))
    column = oc.Matrix.field(3, 1, oc.f32, 2)
    assert column.to_torch().shape == (2, 3) and column.to_torch(keep_dims=True).shape == (2, 3, 1)
    parts = oc.Struct.field({"a": oc.f32, "b": oc.i32}, shape=2).to_torch()
    assert parts["b"].dtype == torch.int32
    with pytest.raises(ValueError, match="Zero-copy not available"):
        oc.Vector.field(3, oc.f32, 2, layout=oc.Layout.SOA).to_torch(copy=False)
    with pytest.raises(ValueError, match="Zero-copy not available"):
        oc.field(oc.f32, ()).to_torch(copy=False)
    assert oc.field(oc.u1, 3).to_torch().dtype == torch.bool


def test_expanded_tensors_are_read_but_not_written(arch):
    @oc.kernel
    def total(a: oc.types.ndarray(dtype=oc.f32, ndim=2)) -> oc.f32:
        s = 0.0
        for i, j in a:
            s += a[i, j]
        return s

    @oc.kernel
    def fill(a: oc.types.ndarray(dtype=oc.f32, ndim=2)):
        for i, j in a:
            a[i, j] = i

    expanded = torch.ones(1, 3).expand(4, 3)
    assert total(expanded) == 12
    with pytest.raises(ValueError, match="stride 0"):
        fill(expanded)
    own = expanded.clone()
    fill(own)
    assert own[3, 0] == 3 and expanded[3, 0] == 1
