"""What expressions give, on every device: `and` and `or`, conditional expressions, lists beside vectors, names assigned inside expressions."""

import numpy as np
import pytest

import octants as oc

I32 = oc.types.ndarray(dtype=oc.i32, ndim=1)
V2 = oc.types.vector(2, oc.i32)
V3 = oc.types.vector(3, oc.f32)
M2 = oc.types.matrix(2, 2, oc.i32)


@pytest.mark.parametrize("a", [0, 1, -4, 7])
@pytest.mark.parametrize("b", [0, 5])
def test_and_and_or_of_integers_give_one_of_their_operands(arch, a, b):
    @oc.kernel
    def k(a: oc.i32, b: oc.i32, out: I32):
        out[0] = a and b
        out[1] = a or b
        out[2] = a and b and 7
        out[3] = a or b or 9
        out[4] = (a or b) + 1
        out[5] = 1 and b
        out[6] = 0 or a
        out[7] = a > 0 and b
        out[8] = 1 if a and b else 2

    out = np.zeros(9, dtype=np.int32)
    k(a, b, out)
    assert out.tolist() == [
        a and b,
        a or b,
        a and b and 7,
        a or b or 9,
        (a or b) + 1,
        1 and b,
        0 or a,
        a > 0 and b,
        1 if a and b else 2,
    ]


def test_and_and_or_meet_in_the_wider_type(arch):
    @oc.kernel
    def wide(a: oc.i32, b: oc.i64) -> oc.i64:
        return a or b

    @oc.kernel
    def real(a: oc.i32, b: oc.f32) -> oc.f32:
        return a and b

    assert wide(0, 2**40) == 2**40
    assert wide(3, 2**40) == 3
    assert real(1, 2.5) == 2.5
    assert real(0, 2.5) == 0.0


@pytest.mark.parametrize("lazy", [True, False])
def test_operands_without_short_circuit_are_chosen_the_same(lazy):
    oc.init(arch=oc.cfg.arch, short_circuit_operators=lazy, log_level="error")

    @oc.kernel
    def k(a: oc.i32, b: oc.i32) -> V2:
        return oc.Vector([a and b, a or b])

    assert k(3, 5).to_list() == [5, 3]
    assert k(0, 5).to_list() == [0, 5]


def test_what_a_constant_decides_does_not_run(arch):
    calls = oc.field(oc.i32, ())

    @oc.func
    def call():
        calls[None] += 1
        return calls[None]

    @oc.kernel
    def k() -> oc.i32:
        a = False and call()
        b = 1 or call()
        return a + b

    assert k() == 1
    assert calls[None] == 0


def test_and_of_vectors_is_the_truth_of_each_entry(arch):
    @oc.kernel
    def k(a: V2, b: V2, c: oc.i32) -> M2:
        both = a and b
        mixed = c and a
        return oc.Matrix([[both[0], both[1]], [mixed[0], mixed[1]]])

    assert k(V2(3, 0), V2(5, 6), 1).to_list() == [[1, 0], [1, 0]]
    assert k(V2(3, 1), V2(5, 6), 0).to_list() == [[1, 1], [0, 0]]


def test_long_chains_of_and_and_or_compile(arch):
    count = 1000
    source = "import octants as oc\n@oc.kernel\ndef k(a: oc.i32) -> oc.i32:\n    return "
    namespace = compiled(source + " and ".join(f"(a != {i})" for i in range(count)))
    assert namespace["k"](5) == 0
    assert namespace["k"](count) == 1
    namespace = compiled(source + " or ".join(f"(a == {i})" for i in range(count)))
    assert namespace["k"](count - 1) == 1
    assert namespace["k"](count) == 0


def compiled(source: str) -> dict:
    """Runs a program whose text Python can find again."""
    import linecache

    name = f"<generated {len(linecache.cache)}>"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    namespace = {"__name__": name}
    exec(compile(source, name, "exec"), namespace)
    return namespace


