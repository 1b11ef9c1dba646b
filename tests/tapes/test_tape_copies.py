"""Copies carry derivatives; what the host computes of values of a tape is refused."""

import copy

import numpy as np
import pytest

import octants as oc

N = 3
X = np.array([0.5, -1.0, 2.0])


def array(**kwargs):
    return oc.ndarray(oc.f64, N, **kwargs)


def field(**kwargs):
    return oc.field(oc.f64, N, **kwargs)


def vectors(**kwargs):
    return oc.Vector.ndarray(2, oc.f64, N, **kwargs)


def vector_field(**kwargs):
    return oc.Vector.field(2, oc.f64, N, **kwargs)


def shifted_field(**kwargs):
    return oc.field(oc.f64, N, offset=5, **kwargs)


def single(**kwargs):
    return oc.field(oc.f64, (), **kwargs)


KINDS = [array, field, vectors, vector_field, shifted_field, single]


@oc.kernel
def norm_of_array(x: oc.types.ndarray(), loss: oc.template(), weight: oc.f64):
    for i in oc.grouped(x):
        loss[None] += weight * x[i] * x[i]


@oc.kernel
def norm_of_vectors(x: oc.types.ndarray(), loss: oc.template(), weight: oc.f64):
    for i in oc.grouped(x):
        loss[None] += weight * (x[i][0] * x[i][0] + x[i][1] * x[i][1])


@oc.kernel
def norm_of_vector_field(x: oc.template(), loss: oc.template(), weight: oc.f64):
    for i in oc.grouped(x):
        loss[None] += weight * (x[i][0] * x[i][0] + x[i][1] * x[i][1])


@oc.kernel
def norm_of_field(x: oc.template(), loss: oc.template(), weight: oc.f64):
    for i in oc.grouped(x):
        loss[None] += weight * x[i] * x[i]


@oc.kernel
def norm_of_single(x: oc.template(), loss: oc.template(), weight: oc.f64):
    loss[None] += weight * x[None] * x[None]


NORMS = {
    array: norm_of_array,
    field: norm_of_field,
    vectors: norm_of_vectors,
    vector_field: norm_of_vector_field,
    shifted_field: norm_of_field,
    single: norm_of_single,
}


def numbers(made):
    """Some numbers for an array or field."""
    shape = made.to_numpy().shape
    return np.array(0.5 + np.arange(int(np.prod(shape, dtype=int)), dtype=np.float64).reshape(shape))


@pytest.mark.parametrize("kind", KINDS)
def test_a_copy_has_the_gradients_of_its_source(arch, kind):
    x, y, loss = kind(needs_grad=True), kind(needs_grad=True), oc.field(oc.f64, (), needs_grad=True)
    x.from_numpy(numbers(x))
    for _ in range(2):
        with oc.ad.Tape(loss):
            y.copy_from(x)
            NORMS[kind](y, loss, 1.0)
            # What was copied before stays what it was.
            NORMS[kind](x, loss, 10.0)
        np.testing.assert_allclose(x.grad.to_numpy(), 22 * x.to_numpy())


@pytest.mark.parametrize("kind", KINDS)
def test_a_copy_over_what_has_gradients_keeps_both_apart(arch, kind):
    x, z, y = (kind(needs_grad=True) for _ in range(3))
    loss = oc.field(oc.f64, (), needs_grad=True)
    x.from_numpy(numbers(x))
    z.from_numpy(np.array(numbers(z) + 1))

    # Two copies to one place: a way back that needs the first one's values is refused, one that does not is right.
    with pytest.raises(oc.OctantsRuntimeError, match="OC1105"), oc.ad.Tape(loss):
        y.copy_from(x)
        NORMS[kind](y, loss, 1.0)
        y.copy_from(z)
        NORMS[kind](y, loss, 2.0)
    with oc.ad.Tape(loss):
        y.copy_from(x)
        y.copy_from(z)
        NORMS[kind](y, loss, 2.0)
    np.testing.assert_allclose(x.grad.to_numpy(), 0)
    np.testing.assert_allclose(z.grad.to_numpy(), 4 * z.to_numpy())


