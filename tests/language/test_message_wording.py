"""Messages that name what is wrong in the program's own terms."""

import pytest

import octants as oc

One = oc.types.struct(a=oc.i32)
LIST, DICT = [1], {"a": 1}


@oc.kernel
def too_many_members():
    s = One(1, 2)


@oc.kernel
def starred_target():
    for a, *b in oc.static([(1, 2, 3)]):
        pass


@oc.kernel
def starred_in_comprehension() -> oc.i32:
    x = [a for a, *b in oc.static([(1, 2)])]
    return x[0]


@oc.kernel
def empty_vector():
    v = oc.Vector([])


@oc.kernel
def huge():
    x = 10**30


@oc.kernel
def beyond_i64():
    x = 2**63


@oc.kernel
def returns_none() -> oc.i32:
    return None


@oc.kernel
def returns_nothing() -> oc.i32:
    return


@oc.kernel
def assigns_item():
    LIST[0] = 2


@oc.kernel
def assigns_key():
    DICT["a"] = 2


CASES = [
    (too_many_members, "the struct has 1 member, got 2", "it has the member `a`"),
    (starred_target, "a starred name", "*b"),
    (starred_in_comprehension, "a starred name", "*b"),
    (empty_vector, "a vector has an entry at least, and this one has none", ""),
    (huge, "exceeded the range", "no integer type has more than 64 bits"),
    (beyond_i64, "exceeded the range", "write `oc.u64(...)` around it"),
    (returns_none, "has a return type, but this returns no value", "annotated here"),
    (returns_nothing, "has a return type, but this returns no value", "annotated here"),
    (assigns_item, "an item of a list of the host cannot be assigned in a kernel", "are constants of a kernel"),
    (assigns_key, "an item of a dict of the host cannot be assigned in a kernel", "are constants of a kernel"),
]


@pytest.mark.parametrize("kernel, message, more", CASES, ids=[case[0].__name__ for case in CASES])
def test_what_is_said(kernel, message, more):
    oc.init(arch=oc.cpu, log_level="error")
    with pytest.raises(oc.OctantsCompilationError) as caught:
        kernel()
    assert message in str(caught.value) and more in str(caught.value), str(caught.value)


@pytest.mark.parametrize("backend", [oc.Backend.NDARRAY, oc.Backend.FIELD])
def test_a_tensor_of_one_number_is_a_number(arch, backend):
    x = oc.tensor(oc.f32, (), backend=backend)
    x[None] = 2.5
    assert float(x) == 2.5 and int(x) == 2