def test_a_vector_condition_chooses_entry_by_entry(arch):
    @oc.kernel
    def choose(v: V3) -> V3:
        return v if v > 1.5 else -v

    @oc.kernel
    def zero_or(c: oc.types.vector(3, oc.i32), v: V3) -> V3:
        return 0 if c else v

    @oc.kernel
    def scalars(v: V3) -> V3:
        return 1.0 if v > 1.5 else 2.0

    @oc.kernel
    def lists(v: V3) -> V3:
        return (1, 2, 3) if v > 1.5 else v

    assert choose(V3(1, 2, 3)).to_list() == [-1, 2, 3]
    assert zero_or(oc.Vector([1, 0, 2]), V3(1, 2, 3)).to_list() == [0, 2, 0]
    assert scalars(V3(1, 2, 3)).to_list() == [2, 1, 1]
    assert lists(V3(1, 5, 6)).to_list() == [1, 2, 3]


def test_a_scalar_beside_a_vector_is_spread_by_a_conditional_expression(arch):
    @oc.kernel
    def k(a: oc.i32, v: V3) -> V3:
        return 0 if a else v

    assert k(1, V3(1, 2, 3)).to_list() == [0, 0, 0]
    assert k(0, V3(1, 2, 3)).to_list() == [1, 2, 3]


def test_a_conditional_expression_on_a_scalar_evaluates_one_side(arch):
    @oc.kernel
    def k(x: I32, n: oc.i32) -> oc.i32:
        return oc.atomic_add(x[0], 1) if n > 0 else oc.atomic_add(x[1], 1)

    x = np.zeros(2, dtype=np.int32)
    k(x, 1)
    k(x, 0)
    k(x, 0)
    assert x.tolist() == [1, 2]


def test_lists_and_tuples_are_assigned_like_vectors_and_matrices(arch):
    point = oc.types.struct(v=V3, m=M2)
    vectors = oc.Vector.field(3, oc.f32, 3)
    matrix = oc.Matrix.field(2, 2, oc.i32, ())

    @oc.kernel
    def local(a: oc.i32) -> M2:
        m = oc.Matrix([[0, 0], [0, 0]])
        m = [[1, 2], [3, a]]
        return m

    @oc.kernel
    def fields(a: oc.i32):
        vectors[0] = [1, 2, a]
        vectors[1] = (4, 5, 6)
        vectors[2] += (1, 2, 3)
        matrix[None] = ((1, 2), [3, a])

    @oc.kernel
    def arrays(x: oc.types.ndarray(dtype=M2, ndim=1), a: oc.i32):
        x[0] = [[1, 2], [3, a]]

    @oc.kernel
    def swizzles(a: oc.i32) -> V3:
        v = oc.Vector([0.0, 0.0, 0.0])
        v.xy = (1, 2)
        v.zx = [a, 4]
        return v

    @oc.kernel
    def members(a: oc.i32) -> point:
        s = point(v=0, m=0)
        s.v = (1, 2, a)
        s.m = [[1, 2], [3, a]]
        return s

    assert local(9).to_list() == [[1, 2], [3, 9]]
    fields(7)
    assert vectors.to_numpy().tolist() == [[1, 2, 7], [4, 5, 6], [1, 2, 3]]
    assert matrix.to_numpy().tolist() == [[1, 2], [3, 7]]
    x = oc.ndarray(M2, 1)
    arrays(x, 5)
    assert x.to_numpy().tolist() == [[[1, 2], [3, 5]]]
    assert swizzles(7).to_list() == [4, 2, 7]
    made = members(3)
    assert made.v.to_list() == [1, 2, 3]
    assert made.m.to_list() == [[1, 2], [3, 3]]


