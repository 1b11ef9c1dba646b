"""Fields on the host: made, placed, indexed, copied, shared with numpy, freed; and what is refused."""

import copy
import pickle

import numpy as np
import pytest

import octants as oc

pytestmark = pytest.mark.host_access

vec3 = oc.types.vector(3, oc.f32)


# ---- shapes and types --------------------------------------------------------------------------------------------------------


def test_new_fields_are_zero_and_know_what_they_are():
    x = oc.field(oc.f32, shape=(3, 4), name="x")
    assert (x.shape, x.dtype, x.layout) == ((3, 4), oc.f32, None)
    assert not x.to_numpy().any() and x.to_numpy().dtype == np.float32
    assert repr(x) == "<oc.field x f32 (3, 4)>"
    assert oc.field(oc.i32, shape=5).shape == oc.field(int, shape=[5]).shape == (5,)
    assert isinstance(x, oc.ScalarField) and isinstance(x, oc.Field)
    assert repr(oc.Vector.field(3, oc.f32, shape=2)) == "<oc.Vector.field(3) f32 (2,)>"
    assert repr(oc.field(oc.f32)) == "<oc.field f32 not placed>"


def test_zero_d_fields():
    x = oc.field(oc.i32, shape=())
    x[None] = 3
    x[()] += 4
    assert x[None] == 7 and x.to_numpy().shape == () and x.to_numpy() == 7
    v = oc.Vector.field(2, oc.f64, shape=())
    v[None] = [1.5, 2.5]
    assert v[None].to_list() == [1.5, 2.5]


def test_a_field_of_one_number_converts_to_it():
    x = oc.field(oc.f32, shape=())
    x[None] = 2.75
    assert (float(x), int(x)) == (2.75, 2) and type(float(x)) is float and type(int(x)) is int
    for more in (
        oc.field(oc.f32, shape=1),
        oc.Vector.field(2, oc.f32, shape=()),
        oc.Struct.field({"a": oc.f32}, shape=()),
    ):
        for number in (int, float):
            with pytest.raises(TypeError, match="OC0410"):
                number(more)


def test_a_dtype_may_be_a_vector_matrix_or_struct_type():
    assert isinstance(oc.field(vec3, shape=2), oc.MatrixField)
    assert isinstance(vec3.field(shape=2), oc.MatrixField)
    matrices = oc.types.matrix(2, 3, oc.f64).field(shape=2, name="a")
    assert (matrices.n, matrices.m, matrices.ndim, matrices.dtype) == (2, 3, 2, oc.f64)
    struct = oc.types.struct(a=oc.f32, v=vec3)
    assert oc.field(struct, shape=2).keys == struct.field(shape=2).keys == ["a", "v"]


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"shape": 0}, RuntimeError, "Every dimension of a field should be positive, got 0 in dimension 0"),
        ({"shape": (2, -1)}, RuntimeError, "positive, got -1 in dimension 1"),
        ({"shape": 2.5}, TypeError, "an extent is an integer"),
        ({"shape": "3"}, TypeError, "an extent is an integer"),
        ({"shape": 2**31}, oc.OctantsRuntimeError, "an index has 32 bits"),
        ({"shape": (1,) * 13}, RuntimeError, "at most 12"),
        ({"shape": (2**20, 2**20)}, MemoryError, "4398046511104 bytes"),
        ({"shape": (2, 3), "offset": 1}, oc.OctantsSyntaxError, r"shape and offset must be the same \(2 != 1\)"),
        ({"shape": 2, "offset": 1.5}, TypeError, "an offset is an integer"),
        ({"shape": 2, "offset": 2**31 - 1}, oc.OctantsRuntimeError, "beyond the largest index"),
        ({"offset": (1,)}, oc.OctantsSyntaxError, "shape cannot be None when offset is set"),
        ({"order": "ij"}, oc.OctantsSyntaxError, "shape cannot be None when order is set"),
        ({"shape": (2, 3), "order": "i"}, oc.OctantsSyntaxError, r"shape and order must be the same \(2 != 1\)"),
        ({"shape": (2, 3), "order": "ii"}, oc.OctantsSyntaxError, "must be different"),
        ({"shape": (2, 3), "order": "jk"}, oc.OctantsSyntaxError, "Invalid axis k"),
        ({"shape": (2, 3), "order": 3}, TypeError, "order is a text"),
        ({"dtype": "f32", "shape": 3}, TypeError, "not a data type"),
        ({"dtype": "int"}, ValueError, "not a data type"),
        ({"dtype": oc.i32, "shape": 3, "needs_grad": True}, oc.OctantsRuntimeError, "i32 is not supported for field with `needs_grad=True`"),
        ({"dtype": oc.u1, "needs_dual": True}, oc.OctantsRuntimeError, "`needs_dual=True`"),
    ],
)  # fmt: skip
def test_bad_descriptions(options, error, text):
    with pytest.raises(error, match=text):
        oc.field(**{"dtype": oc.f32, **options})


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: oc.Vector.field(0, oc.f32, shape=2), oc.OctantsRuntimeError),
        (lambda: oc.Vector.field(2, [oc.f32], shape=2), oc.OctantsSyntaxError),
        (lambda: oc.Matrix.field(2, 2, [oc.f32] * 4, shape=2), oc.OctantsSyntaxError),
        (lambda: oc.Struct.field({}, shape=2), oc.OctantsSyntaxError),
        (lambda: oc.Struct.field({"a": "f32"}, shape=2), oc.OctantsTypeError),
        (lambda: oc.Struct.field({"a": oc.f32, "b": oc.i32}, shape=2, needs_grad=True), oc.OctantsRuntimeError),
        (lambda: oc.Vector.field(2, "f32", shape=2), ValueError),
        (lambda: oc.ndarray("f32", shape=2), oc.OctantsRuntimeError),
    ],
)
def test_bad_element_descriptions(make, error):
    with pytest.raises(error):
        make()


