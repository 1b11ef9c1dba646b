"""A number behind an object gives the same bits whether it is part of the code or an argument of it."""

import importlib.util
import random

import numpy as np
import pytest

import octants as oc

pytestmark = [pytest.mark.no_device, pytest.mark.filterwarnings("ignore")]

EXPRESSIONS = 160
INTEGERS = [0, 1, -1, 2, 3, 7, -5, 46341, 65536, 100000, -100000, 2**31 - 1, -(2**31), 2**31 - 2, 2**24 + 1]
REALS = [0.0, 0.5, 1.0, -1.5, 2.75, 1e-30, 1e20, -3e9, 16777217.0, 0.1, 1.0 / 3]
MEMBERS = {"a": INTEGERS, "b": INTEGERS, "c": REALS, "d": REALS}

HEAD = """
import octants as oc


class Numbers:
    pass

"""


def expression(draw: random.Random, depth: int) -> str:
    if depth == 0 or draw.random() < 0.15:
        return draw.choice(
            ["self.a", "self.b", "self.c", "self.d", "self.a", "self.c", "2", "3", "100000", "0.5", "-1"]
        )
    inner = lambda: expression(draw, depth - 1)  # noqa: E731
    form = draw.randrange(17)
    if form < 4:
        return f"({inner()} {draw.choice('+-*')} {inner()})"
    if form == 4:
        return f"abs({inner()})"
    if form in (5, 6):
        return f"{draw.choice(['min', 'max'])}({inner()}, {inner()})"
    if form == 7:
        return f"{draw.choice(['min', 'max'])}({inner()}, {inner()}, {inner()})"
    if form == 8:
        return f"({inner()} < {inner()} <= {inner()})"
    if form == 9:
        return f"({inner()} {draw.choice(['<', '<=', '==', '!=', '>='])} {inner()})"
    if form == 10:
        return f"{draw.choice(['int', 'float', 'bool'])}({inner()})"
    if form == 11:
        return f"(-{inner()})"
    if form == 12:
        return f"({inner()} {draw.choice(['and', 'or'])} {inner()})"
    if form == 13:
        return f"(not {inner()})"
    if form == 14:
        return f"({inner()} if {inner()} else {inner()})"
    if form == 15:
        return f"({inner()} / 3)"
    return f"({inner()} // 7)"


def result(run):
    """The bits, or the class of what is raised."""
    try:
        return np.float64(run()).tobytes()
    except oc.OctantsCompilationError as error:
        return error.code
    except Exception as error:
        return type(error).__name__


@pytest.mark.parametrize(("default_fp", "seed"), [("f64", 7), ("f32", 8)])
def test_random_expressions(tmp_path, default_fp, seed):
    oc.init(arch=oc.cpu, log_level="error", fast_math=False, default_fp=getattr(oc, default_fp))
    draw = random.Random(seed)
    texts = [expression(draw, 3) for _ in range(EXPRESSIONS)]
    text = HEAD + "@oc.data_oriented\nclass Told(Numbers):\n    pass\n\n\n"
    kernels = []
    for number, one in enumerate(texts):
        for name in ("told", "baked"):
            text += f"@oc.kernel\ndef {name}{number}(self: oc.template()) -> oc.f64:\n    return {one}\n\n\n"
        kernels.append(number)
    path = tmp_path / "numbers.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location("numbers_of_test", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    wrong = []
    told_by_arguments = 0
    for number in kernels:
        lasting = module.Told()
        told = getattr(module, f"told{number}")
        baked = getattr(module, f"baked{number}")
        for round_ in range(5):
            values = {name: draw.choice(some) for name, some in MEMBERS.items()}
            vars(lasting).update(values)
            found = result(lambda: told(lasting))  # noqa: B023
            # A kernel whose session is new has seen no number change.
            fresh = oc.kernel(baked.__wrapped__)
            other = module.Told()
            vars(other).update(values)
            expected = result(lambda: fresh(other))  # noqa: B023
            if found != expected:
                wrong.append((texts[number], values, round_, found, expected))
        told_by_arguments += len(told.compile_statistics()) < 5
    assert not wrong, f"{len(wrong)} differ: {wrong[:5]}"
    # Most of them are told, else nothing was tested.
    assert told_by_arguments > EXPRESSIONS // 4


def test_a_product_of_an_absolute_value_is_as_wide_as_a_constant():
    oc.init(arch=oc.cpu, log_level="error")

    @oc.data_oriented
    class Numbers:
        m = 3

        @oc.kernel
        def scaled(self) -> oc.f64:
            return oc.cast(abs(self.m) * 100000.0 + max(self.m, 2) * 3 - min(self.m, 1), oc.f64)

    numbers = Numbers()
    for m in (3, 4, 50000, -50000, 5):
        numbers.m = m
        assert numbers.scaled() == np.float32(abs(m) * 100000.0 + max(m, 2) * 3 - min(m, 1))
