"""Every operator on every pair of scalar types, on random and extreme values, against numpy on operands of the promoted type."""

import generator
import numpy as np
import pytest
from generator_types import INTEGERS, SCALARS, promoted

import octants as oc

COUNT = 64
BOTH = ["{a} + {b}", "{a} - {b}", "{a} * {b}", "oc.min({a}, {b})", "oc.max({a}, {b})", "oc.select({a} > {b}, {a}, {b})"]
BOTH += [f"oc.cast({{a}} {op} {{b}}, oc.{{t}})" for op in ("<", "<=", "==", "!=")]
OF_INTEGERS = ["{a} // {b}", "{a} % {b}", "{a} & {b}", "{a} | {b}", "{a} ^ {b}"]
OF_ONE_TYPE = ["-{a}", "oc.abs({a})"]
OF_ONE_INTEGER = ["~{a}", "{a} ** 3", "{a} << ({b} & {w})", "{a} >> ({b} & {w})", "oc.bit_shr({a}, {b} & {w})"]
OF_ONE_REAL = ["{a} / {b}", "oc.floor({a})", "oc.ceil({a})", "oc.sqrt(abs({a}))"]


def values(scalar: str, seed: int, narrow: bool) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if scalar not in INTEGERS:
        result = np.round(rng.normal(0, 10, COUNT), 3).astype(SCALARS[scalar])
        return np.where(result == 0, SCALARS[scalar](1), result)
    info = np.iinfo(SCALARS[scalar])
    result = rng.integers(info.min, info.max, COUNT, dtype=info.dtype, endpoint=True)
    result >>= rng.integers(0, info.bits - 1, COUNT).astype(info.dtype)
    result[:5] = [info.min, info.max, 0, 1, info.max // 2]
    rng.shuffle(result)
    return result & info.dtype.type(63) if narrow else result


def operations(first: str, second: str, result: str) -> list[str]:
    found = BOTH + (OF_INTEGERS if result in INTEGERS else [])
    if first == second:
        found = found + OF_ONE_TYPE + (OF_ONE_INTEGER if result in INTEGERS else OF_ONE_REAL)
    return found


def wanted(operation: str, result: str, a: np.ndarray, b: np.ndarray) -> list:
    code = compile(operation.format(a="a", b="b", t=result, w=int(result[1:]) - 1), operation, "eval")
    with np.errstate(all="ignore"):
        return [eval(code, {"oc": oc, "a": x, "b": y}) for x, y in zip(a, b, strict=True)]


@pytest.mark.parametrize("first", SCALARS)
def test_operators(first, tmp_path):
    for second in SCALARS:
        result = promoted(first, second)
        # Large integers are no numbers of the type f16.
        a, b = values(first, 1, result == "f16"), values(second, 2, result == "f16")
        listed = operations(first, second, result)
        lines = ["import octants as oc", "", "", "@oc.kernel"]
        types = [f"oc.types.ndarray(dtype=oc.{t}, ndim={n})" for t, n in ((first, 1), (second, 1), (result, 2))]
        lines += [f"def kernel(a: {types[0]}, b: {types[1]}, o: {types[2]}):", "    for i in a:"]
        texts = [op.format(a="a[i]", b="b[i]", t=result, w=int(result[1:]) - 1) for op in listed]
        lines += [f"        o[i, {j}] = {text}" for j, text in enumerate(texts)]
        kernel = generator.load("\n".join(lines) + "\n", tmp_path, f"table_{first}_{second}").kernel
        common = SCALARS[result]
        for arch, level in ((oc.reference, 1), (oc.cpu, 0), (oc.cpu, 1)):
            oc.init(arch=arch, opt_level=level, default_fp=oc.f64, fast_math=False, log_level="error")
            out = np.zeros((COUNT, len(listed)), common)
            kernel(a, b, out)
            for j, operation in enumerate(listed):
                expected = np.array(wanted(operation, result, a.astype(common), b.astype(common)), common)
                where = f"{operation} of {first} and {second} on {arch.name} at level {level}"
                np.testing.assert_array_equal(out[:, j], expected, err_msg=where)