# ---- indices -----------------------------------------------------------------------------------------------------------------


def test_host_indexing():
    x = oc.field(oc.i16, shape=(2, 3))
    x[1, 2] = -5
    assert (x[1, 2], x[0, 0], x[[1, 2]], x[np.int64(1), np.int8(2)]) == (-5, 0, -5, -5)
    x[0, 0] = 70_000  # wraps, as in a kernel
    assert x[0, 0] == 70_000 - 65_536
    x[0, 0] = 2.75
    assert x[0, 0] == 2
    flags = oc.field(oc.u1, shape=2)
    flags[1] = 5
    assert flags[1] == 1 and flags.to_numpy().tolist() == [False, True]


@pytest.mark.parametrize(
    ("index", "error", "text"),
    [
        (0, AssertionError, "2 axes, got 1 index. Slicing is not supported"),
        (None, AssertionError, "got 0 indices"),
        ((0, 0, 0), AssertionError, "got 3 indices"),
        (slice(0, 1), AssertionError, "Slicing is not supported"),
        ((slice(0, 1), 0), TypeError, "an index of a field is an integer, not slice"),
        ((1.0, 0), TypeError, "not float"),
        (("a", 0), TypeError, "not str"),
        ((2, 0), AssertionError, r"Out of bound access to field `x` of shape \(2, 3\) with index \(2, 0\)"),
        ((0, -1), AssertionError, r"with index \(0, -1\)"),
        ((0, 2**70), AssertionError, "Out of bound"),
    ],
)
def test_bad_indices(index, error, text):
    fields = [oc.field(oc.f32, shape=(2, 3), name="x"), oc.Vector.field(2, oc.f32, shape=(2, 3), name="x")]
    for x in [*fields, oc.Struct.field({"x": oc.f32}, shape=(2, 3), name="")]:
        with pytest.raises(error, match=text):
            x[index]
        with pytest.raises(error, match=text):
            x[index] = 1


def test_offsets_shift_the_index():
    x = oc.field(oc.i32, shape=(2, 3), offset=(-1, 4))
    for i in (-1, 0):
        for j in (4, 5, 6):
            x[i, j] = 10 * i + j
    np.testing.assert_array_equal(x.to_numpy(), [[-6, -5, -4], [4, 5, 6]])
    assert x.shape == (2, 3)
    with pytest.raises(AssertionError, match=r"and offset \(-1, 4\) with index \(1, 4\)"):
        x[1, 4]
    y = oc.Vector.field(2, oc.f32, shape=3, offset=-1, layout=oc.Layout.SOA)
    y[-1] = [1, 2]
    assert y.to_numpy()[0].tolist() == [1, 2]


