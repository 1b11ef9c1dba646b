"""How other libraries ask for arrays: numpy's ``__array__(dtype, copy)`` and DLPack's ``__dlpack__``."""

import ctypes

import numpy as np
import pytest

import octants as oc

pytestmark = pytest.mark.host_access

HOST = (1, 0)


def filled(array):
    array.from_numpy(np.arange(array.to_numpy().size, dtype=np.float32).reshape(array.to_numpy().shape))
    return array


#: What numpy may look at in the host's memory.
SOURCES = {
    "array": lambda: filled(oc.ndarray(oc.f32, (3, 4))),
    "array of vectors": lambda: filled(oc.Vector.ndarray(2, oc.f32, 3)),
    "array with a layout": lambda: filled(oc.ndarray(oc.f32, (3, 4), layout=(1, 0))),
    "view": lambda: filled(oc.ndarray(oc.f32, (3, 4)))[1:],
    "tensor": lambda: filled(oc.tensor(oc.f32, (3, 4))),
    "field": lambda: filled(oc.field(oc.f32, (3, 4))),
    "field of vectors": lambda: filled(oc.Vector.field(2, oc.f32, 3)),
    "tensor of a field": lambda: filled(oc.tensor(oc.f32, (3, 4), backend=oc.Backend.FIELD)),
}


def is_host(arch):
    return arch in ("cpu", "reference")


@pytest.mark.parametrize("name", SOURCES)
def test_numpy_asks_for_a_copy_or_for_none(arch, name):
    source = SOURCES[name]()
    elements = source.to_numpy()
    for dtype in (None, np.float32):
        own = source.__array__(dtype, copy=True)
        own[...] = -1
        np.testing.assert_array_equal(source.to_numpy(), elements)
        np.testing.assert_array_equal(source.__array__(dtype), elements)
        if is_host(arch):
            shared = source.__array__(dtype, copy=False)
            shared[...] += 1
            np.testing.assert_array_equal(source.to_numpy(), elements + 1)
            shared[...] -= 1
        else:
            with pytest.raises(ValueError, match="Zero-copy not available"):
                source.__array__(dtype, copy=False)
    for dtype in (np.float64, np.int8, np.complex64):
        for copy in (None, True):
            converted = source.__array__(dtype, copy=copy)
            assert converted.dtype == dtype
            np.testing.assert_array_equal(converted, elements.astype(dtype))
        with pytest.raises(ValueError, match="Zero-copy not available"):
            source.__array__(dtype, copy=False)
    with pytest.raises(ValueError):
        np.array(source, dtype=np.float64, copy=False)
    assert np.array(source, copy=True).ctypes.data != np.array(source, copy=None).ctypes.data


@pytest.mark.parametrize("matrix", [oc.Vector([1.0, 2.0]), oc.Matrix([[1.0, 2.0], [3.0, 4.0]])])
def test_numpy_asks_for_the_entries_of_a_matrix(matrix):
    kind = np.asarray(matrix).dtype
    for dtype in (None, kind):
        for copy in (None, True):
            matrix.__array__(dtype, copy=copy)[...] = 9
        shared = matrix.__array__(dtype, copy=False)
        assert shared.ctypes.data == matrix.__array__(copy=False).ctypes.data and shared.max() < 9
    with pytest.raises(ValueError, match="copy=False is incompatible with a conversion"):
        matrix.__array__(np.int8, copy=False)
    with pytest.raises(ValueError):
        np.array(matrix, dtype=np.int8, copy=False)
    assert np.array(matrix, dtype=np.int8).dtype == np.int8


def test_elements_that_numpy_cannot_look_at(arch):
    x, y = oc.field(oc.f32), oc.field(oc.i8)
    oc.root.dense(oc.i, 4).place(x, y)
    with pytest.raises(ValueError, match="Zero-copy not available"):
        x.__array__(copy=False)
    q = oc.field(oc.types.quant.int(4, True))
    oc.root.quant_array(oc.i, 8, max_num_bits=32).place(q)
    with pytest.raises(ValueError, match="bits of words"):
        q.__array__(copy=False)
    assert x.__array__(np.float64).dtype == np.float64 and q.__array__(np.int64, copy=True).dtype == np.int64


class Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p), ("kind", ctypes.c_int), ("number", ctypes.c_int), ("ndim", ctypes.c_int), ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64),
    ]  # fmt: skip


class Versioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64), ("tensor", Tensor),
    ]  # fmt: skip


def looked_at(capsule):
    """The device, the flags and the address that a capsule of the form with versions tells."""
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    found = Versioned.from_address(pointer(capsule, b"dltensor_versioned"))
    return (found.tensor.kind, found.tensor.number), found.flags, found.tensor.data


COPIED = 2


