"""Loops over arrays of single bits: done for whole words at once, they do what Python does element by element."""

import importlib.util
import random

import numpy as np
import pytest

import octants as oc

pytestmark = pytest.mark.host_access

quant = oc.types.quant


class Bits:
    """A field of bits in Python."""

    def __init__(self, values):
        self.values = values

    def __getitem__(self, at):
        return int(self.values[at])

    def __setitem__(self, at, value):
        self.values[at] = int(value) & 1


def placed(shape, lanes, bits, count=1, axis=-1):
    """Fields of bits, so many of which share a word along an axis."""
    axes = (oc.i, oc.ij)[len(shape) - 1]
    words, together = list(shape), [1] * len(shape)
    words[axis] //= lanes
    together[axis] = lanes
    fields = []
    for _ in range(count):
        fields.append(oc.field(quant.int(1, signed=False)))
        oc.root.dense(axes, words).quant_array(axes, together, max_num_bits=bits).place(fields[-1])
    return fields


def filled(fields, shape, seed):
    rng = np.random.default_rng(seed)
    values = [rng.integers(0, 2, shape) for _ in fields]
    for field, value in zip(fields, values, strict=True):
        field.from_numpy(value)
    return [Bits(value.copy()) for value in values]


def is_for_words(kernel) -> bool:
    return "atomic_cas" not in kernel.dump("tasks")


class Writer:
    """Statements on ``x``, read anywhere, and ``y`` and ``z``, which are written: of the forms that words can do."""

    def __init__(self, seed: int, reach: int):
        self.random, self.reach = random.Random(seed), reach
        self.lines: list[str] = []
        self.names: list[str] = []

    def number(self, depth: int = 3) -> str:
        r = self.random
        kind = r.random() if depth else r.random() * 0.5
        if kind < 0.35:
            return f"x[i + {r.randint(-2, 2)}, j + {r.choice([-1, 0, 1, r.randint(-self.reach, self.reach)])}]"
        if kind < 0.5:
            return r.choice([*self.names, "y[i, j]", "z[i, j]", str(r.randint(0, 5)), "(1 - x[i, j + 1])"])
        if kind < 0.8:
            return f"({self.number(depth - 1)} {r.choice('+++&|^')} {self.number(depth - 1)})"
        if kind < 0.87:
            return f"{r.choice(['min', 'max'])}({self.number(depth - 1)}, {self.number(depth - 1)})"
        if kind < 0.92:
            return f"({self.number(depth - 1)} >> {r.randint(0, 2)} << {r.randint(0, 2)})"
        return f"({self.number(depth - 1)} if {self.condition(depth - 1)} else {self.number(depth - 1)})"

    def condition(self, depth: int = 2) -> str:
        r = self.random
        kind = r.random()
        if kind < 0.5 or not depth:
            return f"{self.number(depth)} {r.choice(['==', '!=', '<', '<=', '>', '>='])} {self.number(depth)}"
        if kind < 0.6:
            return (
                f"j + {r.randint(-5, 5)} {r.choice(['==', '!=', '<', '<=', '>', '>='])} {r.choice(['lo', 'hi', '40'])}"
            )
        if kind < 0.7:
            return r.choice(["i % 2 == 0", "i > 3", "a == 1"])
        if kind < 0.8:
            return f"(not ({self.condition(depth - 1)}))"
        return f"({self.condition(depth - 1)} {r.choice(['and', 'or'])} {self.condition(depth - 1)})"

    def block(self, indent: int, depth: int) -> None:
        r = self.random
        known = len(self.names)
        for _ in range(r.randint(1, 3)):
            kind = r.random()
            if kind < 0.3:
                name = f"n{len(self.lines)}"
                self.line(indent, f"{name} = {self.number()}")
                self.names.append(name)
            elif kind < 0.7 or not depth:
                self.line(indent, f"{r.choice('yz')}[i, j] = {r.choice([self.number, self.condition])()}")
            else:
                self.line(indent, f"if {self.condition()}:")
                self.block(indent + 1, depth - 1)
                if r.random() < 0.5:
                    self.line(indent, "else:")
                    self.block(indent + 1, depth - 1)
        del self.names[known:]

    def line(self, indent: int, text: str) -> None:
        self.lines.append("    " * indent + text)


