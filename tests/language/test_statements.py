"""What statements do, on every device: assertions, static prints, ranges, functions that return, texts."""

import numpy as np
import pytest

import octants as oc

pytestmark = pytest.mark.host_access

I32 = oc.types.ndarray(dtype=oc.i32, ndim=1)


def test_an_assertion_that_is_not_checked_still_calls(arch):
    calls = oc.field(oc.i32, ())

    @oc.func
    def call(by):
        calls[None] += by
        return calls[None]

    @oc.kernel
    def k(a: oc.i32) -> oc.i32:
        assert call(3) == 0
        assert a > 0 and call(5) == 0, "not checked"
        assert (d := a * 2) > 100
        return d

    assert k(4) == 8
    assert calls[None] == 8
    assert k(0) == 0
    assert calls[None] == 11


def test_static_print_shows_what_is_known_only_when_the_kernel_runs(capsys):
    @oc.kernel
    def k(a: oc.i32, x: I32) -> oc.i32:
        oc.static_print(a, a + 1, 3, "text", [a, 2], x)
        oc.static_print("n", x[0], sep="=", end="!\n")
        return a

    assert k(1, np.zeros(2, dtype=np.int32)) == 1
    assert capsys.readouterr().out.splitlines() == [
        "<i32: a> <i32: a + 1> 3 text <a list of 2 items: [a, 2]> <an array of i32 with rank 1: x>",
        "n=<i32: x[0]>!",
    ]


def test_static_print_in_python_code_that_is_given_a_run_time_value(capsys):
    def show(value):
        oc.static_print("got", value)
        return value

    @oc.kernel
    def k(a: oc.i32) -> oc.i32:
        return show(a)

    assert k(7) == 7
    assert capsys.readouterr().out.startswith("got <i32")


def test_comprehensions_take_several_conditions(arch):
    @oc.kernel
    def k(a: oc.i32) -> oc.i32:
        s = 0
        for i in oc.static([j for j in range(10) if j > 2 if j % 2 == 0]):
            s += i
        squares = oc.static({j: j * j for j in range(10) if j > 2 if j % 2})
        for square in oc.static(squares.values()):
            s += square * 100
        items = [a + j for j in range(10) if j > 2 if j % 2 == 0]
        return s + items[2] * 100000

    assert k(1) == 18 + 100 * (9 + 25 + 49 + 81) + 900000


# ---- real functions ------------------------------------------------------------------------------------------------------


def test_a_parameter_of_a_real_function_needs_a_type():
    @oc.real_func
    def f(a, b: oc.i32) -> oc.i32:
        return b

    @oc.kernel
    def k() -> oc.i32:
        return f(1, 2)

    with pytest.raises(oc.OctantsSyntaxError, match="parameter `a`"):
        k()


def test_the_result_of_a_real_function_needs_a_type():
    @oc.real_func
    def f(a: oc.i32):
        return a

    @oc.kernel
    def k() -> oc.i32:
        return f(1)

    with pytest.raises(oc.OctantsCompilationError, match="result of real function `f`"):
        k()


@oc.real_func
def only_if(a: oc.i32) -> oc.i32:
    if a > 0:
        return 1


@oc.real_func
def only_in_loop(a: oc.i32) -> oc.i32:
    for i in range(a):
        if i > a:
            continue
        return i


@oc.real_func
def broken(a: oc.i32) -> oc.i32:
    while True:
        if a > 0:
            break


@oc.real_func
def nowhere(a: oc.i32) -> oc.i32:
    pass


@oc.real_func
def one_arm_ends(a: oc.i32) -> oc.i32:
    if a > 0:
        if a > 1:
            return 1
    else:
        return 2


@pytest.mark.parametrize("f", [only_if, only_in_loop, broken, nowhere, one_arm_ends], ids=lambda f: f.__name__)
def test_a_real_function_that_can_reach_its_end_is_refused(f):
    @oc.kernel
    def k() -> oc.i32:
        return f(1)

    with pytest.raises(oc.OctantsSyntaxError, match="without returning a value"):
        k()