@pytest.mark.parametrize("name", SOURCES)
def test_capsules_lie_where_they_were_asked_for(arch, name):
    source = SOURCES[name]()
    elements = source.to_numpy()
    ask = lambda **options: source.__dlpack__(max_version=(1, 0), **options)
    here = source.__dlpack_device__() if arch != "remote" else None
    shared = None
    if here is None:
        with pytest.raises(BufferError, match="has no name"):
            ask()
    else:
        device, flags, shared = looked_at(ask())
        assert device == here and flags == 0
        assert looked_at(ask(dl_device=here))[2] == looked_at(ask(copy=False))[2] == shared
        capsule = ask(copy=True, dl_device=here)
        device, flags, address = looked_at(capsule)
        assert device == here and flags == COPIED and address != shared
        capsule = ask(copy=True)
        device, flags, address = looked_at(capsule)
        assert device == here and flags == COPIED and address != shared
    # To the host it is copied from everywhere; where it lies there, it is shared.
    capsule = ask(copy=True, dl_device=HOST)
    device, flags, address = looked_at(capsule)
    assert device == HOST and flags == COPIED and address != shared
    data = (ctypes.c_float * elements.size).from_address(address)
    if name != "array with a layout":
        assert list(data) == elements.reshape(-1).tolist()
    device, flags, address = looked_at(capsule := ask(dl_device=HOST))
    assert device == HOST and flags == (0 if here == HOST else COPIED)
    if here != HOST:
        with pytest.raises(BufferError, match="another device"):
            ask(dl_device=HOST, copy=False)
    for elsewhere in ((1, 1), (2, 7), (4, 0), (10, 0)):
        for copy in (None, True):
            with pytest.raises(BufferError, match=rf"not to device \({elsewhere[0]}, {elsewhere[1]}\)"):
                ask(dl_device=elsewhere, copy=copy)
        with pytest.raises(BufferError):
            ask(dl_device=elsewhere, copy=False)
    del capsule


@pytest.mark.parametrize("name", SOURCES)
def test_numpy_takes_capsules(arch, name):
    source = SOURCES[name]()
    elements = source.to_numpy()
    own = np.from_dlpack(source, device="cpu", copy=True) if arch != "remote" else np.from_dlpack(Ask(source))
    own[...] = -1
    np.testing.assert_array_equal(source.to_numpy(), elements)
    if is_host(arch):
        np.from_dlpack(source)[...] = 7
        assert (source.to_numpy() == 7).all()


class Ask:
    """Asks for a copy on the host of what tells no device."""

    def __init__(self, source):
        self.source = source

    def __dlpack_device__(self):
        return HOST

    def __dlpack__(self, **options):
        return self.source.__dlpack__(**{**options, "copy": True, "dl_device": HOST})


def test_streams_of_the_protocol(arch):
    x = oc.ndarray(oc.f32, 4)
    for number in (0, -2, -7):
        with pytest.raises(ValueError, match=rf"stream={number} is no stream of DLPack's"):
            x.__dlpack__(stream=number)
    with pytest.raises(TypeError):
        x.__dlpack__(stream="default")
    if is_host(arch):
        for number in (-1, 1, 2):
            with pytest.raises(RuntimeError, match="takes no stream"):
                x.__dlpack__(stream=number)
    elif arch == "cuda":
        for number in (-1, 1, 2):
            assert looked_at(x.__dlpack__(stream=number, max_version=(1, 0)))[0] == x.__dlpack_device__()


def test_elements_that_do_not_lie_side_by_side_are_copied_when_asked_for(arch):
    x, y = oc.field(oc.f32), oc.field(oc.i8)
    oc.root.dense(oc.i, 4).place(x, y)
    filled(x)
    for copy in (None, False):
        with pytest.raises(BufferError, match="ask for a copy"):
            x.__dlpack__(copy=copy)
    capsule = x.__dlpack__(copy=True, max_version=(1, 0))
    device, flags, _ = looked_at(capsule)
    assert flags == COPIED and device == (HOST if arch != "cuda" else oc.ndarray(oc.f32, 1).__dlpack_device__())
    assert np.from_dlpack(Ask(x)).tolist() == [0, 1, 2, 3]


def test_an_array_of_several_axes_is_not_looped_over():
    """A list of it would be empty, which no array is."""
    assert list(filled(oc.ndarray(oc.f32, 3))) == [0, 1, 2] and 2.0 in filled(oc.ndarray(oc.f32, 3))
    assert [v.to_list() for v in filled(oc.Vector.ndarray(2, oc.f32, 2))] == [[0, 1], [2, 3]]
    for array in (oc.ndarray(oc.f32, (2, 3)), oc.ndarray(oc.f32, ()), oc.Vector.ndarray(2, oc.f32, (2, 2))):
        with pytest.raises(TypeError):
            1 in array  # noqa: B015
        for loop in (list, iter, sum):
            with pytest.raises(TypeError, match=f"an array of {len(array.shape)} axes is not looped over on the host"):
                loop(array)
