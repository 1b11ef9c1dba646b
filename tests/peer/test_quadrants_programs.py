"""Small things that programs written for Quadrants do: each was seen to differ once."""

import dataclasses
import warnings

import numpy as np
import pytest

import octants as oc

Ints = oc.types.ndarray(dtype=oc.i32, ndim=1)
TABLE = np.array([[1, 2], [3, 4]], dtype=np.float32)


@oc.kernel
def first_or(x: oc.Tensor, otherwise: oc.i32) -> oc.i32:
    result = otherwise
    if oc.static(x is not None):
        result = x[0]
    return result


def test_a_tensor_parameter_takes_arrays_of_any_kind_and_none(arch):
    ints, reals = oc.ndarray(oc.i32, 2), np.array([[7.5]], dtype=np.float64)
    ints.fill(5)
    assert first_or(ints, 1) == 5
    assert first_or(None, 1) == 1
    assert first_or(reals[0], 1) == 7
    ints.fill(6)
    assert first_or(ints, 1) == 6
    field = oc.field(oc.i32, shape=3)
    field.fill(9)
    assert [first_or(field, 1), first_or(ints, 1), first_or(None, 1)] == [9, 6, 1]


@oc.func
def second(x: oc.Tensor):
    return x[1]


@dataclasses.dataclass
class Optional:
    x: oc.Tensor
    n: oc.i32


@oc.kernel
def of_member(o: Optional) -> oc.i32:
    result = o.n
    if oc.static(o.x is not None):
        result += second(o.x)
    return result


def test_a_tensor_as_a_member_and_in_a_func(arch):
    x = oc.ndarray(oc.i32, 2)
    x.fill(5)
    assert [of_member(Optional(x, 1)), of_member(Optional(None, 2)), of_member(Optional(x, 3))] == [6, 2, 8]
    field = oc.field(oc.i32, shape=3)
    field.fill(10)
    assert of_member(Optional(field, 1)) == 11


@oc.kernel
def plus_one(x: oc.i32) -> oc.i32:
    return x + 1


def test_every_kernel_takes_a_stream():
    assert plus_one(1, qd_stream=None) == plus_one(x=1, qd_stream=None) == 2
    with pytest.raises(oc.OctantsRuntimeTypeError, match="qd_stream"):
        plus_one(1, qd_stream=3)


@oc.kernel
def component(x: oc.types.ndarray(ndim=1, element_dim=1)) -> oc.f32:
    return x[0][1]


def test_element_dim_takes_elements_of_any_length():
    vectors = oc.Vector.ndarray(3, oc.f32, 4)
    vectors[0] = [1, 2, 3]
    assert component(vectors) == 2
    assert component(np.array([[4, 5]], dtype=np.float32)) == 5
    with pytest.raises(ValueError, match="required element type: a vector"):
        component(oc.ndarray(oc.f32, 4))


def test_a_clock_goes_forward(arch):
    @oc.kernel
    def elapsed(n: oc.i32, out: Ints) -> oc.i64:
        begin = oc.clock_counter()
        oc.loop_config(serialize=True)
        for i in range(n):
            out[0] += i
        return oc.clock_counter() - begin

    out = oc.ndarray(oc.i32, 1)
    assert elapsed(0, out) >= 0
    assert elapsed(1000, out) > 0


@pytest.mark.host_devices("a GPU tells the rate of its clock")
def test_the_rate_of_a_clock_that_the_device_does_not_tell(arch):
    with pytest.raises(NotImplementedError, match=f"not on {arch}"):
        oc.clock_freq_hz()


def test_elements_and_shape_of_a_global_numpy_array_are_constants():
    @oc.kernel
    def total() -> oc.f32:
        s = 0.0
        for i, j in oc.static(oc.ndrange(*TABLE.shape)):
            s += TABLE[i, j]
        return s + TABLE[1, 1] + len(TABLE)

    assert total() == 10 + 4 + 2


def test_extrema_of_literals_have_the_promoted_type():
    @oc.kernel
    def f() -> oc.f32:
        x = max(3, 2.5)
        x += 0.75
        y = min(1, 2.5, 3)
        y += 0.25
        return x + y

    assert f() == 5.0
    assert isinstance(oc.max(3, 2.5), float) and oc.min(True, 2) == 1 and oc.max(1) == 1