def test_real_functions_that_return_on_every_path(arch):
    @oc.real_func
    def endless(a: oc.i32) -> oc.i32:
        while True:
            if a > 0:
                return 1

    @oc.real_func
    def arms(a: oc.i32) -> oc.i32:
        if a > 10:
            return 1
        elif a > 5:
            a += 1
        else:
            return 3
        return a

    @oc.real_func
    def known(n: oc.template(), a: oc.i32) -> oc.i32:
        if oc.static(n > 1):
            return a
        for i in oc.static(range(3)):
            if oc.static(i == n):
                return i * 10

    @oc.real_func
    def after_loop(a: oc.i32) -> oc.i32:
        for i in range(a):
            if i == 3:
                return i
            if i > 100:
                continue
        return -1

    @oc.kernel
    def k(a: oc.i32, out: I32):
        out[0] = endless(1)
        out[1] = arms(a)
        out[2] = known(2, a)
        out[3] = known(1, a)
        out[4] = after_loop(a)

    out = np.zeros(5, dtype=np.int32)
    k(7, out)
    assert out.tolist() == [1, 8, 7, 10, 3]


# ---- ndrange -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bounds", ["(1, 2, 3)", "2.5", "(1, 2.5)", "(1,)", "'a'", "None"])
@pytest.mark.parametrize("form", ["{}", "oc.static({})"])
def test_ndrange_takes_integers_and_pairs(bounds, form):
    source = f"for i in {form.format(f'oc.ndrange({bounds})')}:\n        s += 1"
    with pytest.raises(oc.OctantsTypeError, match="ndrange"):
        kernel_of(f"    s = 0\n    {source}\n    return s")()
    with pytest.raises(oc.OctantsTypeError, match="ndrange"):
        list(oc.ndrange(eval(bounds)))


@pytest.mark.parametrize(
    ("axes", "error"),
    [
        ("(True, False)", oc.OctantsTypeError),
        ("(1.0, 0.0)", oc.OctantsTypeError),
        ("(1, 1)", oc.OctantsSyntaxError),
        ("(1,)", oc.OctantsSyntaxError),
        ("(0, 1, 2)", oc.OctantsSyntaxError),
    ],
)
@pytest.mark.parametrize("form", ["{}", "oc.static({})"])
def test_axes_of_ndrange_are_a_permutation_of_integers(axes, error, form):
    source = f"for i, j in {form.format(f'oc.ndrange(2, 3, axes={axes})')}:\n        s += 1"
    with pytest.raises(error, match="axes"):
        kernel_of(f"    s = 0\n    {source}\n    return s")()
    with pytest.raises(error, match="axes"):
        list(oc.ndrange(2, 3, axes=eval(axes)))


def kernel_of(body: str, signature: str = "k() -> oc.i32"):
    """A kernel with this body."""
    import linecache

    source = f"import octants as oc\nimport numpy as np\n@oc.kernel\ndef {signature}:\n{body}\n"
    name = f"<statements {len(linecache.cache)}>"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    namespace = {"__name__": name}
    exec(compile(source, name, "exec"), namespace)
    return namespace["k"]


# ---- texts ---------------------------------------------------------------------------------------------------------------


def test_what_is_known_is_formatted_as_python_does(arch, capfd):
    digits, width, items = 3, 8, [1, 2.5]

    @oc.kernel
    def k(a: oc.i32, b: oc.f32):
        print(f"{True} {1.23} {None} {items} {'x':>3} {a}")
        print("{} {} {}".format(True, 1.5, a))
        print(f"{b:.{digits}f} {b:{width}.{digits}f}| {a:0{width}d}")
        print("{:.{}f} {x:.{p}f} {0}".format(b, digits, x=b, p=1))
        print(f"{a!r} {'q'!r} {{}} {{a}}")

    k(7, 2.5)
    oc.sync()
    assert capfd.readouterr().out.splitlines() == [
        "True 1.23 None [1, 2.5]   x 7",
        "True 1.5 7",
        "2.500    2.500| 00000007",
        "2.500 2.5 2.500000",
        "7 'q' {} {a}",
    ]