def test_lists_and_tuples_are_operands_beside_a_vector(arch):
    @oc.kernel
    def equal(a: oc.i32) -> oc.i32:
        v = oc.Vector([1, 2, a])
        return all(v == (1, 2, 3))

    @oc.kernel
    def sums(a: oc.f32, out: oc.types.ndarray(dtype=V3, ndim=1)):
        v = oc.Vector([1.0, 2.0, a])
        w = [0.5, 1.0, a]
        out[0] = v + (1, 2, 3)
        out[1] = (1, 2, 3) * v
        out[2] = v - w
        out[3] = oc.max(v, (2, 2, 2))
        out[4] = oc.select(v > 1.5, v, (9, 9, 9))
        out[5] = oc.atan2((0, 0, 0), v)

    assert (equal(3), equal(4)) == (1, 0)
    out = oc.ndarray(V3, 6)
    sums(3.0, out)
    assert out.to_numpy().tolist() == [[2, 4, 6], [1, 4, 9], [0.5, 1, 0], [2, 2, 3], [9, 2, 3], [0, 0, 0]]


@pytest.mark.parametrize("wrong", ["v = [1, 1]", "v = [[1, 2, 3]]", "w = v + (1, 2)", "m = [1, 2]", "n = [1, 2]"])
def test_a_list_of_another_shape_is_refused(wrong):
    source = f"""import octants as oc
@oc.kernel
def k() -> oc.i32:
    v = oc.Vector([1.0, 2.0, 3.0])
    m = oc.Matrix([[1, 2], [3, 4]])
    n = 1
    {wrong}
    return n
"""
    with pytest.raises(oc.OctantsTypeError):
        compiled(source)["k"]()


def test_entries_of_vectors_are_converted_with_a_warning(arch):
    @oc.kernel
    def k(a: oc.f32) -> V2:
        v = oc.Vector([1, 2], dt=int)
        v[0] = a
        return v

    @oc.kernel
    def real(a: oc.i32) -> V3:
        v = oc.Vector([a, a, a], dt=float)
        v[0] /= 2
        return v

    with pytest.warns(UserWarning, match="lose precision"):
        assert k(3.7).to_list() == [3, 2]
    assert real(3).to_list() == [1.5, 3, 3]


@pytest.mark.parametrize("operand", ["a", "oc.Vector([a, a])", "a * 2"])
def test_not_of_a_real_is_refused(operand):
    source = f"import octants as oc\n@oc.kernel\ndef k(a: oc.f32):\n    b = not {operand}\n"
    with pytest.raises(oc.OctantsTypeError, match="integral"):
        compiled(source)["k"](1.0)


def test_not_of_an_integer_and_of_a_constant(arch):
    @oc.kernel
    def k(a: oc.i32) -> oc.i32:
        return (not a) * 10 + (not 1.5)

    assert (k(3), k(0)) == (0, 10)


def test_a_name_assigned_in_and_is_visible_after_it(arch):
    @oc.kernel
    def k(a: oc.i32) -> oc.i32:
        r = -1
        if a > 0 and (d := a * 2) < 10:
            r = d
        return r * 100 + d

    assert [k(2), k(9), k(0)] == [404, -82, -100]


def test_a_name_assigned_in_or_and_in_conditional_expressions(arch):
    @oc.kernel
    def either(a: oc.i32) -> oc.i32:
        r = -1
        if a < 0 or (d := a * 2) < 10:
            r = d
        return r

    @oc.kernel
    def chosen(a: oc.i32) -> oc.i32:
        r = (d := a * 2) if a > 0 else (d := 7)
        return r * 100 + d

    @oc.kernel
    def argument(a: oc.i32) -> oc.i32:
        x = max((d := a * 2), 3) if a > 0 else 0
        return x + d

    assert [either(2), either(-1), either(9)] == [4, 0, -1]
    assert [chosen(2), chosen(-1)] == [404, 707]
    assert [argument(3), argument(-1)] == [12, 0]


