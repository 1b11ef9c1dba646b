"""What Python evaluates for a kernel: methods of built-in values, plain functions and when they run again, clocks."""

import datetime
import enum
import random
import time
import warnings

import numpy as np
import pytest

import octants as oc

pytestmark = pytest.mark.no_device


@pytest.fixture(autouse=True)
def session():
    oc.init(arch=oc.cpu, log_level="error")


@oc.data_oriented
class Settings:
    def __init__(self):
        self.mode, self.d, self.l = "abc", {"a": 1, "b": 2}, [3, 1, 2]
        self.t, self.n, self.x, self.raw = (1, 2, 2), 6, 2.5, b"ab"

    @oc.kernel
    def text(self) -> oc.i32:
        result = 0
        if self.mode.startswith("a"):
            result += 1
        if oc.static(self.mode.upper() == "ABC"):
            result += 10
        if self.mode[0] == "a" and self.mode[-1] == "c":
            result += 100
        return result + 1000 * self.mode.count("b")

    @oc.kernel
    def containers(self) -> oc.i32:
        result = self.d.get("a", 5) + self.d.get("z", 50)
        for name, value in oc.static(self.d.items()):
            result += value * oc.static(len(name)) * 100
        return result + 1000 * self.l.index(1) + 10000 * self.t.count(2)

    @oc.kernel
    def numbers(self) -> oc.i32:
        return self.n.bit_length() + 10 * oc.static(self.x.is_integer()) + 100 * self.raw.find(98)


def test_methods_of_built_in_values_of_members():
    settings = Settings()
    for _ in range(4):
        assert (settings.text(), settings.containers(), settings.numbers()) == (1111, 21351, 103)
    settings.mode, settings.d, settings.n, settings.x = "xbb", {"b": 1, "a": 4, "z": 0}, 100, 2.0
    settings.l.reverse()
    for _ in range(4):
        assert (settings.text(), settings.containers(), settings.numbers()) == (2000, 21504, 117)


def test_methods_of_built_in_values_of_template_arguments():
    @oc.kernel
    def read(mode: oc.template(), options: oc.template(), n: oc.template()) -> oc.i32:
        result = 0
        if mode.endswith("c"):
            result = 1
        for value in oc.static(options.values()):
            result = result * 10 + value
        return result * 10 + n.bit_length() + options.get("z", 0)

    assert read("abc", {"a": 1, "b": 2}, 5) == 1123
    assert read("abd", {"b": 2, "a": 1}, 5) == 213
    assert read("abd", {"b": 2, "z": 1}, 5) == 214


def test_a_member_is_not_changed_by_its_kernels():
    @oc.data_oriented
    class Lists:
        def __init__(self):
            self.l = [1]

        @oc.kernel
        def append(self) -> oc.i32:
            self.l.append(2)
            return 1

    lists = Lists()
    with pytest.raises(oc.OctantsCompilationError, match="append"):
        lists.append()
    assert lists.l == [1]


class Mode(enum.IntEnum):
    A = 1
    B = 2


class Length(float):
    unit = 7


class Name(str):
    size = 3


def test_members_of_enums_and_of_numbers_of_classes():
    @oc.data_oriented
    class Holder:
        def __init__(self):
            self.mode, self.length, self.name = Mode.A, Length(2.0), Name("ab")

        @oc.kernel
        def read(self) -> oc.i32:
            return self.mode.value + 10 * self.length.unit + 100 * self.name.size + 1000 * self.mode

    holder = Holder()
    for _ in range(5):
        assert holder.read() == 1371
    holder.mode = Mode.B
    for _ in range(5):
        assert holder.read() == 2372
    holder.length = Length(3.0)
    holder.length.unit = 8
    for _ in range(5):
        assert holder.read() == 2382
    Name.size = 4
    for _ in range(5):
        assert holder.read() == 2482
    Name.size = 3


calls = []


def noted(n):
    calls.append(n)
    return n * 2


def squared(k):
    return k * k


def only_of_arguments(n):
    return [squared(k) for k in range(n)]


SCALE = 3


def of_a_global(n):
    return n * SCALE


def test_plain_functions_run_again_where_it_matters(monkeypatch):
    @oc.kernel
    def effects() -> oc.i32:
        return oc.static(noted(4))

    @oc.kernel
    def pure() -> oc.i32:
        return oc.static(sum(only_of_arguments(5)) + of_a_global(2))

    calls.clear()
    for _ in range(4):
        assert effects() == 8
    assert set(calls) == {4} and len(calls) >= 4
    assert pure() == 36
    monkeypatch.setitem(globals(), "SCALE", 5)
    assert pure() == 40
    monkeypatch.setitem(globals(), "squared", lambda k: 1)
    assert pure() == 15


def test_what_a_function_asks_of_values_of_the_kernel_is_compared():
    table = {"steps": 2, "by": 3}

    def repeated(v):
        for _ in range(table["steps"]):
            v = v * table["by"] + oc.max(v, 1)
        return v

    @oc.kernel
    def run(v: oc.i32) -> oc.i32:
        return oc.static(repeated)(v)

    def expected(v):
        for _ in range(table["steps"]):
            v = v * table["by"] + max(v, 1)
        return v

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for changed in ({}, {"steps": 3}, {"by": 2}, {"steps": 0}, {"steps": 2, "by": 3}):
            table.update(changed)
            for v in (2, 5):
                assert run(v) == expected(v)
    assert len(run.compile_statistics()) <= 5


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("time.time()", time.time),
        ("time.perf_counter()", time.perf_counter),
        ("random.random()", random.random),
        ("random.randint(1, 9)", random.randint),
        ("np.random.rand()", np.random.rand),
        ("np.random.default_rng().random()", np.random.default_rng),
        ("datetime.datetime.now().second", datetime.datetime.now),
    ],
)
def test_clocks_and_random_numbers_warn_with_their_line(tmp_path, text, read):
    path = tmp_path / "clocks.py"
    path.write_text(
        "import datetime, random, time\nimport numpy as np\nimport octants as oc\n\n\n"
        f"@oc.kernel\ndef read() -> oc.f64:\n    return {text}\n"
    )
    names = {}
    exec(compile(path.read_text(), str(path), "exec"), names)
    with pytest.warns(UserWarning, match="OC1011") as caught:
        first = names["read"]()
    assert any("clocks.py:8" in str(one.message) for one in caught)
    assert names["read"]() == first


def test_a_warning_names_only_what_is_frozen():
    @oc.kernel
    def fine() -> oc.f32:
        return oc.random(oc.f32) + oc.static(np.sqrt(2.0)) + oc.static(time.strftime("%Y") > "2000")

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fine()