def test_a_scalar_annotation_casts_a_vector_entry_by_entry():
    @oc.func
    def whole(x: oc.i32):
        return x

    @oc.kernel
    def f() -> oc.f32:
        return whole(oc.Vector([2.7, 1.2])).sum()

    assert f() == 3


def test_dicts_are_merged_and_the_last_value_counts():
    defaults = {"a": 1, "b": 2}

    @oc.kernel
    def f(x: oc.i32) -> oc.i32:
        ...
        d = {**defaults, "b": x, "c": 4}
        e = {"a": 100, **d}
        return d["a"] + 10 * d["b"] + 100 * d["c"] + 1000 * e["a"] + len(e)

    assert f(3) == 1 + 30 + 400 + 1000 + 3


def test_none_and_texts_have_names(capfd):
    @oc.kernel
    def f() -> oc.i32:
        nothing = None
        text = "n is"
        print(text, 3)
        r = 1
        if oc.static(nothing is None):
            r = 2
        return r

    assert f() == 2
    assert capfd.readouterr().out == "n is 3\n"


def test_percent_formats(capfd):
    @oc.kernel
    def f(n: oc.i32, x: oc.f32):
        print("%d and %.2f%%" % (n, x), "%-4d|%s" % (n, n), flush=True)

    f(3, 1.5)
    assert capfd.readouterr().out == "3 and 1.50% 3   |3\n"


def test_python_functions_in_static_are_meant():
    def double(x):
        return 2 * x

    @oc.kernel
    def f() -> oc.i32:
        return oc.static(double(2))

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert f() == 4


def test_a_large_local_matrix_gives_a_warning():
    @oc.kernel
    def f() -> oc.f32:
        m = oc.Matrix.zero(oc.f32, 13, 13)
        return m[0, 0]

    with pytest.warns(UserWarning, match="OC1006.*169 entries"):
        assert f() == 0


@oc.data_oriented
class Scaled:
    factor = 3

    def __init__(self):
        self.bonus = oc.ndarray(oc.i32, 1)
        self.bonus.fill(2)

    @oc.real_func
    def power(self, n: oc.i32) -> oc.i32:
        if n == 0:
            return self.bonus[0]
        return self.factor * self.power(n - 1)

    @oc.kernel
    def run(self, n: oc.i32) -> oc.i32:
        return self.power(n)


def test_a_real_function_is_a_method_and_reads_members(arch):
    scaled = Scaled()
    assert scaled.run(4) == 162
    scaled.bonus = oc.ndarray(oc.i32, 1)
    assert scaled.run(4) == 0


def test_the_old_name_of_real_functions():
    with pytest.warns(DeprecationWarning):

        @oc.experimental.real_func
        def half(x: oc.i32) -> oc.i32:
            return x // 2

    @oc.kernel
    def f() -> oc.i32:
        return half(7)

    assert f() == 3


def test_overflow_is_told_with_its_line(capfd):
    oc.init(arch=oc.cfg.arch, debug=True, log_level="error")

    @oc.kernel
    def f(a: oc.i32) -> oc.i32:
        return a + 1

    assert f(2**31 - 1) == -(2**31)
    told = capfd.readouterr().out
    assert "Addition overflow detected in File" in told and "test_quadrants_programs.py" in told
    assert told.endswith("    return a + 1\n           ^^^^^\n")


@pytest.mark.parametrize("operator", ["//", "%"])
def test_division_by_zero_fails_in_debug_mode_only(operator, arch, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        f"import octants as oc\n@oc.kernel\ndef f(a: oc.i32, b: oc.i32) -> oc.i32:\n    return a {operator} b\n"
    )
    import runpy

    assert runpy.run_path(str(program))["f"](7, 0) == 0
    oc.init(arch=getattr(oc, arch), debug=True, log_level="error")
    with pytest.raises(oc.OctantsAssertionError, match="division by zero: the dividend is 7") as caught:
        runpy.run_path(str(program))["f"](7, 0)
    assert caught.value.code == "OC0904"


@pytest.mark.no_device
def test_options_say_what_they_take(monkeypatch):
    with pytest.raises(ValueError, match="cpu_max_num_threads.*negative"):
        oc.init(cpu_max_num_threads=-1)
    monkeypatch.setenv("OC_DEBUG", "yes")
    with pytest.raises(ValueError, match="OC_DEBUG must be 0 or 1, not 'yes'"):
        oc.init()
    monkeypatch.delenv("OC_DEBUG")
    oc.init()