def test_a_name_assigned_in_the_condition_of_a_loop_lives_on(arch):
    @oc.kernel
    def k(a: oc.i32) -> oc.i32:
        n = 0
        s = a
        while s > 0 and (d := s // 2) > 1:
            s = d
            n += d
            if n > 90:
                break
        return n * 100 + d

    def expected(a):
        n, s, d = 0, a, 0
        while s > 0 and (d := s // 2) > 1:
            s = d
            n += d
            if n > 90:
                break
        return n * 100 + d

    assert [k(100), k(1000), k(0)] == [expected(100), expected(1000), 0]


def test_a_name_assigned_in_a_comprehension_belongs_to_the_function(arch):
    @oc.kernel
    def k(a: oc.i32) -> oc.i32:
        products = [(d := a * j) for j in range(4)]
        return products[2] + d * 100

    @oc.kernel
    def known() -> oc.i32:
        items = [(d := j) for j in range(4) if (e := j) > 1]
        return items[0] + d * 10 + e * 100

    assert k(3) == 906
    assert known() == 332


def test_names_assigned_in_calls_of_funcs_and_in_comparisons(arch):
    @oc.func
    def next_of(a):
        return a + 1

    @oc.func
    def nested(a):
        r = 0
        if a > 0 and (d := next_of(a)) > 1:
            r = d
        return r

    @oc.real_func
    def separate(a: oc.i32) -> oc.i32:
        if a > 0 and (d := a * 2) > 3:
            return d
        return 0

    @oc.kernel
    def k(a: oc.i32) -> oc.i32:
        r = 0
        if a > 0 and (z := nested(a)) > 0 and next_of(y := z + 1) > 0:
            r = z * 100 + y
        return r + separate(a) * 10000

    @oc.kernel
    def chained(a: oc.i32) -> oc.i32:
        r = 0
        if 0 < (d := a * 2) < (e := a * 3) < 100:
            r = d * 100 + e
        return r

    assert [k(3), k(0)] == [60405, 0]
    assert [chained(3), chained(-1)] == [609, 0]


def test_vectors_and_tuples_get_names_inside_expressions(arch):
    @oc.kernel
    def k(a: oc.i32) -> oc.i32:
        r = 0
        if a > 0 and (v := oc.Vector([a, a * 2]))[1] > 0 and (t := (a, v))[1][0] > 0:
            r = v[0] * 100 + v[1] + t[0] * 10000
        return r

    assert [k(3), k(-1)] == [30306, 0]


def test_a_name_assigned_in_an_iteration_is_its_own(arch):
    @oc.kernel
    def k(x: I32):
        for i in range(x.shape[0]):
            if i > 2 and (d := i * 2) < 10:
                x[i] = d

    x = np.zeros(8, dtype=np.int32)
    k(x)
    assert x.tolist() == [0, 0, 0, 6, 8, 0, 0, 0]


def test_a_run_time_dict_cannot_be_named_where_it_may_not_be_made():
    @oc.kernel
    def k(a: oc.i32) -> oc.i32:
        r = 0
        if a > 0 and (d := {"x": a})["x"] > 0:
            r = d["x"]
        return r

    with pytest.raises(oc.OctantsSyntaxError, match="may not run"):
        k(1)


def test_functions_take_their_arguments_by_quadrants_names(arch):
    x = oc.field(oc.i32, 1)
    x[0] = 7

    @oc.kernel
    def go(a: oc.i32, f: oc.f32) -> tuple[oc.i32, oc.i32, oc.i32, oc.i32, oc.i32, oc.i32, oc.f32]:
        return (
            oc.pow(exponent=3, base=a),
            oc.raw_div(x2=2, x1=a),
            oc.raw_mod(x2=2, x1=a),
            oc.bit_shr(x2=1, x1=a),
            oc.select(x2=1, x1=2, cond=a < 0),
            oc.volatile_load(target=x[0]),
            oc.atan2(x2=f, x1=1.0),
        )

    assert go(-7, -1.0)[:6] == (-343, -3, -1, 0x7FFFFFFC, 2, 7)
    assert go(-7, -1.0)[6] == pytest.approx(3 * np.pi / 4)
    assert oc.raw_div(x2=2, x1=-7) == -3 and oc.select(x2=1, x1=2, cond=False) == 1
    array = oc.ndarray(oc.f32, 2)
    array.from_numpy(arr=np.ones(2))
    assert array.to_numpy().tolist() == [1, 1]
