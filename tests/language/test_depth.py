"""Programs that are long or deep: they work, or are refused with their place. None of them ends the process."""

import linecache
import threading

import pytest

import octants as oc


def kernel_of(body: str, signature: str = "k(a: oc.i32) -> oc.i32", before: str = ""):
    """A kernel with this body."""
    source = f"import octants as oc\n{before}\n@oc.kernel\ndef {signature}:\n{body}\n"
    name = f"<depth {len(linecache.cache)}>"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    namespace = {"__name__": name}
    exec(compile(source, name, "exec"), namespace)
    return namespace["k"]


def chain(count: int, clause: str, indent: str = "    ") -> str:
    """`if a == 0: …`, `elif a == 1: …`, …"""
    words = ["if"] + ["elif"] * (count - 1)
    return "".join(f"{indent}{word} {clause.format(i=i)}\n" for i, word in enumerate(words))


@pytest.mark.parametrize("count", [63, 66, 500])
def test_many_elifs_choose_one_branch(arch, count):
    body = "    r = -1\n" + chain(count, "a == {i}:\n        r = {i} * 2") + "    else:\n        r = -7\n    return r"
    k = kernel_of(body)
    assert [k(0), k(1), k(count - 1), k(count), k(-1)] == [0, 2, 2 * (count - 1), -7, -7]


def test_conditions_after_the_one_that_holds_are_not_evaluated(arch):
    before = "calls = oc.field(oc.i32, ())\n@oc.func\ndef equal(a, b):\n    calls[None] += 1\n    return a == b\n"
    body = "    r = -1\n" + chain(100, "equal(a, {i}):\n        r = {i}") + "    return r * 1000 + calls[None]"
    k = kernel_of(body, before=before)
    assert k(4) == 4005
    assert k(50) == 50056


def test_names_of_conditions_are_seen_by_later_branches(arch):
    body = (
        "    r = -1\n"
        + chain(100, "(d := a - {i}) == 0:\n        r = {i} * 10 + d")
        + "    else:\n        r = d\n    return r"
    )
    k = kernel_of(body)
    assert [k(0), k(77), k(200)] == [0, 770, 101]


def test_branches_of_many_elifs_leave_the_iteration(arch):
    def body(word):
        clauses = chain(80, "i == {i} * 3:\n            s += {i}\n            " + word, "        ")
        return f"    s = 0\n    oc.loop_config(serialize=True)\n    for i in range(a):\n{clauses}        s += 1000\n    return s"

    def expected(a, word):
        s = 0
        for i in range(a):
            if i % 3 == 0 and i < 240:
                s += i // 3
                if word == "break":
                    break
                if word == "continue":
                    continue
            s += 1000
        return s

    for word in ("continue", "break", "pass"):
        k = kernel_of(body(word))
        assert [k(n) for n in (0, 1, 10, 300)] == [expected(n, word) for n in (0, 1, 10, 300)]


def test_many_elifs_of_a_real_function_return(arch):
    before = (
        "@oc.real_func\ndef f(a: oc.i32) -> oc.i32:\n"
        + chain(90, "a == {i}:\n        return {i} * 3")
        + "    return -1\n"
    )
    k = kernel_of("    return f(a)", before=before)
    assert [k(0), k(89), k(90)] == [0, 267, -1]
    complete = before.replace("    return -1", "    else:\n        return -2")
    assert kernel_of("    return f(a)", before=complete)(90) == -2
    lacking = before.replace("    return -1\n", "")
    with pytest.raises(oc.OctantsSyntaxError, match="without returning"):
        kernel_of("    return f(a)", before=lacking)(1)


def test_static_conditions_of_many_elifs_choose_while_compiling(arch):
    invalid = "        this_name_does_not_exist()\n"
    clauses = chain(100, "oc.static(n == {i}):\n        r = {i}")
    body = "    r = -1\n" + clauses + "    else:\n        r = a"
    signature = "k(n: oc.template(), a: oc.i32) -> oc.i32"
    k = kernel_of(body + "\n    return r", signature)
    assert [k(5, 7), k(99, 7), k(100, 7)] == [5, 99, 7]
    mixed = "    r = -1\n    if a == 1000:\n        r = -2\n" + clauses.replace("    if ", "    elif ", 1)
    k = kernel_of(
        mixed + "    elif oc.static(n > 500):\n        r = 500\n    else:\n" + invalid + "    return r", signature
    )
    assert [k(5, 7), k(5, 1000), k(501, 7), k(501, 1000)] == [5, -2, 500, -2]


def test_a_static_branch_of_many_elifs_has_parallel_loops():
    before = "x = oc.field(oc.i32, 8)\n"
    clauses = chain(100, "oc.static(n == {i}):\n        for i in x:\n            x[i] = {i}")
    k = kernel_of(clauses, "k(n: oc.template())", before)
    k(42)
    assert "parallel_for" in k.dump("ir")


DEEP = {
    "negations": "    return " + "-" * 900 + "a",
    "powers": "    return " + "a ** " * 900 + "a",
    "parentheses": "    return " + "(1 + " * 190 + "a" + ")" * 190,
    "calls": "    return " + "abs(" * 190 + "a" + ")" * 190,
    "conditional expressions": "    return " + "".join(f"{i} if a == {i} else " for i in range(900)) + "-1",
    "lists": "    v = " + "[" * 190 + "a" + "]" * 190 + "\n    return a",
    "items": "    return t" + "[0]" * 900,
    "ifs that leave": "    s = 0\n    for i in range(a):\n"
    + "        if i == 3:\n            continue\n        s += 1\n" * 400
    + "    return s",
    "ifs": "    r = 0\n"
    + "".join("    " + " " * i + f"if a > {i}:\n" for i in range(95))
    + "    "
    + " " * 95
    + "r = 1\n    return r",
    "funcs": "    return " + "f(" * 190 + "a" + ")" * 190,
}
WIDE = {
    "sums": "    return " + " + ".join(["a"] * 900),
    "comparisons": "    return " + " <= ".join(["a"] * 900),
    "conjunctions": "    return " + " and ".join(["a"] * 900),
    "statements": "    r = a\n" + "    r = r * 3 + 1\n" * 1500 + "    return r",
}


def deep_kernel(name: str):
    before = "@oc.func\ndef f(a):\n    return a + 1\nt = 5\nfor _ in range(900):\n    t = [t]\n"
    return kernel_of({**DEEP, **WIDE}[name], before=before)


def ends(k) -> object:
    """What a kernel gives, or nothing if it is refused as too deep."""
    try:
        return k(1)
    except oc.OctantsCompilationError as error:
        assert "OC0521" in str(error)
        return None


@pytest.mark.parametrize("name", [*DEEP, *WIDE])
def test_deep_and_wide_programs_work_or_are_refused(name):
    ends(deep_kernel(name))


@pytest.mark.parametrize("name", WIDE)
def test_wide_programs_work(name):
    assert ends(deep_kernel(name)) is not None


@pytest.mark.parametrize("name", [*DEEP, *WIDE])
def test_deep_programs_on_a_thread_with_little_stack(name):
    # Python's own compiler wants more stack than the thread has.
    k = deep_kernel(name)
    results = []

    def run():
        try:
            results.append(ends(k))
        except BaseException as error:
            results.append(error)

    before = threading.stack_size(256 * 1024)
    try:
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)
    assert not isinstance(results[0], BaseException)
    assert results[0] is not None or name in DEEP
