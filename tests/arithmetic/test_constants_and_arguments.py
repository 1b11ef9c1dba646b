"""An operator gives the same bits whether the compiler knows its operands or a launch brings them: all operators, all scalar types, values at the edges.

Kernels are written out as text, since a constant is one only where it stands in the program. Python's own numbers are calculated with as Python does, so they
are compared where its results are those of the types.
"""

import importlib.util
import itertools
import math

import numpy as np
import pytest

import octants as oc

INTEGERS = ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")
REALS = ("f16", "f32", "f64")
KINDS = {"i": "int", "u": "uint", "f": "float"}
WORDS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}

COMPARISONS = {name: f"{{a}} {name} {{b}}" for name in ("<", "<=", ">", ">=", "==", "!=")}
OF_ALL = {
    **{name: f"{{a}} {name} {{b}}" for name in ("+", "-", "*", "/", "//", "%")},
    "min": "min({a}, {b})",
    "max": "max({a}, {b})",
    "neg": "-{a}",
    "pos": "+{a}",
    "abs": "abs({a})",
    **COMPARISONS,
}
RAW = {name: f"oc.{name}({{a}}, {{b}})" for name in ("raw_div", "raw_mod")}
OF_INTEGERS = {
    **{name: f"{{a}} {name} {{b}}" for name in ("&", "|", "^", "<<", ">>")},
    "not": "not {a}",
    "~": "~{a}",
}
COUNTS = {name: f"oc.math.{name}({{a}})" for name in ("popcnt", "clz", "ffs")}
AMOUNTS = (-1, 0, 7, 8, 9, 31, 32, 33, 64, 300)
SHIFTS = {
    f"{name} {n}": text.format(n=n)
    for n in AMOUNTS
    for name, text in (("<<", "{{a}} << {n}"), (">>", "{{a}} >> {n}"), ("bit_shr", "oc.bit_shr({{a}}, {n})"))
}
# Their errors are bounded by a table, and other devices have others.
FUNCTIONS = {
    **{name: f"oc.{name}({{a}})" for name in ("rsqrt", "exp", "log", "sin", "cos", "tan", "tanh", "asin", "acos")},
    "atan2": "oc.atan2({a}, {b})",
}
OF_REALS = {
    **{name: f"oc.{name}({{a}})" for name in ("floor", "ceil", "round", "sqrt")},
    **{name: f"oc.math.{name}({{a}})" for name in ("isnan", "isinf")},
    **FUNCTIONS,
}


def operators(ty):
    if ty in REALS:
        return {**OF_ALL, **RAW, **OF_REALS, "**": "{a} ** {b}"}
    return {**OF_ALL, **RAW, **OF_INTEGERS, **COUNTS, **SHIFTS, "**": "{a} ** {b}", "bit_shr": "oc.bit_shr({a}, {b})"}


def result_type(ty, name):
    if name in COMPARISONS or name in ("isnan", "isinf", "not"):
        return "u1"
    if name in COUNTS or (ty == "u1" and name in ("//", "%", "neg", "raw_div", "raw_mod", "**")):
        return "i32"
    is_single = name == "/" and ty not in REALS or (ty, name) == ("f16", "atan2")
    return "f32" if is_single else ty