def test_what_cannot_be_an_element():
    x, v = oc.field(oc.f32, shape=2), oc.Vector.field(2, oc.f32, shape=2)
    for field, value in ((x, "a"), (x, [1, 2]), (v, [1, 2, 3]), (v, "ab"), (v, [[1], [2]])):
        with pytest.raises(TypeError):
            field[0] = value
        with pytest.raises(TypeError):
            field.fill(value)


def test_fields_are_not_iterated_on_the_host():
    for x in (oc.field(oc.f32, shape=2), oc.Vector.field(2, oc.f32, shape=2), oc.Struct.field({"a": oc.f32}, shape=2)):
        with pytest.raises(NotImplementedError):
            list(x)
        with pytest.raises(TypeError):
            len(x)


# ---- elements ----------------------------------------------------------------------------------------------------------------


LAYOUTS = [oc.Layout.AOS, oc.Layout.SOA]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_vector_elements_are_live_and_written_through(layout):
    v = oc.Vector.field(3, oc.f32, shape=4, layout=layout)
    v[1] = [1, 2, 3]
    element, other = v[1], v[1]
    element[0] = 7
    element.y = 8
    assert v[1].to_list() == [7, 8, 3]
    other.zx = [9, 10]  # a second view overwrites what it names alone
    assert element.to_list() == [10, 8, 9] and v[1].x == 10
    element[0:2] = [1, 1]
    v[1] += oc.Vector([1, 2, 3])
    assert v[1].to_list() == [2, 3, 12]
    assert (v[1] + 1).to_list() == [3, 4, 13] and v[1].norm_sqr() == 4 + 9 + 144
    v[2] = 5  # one number for all entries
    assert v[2].to_list() == [5, 5, 5] and v[0].to_list() == [0, 0, 0]
    assert type(v[1][0]) is type(v[1].x) is type(list(v[1])[0]) is float and v[1].xy.to_list() == [2, 3]
    assert type(oc.Vector.field(2, oc.i32, shape=1)[0][1]) is int
    with pytest.raises(IndexError):
        v[1][3]
    with pytest.raises(oc.OctantsTypeError):
        v[1]["x"] = 1


@pytest.mark.parametrize("layout", LAYOUTS)
def test_matrix_elements(layout):
    m = oc.Matrix.field(2, 3, oc.f64, shape=(2, 2), layout=layout)
    m[1, 0] = [[1, 2, 3], [4, 5, 6]]
    m[1, 0][0, 1] = 20
    m[1, 0][1, :] = [7, 8, 9]
    assert m[1, 0].to_list() == [[1, 20, 3], [7, 8, 9]]
    assert m.to_numpy().shape == (2, 2, 2, 3) and m.to_numpy()[1, 0].tolist() == m[1, 0].to_list()
    assert m.get_scalar_field(0, 1)[1, 0] == 20
    m.get_scalar_field(1, 2)[0, 1] = -1
    assert m[0, 1][1, 2] == -1


def test_elements_can_be_copied_and_pickled_and_then_are_plain():
    v = oc.Vector.field(2, oc.f32, shape=1)
    s = oc.Struct.field({"a": oc.f32, "v": vec3}, shape=1)
    for element in (v[0], s[0]):
        for plain in (copy.copy(element), copy.deepcopy(element), pickle.loads(pickle.dumps(element))):
            assert "Element" not in type(plain).__name__
    plain = copy.copy(s[0])
    plain.a, plain.v[1] = 3, 4
    assert s[0].a == 0 and s[0].v.to_list() == [0, 0, 0]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_struct_elements_are_live_and_written_through(layout):
    inner = oc.types.struct(q=oc.i32, w=oc.types.vector(2, oc.i64))
    s = oc.types.struct(a=oc.f32, v=vec3, k=inner).field(shape=4, layout=layout)
    s[1] = {"a": 1.5, "v": [1, 2, 3], "k": {"q": 4, "w": [5, 6]}}
    s[1].a = 7.5
    s[1].v[1] = 20
    s[1].v.z = 30
    s[1].k.q = -4
    s[1].k.w[0] = -5
    s[1]["a"] += 1
    assert s[1].to_dict() == {"a": 8.5, "v": [1, 20, 30], "k": {"q": -4, "w": [-5, 6]}}
    assert s.a[1] == 8.5 and s.v[1].to_list() == [1, 20, 30] and s.k.w[1].to_list() == [-5, 6]
    s[2] = s[1]
    assert s[2].to_dict() == s[1].to_dict() and s[3].a == 0
    s.a[0] = 2
    assert s[0].a == 2 and s.get_member_field("a") is s.a
    with pytest.raises(AttributeError, match="no member 'zz'"):
        s[0].zz = 1
    with pytest.raises(AttributeError, match="no member 'zz'"):
        s.zz  # noqa: B018
    with pytest.raises(KeyError):
        s.get_member_field("zz")
    with pytest.raises(KeyError, match="'v' is missing"):
        s[0] = {"a": 1}
    with pytest.raises(KeyError):
        s[0] = {**s[0].to_dict(), "zz": 1}
    with pytest.raises(TypeError, match="not to int"):
        s[0] = 3