@pytest.mark.parametrize("kind", [array, field, shifted_field, single])
def test_a_copy_has_the_tangents_of_its_source(arch, kind):
    x, y, loss = kind(needs_dual=True), kind(needs_dual=True), oc.field(oc.f64, (), needs_dual=True)
    x.from_numpy(numbers(x))
    seed = [1.0] * int(np.prod(x.shape, dtype=int))
    with oc.ad.FwdMode(loss=loss, param=x, seed=seed):
        y.copy_from(x)
        NORMS[kind](y, loss, 1.0)
    np.testing.assert_allclose(loss.dual[None], 2 * x.to_numpy().sum())


WRITES = {
    "fill": lambda y: y.fill(2.0),
    "from_numpy": lambda y: y.from_numpy(np.full(N, 2.0)),
    "__setitem__": lambda y: [y.__setitem__(i, 2.0) for i in range(N)],
}


@pytest.mark.parametrize("kind", [array, field])
@pytest.mark.parametrize("write", WRITES)
def test_what_the_host_writes_in_forward_mode_has_no_tangent(arch, kind, write):
    x, y, loss = kind(needs_dual=True), kind(needs_dual=True), oc.field(oc.f64, (), needs_dual=True)
    x.from_numpy(X)
    with oc.ad.FwdMode(loss=loss, param=x, seed=[1.0] * N):
        y.copy_from(x)
        WRITES[write](y)
        NORMS[kind](y, loss, 1.0)
        NORMS[kind](x, loss, 1.0)
    np.testing.assert_allclose(loss.dual[None], 2 * X.sum())


def test_an_element_that_the_host_writes_in_forward_mode_has_no_tangent(arch):
    for kind, norm_of in ((array, norm_of_array), (field, norm_of_field)):
        x, y, loss = kind(needs_dual=True), kind(needs_dual=True), oc.field(oc.f64, (), needs_dual=True)
        x.from_numpy(X)
        with oc.ad.FwdMode(loss=loss, param=x, seed=[1.0] * N):
            y.copy_from(x)
            y[1] = 100.0
            norm_of(y, loss, 1.0)
        np.testing.assert_allclose(loss.dual[None], 2 * (X[0] + X[2]))


@oc.kernel
def double(x: oc.types.ndarray(), y: oc.types.ndarray()):
    for i in x:
        y[i] = 2.0 * x[i]


def test_a_round_trip_over_numpy_is_refused_with_both_lines(arch):
    x, y, z, loss = array(needs_grad=True), array(needs_grad=True), array(needs_grad=True), single(needs_grad=True)
    x.from_numpy(X)
    with pytest.raises(oc.OctantsRuntimeError, match=r"`from_numpy`.*test_tape_copies.py:\d+") as caught:
        with oc.ad.Tape(loss):
            double(x, y)
            z.from_numpy(3 * y.to_numpy())
            norm_of_array(z, loss, 1.0)
    assert caught.value.code == "OC1105"
    # As constants, if the program says so; and what no kernel has written is no result of the tape.
    detached = oc.ad.no_grad(lambda: z.from_numpy(3 * y.to_numpy()))
    with oc.ad.Tape(loss):
        double(x, y)
        detached()
        norm_of_array(z, loss, 1.0)
    np.testing.assert_allclose(z.grad.to_numpy(), 2 * z.to_numpy())
    with oc.ad.Tape(loss):
        z.from_numpy(x.to_numpy())
        norm_of_array(z, loss, 1.0)
    np.testing.assert_allclose(z.grad.to_numpy(), 2 * X)