def test_a_format_that_only_the_run_knows_is_refused():
    with pytest.raises(oc.OctantsTypeError, match="only when the kernel runs"):
        kernel_of('    print(f"{a:.{p}f}")', "k(a: oc.f32, p: oc.i32)")(1.0, 2)
    with pytest.raises(oc.OctantsTypeError, match="only when the kernel runs"):
        kernel_of('    print("{:.{}f}".format(a, p))', "k(a: oc.f32, p: oc.i32)")(1.0, 2)


@pytest.mark.parametrize(
    ("dtype", "spec", "text"),
    [
        ("i32", "d", "37"),
        ("i32", "i", "37"),
        ("i32", "x", "25"),
        ("i32", ".10d", "0000000037"),
        ("i32", "5d", "   37"),
        ("i8", "d", "37"),
        ("i64", "d", "37"),
        ("u32", "u", "37"),
        ("u8", "u", "37"),
        ("u64", "x", "25"),
        ("u1", "u", "1"),
        ("f32", "f", "37.000000"),
        ("f32", ".2e", "3.70e+01"),
        ("f64", "g", "37"),
        ("f32", "a", "0x1.28p+5"),
        ("f32", ".3", "37.000"),
    ],
)
def test_letters_of_formats(arch, capfd, dtype, spec, text):
    kernel_of(f'    print(f"{{a:{spec}}}")', f"k(a: oc.{dtype})")(37)
    oc.sync()
    assert capfd.readouterr().out == text + "\n"


@pytest.mark.parametrize(
    ("dtype", "spec"),
    [
        ("u32", "d"),
        ("u32", "i"),
        ("i32", "u"),
        ("f32", "d"),
        ("i32", "f"),
        ("u8", "e"),
        ("f64", "x"),
        ("u1", "d"),
        ("i32", "c"),
    ],
)
def test_a_letter_of_another_kind_than_the_value_is_refused(dtype, spec):
    with pytest.raises(oc.OctantsTypeError, match=f"'{spec}' doesn't match '{dtype}'"):
        kernel_of(f'    print(f"{{a:{spec}}}")', f"k(a: oc.{dtype})")(1)


def test_percent_d_takes_every_integer(arch, capfd):
    kernel_of('    print("%d %d %5.2f %s" % (a, b, 1.5, True))', "k(a: oc.i32, b: oc.u32)")(-3, 4)
    oc.sync()
    assert capfd.readouterr().out == "-3 4  1.50 True\n"


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ('"a {} {:d} {{b}}"', "a {} {:d} {{b}}"),
        ('f"{{}} {a} {{a}} {{:.2f}}"', "{} 7 {a} {:.2f}"),
        ("f\"{a:03d} {'{}'} {2.5}\"", "007 {} 2.5"),
        ('"{} of {}".format(a, "{}")', "7 of {}"),
    ],
)
def test_braces_in_the_message_of_an_assertion(arch, message, text):
    oc.init(arch=getattr(oc, arch), debug=True, log_level="error")
    with pytest.raises(AssertionError) as caught:
        kernel_of(f"    assert a < 0, {message}", "k(a: oc.i32)")(7)
    assert text in str(caught.value)


# ---- overflow ------------------------------------------------------------------------------------------------------------


def test_overflows_beyond_a_number_are_counted(arch, capfd):
    oc.init(arch=getattr(oc, arch), debug=True, log_level="error")

    @oc.kernel
    def k(a: oc.i32, x: I32):
        for i in range(x.shape[0]):
            x[i] = a + a

    x = np.zeros(1000, dtype=np.int32)
    k(2**30, x)
    oc.sync()
    told = capfd.readouterr().out
    assert (x == -(2**31)).all()
    assert told.count("Addition overflow detected") == 32
    assert told.endswith("... and 968 more overflows in this launch\n")
    k(1, x)
    oc.sync()
    assert capfd.readouterr().out == ""


@pytest.mark.parametrize(
    ("operation", "word"),
    [("a + a", "Addition"), ("-a - a", "Subtraction"), ("a * 10", "Multiplication"), ("a << 10", "Shift left")],
)
def test_overflow_is_told_for_each_operation(arch, capfd, operation, word):
    oc.init(arch=getattr(oc, arch), debug=True, log_level="error")
    kernel_of(f"    return {operation}", "k(a: oc.i32) -> oc.i32")(2_000_000_000)
    oc.sync()
    told = capfd.readouterr().out
    assert f"{word} overflow detected" in told and f"return {operation}" in told