def test_members_may_have_names_of_methods():
    s = oc.Struct.field({"parent": oc.i32, "fill": oc.f32, "field": oc.i8}, shape=2)
    s[1] = {"parent": 3, "fill": 0.5, "field": 7}
    assert (s.parent[1], s.fill[1], s.field[1], s[1].parent, s[1].field) == (3, 0.5, 7, 3, 7)
    assert s.to_numpy()["parent"].tolist() == [0, 3] and s.shape == (2,)
    assert oc.Struct(field=3).field == 3


def test_dataclass_fields_have_the_methods_of_the_class():
    @oc.dataclass
    class Ball:
        center: vec3
        radius: oc.f32

        @oc.pyfunc
        def reach(self):
            return self.center.x + self.radius

    balls = Ball.field(shape=3, name="balls")
    balls[1] = Ball(center=[1, 2, 3], radius=4)
    assert balls[1].reach() == 5
    assert "center" in repr(balls) and balls.struct_type is Ball


# ---- numpy -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [oc.u1, oc.i8, oc.u16, oc.i32, oc.u64, oc.f16, oc.f32, oc.f64])
def test_numpy_round_trips(dtype, layout):
    rng = np.random.default_rng(1)
    numbers = rng.integers(0, 2 if dtype is oc.u1 else 100, (7, 5, 3)).astype(oc.types.to_numpy_type(dtype))
    for order in ("ij", "ji"):
        x = oc.field(dtype, shape=(7, 5), order=order)
        x.from_numpy(numbers[..., 0])
        v = oc.Vector.field(3, dtype, shape=(7, 5), order=order, layout=layout)
        v.from_numpy(numbers)
        assert x.to_numpy().dtype == v.to_numpy().dtype == numbers.dtype
        np.testing.assert_array_equal(x.to_numpy(), numbers[..., 0])
        np.testing.assert_array_equal(v.to_numpy(), numbers)
        np.testing.assert_array_equal(v.get_scalar_field(2).to_numpy(), numbers[..., 2])


def test_shapes_of_arrays():
    v, m, column = (
        oc.Vector.field(3, oc.f32, shape=4),
        oc.Matrix.field(2, 2, oc.f32, shape=()),
        oc.Matrix.field(3, 1, oc.f32, shape=2),
    )
    assert v.to_numpy().shape == (4, 3) and v.to_numpy(keep_dims=True).shape == (4, 3, 1)
    assert m.to_numpy().shape == m.to_numpy(keep_dims=True).shape == (2, 2)
    assert column.to_numpy().shape == (2, 3) and column.to_numpy(keep_dims=True).shape == (2, 3, 1)
    v.from_numpy(np.ones((4, 3, 1)))
    column.from_numpy(np.ones((2, 3)))
    assert v[3].to_list() == [1, 1, 1] and column[1].to_list() == [[1], [1], [1]]
    for field, shape in ((v, (4, 4)), (v, (4,)), (m, (4,)), (oc.field(oc.f32, shape=(2, 3)), (3, 2))):
        with pytest.raises(ValueError, match="takes arrays of shape"):
            field.from_numpy(np.zeros(shape))
    with pytest.raises(TypeError, match="takes a numpy array, not list"):
        v.from_numpy([1])
    with pytest.raises(TypeError, match="of numbers"):
        v.from_numpy(np.full((4, 3), "a"))


