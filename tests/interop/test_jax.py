"""Arrays of JAX: both look at the same memory, by DLPack."""

import gc

import numpy as np
import pytest

import octants as oc

jax = pytest.importorskip("jax")
jnp = jax.numpy

pytestmark = pytest.mark.host_devices("JAX has the CPU alone here")

Reals = oc.types.ndarray(dtype=oc.f32, ndim=2)


@oc.kernel
def number(x: Reals):
    for i, j in x:
        x[i, j] = 10 * i + j


@oc.kernel
def weigh(x: Reals, out: oc.types.ndarray(dtype=oc.f32, ndim=1)):
    for i, j in x:
        out[i] += x[i, j]


def test_jax_looks_at_what_kernels_wrote():
    array, field = oc.ndarray(oc.f32, (2, 3)), oc.field(oc.f32, shape=(2, 3))
    number(array)
    field.from_numpy(array.to_numpy())
    tensor = oc.tensor(oc.f32, (2, 3), layout=(1, 0))
    tensor.from_numpy(array.to_numpy())
    vectors = oc.Vector.ndarray(3, oc.f32, 2)
    vectors.from_numpy(array.to_numpy())
    for x in (array, field, tensor, vectors):
        assert jnp.from_dlpack(x).tolist() == [[0, 1, 2], [10, 11, 12]]
    assert jnp.from_dlpack(array).unsafe_buffer_pointer() == np.asarray(array).ctypes.data


def test_what_jax_looks_at_stays():
    array = oc.ndarray(oc.f32, (2, 3))
    number(array)
    seen = jnp.from_dlpack(array)
    del array
    oc.reset()
    gc.collect()
    oc.init(arch=oc.cpu, log_level="error")
    oc.ndarray(oc.f32, (2, 3)).fill(7.0)
    assert seen.tolist() == [[0, 1, 2], [10, 11, 12]]


def test_kernels_read_arrays_of_jax_and_do_not_write_them():
    x = jnp.arange(6, dtype=jnp.float32).reshape(2, 3)
    out = np.zeros(2, np.float32)
    weigh(x, out)
    assert out.tolist() == [3, 12]
    with pytest.raises(ValueError, match=r"OC0802.*argument x.*writeable"):
        number(x)
    with pytest.raises(ValueError, match=r"OC0802.*argument x.*bfloat16"):
        weigh(x.astype(jnp.bfloat16), out)
    assert x.tolist() == [[0, 1, 2], [3, 4, 5]] and out.tolist() == [3, 12]


def test_a_kernel_inside_a_function_that_jax_compiles():
    def on_host(x):
        out = np.zeros(x.shape[0], np.float32)
        weigh(x, out)
        return out

    @jax.jit
    def doubled(x):
        shape = jax.ShapeDtypeStruct((x.shape[0],), jnp.float32)
        return 2 * jax.pure_callback(on_host, shape, x)

    assert doubled(jnp.ones((3, 5), jnp.float32)).tolist() == [10, 10, 10]


def test_a_tracer_is_no_array():
    with pytest.raises(TypeError, match=r"OC0801.*argument `x`.*Tracer"):
        jax.jit(lambda x: weigh(x, np.zeros(2, np.float32)))(jnp.ones((2, 3), jnp.float32))