def test_copies_made_in_a_tape_have_derivatives(arch):
    for made in (copy.copy, copy.deepcopy):
        x, loss = array(needs_grad=True), single(needs_grad=True)
        x.from_numpy(X)
        with oc.ad.Tape(loss):
            norm_of_array(made(x), loss, 1.0)
        np.testing.assert_allclose(x.grad.to_numpy(), 2 * X)


def test_members_of_structs_are_copied_with_gradients(arch):
    made = [oc.Struct.field({"a": oc.f64, "v": oc.types.vector(2, oc.f64)}, shape=N, needs_grad=True) for _ in range(2)]
    loss = single(needs_grad=True)
    made[0].a.from_numpy(X)
    made[0].v.fill(2.0)
    with oc.ad.Tape(loss):
        made[1].copy_from(made[0])
        norm_of_field(made[1].a, loss, 1.0)
        norm_of_vector_field(made[1].v, loss, 1.0)
    np.testing.assert_allclose(made[0].a.grad.to_numpy(), 2 * X)
    np.testing.assert_allclose(made[0].v.grad.to_numpy(), np.full((N, 2), 4.0))


LOOKS = {
    "to_numpy(copy=False)": lambda y: y.to_numpy(copy=False)[0],
    "to_numpy(copy=None)": lambda y: y.to_numpy(copy=None)[0],
    "asarray": lambda y: np.asarray(y)[0],
    "memoryview": lambda y: np.array(memoryview(y))[0],
    "from_dlpack": lambda y: np.from_dlpack(y)[0],
    "element": lambda y: y[0],
}
SETS = {
    "from_numpy": lambda z, value: z.from_numpy(np.full(N, value)),
    "fill": lambda z, value: z.fill(value),
    "element": lambda z, value: z.__setitem__(0, value),
}


@pytest.mark.parametrize("kind", [array, field])
@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("write", SETS)
def test_what_the_host_computes_of_what_it_looked_at_is_refused(arch, kind, look, write):
    if arch != "cpu" and look != "element":
        pytest.skip("the host does not see the memory")
    needs = {"needs_grad": True, "needs_dual": True}
    x, y, z, loss = kind(**needs), kind(**needs), kind(**needs), single(**needs)
    x.from_numpy(X)

    def program():
        y.copy_from(x)
        SETS[write](z, 3.0 * float(LOOKS[look](y)))
        NORMS[kind](z, loss, 1.0)

    with pytest.raises(oc.OctantsRuntimeError, match=r"OC1105.*looked|OC1105.*has read"), oc.ad.Tape(loss):
        program()
    with (
        pytest.raises(oc.OctantsRuntimeError, match=r"OC1105.*FwdMode"),
        oc.ad.FwdMode(loss=loss, param=x, seed=[1.0] * N),
    ):
        program()
    # Zeros are computed of nothing, and who looks may look.
    with oc.ad.Tape(loss):
        y.copy_from(x)
        LOOKS[look](y)
        z.fill(0.0)
        NORMS[kind](y, loss, 1.0)
    np.testing.assert_allclose(x.grad.to_numpy(), 2 * X)


@pytest.mark.parametrize("made", [copy.copy, copy.deepcopy])
def test_copies_of_fields_made_in_a_tape_have_derivatives(arch, made):
    needs = {"needs_grad": True, "needs_dual": True}
    for kind in (array, field):
        x, y, loss = kind(**needs), kind(**needs), single(**needs)
        x.from_numpy(X)

        def program(x=x, y=y, kind=kind, loss=loss):
            y.copy_from(x)
            NORMS[kind](made(x), loss, 1.0)
            NORMS[kind](made(y), loss, 2.0)

        with oc.ad.Tape(loss):
            program()
        np.testing.assert_allclose(x.grad.to_numpy(), 6 * X)
        loss.fill(0)
        with oc.ad.FwdMode(loss=loss, param=x, seed=[1.0] * N):
            program()
        np.testing.assert_allclose(loss.dual[None], 6 * X.sum())