def test_types_are_converted():
    x = oc.field(oc.i32, shape=3)
    x.from_numpy(np.array([1.75, -2.75, 3]))
    assert x.to_numpy().tolist() == [1, -2, 3]
    assert x.to_numpy(dtype=np.float64).dtype == np.float64 and x.to_numpy(dtype=oc.i8).dtype == np.int8
    x.from_numpy(np.arange(12)[::-4])  # not contiguous
    assert x.to_numpy().tolist() == [11, 7, 3]


@pytest.mark.host_devices("numpy sees the host's memory alone")
def test_without_a_copy():
    x = oc.field(oc.f32, shape=(2, 3))
    view, again = x.to_numpy(copy=False), x.to_numpy(copy=None)
    view[1, 2] = 5
    assert x[1, 2] == again[1, 2] == 5 and np.shares_memory(view, again)
    copied = x.to_numpy()
    copied[:] = 0
    assert x[1, 2] == 5
    v = oc.Matrix.field(2, 2, oc.f64, shape=3)
    v.to_numpy(copy=False)[1] = [[1, 2], [3, 4]]
    assert v[1].to_list() == [[1, 2], [3, 4]]
    members = oc.Struct.field({"a": oc.f32, "b": oc.f64}, shape=3, layout=oc.Layout.SOA)
    members.a.to_numpy(copy=False)[2] = 1
    assert members[2].a == 1
    apart = oc.Struct.field({"a": oc.f32, "b": oc.f64}, shape=3)
    for refused in (
        apart.a, apart, oc.field(oc.f32, shape=()), oc.Vector.field(2, oc.f32, shape=3, layout=oc.Layout.SOA)
    ):  # fmt: skip
        with pytest.raises(ValueError, match="Zero-copy not available"):
            refused.to_numpy(copy=False)
        refused.to_numpy(copy=None)
    with pytest.raises(ValueError, match="conversion from float32 to int32"):
        x.to_numpy(dtype=np.int32, copy=False)
    with pytest.raises(TypeError, match="copy= takes True, False or None, not 1"):
        x.to_numpy(copy=1)


@pytest.mark.host_devices("numpy sees the host's memory alone")
def test_dlpack():
    x = oc.field(oc.f32, shape=(2, 3), order="ji")
    x[1, 2] = 4
    assert "dltensor" in repr(x.to_dlpack()) and "dltensor_versioned" in repr(x.to_dlpack(versioned=True))

    class Exporter:
        def __dlpack__(self, **_):
            return x.to_dlpack()

        def __dlpack_device__(self):
            return (1, 0)

    array = np.from_dlpack(Exporter())
    assert array[1, 2] == 4 and array.strides == (4, 8)


def test_structs_are_dicts_of_arrays():
    s = oc.types.struct(a=oc.f32, k=oc.types.struct(v=vec3)).field(shape=2)
    arrays = {"a": np.array([1.0, 2.0]), "k": {"v": np.arange(6.0).reshape(2, 3)}, "unknown": 0}
    s.from_numpy(arrays)
    found = s.to_numpy()
    assert found["a"].tolist() == [1, 2] and found["k"]["v"].tolist() == [[0, 1, 2], [3, 4, 5]]
    with pytest.raises(KeyError, match="'k' is missing"):
        s.from_numpy({"a": np.zeros(2)})
    with pytest.raises(TypeError):
        s.from_numpy(np.zeros(2))
    with pytest.raises(TypeError, match="a field of structs is no array"):
        np.asarray(s)
    for options in {}, {"copy": True}:
        with pytest.raises(BufferError, match="a field of structs is no array"):
            s.__dlpack__(**options)
    s.fill({"a": 3, "k": {"v": [1, 2, 3]}})
    assert s[1].to_dict() == {"a": 3, "k": {"v": [1, 2, 3]}}
    s.fill(7)
    assert s[0].to_dict() == {"a": 7, "k": {"v": [7, 7, 7]}}