@pytest.mark.parametrize("seed", range(30))
def test_random_bodies_do_what_python_does(arch, seed, tmp_path):
    lanes, bits = random.Random(seed).choice([(8, 8), (16, 16), (32, 32), (64, 64), (16, 32), (8, 64), (2, 8)])
    shape = (9, 8 * max(lanes, 8))
    writer = Writer(seed, lanes + 3)
    writer.block(2, 2)
    writer.line(2, f"y[i, j] = {writer.number()}")
    body = "\n".join(writer.lines)
    text = f"""
import octants as oc

@oc.kernel
def run(top: oc.i32, bottom: oc.i32, lo: oc.i32, hi: oc.i32, a: oc.i32):
    for i, j in oc.ndrange((top, bottom), (lo, hi)):
{body}
"""
    (tmp_path / f"bits_{seed}.py").write_text(text)
    spec = importlib.util.spec_from_file_location(f"bits_{seed}", tmp_path / f"bits_{seed}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    fields = placed(shape, lanes, bits, 3)
    module.x, module.y, module.z = fields
    model = filled(fields, shape, seed)
    rows = "def run(top, bottom, lo, hi, a):\n  for i in range(top, bottom):\n    for j in range(lo, hi):\n" + body
    scope = dict(zip("xyz", model, strict=True))
    exec(rows, scope)  # noqa: S102
    edge, r = lanes + 3, random.Random(seed + 1000)
    for _ in range(4):
        lo, hi = (r.randint(edge, shape[1] - edge) for _ in range(2))
        module.run(2, 7, lo, hi, 1)
        scope["run"](2, 7, lo, hi, 1)
        for field, expected in zip(fields, model, strict=True):
            np.testing.assert_array_equal(field.to_numpy(), expected.values, err_msg=text)
    if arch == "cpu":
        assert is_for_words(module.run), text


@pytest.mark.parametrize("threads", [1, 4])
def test_life_in_bits_is_life_in_numbers(arch, threads):
    oc.init(arch=getattr(oc, arch), cpu_max_num_threads=threads, log_level="error")
    shape = (200, 320) if arch in ("cpu", "cuda") else (20, 64)
    x, y = placed(shape, 32, 32, 2)
    u, v = (oc.field(oc.i32, shape=shape) for _ in range(2))
    n, m = shape

    @oc.func
    def rule(a: oc.template(), b: oc.template(), i, j):
        count = a[i - 1, j - 1] + a[i - 1, j] + a[i - 1, j + 1] + a[i, j - 1]
        count += a[i, j + 1] + a[i + 1, j - 1] + a[i + 1, j] + a[i + 1, j + 1]
        b[i, j] = count == 3 or (count == 2 and a[i, j] == 1)

    @oc.kernel
    def packed():
        oc.loop_config(bit_vectorize=True)
        for i, j in x:
            if 0 < i < n - 1 and 0 < j < m - 1:
                rule(x, y, i, j)
        for i, j in oc.ndrange((1, n - 1), (1, m - 1)):
            rule(y, x, i, j)

    @oc.kernel
    def plain():
        for i, j in oc.ndrange((1, n - 1), (1, m - 1)):
            rule(u, v, i, j)
        for i, j in oc.ndrange((1, n - 1), (1, m - 1)):
            rule(v, u, i, j)

    start = np.random.default_rng(7).integers(0, 2, shape)
    x.from_numpy(start)
    u.from_numpy(start.astype(np.int32))
    for _ in range(5):
        packed()
        plain()
    np.testing.assert_array_equal(x.to_numpy(), u.to_numpy())
    if arch == "cpu":
        assert is_for_words(packed)


def test_words_along_the_first_axis_and_in_nested_nodes(arch):
    shape = (64, 12)
    tall, copy = placed(shape, 16, 16, 2, axis=0)
    deep, inverse = (oc.field(quant.int(1, signed=False)) for _ in range(2))
    for field in (deep, inverse):
        oc.root.dense(oc.ij, (2, 3)).dense(oc.ij, (4, 2)).quant_array(oc.j, 8, max_num_bits=8).place(field)
    assert deep.shape == (8, 48)

    @oc.kernel
    def run():
        for i, j in oc.ndrange((1, 63), 12):
            copy[i, j] = tall[i - 1, j] ^ tall[i + 1, j]
        for i, j in deep:
            if 0 < j:
                inverse[i, j] = 1 - deep[i, j - 1]

    first = filled([tall, copy], shape, 3)
    second = filled([deep, inverse], deep.shape, 4)
    run()
    expected = first[1].values
    expected[1:63] = first[0].values[:62] ^ first[0].values[2:]
    np.testing.assert_array_equal(copy.to_numpy(), expected)
    expected = second[1].values
    expected[:, 1:] = 1 - second[0].values[:, :-1]
    np.testing.assert_array_equal(inverse.to_numpy(), expected)


def test_an_index_that_wraps_around(arch):
    x, y = placed((256,), 32, 32, 2)

    @oc.kernel
    def turn():
        for i in x:
            y[i] = x[(i + 255) % 256] & x[(i + 1) % 256]

    values = filled([x, y], (256,), 5)[0].values
    turn()
    np.testing.assert_array_equal(y.to_numpy(), np.roll(values, 1) & np.roll(values, -1))
    if arch == "cpu":
        assert is_for_words(turn)


def test_what_words_cannot_do_is_done_element_by_element(arch):
    """Reads of what the loop writes, several iterations for one element, numbers of other kinds: the loop is as it was written."""
    x, y = placed((4, 64), 32, 32, 2)
    plain = oc.field(oc.i32, shape=(4, 64))
    total = oc.field(oc.i32, shape=())

    @oc.kernel
    def in_order():
        oc.loop_config(serialize=True)
        for i, j in oc.ndrange(4, (1, 64)):
            x[i, j] = x[i, j - 1]

    @oc.kernel
    def from_numbers():
        for i, j in x:
            x[i, j] = plain[i, j] > 5

    @oc.kernel
    def of_the_index():
        for i, j in x:
            x[i, j] = (i + j) % 3 == 0

    @oc.kernel
    def periodic():
        for i, j in oc.ndrange(4, 256):
            y[i, j & 63] = x[i, j & 63]

    @oc.kernel
    def moved():
        for i, j in oc.ndrange(4, 63):
            y[i, j + 1] = x[i, j]

    @oc.kernel
    def counted():
        for i, j in x:
            if x[i, j] == 1:
                total[None] += 1

    @oc.kernel
    def real():
        for i, j in x:
            y[i, j] = oc.cast(oc.sqrt(oc.cast(x[i, j], oc.f32)), oc.i32)

    at = np.add.outer(np.arange(4), np.arange(64))
    numbers = np.random.default_rng(2).integers(0, 10, (4, 64)).astype(np.int32)
    plain.from_numpy(numbers)
    from_numbers()
    np.testing.assert_array_equal(x.to_numpy(), numbers > 5)
    counted()
    assert total[None] == (numbers > 5).sum()
    of_the_index()
    np.testing.assert_array_equal(x.to_numpy(), at % 3 == 0)
    periodic()
    np.testing.assert_array_equal(y.to_numpy(), at % 3 == 0)
    moved()
    np.testing.assert_array_equal(y.to_numpy()[:, 1:], (at % 3 == 0)[:, :-1])
    real()
    np.testing.assert_array_equal(y.to_numpy(), at % 3 == 0)
    in_order()
    np.testing.assert_array_equal(x.to_numpy(), np.repeat(at[:, :1] % 3 == 0, 64, axis=1))


@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize(
    "type_, together, bits",
    [
        (quant.int(1), 32, 32),
        (quant.int(2, signed=False), 4, 8),
        (quant.int(3), 10, 32),
        (quant.int(4, signed=False), 16, 64),
        (quant.int(7), 4, 32),
        (quant.int(16), 4, 64),
        (quant.fixed(5, max_value=8.0), 6, 32),
        (quant.float(4, 4), 2, 16),
    ],
    ids=str,
)
def test_elements_of_one_word_are_written_by_one_thread(arch, type_, together, bits, threads):
    """Every element of a loop that begins and ends inside of words, and none beside them, is as it would be in a field of its own."""
    oc.init(arch=getattr(oc, arch), cpu_max_num_threads=threads, log_level="error")
    n = together * (5000 if arch == "cpu" else 6)
    fields = [oc.field(type_) for _ in range(2)]
    for field in fields:
        oc.root.dense(oc.i, n // together).quant_array(oc.i, together, max_num_bits=bits).place(field)
    x, y = fields
    source = oc.field(type_.compute, shape=n)

    @oc.kernel
    def begin():
        for i in x:
            x[i] = source[i]

    @oc.kernel
    def mix(lo: oc.i32, hi: oc.i32):
        for i in range(lo, hi):
            if x[i] != x[i + 1]:
                y[i] = x[i - 1] + x[i]
            else:
                y[i] = source[i]

    rng = np.random.default_rng(together)
    values = rng.integers(-20, 20, n).astype(source.to_numpy().dtype)
    source.from_numpy(values)
    begin()
    stored = x.to_numpy()
    for lo, hi in (
        (1, n - 1),
        (together + 1, n - together - 1),
        (together * 2, together * 2),
        (together + 1, together + 2),
    ):
        y.fill(0)
        mix(lo, hi)
        found = y.to_numpy()
        begin_, end = stored[lo - 1 : hi - 1], stored[lo:hi]
        wanted = np.where(end != stored[lo + 1 : hi + 1], begin_ + end, values[lo:hi])
        y.fill(0)
        y.from_numpy(np.concatenate([np.zeros(lo), wanted, np.zeros(n - hi)]).astype(values.dtype))
        np.testing.assert_array_equal(found, y.to_numpy())
    if arch == "cpu":
        assert is_for_words(begin) and is_for_words(mix)


def test_debug_mode_still_checks_indices(arch):
    oc.init(arch=getattr(oc, arch), debug=True, log_level="error")
    x, y = placed((64,), 32, 32, 2)

    @oc.kernel
    def shift():
        for i in x:
            y[i] = x[i + 1]

    with pytest.raises(oc.OctantsAssertionError, match=r"index \(64,\) with shape \(64,\)"):
        shift()
