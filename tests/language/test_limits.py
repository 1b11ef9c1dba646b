"""No small limits: many arguments, large matrices, vectors and structs, many fields."""

import dataclasses
import importlib.util

import numpy as np
import pytest

import octants as oc

pytestmark = [pytest.mark.host_access, pytest.mark.filterwarnings("ignore")]


@pytest.fixture
def load(tmp_path):
    """Makes a module of a text."""

    def load(text):
        path = tmp_path / "program.py"
        path.write_text("import dataclasses\n\nimport octants as oc\n\n\n" + text)
        spec = importlib.util.spec_from_file_location("program", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return load


def test_thousands_of_scalar_arguments(arch, load):
    n = 3000
    params = ", ".join(f"a{i}: oc.{'i64' if i % 3 else 'f32'}" for i in range(n))
    total = " + ".join(f"oc.f64(a{i})" for i in range(0, n, 7))
    k = load(f"@oc.kernel\ndef k({params}) -> oc.f64:\n    return {total}\n").k
    assert k(*range(n)) == sum(range(0, n, 7))


def test_a_real_function_with_many_parameters(arch, load):
    n = 1000
    params = ", ".join(f"a{i}: oc.i32" for i in range(n))
    total = " + ".join(f"a{i}" for i in range(0, n, 7))
    given = ", ".join(f"x + {i}" for i in range(n))
    text = f"@oc.real_func\ndef f({params}) -> oc.i32:\n    return {total}\n\n\n"
    k = load(text + f"@oc.kernel\ndef k(x: oc.i32) -> oc.i32:\n    return f({given})\n").k
    assert k(1) == sum(i + 1 for i in range(0, n, 7))


@pytest.mark.parametrize("n, m", [(24, 24), (3, 200)])
def test_large_matrices_as_arguments_and_results(arch, n, m):
    M = oc.types.matrix(n, m, oc.f32)

    @oc.kernel
    def entry(a: M, i: oc.i32, j: oc.i32) -> oc.f32:
        return a[i, j]

    @oc.kernel
    def same(a: M) -> M:
        return a

    values = np.arange(n * m, dtype=np.float32).reshape(n, m)
    matrix = M(values.tolist())
    assert entry(matrix, n - 1, m - 2) == values[n - 1, m - 2]
    np.testing.assert_array_equal(same(matrix).to_numpy(), values)


def test_large_vectors_and_structs_as_arguments_and_results(arch):
    n = 600
    V = oc.types.vector(n, oc.i32)
    S = oc.types.struct(v=V, **{f"m{i}": oc.f32 for i in range(n)})

    @oc.kernel
    def double(v: V) -> V:
        return v + v

    @oc.kernel
    def pick(s: S, i: oc.i32) -> oc.f32:
        return s.m0 + s.m599 + s.v[i]

    assert list(double(V(list(range(n))))) == [2 * i for i in range(n)]
    s = S(v=V(list(range(n))), **{f"m{i}": float(i) for i in range(n)})
    assert pick(s, 7) == 599 + 7


def test_a_dataclass_of_many_members(arch, load):
    n = 700
    members = "".join(f"    m{i}: oc.i32\n" for i in range(n))
    total = " + ".join(f"d.m{i}" for i in range(n))
    text = f"@dataclasses.dataclass\nclass D:\n{members}\n\n@oc.kernel\ndef k(d: D) -> oc.i32:\n    return {total}\n"
    program = load(text)
    assert dataclasses.is_dataclass(program.D)
    assert program.k(program.D(*range(n))) == sum(range(n))


def test_many_arrays(arch, load):
    n = 600
    params = ", ".join(f"a{i}: oc.types.ndarray(dtype=oc.i32, ndim=1)" for i in range(n))
    body = "".join(f"    a{i}[1] += {i}\n" for i in range(n))
    k = load(f"@oc.kernel\ndef k({params}):\n{body}").k
    arrays = [np.zeros(2, np.int32) for _ in range(n)]
    k(*arrays)
    assert [a[1] for a in arrays] == list(range(n))
    same = [arrays[0]] * n
    k(*same)
    assert arrays[0][1] == sum(range(n))


def test_six_hundred_fields_in_a_kernel(arch):
    fields = [oc.field(oc.i32, 2) for _ in range(600)]

    @oc.kernel
    def count():
        for i in range(2):
            for n in oc.static(range(600)):
                fields[n][i] = n + i

    count()
    assert [f[1] for f in fields] == [n + 1 for n in range(600)]