def test_copy_from():
    rng = np.random.default_rng(2)
    numbers = rng.random((4, 6))
    x, y = oc.field(oc.f32, shape=(4, 6)), oc.field(oc.f64, shape=(4, 6), order="ji")
    y.from_numpy(numbers)
    x.copy_from(y)
    np.testing.assert_array_equal(x.to_numpy(), numbers.astype(np.float32))
    blocked = oc.field(oc.f32)
    oc.root.dense(oc.ij, (2, 3)).dense(oc.ij, (2, 2)).place(blocked, oc.field(oc.i8))
    blocked.copy_from(y)
    y.fill(0)
    y.copy_from(blocked)
    np.testing.assert_array_equal(y.to_numpy(), numbers.astype(np.float32))
    v, w = oc.Vector.field(2, oc.f32, shape=3), oc.Vector.field(2, oc.f32, shape=3, layout=oc.Layout.SOA)
    v.fill([1, 2])
    w.copy_from(v)
    assert w[2].to_list() == [1, 2]
    s, t = (oc.Struct.field({"a": oc.f32, "v": vec3}, shape=2) for _ in range(2))
    s.fill(3)
    t.copy_from(s)
    assert t[1].to_dict() == {"a": 3, "v": [3, 3, 3]}
    with pytest.raises(TypeError, match="non-field"):
        x.copy_from(np.zeros((4, 6)))
    for other in (oc.field(oc.f32, shape=(6, 4)), oc.Vector.field(2, oc.f32, shape=(4, 6))):
        with pytest.raises(ValueError):
            x.copy_from(other)


def test_torch():
    torch = pytest.importorskip("torch")
    v = oc.Vector.field(2, oc.f32, shape=3)
    v.from_torch(torch.arange(6.0, requires_grad=True).reshape(3, 2))
    assert v.to_torch().tolist() == [[0, 1], [2, 3], [4, 5]]
    s = oc.Struct.field({"a": oc.f32}, shape=2)
    s.from_torch({"a": torch.ones(2)})
    assert s.to_torch()["a"].tolist() == [1, 1]


# ---- copies of whole fields -------------------------------------------------------------------------------------------------------


def _beside():
    x, other = oc.Vector.field(2, oc.f32), oc.field(oc.f32)
    oc.root.dense(oc.ij, (3, 5)).place(x, other)
    other.fill(7)
    return x, other


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("order", ["ij", "ji"])
def test_copies_of_fields_that_lie_alike_and_do_not(arch, layout, order):
    shape = (3, 5)
    makers = [
        lambda order, layout: oc.field(oc.f32, shape=shape, order=order),
        lambda order, layout: oc.Vector.field(3, oc.i16, shape=shape, order=order, layout=layout),
        lambda order, layout: oc.Matrix.field(2, 3, oc.f64, shape=shape, order=order, layout=layout, needs_grad=True),
        lambda order, layout: oc.Struct.field(
            {"a": oc.u8, "v": oc.types.vector(3, oc.f32)}, shape=shape, order=order, layout=layout
        ),
    ]
    generator = np.random.default_rng(3)
    for make in makers:
        source, alike, unlike = make(order, layout), make(order, layout), make("ij", oc.Layout.AOS)
        arrays = source.to_numpy()
        for array in arrays.values() if isinstance(arrays, dict) else [arrays]:
            array[...] = generator.integers(0, 100, array.shape)
        source.from_numpy(arrays)
        for target in (alike, unlike, source):
            target.copy_from(source)
            for field in (target, source):
                found = field.to_numpy()
                if isinstance(found, dict):
                    assert all((found[name] == arrays[name]).all() for name in arrays)
                else:
                    assert (found == arrays).all()


def test_a_copy_leaves_alone_what_lies_beside(arch):
    (x, x_other), (y, y_other) = _beside(), _beside()
    y.fill(3)
    y_other.fill(9)
    x.copy_from(y)
    assert (x.to_numpy() == 3).all() and (x_other.to_numpy() == 7).all() and (y_other.to_numpy() == 9).all()
    a = oc.Struct.field({"a": oc.f32, "b": oc.f32}, shape=4)
    b = oc.Struct.field({"b": oc.f32, "a": oc.f32}, shape=4)
    b.a.fill(1)
    b.b.fill(2)
    with pytest.raises(ValueError, match="members a, b"):
        a.copy_from(oc.Struct.field({"a": oc.f32, "c": oc.f32}, shape=4))
    with pytest.raises(ValueError, match="members a, b"):
        a.copy_from(b)
    with pytest.raises(ValueError, match="elements of shape"):
        oc.Vector.field(2, oc.f32, shape=4, layout=oc.Layout.SOA).copy_from(a)