def edges(ty):
    if ty == "u1":
        return np.array([False, True])
    if ty in REALS:
        return np.array([0.0, -0.0, 1.0, -2.5, 0.3, math.inf, -math.inf, math.nan], f"float{ty[1:]}")
    dtype = np.dtype(KINDS[ty[0]] + ty[1:])
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    return np.array(sorted({0, 1, 9, low, low + 3, -1 if low else high // 2, high}), dtype)


def spelled(ty, value):
    """A constant of a type in a program."""
    return f"oc.{ty}({value.item()!r})".replace("inf", "INF").replace("nan", "NAN")


def program(ty, known):
    """A kernel for each operator, which gives its results for all pairs."""
    values = edges(ty)
    count = len(values)
    lines = ["import octants as oc", "INF = float('inf')", "NAN = float('nan')"]
    for number, text in enumerate(operators(ty).values()):
        array = f"oc.types.ndarray(oc.{ty}, 1)"
        lines += ["@oc.kernel", f"def k{number}(a: {array}, out: oc.template()):"]
        constants = list(enumerate(spelled(ty, value) for value in values))
        # An operator of one operand has one column.
        others = constants if "{b}" in text else constants[:1]
        if known == "neither":
            lines += [
                f"    for i, j in oc.ndrange({count}, {len(others)}):",
                f"        out[i, j] = {text.format(a='a[i]', b='a[j]')}",
            ]
        elif known == "first":
            lines.append(f"    for j in range({len(others)}):")
            lines += [f"        out[{i}, j] = {text.format(a=a, b='a[j]')}" for i, a in constants]
        elif known == "second":
            lines.append(f"    for i in range({count}):")
            lines += [f"        out[i, {j}] = {text.format(a='a[i]', b=b)}" for j, b in others]
        else:
            pairs = itertools.product(constants, others)
            lines += [f"    out[{i}, {j}] = {text.format(a=a, b=b)}" for (i, a), (j, b) in pairs]
    return "\n".join([*lines, ""])


def loaded(path, text):
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def tables(ty, known, folder):
    """The results of each operator."""
    module = loaded(folder / f"{ty}_{known}_{oc.cfg.arch}.py", program(ty, known))
    values = edges(ty)
    array = oc.ndarray(getattr(oc, ty), len(values))
    array.from_numpy(values)
    found = {}
    for number, name in enumerate(operators(ty)):
        out = oc.field(getattr(oc, result_type(ty, name)), (len(values), len(values)))
        getattr(module, f"k{number}")(array, out)
        found[name] = out.to_numpy()
    return found


def differences(values, one, other):
    """The operands whose results have other bits; any NaN is like another."""
    word = WORDS[one.dtype.itemsize]
    different = one.view(word) != other.view(word)
    if one.dtype.kind == "f":
        different &= ~(np.isnan(one) & np.isnan(other))
    return [(values[i], values[j], one[i, j], other[i, j]) for i, j in np.argwhere(different)]


@pytest.mark.parametrize("ty", ["u1", *INTEGERS, *REALS])
def test_an_operator_gives_the_same_bits_of_constants_and_of_arguments(arch, ty, tmp_path):
    oc.init(arch=getattr(oc, arch), fast_math=False, log_level="error")
    told = tables(ty, "neither", tmp_path)
    compared = [(known, tables(ty, known, tmp_path)) for known in ("first", "second", "both")]
    oc.init(arch=oc.reference, fast_math=False, log_level="error")
    meant = tables(ty, "neither", tmp_path)
    exact = {
        name: table for name, table in meant.items() if name not in FUNCTIONS and (name, ty in REALS) != ("**", True)
    }
    wrong = {}
    for known, results in [*compared, ("meaning", exact)]:
        for name, result in results.items():
            # On a GPU functions are steps of the device's own, whose last bits a compiler that computes them beforehand does not know.
            if arch == "cuda" and name in FUNCTIONS:
                continue
            if pairs := differences(edges(ty), result, told[name]):
                wrong[name, known] = pairs[:4]
    assert not wrong, "\n".join(map(str, wrong.items()))


NUMBERS = (-7, -1, 0, 1, 3, 9)
PYTHON_REALS = (0.0, -0.0, 1.5, -2.5, math.inf, -math.inf, math.nan)


def has_result(name, a, b):
    """Whether Python has a result, and one that is the types': it takes the remainders of infinities for others."""
    if name in ("/", "//", "%") and (b == 0 or (name != "/" and (math.isinf(a) or math.isinf(b)))):
        return False
    return name not in ("<<", ">>") or b >= 0


@pytest.mark.parametrize("kinds", ["ints", "reals", "ints and reals", "reals and ints"])
def test_members_and_literals_give_the_bits_of_arguments(arch, kinds, tmp_path):
    oc.init(arch=getattr(oc, arch), fast_math=False, log_level="error")
    first, second = (PYTHON_REALS if word == "reals" else NUMBERS for word in (kinds.split(" and ") * 2)[:2])
    names = {**OF_ALL, **(OF_INTEGERS if kinds == "ints" else {})}
    types = ["oc.f32" if values is PYTHON_REALS else "oc.i32" for values in (first, second)]
    lines = ["import octants as oc", "inf = float('inf')", "nan = float('nan')", "@oc.data_oriented", "class Known:"]
    for number, text in enumerate(names.values()):
        lines += [
            "    @oc.kernel",
            f"    def k{number}(self, out: oc.template()):",
            f"        out[0] = {text.format(a='self.a', b='self.b')}",
        ]
    pairs = list(itertools.product(first, second))
    for number, (name, text) in enumerate(names.items()):
        lines += [
            "@oc.kernel",
            f"def told{number}(a: {types[0]}, b: {types[1]}, out: oc.template()):",
            f"    out[0] = {text.format(a='a', b='b')}",
        ]
        lines += ["@oc.kernel", f"def literal{number}(out: oc.template()):"]
        lines += [
            f"    out[{index}] = {text.format(a=repr(a), b=repr(b))}"
            for index, (a, b) in enumerate(pairs)
            if has_result(name, a, b)
        ]
    module = loaded(tmp_path / "members.py", "\n".join([*lines, ""]))
    known = module.Known()
    wrong = []
    for number, name in enumerate(names):
        ty = (
            oc.i32
            if name in COMPARISONS
            or name == "not"
            or (kinds == "ints" and name != "/")
            or (name in ("neg", "pos", "abs", "~") and first is NUMBERS)
            else oc.f32
        )
        out, literals = oc.field(ty, 1), oc.field(ty, len(pairs))
        getattr(module, f"literal{number}")(literals)
        for index, (a, b) in enumerate(pairs):
            if has_result(name, a, b):
                results = [literals.to_numpy()[index]]
                known.a, known.b = a, b
                getattr(known, f"k{number}")(out)
                results.append(out[0])
                getattr(module, f"told{number}")(a, b, out)
                results.append(out[0])
                if len({repr(float(result)) for result in results}) > 1:
                    wrong.append((name, a, b, results))
    assert not wrong, "\n".join(map(str, wrong))