# ---- results -------------------------------------------------------------------------------------------------------------


def test_returning_a_real_as_an_integer_warns_like_an_assignment(arch):
    @oc.kernel
    def kernel(a: oc.i32) -> oc.i32:
        return a / 2

    @oc.func
    def inlined(a) -> oc.i32:
        return a / 2

    @oc.real_func
    def separate(a: oc.i32) -> oc.i32:
        return a / 2

    @oc.kernel
    def calls(a: oc.i32) -> oc.i32:
        return inlined(a) + separate(a)

    @oc.kernel
    def several(a: oc.i32) -> tuple[oc.i32, oc.f32]:
        return a / 2, a / 2

    for k, expected, count in ((kernel, 2, 1), (calls, 4, 2), (several, (2, 2.5), 1)):
        with pytest.warns(UserWarning, match="lose precision: i32 <- f32") as caught:
            assert k(5) == expected
        assert len(caught) == count


def test_a_func_casts_the_entries_of_a_vector_to_the_annotated_number(arch):
    @oc.func
    def real(v) -> oc.f32:
        return v

    @oc.kernel
    def k() -> oc.types.vector(2, oc.f32):
        return real(oc.Vector([1, 3])) / 2

    assert k().to_list() == [0.5, 1.5]


def test_the_variable_of_a_comprehension_may_hide_another(arch):
    @oc.kernel
    def k(x: I32):
        for i in range(x.shape[0]):
            v = oc.Vector([i * 10 for i in range(2)])
            x[i] = v.sum() + i

    x = np.zeros(3, dtype=np.int32)
    k(x)
    assert x.tolist() == [10, 11, 12]


def test_a_range_that_a_func_returns_or_a_variable_holds_is_unrolled(arch):
    @oc.func
    def stencil():
        return oc.ndrange(3, (1, 3))

    @oc.data_oriented
    class Grid:
        @oc.func
        def stencil(self):
            return oc.ndrange(3, (1, 3))

        @oc.kernel
        def sum(self) -> oc.i32:
            total = 0
            for offset in oc.static(oc.grouped(self.stencil())):
                if oc.static(offset[0] != 1):
                    total += offset[0] * 10 + offset[1]
            return total

    @oc.kernel
    def plain() -> oc.i32:
        total = 0
        for i, j in oc.static(stencil()):
            if oc.static(i != 1):
                total += i * 10 + j
        return total

    @oc.kernel
    def held() -> oc.i32:
        total = 0
        offsets = oc.ndrange(3, (1, 3))
        for offset in oc.static(oc.grouped(offsets)):
            if oc.static(offset[0] != 1):
                total += offset[0] * 10 + offset[1]
        return total

    @oc.kernel
    def unknown(n: oc.i32) -> oc.i32:
        total = 0
        offsets = oc.ndrange(n)
        for i in oc.static(offsets):
            total += i
        return total

    assert Grid().sum() == plain() == held() == 46
    with pytest.raises(oc.OctantsCompilationError, match="compile-time constants"):
        unknown(3)


def test_types_of_numpy_make_constants_inside_static(arch):
    pi = np.float32(np.pi)

    @oc.kernel
    def below() -> oc.f64:
        return oc.static(float(np.nextafter(np.float32(np.pi), np.float32(0.0))))

    @oc.kernel
    def below_global() -> oc.f64:
        return oc.static(float(np.nextafter(pi, 0 * pi)))

    @oc.kernel
    def unrolled() -> oc.i32:
        total = 0
        for i in oc.static(range(np.int32(3))):
            total += i
        if oc.static(oc.i32(3.5) == 3):
            total += 100
        return total

    # A number of numpy's stays one: the neighbour of a number of 32 bits, not of 64.
    expected = float(np.nextafter(np.float32(np.pi), np.float32(0)))
    assert below() == below_global() == np.float32(expected)
    assert unrolled() == 103
